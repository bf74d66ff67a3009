/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Random scenarios: one to three pairs of queue pairs, random operations of random sizes from both
 * sides (of XRC from one, to either of two shared receive queues, each with keys of its own),
 * receive requests that come late, links that lose, repeat, reorder, damage and delay.
 *
 * The model: every operation has memory of its own, so what both nodes' memory must hold in the
 * end is known when the operations are made up; receive buffers are filled in the model when
 * their completions come, in the order of the messages. Checked: memory byte for byte, completions
 * exactly once and in order with the right fields, atomics executed once, no pool entry held, no
 * timer left, and that the run ends. Where the link is cut for good, that both sides fail cleanly.
 */
#include "scenario.h"

#include <stdio.h>
#include <stdlib.h>

#include "rcd_check.h"
#include "window.h"

enum {
	MEMORY = 192 * 1024,
	MESSAGES_MAX = 64,
	PD = 7, /**< and the one above, of the second XRC queue */
	LIMIT_S = 200,
};

/** A message that consumes a receive work request: SEND, or WRITE with immediate data. */
struct message {
	const uint8_t *bytes; /**< as they lie in the sender's memory, all pieces in order */
	uint32_t len;
	uint32_t imm;
	bool with_imm;
	bool write;
	bool inv;
	bool solicited;
	uint32_t xsrq; /**< of XRC: which of the receiver's queues */
};

/** What is known of one queue pair. */
struct plan {
	struct sim_qp *qp;
	struct message messages[MESSAGES_MAX]; /**< that it is to receive, in order */
	uint32_t message_count;
	uint32_t received;  /**< messages so far */
	uint32_t recv_done; /**< receive completions, flushed ones too */
	uint32_t send_done; /**< number of the next send work request to complete */
	uint32_t send_room; /**< work requests that were made up */
	bool signaled[SIM_QUEUE_MAX];
	uint8_t opcodes[SIM_QUEUE_MAX];
	uint64_t counter; /**< value of the counter on the peer that it works on */
	uint64_t counter_at;
	bool failed;
};

struct scenario {
	struct sim sim;
	struct rcd_sequence rng;
	uint8_t *expect[2];
	uint64_t used[2];     /**< memory given out */
	uint64_t reserved[2]; /**< for receive buffers, which come last */
	struct rcd_key lkey[2][SIM_XSRQS], rkey[2][SIM_XSRQS]; /**< of node and domain */
	uint32_t srqn[2][SIM_XSRQS];                           /**< of XRC */
	struct plan plans[2][SIM_QPS_MAX];
	struct sim_reads reads[2][SIM_QPS_MAX]; /**< of the scenario that runs */
	uint32_t window; /**< packets that may be under way; 0: by the seed */
	uint32_t pairs;
	enum rcd_qp_type type;
	uint32_t mtu, max_send;
	bool lossy, srq, cut;
	enum scenario_sack sack;
	uint32_t ah[2];
	char error[200];
};

/* The one that runs. */
static struct scenario scenario;

#define FAIL(s, ...)                                                                               \
	do {                                                                                       \
		if ((s)->error[0] == '\0')                                                         \
			snprintf((s)->error, sizeof((s)->error), __VA_ARGS__);                     \
	} while (0)

static bool
is_xrc(const struct scenario *s)
{
	return s->type == RCD_QP_XRC_SEND;
}

/* Memory on a node; UINT64_MAX when it is used up. Objects don't touch. */
static uint64_t
take(struct scenario *s, uint32_t node, uint32_t len, uint32_t align)
{
	uint64_t at = (s->used[node] + align - 1) / align * align;

	if (at + len + 1 + s->reserved[node] > MEMORY)
		return UINT64_MAX;
	s->used[node] = at + len + 1;
	return at;
}

static uint32_t
random_size(struct scenario *s, uint32_t most)
{
	uint32_t size;

	switch (sim_below(&s->rng, 6)) {
	case 0:
		size = sim_below(&s->rng, 16);
		break;
	case 1:
		size = sim_below(&s->rng, s->mtu);
		break;
	case 2:
		size = s->mtu * sim_below(&s->rng, 8) + sim_below(&s->rng, 3) - 1;
		break;
	case 3:
		size = 64;
		break;
	default:
		size = sim_below(&s->rng, most + 1);
		break;
	}
	return size > most ? most : size;
}

/* Cuts a range into pieces that follow each other in memory. @return their number */
static uint8_t
random_sges(struct scenario *s, struct rcd_key key, uint64_t at, uint32_t len, struct rcd_sge *sges)
{
	uint8_t count = 0;

	while (len > 0 && count < SIM_SGE_MAX) {
		uint32_t part = count == SIM_SGE_MAX - 1 || sim_chance(&s->rng, 0.5)
			? len
			: sim_below(&s->rng, len + 1);

		sges[count++] = (struct rcd_sge){ at, part, key };
		at += part;
		len -= part;
	}
	return count;
}

static struct rcd_send_wr *
new_wr(struct plan *plan, enum rcd_wr_opcode opcode, bool signaled)
{
	struct sim_send_queue *queue = &plan->qp->sq;
	uint32_t number = plan->send_room++;
	struct rcd_send_wr *wr = &queue->wrs[number];

	*wr = (struct rcd_send_wr){
		.wr_id = number,
		.opcode = (uint8_t)opcode,
		.flags = signaled ? RCD_SEND_SIGNALED : 0,
	};
	plan->signaled[number] = signaled;
	plan->opcodes[number] = (uint8_t)opcode;
	return wr;
}

/* Bytes of every receive buffer. */
static uint32_t
recv_room(const struct scenario *s)
{
	return s->max_send + (s->type == RCD_QP_UD ? RCD_GRH_LEN : 0);
}

/* Keeps room for one more receive buffer. @return false when there is none */
static bool
reserve_recv(struct scenario *s, uint32_t node)
{
	uint64_t room = recv_room(s) + 1;

	if (s->used[node] + s->reserved[node] + room > MEMORY)
		return false;
	s->reserved[node] += room;
	return true;
}

/* Which of the peer's queues and domains an operation names. */
static uint32_t
random_xsrq(struct scenario *s)
{
	return is_xrc(s) ? sim_below(&s->rng, SIM_XSRQS) : 0;
}

/* A window of the receiver, bound before the run. */
static struct rcd_key
bound_window(struct scenario *s, uint32_t node, const struct sim_qp *qp, uint32_t xsrq)
{
	struct rcd_mr_table *mrs = s->sim.nodes[node].mrs;
	struct rcd_key key, mw;

	RCD_CHECK(rcd_mw_alloc(mrs, RCD_MR_WINDOW_2, PD + xsrq, &mw) == 0);

	struct rcd_mw_bind bind = {
		.pd = PD + xsrq,
		.qpn = qp->init.qpn.val,
		.mw = mw,
		.mr = s->rkey[node][xsrq],
		.len = 64,
		.access = RCD_ACCESS_REMOTE_READ,
	};

	RCD_CHECK(rcd_mw_bind(mrs, &bind, &key) == 0);
	return key;
}

/* SEND or WRITE, of any kind. @return false when memory is used up */
static bool
add_data(struct scenario *s, uint32_t node, struct plan *plan, struct plan *to, bool write)
{
	bool imm = s->lossy ? true : sim_chance(&s->rng, 0.3);
	bool inv = !write && !imm && !s->lossy && sim_chance(&s->rng, 0.15);
	bool inline_data = sim_chance(&s->rng, 0.2);
	uint32_t most = write ? 12 * s->mtu : s->max_send;
	uint32_t len = random_size(s, inline_data ? SIM_INLINE_MAX : most);
	uint64_t from = take(s, node, len, 1);
	uint64_t at = write ? take(s, 1 - node, len, 1) : 0;
	uint32_t number = plan->send_room;
	uint32_t xsrq = random_xsrq(s);
	struct rcd_send_wr *wr;

	if (from == UINT64_MAX || at == UINT64_MAX || to->message_count == MESSAGES_MAX)
		return false;
	if ((!write || imm) && !reserve_recv(s, 1 - node))
		return false;
	wr = new_wr(plan,
		write ? (imm ? RCD_WR_RDMA_WRITE_WITH_IMM : RCD_WR_RDMA_WRITE)
		      : (imm ? RCD_WR_SEND_WITH_IMM : (inv ? RCD_WR_SEND_WITH_INV : RCD_WR_SEND)),
		sim_chance(&s->rng, 0.7));
	wr->imm = imm ? to->message_count : 0;
	if (sim_chance(&s->rng, 0.3))
		wr->flags |= RCD_SEND_SOLICITED;
	if (sim_chance(&s->rng, 0.1))
		wr->flags |= RCD_SEND_FENCE;
	if (inline_data && len <= SIM_INLINE_MAX) {
		wr->flags |= RCD_SEND_INLINE;
		wr->inline_len = (uint16_t)len;
		memcpy(plan->qp->sq.inlines[number], s->sim.nodes[node].memory + from, len);
	} else {
		wr->sge_count =
			random_sges(s, s->lkey[node][0], from, len, plan->qp->sq.sges[number]);
	}
	if (inv)
		wr->imm = bound_window(s, 1 - node, to->qp, xsrq).val;
	if (s->type != RCD_QP_UD)
		wr->remote.srqn = s->srqn[1 - node][xsrq];
	if (write) {
		wr->remote.va = at;
		wr->remote.rkey = s->rkey[1 - node][xsrq];
		if (!s->lossy)
			memcpy(s->expect[1 - node] + at, s->expect[node] + from, len);
	} else if (s->type == RCD_QP_UD) {
		wr->ud.ah = s->ah[node];
		wr->ud.qpn = to->qp->init.qpn;
		wr->ud.qkey.val = 0x1234;
	}
	if (!write || imm)
		to->messages[to->message_count++] = (struct message){
			.bytes = s->expect[node] + from,
			.len = len,
			.imm = wr->imm,
			.with_imm = imm,
			.write = write,
			.inv = inv,
			.solicited = wr->flags & RCD_SEND_SOLICITED,
			.xsrq = xsrq,
		};
	return true;
}

static bool
add_read(struct scenario *s, uint32_t node, struct plan *plan)
{
	uint32_t len = random_size(s, 12 * s->mtu);
	uint64_t at = take(s, node, len, 1);
	uint64_t from = take(s, 1 - node, len, 1);
	uint32_t number = plan->send_room;
	uint32_t xsrq = random_xsrq(s);
	struct rcd_send_wr *wr;

	if (at == UINT64_MAX || from == UINT64_MAX)
		return false;
	wr = new_wr(plan, RCD_WR_RDMA_READ, sim_chance(&s->rng, 0.7));
	wr->sge_count = random_sges(s, s->lkey[node][0], at, len, plan->qp->sq.sges[number]);
	wr->remote.va = from;
	wr->remote.rkey = s->rkey[1 - node][xsrq];
	wr->remote.srqn = s->srqn[1 - node][xsrq];
	memcpy(s->expect[node] + at, s->expect[1 - node] + from, len);
	return true;
}

static bool
add_atomic(struct scenario *s, uint32_t node, struct plan *plan)
{
	uint64_t at = take(s, node, 8, 8);
	uint32_t number = plan->send_room;
	bool swap = sim_chance(&s->rng, 0.5);
	uint32_t xsrq = random_xsrq(s);
	struct rcd_send_wr *wr;

	if (at == UINT64_MAX)
		return false;
	wr = new_wr(plan, swap ? RCD_WR_COMPARE_SWAP : RCD_WR_FETCH_ADD, sim_chance(&s->rng, 0.7));
	wr->sge_count = 1;
	plan->qp->sq.sges[number][0] = (struct rcd_sge){ at, 8, s->lkey[node][0] };
	wr->remote.va = plan->counter_at;
	wr->remote.rkey = s->rkey[1 - node][xsrq];
	wr->remote.srqn = s->srqn[1 - node][xsrq];
	memcpy(s->expect[node] + at, &plan->counter, 8);
	if (swap) {
		bool matches = sim_chance(&s->rng, 0.7);

		wr->remote.compare_or_add = matches ? plan->counter : ~plan->counter;
		wr->remote.swap = rcd_sequence_next(&s->rng);
		if (matches)
			plan->counter = wr->remote.swap;
	} else {
		wr->remote.compare_or_add = rcd_sequence_next(&s->rng);
		plan->counter += wr->remote.compare_or_add;
	}
	memcpy(s->expect[1 - node] + plan->counter_at, &plan->counter, 8);
	return true;
}

static bool
add_atomic_write(struct scenario *s, uint32_t node, struct plan *plan)
{
	uint64_t at = take(s, 1 - node, 8, 8);
	uint64_t bytes = rcd_sequence_next(&s->rng);
	struct rcd_send_wr *wr;

	if (at == UINT64_MAX)
		return false;
	wr = new_wr(plan, RCD_WR_ATOMIC_WRITE, sim_chance(&s->rng, 0.7));
	wr->atomic_write.va = at;
	wr->atomic_write.rkey = s->rkey[1 - node][0];
	memcpy(wr->atomic_write.bytes, &bytes, 8);
	memcpy(s->expect[1 - node] + at, &bytes, 8);
	return true;
}

static void
add_flush(struct scenario *s, uint32_t node, struct plan *plan)
{
	struct rcd_send_wr *wr = new_wr(plan, RCD_WR_FLUSH, sim_chance(&s->rng, 0.7));

	wr->flush.va = sim_below(&s->rng, MEMORY / 2);
	wr->flush.rkey = s->rkey[1 - node][0];
	wr->flush.placement = RCD_PLACEMENT_GLOBAL;
	wr->flush.selectivity =
		sim_chance(&s->rng, 0.3) ? RCD_SELECTIVITY_REGION : RCD_SELECTIVITY_RANGE;
	wr->flush.len = sim_below(&s->rng, MEMORY / 2);
	if (sim_chance(&s->rng, 0.3))
		wr->flags |= RCD_SEND_FENCE;
}

/* A window is bound, and mostly invalidated again, by the same send queue. */
static void
add_window(struct scenario *s, uint32_t node, struct plan *plan)
{
	struct rcd_send_wr *wr;
	struct rcd_key mw;

	RCD_CHECK(rcd_mw_alloc(s->sim.nodes[node].mrs, RCD_MR_WINDOW_2, PD, &mw) == 0);
	wr = new_wr(plan, RCD_WR_BIND_MW, sim_chance(&s->rng, 0.7));
	wr->bind.mw = mw;
	wr->bind.new_rkey.val = 0x5a;
	wr->bind.mr = s->rkey[node][0];
	wr->bind.len = 100;
	wr->bind.access = RCD_ACCESS_REMOTE_WRITE;
	/* An odd number of operations that send nothing, and an even one. */
	if (sim_chance(&s->rng, 0.4))
		return;
	wr = new_wr(plan, RCD_WR_LOCAL_INV, sim_chance(&s->rng, 0.7));
	wr->imm = (mw.val & ~0xffu) | 0x5a;
	if (sim_chance(&s->rng, 0.3))
		wr->flags |= RCD_SEND_FENCE;
}

static bool
add_operation(struct scenario *s, uint32_t node, struct plan *plan, struct plan *to)
{
	uint32_t kind = sim_below(&s->rng, 12);

	if (s->type == RCD_QP_UD)
		return add_data(s, node, plan, to, false);
	if (s->type == RCD_QP_UC)
		return add_data(s, node, plan, to, kind < 5);
	if (kind < 3)
		return add_data(s, node, plan, to, false);
	if (kind < 6)
		return add_data(s, node, plan, to, true);
	if (kind < 8)
		return add_read(s, node, plan);
	if (kind < 9)
		return add_atomic(s, node, plan);
	/* Of RC alone. */
	if (is_xrc(s) && kind < 11)
		return add_atomic(s, node, plan);
	if (kind < 10)
		return add_atomic_write(s, node, plan);
	if (kind < 11)
		add_flush(s, node, plan);
	else if (rcd_mr_table_used(s->sim.nodes[node].mrs) < 40)
		add_window(s, node, plan);
	return true;
}

/* The queue that a message's receive work request comes from. */
static struct sim_recv_queue *
queue_for(struct scenario *s, uint32_t node, struct plan *plan, uint32_t xsrq)
{
	if (is_xrc(s))
		return &s->sim.nodes[node].xsrqs[xsrq].queue;
	return s->srq ? &s->sim.nodes[node].srq_queue : &plan->qp->rq;
}

/** Bit of a receive request's number from which on it tells the queue, of XRC. */
#define WR_ID_XSRQ 16

static void
add_recv(struct scenario *s, uint32_t node, struct plan *plan, uint32_t xsrq)
{
	struct sim_recv_queue *queue = queue_for(s, node, plan, xsrq);
	uint32_t room = recv_room(s);
	uint32_t number = queue->filled;
	uint64_t at;

	s->reserved[node] -= room + 1;
	at = take(s, node, room, 1);
	RCD_CHECK(at != UINT64_MAX && number < SIM_QUEUE_MAX);
	queue->wrs[number].wr_id = number | xsrq << WR_ID_XSRQ;
	queue->wrs[number].sge_count =
		random_sges(s, s->lkey[node][xsrq], at, room, queue->sges[number]);
	queue->filled++;
}

static void
check_message(struct scenario *s, uint32_t node, struct plan *plan, const struct rcd_cqe *cqe,
	const struct message *message)
{
	uint32_t xsrq = (uint32_t)(cqe->wr_id >> WR_ID_XSRQ);
	const struct sim_recv_queue *queue = queue_for(s, node, plan, xsrq);
	uint32_t skip = s->type == RCD_QP_UD ? RCD_GRH_LEN : 0;
	uint8_t flags = (uint8_t)((message->with_imm ? RCD_WC_WITH_IMM : 0) |
		(message->inv ? RCD_WC_WITH_INV : 0) | (skip ? RCD_WC_GRH : 0));
	/* Pieces follow each other, so the first says where the buffer begins. */
	uint64_t at = queue->sges[cqe->wr_id % SIM_QUEUE_MAX][0].addr;

	if (cqe->byte_len != message->len + skip || cqe->flags != flags ||
		(flags & (RCD_WC_WITH_IMM | RCD_WC_WITH_INV) && cqe->imm != message->imm) ||
		cqe->solicited != message->solicited || xsrq != message->xsrq ||
		cqe->opcode != (message->write ? RCD_WC_RECV_RDMA_WITH_IMM : RCD_WC_RECV))
		FAIL(s, "node %u: receive completion %u has wrong fields", node, plan->received);
	if (message->write)
		return;
	memcpy(s->expect[node] + at, s->sim.nodes[node].memory + at, skip);
	memcpy(s->expect[node] + at + skip, message->bytes, message->len);
	if (memcmp(s->sim.nodes[node].memory + at + skip, message->bytes, message->len) != 0)
		FAIL(s, "node %u: message %u arrived damaged", node, plan->received);
}

static void
on_recv(struct scenario *s, uint32_t node, struct plan *plan, const struct rcd_cqe *cqe)
{
	if (!s->srq && cqe->wr_id != plan->recv_done)
		FAIL(s, "node %u: receive completion %u of request %u", node, plan->recv_done,
			(uint32_t)cqe->wr_id);
	plan->recv_done++;
	if (cqe->status != RCD_WC_SUCCESS) {
		if (cqe->status != RCD_WC_WR_FLUSH_ERR || !s->cut)
			FAIL(s, "node %u: receive status %u", node, cqe->status);
		return;
	}
	if (s->lossy) {
		/* Any message may be missing or come again; the immediate data tell which it is. */
		if (cqe->imm >= plan->message_count)
			FAIL(s, "node %u: a message that was never sent", node);
		else
			check_message(s, node, plan, cqe, &plan->messages[cqe->imm]);
	} else if (plan->received >= plan->message_count) {
		FAIL(s, "node %u: more messages than were sent", node);
	} else {
		check_message(s, node, plan, cqe, &plan->messages[plan->received]);
	}
	plan->received++;
}

static void
on_send(struct scenario *s, uint32_t node, struct plan *plan, const struct rcd_cqe *cqe)
{
	/* What was not signalled completes in silence, unless it failed. */
	while (plan->send_done < cqe->wr_id && !plan->signaled[plan->send_done] && !plan->failed)
		plan->send_done++;
	if (cqe->wr_id != plan->send_done)
		FAIL(s, "node %u: send completion of %u, expected %u", node, (uint32_t)cqe->wr_id,
			plan->send_done);
	plan->send_done = (uint32_t)cqe->wr_id + 1;
	if (cqe->status == RCD_WC_SUCCESS) {
		if (plan->failed || !plan->signaled[cqe->wr_id])
			FAIL(s, "node %u: success where none may be", node);
		return;
	}
	if (!s->cut ||
		(plan->failed ? cqe->status != RCD_WC_WR_FLUSH_ERR
			      : cqe->status != RCD_WC_RETRY_EXC_ERR &&
					cqe->status != RCD_WC_RNR_RETRY_EXC_ERR))
		FAIL(s, "node %u: send %u status %u", node, (uint32_t)cqe->wr_id, cqe->status);
	plan->failed = true;
}

static void
on_cqe(void *arg, struct sim_node *node, const struct rcd_cqe *cqe)
{
	struct scenario *s = arg;
	struct plan *plan = &s->plans[node->number][cqe->qpn.val & 0xff];

	if (cqe->recv)
		on_recv(s, node->number, plan, cqe);
	else
		on_send(s, node->number, plan, cqe);
}

/* Posts some more of everything, and comes back while there is more. */
static void
post_some(void *arg)
{
	struct scenario *s = arg;
	bool more = false;

	for (uint32_t node = 0; node < 2; node++) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			struct plan *plan = &s->plans[node][i];
			uint32_t left = plan->send_room - plan->qp->sq.posted;

			plan->qp->sq.posted += sim_below(&s->rng, left + 1);
			more |= plan->qp->sq.posted < plan->send_room;
			for (uint32_t k = 0; k < (is_xrc(s) ? SIM_XSRQS : 1); k++) {
				struct sim_recv_queue *rq = queue_for(s, node, plan, k);

				rq->posted += sim_below(&s->rng, rq->filled - rq->posted + 1);
				more |= rq->posted < rq->filled;
			}
		}
	}
	if (more)
		sim_at(&s->sim, s->sim.now_ns + 1 + sim_below(&s->rng, 300000), post_some, s);
}

static void
random_link(struct scenario *s, struct sim_link *link, double worst)
{
	struct rcd_sequence *rng = &s->rng;
	double scale = (double)sim_below(rng, 1000) / 1000 * worst;

	link->loss = sim_chance(rng, 0.7) ? scale : 0;
	link->duplicate = sim_chance(rng, 0.3) ? scale : 0;
	link->reorder = sim_chance(rng, 0.3) ? scale : 0;
	link->corrupt = sim_chance(rng, 0.3) ? scale : 0;
	link->mark = sim_chance(rng, 0.2) ? 0.1 : 0;
	link->delay_ns = 500 + sim_below(rng, 20000);
	link->jitter_ns = sim_chance(rng, 0.2) ? sim_below(rng, 10000) : 0;
	link->gbps = sim_chance(rng, 0.5) ? 1 + sim_below(rng, 100) : 0;
}

/* All memory of a node, for one protection domain, and of XRC the queue that is of that one. */
static void
make_keys(struct scenario *s, uint32_t node, uint32_t xsrq)
{
	struct rcd_mr_table *mrs = s->sim.nodes[node].mrs;
	struct rcd_mr_attr attr = {
		.pd = PD + xsrq,
		.access = RCD_ACCESS_LOCAL_WRITE,
		.len = MEMORY,
		.base = s->sim.nodes[node].memory,
	};

	RCD_CHECK(rcd_mr_register(mrs, &attr, &s->lkey[node][xsrq]) == 0);
	attr.access |= RCD_ACCESS_REMOTE | RCD_ACCESS_MW_BIND;
	RCD_CHECK(rcd_mr_register(mrs, &attr, &s->rkey[node][xsrq]) == 0);
	if (is_xrc(s))
		s->srqn[node][xsrq] = sim_xsrq_add(&s->sim.nodes[node], xsrq, PD + xsrq);
}

static void
make_memory(struct scenario *s)
{
	for (uint32_t node = 0; node < 2; node++) {
		uint8_t *memory = s->sim.nodes[node].memory;
		struct rcd_av av = sim_av(&s->sim.nodes[node]);

		for (uint32_t i = 0; i < MEMORY; i += 8) {
			uint64_t word = rcd_sequence_next(&s->rng);

			memcpy(memory + i, &word, 8);
		}
		s->expect[node] = malloc(MEMORY);
		memcpy(s->expect[node], memory, MEMORY);
		for (uint32_t k = 0; k < (is_xrc(s) ? SIM_XSRQS : 1); k++)
			make_keys(s, node, k);
		RCD_CHECK(rcd_ah_create(s->sim.nodes[node].ahs, PD, &av, &s->ah[node]) == 0);
		s->sim.nodes[node].on_cqe = on_cqe;
		s->sim.nodes[node].on_cqe_arg = s;
	}
}

/* A timeout that what queues up in front of a slow link does not exceed eight times over. */
static uint8_t
timeout_code(struct scenario *s)
{
	uint8_t slowest = 5;

	for (uint32_t node = 0; node < 2; node++) {
		double gbps = s->sim.nodes[node].out.gbps;

		if (gbps > 0 && gbps < 20)
			slowest = 9;
	}
	return (uint8_t)(slowest + sim_below(&s->rng, 5));
}

/* Whether a queue pair sends requests: of XRC one of the two does, in turn. */
static bool
sends(const struct scenario *s, uint32_t node, uint32_t pair)
{
	return !is_xrc(s) || node == pair % 2;
}

/* Congestion control that has much to do: little may wait, and the port is slow. */
static void
limit(struct rcd_sequence *rng, struct rcd_qp_init *init, struct rcd_cc_params *params)
{
	static const char *const texts[] = { "none", "swift", "swift,target=1,range=1,start=1",
		"dcqcn", "dcqcn,line=2000,floor=200,timer=5" };

	rcd_cc_parse(texts[sim_below(rng, 5)], &init->cc, params);
	init->cc_params = params;
}

static void
make_pairs(struct scenario *s)
{
	struct rcd_qp_init init = {
		.type = s->type,
		.pd = PD,
		.sq_depth = 1u << sim_below(&s->rng, 8),
		.max_send_sge = SIM_SGE_MAX,
		.max_recv_sge = SIM_SGE_MAX,
		.max_inline = SIM_INLINE_MAX,
		.max_rd_atomic = (uint8_t)(1 + sim_below(&s->rng, 16)),
		.port_mtu_bytes = (uint16_t)s->mtu,
	};
	struct rcd_cc_params params;

	limit(&s->rng, &init, &params);
	if (s->window > 0)
		init.cc = sim_window(s->window);
	for (uint32_t i = 0; i < s->pairs; i++) {
		struct rcd_qp_attr attr[2] = { sim_attr(&s->sim), sim_attr(&s->sim) };

		for (uint32_t node = 0; node < 2; node++) {
			init.srq = s->srq && !is_xrc(s) ? &s->sim.nodes[node].srq : NULL;
			if (is_xrc(s))
				init.type = sends(s, node, i) ? RCD_QP_XRC_SEND : RCD_QP_XRC_RECV;
			s->plans[node][i].qp = sim_qp_create(&s->sim.nodes[node], &init);
			attr[node].path_mtu_bytes = (uint16_t)s->mtu;
			attr[node].max_rd_atomic = init.max_rd_atomic;
			attr[node].max_dest_rd_atomic = init.max_rd_atomic;
			attr[node].timeout = timeout_code(s);
			if (sim_chance(&s->rng, 0.3))
				attr[node].sq_psn.val |= 0xfffff0; /* wraps soon */
		}
		sim_connect(s->plans[0][i].qp, s->plans[1][i].qp, &attr[0], &attr[1]);
		for (uint32_t node = 0; node < 2 && !s->lossy; node++) {
			bool half = (i + node) % 2 == 0;

			if (s->sack == SCENARIO_SACK_ON || (s->sack == SCENARIO_SACK_MIXED && half))
				sim_agree_sack(s->plans[node][i].qp);
			else if (s->sack == SCENARIO_SACK_FIND ||
				(s->sack == SCENARIO_SACK_FIND_MIXED && half))
				sim_find_peer(s->plans[node][i].qp);
		}
	}
}

static void
make_operations(struct scenario *s)
{
	for (uint32_t node = 0; node < 2; node++) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			struct plan *plan = &s->plans[node][i];

			plan->counter_at = take(s, 1 - node, 8, 8);
			memcpy(&plan->counter, s->expect[1 - node] + plan->counter_at, 8);
		}
	}
	for (uint32_t node = 0; node < 2; node++) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			struct plan *plan = &s->plans[node][i];
			uint32_t count = sim_below(&s->rng, 14);

			while (count-- > 0 && sends(s, node, i) &&
				add_operation(s, node, plan, &s->plans[1 - node][i]))
				continue;
		}
	}
	for (uint32_t node = 0; node < 2; node++) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			struct plan *plan = &s->plans[node][i];

			for (uint32_t k = 0; k < plan->message_count; k++)
				add_recv(s, node, plan, plan->messages[k].xsrq);
		}
	}
}

static void
check_end(struct scenario *s)
{
	for (uint32_t node = 0; node < 2; node++) {
		for (uint32_t i = 0; i < s->pairs; i++) {
			struct plan *plan = &s->plans[node][i];
			enum rcd_qp_state state = rcd_qp_state(plan->qp->qp);

			while (!plan->failed && plan->send_done < plan->send_room &&
				!plan->signaled[plan->send_done])
				plan->send_done++;
			if (state != RCD_QP_RTS && !(s->cut && state == RCD_QP_ERR))
				FAIL(s, "node %u: state %u in the end", node, state);
			if (plan->failed != (state == RCD_QP_ERR) && plan->failed)
				FAIL(s, "node %u: failed, but state %u", node, state);
			if (plan->send_done != plan->send_room && !s->cut)
				FAIL(s, "node %u: %u of %u sends complete", node, plan->send_done,
					plan->send_room);
			if (plan->failed && plan->send_done != plan->send_room)
				FAIL(s, "node %u: %u of %u sends flushed", node, plan->send_done,
					plan->send_room);
			if (!s->lossy && !s->cut && plan->received != plan->message_count)
				FAIL(s, "node %u: %u of %u messages", node, plan->received,
					plan->message_count);
			if (state == RCD_QP_ERR && !s->srq &&
				plan->recv_done != plan->qp->rq.posted)
				FAIL(s, "node %u: %u of %u receives flushed", node, plan->recv_done,
					plan->qp->rq.posted);
			if (rcd_qp_next_deadline(plan->qp->qp) != 0)
				FAIL(s, "node %u: a timer is left", node);
			if (rcd_qp_kept(plan->qp->qp) != 0 && state == RCD_QP_ERR)
				FAIL(s, "node %u: packets are held", node);
		}
		if (s->lossy || s->cut)
			continue;
		if (s->sim.nodes[node].reorder != NULL &&
			rcd_reorder_pool_used(s->sim.nodes[node].reorder) != 0)
			FAIL(s, "node %u: packets are held in the end", node);
		for (uint32_t i = 0; i < MEMORY; i++) {
			if (s->sim.nodes[node].memory[i] != s->expect[node][i]) {
				FAIL(s, "node %u: memory differs at %u", node, i);
				break;
			}
		}
	}
}

/* Nobody is sent what it may not know. */
static void
check_hellos(struct scenario *s)
{
	bool any = s->sack == SCENARIO_SACK_FIND && s->sim.nodes[0].out.marks == SIM_MARKS_KEEP &&
		s->sim.nodes[1].out.marks == SIM_MARKS_KEEP;

	for (uint32_t node = 0; node < 2; node++) {
		if (!any && rcd_counter_get(&s->sim.nodes[node].counters, RCD_COUNTER_TX_HELLO) > 0)
			FAIL(s, "node %u: a HELLO to who does not mark", node);
	}
}

static void
add_stats(struct scenario *s, struct scenario_stats *stats)
{
	stats->packets += s->sim.delivered;
	stats->damaged += s->sim.bad_icrc;
	for (uint32_t node = 0; node < 2; node++) {
		const struct rcd_counters *counters = &s->sim.nodes[node].counters;
		bool failed = false;

		stats->kept += rcd_counter_get(counters, RCD_COUNTER_OUT_OF_SEQ_KEPT);
		stats->sack_repairs += rcd_counter_get(counters, RCD_COUNTER_SACK_REPAIR);
		stats->spurious += rcd_counter_get(counters, RCD_COUNTER_SPURIOUS);
		stats->again += rcd_counter_get(counters, RCD_COUNTER_RETRANSMITTED_PKTS);
		for (uint32_t i = 0; i < s->pairs; i++) {
			stats->operations += s->plans[node][i].send_room;
			failed |= s->plans[node][i].failed;
			stats->found +=
				s->sack == SCENARIO_SACK_FIND && s->plans[node][i].qp->sack != NULL;
		}
		stats->failed += failed;
	}
}

/* READs are asked for again as they were, or parts of them. */
static void
watch(const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	struct scenario *s = &scenario;

	(void)sim;
	(void)lost;
	sim_reads_note(
		&s->reads[from->number][pkt->roce.bth.dest_qpn.val % SIM_QPS_MAX], pkt, s->mtu);
}

static void
check_reads(struct scenario *s, struct scenario_stats *stats)
{
	for (uint32_t i = 0; i < 2 * SIM_QPS_MAX; i++) {
		const struct sim_reads *reads = &s->reads[i / SIM_QPS_MAX][i % SIM_QPS_MAX];

		stats->reads += reads->count;
		if (reads->wrong > 0)
			FAIL(s, "node %u: READs that no request before them was for",
				i / SIM_QPS_MAX);
	}
}

const char *
scenario_run(uint64_t seed, enum scenario_sack sack, uint32_t window, struct scenario_stats *stats)
{
	static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };
	static const uint32_t pools[] = { 0, 3, 64 };
	struct scenario *s = &scenario;
	double worst;

	memset(s, 0, sizeof(*s));
	s->rng.state = seed;
	s->sack = sack;
	s->window = window;
	s->type = (enum rcd_qp_type)(sim_chance(&s->rng, 0.75) ? RCD_QP_RC
			: sim_chance(&s->rng, 0.5)             ? RCD_QP_UC
							       : RCD_QP_UD);
	/* Decided apart, so that what a seed stands for stays what it was. */
	if (s->type == RCD_QP_RC && seed % 4 == 2)
		s->type = RCD_QP_XRC_SEND;
	s->mtu = mtus[sim_below(&s->rng, sim_chance(&s->rng, 0.8) ? 3 : 5)];
	s->max_send = s->type == RCD_QP_UD ? s->mtu : (1 + sim_below(&s->rng, 4)) * s->mtu;
	s->pairs = 1 + sim_below(&s->rng, 3);
	s->srq = sim_chance(&s->rng, 0.25) || is_xrc(s);
	/* Beyond some 5 % the same packet is lost eight times in a row now and then. */
	worst = sim_chance(&s->rng, 0.5) ? 0 : sim_chance(&s->rng, 0.5) ? 0.01 : 0.05;
	s->lossy = s->type == RCD_QP_UC || s->type == RCD_QP_UD;
	sim_init(&s->sim, seed, MEMORY, pools[sim_below(&s->rng, 3)]);
	for (uint32_t node = 0; node < 2; node++)
		random_link(s, &s->sim.nodes[node].out, worst);
	if (seed / SCENARIO_SACKS % 4 >= 2)
		s->sim.nodes[0].out.marks = s->sim.nodes[1].out.marks =
			seed / SCENARIO_SACKS % 4 == 2 ? SIM_MARKS_SCRAMBLE : SIM_MARKS_ECHO;
	if (!s->lossy && sim_chance(&s->rng, 0.05)) {
		s->cut = true;
		s->sim.nodes[0].out.cut_ns = s->sim.nodes[1].out.cut_ns =
			1000 + sim_below(&s->rng, 200000);
	}
	s->sim.trace = watch;
	make_memory(s);
	make_pairs(s);
	make_operations(s);
	post_some(s);
	if (!sim_run(&s->sim, LIMIT_S * UINT64_C(1000000000)))
		FAIL(s, "no end in sight after %u s of virtual time", LIMIT_S);
	check_end(s);
	check_hellos(s);
	check_reads(s, stats);
	if (s->sim.wrong_verdicts > 0 && s->sim.nodes[0].out.corrupt == 0 &&
		s->sim.nodes[1].out.corrupt == 0)
		FAIL(s, "%u frames were malformed", (uint32_t)s->sim.wrong_verdicts);
	add_stats(s, stats);
	sim_fini(&s->sim);
	free(s->expect[0]);
	free(s->expect[1]);
	return s->error[0] != '\0' ? s->error : NULL;
}
