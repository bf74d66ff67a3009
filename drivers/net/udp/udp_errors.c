/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The queue of errors of a socket (ip(7), IP_RECVERR): what routers and hosts answered by ICMP, and
 * what the kernel itself found, as a datagram that is longer than the path allows. The former are
 * counted: RoCE has its own ways to find that a peer does not answer. What is not read takes the
 * room of datagrams, and keeps who waits for those awake.
 */
#include <time.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <string.h>

#include "udp_dev.h"

/** More than a buffer holds: what is left out of it is read another time. */
#define ERRORS_MOST 65536

static bool
udp_errors_is_icmp(struct msghdr *msg)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL;
		cmsg = CMSG_NXTHDR(msg, cmsg)) {
		struct sock_extended_err err;

		if (!(cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVERR) &&
			!(cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&err, CMSG_DATA(cmsg), sizeof(err));
		return err.ee_origin == SO_EE_ORIGIN_ICMP || err.ee_origin == SO_EE_ORIGIN_ICMP6;
	}
	return false;
}

bool
udp_errors_clear(int fd, struct udp_counts *counts)
{
	uint32_t count = 0;
	int pending = 0;
	socklen_t len = sizeof(pending);

	for (; count < ERRORS_MOST; count++) {
		_Alignas(struct cmsghdr) uint8_t control[512];
		struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		if (udp_errors_is_icmp(&msg))
			udp_count(&counts->icmp, 1);
	}
	/* One that found no room in the queue is still told, by the next call, whatever that is. */
	return (getsockopt(fd, SOL_SOCKET, SO_ERROR, &pending, &len) == 0 && pending != 0) ||
		count > 0;
}
