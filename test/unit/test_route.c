/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets go to the right address on the link: the destination on its subnet and VLAN, else
 * the gateway of its family, else nowhere; to a device of this engine without the link, unless one
 * of both is the end of a wire; groups by the MAC that their address makes. Method: rcd_route.c
 * with devices made by hand, whose neighbours are learnt when the test says so. No EAL, no root.
 */
#include "rcd_route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "rcd_dev.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_neigh.h"
#include "rcd_ports.h"
#include "rcd_tap.h"
#include "rcd_thread.h"

static struct rcd_lcore lcore;
static struct rcd_lcores lcores;
static struct rcd_ports ports;
static struct rcd_dev dev, beside;
static struct rcd_gid_table gids, gids_beside;

static const uint8_t answer[RCD_MAC_LEN] = { 2, 7, 7, 7, 7, 7 };

static struct rcd_gid
gid_of(const char *text)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		return rcd_gid_from_ipv4(bytes);
	CU_ASSERT_EQUAL_FATAL(inet_pton(AF_INET6, text, bytes), 1);
	return rcd_gid_from_ipv6(bytes);
}

static void
own(struct rcd_gid_table *table, const char *text, uint8_t prefix_len, uint16_t vlan_id)
{
	uint32_t at = table->count++;

	table->entries[at].gid = gid_of(text);
	table->entries[at].prefix_len = prefix_len;
	table->entries[at].vlan_id = vlan_id;
	table->entries[at].used = true;
}

static void
add(struct rcd_dev *to, uint32_t index, const struct rcd_gid_table *table)
{
	*to = (struct rcd_dev){
		.lport = { .index = index, .serial = index + 1, .answers = true },
		.ports = &ports,
		.gids = table,
		.mac = { 2, 0, 0, 0, 0, (uint8_t)index },
	};
	ports.devs[index] = to;
}

/* Two ports. The first has addresses 0 to 4, gateways only where a case gives them. */
static void
setup(void)
{
	static const uint64_t seed[2] = { 1, 2 };
	const struct rcd_ports_conf conf = { .lcores = &lcores, .seed = seed };

	rcd_thread_be_control();
	memset(&gids, 0, sizeof(gids));
	memset(&gids_beside, 0, sizeof(gids_beside));
	own(&gids, "10.0.0.1", 24, 0);
	own(&gids, "10.5.0.1", 16, 5);
	own(&gids, "fd00::1", 64, 0);
	own(&gids, "fe80::1", 64, 0);
	own(&gids, "10.9.0.1", 32, 0);
	own(&gids_beside, "10.0.1.1", 24, 0);
	lcores.lcore[0] = &lcore;
	memset(&ports, 0, sizeof(ports));
	CU_ASSERT_EQUAL_FATAL(rcd_ports_open(&ports, &conf), 0);
	add(&dev, 0, &gids);
	add(&beside, 1, &gids_beside);
}

static void
teardown(void)
{
	rcd_ports_close(&ports);
	rcd_thread_end_control();
}

/* Where a packet goes: the MAC when it is known, else who is asked for, as they are written. */
static int
resolve(int from, const char *to, uint8_t *mac, uint32_t *hop)
{
	struct rcd_gid dgid = gid_of(to);

	return rcd_route_resolve(&dev, from, &dgid, NULL, NULL, mac, hop);
}

static void
next_hops(void)
{
	static const struct {
		int from;
		const char *to, *gateway4, *gateway6, *next; /**< next NULL: unreachable */
		uint16_t vlan_id;
	} cases[] = {
		{ 0, "10.0.0.9", "", "", "10.0.0.9", 0 },
		{ 0, "10.0.2.9", "", "", NULL, 0 },
		{ 0, "10.0.2.9", "10.0.0.254", "", "10.0.0.254", 0 },
		/* A gateway of the other family is none. */
		{ 0, "10.0.2.9", "", "fd00::fe", NULL, 0 },
		{ 2, "fd01::9", "10.0.0.254", "", NULL, 0 },
		{ 2, "fd01::9", "", "fd00::fe", "fd00::fe", 0 },
		{ 2, "fd00::9", "", "fd00::fe", "fd00::9", 0 },
		{ 3, "fe80::9", "", "", "fe80::9", 0 },
		/* A subnet is one of its VLAN, whichever address the packet comes from. */
		{ 1, "10.5.3.3", "", "", "10.5.3.3", 5 },
		{ 0, "10.5.3.3", "", "", NULL, 0 },
		{ 1, "10.0.0.9", "", "", NULL, 5 },
		{ 1, "10.0.0.9", "10.5.0.254", "", "10.5.0.254", 5 },
		{ 4, "10.0.0.9", "", "", "10.0.0.9", 0 },
		/* An address alone has no neighbours on its subnet. */
		{ 4, "10.9.0.2", "", "", NULL, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rcd_gid dgid = gid_of(cases[i].to);
		uint8_t mac[RCD_MAC_LEN];
		struct rcd_hop_key key;
		struct rcd_gid next;
		uint32_t hop;
		int err;

		setup();
		if (cases[i].gateway4[0] != '\0')
			dev.conf.gateway4 = gid_of(cases[i].gateway4);
		if (cases[i].gateway6[0] != '\0')
			dev.conf.gateway6 = gid_of(cases[i].gateway6);
		CU_ASSERT_EQUAL(
			rcd_route_reachable(&dev, cases[i].from, &dgid), cases[i].next != NULL);
		err = resolve(cases[i].from, cases[i].to, mac, &hop);
		CU_ASSERT_EQUAL(hop, RCD_HOP_NONE);
		if (cases[i].next == NULL) {
			CU_ASSERT_EQUAL(err, -ENETUNREACH);
			CU_ASSERT_EQUAL(rcd_neigh_count(ports.neighs), 0);
			teardown();
			continue;
		}
		CU_ASSERT_EQUAL(err, -EAGAIN);
		CU_ASSERT_EQUAL(rcd_neigh_count(ports.neighs), 1);
		/* Who answers is the next hop, and nobody else. */
		next = gid_of(cases[i].next);
		key = rcd_dev_hop_key(&dev.lport, cases[i].vlan_id, &next);
		CU_ASSERT(rcd_hop_find(ports.hops, &key) != RCD_HOP_NONE);
		rcd_neigh_learn(ports.neighs, &key, answer);
		CU_ASSERT_EQUAL(resolve(cases[i].from, cases[i].to, mac, &hop), 0);
		CU_ASSERT_EQUAL(hop, rcd_hop_find(ports.hops, &key));
		CU_ASSERT_EQUAL(memcmp(mac, answer, sizeof(mac)), 0);
		CU_ASSERT(rcd_route_known(&dev, cases[i].from, &next, mac));
		teardown();
	}
}

static void
without_the_link(void)
{
	static const uint8_t group4[RCD_MAC_LEN] = { 1, 0, 0x5e, 1, 2, 3 };
	static const uint8_t group6[RCD_MAC_LEN] = { 0x33, 0x33, 0, 0, 0, 9 };
	struct rcd_gid other = gid_of("10.0.1.1");
	uint8_t mac[RCD_MAC_LEN];
	uint32_t hop;

	setup();
	CU_ASSERT_EQUAL(resolve(0, "10.0.0.1", mac, &hop), 0);
	CU_ASSERT_EQUAL(memcmp(mac, dev.mac, sizeof(mac)), 0);
	CU_ASSERT_EQUAL(resolve(0, "10.0.1.1", mac, &hop), 0);
	CU_ASSERT_EQUAL(memcmp(mac, beside.mac, sizeof(mac)), 0);
	CU_ASSERT(rcd_route_known(&dev, 0, &other, mac));
	CU_ASSERT_EQUAL(resolve(0, "239.1.2.3", mac, &hop), 0);
	CU_ASSERT_EQUAL(memcmp(mac, group4, sizeof(mac)), 0);
	CU_ASSERT_EQUAL(resolve(2, "ff0e::9", mac, &hop), 0);
	CU_ASSERT_EQUAL(memcmp(mac, group6, sizeof(mac)), 0);
	CU_ASSERT_EQUAL(hop, RCD_HOP_NONE);
	CU_ASSERT_EQUAL(rcd_neigh_count(ports.neighs), 0);
	/* What is at the end of a wire is reached by the wire alone. */
	beside.lport.wire = true;
	CU_ASSERT_EQUAL(resolve(0, "10.0.1.1", mac, &hop), -ENETUNREACH);
	CU_ASSERT(!rcd_route_known(&dev, 0, &other, mac));
	beside.lport.wire = false;
	dev.lport.wire = true;
	CU_ASSERT_EQUAL(resolve(0, "10.0.1.1", mac, &hop), -ENETUNREACH);
	CU_ASSERT_EQUAL(resolve(0, "10.0.0.1", mac, &hop), 0);
	teardown();
}

/* A netdev's way is the kernel's to say; where it can't be asked there is none. */
static void
without_a_kernel(void)
{
	uint8_t mac[RCD_MAC_LEN];
	struct rcd_gid dgid;
	uint32_t hop;

	setup();
	dev.lport.answers = false;
	dgid = gid_of("10.0.0.9");
	CU_ASSERT_EQUAL(resolve(0, "10.0.0.9", mac, &hop), -ENETUNREACH);
	CU_ASSERT(!rcd_route_reachable(&dev, 0, &dgid));
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(next_hops),
		RCD_TEST(without_the_link),
		RCD_TEST(without_a_kernel),
	};

	return rcd_tap_run("route", tests, sizeof(tests) / sizeof(tests[0]));
}
