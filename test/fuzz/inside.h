/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine in the fuzz target's own process, polled by it, and clients that speak the control
 * protocol: what the targets that drive a whole engine share.
 */
#ifndef INSIDE_H
#define INSIDE_H

#include <stdbool.h>
#include <stdio.h>

#include "rcd_audit.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "steps.h"

#define INSIDE_MADE 4 /**< objects of a kind that a client remembers, the last ones */

/** A client: its socket, its segment when it has one, and what the engine told it. */
struct client {
	int sock;  /**< -1: not connected */
	bool deaf; /**< takes no replies */
	uint8_t *segment;
	size_t segment_bytes;
	int segment_fd;
	int wake_fd;
	int event_fd;
	uint32_t device; /**< number of the one to open */
	/** First word of the last replies to each request: mostly handles. */
	uint32_t made[RCD_CTRL_OP_COUNT][INSIDE_MADE];
	uint32_t made_count[RCD_CTRL_OP_COUNT];
	struct learnt learnt;
	struct rcd_ctrl_msg last; /**< reply that came last */
	uint32_t replies;
};

/** Make the engine, once, with devices f0 and f1 at the ends of a wire: 10.0.0.1, 10.0.0.2. */
struct rcd_engine *
inside_engine(void);

/** Let the engine do what it has to do now. @param rounds of control thread and lcore */
void
inside_turn(uint32_t rounds);

/** The same, while so much time passes. */
void
inside_pass(uint64_t ns, uint32_t rounds);

/** The audit; ends the program with its sentence when something is wrong. */
void
inside_audit(void);

/** Let all that is left end by itself, and see that nothing stays. @param before when it began */
void
inside_check_left(const struct rcd_holdings *before, unsigned int fds_before);

/** Open descriptors of this process. */
unsigned int
inside_fds(void);

/** Connect; the client's fields are as those of a new one. */
void
client_connect(struct client *client);

/** Greet, and open a device by its place in the list. @return whether it is open */
bool
client_open(struct client *client, uint32_t place);

/** Send a message as it is. @param fds still the caller's */
void
client_send(struct client *client, struct rcd_ctrl_msg *msg, size_t len,
	const struct rcd_ctrl_fds *fds);

/** Send a request and let the engine serve it. @return its status; -EAGAIN: no reply yet */
int
client_call(struct client *client, uint32_t op, const union rcd_ctrl_body *body,
	const struct rcd_ctrl_fds *fds);

/** Take all replies that wait. */
void
client_receive(struct client *client);

/** Close everything. */
void
client_close(struct client *client);

/** One of the objects that a request made. @return 0 when there was none */
uint32_t
client_pick(const struct client *client, uint32_t op, uint32_t which);

/** Descriptors that a request of this kind is sent with. */
unsigned int
inside_fd_count(uint32_t op);

#endif /* INSIDE_H */
