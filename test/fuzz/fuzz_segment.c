/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: nothing that a client writes into its segment, at any moment, harms anybody but itself.
 * Method: an engine in this process, polled by it; a client with queue pairs of each kind,
 * connected to one another, and the input scribbles over its segment between polls: headers,
 * doorbells, indices, slots, anything. An honest pair beside it transfers all the time: its data
 * has to be right, after a number of polls that does not depend on the other. At the end the
 * client goes, and nothing of it may be left.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "inside.h"
#include "rcd_check.h"
#include "rcd_copyq.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_shm.h"
#include "rcd_wqe.h"
#include "requests.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX    64
#define QPS          3     /**< of a client: RC, UC, UD */
#define MEMORY       65536 /**< bytes of a client's */
#define HONEST_BYTES 3000
#define HONEST_POLLS 400 /**< within which an honest transfer is done: it needs a handful */

/* A queue pair, as its owner sees it. */
struct queue_pair {
	struct rcd_ctrl_qp_rep rep;
	uint32_t sq_producer, rq_producer;
};

/* A client with memory and queue pairs. */
struct party {
	struct client client;
	uint8_t *memory;
	uint32_t pd, key;
	uint64_t copies; /**< where its queue of copies is in the segment; 0: it has none */
	struct rcd_ctrl_cq_rep cq;
	struct queue_pair qps[QPS];
	uint32_t qp_count;
};

static struct party honest[2], hostile[2];

static void
must_call(struct party *party, uint32_t op, union rcd_ctrl_body *body, struct rcd_ctrl_fds *fds)
{
	uint32_t before = party->client.replies;
	int status = client_call(&party->client, op, body, fds);

	/* The other end of the wire is asked for its MAC. */
	for (int i = 0; i < 100 && party->client.replies == before; i++) {
		inside_pass(10000000, 1);
		client_receive(&party->client);
		status = party->client.last.hdr.status;
	}
	if (status == 0)
		return;
	fprintf(stderr, "%s: %s\n", rcd_ctrl_op_name(op), strerror(-status));
	abort();
}

static void
make_memory(struct party *party)
{
	struct rcd_ctrl_fds fds = { .count = 1, .fds = { memfd_create("fuzz", MFD_CLOEXEC) } };
	union rcd_ctrl_body body;

	RCD_CHECK(fds.fds[0] >= 0 && ftruncate(fds.fds[0], MEMORY) == 0);
	party->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fds.fds[0], 0);
	RCD_CHECK(party->memory != MAP_FAILED);
	request_fill(&party->client, RCD_CTRL_MEM_ADD, 0, &body);
	must_call(party, RCD_CTRL_MEM_ADD, &body, &fds);
	close(fds.fds[0]);
	request_fill(&party->client, RCD_CTRL_MR_REG, 0, &body);
	body.mr_reg_req.len = body.mr_reg_req.extents[0].len = MEMORY;
	must_call(party, RCD_CTRL_MR_REG, &body, NULL);
	party->key = client_pick(&party->client, RCD_CTRL_MR_REG, 0);
}

/* The same region again, reached by copies, takes its place in requests. */
static void
make_copied(struct party *party)
{
	union rcd_ctrl_body body;

	must_call(party, RCD_CTRL_COPY_OPEN, NULL, NULL);
	party->copies = party->client.last.body.copy_open_rep.offset;
	request_fill(&party->client, RCD_CTRL_MR_REG, 0, &body);
	body.mr_reg_req.len = body.mr_reg_req.extents[0].len = MEMORY;
	body.mr_reg_req.extents[0].mem = RCD_CTRL_MEM_COPIED;
	must_call(party, RCD_CTRL_MR_REG, &body, NULL);
	party->key = party->client.last.body.mr_reg_rep.key;
}

/* What it was asked to copy so far is done, it says. */
static void
say_done(const struct party *party)
{
	struct rcd_copyq *queue;

	if (party->copies == 0)
		return;
	queue = (struct rcd_copyq *)(void *)(party->client.segment + party->copies);
	rcd_shm_store(&queue->done, rcd_shm_load(&queue->posted));
}

/* @param kinds queue pairs to make, from RC on */
static void
make_party(struct party *party, uint32_t place, uint32_t kinds)
{
	union rcd_ctrl_body body;

	memset(party, 0, sizeof(*party));
	client_connect(&party->client);
	RCD_CHECK(client_open(&party->client, place));
	must_call(party, RCD_CTRL_PD_CREATE, NULL, NULL);
	make_memory(party);
	must_call(party, RCD_CTRL_CHANNEL_CREATE, NULL, NULL);
	request_fill(&party->client, RCD_CTRL_CQ_CREATE, 1, &body);
	must_call(party, RCD_CTRL_CQ_CREATE, &body, NULL);
	party->cq = party->client.last.body.cq_create_rep;
	for (party->qp_count = 0; party->qp_count < kinds; party->qp_count++) {
		request_fill(&party->client, RCD_CTRL_QP_CREATE, party->qp_count, &body);
		must_call(party, RCD_CTRL_QP_CREATE, &body, NULL);
		party->qps[party->qp_count].rep = party->client.last.body.qp_create_rep;
	}
}

static void
modify(struct party *party, uint32_t qp, enum rcd_qp_state state, const struct party *peer,
	uint32_t place)
{
	const uint32_t kind_bits[] = { 0, 0, RCD_QP_ATTR_QKEY };
	union rcd_ctrl_body body;
	struct rcd_ctrl_qp_modify_req *req = &body.qp_modify_req;

	/* Bits 3 and 4 choose the address: that of the other device. */
	request_fill(&party->client, RCD_CTRL_QP_MODIFY, 7 * 8 + (uint32_t)state, &body);
	req->handle = party->qps[qp].rep.handle;
	req->attr.state = (uint8_t)state;
	req->attr.dest_qpn = peer->qps[qp].rep.qpn;
	req->attr.av.dgid[15] = place == 0 ? 2 : 1;
	req->attr.qkey = 0x1234;
	if (qp == RCD_QP_UC)
		req->mask &= ~(uint32_t)(RCD_QP_ATTR_MAX_DEST_RD_ATOMIC |
			RCD_QP_ATTR_MIN_RNR_TIMER | RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT |
			RCD_QP_ATTR_RNR_RETRY | RCD_QP_ATTR_MAX_RD_ATOMIC);
	if (qp == RCD_QP_UD)
		req->mask &= RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
			RCD_QP_ATTR_SQ_PSN;
	if (state == RCD_QP_INIT)
		req->mask |= kind_bits[qp];
	must_call(party, RCD_CTRL_QP_MODIFY, &body, NULL);
}

/* Two parties at the ends of the wire, their queue pairs connected. */
static void
make_pair(struct party *pair, uint32_t kinds)
{
	static const enum rcd_qp_state way[] = { RCD_QP_INIT, RCD_QP_RTR, RCD_QP_RTS };

	for (uint32_t i = 0; i < 2; i++)
		make_party(&pair[i], i, kinds);
	for (uint32_t i = 0; i < 3 * 2 * kinds; i++) {
		uint32_t place = i / 3 % 2;
		uint32_t state = way[i % 3];

		/* The mask is the state's, whatever the number chooses besides. */
		modify(&pair[place], i / 6, (enum rcd_qp_state)state, &pair[1 - place], place);
	}
}

static void
end_pair(struct party *pair)
{
	for (int i = 0; i < 2; i++) {
		client_close(&pair[i].client);
		munmap(pair[i].memory, MEMORY);
	}
}

/* Post what a client that knows the layout would: whatever else is said, it is looked at. */
static void
post(struct party *party, uint32_t number, const struct rcd_send_wr *wr)
{
	struct queue_pair *qp = &party->qps[number];
	uint8_t *segment = party->client.segment;
	struct rcd_shm_wq *sq = (struct rcd_shm_wq *)(void *)(segment + qp->rep.sq_indices);

	rcd_sq_wqe_put(segment + qp->rep.sq_slots +
			(size_t)(qp->sq_producer & (qp->rep.sq_depth - 1)) * qp->rep.sq_stride,
		wr, number == RCD_QP_UD ? RCD_WQE_DATAGRAM : RCD_WQE_REMOTE);
	rcd_shm_store(&sq->producer, ++qp->sq_producer);
	rcd_db_ring((struct rcd_shm_hdr *)(void *)segment, qp->rep.handle);
}

/* The honest pair writes, and it arrives. */
static void
check_honest(uint32_t seed)
{
	struct rcd_sge sge = { .addr = 0, .len = HONEST_BYTES, .lkey = { honest[0].key } };
	struct rcd_send_wr wr = { .wr_id = seed,
		.opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = 4096, .rkey = { honest[1].key } } };
	uint8_t *segment = honest[0].client.segment;
	struct rcd_shm_cq *cq = (struct rcd_shm_cq *)(void *)(segment + honest[0].cq.indices);
	const struct rcd_cq_slot *slots = (const void *)(segment + honest[0].cq.slots);
	uint32_t at = cq->consumer;
	uint32_t polls = 0;

	for (uint32_t i = 0; i < HONEST_BYTES; i++)
		honest[0].memory[i] = (uint8_t)(seed + i * 7 + (i >> 8));
	post(&honest[0], RCD_QP_RC, &wr);
	while (rcd_shm_load(&cq->producer) == at && polls++ < HONEST_POLLS)
		inside_turn(1);
	RCD_CHECK(rcd_shm_load(&cq->producer) == at + 1);
	RCD_CHECK(slots[at & (honest[0].cq.depth - 1)].status == RCD_WC_SUCCESS);
	RCD_CHECK(memcmp(honest[1].memory + 4096, honest[0].memory, HONEST_BYTES) == 0);
	rcd_shm_store(&cq->consumer, at + 1);
}

/* A work request with a few fields of the input's, the others right. */
static void
hostile_post(struct party *party, const struct party *peer, const struct step *step)
{
	struct rcd_sge sge = { .addr = 0, .len = 1000, .lkey = { party->key } };
	struct rcd_send_wr wr = { .wr_id = 1,
		.opcode = step->op % (RCD_WR_OPCODE_COUNT + 1),
		.flags = (uint8_t)(step->how & RCD_SEND_FENCE) | RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge };
	uint32_t number = step->how % party->qp_count;
	struct queue_pair *qp = &party->qps[number];
	uint32_t at = qp->sq_producer & (qp->rep.sq_depth - 1);

	if (number == RCD_QP_UD)
		wr.ud.qpn.val = peer->qps[number].rep.qpn;
	else
		wr.remote.rkey.val = peer->key;
	post(party, number, &wr);
	poke_all(step, &party->client.learnt,
		party->client.segment + qp->rep.sq_slots + (size_t)at * qp->rep.sq_stride,
		qp->rep.sq_stride);
}

/* Where the shared things are, so that the input need not find them. */
static size_t
place_of(const struct party *party, uint8_t which)
{
	const struct rcd_ctrl_qp_rep *rep = &party->qps[which % party->qp_count].rep;

	switch (which / 8 % 8) {
	case 0:
		return 0;
	case 1:
		return offsetof(struct rcd_shm_hdr, db_summary);
	case 2:
		return rep->sq_indices;
	case 3:
		return rep->rq_indices;
	case 4:
		return rep->sq_slots;
	case 5:
		return rep->rq_slots;
	case 6:
		return party->cq.indices;
	default:
		return which & 0x40 ? party->copies : (size_t)which * 4096;
	}
}

static void
scribble(struct party *party, const struct step *step)
{
	size_t at = place_of(party, step->op) % (party->client.segment_bytes - 4096);

	if (step->how & 0x80)
		memset(party->client.segment + at, step->how,
			1 + (size_t)step->pokes[0].val % 4096);
	else
		poke_all(step, &party->client.learnt, party->client.segment + at, 4096);
}

/* Requests beside it: queues are resized, modified and removed while they are being written. */
static void
request(struct party *party, const struct step *step)
{
	static const uint8_t ops[] = { RCD_CTRL_CQ_RESIZE, RCD_CTRL_QP_MODIFY, RCD_CTRL_QP_DESTROY,
		RCD_CTRL_QP_CREATE, RCD_CTRL_SRQ_CREATE, RCD_CTRL_CQ_CREATE, RCD_CTRL_CQ_MODIFY,
		RCD_CTRL_MR_DEREG, RCD_CTRL_MW_ALLOC, RCD_CTRL_AH_CREATE };
	uint32_t op = ops[step->op % sizeof(ops)];
	union rcd_ctrl_body body;

	request_fill(&party->client, op, step->how, &body);
	poke_all(step, &party->client.learnt, (uint8_t *)&body,
		rcd_ctrl_req_len(op) - sizeof(struct rcd_ctrl_hdr));
	client_call(&party->client, op, &body, NULL);
}

static void
step_of(const struct step *step)
{
	struct party *party = &hostile[step->who & 1];

	switch (step->kind % 8) {
	case 0:
	case 1:
	case 2:
		scribble(party, step);
		break;
	case 3:
	case 4:
		hostile_post(party, &hostile[1 - (step->who & 1)], step);
		break;
	case 5:
		rcd_db_ring((struct rcd_shm_hdr *)(void *)party->client.segment,
			step->how & 1 ? step->pokes[0].val % RCD_DB_BITS : step->op % 8u);
		break;
	case 6:
		request(party, step);
		break;
	default:
		if (step->how & 0x80)
			say_done(party);
		inside_pass((uint64_t)step->op * 1000000, 1 + step->how % 8);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rcd_engine *engine = inside_engine();
	struct rcd_holdings before;
	unsigned int fds;

	if (honest[0].memory == NULL)
		make_pair(honest, 1);
	rcd_engine_holdings(engine, &before);
	fds = inside_fds();
	make_pair(hostile, QPS);
	make_copied(&hostile[1]);
	for (uint32_t i = 0; i < STEPS_MAX && size >= sizeof(struct step); i++) {
		struct step step;

		memcpy(&step, data, sizeof(step));
		data += sizeof(step);
		size -= sizeof(step);
		step_of(&step);
		/* Some of it comes together. */
		if (step.who & 0x40)
			continue;
		inside_turn(1);
		client_receive(&hostile[0].client);
		client_receive(&hostile[1].client);
		if (i % 4 == 0)
			check_honest(i);
	}
	inside_audit();
	check_honest(STEPS_MAX);
	end_pair(hostile);
	inside_check_left(&before, fds);
	return 0;
}
