/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A capture appliance: what comes in by the first port is written into a ring of another machine,
 * by RDMA over the second. A burst is one WRITE of buffers as the port filled them. What the ring
 * has no room for stays in the port, which drops and counts it. The other end: collector.c.
 *
 *   inline-sink [EAL OPTIONS] -- 10.0.0.2/24 192.0.2.1:4000
 */
#include <errno.h>
#include <inttypes.h>
#include <rcd_clock.h>
#include <rcd_dev_conf.h>
#include <rcd_engine.h>
#include <rcd_inline.h>
#include <rcd_local.h>
#include <rcd_poll.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "meet.h"
#include "ring.h"
#include "start_port.h"

#define BURST    8 /**< packets of a WRITE */
#define SGES     31
#define DEPTH    512
#define BATCHES  (DEPTH / 2) /**< WRITEs on their way; each is followed by one of the tail */
#define PIECES   2           /**< of a packet; all of a burst, with a record each, fit SGES */
#define LONGEST  2048
#define CAPTURED 0 /**< port */
#define NETWORK  1

static struct {
	struct rcd_engine *engine;
	struct rcd_lcore *lcore;
	struct rcd_inline *dev;
	struct rcd_local *local;
	struct rcd_local_pool *pool;
	struct rcd_local_cq *cq;
	struct rcd_local_qp *qp;
	struct ring_end far; /**< the collector's */
	uint64_t tail, head; /**< bytes written, and of those what is free again */
	uint64_t batches, packets, too_long;
	struct rcd_key key; /**< of what follows, which stays until it is sent */
	bool asked;         /**< for the head, which comes here: */
	uint64_t head_read;
	struct ring_record records[BATCHES][BURST];
} sink;

static volatile sig_atomic_t stop;

static void
on_signal(int signo)
{
	(void)signo;
	stop = 1;
}

static int
say(const char *what, int err)
{
	fprintf(stderr, "inline-sink: %s: %s\n", what, strerror(-err));
	return -1;
}

/* Frames between the second port and the engine, and a round of it. */
static void
round_once(void)
{
	struct rte_mbuf *mbufs[32];
	uint16_t count = rte_eth_rx_burst(NETWORK, 0, mbufs, 32);

	count = rcd_inline_rx(sink.dev, sink.lcore, mbufs, count);
	rte_pktmbuf_free_bulk(mbufs, count);
	rcd_lcore_poll(sink.lcore, rcd_clock_ns(), 32);
	while ((count = rcd_inline_tx(sink.dev, sink.lcore, mbufs, 32)) > 0) {
		uint16_t sent = rte_eth_tx_burst(NETWORK, 0, mbufs, count);

		rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
	}
	rcd_engine_step(sink.engine, 0);
}

/* @return 0 or -errno: the queue pair is of no use any more */
static int
take_completions(void)
{
	struct rcd_cq_slot done;
	int count = rcd_local_poll_cq(sink.cq, &done, 1);

	if (count <= 0)
		return count;
	sink.head = sink.head_read;
	sink.asked = false;
	return done.status == RCD_WC_SUCCESS ? 0 : -EIO;
}

static int
post(uint8_t opcode, uint8_t flags, struct rcd_sge *sges, int count, uint64_t va,
	struct rte_mbuf *mbuf)
{
	struct rcd_send_wr wr = { .opcode = opcode,
		.flags = flags,
		.sge_count = (uint8_t)count,
		.sges = sges,
		.remote = { .va = va, .rkey = { sink.far.key } } };

	return rcd_local_post_send(sink.qp, &wr, mbuf);
}

/* The head of the far ring, when half of it is full. */
static int
ask_head(void)
{
	struct rcd_sge sge = { (uintptr_t)&sink.head_read, sizeof(sink.head_read), sink.key };

	if (sink.asked || sink.tail - sink.head < sink.far.bytes / 2)
		return 0;
	sink.asked = true;
	return post(RCD_WR_RDMA_READ, RCD_SEND_SIGNALED, &sge, 1, sink.far.head_va, NULL);
}

/* A burst becomes one WRITE, and the tail is told behind it. */
static int
write_burst(struct rte_mbuf **mbufs, uint16_t count)
{
	struct ring_record *records = sink.records[sink.batches++ % BATCHES];
	struct rcd_sge sges[SGES], tail;
	uint64_t left = sink.far.bytes - sink.tail % sink.far.bytes;
	int used = 0, pieces, err;
	uint64_t va;

	/* At the beginning of the ring, when it may not fit at the end: both ends count alike. */
	sink.tail += left < RING_BATCH_MOST ? left : 0;
	va = sink.far.va + sink.tail % sink.far.bytes;
	for (uint16_t i = 0; i < count; i++) {
		records[i] = (struct ring_record){ .len = rte_pktmbuf_pkt_len(mbufs[i]),
			.number = (uint32_t)sink.packets++,
			.time_ns = rcd_clock_ns() };
		sges[used++] =
			(struct rcd_sge){ (uintptr_t)&records[i], sizeof(*records), sink.key };
		pieces = rcd_local_pool_sges(sink.pool, mbufs[i], sges + used, PIECES);
		if (pieces < 0)
			return pieces;
		used += pieces;
		sink.tail += sizeof(*records) + records[i].len;
		/* They go together, and are free together. */
		if (i > 0)
			rte_pktmbuf_chain(mbufs[0], mbufs[i]);
	}
	records[0].tail = sink.tail;
	tail = (struct rcd_sge){ (uintptr_t)&records[0].tail, sizeof(records[0].tail), sink.key };
	err = post(RCD_WR_RDMA_WRITE, 0, sges, used, va, mbufs[0]);
	err = err != 0 ? err : post(RCD_WR_RDMA_WRITE, 0, &tail, 1, sink.far.tail_va, NULL);
	rcd_local_ring(sink.qp);
	return err;
}

/* Who can send on the wire can't end the capture: what no record holds is counted. */
static uint16_t
without_long(struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < count; i++) {
		if (rte_pktmbuf_pkt_len(mbufs[i]) <= LONGEST && mbufs[i]->nb_segs <= PIECES)
			mbufs[kept++] = mbufs[i];
		else
			rte_pktmbuf_free(mbufs[i]);
	}
	sink.too_long += (uint64_t)(count - kept);
	return kept;
}

static int
capture(void)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count = 0;
	int err = ask_head();

	rcd_local_ring(sink.qp);
	if (err == 0 && rcd_local_qp_sends(sink.qp) + 4 <= DEPTH &&
		sink.tail + 2 * RING_BATCH_MOST - sink.head <= sink.far.bytes)
		count = without_long(mbufs, rte_eth_rx_burst(CAPTURED, 0, mbufs, BURST));
	if (count == 0)
		sched_yield();
	return count > 0 ? write_burst(mbufs, count) : err;
}

static int
run(void)
{
	int err = 0;

	/* In the end what was captured is waited for. */
	while (err == 0 && (!stop || rcd_local_qp_sends(sink.qp) > 0)) {
		round_once();
		err = take_completions();
		if (err == 0 && !stop)
			err = capture();
	}
	printf("inline-sink: %" PRIu64 " packets, %" PRIu64 " too long, %" PRIu64
	       " bytes of the ring\n",
		sink.packets, sink.too_long, sink.tail);
	return err == 0 ? 0 : say("the collector is gone", err);
}

/* All that the loop works with. @return the collector's socket, or -1 */
static int
prepare(struct rte_mempool *pool, const char *collector)
{
	static struct rcd_ctrl_gids_rep gids;
	struct rcd_local_qp_conf conf = { .type = RCD_QP_RC,
		.sq_depth = DEPTH,
		.rq_depth = 1,
		.max_send_sge = SGES,
		.max_recv_sge = 1 };
	struct ring_end mine = { .psn = (uint32_t)rcd_clock_ns() & 0xffffff };
	int fd, err = rcd_local_open(sink.engine, "sink0", 0, &sink.local);

	if (err != 0 || (err = rcd_local_pd_create(sink.local, &conf.pd)) != 0 ||
		(err = rcd_local_pool_reg(sink.local, conf.pd, pool, 0, &sink.pool)) != 0 ||
		(err = rcd_local_mr_reg(sink.local, conf.pd, &sink, sizeof(sink),
			 RCD_ACCESS_LOCAL_WRITE, &sink.key)) != 0 ||
		(err = rcd_local_cq_create(sink.local, DEPTH, 0, &sink.cq)) != 0 ||
		(err = rcd_local_gids(sink.local, &gids)) != 0)
		return say("no memory or queue", err);
	conf.send_cq = conf.recv_cq = sink.cq;
	err = rcd_local_qp_create(sink.local, &conf, &sink.qp);
	if (err != 0)
		return say("no queue pair", err);
	memcpy(mine.gid, gids.gids[1].raw, sizeof(mine.gid));
	mine.qpn = rcd_local_qp_num(sink.qp);
	fd = meet(collector, &mine, &sink.far);
	err = fd >= 0 ? -EINPROGRESS : fd;
	while (err == -EINPROGRESS && !stop) {
		round_once();
		err = connect_qp(sink.qp, fd, &mine, &sink.far);
	}
	return err == 0 ? fd : say(collector, err);
}

static int
make_device(struct rcd_dev_conf *dev, char *error, size_t error_len)
{
	struct rcd_engine_conf conf;

	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.lcores = 1;
	snprintf(dev->name, sizeof(dev->name), "sink0");
	rte_eth_macaddr_get(NETWORK, (struct rte_ether_addr *)dev->mac);
	sink.engine = rcd_engine_create(&conf, error, error_len);
	if (sink.engine == NULL)
		return -1;
	sink.lcore = rcd_engine_lcore(sink.engine, 0);
	sink.dev = rcd_inline_create(sink.engine, dev, error, error_len);
	return sink.dev != NULL ? 0 : -1;
}

int
main(int argc, char **argv)
{
	struct rcd_dev_conf dev = { .addr_count = 0 };
	struct rte_mempool *pool;
	char error[256] = "inline-sink [EAL OPTIONS] -- ADDRESS/LENGTH IPV4:PORT";
	int used = rte_eal_init(argc, argv), status = 1;

	if (used < 0 || argc - used != 3 ||
		rcd_dev_conf_set(&dev, "address", argv[used + 1], error, sizeof(error)) != 0) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	pool = rte_pktmbuf_pool_create(
		"ports", 16383, 256, 0, RTE_PKTMBUF_HEADROOM + LONGEST, SOCKET_ID_ANY);
	snprintf(error, sizeof(error), "no two ports that start");
	if (pool == NULL || start_port(CAPTURED, 1, pool, true) != 0 ||
		start_port(NETWORK, 1, pool, false) != 0 ||
		make_device(&dev, error, sizeof(error)) != 0)
		fprintf(stderr, "inline-sink: %s\n", error);
	else if (prepare(pool, argv[used + 2]) >= 0)
		status = run() != 0;
	if (sink.pool != NULL)
		rcd_local_pool_dereg(sink.pool);
	if (sink.local != NULL)
		rcd_local_close(sink.local);
	rcd_inline_destroy(sink.dev);
	start_port_stop(NETWORK + 1);
	rcd_engine_destroy(sink.engine);
	return status;
}
