/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Datagrams of the kernel, from sockets of netlink that others may have copies of, and may send to:
 * who has CAP_NET_ADMIN in the user namespace of a network namespace may send what looks like the
 * kernel's to any socket there, and who made a socket may change its flags at any time.
 *
 * Threads: the control thread.
 */
#ifndef RCD_NL_RECV_H
#define RCD_NL_RECV_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * Receive the next datagram. Never waits, whatever flags the socket has.
 *
 * @return its bytes; 0: it was not the kernel's, which is counted; -1 and errno: EAGAIN: none is
 *         there; ENOBUFS: some were lost, or this one was cut
 */
ssize_t
rcd_nl_recv(int fd, void *buffer, size_t room);

/** Datagrams that were not the kernel's, of all sockets since the process began. */
uint64_t
rcd_nl_dropped(void);

/** Send a message to the kernel, likewise. @return bytes, or -1 and errno */
ssize_t
rcd_nl_send(int fd, const void *message, size_t len);

/** Whether a message is long enough for its fixed header. Any thread. */
static inline bool
rcd_nl_has(const struct nlmsghdr *nlh, size_t header_bytes)
{
	return nlh->nlmsg_len >= MNL_NLMSG_HDRLEN + header_bytes;
}

/** Whether an attribute is of this type, and as long as that says. Any thread. */
static inline bool
rcd_nl_is(const struct nlattr *attr, uint16_t type, size_t bytes)
{
	return mnl_attr_get_type(attr) == type && mnl_attr_get_payload_len(attr) == bytes;
}

#endif /* RCD_NL_RECV_H */
