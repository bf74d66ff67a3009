/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: packets that came out of order are kept in order, and what a peer sends in no order at all
 * costs a bounded search; payloads that stay in the host's buffers are given back once each.
 * Method: a list and a pool of their own.
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

/* A host with some buffers: what it gave, and got back. */
static struct {
	uint32_t room;
	uint32_t held;
	uint32_t released;
	bool busy[4];
} host;

static void *
host_hold(void *arg, const struct rcd_pkt *pkt)
{
	bool *busy = &host.busy[pkt->roce.bth.psn.val % RCD_ARRAY_COUNT(host.busy)];

	CU_ASSERT_PTR_EQUAL(arg, &host);
	if (host.held - host.released == host.room)
		return NULL;
	CU_ASSERT_FALSE(*busy);
	*busy = true;
	host.held++;
	return busy;
}

static void
host_release(void *arg, void *held)
{
	bool *busy = held;

	CU_ASSERT_PTR_EQUAL(arg, &host);
	CU_ASSERT_TRUE(*busy);
	*busy = false;
	host.released++;
}

static bool
keep_long(uint32_t psn, const uint8_t *payload, uint16_t len)
{
	struct rcd_pkt pkt = {
		.roce.bth.psn = rcd_psn(psn), .payload = payload, .payload_len = len
	};

	return rcd_reorder_keep(pool, &list, &pkt);
}

/* Where the payload of the kept packet with this PSN is. */
static const struct rcd_kept *
find(uint32_t psn)
{
	const struct rcd_kept *kept = list.first;

	while (kept != NULL && kept->roce.bth.psn.val != psn)
		kept = kept->next;
	return kept;
}

/* Long payloads stay where they are while the host can do without; each is given back once. */
static void
held_in_place(void)
{
	static const struct rcd_reorder_host ops = { host_hold, host_release, &host };
	static const struct rcd_reorder_host none;
	uint8_t payload[RCD_PATH_MTU_MAX_BYTES + 1];

	memset(payload, 0x5a, sizeof(payload));
	memset(&host, 0, sizeof(host));
	host.room = 2;
	rcd_reorder_pool_set_host(pool, &ops);
	CU_ASSERT_TRUE(keep_long(5, payload, RCD_REORDER_COPY_MAX));
	CU_ASSERT_EQUAL(host.held, 0);
	CU_ASSERT_TRUE(keep_long(6, payload, RCD_REORDER_COPY_MAX + 1));
	CU_ASSERT_TRUE(keep_long(7, payload, RCD_PATH_MTU_MAX_BYTES));
	CU_ASSERT_TRUE(keep_long(8, payload, RCD_PATH_MTU_MAX_BYTES));
	CU_ASSERT_EQUAL(host.held, 2);
	CU_ASSERT_PTR_EQUAL(find(6)->payload, payload);
	CU_ASSERT_PTR_EQUAL(find(7)->payload, payload);
	CU_ASSERT_PTR_NOT_EQUAL(find(8)->payload, payload);
	/* What is not kept holds nothing. */
	host.room = 4;
	CU_ASSERT_FALSE(keep_long(6, payload, 1024));
	CU_ASSERT_FALSE(keep_long(8, payload, 1024));
	CU_ASSERT_FALSE(keep_long(9, payload, RCD_PATH_MTU_MAX_BYTES + 1));
	CU_ASSERT_EQUAL(host.held, 2);
	memset(payload, 0, sizeof(payload));
	CU_ASSERT_EQUAL(find(8)->payload[RCD_PATH_MTU_MAX_BYTES - 1], 0x5a);
	CU_ASSERT_EQUAL(find(5)->payload[0], 0x5a);
	for (uint32_t i = 0; i < 2; i++)
		rcd_reorder_put(pool, rcd_reorder_take(&list));
	CU_ASSERT_EQUAL(host.released, 1);
	/* The place in the pool that held is used again, and holds nothing. */
	CU_ASSERT_TRUE(keep_long(9, payload, 8));
	rcd_reorder_drop(pool, &list);
	CU_ASSERT_EQUAL(host.released, 2);
	CU_ASSERT_EQUAL(rcd_reorder_pool_used(pool), 0);
	rcd_reorder_pool_set_host(pool, &none);
}

/* As much of the host's as of the pool: an empty pool asks for nothing, a full list neither. */
static void
held_is_bounded(void)
{
	static const struct rcd_reorder_host ops = { host_hold, host_release, &host };
	static const uint8_t payload[1024];
	struct rcd_reorder_pool *whole = pool;

	memset(&host, 0, sizeof(host));
	host.room = 4;
	pool = rcd_reorder_pool_create(2);
	rcd_reorder_pool_set_host(pool, &ops);
	CU_ASSERT_TRUE(keep_long(1, payload, sizeof(payload)));
	CU_ASSERT_TRUE(keep_long(2, payload, sizeof(payload)));
	CU_ASSERT_FALSE(keep_long(3, payload, sizeof(payload)));
	CU_ASSERT_EQUAL(host.held, 2);
	rcd_reorder_drop(pool, &list);
	CU_ASSERT_EQUAL(host.released, 2);
	rcd_reorder_pool_destroy(pool);
	pool = whole;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(in_order),
		{ "S8 packets in no order are searched for as far as is affordable",
			bounded_search },
		{ "S8 a list takes no more of the pool than its share", bounded_by_count },
		RCD_TEST(held_in_place),
		{ "S8 no more is held than is kept", held_is_bounded },
	};
	int status;

	pool = rcd_reorder_pool_create(2 * RCD_REORDER_WINDOW);
	status = rcd_tap_run("reorder", tests, RCD_ARRAY_COUNT(tests));
	rcd_reorder_pool_destroy(pool);
	return status;
}
