/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what loss costs. Method: 64 KiB WRITEs, 16 outstanding, MTU 4096, over a link of 100 Gb/s
 * and 20 us round trip in virtual time; goodput at several loss rates, with a receiver that drops
 * what comes out of order (go-back-N) and with one that keeps it. Prints a table in Markdown; a
 * record, no gate.
 */
#include <stdio.h>

#include "rcd_check.h"
#include "sim.h"

enum {
	MEMORY = 1 << 17,
	MESSAGE = 64 * 1024,
	OUTSTANDING = 16,
	PD = 1,
};

static uint64_t done, wanted, last_ns;

static void
post_one(struct sim_qp *qp, struct rcd_key lkey, struct rcd_key rkey)
{
	uint32_t number = qp->sq.posted % SIM_QUEUE_MAX;

	qp->sq.sges[number][0] = (struct rcd_sge){ 0, MESSAGE, lkey };
	qp->sq.wrs[number] = (struct rcd_send_wr){
		.wr_id = qp->sq.posted,
		.opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.remote = { .va = 0, .rkey = rkey },
	};
	qp->sq.posted++;
}

static struct rcd_key keys[2];

static void
on_cqe(void *arg, struct sim_node *node, const struct rcd_cqe *cqe)
{
	(void)arg;
	node->cqe_count = 0;
	RCD_CHECK(cqe->status == RCD_WC_SUCCESS);
	done++;
	last_ns = node->sim->now_ns;
	if (node->qps[0].sq.posted < wanted)
		post_one(&node->qps[0], keys[0], keys[1]);
}

static double
goodput_gbps(double loss, uint32_t kept, uint64_t messages, double *again)
{
	static struct sim sim;
	struct rcd_qp_init init = { .type = RCD_QP_RC,
		.pd = PD,
		.sq_depth = 64,
		.max_send_sge = 1,
		.max_rd_atomic = 1,
		.port_mtu_bytes = 4096 };
	struct rcd_qp_attr attr;
	struct sim_qp *a, *b;
	double gbps;

	sim_init(&sim, 7, MEMORY, kept);
	attr = sim_attr(&sim);
	attr.path_mtu_bytes = 4096;
	attr.timeout = 10;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
	for (uint32_t node = 0; node < 2; node++) {
		struct rcd_mr_attr region = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.len = MEMORY,
			.base = sim.nodes[node].memory };

		RCD_CHECK(rcd_mr_register(sim.nodes[node].mrs, &region, &keys[node]) == 0);
		sim.nodes[node].out.delay_ns = 10000;
		sim.nodes[node].out.gbps = 100;
		sim.nodes[node].out.loss = loss;
	}
	a = sim_qp_create(&sim.nodes[0], &init);
	b = sim_qp_create(&sim.nodes[1], &init);
	sim_connect(a, b, &attr, &attr);
	sim.nodes[0].on_cqe = on_cqe;
	done = 0;
	wanted = messages;
	for (uint32_t i = 0; i < OUTSTANDING; i++)
		post_one(a, keys[0], keys[1]);
	RCD_CHECK(sim_run(&sim, UINT64_MAX) && done == messages);
	gbps = (double)messages * MESSAGE * 8 / (double)(last_ns - 1000);
	*again = (double)rcd_counter_get(&sim.nodes[0].counters, RCD_COUNTER_RETRANSMITTED_PKTS) /
		(double)rcd_counter_get(&sim.nodes[0].counters, RCD_COUNTER_SENT_PKTS);
	sim_fini(&sim);
	return gbps;
}

int
main(void)
{
	static const struct {
		double loss;
		uint64_t messages;
	} rows[] = { { 0, 5000 }, { 1e-5, 40000 }, { 1e-4, 20000 }, { 1e-3, 10000 },
		{ 1e-2, 5000 } };

	printf("| loss, each way | go-back-N, Gb/s | sent again | out-of-order window, Gb/s | sent "
	       "again |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		double again[2];
		double plain = goodput_gbps(rows[i].loss, 0, rows[i].messages, &again[0]);
		double kept = goodput_gbps(rows[i].loss, 256, rows[i].messages, &again[1]);

		printf("| %g | %.1f | %.2f %% | %.1f | %.2f %% |\n", rows[i].loss, plain,
			100 * again[0], kept, 100 * again[1]);
		fflush(stdout);
	}
	return 0;
}
