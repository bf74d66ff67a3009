/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an open device, a completion queue and a queue pair of the program are made of.
 *
 * Threads: the control thread, but for what says otherwise.
 */
#ifndef RCD_LOCAL_OBJECT_H
#define RCD_LOCAL_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_ctrl.h"
#include "rcd_lclient.h"
#include "rcd_local.h"

struct rcd_cq_slot;
struct rcd_conn;
struct rcd_hqp;
struct rcd_lcore;
struct rcd_shm_cq;
struct rte_mbuf;

/** A completion queue. */
struct rcd_local_cq {
	/* The lcore's, behind its making. */
	struct rcd_local *local;
	struct rcd_shm_cq *shm; /**< there until the device is gone */
	const struct rcd_cq_slot *slots;
	uint32_t mask;
	uint32_t consumer;

	LIST_ENTRY(rcd_local_cq) link;
	uint32_t handle;
	uint32_t users; /**< queue pairs, one for each role, and a node */
};

/** One of the two queues of a queue pair. */
struct rcd_local_wq {
	uint8_t *slots; /**< NULL: no requests */
	uint32_t mask;
	uint32_t stride;
	uint32_t producer;
};

/** A queue pair. */
struct rcd_local_qp {
	/* The lcore's, behind its making. */
	struct rcd_hqp *hqp; /**< NULL: it is no more */
	struct rcd_local_wq sq;
	struct rcd_local_wq rq;
	uint32_t sq_done;        /**< requests before this are complete, their mbufs freed */
	uint32_t mbuf_count;     /**< that are not */
	struct rte_mbuf **mbufs; /**< by place in the queue; NULL: none */
	uint32_t max_send_sge, max_recv_sge, max_inline;
	bool datagram;

	LIST_ENTRY(rcd_local_qp) link;
	struct rcd_local *local;
	struct rcd_local_cq *send_cq;
	struct rcd_local_cq *recv_cq;
	uint32_t handle;
	enum rcd_qp_type type;
	uint32_t qpn; /**< any thread */
};

/** An open device. */
struct rcd_local {
	struct rcd_conn *conn; /**< NULL: its engine is no more */
	LIST_HEAD(, rcd_local_cq) cqs;
	LIST_HEAD(, rcd_local_qp) qps;
	uint32_t lcore_index; /**< constant */

	bool gone; /**< the lcore's: the rings are no more */

	/* Free-running: the first is the control thread's, the second that of who takes events. */
	uint32_t event_put, event_taken;
	struct rcd_ctrl_event events[RCD_LOCAL_EVENTS];
};

/* rcd_local_io.c */

/** What the lcore tells: of queue pairs struct rcd_local_qp, else struct rcd_local. */
extern const struct rcd_lclient_ops rcd_local_io_ops;

/** A queue pair of the program, and the same one as the engine has it. */
struct rcd_local_bind {
	struct rcd_local_qp *qp;
	struct rcd_hqp *hqp;
};

/** Have the lcore know them as one: a command. @param arg  struct rcd_local_bind @return 0 */
int
rcd_local_io_bind(struct rcd_lcore *lcore, void *arg);

/* rcd_local_mem.c */

/** A request to the engine, as rcd_own_serve(). @return that; -ENODEV: the device has gone */
int
rcd_local_request(struct rcd_local *local, enum rcd_ctrl_op op, const void *in, void *out);

/* rcd_local_qp.c */

/** Free what is left of one that the engine knows no more. */
void
rcd_local_qp_free(struct rcd_local_qp *qp);

#endif /* RCD_LOCAL_OBJECT_H */
