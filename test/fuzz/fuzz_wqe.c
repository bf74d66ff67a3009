/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no work request, however hostile, and however it changes between two looks, makes a queue
 * pair touch memory that is not its own or never stop. Method: a libFuzzer target; the input is
 * what every fetch returns, and a peer that answers all it is asked.
 */
#include "fuzz_rig.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every fetch, also of a request that was fetched before, reads on in the input. */
static struct rig_input input;

static void
hostile_sges(struct rig *rig, uint8_t count, uint8_t room, struct rcd_sge *sges)
{
	for (uint8_t i = 0; i < count && i < room; i++) {
		uint32_t val = rig_take(&input, 2);

		sges[i].addr = val & 0x8000 ? UINT64_MAX - (val & 0xff) : val & 0x1fff;
		sges[i].len = rig_take(&input, 1) % 8 == 0 ? rig_take(&input, 4)
							   : rig_take(&input, 2) & 0x3ff;
		sges[i].lkey = rig_take(&input, 1) % 8 == 0
			? (struct rcd_key){ rig_take(&input, 4) }
			: rig->key;
	}
}

/* Mostly few, so that much of it is valid; but any count that a slot can say. */
static uint8_t
take_count(void)
{
	uint32_t val = rig_take(&input, 1);

	return (uint8_t)(val < 0x80 ? val % (RIG_SGES + 2) : val);
}

static int
fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	struct rig *rig = arg;

	if (number >= rig->sends)
		return -EAGAIN;
	wr->wr_id = number;
	wr->opcode = (uint8_t)(rig_take(&input, 1) % (RCD_WR_OPCODE_COUNT + 2));
	wr->flags = (uint8_t)(rig_take(&input, 1) | RCD_SEND_SIGNALED);
	wr->sge_count = take_count();
	wr->inline_len = (uint16_t)(rig_take(&input, 1) % (RIG_INLINE + 2));
	hostile_sges(rig, wr->sge_count, wr->sge_max, wr->sges);
	wr->imm = rig_take(&input, 4);
	if (wr->opcode == RCD_WR_BIND_MW) {
		wr->bind.mw.val = rig_take(&input, 4);
		wr->bind.mr = rig->key;
		wr->bind.addr = rig_take(&input, 2);
		wr->bind.len = rig_take(&input, 2);
		wr->bind.access = rig_take(&input, 2);
	} else if (wr->opcode == RCD_WR_FLUSH) {
		wr->flush.va = rig_take(&input, 2);
		wr->flush.rkey = rig->key;
		wr->flush.placement = (uint8_t)(rig_take(&input, 1) % 6);
		wr->flush.selectivity = (uint8_t)(rig_take(&input, 1) % 4);
		wr->flush.len = (uint64_t)rig_take(&input, 4) << (rig_take(&input, 1) % 40);
	} else if (wr->opcode == RCD_WR_ATOMIC_WRITE) {
		wr->atomic_write.va = rig_take(&input, 2);
		wr->atomic_write.rkey = rig->key;
		memset(wr->atomic_write.bytes, (int)rig_take(&input, 1), 8);
	} else {
		wr->remote.va = rig_take(&input, 2);
		wr->remote.rkey = rig->key;
		wr->ud.ah = rig_take(&input, 1) % 4;
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
	wr->sge_count = take_count();
	hostile_sges(rig, wr->sge_count, wr->sge_max, wr->sges);
	return 0;
}

static const struct rcd_qp_ops ops = {
	.fetch_send = fetch_send,
	.fetch_recv = fetch_recv,
	.complete = rig_complete,
	.event = rig_event,
};

/* A peer that says yes: acknowledges, and data of the length that was asked for. */
static void
answer(struct rig *rig, const struct rcd_tx_pkt *asked)
{
	static uint8_t payload[256];
	struct rcd_pkt pkt = { .payload = payload, .sgid = rig_av().dgid, .dgid = rig_av().sgid };
	const struct rcd_bth *bth = &asked->roce.bth;
	uint32_t len = asked->roce.reth.dma_len;
	uint32_t packets = len == 0 ? 1 : (len + 255) / 256;

	pkt.roce.bth = (struct rcd_bth){
		.opcode = RCD_OPCODE_RC_ACKNOWLEDGE, .pkey = { 0xffff }, .psn = bth->psn
	};
	pkt.roce.aeth.syndrome = 0x1f;
	if (bth->opcode == RCD_OPCODE_RC_COMPARE_SWAP || bth->opcode == RCD_OPCODE_RC_FETCH_ADD)
		pkt.roce.bth.opcode = RCD_OPCODE_RC_ATOMIC_ACKNOWLEDGE;
	if (bth->opcode == RCD_OPCODE_RC_FLUSH || bth->opcode == RCD_OPCODE_RC_ATOMIC_WRITE)
		pkt.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
	if (bth->opcode != RCD_OPCODE_RC_RDMA_READ_REQUEST) {
		if (bth->ack_req)
			rcd_qp_rx(rig->qp, &pkt, rig->now_ns);
		return;
	}
	for (uint32_t i = 0; i < packets && i < 32; i++) {
		pkt.roce.bth.psn = rcd_psn_add(bth->psn, i);
		pkt.payload_len = (uint16_t)(i + 1 < packets ? 256 : len - 256 * i);
		if (packets == 1)
			pkt.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
		else if (i + 1 == packets)
			pkt.roce.bth.opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_LAST;
		else
			pkt.roce.bth.opcode = i == 0 ? RCD_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
						     : RCD_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
		rcd_qp_rx(rig->qp, &pkt, rig->now_ns);
	}
}

static void
send_to_us(struct rig *rig, uint32_t number, enum rcd_qp_type type)
{
	static uint8_t payload[256];
	static const uint8_t opcodes[] = { RCD_OPCODE_RC_SEND_ONLY, RCD_OPCODE_RC_SEND_ONLY,
		RCD_OPCODE_UC_SEND_ONLY, RCD_OPCODE_UD_SEND_ONLY };
	uint8_t ip[RCD_IPV6_LEN] = { 0x60 };
	struct rcd_pkt pkt = { .payload = payload,
		.payload_len = (uint16_t)(rig_take(&input, 1) + 1),
		.ip = ip,
		.l3 = RCD_L3_IPV6,
		.sgid = rig_av().dgid,
		.dgid = rig_av().sgid };

	pkt.roce.bth = (struct rcd_bth){ .opcode = opcodes[type == RCD_QP_RC ? 0 : type + 1],
		.pkey = { 0xffff },
		.psn = rcd_psn(number) };
	rcd_qp_rx(rig->qp, &pkt, rig->now_ns);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum rcd_qp_type types[] = { RCD_QP_RC, RCD_QP_RC, RCD_QP_UC, RCD_QP_UD };
	static _Alignas(64) uint8_t mem[RIG_QP_BYTES];
	struct rcd_tx_pkt pkt;
	struct rig rig = { .sends = 0 };
	enum rcd_qp_type type;
	struct rcd_key mw;

	input = (struct rig_input){ data, size };
	type = types[rig_take(&input, 1) % 4];
	rig_init(&rig, type, &ops, mem);
	RCD_CHECK(rcd_mw_alloc(rig.mrs, RCD_MR_WINDOW_2, RIG_PD, &mw) == 0);
	for (uint32_t round = 0; round < 64 && input.len > 0; round++) {
		uint32_t sent = 0;

		rig.sends += 1 + rig_take(&input, 1) % 4;
		rig.recvs++;
		rcd_qp_posted(rig.qp);
		rcd_qp_flush(rig.qp, 2);
		send_to_us(&rig, round, type);
		while (sent++ < 200 && rcd_qp_tx_next(rig.qp, rig.now_ns, &pkt)) {
			uint32_t sum = 0;

			for (uint32_t i = 0; i < pkt.piece_count; i++)
				for (uint32_t k = 0; k < pkt.pieces[i].len; k++)
					sum += pkt.pieces[i].base[k];
			*(volatile uint32_t *)&sum = sum;
			/* Now and then an answer is lost, and the request is fetched again. */
			if (type == RCD_QP_RC && rcd_opcode_is_request(pkt.roce.bth.opcode) &&
				rig_take(&input, 1) % 4 != 0)
				answer(&rig, &pkt);
		}
		rig.now_ns += 100000;
		rcd_qp_expire(rig.qp, rig.now_ns);
	}
	rcd_qp_fail(rig.qp);
	rig_flush(&rig);
	RCD_CHECK(rig.send_cqes == rig.sends && rig.recv_cqes == rig.recvs);
	rig_fini(&rig);
	return 0;
}
