/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of clients that is reached by copies: which part of a region is, and jobs for it. What
 * becomes of them is in rcd_ucopy_take.c.
 */
#include "rcd_ucopy.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_bits.h"
#include "rcd_copyq.h"
#include "rcd_counter.h"
#include "rcd_guard.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_lport.h"
#include "rcd_mr.h"
#include "rcd_opcode.h"
#include "rcd_queue.h"
#include "rcd_shm.h"
#include "rcd_thread.h"
#include "rcd_turn.h"
#include "rcd_ucopied.h"
#include "rcd_umem.h"

#define MASK (RCD_COPYQ_JOBS - 1)

/* Bytes begin at multiples of this: of an atomic, and of what is copied fast. */
#define ALIGN 16

/*
 * What one packet may need at most when it is received: a payload and its GRH, in as many parts as
 * it has elements, each perhaps of two extents. Sending leaves this much free.
 */
#define RX_JOBS  128
#define RX_BYTES 16384
#define RX_HELD  4
#define TX_JOBS  (2 * RX_JOBS)
#define TX_BYTES (2 * RX_BYTES)
#define TX_HELD  (2 * RX_HELD)

/* The part of a region that begins at a place: shared, and so here, or in the client. */
struct part {
	uint8_t *local; /**< NULL: it is in the client */
	uint64_t addr;  /**< there */
	size_t len;
};

struct walk {
	const struct rcd_umr *umr;
	uint64_t at;
	uint64_t end;
	uint32_t next; /**< of its copies: those before it lie behind us */
};

static bool
ucopy_walk_begin(
	const struct rcd_lclient *client, const uint8_t *base, size_t len, struct walk *walk)
{
	const struct rcd_ucopied *copied = client->copied;
	uint32_t place = rcd_ucopied_place(copied, (uintptr_t)base);
	const struct rcd_umr *umr = place > 0 ? copied->umrs[place - 1] : NULL;

	if (umr == NULL)
		return false;
	*walk = (struct walk){ .umr = umr, .at = (uint64_t)(base - umr->base) };
	walk->end = walk->at + len;
	return walk->at < umr->len && len <= umr->len - walk->at;
}

/* @return whether there was another part */
static bool
ucopy_walk_next(struct walk *walk, struct part *part)
{
	const struct rcd_umr *umr = walk->umr;
	const struct rcd_copy *copy;
	uint64_t end = walk->end;

	if (walk->at == end)
		return false;
	while (walk->next < umr->copy_count &&
		umr->copies[walk->next].start + umr->copies[walk->next].len <= walk->at)
		walk->next++;
	copy = walk->next < umr->copy_count ? &umr->copies[walk->next] : NULL;
	*part = (struct part){ .local = umr->base + walk->at };
	if (copy != NULL && copy->start <= walk->at) {
		part->local = NULL;
		part->addr = copy->addr + (walk->at - copy->start);
		if (end > copy->start + copy->len)
			end = copy->start + copy->len;
	} else if (copy != NULL && copy->start < end) {
		end = copy->start;
	}
	part->len = end - walk->at;
	walk->at = end;
	return true;
}

/* Consecutive bytes of the arena. @return whether there are so many */
static bool
ucopy_arena_find(const struct rcd_ucopy *ucopy, uint32_t len, uint32_t *start)
{
	*start = ucopy->head;
	if (ucopy->head < ucopy->tail)
		return ucopy->tail - ucopy->head > len;
	if (RCD_COPYQ_BYTES - ucopy->head >= len)
		return true;
	*start = 0;
	return ucopy->tail > len;
}

static uint8_t *
ucopy_arena_take(struct rcd_ucopy *ucopy, uint32_t len)
{
	uint32_t start;

	if (ucopy->posted == ucopy->taken)
		ucopy->head = ucopy->tail = 0;
	len = (uint32_t)rcd_align_up(len, ALIGN);
	if (!ucopy_arena_find(ucopy, len, &start))
		return NULL;
	ucopy->head = start + len;
	return ucopy->queue->arena + start;
}

static bool
ucopy_has_room(const struct rcd_ucopy *ucopy, uint32_t jobs, uint32_t bytes, uint32_t held)
{
	uint32_t out = ucopy->posted - ucopy->taken;
	uint32_t start;

	return out + jobs <= RCD_COPYQ_JOBS && ucopy->held_count + held <= RCD_UCOPY_HELD &&
		(out == 0 || ucopy_arena_find(ucopy, bytes, &start));
}

/*
 * Where jobs go that a queue pair has for a client's memory. A target has them for one client at a
 * time. @return NULL: nothing is copied now
 */
static struct rcd_ucopy *
ucopy_of(const struct rcd_lclient *client, const struct rcd_hqp *hqp)
{
	struct rcd_ucopy *ucopy = client->ucopy;

	if (ucopy == NULL || ucopy->broken)
		return NULL;
	return hqp->ucopy == ucopy || (hqp->target != NULL && hqp->copies == 0) ? ucopy : NULL;
}

/* Of the queue whose memory a target's packet is for, or has. NULL: nothing of it is copied */
static struct rcd_ucopy *
ucopy_of_srq(const struct rcd_srq *srq)
{
	const struct rcd_hsrq *hsrq = srq != NULL ? srq->arg : NULL;

	return hsrq != NULL ? hsrq->client->ucopy : NULL;
}

/* The next job. It is the client's with what the caller has put into it. */
static struct rcd_ujob *
ucopy_post(struct rcd_ucopy *ucopy, struct rcd_hqp *hqp, const struct rcd_copyq_job *what)
{
	struct rcd_lcore *lcore = hqp->lcore;
	struct rcd_ujob *job;

	if (ucopy->posted - ucopy->taken == RCD_COPYQ_JOBS)
		return NULL;
	ucopy->queue->jobs[ucopy->posted & MASK] = *what;
	job = &ucopy->jobs[ucopy->posted & MASK];
	*job = (struct rcd_ujob){ .hqp = hqp, .late = ucopy->late, .end = ucopy->head };
	ucopy->posted++;
	hqp->ucopy = ucopy;
	hqp->copies++;
	hqp->copy_last = ucopy->posted;
	if (!ucopy->active) {
		ucopy->active = true;
		TAILQ_INSERT_TAIL(&lcore->copying, ucopy, link);
	}
	if (!ucopy->ringing) {
		ucopy->ringing = true;
		TAILQ_INSERT_TAIL(&lcore->ringing, ucopy, ring_link);
	}
	rcd_shm_store(&ucopy->queue->posted, ucopy->posted);
	rcd_counter_add(rcd_lcore_counters(lcore, hqp->lport), RCD_COUNTER_COPY_JOBS, 1);
	return job;
}

static uint64_t
ucopy_offset_of(const struct rcd_ucopy *ucopy, const uint8_t *data)
{
	return (uint64_t)(data - ucopy->queue->arena);
}

/* What is received of an RC peer is acknowledged when it is in place. */
static void
ucopy_note_write(struct rcd_hqp *hqp, struct rcd_ujob *job)
{
	job->writes = true;
	job->blocks = hqp->reliable && !job->late.response;
	hqp->blocks += job->blocks;
}

static int
ucopy_post_write(struct rcd_ucopy *ucopy, struct rcd_hqp *hqp, const struct rcd_umr *umr,
	const struct part *part, const uint8_t *src)
{
	struct rcd_copyq_job what = { .addr = part->addr,
		.len = (uint32_t)part->len,
		.op = RCD_COPYQ_WRITE,
		.key = umr->key.val };
	uint8_t *data = ucopy_arena_take(ucopy, what.len);
	struct rcd_ujob *job;

	if (data == NULL)
		return -EFAULT;
	memcpy(data, src, part->len);
	what.data = ucopy_offset_of(ucopy, data);
	job = ucopy_post(ucopy, hqp, &what);
	if (job == NULL)
		return -EFAULT;
	ucopy_note_write(hqp, job);
	return 0;
}

/* In a shared part of such a region. An ATOMIC WRITE is one store, as in any shared memory. */
static void
ucopy_write_here(uint8_t *at, const uint8_t *src, size_t len)
{
	uint64_t word;

	if (len != sizeof(word) || (uintptr_t)at % sizeof(word) != 0) {
		memcpy(at, src, len);
		return;
	}
	memcpy(&word, src, sizeof(word));
	__atomic_store_n((uint64_t *)(void *)at, word, __ATOMIC_RELEASE);
}

static int
ucopy_write_copied(void *arg, void *user, uint8_t *base, const uint8_t *src, size_t len)
{
	struct rcd_lclient *client = arg;
	struct rcd_hqp *hqp = user;
	struct rcd_ucopy *ucopy = ucopy_of(client, hqp);
	struct walk walk;
	struct part part;

	if (!ucopy_walk_begin(client, base, len, &walk))
		return -EFAULT;
	if (walk.umr->null)
		return 0;
	for (; ucopy_walk_next(&walk, &part); src += part.len) {
		if (part.local != NULL)
			ucopy_write_here(part.local, src, part.len);
		else if (ucopy == NULL || ucopy_post_write(ucopy, hqp, walk.umr, &part, src) != 0)
			return -EFAULT;
	}
	return 0;
}

/* What can be read at once: what can't is staged. */
static int
ucopy_read_copied(void *arg, uint8_t *dst, const uint8_t *base, size_t len)
{
	struct walk walk;
	struct part part;

	if (!ucopy_walk_begin(arg, base, len, &walk))
		return -EFAULT;
	if (walk.umr->null) {
		memset(dst, 0, len);
		return 0;
	}
	for (; ucopy_walk_next(&walk, &part); dst += part.len) {
		if (part.local == NULL)
			return -EFAULT;
		memcpy(dst, part.local, part.len);
	}
	return 0;
}

/* In a shared part of such a region: as in any other shared memory. */
static void
ucopy_atomic_here(uint8_t *at, const struct rcd_mr_atomic *what, uint64_t *original)
{
	uint64_t *target = (uint64_t *)(void *)at;
	uint64_t compare = what->compare;

	if (what->add) {
		*original = __atomic_fetch_add(target, what->operand, __ATOMIC_SEQ_CST);
		return;
	}
	__atomic_compare_exchange_n(
		target, &compare, what->operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*original = compare;
}

static int
ucopy_atomic_copied(
	void *arg, void *user, uint8_t *base, const struct rcd_mr_atomic *what, uint64_t *original)
{
	struct rcd_hqp *hqp = user;
	struct rcd_ucopy *ucopy = ucopy_of(arg, hqp);
	struct rcd_copyq_job shm = { .len = RCD_ATOMIC_LEN,
		.op = what->add ? RCD_COPYQ_ADD : RCD_COPYQ_SWAP,
		.operand = what->operand,
		.compare = what->compare };
	struct rcd_ujob *job;
	struct walk walk;
	struct part part;
	uint8_t *data;

	/* It lies within a page, and so in one part: but a client may have cut it otherwise. */
	if (!ucopy_walk_begin(arg, base, RCD_ATOMIC_LEN, &walk) || walk.umr->null ||
		!ucopy_walk_next(&walk, &part) || part.len != RCD_ATOMIC_LEN)
		return -EFAULT;
	if (part.local != NULL) {
		ucopy_atomic_here(part.local, what, original);
		return 0;
	}
	data = ucopy != NULL ? ucopy_arena_take(ucopy, RCD_ATOMIC_LEN) : NULL;
	if (data == NULL)
		return -EFAULT;
	shm.addr = part.addr;
	shm.key = walk.umr->key.val;
	shm.data = ucopy_offset_of(ucopy, data);
	job = ucopy_post(ucopy, hqp, &shm);
	if (job == NULL)
		return -EFAULT;
	ucopy_note_write(hqp, job);
	job->original = data;
	return 0;
}

/*
 * What changes at once here and now tells of what came before it, which may still be on its way to
 * the client: a copy that fails ends the queue pair, and nobody must have been told otherwise.
 */
static int
ucopy_order_copied(void *arg, void *user, const uint8_t *base)
{
	const struct rcd_lclient *client = arg;
	const struct rcd_hqp *hqp = user;
	bool here = !rcd_mr_is_foreign(client->mrs, base);
	struct walk walk;
	struct part part;

	if (!here) {
		if (!ucopy_walk_begin(client, base, RCD_ATOMIC_LEN, &walk) ||
			!ucopy_walk_next(&walk, &part))
			return -EFAULT;
		if (walk.umr->null)
			return 0;
		/* It lies within a page, and so in one part: but a client may have cut it. */
		if (part.len != RCD_ATOMIC_LEN)
			return -EFAULT;
		here = part.local != NULL;
	}
	return here && hqp->blocks > 0 ? -EAGAIN : 0;
}

bool
rcd_ucopy_waits(struct rcd_hqp *hqp)
{
	struct rcd_ucopy *ucopy = hqp->ucopy;
	bool other = false;

	RCD_ON_LCORE(hqp->lcore);
	if (hqp->target != NULL) {
		struct rcd_ucopy *next = ucopy_of_srq(rcd_qp_tx_srq(hqp->qp));

		/* What has no such data goes behind what has. */
		other = hqp->copies > 0 && next != NULL && next != ucopy;
		if (hqp->copies == 0)
			ucopy = next;
	}
	if (hqp->blocks > 0 || other) {
		rcd_turn_block(&hqp->turn, &ucopy->blocked);
		return true;
	}
	/* Without anybody who copies it fails. */
	if (ucopy == NULL || (hqp->target != NULL && ucopy->broken))
		return false;
	if (ucopy->staged_count < RCD_UCOPY_STAGED &&
		ucopy_has_room(ucopy, TX_JOBS, TX_BYTES, TX_HELD))
		return false;
	rcd_turn_block(&hqp->turn, &ucopy->starved);
	return true;
}

/* Whose memory a packet with data has. */
static const struct rcd_lclient *
ucopy_client_of(const struct rcd_hqp *hqp)
{
	return hqp->target != NULL ? rcd_mr_foreign_arg(rcd_qp_tx_mrs(hqp->qp)) : hqp->client;
}

/* Not what the queue pair itself has, as a SACK: a target may have no client's keys then. */
static bool
ucopy_is_foreign(const struct rcd_hqp *hqp, const uint8_t *base)
{
	const struct rcd_mr_table *mrs =
		hqp->target != NULL ? rcd_qp_tx_mrs(hqp->qp) : hqp->client->mrs;

	return mrs != NULL && rcd_mr_is_foreign(mrs, base);
}

bool
rcd_ucopy_stages(const struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt)
{
	RCD_ON_LCORE(hqp->lcore);
	/* What comes behind a staged packet stays behind it. */
	if (hqp->staged > 0)
		return true;
	for (uint32_t i = 0; i < pkt->piece_count; i++)
		if (ucopy_is_foreign(hqp, pkt->pieces[i].base))
			return true;
	return false;
}

/* @return the last job of it, *last when there is none; -EFAULT */
static int
ucopy_stage_piece(struct rcd_ucopy *ucopy, struct rcd_hqp *hqp, const struct rcd_piece *piece,
	uint8_t *dst, struct rcd_ujob **last)
{
	const struct rcd_lclient *client;
	struct walk walk;
	struct part part;

	if (!ucopy_is_foreign(hqp, piece->base)) {
		memcpy(dst, piece->base, piece->len);
		return 0;
	}
	client = ucopy_client_of(hqp);
	if (!ucopy_walk_begin(client, piece->base, piece->len, &walk) ||
		ucopy_of(client, hqp) != ucopy)
		return -EFAULT;
	if (walk.umr->null) {
		memset(dst, 0, piece->len);
		return 0;
	}
	for (; ucopy_walk_next(&walk, &part); dst += part.len) {
		struct rcd_copyq_job what = { .addr = part.addr,
			.data = ucopy_offset_of(ucopy, dst),
			.len = (uint32_t)part.len,
			.op = RCD_COPYQ_READ,
			.key = walk.umr->key.val };

		if (part.local != NULL) {
			memcpy(dst, part.local, part.len);
			continue;
		}
		*last = ucopy_post(ucopy, hqp, &what);
		if (*last == NULL)
			return -EFAULT;
	}
	return 0;
}

/* The arena up to here stays as it is until the last job of the packet is taken. */
static bool
ucopy_stage_payload(struct rcd_ucopy *ucopy, struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt,
	uint8_t *dst, uint32_t before, struct rcd_ujob **last)
{
	uint32_t first = ucopy->posted;
	struct rcd_copyq_job nothing = { .op = RCD_COPYQ_NOTHING };
	bool right = true;

	for (uint32_t i = 0; i < pkt->piece_count && right; i++) {
		right = ucopy_stage_piece(ucopy, hqp, &pkt->pieces[i], dst, last) == 0;
		dst += pkt->pieces[i].len;
	}
	/* One that carries the packet, or gives the arena back. */
	if (*last == NULL)
		*last = ucopy_post(ucopy, hqp, &nothing);
	for (uint32_t i = first; i + 1 != ucopy->posted && i != ucopy->posted; i++)
		ucopy->jobs[i & MASK].end = before;
	return right && *last != NULL;
}

/* The packet is lost, and its queue pair ends. */
static void
ucopy_stage_nothing(struct rcd_lcore *lcore, struct rcd_hqp *hqp)
{
	rcd_counter_add(rcd_lcore_counters(lcore, hqp->lport), RCD_COUNTER_TX_DROP_MEMORY, 1);
	hqp->faulty = true;
}

void
rcd_ucopy_stage(struct rcd_lcore *lcore, struct rcd_hqp *hqp, const struct rcd_tx_pkt *pkt)
{
	/* Behind others of its own; else of a target with data, or it would not be staged. */
	struct rcd_ucopy *ucopy =
		hqp->staged > 0 || hqp->target == NULL ? hqp->ucopy : ucopy_client_of(hqp)->ucopy;
	struct rcd_ujob *last = NULL;
	struct rcd_staged *staged;
	uint32_t before;
	uint8_t *payload;

	RCD_ON_LCORE(lcore);
	if (ucopy == NULL) {
		ucopy_stage_nothing(lcore, hqp);
		return;
	}
	before = ucopy->posted == ucopy->taken ? 0 : ucopy->head;
	payload = ucopy_arena_take(ucopy, pkt->payload_len);
	ucopy->late = (struct rcd_qp_copy){ .psn = pkt->roce.bth.psn,
		.own = true,
		.response = rcd_opcode_is_response(pkt->roce.bth.opcode) };
	if (payload == NULL || ucopy->staged_count == RCD_UCOPY_STAGED ||
		!ucopy_stage_payload(ucopy, hqp, pkt, payload, before, &last)) {
		ucopy_stage_nothing(lcore, hqp);
		return;
	}
	staged = &ucopy->staged[ucopy->staged_next++ % RCD_UCOPY_STAGED];
	ucopy->staged_count++;
	*staged = (struct rcd_staged){ .roce = pkt->roce,
		.av = *pkt->av,
		.payload_len = pkt->payload_len,
		.payload = payload };
	last->staged = staged;
	hqp->staged++;
}

bool
rcd_ucopy_admits(struct rcd_hqp *hqp, const struct rcd_pkt *pkt)
{
	struct rcd_ucopy *ucopy = hqp->ucopy;
	const struct rcd_roce *roce = &pkt->roce;
	enum rcd_op op = (enum rcd_op)rcd_opcode_info(roce->bth.opcode)->op;

	RCD_ON_LCORE(hqp->lcore);
	if (hqp->target != NULL) {
		ucopy = ucopy_of_srq(rcd_qp_rx_srq(hqp->qp, roce));
		if (ucopy == NULL)
			return true;
		/* While it copies for one client there is nothing for another one. */
		if (hqp->copies > 0 && hqp->ucopy != ucopy)
			return false;
	}
	ucopy->late = (struct rcd_qp_copy){
		.psn = roce->bth.psn,
		.response = rcd_opcode_is_response(roce->bth.opcode),
		.send = op == RCD_OP_SEND,
	};
	if (ucopy_has_room(ucopy, RX_JOBS, RX_BYTES, RX_HELD))
		return true;
	/* One without data writes nothing. */
	return op == RCD_OP_ACKNOWLEDGE || op >= RCD_OP_SACK;
}

bool
rcd_ucopy_admits_any(void *arg)
{
	struct rcd_hqp *hqp = arg;

	RCD_ON_LCORE(hqp->lcore);
	if (hqp->ucopy == NULL)
		return true;
	hqp->ucopy->late = (struct rcd_qp_copy){ .send = true };
	if (ucopy_has_room(hqp->ucopy, RX_JOBS, RX_BYTES, RX_HELD))
		return true;
	rcd_counter_add(
		rcd_lcore_counters(hqp->lcore, hqp->lport), RCD_COUNTER_RX_DROP_COPY_BUSY, 1);
	return false;
}

void
rcd_ucopy_open(struct rcd_lclient *client)
{
	struct rcd_mr_foreign foreign = { .arg = client,
		.read = ucopy_read_copied,
		.write = ucopy_write_copied,
		.atomic = ucopy_atomic_copied,
		.order = ucopy_order_copied };

	RCD_ON_CONTROL();
	rcd_guard_window(RCD_GUARD_COPIED, &foreign.start, &foreign.len);
	rcd_mr_table_set_foreign(client->mrs, &foreign);
}
