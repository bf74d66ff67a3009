/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Queues that are being resized, by several rounds: one of a context at a time.
 */
#ifndef RCD_HCQ_H
#define RCD_HCQ_H

#include <stdint.h>

struct rcd_context;

/** A connection's request is over: a queue that was not moved whole stays as it was. */
void
rcd_hcq_settle(struct rcd_context *context, uint32_t via);

/** The context ends, its lcore knows it no more. */
void
rcd_hcq_end(struct rcd_context *context);

#endif /* RCD_HCQ_H */
