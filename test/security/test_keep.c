/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: payloads that came out of order stay in their buffers, and a peer that sends nothing else
 * has a small part of the pool and no buffer of anybody else's; what was kept comes back once.
 * Method: an engine without threads; bursts as an lcore has them, of buffers of each kind, are put
 * into lists and dropped.
 */
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_reorder.h"
#include "rcd_rx_keep.h"
#include "rcd_tap.h"
#include "rcd_thread.h"

#define BUFFERS   2047
#define FOREIGN   63
#define LEN       1024
#define PER_LCORE 128 /**< at most */
#define SHARE     16  /**< of the pool one in so many, of all lcores together */

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct rcd_engine *engine;
static struct rte_mempool *foreign;
static struct rte_mbuf *burst[RCD_BURST_MAX];
static uint32_t next_psn;

static struct rte_mbuf *
buffer(struct rte_mempool *pool)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);

	CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
	memset(rte_pktmbuf_append(mbuf, LEN), 7, LEN);
	return mbuf;
}

/* A packet at a place of the burst. @return whether a list has it */
static bool
keep(struct rcd_lcore *lcore, struct rcd_kept_list *list, uint32_t at, struct rte_mbuf *mbuf,
	uint32_t len)
{
	struct rcd_pkt *pkt = &lcore->pkts[at];

	burst[at] = mbuf;
	lcore->burst = burst;
	*pkt = (struct rcd_pkt){ .payload = rte_pktmbuf_mtod(mbuf, uint8_t *), .payload_len = len };
	pkt->roce.bth.psn = rcd_psn(next_psn++);
	return rcd_reorder_keep(lcore->reorder, list, pkt);
}

/* What an lcore does with a burst when it has looked at it. */
static void
end_burst(struct rcd_lcore *lcore)
{
	lcore->burst = NULL;
	for (uint32_t i = 0; i < RCD_BURST_MAX; i++) {
		rte_pktmbuf_free(burst[i]);
		burst[i] = NULL;
	}
}

/* So many packets out of order, in bursts. @return how many are in their buffers */
static uint32_t
flood(struct rcd_lcore *lcore, struct rcd_kept_list *list, uint32_t count)
{
	uint32_t before = lcore->buffers_kept;

	for (uint32_t i = 0; i < count; i++) {
		CU_ASSERT(keep(lcore, list, i % RCD_BURST_MAX, buffer(lcore->pool), LEN));
		if (i % RCD_BURST_MAX == RCD_BURST_MAX - 1)
			end_burst(lcore);
	}
	end_burst(lcore);
	return lcore->buffers_kept - before;
}

static void
stays_in_its_buffer(void)
{
	struct rcd_lcore *lcore = rcd_engine_lcore(engine, 0);
	struct rcd_thread_place before = rcd_thread_enter(lcore, lcore->index);
	struct rcd_kept_list list = { .first = NULL };
	struct rte_mbuf *mbuf = buffer(lcore->pool);

	CU_ASSERT(keep(lcore, &list, 3, mbuf, LEN));
	CU_ASSERT_PTR_EQUAL(list.first->payload, rte_pktmbuf_mtod(mbuf, uint8_t *));
	CU_ASSERT_PTR_NULL(burst[3]);
	end_burst(lcore);
	CU_ASSERT_EQUAL(lcore->buffers_kept, 1);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(lcore->pool), 1);
	rcd_reorder_drop(lcore->reorder, &list);
	CU_ASSERT_EQUAL(lcore->buffers_kept, 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(lcore->pool), 0);
	rcd_thread_leave(before);
}

/* However much comes out of order: all are kept, most of them as copies. */
static void
of_a_pool_a_part(void)
{
	uint32_t lcores = engine->lcores.count;
	uint32_t most = BUFFERS / SHARE / lcores + 1;
	struct rcd_kept_list lists[RCD_LCORES_MAX] = { { .first = NULL } };
	struct rte_mempool *pool = rcd_engine_lcore(engine, 0)->pool;
	uint32_t sum = 0;

	CU_ASSERT(lcores > 1);
	most = most < PER_LCORE ? most : PER_LCORE;
	for (uint32_t i = 0; i < lcores; i++) {
		struct rcd_lcore *lcore = rcd_engine_lcore(engine, i);
		struct rcd_thread_place before = rcd_thread_enter(lcore, i);
		uint32_t kept = flood(lcore, &lists[i], RCD_REORDER_WINDOW);

		CU_ASSERT(kept > 0 && kept <= most);
		sum += kept;
		rcd_thread_leave(before);
	}
	CU_ASSERT(sum <= BUFFERS / SHARE + lcores);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), sum);
	for (uint32_t i = 0; i < lcores; i++) {
		struct rcd_lcore *lcore = rcd_engine_lcore(engine, i);
		struct rcd_thread_place before = rcd_thread_enter(lcore, i);

		rcd_reorder_drop(lcore->reorder, &lists[i]);
		CU_ASSERT_EQUAL(lcore->buffers_kept, 0);
		rcd_thread_leave(before);
	}
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), 0);
}

/* @return whether it is a copy, and the buffer is left to the burst */
static bool
copied(struct rcd_lcore *lcore, struct rte_mbuf *mbuf, uint32_t len)
{
	struct rcd_kept_list list = { .first = NULL };
	bool fine = keep(lcore, &list, 0, mbuf, len) && list.first->held == NULL &&
		list.first->payload == list.first->copy && burst[0] == mbuf &&
		lcore->buffers_kept == 0;

	end_burst(lcore);
	rcd_reorder_drop(lcore->reorder, &list);
	return fine;
}

/* What is not only ours, has its bytes elsewhere, or is not worth it. */
static void
others_are_copied(void)
{
	struct rcd_lcore *lcore = rcd_engine_lcore(engine, 0);
	struct rcd_thread_place before = rcd_thread_enter(lcore, lcore->index);
	struct rcd_kept_list list = { .first = NULL };
	struct rte_mbuf *mbuf = buffer(lcore->pool);
	struct rte_mbuf *chain = buffer(lcore->pool);
	static struct rcd_pkt nowhere;
	static uint8_t bytes[LEN];

	CU_ASSERT(copied(lcore, buffer(foreign), LEN));
	CU_ASSERT(copied(lcore, rte_pktmbuf_clone(mbuf, lcore->pool), LEN));
	rte_pktmbuf_free(mbuf);
	CU_ASSERT_EQUAL(rte_pktmbuf_chain(chain, buffer(lcore->pool)), 0);
	CU_ASSERT(copied(lcore, chain, LEN));
	CU_ASSERT(copied(lcore, buffer(lcore->pool), RCD_REORDER_COPY_MAX));
	/* In no burst. */
	nowhere = (struct rcd_pkt){ .payload = bytes, .payload_len = LEN };
	lcore->burst = burst;
	CU_ASSERT(rcd_reorder_keep(lcore->reorder, &list, &nowhere));
	CU_ASSERT_PTR_NULL(list.first->held);
	rcd_reorder_drop(lcore->reorder, &list);
	lcore->pkts[1] = nowhere;
	CU_ASSERT(rcd_reorder_keep(lcore->reorder, &list, &lcore->pkts[1]));
	CU_ASSERT_PTR_NULL(list.first->held);
	rcd_reorder_drop(lcore->reorder, &list);
	end_burst(lcore);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(lcore->pool), 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(foreign), 0);
	rcd_thread_leave(before);
}

/* One that another has as well is given back by both. */
static void
shared_with_another(void)
{
	struct rcd_lcore *lcore = rcd_engine_lcore(engine, 0);
	struct rcd_thread_place before = rcd_thread_enter(lcore, lcore->index);
	struct rcd_kept_list list = { .first = NULL };
	struct rte_mbuf *mbuf = buffer(lcore->pool);

	rte_pktmbuf_refcnt_update(mbuf, 1);
	CU_ASSERT(keep(lcore, &list, 0, mbuf, LEN));
	end_burst(lcore);
	rcd_reorder_drop(lcore->reorder, &list);
	CU_ASSERT_EQUAL(lcore->buffers_kept, 0);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(lcore->pool), 1);
	CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(mbuf), 1);
	rte_pktmbuf_free(mbuf);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(lcore->pool), 0);
	rcd_thread_leave(before);
}

static void
the_engine_ends(void)
{
	rcd_engine_destroy(engine);
	rte_mempool_free(foreign);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(stays_in_its_buffer),
		RCD_TEST(of_a_pool_a_part),
		RCD_TEST(others_are_copied),
		RCD_TEST(shared_with_another),
		RCD_TEST(the_engine_ends),
	};
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "keep", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "192",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "--lcores",
		(char *)(uintptr_t) "(0-2)@0", (char *)(uintptr_t) "--file-prefix", prefix };
	struct rcd_engine_conf conf;
	char error[200] = "";

	snprintf(prefix, sizeof(prefix), "rcdkeep%d", (int)getpid());
	if (rte_eal_init(sizeof(args) / sizeof(args[0]), args) < 0)
		return 1;
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = BUFFERS;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	foreign = rte_pktmbuf_pool_create("foreign", FOREIGN, 0, 0, 2048, SOCKET_ID_ANY);
	if (engine == NULL || foreign == NULL)
		return 1;
	return rcd_tap_run("keep", tests, sizeof(tests) / sizeof(tests[0]));
}
