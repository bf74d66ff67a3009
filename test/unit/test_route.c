/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets to an address go to the MAC of the right next hop: to a device of the same engine,
 * a group, somebody on the link, a gateway, or whom the kernel names; who is asked for is that hop,
 * on its VLAN; and where there is no way nobody is. Where the kernel sends by itself, nobody is
 * asked for at all. Method: devices made of tables, neighbours that answer when the test says so, a
 * kernel of the test's own, and a row for each destination.
 */
#include "rcd_route.h"

#include <errno.h>
#include <linux/rtnetlink.h>

#include "gid_text.h"
#include "kernel.h"
#include "rcd_dev.h"
#include "rcd_neigh.h"
#include "rcd_ports.h"
#include "rcd_tap.h"
#include "rcd_thread.h"

/* Places of addresses of the first device. */
enum place {
	LINK_LOCAL,
	PLAIN,
	TAGGED,
	SIX,
	GONE, /**< nothing, with a prefix of nothing */
	HOST, /**< an address without a subnet */
};

#define VLAN 5

static struct rcd_ports ports;
static struct rcd_dev devs[3];
static struct rcd_gid_table tables[3];
static struct kernel kernel;
static uint32_t asked; /**< for neighbours */
static struct rcd_neigh_target target;

static uint64_t
clock_ns(void)
{
	return 1000000000;
}

static void
ask(void *arg, const struct rcd_neigh_target *whom)
{
	CU_ASSERT_PTR_EQUAL(arg, &ports);
	asked++;
	target = *whom;
}

static struct rcd_dev *
add_dev(uint32_t index)
{
	struct rcd_dev *dev = &devs[index];

	tables[index] = (struct rcd_gid_table){ .count = 0 };
	*dev = (struct rcd_dev){
		.lport = { .index = index, .serial = 10 + index, .answers = true },
		.ports = &ports,
		.gids = &tables[index],
		.mac = { 2, 0, 0, 0, 0, (uint8_t)index },
	};
	ports.devs[index] = dev;
	return dev;
}

static void
add_address(uint32_t index, const char *address, uint8_t prefix_len, uint16_t vlan_id)
{
	struct rcd_gid_table *table = &tables[index];
	uint32_t at = table->count++;

	if (address == NULL)
		return;
	table->entries[at].gid = gid_text(address);
	table->entries[at].prefix_len = prefix_len;
	table->entries[at].vlan_id = vlan_id;
	table->entries[at].used = true;
}

static void
setup(void)
{
	static const struct rcd_neigh_ops ops = { .now_ns = clock_ns, .ask = ask };
	static const uint64_t seed[2] = { 12345, 67890 };

	rcd_thread_be_control();
	ports = (struct rcd_ports){ .conf.seed = seed };
	kernel = (struct kernel){ .fault = KERNEL_WELL };
	asked = 0;
	CU_ASSERT_EQUAL_FATAL(rcd_route_open(&ports, &ops), 0);
	ports.rtnl = kernel_open(&kernel);
	CU_ASSERT_PTR_NOT_NULL_FATAL(ports.rtnl);
	add_dev(0);
	add_address(0, "fe80::1", 64, 0);
	add_address(0, "10.0.0.1", 24, 0);
	add_address(0, "10.1.0.1", 16, VLAN);
	add_address(0, "fd00::1", 64, 0);
	add_address(0, NULL, 0, 0);
	add_address(0, "198.51.100.1", 32, 0);
}

static void
teardown(void)
{
	rcd_rtnl_close(ports.rtnl);
	rcd_route_close(&ports);
	CU_ASSERT_PTR_NULL(ports.neighs);
	CU_ASSERT_PTR_NULL(ports.hops);
	rcd_thread_end_control();
}

/* For nobody. */
static int
resolve(int sgid_index, const struct rcd_gid *dgid, uint8_t *mac, uint32_t *hop)
{
	struct rcd_route_query query = { .sgid_index = sgid_index, .dgid = dgid };

	return rcd_route_resolve(&devs[0], &query, mac, hop);
}

/* A destination, and who is asked for when its packets come from an address. */
struct row {
	enum place sgid;
	const char *dgid;
	const char *next; /**< NULL: nobody, there is no way */
};

/* @param ours  whether the link is asked by ourselves */
static void
look(const struct row *rows, size_t count, bool ours)
{
	for (size_t i = 0; i < count; i++) {
		struct rcd_gid dgid = gid_text(rows[i].dgid);
		int sgid = (int)rows[i].sgid;
		uint8_t mac[RCD_MAC_LEN] = { 0xee }, known[RCD_MAC_LEN];
		uint32_t hop = 77, before = asked;
		struct rcd_gid next;
		int err;

		CU_ASSERT_EQUAL(rcd_route_reachable(&devs[0], sgid, &dgid), rows[i].next != NULL);
		err = resolve(sgid, &dgid, mac, &hop);
		CU_ASSERT_EQUAL(mac[0], 0xee);
		if (rows[i].next == NULL) {
			CU_ASSERT_EQUAL(err, -ENETUNREACH);
			CU_ASSERT_EQUAL(asked, before);
			continue;
		}
		next = gid_text(rows[i].next);
		CU_ASSERT_EQUAL(err, -EAGAIN);
		CU_ASSERT_EQUAL(asked, before + 1);
		CU_ASSERT(rcd_gid_eq(&target.key.gid, &next));
		CU_ASSERT_EQUAL(target.key.dev, devs[0].lport.serial);
		CU_ASSERT_EQUAL(target.key.vlan_id, tables[0].entries[sgid].vlan_id);
		CU_ASSERT_EQUAL(target.sgid_index, sgid);
		CU_ASSERT_EQUAL(target.ours, ours);
		CU_ASSERT(!rcd_route_known(&devs[0], sgid, &next, known));
		/* Each row asks anew, though another had the same next hop. */
		rcd_neigh_flush(ports.neighs, devs[0].lport.serial);
	}
}

#define LOOK(rows, ours) look(rows, sizeof(rows) / sizeof((rows)[0]), ours)

static void
by_subnets(void)
{
	static const struct row rows[] = {
		{ PLAIN, "10.0.0.9", "10.0.0.9" },
		{ PLAIN, "10.0.0.255", "10.0.0.255" },
		{ PLAIN, "10.0.1.0", NULL },
		{ PLAIN, "192.0.2.1", NULL },
		{ TAGGED, "10.1.2.3", "10.1.2.3" },
		/* On the other's VLAN they are not on this one's link. */
		{ PLAIN, "10.1.2.3", NULL },
		{ TAGGED, "10.0.0.9", NULL },
		/* A subnet of another address on the same VLAN is on the link. */
		{ HOST, "10.0.0.9", "10.0.0.9" },
		{ HOST, "198.51.100.2", NULL },
		{ SIX, "fd00::9", "fd00::9" },
		{ SIX, "fe80::9", "fe80::9" },
		{ LINK_LOCAL, "fd00::9", "fd00::9" },
		{ SIX, "2001:db8::1", NULL },
		{ TAGGED, "fd00::9", NULL },
	};

	setup();
	LOOK(rows, true);
	CU_ASSERT_EQUAL(kernel.asked, 0);
	teardown();
}

static void
by_gateways(void)
{
	static const struct row both[] = {
		{ PLAIN, "192.0.2.1", "10.0.0.254" },
		{ PLAIN, "10.0.0.9", "10.0.0.9" },
		{ HOST, "198.51.100.2", "10.0.0.254" },
		{ TAGGED, "10.0.0.9", "10.0.0.254" },
		{ SIX, "2001:db8::1", "fe80::fe" },
		{ SIX, "fd00::9", "fd00::9" },
	};
	static const struct row four[] = {
		{ PLAIN, "192.0.2.1", "10.0.0.254" },
		{ SIX, "2001:db8::1", NULL },
	};

	setup();
	devs[0].conf.gateway4 = gid_text("10.0.0.254");
	LOOK(four, true);
	devs[0].conf.gateway6 = gid_text("fe80::fe");
	LOOK(both, true);
	CU_ASSERT_EQUAL(kernel.asked, 0);
	teardown();
}

static void
by_the_kernel(void)
{
	static const struct {
		struct kernel_route route;
		enum kernel_fault fault;
		struct row row;
	} rows[] = {
		{ { RTN_UNICAST }, KERNEL_WELL, { PLAIN, "10.0.0.9", "10.0.0.9" } },
		/* Subnets and gateways are its business, whatever the device was given. */
		{ { RTN_UNICAST, "10.0.0.7" }, KERNEL_WELL, { PLAIN, "10.0.0.9", "10.0.0.7" } },
		{ { RTN_UNICAST, "10.0.0.7" }, KERNEL_WELL, { PLAIN, "192.0.2.1", "10.0.0.7" } },
		{ { RTN_UNICAST }, KERNEL_WELL, { PLAIN, "192.0.2.1", "192.0.2.1" } },
		{ { RTN_UNICAST, "fe80::7" }, KERNEL_WELL, { SIX, "2001:db8::1", "fe80::7" } },
		{ { RTN_UNREACHABLE }, KERNEL_WELL, { PLAIN, "10.0.0.9", NULL } },
		{ { RTN_UNICAST, .err = ENETUNREACH }, KERNEL_WELL, { PLAIN, "10.0.0.9", NULL } },
		{ { RTN_UNICAST }, KERNEL_MUTE, { PLAIN, "10.0.0.9", NULL } },
		{ { RTN_UNICAST, "10.0.0.7" }, KERNEL_CUT, { PLAIN, "10.0.0.9", NULL } },
	};
	struct row row = { PLAIN, "10.0.0.9", NULL };
	struct rcd_rtnl *rtnl;

	setup();
	devs[0].lport.answers = false;
	devs[0].ifindex = 6;
	devs[0].conf.gateway4 = gid_text("10.0.0.254");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_gid dgid = gid_text(rows[i].row.dgid);

		kernel.route = rows[i].route;
		kernel.fault = rows[i].fault;
		look(&rows[i].row, 1, false);
		CU_ASSERT(rcd_gid_eq(&kernel.dgid, &dgid));
		CU_ASSERT_EQUAL(kernel.ifindex, 6);
	}
	rtnl = ports.rtnl;
	ports.rtnl = NULL;
	look(&row, 1, false);
	ports.rtnl = rtnl;
	teardown();
}

/* Whose MAC it is, when nobody needs to be asked. */
static void
at_once(const char *address, const uint8_t *expected)
{
	struct rcd_gid dgid = gid_text(address);
	uint8_t mac[RCD_MAC_LEN] = { 0 };
	uint32_t hop = 77;

	CU_ASSERT_EQUAL(resolve(PLAIN, &dgid, mac, &hop), 0);
	CU_ASSERT_EQUAL(hop, RCD_HOP_NONE);
	CU_ASSERT_EQUAL(memcmp(mac, expected, RCD_MAC_LEN), 0);
	CU_ASSERT_EQUAL(asked, 0);
}

static void
devices_of_the_engine_are_known(void)
{
	struct rcd_gid other = gid_text("10.0.0.2");
	uint8_t mac[RCD_MAC_LEN];
	uint32_t hop;

	setup();
	add_dev(1);
	add_address(1, "10.0.0.2", 24, 0);
	add_dev(2);
	add_address(2, "10.0.0.3", 24, 0);
	at_once("10.0.0.1", devs[0].mac);
	at_once("fd00::1", devs[0].mac);
	at_once("10.0.0.2", devs[1].mac);
	at_once("10.0.0.3", devs[2].mac);
	CU_ASSERT(rcd_route_known(&devs[0], PLAIN, &other, mac));
	CU_ASSERT_EQUAL(memcmp(mac, devs[1].mac, RCD_MAC_LEN), 0);
	/* The end of a wire is reached by its wire alone, from either side. */
	devs[1].lport.wire = true;
	CU_ASSERT(!rcd_route_known(&devs[0], PLAIN, &other, mac));
	CU_ASSERT_EQUAL(resolve(PLAIN, &other, mac, &hop), -EAGAIN);
	devs[1].lport.wire = false;
	devs[0].lport.wire = true;
	CU_ASSERT(!rcd_route_known(&devs[0], PLAIN, &other, mac));
	CU_ASSERT_EQUAL(resolve(PLAIN, &other, mac, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(asked, 1);
	/* But its own addresses. */
	asked = 0;
	at_once("10.0.0.1", devs[0].mac);
	/* That packets of one device go by the port makes no MAC unknown. */
	devs[0].lport.wire = false;
	CU_ASSERT(rcd_dev_reaches(&devs[0], &devs[1]));
	devs[0].conf.no_shortcut = true;
	at_once("10.0.0.2", devs[1].mac);
	CU_ASSERT(!rcd_dev_reaches(&devs[0], &devs[1]) && rcd_dev_reaches(&devs[1], &devs[0]));
	CU_ASSERT(rcd_dev_reaches(&devs[0], &devs[0]));
	teardown();
}

/* Any MAC will do, but one that would keep packets here. */
static void
by_udp_the_kernel_finds_who(void)
{
	static const uint8_t made[RCD_MAC_LEN] = { 2 };
	struct rcd_gid far = gid_text("192.0.2.1");
	uint8_t mac[RCD_MAC_LEN];
	uint32_t hop;

	setup();
	devs[0].lport.answers = false;
	devs[0].ifindex = 6;
	devs[0].conf.attach = RCD_ATTACH_NETDEV;
	devs[0].mode = RCD_NETDEV_UDP;
	CU_ASSERT(rcd_dev_is_udp(&devs[0]));
	kernel.route = (struct kernel_route){ RTN_UNICAST, "10.0.0.7" };
	memcpy(devs[0].mac, "\2\0\0\0\0\3", RCD_MAC_LEN);
	at_once("192.0.2.1", made);
	at_once("10.0.0.9", made);
	CU_ASSERT_EQUAL(kernel.asked, 2);
	CU_ASSERT_EQUAL(kernel.ifindex, 6);
	CU_ASSERT(rcd_route_known(&devs[0], PLAIN, &far, mac));
	CU_ASSERT_EQUAL(memcmp(mac, made, RCD_MAC_LEN), 0);
	/* Devices of the engine have these, in whatever order. */
	add_dev(1);
	add_address(1, "10.0.0.2", 24, 0);
	add_dev(2);
	memcpy(devs[1].mac, "\2\0\0\0\0\1", RCD_MAC_LEN);
	memcpy(devs[2].mac, made, RCD_MAC_LEN);
	at_once("192.0.2.1", (const uint8_t[]){ 2, 0, 0, 0, 0, 2 });
	at_once("10.0.0.2", devs[1].mac);
	at_once("10.0.0.1", devs[0].mac);
	at_once("239.129.2.3", (const uint8_t[]){ 0x01, 0, 0x5e, 1, 2, 3 });
	kernel.route = (struct kernel_route){ .err = ENETUNREACH };
	CU_ASSERT_EQUAL(resolve(PLAIN, &far, mac, &hop), -ENETUNREACH);
	CU_ASSERT_EQUAL(asked, 0);
	/* By any other driver it is the engine's to find out. */
	kernel.route = (struct kernel_route){ RTN_UNICAST };
	devs[0].mode = RCD_NETDEV_PACKET;
	CU_ASSERT(!rcd_dev_is_udp(&devs[0]));
	CU_ASSERT(!rcd_route_known(&devs[0], PLAIN, &far, mac));
	CU_ASSERT_EQUAL(resolve(PLAIN, &far, mac, &hop), -EAGAIN);
	CU_ASSERT_EQUAL(asked, 1);
	teardown();
}

static void
groups_have_the_mac_of_their_address(void)
{
	static const uint8_t four[RCD_MAC_LEN] = { 0x01, 0, 0x5e, 1, 2, 3 };
	static const uint8_t six[RCD_MAC_LEN] = { 0x33, 0x33, 0, 1, 2, 3 };

	setup();
	at_once("239.129.2.3", four);
	at_once("ff0e::1:203", six);
	CU_ASSERT_EQUAL(kernel.asked, 0);
	teardown();
}

static void
who_answered_is_the_next_hop(void)
{
	static const uint8_t first[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 1 };
	static const uint8_t second[RCD_MAC_LEN] = { 2, 1, 1, 1, 1, 2 };
	struct rcd_gid far = gid_text("192.0.2.1"), gateway = gid_text("10.0.0.254");
	uint8_t mac[RCD_MAC_LEN];
	uint32_t hop, other;

	setup();
	devs[0].conf.gateway4 = gateway;
	CU_ASSERT_EQUAL(resolve(PLAIN, &far, mac, &hop), -EAGAIN);
	rcd_neigh_learn(ports.neighs, &target.key, first);
	CU_ASSERT_EQUAL(resolve(PLAIN, &far, mac, &hop), 0);
	CU_ASSERT_EQUAL(memcmp(mac, first, RCD_MAC_LEN), 0);
	CU_ASSERT_NOT_EQUAL(hop, RCD_HOP_NONE);
	/* The same for all whose next hop it is; and known as itself, not as who is behind it. */
	rcd_neigh_learn(ports.neighs, &target.key, second);
	CU_ASSERT_EQUAL(resolve(PLAIN, &gateway, mac, &other), 0);
	CU_ASSERT_EQUAL(memcmp(mac, second, RCD_MAC_LEN), 0);
	CU_ASSERT_EQUAL(other, hop);
	memset(mac, 0, sizeof(mac));
	CU_ASSERT(rcd_route_known(&devs[0], PLAIN, &gateway, mac));
	CU_ASSERT_EQUAL(memcmp(mac, second, RCD_MAC_LEN), 0);
	CU_ASSERT(!rcd_route_known(&devs[0], PLAIN, &far, mac));
	/* On another VLAN it is somebody else. */
	CU_ASSERT(!rcd_route_known(&devs[0], TAGGED, &gateway, mac));
	CU_ASSERT_EQUAL(asked, 1);
	CU_ASSERT_EQUAL(resolve(TAGGED, &far, mac, &other), -EAGAIN);
	CU_ASSERT_EQUAL(asked, 2);
	CU_ASSERT_EQUAL(target.key.vlan_id, VLAN);
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(by_subnets),
		RCD_TEST(by_gateways),
		RCD_TEST(by_the_kernel),
		RCD_TEST(devices_of_the_engine_are_known),
		RCD_TEST(by_udp_the_kernel_finds_who),
		RCD_TEST(groups_have_the_mac_of_their_address),
		RCD_TEST(who_answered_is_the_next_hop),
	};

	return rcd_tap_run("route", tests, sizeof(tests) / sizeof(tests[0]));
}
