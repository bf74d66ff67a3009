/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the fuzz targets of the transport share: bytes as a source of decisions, and a queue pair in
 * RTS with memory of exactly its size.
 */
#ifndef FUZZ_RIG_H
#define FUZZ_RIG_H

#include <errno.h>
#include <stdlib.h>

#include "rcd_ah.h"
#include "rcd_bring_up.h"
#include "rcd_check.h"
#include "rcd_qp.h"
#include "rcd_reorder.h"
#include "rcd_xrc.h"

enum {
	RIG_MEMORY = 4096,
	RIG_PD = 3,
	RIG_SGES = 4,
	RIG_INLINE = 32,
	RIG_DEPTH = 8,
	RIG_XSRQS = 3,
};

/** Input, read front to back; zeros when it is used up. */
struct rig_input {
	const uint8_t *data;
	size_t len;
};

static inline uint32_t
rig_take(struct rig_input *in, size_t bytes)
{
	uint32_t val = 0;

	for (; bytes > 0 && in->len > 0; bytes--, in->len--)
		val = val << 8 | *in->data++;
	return val;
}

/** A queue pair and its host. */
struct rig {
	struct rcd_qp *qp;
	struct rcd_mr_table *mrs;
	struct rcd_ah_table *ahs;
	struct rcd_reorder_pool *reorder;
	struct rcd_counters counters;
	uint8_t *memory;
	struct rcd_key key;
	uint32_t ah;
	struct rcd_xrc_domain *xrc;     /**< of a target of XRC; NULL otherwise */
	struct rcd_srq srqs[RIG_XSRQS]; /**< in it; the last one has no keys */
	uint32_t sends, recvs;          /**< posted */
	uint32_t fetched;               /**< of the latter, by shared queues */
	uint32_t send_cqes, recv_cqes;
	uint64_t now_ns;
};

static inline struct rcd_av
rig_av(void)
{
	return (struct rcd_av){ .sgid = { { [15] = 1 } }, .dgid = { { [15] = 2 } } };
}

static inline void
rig_event(void *arg, enum rcd_event event)
{
	(void)arg;
	(void)event;
}

static inline void
rig_complete(void *arg, const struct rcd_cqe *cqe)
{
	struct rig *rig = arg;

	if (cqe->recv)
		rig->recv_cqes++;
	else
		rig->send_cqes++;
	/* Nothing completes that was not posted, and nothing twice. */
	RCD_CHECK(rig->recv_cqes <= rig->recvs && rig->send_cqes <= rig->sends);
}

static int
rig_srq_fetch(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct rig *rig = arg;

	(void)number;
	if (rig->fetched == rig->recvs)
		return -EAGAIN;
	rig->fetched++;
	wr->wr_id = number;
	wr->sge_count = 1;
	wr->sges[0] = (struct rcd_sge){ RIG_MEMORY - 1000, 1000, rig->key };
	return 0;
}

static uint32_t
rig_srq_available(void *arg, uint32_t number)
{
	const struct rig *rig = arg;

	(void)number;
	return rig->recvs - rig->fetched;
}

/** Add a shared receive queue to the domain, or remove the one that is there. */
static inline void
rig_turn_xsrq(struct rig *rig, uint32_t index)
{
	static const struct rcd_srq_ops ops = {
		.fetch = rig_srq_fetch,
		.available = rig_srq_available,
		.event = rig_event,
		.complete = rig_complete,
	};
	struct rcd_srq *srq = &rig->srqs[index];

	if (rcd_xrc_find(rig->xrc, RCD_XRC_SRQS + index) == srq) {
		rcd_xrc_remove(rig->xrc, srq);
		memset(srq, 0xa5, sizeof(*srq));
		return;
	}
	rcd_srq_init(srq, RIG_DEPTH, 1, &ops, rig);
	rcd_xrc_add(rig->xrc, srq, RCD_XRC_SRQS + index, rig->mrs,
		index + 1 < RIG_XSRQS ? RIG_PD : RIG_PD + 1);
}

static inline void
rig_init(struct rig *rig, enum rcd_qp_type type, const struct rcd_qp_ops *ops, void *mem)
{
	struct rcd_mr_attr region = { .pd = RIG_PD,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE | RCD_ACCESS_MW_BIND,
		.len = RIG_MEMORY };
	struct rcd_av av = rig_av();

	rig->memory = region.base = malloc(RIG_MEMORY);
	memset(rig->memory, 0, RIG_MEMORY);
	rig->mrs = rcd_mr_table_create(3, 1);
	rig->ahs = rcd_ah_table_create(2);
	rig->reorder = rcd_reorder_pool_create(4);
	RCD_CHECK(rcd_mr_register(rig->mrs, &region, &rig->key) == 0);
	RCD_CHECK(rcd_ah_create(rig->ahs, RIG_PD, &av, &rig->ah) == 0);
	rig->now_ns = 1;

	if (type == RCD_QP_XRC_RECV) {
		rig->xrc = calloc(1, sizeof(*rig->xrc));
		RCD_CHECK(rig->xrc != NULL);
		for (uint32_t i = 0; i < RIG_XSRQS; i++)
			rig_turn_xsrq(rig, i);
	}

	struct rcd_qp_init init = { .type = type,
		.qpn = { 17 },
		.pd = RIG_PD,
		.sq_depth = RIG_DEPTH,
		.max_send_sge = RIG_SGES,
		.max_recv_sge = RIG_SGES,
		.max_inline = RIG_INLINE,
		.max_rd_atomic = 2,
		.port_mtu_bytes = 256,
		.xrc = rig->xrc,
		.mrs = rig->mrs,
		.ahs = rig->ahs,
		.reorder = rig->reorder,
		.counters = &rig->counters,
		.ops = ops,
		.arg = rig };
	struct rcd_qp_attr attr = { .access = RCD_ACCESS_REMOTE,
		.port = 1,
		.av = av,
		.path_mtu_bytes = 256,
		.timeout = 4,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.dest_qpn = { 18 } };

	rig->qp = rcd_qp_init(mem, &init);
	RCD_CHECK(rig->qp != NULL);
	rcd_bring_up(rig->qp, type, attr, RCD_QP_RTS);
}

static inline void
rig_fini(struct rig *rig)
{
	rcd_qp_fini(rig->qp);
	rcd_reorder_pool_destroy(rig->reorder);
	rcd_ah_table_destroy(rig->ahs);
	rcd_mr_table_destroy(rig->mrs);
	free(rig->xrc);
	free(rig->memory);
}

/** Memory for a queue pair of rig_init(). */
#define RIG_QP_BYTES 4096

/** Take packets, look at every byte of them. @param most packets @return how many */
static inline uint32_t
rig_drain(struct rig *rig, uint32_t most)
{
	struct rcd_tx_pkt pkt;
	uint32_t count = 0;
	uint32_t sum = 0;

	while (count < most && rcd_qp_tx_next(rig->qp, rig->now_ns, &pkt)) {
		uint32_t len = 0;

		count++;
		for (uint32_t i = 0; i < pkt.piece_count; i++) {
			for (uint32_t k = 0; k < pkt.pieces[i].len; k++)
				sum += pkt.pieces[i].base[k];
			len += pkt.pieces[i].len;
		}
		RCD_CHECK(len == pkt.payload_len && len <= 256);
		RCD_CHECK(rcd_opcode_known(pkt.roce.bth.opcode) && pkt.av != NULL);
	}
	*(volatile uint32_t *)&sum = sum;
	return count;
}

/** Flush all that an error left, a few at a time. */
static inline void
rig_flush(struct rig *rig)
{
	while (rcd_qp_flushing(rig->qp))
		RCD_CHECK(rcd_qp_flush(rig->qp, 3) <= 3);
}

#endif /* FUZZ_RIG_H */
