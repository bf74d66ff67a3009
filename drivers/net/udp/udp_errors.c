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

/* @return SO_EE_ORIGIN_*; SO_EE_ORIGIN_LOCAL, if none is said: the kernel's own */
static uint8_t
udp_errors_origin(struct msghdr *msg)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL;
		cmsg = CMSG_NXTHDR(msg, cmsg)) {
		struct sock_extended_err err;

		if (!(cmsg->cmsg_level == IPPROTO_IP && cmsg->cmsg_type == IP_RECVERR) &&
			!(cmsg->cmsg_level == IPPROTO_IPV6 && cmsg->cmsg_type == IPV6_RECVERR))
			continue;
		if (cmsg->cmsg_len < CMSG_LEN(sizeof(err)))
			continue;
		memcpy(&err, CMSG_DATA(cmsg), sizeof(err));
		return err.ee_origin;
	}
	return SO_EE_ORIGIN_LOCAL;
}

bool
udp_errors_clear(int fd, struct udp_counts *counts)
{
	socklen_t len = sizeof(int);
	int pending = 0;
	bool others = false;

	for (uint32_t i = 0; i < ERRORS_MOST; i++) {
		_Alignas(struct cmsghdr) uint8_t control[512];
		struct msghdr msg = { .msg_control = control, .msg_controllen = sizeof(control) };
		uint8_t origin;

		if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		origin = udp_errors_origin(&msg);
		others |= origin != SO_EE_ORIGIN_LOCAL;
		if (origin == SO_EE_ORIGIN_ICMP || origin == SO_EE_ORIGIN_ICMP6)
			udp_count(&counts->icmp, 1);
	}
	/* One that found no room in the queue is still told, by the next call, whatever that is. */
	return (getsockopt(fd, SOL_SOCKET, SO_ERROR, &pending, &len) == 0 && pending != 0) ||
		others;
}
