/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what comes first of a heap is what has the smallest key, and of equal ones what was set
 * first; entries move and leave from anywhere. Method: random steps beside a plain array that is
 * searched, and tables of the edges.
 */
#include "rcd_heap.h"

#include <errno.h>

#include "rcd_bits.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define ENTRIES 60

struct item {
	struct rcd_heap_entry entry;
	uint64_t set_at; /* of the model: which step set it last; 0: out */
	uint64_t key;
};

static struct rcd_heap heap;
static struct item items[ENTRIES];

static const struct item *
expected_first(void)
{
	const struct item *first = NULL;

	for (int i = 0; i < ENTRIES; i++)
		if (items[i].set_at != 0 &&
			(first == NULL || items[i].key < first->key ||
				(items[i].key == first->key && items[i].set_at < first->set_at)))
			first = &items[i];
	return first;
}

static void
setup(void)
{
	memset(items, 0, sizeof(items));
	CU_ASSERT_EQUAL_FATAL(rcd_heap_reserve(&heap, ENTRIES), 0);
}

static void
goes_as_a_searched_array(void)
{
	struct rcd_sequence sequence = { 17 };

	setup();
	for (uint64_t step = 1; step < 40000; step++) {
		uint64_t bits = rcd_sequence_next(&sequence);
		struct item *item = &items[bits % ENTRIES];
		const struct item *first;

		/* Few keys, so that many are equal; filled and emptied in turns. */
		if (bits >> 32 & (step / 1000 % 2 == 0 ? 3 : 1)) {
			item->key = bits >> 40 & 31;
			item->set_at = step;
			rcd_heap_set(&heap, &item->entry, item->key);
		} else {
			item->set_at = 0;
			rcd_heap_del(&heap, &item->entry);
		}
		CU_ASSERT_EQUAL(rcd_heap_has(&item->entry), item->set_at != 0);
		first = expected_first();
		CU_ASSERT_PTR_EQUAL(rcd_heap_first(&heap), first != NULL ? &first->entry : NULL);
	}
	for (const struct item *first; (first = expected_first()) != NULL;) {
		struct item *item = RCD_OWNER(rcd_heap_first(&heap), struct item, entry);

		CU_ASSERT_PTR_EQUAL_FATAL(item, first);
		rcd_heap_del(&heap, &item->entry);
		item->set_at = 0;
	}
	CU_ASSERT_EQUAL(heap.count, 0);
	rcd_heap_fini(&heap);
}

static void
equal_keys_come_as_they_were_set(void)
{
	setup();
	for (int i = 0; i < ENTRIES; i++)
		rcd_heap_set(&heap, &items[i].entry, UINT64_MAX);
	/* Set again, to the same: behind the others. */
	rcd_heap_set(&heap, &items[0].entry, UINT64_MAX);
	for (int i = 1; i <= ENTRIES; i++) {
		CU_ASSERT_PTR_EQUAL(rcd_heap_first(&heap), &items[i % ENTRIES].entry);
		rcd_heap_del(&heap, rcd_heap_first(&heap));
	}
	CU_ASSERT_PTR_NULL(rcd_heap_first(&heap));
	rcd_heap_fini(&heap);
}

static void
room_grows_and_keeps_what_is_there(void)
{
	setup();
	rcd_heap_set(&heap, &items[0].entry, 5);
	rcd_heap_set(&heap, &items[1].entry, 3);
	CU_ASSERT_EQUAL(rcd_heap_reserve(&heap, 1), 0);
	CU_ASSERT_EQUAL(heap.capacity, ENTRIES);
	CU_ASSERT_EQUAL(rcd_heap_reserve(&heap, 100000), 0);
	CU_ASSERT_PTR_EQUAL(rcd_heap_first(&heap), &items[1].entry);
	rcd_heap_del(&heap, &items[1].entry);
	rcd_heap_del(&heap, &items[1].entry);
	CU_ASSERT_PTR_EQUAL(rcd_heap_first(&heap), &items[0].entry);
	rcd_heap_fini(&heap);
	CU_ASSERT_PTR_NULL(rcd_heap_first(&heap));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(goes_as_a_searched_array),
		RCD_TEST(equal_keys_come_as_they_were_set),
		RCD_TEST(room_grows_and_keeps_what_is_there),
	};

	return rcd_tap_run("heap", tests, sizeof(tests) / sizeof(tests[0]));
}
