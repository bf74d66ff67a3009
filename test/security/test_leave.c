/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no packet outlives its device: buffers may be the device's own, and another device may get
 * its number; and copies of raw packets leave room for RoCE where those wait. Method: an engine
 * without threads, with packets of two devices wherever they may wait for an lcore; one of the
 * devices is taken away. More frames than there is room for, for a queue pair that is said to be
 * another lcore's.
 */
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_counter.h"
#include "rcd_dev.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_hand_over.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_raw.h"
#include "rcd_tap.h"
#include "rcd_thread.h"

#define BUFFERS 255
#define LEN     64 /**< of a frame that is copied */
#define QPN     77
#define WAITING 12 /**< in each place: every third is of the device that goes */

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct rcd_engine *engine;
static struct rte_mempool *pool;

static void
add_wire(const char *name, const char *peer)
{
	struct rcd_dev_conf conf = { .attach = RCD_ATTACH_WIRE };
	char error[200] = "";

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.target, sizeof(conf.target), "%s", peer);
	CU_ASSERT_EQUAL(rcd_engine_dev_add(engine, &conf, error, sizeof(error)), 0);
}

/* The packet of this number in a place; its length tells it from others. Some are copies. */
static struct rte_mbuf *
packet(uint32_t number, uint32_t goes, uint32_t stays)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	mbuf->hash.usr = number % 3 == 1 ? goes : stays;
	mbuf->hash.usr |= number % 2 == 0 ? RCD_HAND_OVER_SNIFFED : 0;
	mbuf->data_len = (uint16_t)number;
	return mbuf;
}

/* Those that are left are the others, in order. */
static uint32_t
right(struct rte_mbuf **mbufs, uint32_t count, uint32_t stays)
{
	uint32_t number = 0;
	uint32_t fine = 0;

	for (uint32_t i = 0; i < count; i++, number++) {
		number += number % 3 == 1;
		fine += (mbufs[i]->hash.usr & ~RCD_HAND_OVER_SNIFFED) == stays &&
			mbufs[i]->data_len == number;
	}
	return fine;
}

static void
device_goes(void)
{
	struct rcd_lcore *lcore = rcd_engine_lcore(engine, 0);
	struct rte_ring *rings[] = { lcore->rest.groups, lcore->loop, lcore->handover };
	const uint32_t left = WAITING - WAITING / 3;
	uint32_t goes, stays;

	add_wire("a0", "a1");
	add_wire("a1", "a0");
	add_wire("b0", "b1");
	add_wire("b1", "b0");
	goes = rcd_dev_find(&engine->ports, "a0")->lport.index;
	stays = rcd_dev_find(&engine->ports, "b0")->lport.index;
	for (uint32_t i = 0; i < WAITING; i++) {
		lcore->rest.mbufs[lcore->rest.count++] = packet(i, goes, stays);
		for (size_t k = 0; k < RCD_ARRAY_COUNT(rings); k++)
			CU_ASSERT_EQUAL(rte_ring_enqueue(rings[k], packet(i, goes, stays)), 0);
	}
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "a0"), 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), 4 * left);
	CU_ASSERT_EQUAL(lcore->rest.count, left);
	CU_ASSERT_EQUAL(right(lcore->rest.mbufs, lcore->rest.count, stays), left);
	for (size_t k = 0; k < RCD_ARRAY_COUNT(rings); k++) {
		struct rte_mbuf *mbufs[WAITING];
		uint32_t count = rte_ring_dequeue_burst(rings[k], (void **)mbufs, WAITING, NULL);

		CU_ASSERT_EQUAL(count, left);
		CU_ASSERT_EQUAL(right(mbufs, count, stays), left);
		rte_pktmbuf_free_bulk(mbufs, count);
	}
}

static struct rte_mbuf *
frame(struct rcd_lcore *lcore)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(lcore->pool);

	memset(rte_pktmbuf_append(mbuf, LEN), 1, LEN);
	return mbuf;
}

static void
copies_leave_room(void)
{
	struct rcd_raw_count counts[RCD_FLOWS_MAX] = { { 0 } };
	struct rcd_raw_table table = {
		.count = 1, .counts = counts, .flows = { { .qpn = QPN, .kind = RCD_FLOW_ALL } }
	};
	struct rcd_lcore *lcore = rcd_engine_lcore(engine, 0);
	struct rcd_lcore *owner = rcd_engine_lcore(engine, 1);
	struct rcd_lport *lport = &rcd_dev_find(&engine->ports, "b1")->lport;
	const struct rcd_counters *set = rcd_lcore_counters(lcore, lport);
	uint32_t half = rte_ring_get_capacity(owner->handover) / 2;
	struct rcd_thread_place before;
	uint32_t roce = 0;

	lport->flows = &table;
	lcore->lcores->qp_owner[QPN] = (uint8_t)(owner->index + 1);
	before = rcd_thread_enter(lcore, lcore->index);
	for (uint32_t i = 0; i < 2 * half; i++) {
		struct rte_mbuf *mbuf = frame(lcore);

		rcd_raw_rx(lcore, lport, mbuf, false);
		rte_pktmbuf_free(mbuf);
	}
	CU_ASSERT_EQUAL(rte_ring_count(owner->handover), half);
	CU_ASSERT_EQUAL(counts[0].frames, 2 * half);
	CU_ASSERT_EQUAL(rcd_counter_get(set, RCD_COUNTER_RX_DROP_COPIES), half);
	for (; !rte_ring_full(owner->handover); roce++)
		rcd_hand_over(lcore, owner, lport, frame(lcore));
	CU_ASSERT(roce >= half);
	CU_ASSERT_EQUAL(rcd_counter_get(set, RCD_COUNTER_RX_DROP_HANDOVER), 0);
	rcd_thread_leave(before);
	lport->flows = NULL;
	lcore->lcores->qp_owner[QPN] = 0;
}

/* With the last device nothing is left, and the engine ends. */
static void
last_device_goes(void)
{
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "b1"), 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), 0);
	rcd_engine_destroy(engine);
	rte_mempool_free(pool);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S8 packets that wait go with their device", device_goes },
		{ "copies of raw packets leave room for RoCE", copies_leave_room },
		{ "S8 nothing is left of the last device", last_device_goes },
	};
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "leave", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "192",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "--lcores",
		(char *)(uintptr_t) "(0-2)@0", (char *)(uintptr_t) "--file-prefix", prefix };
	struct rcd_engine_conf conf;
	char error[200] = "";

	snprintf(prefix, sizeof(prefix), "rcdleave%d", (int)getpid());
	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0)
		return 1;
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 8191;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	pool = rte_pktmbuf_pool_create("leave", BUFFERS, 0, 0, 256, SOCKET_ID_ANY);
	if (engine == NULL || pool == NULL)
		return 1;
	return rcd_tap_run("leave", tests, sizeof(tests) / sizeof(tests[0]));
}
