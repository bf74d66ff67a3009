/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Two nodes for one situation.
 */
#include "situation.h"

#include "rcd_aeth.h"
#include "rcd_tap.h"

struct situation p;
uint32_t sent[2][256];
uint32_t naks[256];
uint32_t ack_reqs;
uint64_t last_ns, gap_ns;

void
watch(const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost)
{
	(void)lost;
	sent[from->number][pkt->roce.bth.opcode]++;
	if (rcd_opcode_info(pkt->roce.bth.opcode)->op == RCD_OP_ACKNOWLEDGE)
		naks[pkt->roce.aeth.syndrome]++;
	ack_reqs += pkt->roce.bth.ack_req;
	if (from->number == 0) {
		gap_ns = sim->now_ns - last_ns;
		last_ns = sim->now_ns;
	}
}

struct rcd_qp_init
default_init(enum rcd_qp_type type)
{
	return (struct rcd_qp_init){
		.type = type,
		.pd = SITUATION_PD,
		.sq_depth = 64,
		.max_send_sge = SIM_SGE_MAX,
		.max_recv_sge = SIM_SGE_MAX,
		.max_inline = SIM_INLINE_MAX,
		.max_rd_atomic = 8,
		.port_mtu_bytes = 1024,
	};
}

void
begin(const struct rcd_qp_init *init, const struct rcd_qp_attr *change)
{
	struct rcd_qp_init target = *init;
	struct rcd_qp_attr attr;

	memset(sent, 0, sizeof(sent));
	memset(naks, 0, sizeof(naks));
	last_ns = gap_ns = ack_reqs = 0;
	memset(&p, 0, sizeof(p));
	sim_init(&p.sim, 1, SITUATION_MEMORY, 64);
	p.sim.trace = watch;
	for (uint32_t node = 0; node < 2; node++) {
		struct rcd_mr_attr region = { .pd = SITUATION_PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE | RCD_ACCESS_MW_BIND,
			.len = SITUATION_MEMORY,
			.base = p.sim.nodes[node].memory };
		struct rcd_av av = sim_av(&p.sim.nodes[node]);

		for (uint32_t i = 0; i < SITUATION_MEMORY; i++)
			region.base[i] = (uint8_t)(i * 11 + node);
		CU_ASSERT_EQUAL(rcd_mr_register(p.sim.nodes[node].mrs, &region, &p.key[node]), 0);
		CU_ASSERT_EQUAL(
			rcd_ah_create(p.sim.nodes[node].ahs, SITUATION_PD, &av, &p.ah[node]), 0);
	}
	p.a = sim_qp_create(&p.sim.nodes[0], init);
	if (init->type == RCD_QP_XRC_SEND) {
		target.type = RCD_QP_XRC_RECV;
		p.srqn = sim_xsrq_add(&p.sim.nodes[1], 0, SITUATION_PD);
	}
	p.b = sim_qp_create(&p.sim.nodes[1], &target);
	attr = change != NULL ? *change : sim_attr(&p.sim);
	sim_connect(p.a, p.b, &attr, &attr);
}

struct rcd_send_wr *
post(struct sim_qp *qp, enum rcd_wr_opcode opcode, uint64_t at, uint32_t len, uint64_t remote)
{
	uint32_t node = qp->node->number;
	uint32_t number = qp->sq.posted++;
	struct rcd_send_wr *wr = &qp->sq.wrs[number];

	qp->sq.sges[number][0] = (struct rcd_sge){ at, len, p.key[node] };
	*wr = (struct rcd_send_wr){
		.wr_id = number,
		.opcode = (uint8_t)opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = len > 0,
		.remote = { .va = remote, .rkey = p.key[1 - node], .srqn = p.srqn },
	};
	return wr;
}

struct rcd_send_wr *
post_datagram(uint64_t at, uint32_t len, uint32_t qkey)
{
	struct rcd_send_wr *wr = post(p.a, RCD_WR_SEND, at, len, 0);

	wr->ud.ah = p.ah[0];
	wr->ud.qpn = p.b->init.qpn;
	wr->ud.qkey.val = qkey;
	return wr;
}

void
post_recv(struct sim_recv_queue *queue, uint32_t node, uint64_t at, uint32_t len)
{
	uint32_t number = queue->posted++;

	queue->sges[number][0] = (struct rcd_sge){ at, len, p.key[node] };
	queue->wrs[number] = (struct rcd_recv_wr){ .wr_id = number, .sge_count = 1 };
}

void
run(void)
{
	CU_ASSERT_TRUE(sim_run(&p.sim, p.sim.now_ns + 100 * UINT64_C(1000000000)));
}

void
end(void)
{
	sim_fini(&p.sim);
}

bool
completed(uint32_t node, uint32_t i, uint64_t wr_id, enum rcd_wc_status status)
{
	const struct sim_node *n = &p.sim.nodes[node];

	return i < n->cqe_count && n->cqes[i].wr_id == wr_id && n->cqes[i].status == status;
}

bool
raised(uint32_t node, enum rcd_event event)
{
	for (uint32_t i = 0; i < p.sim.nodes[node].event_count; i++) {
		if (p.sim.nodes[node].events[i].event == event)
			return true;
	}
	return false;
}

uint64_t
counter(uint32_t node, enum rcd_counter id)
{
	return rcd_counter_get(&p.sim.nodes[node].counters, id);
}

struct rcd_pkt
by_hand(uint8_t opcode, uint32_t psns)
{
	struct rcd_pkt pkt = { .payload = p.sim.nodes[0].memory, .payload_len = 8 };
	struct rcd_qp_attr attr;

	rcd_qp_query(p.b->qp, &attr);
	pkt.sgid = sim_av(&p.sim.nodes[1]).dgid;
	pkt.dgid = sim_av(&p.sim.nodes[1]).sgid;
	pkt.roce.bth = (struct rcd_bth){
		.opcode = opcode, .pkey = { 0xffff }, .psn = rcd_psn_add(attr.rq_psn, psns)
	};
	pkt.roce.xrceth.srqn = p.srqn;
	pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .dma_len = 8 };
	return pkt;
}

struct rcd_pkt
nak_by_hand(struct rcd_psn psn)
{
	struct rcd_pkt nak = by_hand(RCD_OPCODE_RC_ACKNOWLEDGE, 0);

	nak.sgid = sim_av(&p.sim.nodes[0]).dgid;
	nak.dgid = sim_av(&p.sim.nodes[0]).sgid;
	nak.payload_len = 0;
	nak.roce.bth.psn = psn;
	nak.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_NAK, RCD_NAK_PSN_SEQUENCE);
	return nak;
}

struct rcd_pkt
sack_by_hand(struct rcd_psn expected, struct rcd_psn seen, const uint8_t *bitmap, uint16_t len)
{
	struct rcd_pkt pkt = nak_by_hand(expected);

	pkt.roce.bth.opcode = RCD_OPCODE_SACK;
	pkt.roce.aeth.syndrome = rcd_aeth_syndrome(RCD_AETH_ACK, RCD_AETH_CREDITS_INVALID);
	pkt.roce.sacketh.seen = seen;
	pkt.payload = bitmap;
	pkt.payload_len = len;
	return pkt;
}

struct rcd_pkt
begin_with_reads(uint8_t max_dest_rd_atomic)
{
	struct rcd_qp_init init = default_init(RCD_QP_RC);
	struct rcd_pkt pkt = { .payload = NULL };
	struct rcd_qp_attr attr;

	memset(&p.sim, 0, sizeof(p.sim));
	attr = sim_attr(&p.sim);
	attr.max_dest_rd_atomic = max_dest_rd_atomic;
	begin(&init, &attr);
	rcd_qp_query(p.b->qp, &attr);
	pkt.sgid = sim_av(&p.sim.nodes[1]).dgid;
	pkt.dgid = sim_av(&p.sim.nodes[1]).sgid;
	pkt.roce.bth = (struct rcd_bth){
		.opcode = RCD_OPCODE_RC_RDMA_READ_REQUEST, .pkey = { 0xffff }, .psn = attr.rq_psn
	};
	pkt.roce.reth = (struct rcd_reth){ .rkey = p.key[1], .dma_len = 8 };
	return pkt;
}
