/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets of other network namespaces, from the process that makes them: the engine goes nowhere.
 * Nor does it take a client's own: who kept one could hold the kernel's lock of it for as long as
 * it likes (udp_sendmsg(), of more to come, in memory that does not), and with it an lcore.
 *
 * The process has the other end of a SOCK_SEQPACKET pair. It answers a request by as many messages
 * as there are fours of sockets (rcd_away.h), or by one that says why there are none. It is
 * trusted.
 *
 * Threads: the control thread.
 */
#ifndef RCD_NETNS_H
#define RCD_NETNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_away.h"
#include "rcd_ctrl.h"
#include "rcd_dev_conf.h"

/** Sockets are wanted. With a descriptor: of the namespace that it names, if it names one. */
struct rcd_netns_req {
	uint32_t who;    /**< in the answer, too */
	uint32_t number; /**< likewise: of one's requests */
	uint32_t queues; /**< fours behind the first */
	/** Of the namespace, as "netns" has it, where none comes along. */
	char name[RCD_NETNS_LEN];
};

/** Four of them come along, unless there is an error. */
struct rcd_netns_rep {
	uint32_t who;
	uint32_t number;
	uint32_t left; /**< fours that follow */
	int32_t err;   /**< 0 or -errno; then nothing follows */
};

/**
 * Whether a descriptor is of a network namespace, as a process's /proc has it and not by a mount of
 * its own. No file system is asked, which may be a client's, and take its time. Any thread.
 */
bool
rcd_netns_is_one(int fd);

/**
 * Ask; the answers come to rcd_netns_take().
 *
 * @param name  NULL: fd is one of it, and stays the caller's
 * @return 0; -EAGAIN: too much is asked already; or -errno: nobody is there
 */
int
rcd_netns_ask(int sock, uint32_t who, uint32_t number, uint32_t queues, const char *name, int fd);

/**
 * The next message, if one is there.
 *
 * @param rep  set if 0 is returned; its err is -EMFILE where not all four got here, and -EPROTO for
 *             nobody (who is 0) where it is no such message
 * @param fds  set: four, which are the caller's, or none, as where rep has an error
 * @return 0; -EAGAIN; -EPIPE: nobody is there, nor will be
 */
int
rcd_netns_take(int sock, struct rcd_netns_rep *rep, struct rcd_ctrl_fds *fds);

/**
 * Ask, and wait until all are there: for half a minute at most.
 *
 * @param away   set when 0 is returned: the caller's
 * @param error  set to a sentence unless 0 is returned
 * @return 0 or -errno
 */
int
rcd_netns_fetch(int sock, const char *name, uint32_t queues, struct rcd_away **away, char *error,
	size_t error_len);

#endif /* RCD_NETNS_H */
