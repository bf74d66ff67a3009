/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: buffers that an lcore keeps for packets out of order are few, are its own pool's, and are
 * of the burst that it looks at. Method: an lcore without EAL, whose buffers others have as well,
 * so that none goes back to a pool that is none.
 */
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_reorder.h"
#include "rcd_rx_keep.h"
#include "rcd_tap.h"

enum {
	MANY = 400,     /**< packets out of order */
	KEPT_MOST = 128 /**< as rcd_rx_keep.c has it */
};

static struct rcd_lcore lcore;
static struct rcd_lcores lcores;
static struct rte_mempool own, other;
static struct rte_mbuf mbufs[MANY];
static struct rcd_kept_list list;
static uint8_t payload[1024];

static void
begin(uint32_t pool_size, uint32_t lcore_count)
{
	lcores.count = lcore_count;
	lcore.lcores = &lcores;
	own.size = pool_size;
	lcore.pool = &own;
	lcore.reorder = rcd_reorder_pool_create(MANY);
	CU_ASSERT_PTR_NOT_NULL_FATAL(lcore.reorder);
	rcd_rx_keep_init(&lcore);
	for (uint32_t i = 0; i < MANY; i++)
		mbufs[i] = (struct rte_mbuf){ .pool = &own, .nb_segs = 1, .refcnt = 2 };
}

/* A burst of one packet comes out of order. @return whether its buffer is kept */
static bool
come(uint32_t psn, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *burst[RCD_BURST_MAX] = { [3] = mbuf };

	lcore.burst = burst;
	lcore.pkts[3] = (struct rcd_pkt){
		.roce.bth.psn = rcd_psn(psn), .payload = payload, .payload_len = sizeof(payload)
	};
	CU_ASSERT_TRUE(rcd_reorder_keep(lcore.reorder, &list, &lcore.pkts[3]));
	lcore.burst = NULL;
	return burst[3] == NULL;
}

static void
end(void)
{
	rcd_reorder_drop(lcore.reorder, &list);
	CU_ASSERT_EQUAL(lcore.buffers_kept, 0);
	rcd_reorder_pool_destroy(lcore.reorder);
}

/* Of many packets the first are kept in their buffers, so many, and each buffer is given back. */
static void
first_are_kept(uint32_t pool_size, uint32_t lcore_count, uint32_t most)
{
	begin(pool_size, lcore_count);
	for (uint32_t i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(come(i, &mbufs[i]), i < most);
	CU_ASSERT_EQUAL(lcore.buffers_kept, most);
	end();
	for (uint32_t i = 0; i < MANY; i++)
		CU_ASSERT_EQUAL(rte_mbuf_refcnt_read(&mbufs[i]), i < most ? 1 : 2);
}

static void
few_are_kept(void)
{
	first_are_kept(1 << 20, 1, KEPT_MOST);
	first_are_kept(1 << 20, 8, KEPT_MOST);
	/* All lcores together a sixteenth of the pool. */
	first_are_kept(1024, 1, 64);
	first_are_kept(1024, 4, 16);
	first_are_kept(15, 1, 0);
}

/* A port's own, one of several segments, and one whose memory is another's are copied. */
static void
others_are_copied(void)
{
	begin(1 << 20, 1);
	mbufs[0].pool = &other;
	CU_ASSERT_FALSE(come(0, &mbufs[0]));
	mbufs[1].nb_segs = 2;
	CU_ASSERT_FALSE(come(1, &mbufs[1]));
	mbufs[2].ol_flags = RTE_MBUF_F_INDIRECT;
	CU_ASSERT_FALSE(come(2, &mbufs[2]));
	mbufs[3].ol_flags = RTE_MBUF_F_EXTERNAL;
	CU_ASSERT_FALSE(come(3, &mbufs[3]));
	CU_ASSERT_EQUAL(lcore.buffers_kept, 0);
	CU_ASSERT_TRUE(come(4, &mbufs[4]));
	end();
}

/* What is no packet of a burst has no buffer that could be kept. */
static void
outside_of_a_burst(void)
{
	static struct rcd_pkt pkt = { .payload = payload, .payload_len = sizeof(payload) };
	struct rte_mbuf *burst[RCD_BURST_MAX] = { [3] = &mbufs[3] };

	begin(1 << 20, 1);
	CU_ASSERT_TRUE(rcd_reorder_keep(lcore.reorder, &list, &pkt));
	lcore.burst = burst;
	pkt.roce.bth.psn = rcd_psn(1);
	CU_ASSERT_TRUE(rcd_reorder_keep(lcore.reorder, &list, &pkt));
	lcore.burst = NULL;
	CU_ASSERT_EQUAL(lcore.buffers_kept, 0);
	CU_ASSERT_PTR_NOT_NULL(burst[3]);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(few_are_kept),
		RCD_TEST(others_are_copied),
		RCD_TEST(outside_of_a_burst),
	};

	return rcd_tap_run("rx_keep", tests, RCD_ARRAY_COUNT(tests));
}
