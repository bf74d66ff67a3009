/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets that came out of order are kept in order, and what a peer sends in no order at all
 * costs a bounded search. Method: a list and a pool of their own.
 */
#include "rcd_reorder.h"
#include "rcd_tap.h"

static struct rcd_reorder_pool *pool;
static struct rcd_kept_list list;

static bool
keep(uint32_t psn)
{
	static const uint8_t payload[8];
	struct rcd_pkt pkt = {
		.roce.bth.psn = rcd_psn(psn), .payload = payload, .payload_len = sizeof(payload)
	};

	return rcd_reorder_keep(pool, &list, &pkt);
}

/* As many as there are, each behind the one before, and the last one known as such. */
static bool
sorted(uint32_t count)
{
	const struct rcd_kept *last = NULL;

	for (const struct rcd_kept *kept = list.first; kept != NULL; kept = kept->next) {
		if (last != NULL && !rcd_psn_before(last->roce.bth.psn, kept->roce.bth.psn))
			return false;
		last = kept;
		count--;
	}
	return count == 0 && (last == NULL || list.last == last);
}

static void
in_order(void)
{
	static const uint32_t psns[] = { 0xfffffe, 5, 2, 0, 7, 1, 0xffffff, 6 };

	for (uint32_t i = 0; i < RCD_ARRAY_COUNT(psns); i++) {
		CU_ASSERT_TRUE(keep(psns[i]));
		CU_ASSERT_FALSE(keep(psns[i]));
	}
	CU_ASSERT_TRUE(sorted(RCD_ARRAY_COUNT(psns)));
	rcd_reorder_drop(pool, &list);
	CU_ASSERT_EQUAL(rcd_reorder_pool_used(pool), 0);
}

/* Behind the last one and near the first one always; between them as far as is looked. */
static void
bounded_search(void)
{
	uint32_t count = 0, refused = 0;

	for (uint32_t psn = 0; psn < RCD_REORDER_WINDOW; psn += 2)
		count += keep(psn);
	CU_ASSERT_EQUAL(count, RCD_REORDER_WINDOW / 2);
	for (uint32_t psn = 1; psn < RCD_REORDER_WINDOW - 2; psn += 2)
		refused += !keep(psn);
	/* Each that was kept makes the search longer for the next. */
	CU_ASSERT_EQUAL(refused, RCD_REORDER_WINDOW / 2 - 1 - RCD_REORDER_STEPS / 2);
	CU_ASSERT_TRUE(keep(RCD_REORDER_WINDOW - 1));
	CU_ASSERT_TRUE(sorted(RCD_REORDER_WINDOW / 2 + RCD_REORDER_STEPS / 2 + 1));
	rcd_reorder_drop(pool, &list);
	CU_ASSERT_EQUAL(rcd_reorder_pool_used(pool), 0);
}

/* However far apart, and with room for more in the pool: others need that too. */
static void
bounded_by_count(void)
{
	for (uint32_t i = 0; i < RCD_REORDER_WINDOW; i++)
		CU_ASSERT_TRUE(keep(i * 100));
	CU_ASSERT_FALSE(keep(RCD_REORDER_WINDOW * 100));
	CU_ASSERT_EQUAL(list.count, RCD_REORDER_WINDOW);
	rcd_reorder_put(pool, rcd_reorder_take(&list));
	CU_ASSERT_TRUE(keep(RCD_REORDER_WINDOW * 100));
	CU_ASSERT_TRUE(sorted(RCD_REORDER_WINDOW));
	rcd_reorder_drop(pool, &list);
	CU_ASSERT_EQUAL(list.count, 0);
	CU_ASSERT_EQUAL(rcd_reorder_pool_used(pool), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(in_order),
		{ "S8 packets in no order are searched for as far as is affordable",
			bounded_search },
		{ "S8 a list takes no more of the pool than its share", bounded_by_count },
	};
	int status;

	pool = rcd_reorder_pool_create(2 * RCD_REORDER_WINDOW);
	status = rcd_tap_run("reorder", tests, RCD_ARRAY_COUNT(tests));
	rcd_reorder_pool_destroy(pool);
	return status;
}
