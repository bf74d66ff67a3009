/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A binary heap whose entries know their place.
 */
#include "rcd_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_check.h"

int
rcd_heap_reserve(struct rcd_heap *heap, uint32_t capacity)
{
	struct rcd_heap_entry **entries;

	if (capacity <= heap->capacity)
		return 0;
	entries = realloc(heap->entries, capacity * sizeof(entries[0]));
	if (entries == NULL)
		return -ENOMEM;
	heap->entries = entries;
	heap->capacity = capacity;
	return 0;
}

void
rcd_heap_fini(struct rcd_heap *heap)
{
	free(heap->entries);
	memset(heap, 0, sizeof(*heap));
}

static bool
heap_before(const struct rcd_heap_entry *a, const struct rcd_heap_entry *b)
{
	return a->key != b->key ? a->key < b->key : a->order < b->order;
}

static void
heap_put(struct rcd_heap *heap, uint32_t at, struct rcd_heap_entry *entry)
{
	heap->entries[at] = entry;
	entry->place = at + 1;
}

/* An entry finds its place, beginning at one that is free for it. */
static void
heap_settle(struct rcd_heap *heap, uint32_t at, struct rcd_heap_entry *entry)
{
	for (; at > 0 && heap_before(entry, heap->entries[(at - 1) / 2]); at = (at - 1) / 2)
		heap_put(heap, at, heap->entries[(at - 1) / 2]);
	for (;;) {
		/* Below 2^32, as pointers to so many have no room in memory. */
		uint32_t child = 2 * at + 1;

		if (child + 1 < heap->count &&
			heap_before(heap->entries[child + 1], heap->entries[child]))
			child++;
		if (child >= heap->count || !heap_before(heap->entries[child], entry))
			break;
		heap_put(heap, at, heap->entries[child]);
		at = child;
	}
	heap_put(heap, at, entry);
}

void
rcd_heap_set(struct rcd_heap *heap, struct rcd_heap_entry *entry, uint64_t key)
{
	uint32_t at = entry->place - 1;

	entry->key = key;
	entry->order = heap->order++;
	if (!rcd_heap_has(entry)) {
		RCD_CHECK(heap->count < heap->capacity);
		at = heap->count++;
	}
	heap_settle(heap, at, entry);
}

void
rcd_heap_del(struct rcd_heap *heap, struct rcd_heap_entry *entry)
{
	struct rcd_heap_entry *last;
	uint32_t at = entry->place - 1;

	if (!rcd_heap_has(entry))
		return;
	last = heap->entries[--heap->count];
	entry->place = 0;
	if (last != entry)
		heap_settle(heap, at, last);
}
