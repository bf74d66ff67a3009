/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Latency: one message at a time. SEND and WRITE go there and back, and half of that is told, as
 * perftest does; READ and atomics are a round trip by themselves. A WRITE is found by looking at
 * the last byte that it writes.
 */
#include <rte_cycles.h>

#include "bench.h"

static bool
pingpong_answered(const struct bench *bench)
{
	return bench->opts.op < BENCH_READ;
}

static volatile uint8_t *
pingpong_last_byte(const struct bench *bench, uint64_t addr)
{
	return (volatile uint8_t *)(uintptr_t)(addr + bench->size - 1);
}

void
bench_pingpong_prepare(struct bench *bench)
{
	for (uint32_t side = 0; side < 2; side++) {
		struct bench_part *part = &bench->parts[side][0];

		part->waiting = false;
		part->stamp = 0;
		memset(&part->hist, 0, sizeof(part->hist));
		if (bench->opts.op == BENCH_WRITE)
			*pingpong_last_byte(bench, part->qps[0].rx_addr) = 0;
	}
}

static void
pingpong_send_one(struct bench_part *part)
{
	struct bench_qp *qp = &part->qps[0];

	if (part->bench->opts.op == BENCH_WRITE)
		*pingpong_last_byte(part->bench, qp->tx_addr) = ++part->stamp;
	if (bench_post(part, qp, 0, true) == 0)
		rcd_cl_ring(&qp->cl);
}

/* Takes completions. @return messages that came */
static uint32_t
pingpong_take(struct bench_part *part, bool *sent)
{
	struct rcd_cq_slot slots[BENCH_POLL_MAX];
	uint32_t count = rcd_cl_poll(&part->cq, slots, BENCH_POLL_MAX);
	uint32_t came = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (slots[i].status != RCD_WC_SUCCESS) {
			__atomic_store_n(&part->stats.failed, slots[i].status, __ATOMIC_RELEASE);
		} else if (slots[i].wr_id & BENCH_RECV_WR) {
			bench_post_recv(part, &part->qps[0]);
			came++;
		} else {
			*sent = true;
		}
	}
	return came;
}

static void
pingpong_measure(struct bench_part *part, uint64_t tsc)
{
	uint64_t cycles = tsc - part->begin_tsc;

	hist_add(&part->hist, pingpong_answered(part->bench) ? cycles / 2 : cycles);
	__atomic_store_n(&part->stats.completed, part->stats.completed + 1, __ATOMIC_RELAXED);
	part->waiting = false;
}

uint32_t
bench_pingpong_poll(struct bench_part *part)
{
	const struct bench *bench = part->bench;
	bool first = part == &bench->parts[0][0];
	bool sent = false;
	bool arrived;
	uint32_t came;

	if (part != &bench->parts[first ? 0 : 1][0] || part->stats.failed != 0)
		return 0;
	came = pingpong_take(part, &sent);
	if (bench->opts.op == BENCH_WRITE) {
		/* What was awaited is one more than what was last sent; or the same, at the far end
		 * of the first half. */
		uint8_t wanted = (uint8_t)(first ? part->stamp : part->stamp + 1);

		arrived = *pingpong_last_byte(bench, part->qps[0].rx_addr) == wanted &&
			(first ? part->waiting : true);
	} else {
		arrived = pingpong_answered(bench) ? came > 0 : sent;
	}
	if (first) {
		if (part->waiting && arrived)
			pingpong_measure(part, rte_rdtsc());
		if (!part->waiting) {
			part->waiting = true;
			part->begin_tsc = rte_rdtsc();
			pingpong_send_one(part);
		}
	} else if (arrived && pingpong_answered(bench)) {
		pingpong_send_one(part);
	}
	return came + sent + arrived;
}
