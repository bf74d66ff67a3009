/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The kernel's number is 0, and nobody else's.
 */
#include "rcd_nl_recv.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "rcd_thread.h"

static uint64_t dropped;

ssize_t
rcd_nl_recv(int fd, void *buffer, size_t room)
{
	struct sockaddr_nl from = { .nl_pid = UINT32_MAX };
	struct iovec iov = { .iov_base = buffer, .iov_len = room };
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1
	};
	ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT);

	RCD_ON_CONTROL();
	if (got < 0)
		return -1;
	if (msg.msg_namelen != sizeof(from) || from.nl_family != AF_NETLINK || from.nl_pid != 0) {
		dropped++;
		return 0;
	}
	if (msg.msg_flags & MSG_TRUNC) {
		errno = ENOBUFS;
		return -1;
	}
	return got;
}

uint64_t
rcd_nl_dropped(void)
{
	RCD_ON_CONTROL();
	return dropped;
}

ssize_t
rcd_nl_send(int fd, const void *message, size_t len)
{
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	RCD_ON_CONTROL();
	return sendto(
		fd, message, len, MSG_DONTWAIT, (const struct sockaddr *)&kernel, sizeof(kernel));
}
