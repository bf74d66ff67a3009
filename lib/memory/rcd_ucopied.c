/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The list of regions that are reached by copies.
 */
#include "rcd_ucopied.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_thread.h"
#include "rcd_umem.h"

/** Bytes of a list that are copied for a unit of the control thread's work. */
#define UNIT_BYTES 4096

uint32_t
rcd_ucopied_place(const struct rcd_ucopied *copied, uintptr_t addr)
{
	uint32_t low = 0;
	uint32_t high = copied->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if ((uintptr_t)copied->umrs[middle]->base <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The list before this one has room for all but one of those that are in this. */
static int
ucopied_make_room(struct rcd_ucopied *copied, uint32_t count)
{
	uint32_t room = count < 16 ? 16 : count + count / 2;

	if (count <= copied->next_room)
		return 0;
	free(copied->next);
	copied->next = malloc(room * sizeof(copied->next[0]));
	copied->next_room = copied->next != NULL ? room : 0;
	return copied->next != NULL ? 0 : -ENOMEM;
}

/* Where the one that leaves is; the end when it is not there. */
static uint32_t
ucopied_find(const struct rcd_ucopied *copied, const struct rcd_umr *leaves)
{
	uint32_t place = rcd_ucopied_place(copied, (uintptr_t)leaves->base);

	/* Regions without memory have one address. */
	while (place > 0 && copied->umrs[place - 1] != leaves)
		place--;
	return place > 0 ? place - 1 : copied->count;
}

int
rcd_ucopied_prepare(struct rcd_ucopied *copied, const struct rcd_umr *leaves,
	struct rcd_umr *enters, uint32_t *work)
{
	uint32_t gap = leaves != NULL ? ucopied_find(copied, leaves) : copied->count;
	struct rcd_ucopied made = { .count = copied->count - (gap < copied->count) };
	uint32_t place;

	RCD_ON_CONTROL();
	if (ucopied_make_room(copied, made.count + (enters != NULL)) != 0)
		return -ENOMEM;
	made.umrs = copied->next;
	for (uint32_t i = 0; i < made.count; i++)
		made.umrs[i] = copied->umrs[i + (i >= gap)];
	if (enters != NULL) {
		place = rcd_ucopied_place(&made, (uintptr_t)enters->base);
		memmove(&made.umrs[place + 1], &made.umrs[place],
			(made.count++ - place) * sizeof(made.umrs[0]));
		made.umrs[place] = enters;
	}
	copied->next_count = made.count;
	*work += (uint32_t)(made.count * sizeof(made.umrs[0]) / UNIT_BYTES);
	return 0;
}

void
rcd_ucopied_swap(struct rcd_ucopied *copied)
{
	const struct rcd_ucopied old = *copied;

	RCD_ON_LCORES();
	*copied = (struct rcd_ucopied){ .umrs = old.next,
		.count = old.next_count,
		.room = old.next_room,
		.next = old.umrs,
		.next_room = old.room };
}

void
rcd_ucopied_fini(struct rcd_ucopied *copied)
{
	RCD_ON_CONTROL();
	free(copied->umrs);
	free(copied->next);
	*copied = (struct rcd_ucopied){ .count = 0 };
}
