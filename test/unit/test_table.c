/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: numbers of objects are given once, come back, and end at the capacity. Method: a small
 * table filled and emptied in every order that matters.
 */
#include "rcd_table.h"

#include <errno.h>

#include "rcd_tap.h"

#define CAPACITY 5

static struct rcd_table table;
static int objects[CAPACITY + 1];

static void
fill(void)
{
	uint32_t handle;

	CU_ASSERT_EQUAL_FATAL(rcd_table_init(&table, CAPACITY), 0);
	for (uint32_t i = 0; i < CAPACITY; i++) {
		CU_ASSERT_EQUAL(rcd_table_add(&table, &objects[i], &handle), 0);
		CU_ASSERT_EQUAL(handle, i);
	}
	CU_ASSERT_EQUAL(table.used, CAPACITY);
}

static void
ends_at_its_capacity(void)
{
	uint32_t handle = 99;

	fill();
	CU_ASSERT_EQUAL(rcd_table_add(&table, &objects[CAPACITY], &handle), -ENOMEM);
	CU_ASSERT_EQUAL(handle, 99);
	for (uint32_t i = 0; i < CAPACITY; i++)
		CU_ASSERT_PTR_EQUAL(rcd_table_get(&table, i), &objects[i]);
	CU_ASSERT_PTR_NULL(rcd_table_get(&table, CAPACITY));
	CU_ASSERT_PTR_NULL(rcd_table_get(&table, UINT32_MAX));
	rcd_table_fini(&table);
	CU_ASSERT_PTR_NULL(rcd_table_get(&table, 0));
}

static void
gives_back_the_last_first(void)
{
	static const uint32_t orders[][3] = { { 0, 2, 4 }, { 4, 2, 0 }, { 3, 0, 1 } };

	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		uint32_t handle;

		fill();
		for (int k = 0; k < 3; k++) {
			rcd_table_del(&table, orders[i][k]);
			CU_ASSERT_PTR_NULL(rcd_table_get(&table, orders[i][k]));
		}
		CU_ASSERT_EQUAL(table.used, CAPACITY - 3);
		for (int k = 2; k >= 0; k--) {
			CU_ASSERT_EQUAL(rcd_table_add(&table, &objects[CAPACITY], &handle), 0);
			CU_ASSERT_EQUAL(handle, orders[i][k]);
		}
		CU_ASSERT_EQUAL(rcd_table_add(&table, &objects[CAPACITY], &handle), -ENOMEM);
		rcd_table_fini(&table);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(ends_at_its_capacity),
		RCD_TEST(gives_back_the_last_first),
	};

	return rcd_tap_run("table", tests, sizeof(tests) / sizeof(tests[0]));
}
