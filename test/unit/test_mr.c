/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: keys, regions and windows let through what they should and nothing else. Method: tables of
 * ranges and rights at and across every edge; random registration against a model.
 */
#include <errno.h>
#include <stdlib.h>

#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rcd_tap.h"

enum {
	PD = 5,
	OTHER_PD = 6,
	QPN = 17,
	LEN = 1000
};

static uint8_t memory[LEN];

static struct rcd_key
region(struct rcd_mr_table *table, uint32_t access, uint64_t start)
{
	struct rcd_mr_attr attr = {
		.pd = PD, .access = access, .start = start, .len = LEN, .base = memory
	};
	struct rcd_key key = { 0 };

	CU_ASSERT_EQUAL_FATAL(rcd_mr_register(table, &attr, &key), 0);
	return key;
}

static uint8_t *
translate(struct rcd_mr_table *table, struct rcd_key key, uint64_t addr, uint64_t len,
	uint32_t access, bool remote)
{
	struct rcd_mr_use use = { .pd = PD, .qpn = QPN, .access = access, .remote = remote };

	return rcd_mr_translate(table, key, addr, len, &use);
}

static void
ranges(void)
{
	static const uint64_t starts[] = { 0, 1, 0x7f0000000000, UINT64_MAX - LEN + 1 };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(starts); i++) {
		struct rcd_mr_table *table = rcd_mr_table_create(2, 42);
		uint64_t start = starts[i];
		struct rcd_key key = region(table, RCD_ACCESS_LOCAL_WRITE, start);

		CU_ASSERT_PTR_EQUAL(translate(table, key, start, LEN, 0, false), memory);
		CU_ASSERT_PTR_EQUAL(translate(table, key, start, 1, 0, false), memory);
		CU_ASSERT_PTR_EQUAL(
			translate(table, key, start + LEN - 1, 1, 0, false), memory + LEN - 1);
		CU_ASSERT_PTR_NULL(translate(table, key, start, LEN + 1, 0, false));
		CU_ASSERT_PTR_NULL(translate(table, key, start + 1, LEN, 0, false));
		CU_ASSERT_PTR_NULL(translate(table, key, start - 1, 2, 0, false));
		CU_ASSERT_PTR_NULL(translate(table, key, start + LEN, 1, 0, false));
		CU_ASSERT_PTR_NULL(translate(table, key, start, UINT64_MAX, 0, false));
		CU_ASSERT_PTR_NULL(translate(table, key, start + 10, UINT64_MAX - 5, 0, false));
		/* No bytes need no key. */
		CU_ASSERT_PTR_NOT_NULL(
			translate(table, (struct rcd_key){ 12345 }, start, 0, 0, true));
		rcd_mr_table_destroy(table);
	}
}

/* Covers: IBTA 10.6.3 mr_check_attr() */
static void
rights_and_domains(void)
{
	static const uint32_t rights[] = { RCD_ACCESS_LOCAL_WRITE, RCD_ACCESS_REMOTE_WRITE,
		RCD_ACCESS_REMOTE_READ, RCD_ACCESS_REMOTE_ATOMIC };
	struct rcd_mr_table *table = rcd_mr_table_create(6, 42);

	for (uint32_t granted = 0; granted < 16; granted++) {
		struct rcd_mr_attr attr = {
			.pd = PD, .access = granted, .start = 0, .len = LEN, .base = memory
		};
		bool writes = granted & (RCD_ACCESS_REMOTE_WRITE | RCD_ACCESS_REMOTE_ATOMIC);
		bool allowed = !writes || (granted & RCD_ACCESS_LOCAL_WRITE);
		struct rcd_key key;

		CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), allowed ? 0 : -EINVAL);
		for (size_t i = 0; allowed && i < RCD_ARRAY_COUNT(rights); i++) {
			struct rcd_mr_use use = { .pd = OTHER_PD, .access = rights[i] };

			CU_ASSERT_EQUAL(translate(table, key, 0, 1, rights[i], true) != NULL,
				(granted & rights[i]) != 0);
			CU_ASSERT_PTR_NULL(rcd_mr_translate(table, key, 0, 1, &use));
		}
	}
	rcd_mr_table_destroy(table);
}

static void
what_can_not_be_registered(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(1, 42);
	struct rcd_mr_attr attr = { .pd = PD, .len = LEN, .base = memory };
	struct rcd_key key;

	attr.access = 1 << 10;
	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), -EINVAL);
	attr.access = 0;
	attr.start = UINT64_MAX - LEN + 2;
	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), -EINVAL);
	attr.start = 0;
	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), 0);
	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), 0);
	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_mr_table_used(table), 2);
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, key), 0);
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, key), -ENOENT);
	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), 0);
	CU_ASSERT_PTR_NULL(rcd_mr_table_create(0, 1));
	CU_ASSERT_PTR_NULL(rcd_mr_table_create(21, 1));
	rcd_mr_table_destroy(table);
	rcd_mr_table_destroy(NULL);
}

/* A key is valid while its region is, and differs from those before it in the same slot. */
static void
keys_change(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(1, 42);
	struct rcd_mr_attr attr = { .pd = PD, .len = LEN, .base = memory };
	struct rcd_key old[64];
	struct rcd_key key;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(old); i++) {
		CU_ASSERT_EQUAL_FATAL(rcd_mr_register(table, &attr, &old[i]), 0);
		for (size_t k = 0; k < i; k++) {
			CU_ASSERT_NOT_EQUAL(old[k].val, old[i].val);
			CU_ASSERT_PTR_NULL(translate(table, old[k], 0, 1, 0, false));
		}
		CU_ASSERT_PTR_NOT_NULL(translate(table, old[i], 0, 1, 0, false));
		CU_ASSERT_EQUAL(rcd_mr_deregister(table, old[i]), 0);
	}
	key = region(table, 0, 0);
	attr.len = 10;
	CU_ASSERT_EQUAL(rcd_mr_reregister(table, &attr, key), 0);
	CU_ASSERT_PTR_NOT_NULL(translate(table, key, 0, 10, 0, false));
	CU_ASSERT_PTR_NULL(translate(table, key, 0, 11, 0, false));
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, key), 0);
	CU_ASSERT_EQUAL(rcd_mr_reregister(table, &attr, key), -ENOENT);
	rcd_mr_table_destroy(table);
}

/* Each region has a slot of its own, and any number may be asked about. */
static void
slots_of_keys(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(6, 42);
	struct rcd_key keys[64];
	uint64_t seen = 0;

	CU_ASSERT_EQUAL_FATAL(rcd_mr_capacity(table), RCD_ARRAY_COUNT(keys));
	for (uint32_t i = 0; i < RCD_ARRAY_COUNT(keys); i++) {
		uint32_t slot;

		keys[i] = region(table, 0, 0);
		slot = rcd_mr_slot(table, keys[i]);
		CU_ASSERT_FATAL(slot < 64);
		CU_ASSERT_EQUAL(seen >> slot & 1, 0);
		seen |= UINT64_C(1) << slot;
	}
	/* The next one in its place has its slot, and the part that an owner chooses is none. */
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, keys[7]), 0);
	CU_ASSERT_EQUAL(rcd_mr_slot(table, region(table, 0, 0)), rcd_mr_slot(table, keys[7]));
	keys[7].val ^= 0xff;
	CU_ASSERT(rcd_mr_slot(table, keys[7]) < 64);
	for (uint32_t key = 0; key < 1000; key++) {
		uint32_t slot = rcd_mr_slot(table, (struct rcd_key){ key << 8 });

		CU_ASSERT(slot < 64 || slot == UINT32_MAX);
	}
	rcd_mr_table_destroy(table);
}

/* With one region, no more than one key in 2^32 may work, and neighbours tell nothing. */
static void
keys_are_scattered(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(10, 0x1234567890abcdef);
	struct rcd_mr_table *other = rcd_mr_table_create(10, 0x1234567890abcdee);
	uint32_t hits = 0, same = 0, close = 0;
	struct rcd_key last = { 0 };

	for (int i = 0; i < 1024; i++) {
		struct rcd_key key = region(table, 0, 0);
		struct rcd_key other_key = region(other, 0, 0);

		same += key.val == other_key.val;
		close += (key.val ^ last.val) < 1 << 16;
		last = key;
	}
	for (uint32_t i = 0; i < 1 << 20; i++)
		hits += translate(table,
				(struct rcd_key){ (uint32_t)rand() << 1 ^ (uint32_t)rand() }, 0, 1,
				0, false) != NULL;
	/* 1024 of 2^32 are valid: 0.25 are expected. */
	CU_ASSERT_TRUE(hits <= 4);
	CU_ASSERT_TRUE(same <= 2);
	CU_ASSERT_TRUE(close <= 4);
	rcd_mr_table_destroy(table);
	rcd_mr_table_destroy(other);
}

static struct rcd_mw_bind
bind_attr(struct rcd_key mw, struct rcd_key mr)
{
	return (struct rcd_mw_bind){ .pd = PD,
		.qpn = QPN,
		.mw = mw,
		.variant = 0x77,
		.mr = mr,
		.addr = 100,
		.len = 200,
		.access = RCD_ACCESS_REMOTE_READ };
}

/* Covers: IBTA 10.6.7 mr_check_bind() */
static void
windows(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(4, 42);
	struct rcd_key mr = region(table, RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_MW_BIND, 0);

	for (enum rcd_mr_kind kind = RCD_MR_WINDOW_1; kind <= RCD_MR_WINDOW_2; kind++) {
		struct rcd_mr_use stranger = { .pd = PD, .qpn = QPN + 1, .remote = true };
		struct rcd_key mw, key;
		struct rcd_mw_bind bind;

		CU_ASSERT_EQUAL_FATAL(rcd_mw_alloc(table, kind, PD, &mw), 0);
		bind = bind_attr(mw, mr);
		CU_ASSERT_PTR_NULL(translate(table, mw, 100, 1, 0, true));
		CU_ASSERT_EQUAL(rcd_mw_bind(table, &bind, &key), 0);
		CU_ASSERT_EQUAL(key.val, (mw.val & ~0xffu) | 0x77);
		/* The window's range and rights count, not the region's. */
		CU_ASSERT_PTR_EQUAL(translate(table, key, 100, 200, RCD_ACCESS_REMOTE_READ, true),
			memory + 100);
		CU_ASSERT_PTR_NULL(translate(table, key, 99, 1, RCD_ACCESS_REMOTE_READ, true));
		CU_ASSERT_PTR_NULL(translate(table, key, 100, 201, RCD_ACCESS_REMOTE_READ, true));
		CU_ASSERT_PTR_NULL(translate(table, key, 100, 1, RCD_ACCESS_REMOTE_WRITE, true));
		/* Never as a local key; type 2 only through its queue pair. */
		CU_ASSERT_PTR_NULL(translate(table, key, 100, 1, 0, false));
		CU_ASSERT_EQUAL(rcd_mr_translate(table, key, 100, 1, &stranger) != NULL,
			kind == RCD_MR_WINDOW_1);
		CU_ASSERT_EQUAL(rcd_mr_deregister(table, mr), -EBUSY);
		/* Bound again: type 1 may, type 2 must be invalidated first. */
		bind.mw = key;
		bind.variant = 0x78;
		CU_ASSERT_EQUAL(
			rcd_mw_bind(table, &bind, &key), kind == RCD_MR_WINDOW_1 ? 0 : -EINVAL);
		CU_ASSERT_EQUAL(rcd_mw_invalidate(table, key, PD, QPN + 1), -EINVAL);
		CU_ASSERT_EQUAL(rcd_mw_invalidate(table, key, PD, QPN),
			kind == RCD_MR_WINDOW_2 ? 0 : -EINVAL);
		if (kind == RCD_MR_WINDOW_2)
			CU_ASSERT_PTR_NULL(translate(table, key, 100, 1, 0, true));
		CU_ASSERT_EQUAL(rcd_mw_free(table, key), 0);
		CU_ASSERT_EQUAL(rcd_mw_free(table, key), -ENOENT);
	}
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, mr), 0);
	CU_ASSERT_EQUAL(rcd_mr_table_used(table), 0);
	rcd_mr_table_destroy(table);
}

/* Covers: IBTA 10.6.7 mr_check_bind() */
static void
binds_that_are_refused(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(4, 42);
	struct rcd_key mr = region(table, RCD_ACCESS_MW_BIND, 0);
	struct rcd_key closed = region(table, RCD_ACCESS_LOCAL_WRITE, 0);
	struct rcd_key mw, key;
	struct rcd_mw_bind bind;

	CU_ASSERT_EQUAL_FATAL(rcd_mw_alloc(table, RCD_MR_WINDOW_2, PD, &mw), 0);
#define REFUSED(change, err)                                                                       \
	do {                                                                                       \
		bind = bind_attr(mw, mr);                                                          \
		change;                                                                            \
		CU_ASSERT_EQUAL(rcd_mw_bind(table, &bind, &key), err);                             \
	} while (0)
	REFUSED(bind.pd = OTHER_PD, -EINVAL);
	REFUSED(bind.mr = closed, -EINVAL);
	REFUSED(bind.mr.val ^= 0x100, -ENOENT);
	REFUSED(bind.mw = mr, -ENOENT);
	REFUSED(bind.len = LEN, -EINVAL);
	REFUSED(bind.addr = UINT64_MAX, -EINVAL);
	REFUSED(bind.access = RCD_ACCESS_REMOTE_WRITE, -EINVAL);
	REFUSED(bind.access = RCD_ACCESS_LOCAL_WRITE, -EINVAL);
	REFUSED((void)0, 0);
#undef REFUSED
	CU_ASSERT_EQUAL(rcd_mw_alloc(table, RCD_MR_REGION, PD, &mw), -EINVAL);
	rcd_mr_table_destroy(table);
}

static void
zero_based(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(2, 42);
	struct rcd_key key = region(table, RCD_ACCESS_ZERO_BASED, 0x5000);

	CU_ASSERT_PTR_EQUAL(translate(table, key, 0, LEN, 0, false), memory);
	CU_ASSERT_PTR_NULL(translate(table, key, 0x5000, 1, 0, false));
	rcd_mr_table_destroy(table);
}

/* Nothing is to be had of it any more, by any range or by none, until it is registered anew. */
static void
cut_off(void)
{
	struct rcd_mr_table *table = rcd_mr_table_create(2, 42);
	struct rcd_mr_attr attr = { .pd = PD,
		.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
		.len = LEN,
		.base = memory };
	struct rcd_mr_use whole = {
		.pd = PD, .access = RCD_ACCESS_FLUSH_GLOBAL, .remote = true, .whole = true
	};
	struct rcd_key key = region(table, attr.access, 0);

	CU_ASSERT_PTR_EQUAL(rcd_mr_translate(table, key, 0, 8, &whole), memory);
	rcd_mr_cut(table, key);
	CU_ASSERT_PTR_NULL(translate(table, key, 0, 1, 0, true));
	CU_ASSERT_PTR_NULL(rcd_mr_translate(table, key, 0, 8, &whole));
	CU_ASSERT_PTR_NULL(rcd_mr_translate(table, key, 0, 0, &whole));
	CU_ASSERT_EQUAL(rcd_mr_reregister(table, &attr, key), 0);
	CU_ASSERT_PTR_EQUAL(rcd_mr_translate(table, key, 0, 8, &whole), memory);
	rcd_mr_cut(table, key);
	CU_ASSERT_EQUAL(rcd_mr_deregister(table, key), 0);
	/* Whoever has the slot next is not cut off, nor is a region of no bytes. */
	attr.len = 0;
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), 0);
		CU_ASSERT_PTR_EQUAL(rcd_mr_translate(table, key, 0, 0, &whole), memory);
	}
	rcd_mr_table_destroy(table);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(ranges),
		RCD_TEST(rights_and_domains),
		RCD_TEST(what_can_not_be_registered),
		RCD_TEST(keys_change),
		RCD_TEST(slots_of_keys),
		RCD_TEST(keys_are_scattered),
		RCD_TEST(windows),
		RCD_TEST(binds_that_are_refused),
		RCD_TEST(zero_based),
		RCD_TEST(cut_off),
	};

	return rcd_tap_run("mr", tests, RCD_ARRAY_COUNT(tests));
}
