/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what the kernel sends by netlink is received whole, and nothing of others is; nobody makes
 * the reader wait, though the socket's flags say so. Method: sockets that wait, of two protocols:
 * one where any process may send to any, and rtnetlink for the kernel's own.
 */
#include "rcd_nl_recv.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_tap.h"

static int
open_bound(int protocol, struct sockaddr_nl *own)
{
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	socklen_t len = sizeof(*own);

	*own = (struct sockaddr_nl){ .nl_family = AF_NETLINK };
	CU_ASSERT_FATAL(sock >= 0);
	CU_ASSERT_EQUAL_FATAL(bind(sock, (struct sockaddr *)own, sizeof(*own)), 0);
	CU_ASSERT_EQUAL_FATAL(getsockname(sock, (struct sockaddr *)own, &len), 0);
	return sock;
}

static void
others_are_passed_over(void)
{
	struct nlmsghdr message = { .nlmsg_len = sizeof(message), .nlmsg_type = RTM_DELLINK };
	struct sockaddr_nl own, other;
	char buffer[64];
	int sock = open_bound(NETLINK_USERSOCK, &own);
	int sender = open_bound(NETLINK_USERSOCK, &other);

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(sendto(sender, &message, sizeof(message), 0,
					(struct sockaddr *)&own, sizeof(own)),
			sizeof(message));
	CU_ASSERT_EQUAL(rcd_nl_recv(sock, buffer, sizeof(buffer)), 0);
	CU_ASSERT_EQUAL(rcd_nl_recv(sock, buffer, sizeof(buffer)), 0);
	/* Nor is one that does not fit anything that the kernel lost. */
	CU_ASSERT_EQUAL(rcd_nl_recv(sock, buffer, 8), 0);
	CU_ASSERT_EQUAL(rcd_nl_recv(sock, buffer, sizeof(buffer)), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	CU_ASSERT_EQUAL(rcd_nl_dropped(), 3);
	close(sender);
	close(sock);
}

/* A question about a netdev that nobody has: the kernel's answer is an error. */
static void
ask(int sock)
{
	struct {
		struct nlmsghdr nlh;
		struct ifinfomsg info;
	} message = { .nlh = { .nlmsg_len = sizeof(message),
			      .nlmsg_type = RTM_GETLINK,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.info = { .ifi_index = 0x7fffffff } };

	CU_ASSERT_EQUAL(rcd_nl_send(sock, &message, sizeof(message)), sizeof(message));
}

static void
the_kernels_are_whole(void)
{
	_Alignas(struct nlmsghdr) char buffer[1024];
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)buffer;
	struct sockaddr_nl own;
	int sock = open_bound(NETLINK_ROUTE, &own);

	ask(sock);
	CU_ASSERT_FATAL(rcd_nl_recv(sock, buffer, sizeof(buffer)) >= (ssize_t)sizeof(*nlh));
	CU_ASSERT_EQUAL(nlh->nlmsg_type, NLMSG_ERROR);
	ask(sock);
	CU_ASSERT_EQUAL(rcd_nl_recv(sock, buffer, sizeof(*nlh) + 1), -1);
	CU_ASSERT_EQUAL(errno, ENOBUFS);
	CU_ASSERT_EQUAL(rcd_nl_recv(sock, buffer, sizeof(buffer)), -1);
	CU_ASSERT_EQUAL(errno, EAGAIN);
	close(sock);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(others_are_passed_over),
		RCD_TEST(the_kernels_are_whole),
	};

	return rcd_tap_run("nl_recv", tests, sizeof(tests) / sizeof(tests[0]));
}
