/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What comes first of many: a binary heap of entries that are parts of their owners' objects. Of
 * equal keys the one that was set first comes first, so that a run can be repeated.
 *
 * A key is mostly a time, in nanoseconds; the heap reads no clock. Threads: one at a time.
 */
#ifndef RCD_HEAP_H
#define RCD_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An entry. All zero: in no heap. The heap's but for the key, which its owner may read. */
struct rcd_heap_entry {
	uint64_t key;
	uint64_t order;
	uint32_t place; /**< in the heap, counted from 1; 0: in none */
};

/** A heap. All zero: an empty one without room. */
struct rcd_heap {
	struct rcd_heap_entry **entries;
	uint32_t count;
	uint32_t capacity;
	uint64_t order; /**< of the next one that is set */
};

/** Make room for so many in all; what is in it stays. @return 0; -ENOMEM: it is as it was */
int
rcd_heap_reserve(struct rcd_heap *heap, uint32_t capacity);

/** Free the room, whatever is in it; the entries stay as they are. */
void
rcd_heap_fini(struct rcd_heap *heap);

/** Enter an entry, for which there is room; or give the one that is in it another key. */
void
rcd_heap_set(struct rcd_heap *heap, struct rcd_heap_entry *entry, uint64_t key);

/** Take an entry out; one that is not in it stays out. */
void
rcd_heap_del(struct rcd_heap *heap, struct rcd_heap_entry *entry);

/** The entry with the smallest key. @return NULL: there is none */
static inline struct rcd_heap_entry *
rcd_heap_first(const struct rcd_heap *heap)
{
	return heap->count > 0 ? heap->entries[0] : NULL;
}

/** Whether an entry is in a heap. */
static inline bool
rcd_heap_has(const struct rcd_heap_entry *entry)
{
	return entry->place != 0;
}

#endif /* RCD_HEAP_H */
