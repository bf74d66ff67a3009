/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Multicast groups: an open-addressing hash table of addresses, made at creation.
 */
#include "rcd_mcast.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_bits.h"
#include "rcd_check.h"
#include "rcd_qp_priv.h"

#define GROUPS_MAX 8192

struct group {
	struct rcd_gid gid;
	uint32_t count; /**< 0: the slot is free */
	struct rcd_qp *qps[RCD_MCAST_QPS_MAX];
};

struct rcd_mcast_table {
	uint32_t groups;
	uint32_t used;
	uint32_t mask; /**< slots - 1: twice as many slots as groups */
	struct group *slots;
};

bool
rcd_gid_is_multicast(const struct rcd_gid *gid)
{
	return rcd_gid_is_ipv4(gid) ? gid->raw[12] >> 4 == 0xe : gid->raw[0] == 0xff;
}

struct rcd_mcast_table *
rcd_mcast_table_create(uint32_t groups)
{
	struct rcd_mcast_table *table;
	uint32_t slots;

	if (groups == 0 || groups > GROUPS_MAX)
		return NULL;
	slots = rcd_power_up(2 * groups);
	table = calloc(1, sizeof(*table));
	if (table == NULL)
		return NULL;
	table->slots = calloc(slots, sizeof(table->slots[0]));
	if (table->slots == NULL) {
		free(table);
		return NULL;
	}
	table->groups = groups;
	table->mask = slots - 1;
	return table;
}

void
rcd_mcast_table_destroy(struct rcd_mcast_table *table)
{
	if (table != NULL)
		free(table->slots);
	free(table);
}

static uint32_t
mcast_home_slot(const struct rcd_mcast_table *table, const struct rcd_gid *gid)
{
	uint64_t high, low;

	memcpy(&high, gid->raw, 8);
	memcpy(&low, gid->raw + 8, 8);
	return (uint32_t)((high ^ low) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & table->mask;
}

/* The group's slot, or the free one where it would go. */
static struct group *
mcast_find_slot(struct rcd_mcast_table *table, const struct rcd_gid *gid)
{
	uint32_t i = mcast_home_slot(table, gid);

	while (table->slots[i].count > 0 && !rcd_gid_eq(&table->slots[i].gid, gid))
		i = (i + 1) & table->mask;
	return &table->slots[i];
}

bool
rcd_mcast_has(struct rcd_mcast_table *table, const struct rcd_gid *gid, const struct rcd_qp *qp)
{
	const struct group *group = mcast_find_slot(table, gid);
	bool has = false;

	for (uint32_t i = 0; i < group->count; i++)
		has |= group->qps[i] == qp;
	return has;
}

uint32_t
rcd_mcast_members(struct rcd_mcast_table *table, const struct rcd_gid *gid)
{
	return mcast_find_slot(table, gid)->count;
}

int
rcd_mcast_attach(struct rcd_mcast_table *table, const struct rcd_gid *gid, struct rcd_qp *qp)
{
	struct group *group = mcast_find_slot(table, gid);

	if (qp->init.type != RCD_QP_UD || !rcd_gid_is_multicast(gid))
		return -EINVAL;
	if (rcd_mcast_has(table, gid, qp))
		return 0;
	if (group->count == RCD_MCAST_QPS_MAX ||
		(group->count == 0 && table->used == table->groups))
		return -ENOMEM;
	if (group->count == 0) {
		table->used++;
		group->gid = *gid;
	}
	group->qps[group->count++] = qp;
	return 0;
}

/* Moves what stands behind a freed slot to where a search finds it. */
static void
mcast_close_hole(struct rcd_mcast_table *table, uint32_t hole)
{
	table->used--;
	for (uint32_t i = (hole + 1) & table->mask; table->slots[i].count > 0;
		i = (i + 1) & table->mask) {
		uint32_t home = mcast_home_slot(table, &table->slots[i].gid);

		/* It may move unless its home lies behind the hole. */
		if (((i - home) & table->mask) < ((i - hole) & table->mask))
			continue;
		table->slots[hole] = table->slots[i];
		table->slots[i].count = 0;
		hole = i;
	}
}

int
rcd_mcast_detach(struct rcd_mcast_table *table, const struct rcd_gid *gid, struct rcd_qp *qp)
{
	struct group *group = mcast_find_slot(table, gid);

	for (uint32_t i = 0; i < group->count; i++) {
		if (group->qps[i] != qp)
			continue;
		group->qps[i] = group->qps[--group->count];
		if (group->count == 0)
			mcast_close_hole(table, (uint32_t)(group - table->slots));
		return 0;
	}
	return -EINVAL;
}

bool
rcd_mcast_next(const struct rcd_mcast_table *table, uint32_t *at, struct rcd_gid *gid)
{
	while (*at <= table->mask) {
		const struct group *group = &table->slots[(*at)++];

		if (group->count == 0)
			continue;
		*gid = group->gid;
		return true;
	}
	return false;
}

void
rcd_mcast_detach_all(
	struct rcd_mcast_table *table, const struct rcd_mcast_membership *first, struct rcd_qp *qp)
{
	for (const struct rcd_mcast_membership *at = first; at != NULL; at = at->next)
		RCD_CHECK(rcd_mcast_detach(table, &at->group, qp) == 0);
}

uint32_t
rcd_mcast_rx(struct rcd_mcast_table *table, const struct rcd_pkt *pkt, uint64_t now_ns,
	bool (*admits)(void *arg, const struct rcd_pkt *pkt))
{
	struct group *group = mcast_find_slot(table, &pkt->dgid);
	uint32_t count = group->count;

	for (uint32_t i = 0; i < count; i++)
		if (admits == NULL || admits(group->qps[i]->init.arg, pkt))
			rcd_qp_rx(group->qps[i], pkt, now_ns);
	return count;
}
