/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a socket is in a group, on the netdev of its device, for as long as a membership is of it:
 * joined once, left once; what the kernel refuses is counted by nobody. Method: the kernel is the
 * test's, and keeps a list of what it is asked for.
 */
#include "rcd_memberships.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "rcd_tap.h"

#define GROUPS  40u
#define STEPS   20000u
#define IFINDEX 7
#define FD4     1004
#define FD6     1006

static bool no_memory;
static int refusal; /**< errno of all that is asked for; 0: it is done */
static struct rcd_gid has[GROUPS];
static uint32_t has_count;
static uint32_t sockets_made;

void *
__wrap_realloc(void *old, size_t size);
void *
__real_realloc(void *old, size_t size);
int
__wrap_socket(int family, int type, int protocol);
int
__wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);

void *
__wrap_realloc(void *old, size_t size)
{
	return no_memory ? NULL : __real_realloc(old, size);
}

int
__wrap_socket(int family, int type, int protocol)
{
	CU_ASSERT_EQUAL(type & SOCK_DGRAM, SOCK_DGRAM);
	CU_ASSERT_EQUAL(protocol, 0);
	errno = refusal;
	sockets_made++;
	return refusal != 0 ? -1 : family == AF_INET ? FD4 : FD6;
}

/* Its place, or one behind all. */
static uint32_t
place_of(const struct rcd_gid *gid)
{
	uint32_t at = 0;

	while (at < has_count && !rcd_gid_eq(&has[at], gid))
		at++;
	return at;
}

int
__wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	const struct ip_mreqn *v4 = value;
	const struct ipv6_mreq *v6 = value;
	bool is_v4 = level == IPPROTO_IP;
	bool in = name == (is_v4 ? IP_ADD_MEMBERSHIP : IPV6_JOIN_GROUP);
	struct rcd_gid gid = is_v4 ? rcd_gid_from_ipv4((const uint8_t *)&v4->imr_multiaddr)
				   : rcd_gid_from_ipv6(v6->ipv6mr_multiaddr.s6_addr);
	uint32_t at = place_of(&gid);

	CU_ASSERT_EQUAL(fd, is_v4 ? FD4 : FD6);
	CU_ASSERT_EQUAL(len, is_v4 ? sizeof(*v4) : sizeof(*v6));
	CU_ASSERT_EQUAL(is_v4 ? (uint32_t)v4->imr_ifindex : v6->ipv6mr_interface, IFINDEX);
	CU_ASSERT(in || name == (is_v4 ? IP_DROP_MEMBERSHIP : IPV6_LEAVE_GROUP));
	if (refusal != 0) {
		errno = refusal;
		return -1;
	}
	/* Neither is done twice. */
	CU_ASSERT_EQUAL_FATAL(at < has_count, !in);
	if (in)
		has[has_count++] = gid;
	else
		has[at] = has[--has_count];
	return 0;
}

/* Two have the same MAC, and are two groups all the same. */
static struct rcd_gid
group_of(uint32_t number)
{
	const uint8_t v4[4] = { (uint8_t)(224 + number % 4), 1, 2, (uint8_t)(number / 4) };
	struct rcd_gid gid = { { 0xff, 0x0e, [15] = (uint8_t)number } };

	return number % 2 == 0 ? rcd_gid_from_ipv4(v4) : gid;
}

static void
as_long_as_anybody_is_in_it(void)
{
	struct rcd_memberships memberships = { 0 };
	uint32_t members[GROUPS] = { 0 };
	int sockets[2] = { -1, -1 };
	uint32_t wrong = 0;

	for (uint32_t step = 0; step < STEPS; step++) {
		uint32_t number = (uint32_t)rand() % GROUPS;
		struct rcd_gid gid = group_of(number);

		if (members[number] == 0 || (members[number] < 3 && rand() % 2 == 0)) {
			wrong += rcd_memberships_add(&memberships, sockets, IFINDEX, &gid) != 0;
			members[number]++;
		} else {
			rcd_memberships_del(&memberships, sockets, IFINDEX, &gid);
			members[number]--;
		}
		wrong += (place_of(&gid) < has_count) != (members[number] > 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(memberships.count, has_count);
	CU_ASSERT(sockets[0] == FD4 && sockets[1] == FD6);
	CU_ASSERT_EQUAL(sockets_made, 2);
	for (uint32_t i = 0; i < GROUPS; i++) {
		struct rcd_gid gid = group_of(i);

		for (; members[i] > 0; members[i]--)
			rcd_memberships_del(&memberships, sockets, IFINDEX, &gid);
	}
	CU_ASSERT_EQUAL(has_count, 0);
	rcd_memberships_fini(&memberships);
	CU_ASSERT_PTR_NULL(memberships.groups);
}

static void
what_is_refused_is_not_counted(void)
{
	struct rcd_memberships memberships = { 0 };
	struct rcd_gid first = group_of(0), second = group_of(2);
	int sockets[2] = { -1, -1 };

	has_count = 0;
	refusal = EAFNOSUPPORT;
	CU_ASSERT_EQUAL(rcd_memberships_add(&memberships, sockets, IFINDEX, &first), -EAFNOSUPPORT);
	CU_ASSERT_EQUAL(sockets[0], -1);
	refusal = 0;
	CU_ASSERT_EQUAL(rcd_memberships_add(&memberships, sockets, IFINDEX, &first), 0);
	refusal = ENOBUFS;
	CU_ASSERT_EQUAL(rcd_memberships_add(&memberships, sockets, IFINDEX, &second), -ENOBUFS);
	/* Another member of what is joined asks the kernel for nothing. */
	CU_ASSERT_EQUAL(rcd_memberships_add(&memberships, sockets, IFINDEX, &first), 0);
	CU_ASSERT_EQUAL(memberships.count, 1);
	refusal = 0;
	rcd_memberships_del(&memberships, sockets, IFINDEX, &first);
	CU_ASSERT_EQUAL(has_count, 1);
	/* A netdev that went has taken them along. */
	refusal = ENODEV;
	rcd_memberships_del(&memberships, sockets, IFINDEX, &first);
	CU_ASSERT_EQUAL(memberships.count, 0);
	refusal = 0;
	rcd_memberships_fini(&memberships);
	has_count = 0;
	no_memory = true;
	CU_ASSERT_EQUAL(rcd_memberships_add(&memberships, sockets, IFINDEX, &first), -ENOMEM);
	CU_ASSERT_EQUAL(has_count, 0);
	no_memory = false;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(as_long_as_anybody_is_in_it),
		RCD_TEST(what_is_refused_is_not_counted),
	};

	return rcd_tap_run("memberships", tests, sizeof(tests) / sizeof(tests[0]));
}
