/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what loss costs. Method: a link of 100 Gb/s and 20 us round trip in virtual time, MTU 4096,
 * with a receiver that drops what comes out of order (go-back-N) and with one that keeps it.
 *
 *   goodput of 64 KiB WRITEs, and of 1 MiB READs, 16 outstanding, at several loss rates
 *   how long a SEND of 64 bytes takes, one at a time
 *
 * Prints tables in Markdown; a record, no gate.
 */
#include <stdio.h>
#include <stdlib.h>

#include "rcd_check.h"
#include "sim.h"

enum {
	MEMORY = 1 << 21,
	OUTSTANDING = 16,
	PD = 1,
	ROUND_TRIP_NS = 20000,
	MESSAGES_MAX = 50000,
};

/* A run. */
struct job {
	enum rcd_wr_opcode opcode;
	uint32_t size; /**< bytes of a message */
	uint32_t outstanding;
	uint64_t messages;
	double loss;
	uint32_t kept; /**< room for packets out of order; 0: go-back-N */
	bool sack;
};

static struct {
	const struct job *job;
	struct sim sim;
	struct rcd_key keys[2];
	uint64_t done;
	uint64_t last_ns;
	uint64_t posted_ns[OUTSTANDING]; /**< of the last ones */
	uint64_t took_ns[MESSAGES_MAX];
	double gbps, again;
} run;

static void
post_recv(struct sim_qp *qp)
{
	uint32_t number = qp->rq.posted % SIM_QUEUE_MAX;

	qp->rq.sges[number][0] = (struct rcd_sge){ 0, run.job->size, run.keys[1] };
	qp->rq.wrs[number] = (struct rcd_recv_wr){ .sge_count = 1 };
	qp->rq.filled = ++qp->rq.posted;
}

static void
post_one(struct sim_qp *qp)
{
	uint32_t number = qp->sq.posted % SIM_QUEUE_MAX;

	if (run.job->opcode == RCD_WR_SEND)
		post_recv(&run.sim.nodes[1].qps[0]);
	qp->sq.sges[number][0] = (struct rcd_sge){ 0, run.job->size, run.keys[0] };
	qp->sq.wrs[number] = (struct rcd_send_wr){
		.wr_id = qp->sq.posted,
		.opcode = (uint8_t)run.job->opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.remote = { .va = 0, .rkey = run.keys[1] },
	};
	run.posted_ns[qp->sq.posted % OUTSTANDING] = run.sim.now_ns;
	qp->sq.posted++;
}

static void
on_cqe(void *arg, struct sim_node *node, const struct rcd_cqe *cqe)
{
	(void)arg;
	node->cqe_count = 0;
	RCD_CHECK(cqe->status == RCD_WC_SUCCESS);
	if (node != &run.sim.nodes[0])
		return;
	run.last_ns = run.sim.now_ns;
	run.took_ns[run.done] = run.last_ns - run.posted_ns[run.done % OUTSTANDING];
	run.done++;
	if (node->qps[0].sq.posted < run.job->messages)
		post_one(&node->qps[0]);
}

static void
run_job(const struct job *job)
{
	struct sim *sim = &run.sim;
	struct rcd_qp_init init = { .type = RCD_QP_RC,
		.pd = PD,
		.sq_depth = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_rd_atomic = OUTSTANDING,
		.port_mtu_bytes = 4096 };
	struct rcd_qp_attr attr;
	struct sim_qp *a, *b;

	RCD_CHECK(job->messages <= MESSAGES_MAX && job->outstanding <= OUTSTANDING);
	run.job = job;
	run.done = 0;
	sim_init(sim, 7, MEMORY, job->kept);
	attr = sim_attr(sim);
	attr.path_mtu_bytes = 4096;
	attr.timeout = 10;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = OUTSTANDING;
	for (uint32_t node = 0; node < 2; node++) {
		struct rcd_mr_attr region = { .pd = PD,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.len = MEMORY,
			.base = sim->nodes[node].memory };

		RCD_CHECK(rcd_mr_register(sim->nodes[node].mrs, &region, &run.keys[node]) == 0);
		sim->nodes[node].out.delay_ns = ROUND_TRIP_NS / 2;
		sim->nodes[node].out.gbps = 100;
		sim->nodes[node].out.loss = job->loss;
	}
	a = sim_qp_create(&sim->nodes[0], &init);
	b = sim_qp_create(&sim->nodes[1], &init);
	sim_connect(a, b, &attr, &attr);
	if (job->sack) {
		sim_agree_sack(a);
		sim_agree_sack(b);
	}
	sim->nodes[0].on_cqe = sim->nodes[1].on_cqe = on_cqe;
	for (uint32_t i = 0; i < job->outstanding; i++)
		post_one(a);
	RCD_CHECK(sim_run(sim, UINT64_MAX) && run.done == job->messages);
	run.gbps = (double)job->messages * job->size * 8 / (double)(run.last_ns - 1000);
	run.again =
		(double)rcd_counter_get(&sim->nodes[0].counters, RCD_COUNTER_RETRANSMITTED_PKTS) /
		(double)rcd_counter_get(&sim->nodes[0].counters, RCD_COUNTER_SENT_PKTS);
	sim_fini(sim);
}

static void
print_goodput(void)
{
	static const struct {
		double loss;
		uint64_t writes, reads;
	} rows[] = { { 0, 5000, 300 }, { 1e-5, 40000, 1000 }, { 1e-4, 20000, 1000 },
		{ 1e-3, 10000, 600 }, { 1e-2, 5000, 300 }, { 5e-2, 2000, 100 } };

	printf("| loss, each way | go-back-N, Gb/s | sent again | out-of-order window, Gb/s | sent "
	       "again | SACK, Gb/s | sent again | READ, Gb/s |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct job job = { RCD_WR_RDMA_WRITE, 64 << 10, OUTSTANDING, rows[i].writes,
			rows[i].loss, 0, false };

		run_job(&job);
		printf("| %g | %.1f | %.2f %% |", job.loss, run.gbps, 100 * run.again);
		job.kept = 512;
		run_job(&job);
		printf(" %.1f | %.2f %% |", run.gbps, 100 * run.again);
		job.sack = true;
		run_job(&job);
		printf(" %.1f | %.2f %% |", run.gbps, 100 * run.again);
		job.sack = false;
		job.opcode = RCD_WR_RDMA_READ;
		job.size = 1 << 20;
		job.messages = rows[i].reads;
		run_job(&job);
		printf(" %.1f |\n", run.gbps);
		fflush(stdout);
	}
}

static int
compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static double
round_trips(double share)
{
	return (double)run.took_ns[(size_t)((double)(run.done - 1) * share)] / ROUND_TRIP_NS;
}

static void
print_latency(void)
{
	static const double rows[] = { 0, 1e-3, 1e-2, 5e-2 };

	printf("\n| loss, each way | median, round trips | p99 | p99.9 | longest |\n"
	       "|---|---|---|---|---|\n");
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct job job = { RCD_WR_SEND, 64, 1, MESSAGES_MAX, rows[i], 512, false };

		run_job(&job);
		qsort(run.took_ns, run.done, sizeof(run.took_ns[0]), compare);
		printf("| %g | %.2f | %.2f | %.2f | %.2f |\n", rows[i], round_trips(0.5),
			round_trips(0.99), round_trips(0.999), round_trips(1));
	}
}

int
main(void)
{
	print_goodput();
	print_latency();
	return 0;
}
