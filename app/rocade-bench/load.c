/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Throughput: each queue pair has as many work requests under way as the depth allows. Completions
 * drive it: what one frees is posted again at once, so the work does not grow with queue pairs
 * that wait.
 */
#include <errno.h>

#include "bench.h"

/* A wr_id is the number of the queue pair, above it how many requests the completion stands for. */
#define COVER_SHIFT 32

/* One message's elements: all but the last of the same length. */
static void
load_split(const struct bench *bench, uint64_t addr, uint32_t lkey, struct rcd_sge *sges)
{
	uint32_t count = bench->opts.sges;
	uint32_t part = bench->size / count;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t len = i + 1 < count ? part : bench->size - part * (count - 1);

		sges[i] = (struct rcd_sge){ addr + (uint64_t)i * part, len, { lkey } };
	}
}

static const uint8_t opcodes[BENCH_OP_COUNT] = {
	[BENCH_SEND] = RCD_WR_SEND,
	[BENCH_WRITE] = RCD_WR_RDMA_WRITE,
	[BENCH_WRITE_IMM] = RCD_WR_RDMA_WRITE_WITH_IMM,
	[BENCH_READ] = RCD_WR_RDMA_READ,
	[BENCH_CAS] = RCD_WR_COMPARE_SWAP,
	[BENCH_FAA] = RCD_WR_FETCH_ADD,
};

int
bench_post(struct bench_part *part, struct bench_qp *qp, uint64_t wr_id, bool signaled)
{
	const struct bench *bench = part->bench;
	enum bench_op op = bench->opts.op;
	struct rcd_sge sges[RCD_SGE_MAX];
	struct rcd_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcodes[op],
		.flags = signaled ? RCD_SEND_SIGNALED : 0,
		.sge_count = (uint8_t)bench->opts.sges,
		.sges = sges,
	};

	if (bench->opts.service == RCD_QP_UD) {
		wr.ud.ah = qp->ah;
		wr.ud.qpn.val = qp->dest_qpn;
		wr.ud.qkey.val = 0x1234;
	} else {
		wr.remote.va = qp->remote_addr;
		wr.remote.rkey.val = part->peer->mr.key;
		wr.remote.compare_or_add = 1;
		wr.remote.swap = 1;
	}
	if (bench->size <= bench->opts.inline_max && op < BENCH_READ) {
		wr.flags |= RCD_SEND_INLINE;
		wr.inline_len = (uint16_t)bench->size;
		wr.inline_data = (uint8_t *)(uintptr_t)qp->tx_addr;
	} else {
		load_split(bench, qp->tx_addr, part->mr.key, sges);
	}
	return rcd_cl_post_send(&qp->cl, &wr);
}

int
bench_post_recv(struct bench_part *part, struct bench_qp *qp)
{
	const struct bench *bench = part->bench;
	bool datagram = bench->opts.service == RCD_QP_UD;
	struct rcd_sge sge = {
		.addr = qp->rx_addr,
		.len = bench->size_room + (datagram ? RCD_GRH_LEN : 0),
		.lkey = { part->mr.key },
	};
	struct rcd_recv_wr wr = {
		.wr_id = BENCH_RECV_WR | bench_qp_index(part, qp),
		.sge_count = bench->opts.op == BENCH_WRITE_IMM ? 0 : 1,
		.sges = &sge,
	};

	return rcd_cl_post_recv(&qp->cl, &wr, false);
}

static uint32_t
load_fill(struct bench_part *part, struct bench_qp *qp)
{
	uint32_t depth = part->bench->opts.depth;
	uint32_t every = part->bench->opts.signal < depth ? part->bench->opts.signal : depth;
	uint64_t index = bench_qp_index(part, qp);
	uint32_t posted = 0;

	while (qp->in_flight < depth) {
		bool signaled = ++qp->unsignaled >= every;
		uint64_t covers = signaled ? qp->unsignaled : 0;

		if (bench_post(part, qp, covers << COVER_SHIFT | index, signaled) != 0) {
			qp->unsignaled--;
			break;
		}
		if (signaled)
			qp->unsignaled = 0;
		qp->in_flight++;
		posted++;
	}
	if (posted > 0)
		rcd_cl_ring(&qp->cl);
	return posted;
}

int
bench_load_prepare(struct bench_part *part)
{
	part->begun = false;
	for (uint32_t i = 0; i < part->qp_count; i++) {
		struct bench_qp *qp = &part->qps[i];

		qp->in_flight = 0;
		qp->unsignaled = 0;
		while (part->receives && rcd_cl_room(&qp->cl.rq) > 0) {
			int err = bench_post_recv(part, qp);

			if (err != 0)
				return err;
		}
	}
	return 0;
}

static void
load_add(uint64_t *sum, uint64_t amount)
{
	__atomic_store_n(sum, *sum + amount, __ATOMIC_RELAXED);
}

static void
load_fail(struct bench_part *part, const struct rcd_cq_slot *slot)
{
	if (part->stats.failed != 0)
		return;
	part->stats.failed_qp = (uint32_t)slot->wr_id;
	__atomic_store_n(&part->stats.failed, slot->status, __ATOMIC_RELEASE);
}

/* @return requests posted */
static uint32_t
load_take(struct bench_part *part, const struct rcd_cq_slot *slot, bool post)
{
	struct bench_qp *qp = &part->qps[(uint32_t)slot->wr_id];
	uint32_t covers = (uint32_t)((slot->wr_id & ~BENCH_RECV_WR) >> COVER_SHIFT);

	if (slot->status != RCD_WC_SUCCESS) {
		load_fail(part, slot);
		return 0;
	}
	if (slot->wr_id & BENCH_RECV_WR) {
		load_add(&part->stats.received, 1);
		return bench_post_recv(part, qp) == 0;
	}
	load_add(&part->stats.completed, covers);
	qp->in_flight -= covers;
	return post ? load_fill(part, qp) : 0;
}

uint32_t
bench_load_poll(struct bench_part *part, bool post)
{
	struct rcd_cq_slot slots[BENCH_POLL_MAX];
	uint32_t count = rcd_cl_poll(&part->cq, slots, BENCH_POLL_MAX);
	uint32_t done = count;

	post &= part->requester && part->stats.failed == 0;
	for (uint32_t i = 0; i < count; i++)
		done += load_take(part, &slots[i], post);
	if (post && !part->begun) {
		part->begun = true;
		for (uint32_t i = 0; i < part->qp_count; i++)
			done += load_fill(part, &part->qps[i]);
	}
	return done;
}
