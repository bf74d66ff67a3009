/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what the transport alone costs: cycles per request packet, requester and responder
 * together, acknowledges included, beside a memcpy of the same bytes in the same run.
 *
 * Method: two queue pairs in one thread hand each other packets as structs; WRITEs of 8 bytes, the
 * window full, bursts of 32. No wire format, no ICRC. Medians over rounds; prints, judges nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "rcd_bring_up.h"
#include "rcd_check.h"
#include "rcd_qp.h"

enum {
	DEPTH = 256,
	BURST = 32,
	ROUNDS = 101,
	PACKETS = 20000,
	MEMORY = 1 << 16,
	PD = 1,
};

struct end {
	struct rcd_qp *qp;
	struct rcd_mr_table *mrs;
	struct rcd_key key, peer_key;
	uint8_t *memory;
	struct rcd_counters counters;
	uint64_t posted, completed;
	uint32_t len;
};

static uint64_t
cycles(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
#endif
}

static int
fetch_send(void *arg, uint32_t number, struct rcd_send_wr *wr)
{
	struct end *end = arg;

	if ((int32_t)((uint32_t)end->posted - number) <= 0)
		return -EAGAIN;
	wr->wr_id = number;
	wr->opcode = RCD_WR_RDMA_WRITE;
	wr->flags = RCD_SEND_SIGNALED;
	wr->sge_count = 1;
	wr->sges[0] = (struct rcd_sge){ 64 * (number % 512), end->len, end->key };
	wr->remote.va = 64 * (number % 512);
	wr->remote.rkey = end->peer_key;
	return 0;
}

static int
fetch_recv(void *arg, uint32_t number, struct rcd_recv_wr *wr)
{
	(void)arg;
	(void)number;
	(void)wr;
	return -EAGAIN;
}

static void
complete(void *arg, const struct rcd_cqe *cqe)
{
	struct end *end = arg;

	RCD_CHECK(cqe->status == RCD_WC_SUCCESS);
	end->completed++;
}

static void
event(void *arg, enum rcd_event what)
{
	(void)arg;
	(void)what;
}

static const struct rcd_qp_ops ops = { fetch_send, fetch_recv, complete, event };

static void
make_end(struct end *end, uint32_t qpn)
{
	struct rcd_mr_attr region = {
		.pd = PD, .access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE, .len = MEMORY
	};
	struct rcd_qp_init init = { .type = RCD_QP_RC,
		.qpn = { qpn },
		.pd = PD,
		.sq_depth = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_rd_atomic = 4,
		.port_mtu_bytes = 1024,
		.counters = &end->counters,
		.ops = &ops,
		.arg = end };

	end->memory = region.base = calloc(1, MEMORY);
	end->mrs = init.mrs = rcd_mr_table_create(4, qpn);
	RCD_CHECK(rcd_mr_register(end->mrs, &region, &end->key) == 0);
	end->qp = rcd_qp_init(aligned_alloc(64, (rcd_qp_size(&init) + 63) & ~(size_t)63), &init);
	RCD_CHECK(end->qp != NULL);
}

static void
connect_end(struct end *end, uint32_t dest)
{
	struct rcd_qp_attr attr = { .access = RCD_ACCESS_REMOTE,
		.port = 1,
		.path_mtu_bytes = 1024,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.dest_qpn = { dest } };

	rcd_bring_up(end->qp, RCD_QP_RC, attr, RCD_QP_RTS);
}

/* A burst from one to the other; the payload stays where it is. @return packets */
static uint32_t
move(struct end *from, struct end *to, uint64_t now_ns)
{
	static struct rcd_pkt pkts[BURST];
	struct rcd_tx_pkt tx;
	uint32_t count = 0;

	while (count < BURST && rcd_qp_tx_next(from->qp, now_ns, &tx)) {
		struct rcd_pkt *pkt = &pkts[count++];

		pkt->roce.bth = tx.roce.bth;
		pkt->roce.reth = tx.roce.reth;
		pkt->roce.aeth = tx.roce.aeth;
		pkt->payload = tx.pieces[0].base;
		pkt->payload_len = (uint16_t)tx.payload_len;
	}
	for (uint32_t i = 0; i < count; i++)
		rcd_qp_rx(to->qp, &pkts[i], now_ns);
	return count;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
median(double *values)
{
	qsort(values, ROUNDS, sizeof(values[0]), by_value);
	return values[ROUNDS / 2];
}

static void
measure(struct end *a, struct end *b, uint32_t len)
{
	static double transport[ROUNDS], copy[ROUNDS];
	uint64_t now_ns = 1, acks = 0, requests = 0;

	a->len = len;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t until = a->completed + PACKETS;
		uint64_t begin = cycles();

		while (a->completed < until) {
			a->posted = a->completed + DEPTH;
			requests += move(a, b, ++now_ns);
			acks += move(b, a, now_ns);
		}
		transport[round] = (double)(cycles() - begin) / PACKETS;
		begin = cycles();
		for (uint32_t i = 0; i < PACKETS; i++) {
			memcpy(b->memory + 64 * (i % 512), a->memory + 64 * (i % 512), len);
			__asm__ volatile("" ::: "memory");
		}
		copy[round] = (double)(cycles() - begin) / PACKETS;
	}
	printf("%8u %22.0f %18.2f %16.1f\n", len, median(transport),
		(double)acks / (double)requests, median(copy));
}

int
main(void)
{
	static struct end a, b;

	make_end(&a, 17);
	make_end(&b, 18);
	a.peer_key = b.key;
	b.peer_key = a.key;
	connect_end(&a, 18);
	connect_end(&b, 17);
	printf("WRITEs, both halves in one thread, bursts of %d, median of %d rounds\n", BURST,
		ROUNDS);
	printf("%8s %22s %18s %16s\n", "bytes", "TSC cycles per request", "acks per request",
		"memcpy, cycles");
	measure(&a, &b, 8);
	measure(&a, &b, 64);
	measure(&a, &b, 1024);
	return 0;
}
