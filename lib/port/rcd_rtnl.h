/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Questions to the kernel by rtnetlink (RFC 3549; rtnetlink(7)), which are answered before the
 * function returns.
 *
 * Threads: the control thread.
 */
#ifndef RCD_RTNL_H
#define RCD_RTNL_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_gid.h"

struct rcd_rtnl;

/** Datagrams that are read for a question, and before it: a list is 16 MiB at most. */
#define RCD_RTNL_READS_MAX 512

/** Room for a question. */
struct rcd_rtnl_message {
	_Alignas(struct nlmsghdr) char bytes[256];
};

/** A socket to the kernel, or what takes its place in a test. */
struct rcd_rtnl_ops {
	/** Send a message to the kernel. @return bytes, or -1 and errno */
	ssize_t (*send)(void *arg, const void *message, size_t len);
	/**
	 * Receive one or more of its messages; never waits.
	 *
	 * @return bytes; 0: what came is to be passed over; or -1 and errno
	 */
	ssize_t (*receive)(void *arg, void *buffer, size_t room);
	/** It is not needed any more. */
	void (*close)(void *arg);
};

/**
 * @param fd  a socket of rtnetlink that is to be used; NULL: one is made. It is set to -1 when it
 *            is taken: then it is closed with the result, or has been when NULL is returned. Else
 *            it is the caller's still
 * @return NULL: the kernel has none, or there is no memory; errno
 */
struct rcd_rtnl *
rcd_rtnl_open(int *fd);

/**
 * Begin to use a socket of rtnetlink.
 *
 * @param fd      as rcd_rtnl_open()
 * @param groups  of changes that it is told; 0: none
 * @return NULL and errno
 */
struct mnl_socket *
rcd_rtnl_socket(int *fd, unsigned int groups);

/**
 * Instead: ask by way of somebody.
 *
 * @param ops   outlive it
 * @param arg   of the ops; closed with it
 * @param port  that the kernel's answers are for (netlink(7), nl_pid)
 * @return NULL: no memory, and arg is not closed
 */
struct rcd_rtnl *
rcd_rtnl_create(const struct rcd_rtnl_ops *ops, void *arg, uint32_t port);

/** NULL is allowed. */
void
rcd_rtnl_close(struct rcd_rtnl *rtnl);

/**
 * Begin a request, to which a header of its type and attributes are added.
 *
 * @param flags  besides NLM_F_REQUEST
 * @return its header, in the message
 */
struct nlmsghdr *
rcd_rtnl_begin(struct rcd_rtnl_message *message, uint16_t type, uint16_t flags);

/**
 * Send a request, and feed all that is answered to a function.
 *
 * @param rtnl  NULL: there is none
 * @param nlh   with NLM_F_ACK or NLM_F_DUMP, so that there is an end; its sequence is set
 * @param each  of each message but the last, which it does not keep; it asks nothing itself. NULL:
 *              nothing but the acknowledgement is awaited
 * @return 0 or -errno, which may be the kernel's own; -ENOTCONN: there is none; -EBUSY: each()
 *         asks, or what came before does not end; -EMSGSIZE: nor does the answer; -EAGAIN: there is
 *         none. What answers something else is passed over
 */
int
rcd_rtnl_ask(struct rcd_rtnl *rtnl, struct nlmsghdr *nlh, mnl_cb_t each, void *arg);

/** A way to an address. */
struct rcd_rtnl_way {
	struct rcd_gid next; /**< the address on the link */
	struct rcd_gid
		source;   /**< that packets come from; as it was where the kernel does not say */
	uint32_t ifindex; /**< of the netdev that they leave by; 0: the kernel does not say */
};

/**
 * Ask for the way to an address.
 *
 * @param ifindex  of the netdev to leave by; 0: any
 * @param way      its source may be set before; all of it is set when 0 is returned
 * @return 0 or -ENETUNREACH
 */
int
rcd_rtnl_way(struct rcd_rtnl *rtnl, const struct rcd_gid *dgid, uint32_t ifindex,
	struct rcd_rtnl_way *way);

/**
 * Ask for the netdev that has an address: the first, if several do.
 *
 * @param ifindex  set when 0 is returned
 * @return 0; -EADDRNOTAVAIL: none has; what else rcd_rtnl_ask() returns
 */
int
rcd_rtnl_owner(struct rcd_rtnl *rtnl, const struct rcd_gid *gid, uint32_t *ifindex);

/** An IPv4 or IPv6 address of a message as a GID. @return false for anything else */
bool
rcd_rtnl_take_addr(const struct nlattr *attr, uint8_t family, struct rcd_gid *gid);

/** The address of a netdev that RTM_NEWADDR or RTM_DELADDR is about. @return false: it has none */
bool
rcd_rtnl_read_addr(const struct nlmsghdr *nlh, struct rcd_gid *gid);

#endif /* RCD_RTNL_H */
