/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The last sends of a queue pair that its client destroys: what was posted before, and can leave
 * now, leaves, as an adapter takes requests as soon as the doorbell rings. Nothing waits for a
 * peer, for a rate, or for long.
 *
 * Threads: the lcore of the queue pair.
 */
#ifndef RCD_DRAIN_H
#define RCD_DRAIN_H

#include <stdbool.h>

struct rcd_hqp;
struct rcd_lcore;

/**
 * Whether a queue pair is to stay a little longer. The first call says which requests are meant,
 * all that are posted then, and each later one, in another poll, whether they have left. When they
 * can't, or 5 ms and 16 polls are over, or 100 ms, the answer is no as well.
 *
 * A frame that the port has not taken yet has left: it needs the queue pair no more.
 */
bool
rcd_drain_waits(struct rcd_lcore *lcore, struct rcd_hqp *hqp);

#endif /* RCD_DRAIN_H */
