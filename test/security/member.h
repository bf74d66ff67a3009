/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Members of XRC domains: a client with a queue in the domain of a file, targets of it, and who
 * sends to them.
 */
#ifndef MEMBER_H
#define MEMBER_H

#include <stdbool.h>
#include <stdint.h>

#include "rig.h"

#define MEMBER_DEPTH 16
#define MEMBER_BYTES 4096 /**< memory of each */
#define MEMBER_LEN   100  /**< bytes of a message */

/** A client with a queue in a domain. */
struct member {
	struct node node;
	uint32_t xrcd;
	struct rcd_cl_srq srq;
	uint32_t number;
};

/** An empty file for a domain, which the test unlinks. @param path  as of mkstemp(3) */
void
member_file(char *path);

/** Join the domain of a descriptor, or of a file. @return 0 or -errno, of the engine */
int
member_join_by(struct rcd_client *client, int fd, uint32_t flags, uint32_t *xrcd);

int
member_join(struct rcd_client *client, const char *path, uint32_t flags, uint32_t *xrcd);

/** One more queue. @return 0 or -errno */
int
member_queue(struct member *member);

/** Become one on a device, with memory and a queue. */
void
member_open(struct member *member, const struct rig *rig, const char *device, const char *path);

/** Post a receive into its memory. */
void
member_recv(struct member *member, uint64_t wr_id);

/** Have a target open. @param qpn  0: a new one. @return 0 or -errno */
int
member_target(struct member *member, uint32_t qpn, struct rcd_cl_qp *target);

/** Who sends, not connected. */
void
member_sender_open(struct node *sender, const struct rig *rig, const char *device);

/** Connect a target with a sender. */
void
member_connect(struct member *member, struct rcd_cl_qp *target, struct node *sender);

/** Post one message and wait. @param to  whose memory is written; NULL: SEND. @return its status */
int
member_send(struct node *sender, uint32_t srqn, const struct member *to);

/** Whether a message comes to its queue, and is what was sent. */
bool
member_receives(struct member *member, struct node *sender);

#endif /* MEMBER_H */
