/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no sequence of packets makes a queue pair touch memory that is not its own, complete what
 * was not posted, or never stop. Method: a libFuzzer target; the input is a program of packets with
 * chosen headers, posted requests, time that passes and packets that are taken.
 */
#include "fuzz_rig.h"
#include "rcd_cm.h"
#include "rcd_qp_priv.h"

/* Of the input's first byte. */
#define FIND           0xe8 /* RC; its peer marks, if the input says so */
#define FIRST_SACK     0xec /* RC */
#define FIRST_XRC_SACK 0xf4
#define FIRST_XRC      0xf8

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Requests that are right: a peer's packets are under test here. */
static int
fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	static const uint8_t opcodes[] = { RCD_WR_SEND, RCD_WR_RDMA_WRITE, RCD_WR_RDMA_READ,
		RCD_WR_COMPARE_SWAP, RCD_WR_RDMA_WRITE_WITH_IMM, RCD_WR_RDMA_READ, RCD_WR_FLUSH,
		RCD_WR_ATOMIC_WRITE };
	struct rig *rig = arg;

	if (number >= rig->sends)
		return -EAGAIN;
	wr->wr_id = number;
	wr->opcode = opcodes[number % sizeof(opcodes)];
	wr->flags = RCD_SEND_SIGNALED;
	wr->sge_count = 1;
	wr->sges[0] = (struct rcd_sge){ 64, wr->opcode == RCD_WR_COMPARE_SWAP ? 8 : 600, rig->key };
	wr->remote.va = 1024;
	wr->remote.rkey = rig->key;
	if (wr->opcode == RCD_WR_FLUSH) {
		wr->flush.placement = RCD_PLACEMENT_GLOBAL;
		wr->flush.selectivity = RCD_SELECTIVITY_RANGE;
		wr->flush.len = 600;
	}
	if (rig->qp != NULL && rcd_qp_qpn(rig->qp).val == 17 && number % 7 == 6) {
		wr->flags |= RCD_SEND_INLINE;
		wr->opcode = RCD_WR_SEND;
		wr->inline_len = 5;
		memset(wr->inline_data, 1, 5);
	}
	return 0;
}

static int
fetch_recv(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	struct rig *rig = arg;

	if (number >= rig->recvs)
		return -EAGAIN;
	wr->wr_id = number;
	wr->sge_count = 2;
	wr->sges[0] = (struct rcd_sge){ 0, 100, rig->key };
	wr->sges[1] = (struct rcd_sge){ RIG_MEMORY - 1000, 1000, rig->key };
	return 0;
}

static void *lent;

/* It may be too busy. */
static bool
agreed(void *arg)
{
	const struct rig *rig = arg;

	RCD_CHECK(rcd_qp_found_peer(rig->qp));
	if (lent != NULL || rig->recvs % 3 == 0)
		return false;
	lent = malloc(rcd_qp_sack_size());
	RCD_CHECK(rcd_qp_set_sack(rig->qp, lent) == 0);
	return true;
}

/* What a peer would write there. */
static void
mark(const struct rig *rig, struct rcd_pkt *pkt, struct rig_input *in)
{
	const struct rcd_hello *hello = &rig->qp->hello;
	uint8_t how = (uint8_t)rig_take(in, 1);

	pkt->roce.bth.mark = how & 0x80
		? how & RCD_BTH_MARK_MASK
		: rcd_hello_mark(hello->rx_seed, pkt->roce.bth.opcode, pkt->roce.bth.psn);
	pkt->roce.helloeth.offers = how & 0x40 ? how : RCD_CM_OFFERS_SACK;
	pkt->roce.helloeth.nonce = how & 0x20 ? how : ~(hello->nonce << 32 | hello->nonce >> 32);
}

static const struct rcd_qp_ops ops = {
	.fetch_send = fetch_send,
	.fetch_recv = fetch_recv,
	.complete = rig_complete,
	.event = rig_event,
	.agreed = agreed,
};

/* Addresses and lengths near the edges of the region. */
static uint64_t
some_va(struct rig_input *in)
{
	uint32_t val = rig_take(in, 2);

	return val & 0x8000 ? UINT64_MAX - (val & 0xfff) : val & 0x1fff;
}

static void
feed_packet(struct rig *rig, struct rig_input *in)
{
	static uint8_t payload[256];
	struct rcd_qp_attr attr;
	struct rcd_pkt pkt = { .payload = payload, .sgid = rig_av().dgid, .dgid = rig_av().sgid };
	uint32_t flags = rig_take(in, 1);
	uint8_t ip[RCD_IPV6_LEN] = { 0x60 };
	bool response;

	rcd_qp_query(rig->qp, &attr);
	pkt.ip = ip;
	pkt.l3 = RCD_L3_IPV6;
	pkt.roce.bth.opcode = (uint8_t)rig_take(in, 1);
	response = rcd_opcode_is_response(pkt.roce.bth.opcode);
	pkt.roce.bth.psn = rcd_psn((response ? attr.sq_psn.val - 1 : attr.rq_psn.val) +
		(uint32_t)(int8_t)rig_take(in, 1));
	pkt.roce.bth.ack_req = flags & 1;
	pkt.roce.bth.solicited = flags & 2;
	pkt.roce.bth.pkey.val = flags & 4 && flags & 8 ? 0 : 0xffff;
	pkt.tclass = flags & 16 ? 3 : 0;
	pkt.payload_len = (uint16_t)(flags & 32 ? 256 : rig_take(in, 1));
	pkt.roce.aeth.syndrome = (uint8_t)rig_take(in, 1);
	pkt.roce.reth.va = some_va(in);
	pkt.roce.reth.rkey.val = flags & 64 ? rig_take(in, 4) : rig->key.val;
	pkt.roce.reth.dma_len = flags & 128 ? rig_take(in, 4) : rig_take(in, 2);
	pkt.roce.atomiceth.va = pkt.roce.reth.va;
	pkt.roce.atomiceth.rkey = pkt.roce.reth.rkey;
	pkt.roce.ieth.rkey = pkt.roce.reth.rkey;
	if (rcd_opcode_has(pkt.roce.bth.opcode, RCD_EXT_FETH)) {
		pkt.roce.feth.placement = (uint8_t)(rig_take(in, 1) & 0xf);
		pkt.roce.feth.selectivity = (uint8_t)(rig_take(in, 1) & 3);
	}
	/* One that is there, or may be, or not. */
	if (rig->xrc != NULL)
		pkt.roce.xrceth.srqn = RCD_XRC_SRQS + rig_take(in, 1) % (RIG_XSRQS + 1);
	if (pkt.roce.bth.opcode == RCD_OPCODE_SACK) {
		pkt.roce.sacketh.seen =
			rcd_psn(attr.sq_psn.val + (uint32_t)(int8_t)rig_take(in, 1));
		pkt.roce.sacketh.delay_ns = rig_take(in, 2) << 8;
		memset(payload, flags & 64 ? 0xff : 0, sizeof(payload));
		rcd_put_le32(payload, rig_take(in, 4));
	}
	if (rig->qp->hot.marks)
		mark(rig, &pkt, in);
	/* As the parser would have it. */
	switch ((enum rcd_payload)rcd_opcode_info(pkt.roce.bth.opcode)->payload) {
	case RCD_PAYLOAD_NONE:
		pkt.payload_len = 0;
		break;
	case RCD_PAYLOAD_ATOMIC:
		pkt.payload_len = RCD_ATOMIC_LEN;
		break;
	case RCD_PAYLOAD_BITMAP:
		pkt.payload_len = (uint16_t)(4 + pkt.payload_len % RCD_SACK_BITMAP_MAX_LEN / 4 * 4);
		break;
	case RCD_PAYLOAD_ANY:
		break;
	}
	if (rcd_opcode_known(pkt.roce.bth.opcode))
		rcd_qp_rx(rig->qp, &pkt, rig->now_ns);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum rcd_qp_type types[] = { RCD_QP_RC, RCD_QP_RC, RCD_QP_UC, RCD_QP_UD };
	static const enum rcd_qp_type xrc[] = { RCD_QP_XRC_SEND, RCD_QP_XRC_RECV };
	static _Alignas(64) uint8_t mem[RIG_QP_BYTES];
	struct rig_input in = { data, size };
	struct rig rig = { .sends = 0 };
	void *sack = NULL;

	uint32_t type = rig_take(&in, 1);

	/* The last numbers, so that older inputs stay what they are. */
	lent = NULL;
	if (type == FIND) {
		rig_init(&rig, RCD_QP_RC, &ops, mem);
		RCD_CHECK(rcd_qp_find_peer(rig.qp, 0x0123456789abcdef) == 0);
	} else if (type >= FIRST_SACK && type < FIRST_XRC) {
		sack = malloc(rcd_qp_sack_size());
		rig_init(&rig, type < FIRST_XRC_SACK ? RCD_QP_RC : xrc[type % 2], &ops, mem);
		RCD_CHECK(rcd_qp_set_sack(rig.qp, sack) == 0);
	} else {
		rig_init(&rig, type < FIRST_XRC ? types[type % 4] : xrc[type % 2], &ops, mem);
	}
	while (in.len > 0) {
		switch (rig_take(&in, 1) % 8) {
		case 0:
			rig.sends += rig.sends < 100;
			rcd_qp_posted(rig.qp);
			rcd_qp_flush(rig.qp, 2);
			break;
		case 1:
			rig.recvs += rig.recvs < 100;
			rcd_qp_posted(rig.qp);
			rcd_qp_flush(rig.qp, 2);
			break;
		case 2:
			rig_drain(&rig, 64);
			break;
		case 3:
			rig.now_ns += rig_take(&in, 3);
			rcd_qp_expire(rig.qp, rig.now_ns);
			break;
		case 4:
			if (rig.xrc != NULL)
				rig_turn_xsrq(&rig, rig_take(&in, 1) % RIG_XSRQS);
			else
				feed_packet(&rig, &in);
			break;
		default:
			feed_packet(&rig, &in);
			break;
		}
	}
	/* It comes to rest: with no peer, the retries run out. */
	for (uint32_t i = 0; i < 2000; i++) {
		bool sent = rig_drain(&rig, 2000) > 0 || rcd_qp_tx_paused(rig.qp);
		uint64_t deadline = rcd_qp_next_deadline(rig.qp);

		if (!sent && deadline == 0)
			break;
		if (deadline > rig.now_ns)
			rig.now_ns = deadline;
		rcd_qp_expire(rig.qp, rig.now_ns);
		RCD_CHECK(i < 1999);
	}
	rcd_qp_fail(rig.qp);
	rig_flush(&rig);
	/* A target has no requests of its own, and what it has not taken of others' stays. */
	if (rig.xrc == NULL)
		RCD_CHECK(rig.send_cqes == rig.sends && rig.recv_cqes == rig.recvs);
	else
		RCD_CHECK(rig.recv_cqes <= rig.fetched);
	rig_fini(&rig);
	free(sack);
	free(lent);
	return 0;
}
