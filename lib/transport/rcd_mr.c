/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The table of regions and windows.
 */
#include "rcd_mr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_mr_key.h"
#include "rcd_mr_priv.h"
#include "rcd_sequence.h"

/*
 * A key is permute(slot << 4 | generation) << 8 | variant: 24 bits that are permuted, 20 of them
 * for the slot, and 8 that the owner of a type 2 window chooses (IBTA Vol. 1, 10.6.3).
 */
#define VARIANT_BITS    8
#define GENERATION_BITS 4
#define SLOT_BITS       20
#define NO_SLOT         UINT32_MAX

#define ACCESS_ALL                                                                                 \
	(RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE | RCD_ACCESS_MW_BIND | RCD_ACCESS_ZERO_BASED | \
		RCD_ACCESS_NULL)

/* Emptied memory for ranges of no bytes: a pointer that is not NULL. */
static uint8_t nothing[1];

static uint32_t
mr_make_key(const struct rcd_mr_table *table, uint32_t slot)
{
	uint8_t generation = table->slots[slot].generation;
	uint32_t val = slot << GENERATION_BITS | (generation & ((1u << GENERATION_BITS) - 1));
	/* Until an owner chooses one, the variant is as hard to guess as the rest. */
	uint32_t variant = rcd_mr_key_mix(val ^ (uint32_t)generation << 24,
		table->round_keys[0] ^ table->round_keys[RCD_MR_KEY_ROUNDS - 1]);

	return rcd_mr_key_permute(table->round_keys, val) << VARIANT_BITS | (variant & 0xff);
}

uint32_t
rcd_mr_capacity(const struct rcd_mr_table *table)
{
	return table->capacity;
}

uint32_t
rcd_mr_slot(const struct rcd_mr_table *table, struct rcd_key key)
{
	uint32_t slot =
		rcd_mr_key_unpermute(table->round_keys, key.val >> VARIANT_BITS) >> GENERATION_BITS;

	return slot < table->capacity ? slot : NO_SLOT;
}

/* The slot whose valid key this is, or NULL. */
static inline struct rcd_mr *
mr_find(struct rcd_mr_table *table, struct rcd_key key)
{
	uint32_t *hint = &table->hints[key.val >> VARIANT_BITS & (RCD_MR_HINTS - 1)];
	struct rcd_mr *mr = &table->slots[*hint];
	uint32_t slot;

	/* A slot is found by its key alone: the permutation only says where to look. */
	if (mr->key == key.val && mr->kind != RCD_MR_FREE)
		return mr;
	slot = rcd_mr_key_unpermute(table->round_keys, key.val >> VARIANT_BITS) >> GENERATION_BITS;
	if (slot >= table->capacity)
		return NULL;
	mr = &table->slots[slot];
	if (mr->key != key.val || mr->kind == RCD_MR_FREE)
		return NULL;
	*hint = slot;
	return mr;
}

struct rcd_mr_table *
rcd_mr_table_create(unsigned int capacity_log2, uint64_t secret)
{
	uint32_t capacity = UINT32_C(1) << (capacity_log2 & 31);
	struct rcd_sequence keys = { secret };
	struct rcd_mr_table *table;

	if (capacity_log2 < 1 || capacity_log2 > SLOT_BITS)
		return NULL;
	table = calloc(1, sizeof(*table));
	if (table == NULL)
		return NULL;
	/*
	 * Not a flexible array member: gcc 12 at -O3 takes an element reached through the struct
	 * and the same one reached through a pointer for different objects.
	 */
	table->slots = calloc(capacity, sizeof(table->slots[0]));
	if (table->slots == NULL) {
		free(table);
		return NULL;
	}
	table->capacity = capacity;
	for (unsigned int i = 0; i < RCD_MR_KEY_ROUNDS; i++)
		table->round_keys[i] = (uint32_t)(rcd_sequence_next(&keys) >> 32);
	for (uint32_t slot = 0; slot < capacity; slot++)
		table->slots[slot].region = slot + 1 < capacity ? slot + 1 : NO_SLOT;
	table->last_free = capacity - 1;
	return table;
}

void
rcd_mr_table_destroy(struct rcd_mr_table *table)
{
	if (table != NULL)
		free(table->slots);
	free(table);
}

uint32_t
rcd_mr_table_used(const struct rcd_mr_table *table)
{
	return table->used;
}

void
rcd_mr_table_each(
	const struct rcd_mr_table *table, void (*fn)(void *arg, const struct rcd_mr *mr), void *arg)
{
	uint32_t left = table->used;

	for (uint32_t slot = 0; slot < table->capacity && left > 0; slot++) {
		if (table->slots[slot].kind == RCD_MR_FREE)
			continue;
		left--;
		fn(arg, &table->slots[slot]);
	}
}

/* Gives the slot that has been free for longest, so that generations last. */
static struct rcd_mr *
mr_take_slot(struct rcd_mr_table *table, enum rcd_mr_kind kind, uint32_t pd)
{
	uint32_t slot = table->first_free;
	struct rcd_mr *mr;

	if (slot == NO_SLOT)
		return NULL;
	mr = &table->slots[slot];
	table->first_free = mr->region;
	table->used++;
	*mr = (struct rcd_mr){
		.kind = (uint8_t)kind,
		.generation = mr->generation,
		.pd = pd,
		.region = NO_SLOT,
	};
	/* A key of 0 marks a slot without one, and 0 is what programs pass by mistake. */
	do
		mr->key = mr_make_key(table, slot);
	while (mr->key == 0 && ++mr->generation);
	return mr;
}

static void
mr_give_slot(struct rcd_mr_table *table, struct rcd_mr *mr)
{
	uint32_t slot = (uint32_t)(mr - table->slots);

	mr->kind = RCD_MR_FREE;
	mr->key = 0;
	mr->base = NULL;
	mr->generation++;
	mr->region = NO_SLOT;
	if (table->first_free == NO_SLOT)
		table->first_free = slot;
	else
		table->slots[table->last_free].region = slot;
	table->last_free = slot;
	table->used--;
}

static int
mr_check_attr(const struct rcd_mr_attr *attr)
{
	uint32_t writers = RCD_ACCESS_REMOTE_WRITE | RCD_ACCESS_REMOTE_ATOMIC;

	/* Registered memory is RAM: memfd, hugepages, or what the client copies for us. */
	if (attr->access & RCD_ACCESS_FLUSH_PERSISTENT)
		return -EOPNOTSUPP;
	if (attr->access & ~(uint32_t)ACCESS_ALL)
		return -EINVAL;
	/* Spec: IBTA 10.6.3 remote write or atomic without local write is refused */
	if ((attr->access & writers) && !(attr->access & RCD_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (attr->len > 0 && attr->start + (attr->len - 1) < attr->start)
		return -EINVAL;
	return 0;
}

static void
mr_set_attr(struct rcd_mr *mr, const struct rcd_mr_attr *attr)
{
	mr->pd = attr->pd;
	mr->access = (uint16_t)attr->access;
	mr->start = attr->access & RCD_ACCESS_ZERO_BASED ? 0 : attr->start;
	mr->len = attr->len;
	mr->cut = false;
	mr->base = attr->base;
}

int
rcd_mr_register(struct rcd_mr_table *table, const struct rcd_mr_attr *attr, struct rcd_key *key)
{
	int err = mr_check_attr(attr);
	struct rcd_mr *mr;

	if (err != 0)
		return err;
	mr = mr_take_slot(table, RCD_MR_REGION, attr->pd);
	if (mr == NULL)
		return -ENOMEM;
	mr_set_attr(mr, attr);
	key->val = mr->key;
	return 0;
}

int
rcd_mr_reregister(struct rcd_mr_table *table, const struct rcd_mr_attr *attr, struct rcd_key key)
{
	struct rcd_mr *mr = mr_find(table, key);
	int err = mr_check_attr(attr);

	if (mr == NULL || mr->kind != RCD_MR_REGION)
		return -ENOENT;
	if (mr->windows > 0)
		return -EBUSY;
	if (err != 0)
		return err;
	mr_set_attr(mr, attr);
	return 0;
}

int
rcd_mr_deregister(struct rcd_mr_table *table, struct rcd_key key)
{
	struct rcd_mr *mr = mr_find(table, key);

	if (mr == NULL || mr->kind != RCD_MR_REGION)
		return -ENOENT;
	if (mr->windows > 0)
		return -EBUSY;
	mr_give_slot(table, mr);
	return 0;
}

void
rcd_mr_cut(struct rcd_mr_table *table, struct rcd_key key)
{
	struct rcd_mr *mr = mr_find(table, key);

	if (mr != NULL && mr->kind == RCD_MR_REGION) {
		mr->len = 0;
		mr->cut = true;
	}
}

static bool
mr_is_window(const struct rcd_mr *mr)
{
	return mr->kind == RCD_MR_WINDOW_1 || mr->kind == RCD_MR_WINDOW_2;
}

static void
mr_list_join(struct rcd_mr_table *table, struct rcd_mw_list *list, struct rcd_mr *mw)
{
	uint32_t number = (uint32_t)(mw - table->slots) + 1;

	mw->list = list;
	mw->prev = 0;
	mw->next = list->first;
	if (mw->next != 0)
		table->slots[mw->next - 1].prev = number;
	list->first = number;
}

static void
mr_list_leave(struct rcd_mr_table *table, struct rcd_mr *mw)
{
	if (mw->list == NULL)
		return;
	if (mw->next != 0)
		table->slots[mw->next - 1].prev = mw->prev;
	if (mw->prev != 0)
		table->slots[mw->prev - 1].next = mw->next;
	else
		mw->list->first = mw->next;
	mw->list = NULL;
}

static void
mr_unbind(struct rcd_mr_table *table, struct rcd_mr *mw)
{
	mr_list_leave(table, mw);
	if (mw->bound)
		table->slots[mw->region].windows--;
	mw->bound = false;
	mw->region = NO_SLOT;
	mw->base = NULL;
	mw->len = 0;
}

int
rcd_mw_alloc(struct rcd_mr_table *table, enum rcd_mr_kind kind, uint32_t pd, struct rcd_key *key)
{
	struct rcd_mr *mw;

	if (kind != RCD_MR_WINDOW_1 && kind != RCD_MR_WINDOW_2)
		return -EINVAL;
	mw = mr_take_slot(table, kind, pd);
	if (mw == NULL)
		return -ENOMEM;
	key->val = mw->key;
	return 0;
}

int
rcd_mw_free(struct rcd_mr_table *table, struct rcd_key key)
{
	uint32_t slot =
		rcd_mr_key_unpermute(table->round_keys, key.val >> VARIANT_BITS) >> GENERATION_BITS;
	struct rcd_mr *mw = slot < table->capacity ? &table->slots[slot] : NULL;

	/* The variant is whatever the last bind, carried out or not, has made of it. */
	if (mw == NULL || !mr_is_window(mw) || (mw->key ^ key.val) >> VARIANT_BITS != 0)
		return -ENOENT;
	mr_unbind(table, mw);
	mr_give_slot(table, mw);
	return 0;
}

/* Whether a range lies in another, without computing an end that may wrap. */
static inline bool
mr_within(uint64_t addr, uint64_t len, uint64_t start, uint64_t room)
{
	return addr >= start && addr - start <= room && len <= room - (addr - start);
}

/* Spec: IBTA 10.6.7 what a bind is checked for */
static int
mr_check_bind(const struct rcd_mr *mw, const struct rcd_mr *mr, const struct rcd_mw_bind *bind)
{
	if (mw->pd != bind->pd || mr->pd != bind->pd || mr->kind != RCD_MR_REGION)
		return -EINVAL;
	if (mw->kind == RCD_MR_WINDOW_2 && mw->bound)
		return -EINVAL;
	if (!(mr->access & RCD_ACCESS_MW_BIND) || (mr->access & RCD_ACCESS_ZERO_BASED))
		return -EINVAL;
	if (bind->access & ~(uint32_t)(RCD_ACCESS_REMOTE | RCD_ACCESS_ZERO_BASED))
		return -EINVAL;
	if ((bind->access & (RCD_ACCESS_REMOTE_WRITE | RCD_ACCESS_REMOTE_ATOMIC)) &&
		!(mr->access & RCD_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (bind->access & ~mr->access & RCD_ACCESS_FLUSH_GLOBAL)
		return -EINVAL;
	return mr_within(bind->addr, bind->len, mr->start, mr->len) ? 0 : -EINVAL;
}

int
rcd_mw_bind(struct rcd_mr_table *table, const struct rcd_mw_bind *bind, struct rcd_key *key)
{
	struct rcd_mr *mw = mr_find(table, bind->mw);
	struct rcd_mr *mr = mr_find(table, bind->mr);
	bool unbinds = mw != NULL && mw->kind == RCD_MR_WINDOW_1 && bind->len == 0;
	int err;

	if (mw == NULL || !mr_is_window(mw) || (mr == NULL && !unbinds))
		return -ENOENT;
	if (!unbinds) {
		err = mr_check_bind(mw, mr, bind);
		if (err != 0)
			return err;
	} else if (mw->pd != bind->pd) {
		return -EINVAL;
	}
	mr_unbind(table, mw);
	if (!unbinds) {
		mw->bound = true;
		mw->access = (uint16_t)bind->access;
		mw->qpn = bind->qpn;
		mw->region = (uint32_t)(mr - table->slots);
		mw->start = bind->access & RCD_ACCESS_ZERO_BASED ? 0 : bind->addr;
		mw->len = bind->len;
		mw->base = mr->base + (bind->addr - mr->start);
		mr->windows++;
		if (mw->kind == RCD_MR_WINDOW_2 && bind->list != NULL)
			mr_list_join(table, bind->list, mw);
	}
	mw->key = (mw->key & ~(uint32_t)0xff) | bind->variant;
	key->val = mw->key;
	return 0;
}

int
rcd_mw_invalidate(struct rcd_mr_table *table, struct rcd_key key, uint32_t pd, uint32_t qpn)
{
	struct rcd_mr *mw = mr_find(table, key);

	if (mw == NULL)
		return -ENOENT;
	if (mw->kind != RCD_MR_WINDOW_2 || !mw->bound || mw->pd != pd || mw->qpn != qpn)
		return -EINVAL;
	mr_unbind(table, mw);
	return 0;
}

bool
rcd_mw_unbind_some(struct rcd_mr_table *table, struct rcd_mw_list *list, uint32_t budget)
{
	for (; list->first != 0 && budget > 0; budget--)
		mr_unbind(table, &table->slots[list->first - 1]);
	return list->first != 0;
}

uint8_t *
rcd_mr_translate(struct rcd_mr_table *table, struct rcd_key key, uint64_t addr, uint64_t len,
	const struct rcd_mr_use *use)
{
	const struct rcd_mr *mr;

	if (len == 0 && !use->whole)
		return nothing;
	mr = mr_find(table, key);
	if (mr == NULL || mr->pd != use->pd || (mr->access & use->access) != use->access)
		return NULL;
	if (mr->kind != RCD_MR_REGION) {
		if (!use->remote || !mr->bound)
			return NULL;
		if (mr->kind == RCD_MR_WINDOW_2 && mr->qpn != use->qpn)
			return NULL;
		/* Its region was cut off. */
		if (table->slots[mr->region].len == 0)
			return NULL;
	}
	if (use->whole)
		return mr->cut ? NULL : mr->base;
	if (!mr_within(addr, len, mr->start, mr->len))
		return NULL;
	if (mr->access & RCD_ACCESS_NULL)
		return mr->base;
	return mr->base + (addr - mr->start);
}
