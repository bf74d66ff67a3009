/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A kernel for tests of what asks rtnetlink for ways: it answers each question by the route that it
 * was given, or by something that is no good answer.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_gid.h"
#include "rcd_rtnl.h"

/** The route to everywhere. */
struct kernel_route {
	uint8_t type;        /**< RTN_UNICAST and the like; 0: it tells of none */
	const char *gateway; /**< NULL: it has none */
	const char *source;  /**< NULL: it does not say */
	uint32_t ifindex;    /**< likewise 0 */
	int err;             /**< 0, or it answers this instead, as a positive errno */
};

/** An address of a netdev. */
struct kernel_addr {
	const char *local;   /**< NULL: it is in the other */
	const char *address; /**< likewise; of a point-to-point link, the peer's */
	uint32_t ifindex;
};

/** What is wrong with answers. */
enum kernel_fault {
	KERNEL_WELL,
	KERNEL_DEAF,     /**< the question can't be sent */
	KERNEL_MUTE,     /**< no answer */
	KERNEL_SEQUENCE, /**< to another question */
	KERNEL_PORT,     /**< to somebody else */
	KERNEL_CUT,      /**< shorter than it says, and no end of it */
	KERNEL_LENGTHS,  /**< its addresses and numbers are a byte short */
	KERNEL_SHORT,    /**< nothing behind its general header */
	KERNEL_STRAYS,   /**< something of others, and to another question, comes first */
	KERNEL_ENDLESS,  /**< something of others comes, and comes */
};

/** What waits to be received. */
struct kernel_mail {
	size_t len;
	char bytes[256];
};

struct kernel {
	struct kernel_route route;
	const struct kernel_addr *addrs;
	uint32_t addr_count;
	enum kernel_fault fault;
	uint32_t asked;      /**< times */
	struct rcd_gid dgid; /**< of the last question */
	bool by_netdev;      /**< likewise: it named one */
	uint32_t ifindex;    /**< which; else 0 */
	bool overrun;        /**< to be told next: something was lost */
	bool flooded;        /**< what others send does not end */
	bool closed;
	uint32_t mail_count;
	struct kernel_mail mail[8];
};

/** A way to ask it. All zero but for the route and the fault; it outlives this. */
struct rcd_rtnl *
kernel_open(struct kernel *kernel);

#endif /* KERNEL_H */
