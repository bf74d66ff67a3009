/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine's end of the rings that clients share.
 *
 * Threads: the lcore of the client.
 */
#ifndef RCD_HOST_H
#define RCD_HOST_H

#include "rcd_lcore.h"
#include "rcd_queue.h"
#include "rcd_thread.h"

extern const struct rcd_qp_ops rcd_host_qp_ops;
extern const struct rcd_srq_ops rcd_host_srq_ops;

/** A completion queue is looked at when this poll's work is shown. */
static inline void
rcd_host_dirty(struct rcd_lcore *lcore, struct rcd_hcq *cq)
{
	RCD_ON_LCORE(lcore);
	if (cq->dirty)
		return;
	cq->dirty = true;
	cq->next_dirty = lcore->dirty_cqs;
	lcore->dirty_cqs = cq;
}

/** Show the clients what this poll has done. */
void
rcd_host_publish(struct rcd_lcore *lcore);

/** One that no lcore has had yet. Control thread. */
void
rcd_host_client_init(struct rcd_lclient *client);

/**
 * Take a client in: a command. What it is owed of events is sent by whoever has it.
 *
 * @param arg  struct rcd_lclient
 * @return 0
 */
int
rcd_host_client_add(struct rcd_lcore *lcore, void *arg);

/** And out. */
void
rcd_host_client_del(struct rcd_lcore *lcore, struct rcd_lclient *client);

#endif /* RCD_HOST_H */
