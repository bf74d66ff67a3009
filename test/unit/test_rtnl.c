/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a way is what the kernel's answer says, and nothing else; no answer, and none that is cut
 * short, somebody else's or of other lengths, gives one, and the next question has its own answer.
 * The netdev of an address is the one that has it, and not who has it at the other end.
 * Method: a kernel of the test's own, and a row for each answer.
 */
#include "rcd_rtnl.h"

#include <errno.h>
#include <linux/rtnetlink.h>

#include "gid_text.h"
#include "kernel.h"
#include "rcd_tap.h"

static struct kernel kernel;
static struct rcd_rtnl *rtnl;

static void
setup(void)
{
	kernel = (struct kernel){ .fault = KERNEL_WELL };
	rtnl = kernel_open(&kernel);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rtnl);
}

static void
teardown(void)
{
	CU_ASSERT(!kernel.closed);
	rcd_rtnl_close(rtnl);
	CU_ASSERT(kernel.closed);
	rcd_rtnl_close(NULL);
}

static void
the_way_is_the_answer(void)
{
	static const struct {
		struct kernel_route route;
		const char *dgid;
		uint32_t by; /**< netdev that is asked for */
		int err;
		const char *next;
		const char *source; /**< NULL: as it was */
		uint32_t ifindex;
	} rows[] = {
		{ { RTN_UNICAST }, "10.0.0.9", 0, 0, "10.0.0.9", NULL, 0 },
		{ { RTN_UNICAST, .ifindex = 3 }, "10.0.0.9", 3, 0, "10.0.0.9", NULL, 3 },
		{ { RTN_UNICAST, "10.0.0.254", "10.0.0.1", 3 }, "192.0.2.1", 0, 0, "10.0.0.254",
			"10.0.0.1", 3 },
		{ { RTN_UNICAST, "fe80::1", "fd00::1", 4 }, "2001:db8::1", 4, 0, "fe80::1",
			"fd00::1", 4 },
		{ { RTN_UNICAST, .source = "fd00::1" }, "fd00::9", 0, 0, "fd00::9", "fd00::1", 0 },
		{ { RTN_MULTICAST, .ifindex = 3 }, "239.1.2.3", 3, 0, "239.1.2.3", NULL, 3 },
		/* Its own addresses are no way for packets, and neither is what it throws away. */
		{ { RTN_LOCAL, .ifindex = 1 }, "10.0.0.1", 0, -ENETUNREACH, NULL, NULL, 0 },
		{ { RTN_BROADCAST }, "10.0.0.255", 0, -ENETUNREACH, NULL, NULL, 0 },
		{ { RTN_BLACKHOLE }, "192.0.2.1", 0, -ENETUNREACH, NULL, NULL, 0 },
		{ { RTN_UNREACHABLE }, "192.0.2.1", 0, -ENETUNREACH, NULL, NULL, 0 },
		{ { 0 }, "192.0.2.1", 0, -ENETUNREACH, NULL, NULL, 0 },
		{ { RTN_UNICAST, .err = EPERM }, "192.0.2.1", 0, -ENETUNREACH, NULL, NULL, 0 },
		{ { RTN_UNICAST, .err = ENETUNREACH }, "fd00::9", 0, -ENETUNREACH, NULL, NULL, 0 },
	};
	struct rcd_gid before = gid_text("192.0.2.77");

	setup();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_rtnl_way way = { .source = before, .ifindex = 99 };
		struct rcd_gid dgid = gid_text(rows[i].dgid);
		struct rcd_gid next, source;

		kernel.route = rows[i].route;
		CU_ASSERT_EQUAL(rcd_rtnl_way(rtnl, &dgid, rows[i].by, &way), rows[i].err);
		CU_ASSERT_EQUAL(kernel.asked, i + 1);
		CU_ASSERT(rcd_gid_eq(&kernel.dgid, &dgid));
		CU_ASSERT_EQUAL(kernel.by_netdev, rows[i].by != 0);
		CU_ASSERT_EQUAL(kernel.ifindex, rows[i].by);
		if (rows[i].err != 0)
			continue;
		next = gid_text(rows[i].next);
		source = rows[i].source != NULL ? gid_text(rows[i].source) : before;
		CU_ASSERT(rcd_gid_eq(&way.next, &next));
		CU_ASSERT(rcd_gid_eq(&way.source, &source));
		CU_ASSERT_EQUAL(way.ifindex, rows[i].ifindex);
	}
	teardown();
}

static void
what_is_no_answer_gives_no_way(void)
{
	static const enum kernel_fault faults[] = { KERNEL_DEAF, KERNEL_MUTE, KERNEL_SEQUENCE,
		KERNEL_PORT, KERNEL_CUT, KERNEL_SHORT };
	struct rcd_gid dgid = gid_text("192.0.2.1");
	struct rcd_gid gateway = gid_text("10.0.0.254");
	struct rcd_rtnl_way way;

	setup();
	kernel.route = (struct kernel_route){ RTN_UNICAST, "10.0.0.254", "10.0.0.1", 3 };
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		kernel.fault = faults[i];
		CU_ASSERT_EQUAL(rcd_rtnl_way(rtnl, &dgid, 0, &way), -ENETUNREACH);
		/* What is left of it is nobody's: the next question has its own answer. */
		kernel.fault = KERNEL_WELL;
		kernel.overrun = true;
		CU_ASSERT_EQUAL(rcd_rtnl_way(rtnl, &dgid, 0, &way), 0);
		CU_ASSERT(rcd_gid_eq(&way.next, &gateway));
	}
	teardown();
	CU_ASSERT_EQUAL(rcd_rtnl_way(NULL, &dgid, 0, &way), -ENETUNREACH);
}

static void
attributes_of_other_lengths_say_nothing(void)
{
	static const char *const dgids[] = { "192.0.2.1", "2001:db8::1" };
	struct rcd_gid before = gid_text("192.0.2.77");

	setup();
	kernel.fault = KERNEL_LENGTHS;
	for (size_t i = 0; i < sizeof(dgids) / sizeof(dgids[0]); i++) {
		struct rcd_rtnl_way way = { .source = before };
		struct rcd_gid dgid = gid_text(dgids[i]);

		kernel.route = (struct kernel_route){ RTN_UNICAST,
			i == 0 ? "10.0.0.254" : "fe80::1", i == 0 ? "10.0.0.1" : "fd00::1", 3 };
		CU_ASSERT_EQUAL(rcd_rtnl_way(rtnl, &dgid, 0, &way), 0);
		CU_ASSERT(rcd_gid_eq(&way.next, &dgid));
		CU_ASSERT(rcd_gid_eq(&way.source, &before));
		CU_ASSERT_EQUAL(way.ifindex, 0);
	}
	/* Nor does an address of the other family. */
	kernel.fault = KERNEL_WELL;
	for (size_t i = 0; i < sizeof(dgids) / sizeof(dgids[0]); i++) {
		struct rcd_rtnl_way way = { .source = before };
		struct rcd_gid dgid = gid_text(dgids[i]);

		kernel.route =
			(struct kernel_route){ RTN_UNICAST, i == 1 ? "10.0.0.254" : "fe80::1" };
		CU_ASSERT_EQUAL(rcd_rtnl_way(rtnl, &dgid, 0, &way), 0);
		CU_ASSERT(rcd_gid_eq(&way.next, &dgid));
	}
	teardown();
}

static int
count(const struct nlmsghdr *nlh, void *arg)
{
	CU_ASSERT_EQUAL(nlh->nlmsg_type, RTM_NEWROUTE);
	(*(uint32_t *)arg)++;
	return MNL_CB_OK;
}

static void
the_kernels_error_is_the_callers(void)
{
	static const struct {
		struct kernel_route route;
		enum kernel_fault fault;
		int err;
		uint32_t seen; /**< messages */
	} rows[] = {
		{ { RTN_UNICAST }, KERNEL_WELL, 0, 1 },
		{ { 0 }, KERNEL_WELL, 0, 0 },
		{ { RTN_UNICAST, .err = EPERM }, KERNEL_WELL, -EPERM, 0 },
		{ { RTN_UNICAST, .err = EEXIST }, KERNEL_WELL, -EEXIST, 0 },
		{ { RTN_UNICAST }, KERNEL_DEAF, -ENOBUFS, 0 },
		{ { RTN_UNICAST }, KERNEL_MUTE, -EAGAIN, 0 },
		{ { RTN_UNICAST }, KERNEL_SEQUENCE, -EAGAIN, 0 },
		{ { RTN_UNICAST }, KERNEL_PORT, -EAGAIN, 0 },
		{ { RTN_UNICAST }, KERNEL_STRAYS, 0, 1 },
	};
	struct rcd_gid dgid = gid_text("10.0.0.9");

	setup();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char buffer[256] = { 0 };
		struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
		struct rtmsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
		uint32_t seen = 0;

		nlh->nlmsg_type = RTM_GETROUTE;
		nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
		info->rtm_family = AF_INET;
		info->rtm_dst_len = 32;
		mnl_attr_put(nlh, RTA_DST, 4, dgid.raw + 12);
		kernel.route = rows[i].route;
		kernel.fault = rows[i].fault;
		CU_ASSERT_EQUAL(rcd_rtnl_ask(rtnl, nlh, count, &seen), rows[i].err);
		CU_ASSERT_EQUAL(seen, rows[i].seen);
		CU_ASSERT_EQUAL(rcd_rtnl_ask(NULL, nlh, count, &seen), -ENOTCONN);
		CU_ASSERT_EQUAL(seen, rows[i].seen);
	}
	teardown();
}

/* Who sends without an end makes a question fail, and nobody wait; then there are answers again. */
static void
what_does_not_end_is_left(void)
{
	struct rcd_gid dgid = gid_text("192.0.2.1");
	uint32_t ifindex;

	setup();
	for (int i = 0; i < 2; i++) {
		kernel.fault = KERNEL_ENDLESS;
		CU_ASSERT_EQUAL(rcd_rtnl_owner(rtnl, &dgid, &ifindex), -EMSGSIZE);
		CU_ASSERT_EQUAL(rcd_rtnl_owner(rtnl, &dgid, &ifindex), -EBUSY);
		kernel.flooded = false;
		kernel.mail_count = 0;
		kernel.fault = KERNEL_STRAYS;
		CU_ASSERT_EQUAL(rcd_rtnl_owner(rtnl, &dgid, &ifindex), -EADDRNOTAVAIL);
	}
	teardown();
}

struct nested {
	int err;
	uint32_t seen;
};

static int
ask_again(const struct nlmsghdr *nlh, void *arg)
{
	struct nested *nested = arg;
	char copy[256] = { 0 };

	CU_ASSERT_EQUAL(nlh->nlmsg_type, RTM_NEWROUTE);
	nested->seen++;
	nested->err = rcd_rtnl_ask(rtnl, mnl_nlmsg_put_header(copy), NULL, NULL);
	return MNL_CB_OK;
}

/* Who asks while an answer is read would write over that. */
static void
nobody_asks_within_an_answer(void)
{
	char buffer[256] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buffer);
	struct rtmsg *info = mnl_nlmsg_put_extra_header(nlh, sizeof(*info));
	struct rcd_gid dgid = gid_text("10.0.0.9");
	struct nested nested = { 0 };

	setup();
	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	info->rtm_family = AF_INET;
	info->rtm_dst_len = 32;
	mnl_attr_put(nlh, RTA_DST, 4, dgid.raw + 12);
	kernel.route = (struct kernel_route){ RTN_UNICAST };
	for (uint32_t i = 1; i <= 2; i++) {
		CU_ASSERT_EQUAL(rcd_rtnl_ask(rtnl, nlh, ask_again, &nested), 0);
		CU_ASSERT(nested.seen == i && nested.err == -EBUSY);
	}
	teardown();
}

static void
who_has_an_address(void)
{
	static const struct kernel_addr addrs[] = {
		{ "127.0.0.1", "127.0.0.1", 1 },
		{ "10.0.0.1", "10.0.0.2", 3 },
		{ "10.0.0.2", "10.0.0.2", 4 },
		{ NULL, "fd00::1", 3 },
		{ "fd00::2", "fd00::3", 5 },
		{ NULL, "fd00::1", 6 },
	};
	static const struct {
		const char *address;
		enum kernel_fault fault;
		int err;
		uint32_t ifindex;
	} rows[] = {
		{ "127.0.0.1", KERNEL_WELL, 0, 1 },
		{ "10.0.0.1", KERNEL_WELL, 0, 3 },
		{ "10.0.0.2", KERNEL_WELL, 0, 4 },
		{ "10.0.0.3", KERNEL_WELL, -EADDRNOTAVAIL, 0 },
		{ "fd00::1", KERNEL_WELL, 0, 3 },
		{ "fd00::2", KERNEL_WELL, 0, 5 },
		{ "fd00::3", KERNEL_WELL, -EADDRNOTAVAIL, 0 },
		{ "10.0.0.1", KERNEL_DEAF, -ENOBUFS, 0 },
		{ "10.0.0.1", KERNEL_MUTE, -EAGAIN, 0 },
		{ "10.0.0.1", KERNEL_LENGTHS, -EADDRNOTAVAIL, 0 },
	};

	setup();
	kernel.addrs = addrs;
	kernel.addr_count = sizeof(addrs) / sizeof(addrs[0]);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rcd_gid gid = gid_text(rows[i].address);
		uint32_t ifindex = 0;

		kernel.fault = rows[i].fault;
		CU_ASSERT_EQUAL(rcd_rtnl_owner(rtnl, &gid, &ifindex), rows[i].err);
		CU_ASSERT_EQUAL(ifindex, rows[i].ifindex);
		CU_ASSERT_EQUAL(rcd_rtnl_owner(NULL, &gid, &ifindex), -ENOTCONN);
	}
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(the_way_is_the_answer),
		RCD_TEST(what_is_no_answer_gives_no_way),
		RCD_TEST(attributes_of_other_lengths_say_nothing),
		RCD_TEST(the_kernels_error_is_the_callers),
		RCD_TEST(what_does_not_end_is_left),
		RCD_TEST(nobody_asks_within_an_answer),
		RCD_TEST(who_has_an_address),
	};

	return rcd_tap_run("rtnl", tests, sizeof(tests) / sizeof(tests[0]));
}
