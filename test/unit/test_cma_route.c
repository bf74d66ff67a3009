/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a destination finds the device and the source address that doc/cm.md says, and none that
 * can't reach it. Method: machines of a few devices each, and a row for each question to them.
 */
#include "rcd_cma_route.h"

#include <errno.h>

#include "cma_host.h"
#include "gid_text.h"
#include "rcd_tap.h"

static struct cma_host host;

/* A question and its answer. */
struct row {
	const char *src; /**< NULL: any */
	const char *dst;
	uint32_t scope_id;
	int place; /**< of the device; or -errno */
	const char *sgid;
	uint64_t netns;
};

static void
ask(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rcd_ctrl_cm_addr src = cma_host_addr(rows[i].src, 0);
		struct rcd_ctrl_cm_addr dst = cma_host_addr(rows[i].dst, 0);
		struct rcd_cma_dev dev;
		struct rcd_gid sgid;
		int at, err;

		dst.scope_id = rows[i].scope_id;
		err = rcd_cma_route(host.cma, rows[i].netns, &src, &dst, &dev, &at);
		if (rows[i].place < 0) {
			CU_ASSERT_EQUAL(err, rows[i].place);
			continue;
		}
		CU_ASSERT_EQUAL(err, 0);
		if (err != 0)
			continue;
		sgid = gid_text(rows[i].sgid);
		CU_ASSERT_EQUAL(dev.serial, host.devs[rows[i].place].serial);
		CU_ASSERT(rcd_gid_eq(&dev.gids->entries[at].gid, &sgid));
	}
}

#define ASK(rows) ask(rows, sizeof(rows) / sizeof((rows)[0]))

static void
by_subnets_and_gateways(void)
{
	static const struct row rows[] = {
		{ NULL, "10.0.0.9", 0, 0, "10.0.0.1" },
		{ NULL, "10.0.0.200", 0, 2, "10.0.0.129" }, /* the narrower one */
		{ NULL, "10.0.1.9", 0, 2, "10.0.1.1" },
		{ NULL, "fd00::9", 0, 0, "fd00::1" },
		{ "0.0.0.0", "10.0.1.9", 0, 2, "10.0.1.1" },
		{ "10.0.0.1", "10.0.0.200", 0, 0, "10.0.0.1" }, /* that address, and no other */
		{ "10.0.0.1", "10.0.1.9", 0, -ENETUNREACH, NULL },
		{ "10.0.0.1", "fd00::9", 0, -EINVAL, NULL },
		{ "10.0.0.77", "10.0.0.9", 0, -ENETUNREACH, NULL }, /* nobody's */
		/* Beyond all subnets it is the gateway's, if there is one. */
		{ NULL, "192.0.2.1", 0, 2, "10.0.1.1" },
		{ NULL, "2001:db8::1", 0, -ENETUNREACH, NULL },
		{ "10.0.0.129", "192.0.2.1", 0, 2, "10.0.0.129" },
		/* Link-local addresses are of the netdev that is named. */
		{ NULL, "fe80::9", 5, 0, "fe80::1" },
		{ NULL, "fe80::9", 6, 2, "fe80::2" },
		/* This machine. */
		{ NULL, "10.0.0.1", 0, 0, "10.0.0.1" },
		{ NULL, "10.0.0.129", 0, 2, "10.0.0.129" },
		{ NULL, "127.0.0.1", 0, 0, "10.0.0.1" },
		{ NULL, "0.0.0.0", 0, 0, "10.0.0.1" },
		{ NULL, "::1", 0, 0, "fd00::1" },
		{ "10.0.1.1", "127.0.0.1", 0, 2, "10.0.1.1" },
		/* Groups. */
		{ NULL, "239.1.2.3", 0, 0, "10.0.0.1" },
		{ "10.0.1.1", "239.1.2.3", 0, 2, "10.0.1.1" },
		{ NULL, "ff0e::1", 0, 0, "fd00::1" },
	};

	cma_host_open(&host);
	cma_host_dev(&host, "one")->ifindex = 5;
	cma_host_address(&host, "fe80::1", 64, 0);
	cma_host_address(&host, "10.0.0.1", 24, 0);
	cma_host_address(&host, "fd00::1", 64, 0);
	cma_host_dev(&host, NULL);
	cma_host_dev(&host, "two")->ifindex = 6;
	cma_host_address(&host, "10.0.1.1", 24, 0);
	cma_host_address(&host, "10.0.0.129", 25, 0);
	cma_host_address(&host, "fe80::2", 64, 0);
	host.gateway[2] = true;
	/* A gateway of IPv4 alone: there is no address for the other. */
	ASK(rows);
	cma_host_close(&host);
}

static void
by_the_kernel(void)
{
	static const struct row none[] = {
		{ NULL, "192.0.2.1", 0, -ENETUNREACH, NULL },
		{ NULL, "10.0.0.1", 0, 0, "10.0.0.1" },
	};
	static const struct row rows[] = {
		{ NULL, "192.0.2.1", 0, 1, "10.0.1.7" },
		{ NULL, "10.0.0.9", 0, 1, "10.0.1.7" }, /* its subnets are the kernel's business */
		{ NULL, "2001:db8::1", 0, 1, "fd00::7" },
		{ NULL, "fe80::9", 0, 1, "fe80::7" },
		{ NULL, "239.1.2.3", 0, 1, "10.0.1.7" },
	};
	static const struct row other[] = {
		{ NULL, "192.0.2.1", 0, -ENETUNREACH, NULL },
	};

	cma_host_open(&host);
	cma_host_dev(&host, "one")->ifindex = 5;
	host.devs[0].answers = false;
	cma_host_address(&host, "10.0.0.1", 24, 0);
	cma_host_dev(&host, "two")->ifindex = 6;
	host.devs[1].answers = false;
	cma_host_address(&host, "10.0.1.6", 24, 0);
	cma_host_address(&host, "10.0.1.7", 24, 0);
	cma_host_address(&host, "fe80::7", 64, 0);
	cma_host_address(&host, "fd00::7", 64, 0);
	ASK(none);
	host.kernel_ifindex = 6;
	host.kernel_src = gid_text("10.0.1.7");
	ask(rows, 2);
	ask(rows + 4, 1);
	/* A source that is no address of ours: one of the same kind. */
	host.kernel_src = gid_text("2001:db8::77");
	ask(rows + 2, 2);
	host.kernel_ifindex = 9; /* no device of ours */
	ASK(other);
	cma_host_close(&host);
}

static void
by_a_wire(void)
{
	static const struct row rows[] = {
		{ NULL, "10.77.0.2", 0, 0, "10.77.0.1" }, /* not by itself, though it is here */
		{ NULL, "10.77.0.1", 0, 1, "10.77.0.2" },
		{ "10.77.0.2", "10.77.0.2", 0, 1, "10.77.0.2" },
	};

	cma_host_open(&host);
	cma_host_dev(&host, "w0")->peer_gids = &host.gids[1];
	cma_host_address(&host, "10.77.0.1", 24, 0);
	cma_host_dev(&host, "w1")->peer_gids = &host.gids[0];
	cma_host_address(&host, "10.77.0.2", 24, 0);
	ASK(rows);
	cma_host_close(&host);
}

static void
by_none(void)
{
	static const struct row rows[] = {
		{ NULL, "10.0.0.9", 0, -ENETUNREACH, NULL },
		{ NULL, "127.0.0.1", 0, -ENETUNREACH, NULL },
		{ NULL, "239.1.2.3", 0, -ENETUNREACH, NULL },
	};
	static const struct row down[] = {
		{ NULL, "127.0.0.1", 0, -ENETUNREACH, NULL },
		{ NULL, "10.0.0.9", 0, 0, "10.0.0.1" }, /* it may come up again */
	};

	cma_host_open(&host);
	ASK(rows);
	cma_host_dev(&host, "one")->up = false;
	cma_host_address(&host, "10.0.0.1", 24, 0);
	ASK(down);
	cma_host_close(&host);
}

/* Not by where it leads, but by who is there. */
static void
by_itself(void)
{
	static const struct {
		const char *addr;
		uint32_t scope_id;
		int place; /**< of the device that owns it; -1: none */
	} owners[] = {
		{ "10.0.0.1", 0, 0 }, { "10.0.2.1", 0, 2 }, { "10.0.0.2", 0, -1 },
		{ "fd00::3", 0, 3 },
		/* An address of a link is any link's, if none is named. */
		{ "fe80::1", 0, 1 }, { "fe80::1", 5, 1 }, { "fe80::1", 6, 2 }, { "fe80::1", 7, -1 },
		{ "fd00::3", 7, 3 }, /* of no netdev: of each */
	};
	struct rcd_cma_dev dev;
	int at;

	cma_host_open(&host);
	CU_ASSERT_FALSE(rcd_cma_first(host.cma, 0, 4, &dev, &at));
	cma_host_dev(&host, "down")->up = false;
	cma_host_address(&host, "10.0.0.1", 24, 0);
	host.devs[0].ifindex = 4;
	cma_host_dev(&host, "local");
	cma_host_address(&host, "fe80::1", 64, 0);
	host.devs[1].ifindex = 5;
	CU_ASSERT_FALSE(rcd_cma_first(host.cma, 0, 4, &dev, &at));
	CU_ASSERT_FALSE(rcd_cma_first(host.cma, 0, 6, &dev, &at));
	cma_host_dev(&host, "four");
	cma_host_address(&host, "fe80::1", 64, 0);
	cma_host_address(&host, "10.0.2.1", 24, 0);
	host.devs[2].ifindex = 6;
	cma_host_dev(&host, "six");
	cma_host_address(&host, "fd00::3", 64, 0);
	CU_ASSERT(rcd_cma_first(host.cma, 0, 4, &dev, &at));
	CU_ASSERT_EQUAL(dev.serial, host.devs[2].serial);
	CU_ASSERT_EQUAL(at, 1);
	CU_ASSERT(rcd_cma_first(host.cma, 0, 6, &dev, &at));
	CU_ASSERT_EQUAL(dev.serial, host.devs[3].serial);
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		struct rcd_ctrl_cm_addr addr = cma_host_addr(owners[i].addr, 0);
		bool owned;

		addr.scope_id = owners[i].scope_id;
		owned = rcd_cma_owner(host.cma, 0, &addr, &dev, &at);
		CU_ASSERT_EQUAL(owned, owners[i].place >= 0);
		if (owned && owners[i].place >= 0)
			CU_ASSERT_EQUAL(dev.serial, host.devs[owners[i].place].serial);
	}
	cma_host_close(&host);
}

/* Equal addresses, subnets, numbers of netdevs: each namespace has its own device for them. */
static void
by_namespace(void)
{
	static const struct row rows[] = {
		{ NULL, "10.0.0.9", 0, 0, "10.0.0.1", 0 },
		{ NULL, "10.0.0.9", 0, 1, "10.0.0.1", 7 },
		{ "10.0.0.1", "10.0.0.9", 0, 1, "10.0.0.1", 7 },
		{ NULL, "10.0.0.1", 0, 0, "10.0.0.1", 0 },
		{ NULL, "10.0.0.1", 0, 1, "10.0.0.1", 7 },
		{ NULL, "127.0.0.1", 0, 1, "10.0.0.1", 7 },
		{ NULL, "fe80::9", 5, 0, "fe80::1", 0 },
		{ NULL, "fe80::9", 5, 1, "fe80::2", 7 },
		/* What another one has is nobody's. */
		{ NULL, "10.0.7.7", 0, 1, "10.0.7.7", 7 },
		{ NULL, "10.0.7.7", 0, -ENETUNREACH, NULL, 0 },
		{ NULL, "10.0.7.7", 0, -ENETUNREACH, NULL, 8 },
		{ NULL, "127.0.0.1", 0, -ENETUNREACH, NULL, 8 },
		/* The kernel is asked there. */
		{ NULL, "192.0.2.1", 0, 1, "10.0.0.1", 7 },
		{ NULL, "192.0.2.1", 0, -ENETUNREACH, NULL, 0 },
	};
	struct rcd_ctrl_cm_addr addr = cma_host_addr("10.0.7.7", 0);
	struct rcd_cma_dev dev;
	int at;

	cma_host_open(&host);
	for (int i = 0; i < 2; i++) {
		cma_host_dev(&host, "d")->ifindex = 5;
		cma_host_address(&host, "10.0.0.1", 24, 0);
		cma_host_address(&host, i == 0 ? "fe80::1" : "fe80::2", 64, 0);
		host.devs[i].netns = i == 0 ? 0 : 7;
	}
	cma_host_address(&host, "10.0.7.7", 32, 0);
	host.kernel_ifindex = 5;
	host.kernel_netns = 7;
	ASK(rows);
	CU_ASSERT_TRUE(rcd_cma_owner(host.cma, 7, &addr, &dev, &at));
	CU_ASSERT_FALSE(rcd_cma_owner(host.cma, 0, &addr, &dev, &at));
	CU_ASSERT_FALSE(rcd_cma_first(host.cma, 8, 4, &dev, &at));
	cma_host_close(&host);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(by_subnets_and_gateways),
		RCD_TEST(by_the_kernel),
		RCD_TEST(by_a_wire),
		RCD_TEST(by_none),
		RCD_TEST(by_itself),
		RCD_TEST(by_namespace),
	};

	return rcd_tap_run("cma_route", tests, sizeof(tests) / sizeof(tests[0]));
}
