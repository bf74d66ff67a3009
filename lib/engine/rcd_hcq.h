/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queues that are being resized, by several rounds: one of a session at a time.
 */
#ifndef RCD_HCQ_H
#define RCD_HCQ_H

#include <stdint.h>

struct rcd_session;

/** A connection's request is over: a queue that was not moved whole stays as it was. */
void
rcd_hcq_settle(struct rcd_session *session, uint32_t via);

/** The session ends, its lcore knows it no more. */
void
rcd_hcq_end(struct rcd_session *session);

#endif /* RCD_HCQ_H */
