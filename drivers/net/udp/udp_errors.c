/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The queue of errors of a socket (ip(7), IP_RECVERR): what routers and hosts answered by ICMP, and
 * what the kernel itself found, as a datagram that is longer than the path allows. The former are
 * counted: RoCE has its own ways to find that a peer does not answer.
 */
#include <time.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <string.h>

#include "udp_dev.h"

#define ERRORS_AT_ONCE 16

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

uint32_t
udp_errors_read(int fd, struct udp_counts *counts)
{
	uint32_t count = 0;

	while (count < ERRORS_AT_ONCE) {
		_Alignas(struct cmsghdr) uint8_t control[512];
		struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };

		if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		count++;
		if (udp_errors_is_icmp(&msg))
			udp_count(&counts->icmp, 1);
	}
	return count;
}
