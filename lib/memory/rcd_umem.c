/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The tables of regions and windows. What clients share is rcd_ushare.c's, what a region is made of
 * rcd_uregion.c's, and what clients take away rcd_ulost.c's.
 */
#include "rcd_umem.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_guard.h"
#include "rcd_limits.h"
#include "rcd_thread.h"
#include "rcd_uregion.h"
#include "rcd_ushare.h"

/* The region whose key has these upper 24 bits. */
static struct rcd_umr *
umem_find_handle(const struct rcd_umem *umem, uint32_t handle)
{
	uint32_t slot = rcd_mr_slot(umem->mrs, (struct rcd_key){ handle << 8 });
	struct rcd_umr *umr = slot < rcd_mr_capacity(umem->mrs) ? umem->umr_of[slot] : NULL;

	return umr != NULL && umr->key.val >> 8 == handle ? umr : NULL;
}

static struct rcd_umr *
umem_find_umr(const struct rcd_umem *umem, uint32_t key)
{
	struct rcd_umr *umr = umem_find_handle(umem, key >> 8);

	return umr != NULL && umr->key.val == key ? umr : NULL;
}

static void
umem_insert(struct rcd_umem *umem, struct rcd_umr *umr)
{
	umem->umr_of[rcd_mr_slot(umem->mrs, umr->key)] = umr;
	TAILQ_INSERT_TAIL(&umem->umrs, umr, link);
	umem->umr_count++;
}

static void
umem_remove(struct rcd_umem *umem, struct rcd_umr *umr)
{
	umem->umr_of[rcd_mr_slot(umem->mrs, umr->key)] = NULL;
	TAILQ_REMOVE(&umem->umrs, umr, link);
	umem->umr_count--;
}

struct change {
	struct rcd_umem *umem;
	struct rcd_umr *umr;
	struct rcd_umr *old;
	struct rcd_key key;
	enum rcd_mr_kind kind;
	uint32_t pd;
	bool foreign; /**< the list of those that are reached by copies changes */
};

static int
umem_on_lcore(struct change *change, int (*fn)(void *arg))
{
	const struct rcd_umem *umem = change->umem;

	return umem->ops->on_lcore(umem->owner, fn, change);
}

/* Whether it is reached by rcd_ucopy.c. */
static bool
umem_is_foreign(const struct rcd_umr *umr)
{
	return umr->copies != NULL || umr->null;
}

static struct rcd_mr_attr
umem_attr_of(const struct rcd_umr *umr)
{
	/* A region of no bytes has no memory; no access ever gets that far. */
	static uint8_t nothing[1];

	return (struct rcd_mr_attr){ .pd = umr->pd,
		.access = umr->access,
		.start = umr->start,
		.len = umr->null ? UINT64_MAX : umr->len,
		.base = umr->base != NULL ? umr->base : nothing };
}

static int
umem_reg_on_lcore(void *arg)
{
	struct change *change = arg;
	struct rcd_umem *umem = change->umem;
	struct rcd_mr_attr attr = umem_attr_of(change->umr);
	int err;

	if (change->old != NULL)
		err = rcd_mr_reregister(umem->mrs, &attr, change->key);
	else
		err = rcd_mr_register(umem->mrs, &attr, &change->key);
	if (err != 0)
		return err;
	change->umr->key = change->key;
	if (change->foreign)
		rcd_ucopied_swap(&umem->copied);
	return 0;
}

/* A region leaves the tables of the control thread. */
static void
umem_leave(struct rcd_umem *umem, struct rcd_umr *umr)
{
	struct rcd_pd *pd = rcd_table_get(umem->pds, umr->pd);

	pd->users--;
	umem_remove(umem, umr);
	rcd_uregion_free(umem, umr);
}

/* A region that was made enters the tables, perhaps for another one; it is freed when it can't. */
static int
umem_enter(struct rcd_umem *umem, struct rcd_umr *umr, struct rcd_umr *old, uint32_t *key)
{
	struct change change = { .umem = umem, .umr = umr, .old = old };
	struct rcd_pd *pd = rcd_table_get(umem->pds, umr->pd);
	int err = 0;

	if (old != NULL)
		change.key = old->key;
	change.foreign = umem_is_foreign(umr) || (old != NULL && umem_is_foreign(old));
	if (change.foreign)
		err = rcd_ucopied_prepare(&umem->copied,
			old != NULL && umem_is_foreign(old) ? old : NULL,
			umem_is_foreign(umr) ? umr : NULL, umem->work);
	if (err == 0)
		err = umem_on_lcore(&change, umem_reg_on_lcore);
	if (err != 0) {
		rcd_uregion_free(umem, umr);
		return err;
	}
	if (old != NULL)
		umem_leave(umem, old);
	umr->key = change.key;
	umem_insert(umem, umr);
	pd->users++;
	*key = change.key.val;
	return 0;
}

static int
umem_charge_key(struct rcd_umem *umem, uint32_t pd)
{
	if (rcd_table_get(umem->pds, pd) == NULL)
		return -ENOENT;
	return rcd_quota_charge(umem->quota, RCD_RESOURCE_MRS, 1);
}

/* What was charged for goes on, or is given back. */
static int
umem_charged(struct rcd_umem *umem, int err)
{
	if (err != 0)
		rcd_quota_uncharge(umem->quota, RCD_RESOURCE_MRS, 1);
	return err;
}

int
rcd_umem_reg(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, int copies, uint32_t *key)
{
	struct rcd_umr *umr;
	int err;

	RCD_ON_CONTROL();
	if (req->access & RCD_ACCESS_NULL)
		return -EINVAL;
	err = umem_charge_key(umem, req->pd);
	if (err != 0)
		return err;
	err = rcd_uregion_make(umem, req, copies, &umr);
	return umem_charged(umem, err == 0 ? umem_enter(umem, umr, NULL, key) : err);
}

int
rcd_umem_reg_own(struct rcd_umem *umem, const struct rcd_umem_own *own, uint32_t *key)
{
	struct rcd_umr *umr;
	int err;

	RCD_ON_CONTROL();
	if ((own->access & RCD_ACCESS_NULL) || own->len > RCD_MR_MAX_BYTES ||
		(own->addr == NULL && own->len > 0) || (uintptr_t)own->addr >> RCD_MR_ALL_BITS != 0)
		return -EINVAL;
	err = umem_charge_key(umem, own->pd);
	if (err != 0)
		return err;
	umr = calloc(1, sizeof(*umr));
	if (umr == NULL)
		return umem_charged(umem, -ENOMEM);
	umr->base = own->addr;
	umr->pd = own->pd;
	umr->start = own->access & RCD_ACCESS_ZERO_BASED ? 0 : (uintptr_t)own->addr;
	umr->len = own->len;
	umr->access = own->access;
	umr->own = true;
	umr->users = own->users;
	if (umr->users != NULL)
		++*umr->users;
	return umem_charged(umem, umem_enter(umem, umr, NULL, key));
}

int
rcd_umem_null(struct rcd_umem *umem, uint32_t pd, uint32_t *key)
{
	struct rcd_umr *umr;
	int err;

	RCD_ON_CONTROL();
	err = umem_charge_key(umem, pd);
	if (err != 0)
		return err;
	umr = calloc(1, sizeof(*umr));
	if (umr == NULL)
		return umem_charged(umem, -ENOMEM);
	/* Addresses for the longest message with nothing behind them, the same for everybody. */
	umr->base = rcd_guard_nowhere();
	umr->pd = pd;
	umr->len = RCD_MSG_MAX_BYTES;
	umr->access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_NULL;
	umr->null = true;
	return umem_charged(umem, umem_enter(umem, umr, NULL, key));
}

int
rcd_umem_query(struct rcd_umem *umem, uint32_t handle, struct rcd_ctrl_mr_query_rep *rep)
{
	const struct rcd_umr *umr = handle >> 24 == 0 ? umem_find_handle(umem, handle) : NULL;

	RCD_ON_CONTROL();
	if (umr == NULL)
		return -ENOENT;
	rep->len = umr->len;
	rep->pd = umr->pd;
	rep->key = umr->key.val;
	rep->access = umr->access;
	return 0;
}

int
rcd_umem_rereg(struct rcd_umem *umem, const struct rcd_ctrl_mr_req *req, int copies, uint32_t *key)
{
	struct rcd_umr *old = umem_find_umr(umem, req->key);
	struct rcd_umr *umr;
	int err;

	RCD_ON_CONTROL();
	if (rcd_table_get(umem->pds, req->pd) == NULL || old == NULL)
		return -ENOENT;
	if (old->null || (req->access & RCD_ACCESS_NULL))
		return -EINVAL;
	err = rcd_uregion_make(umem, req, copies, &umr);
	return err == 0 ? umem_enter(umem, umr, old, key) : err;
}

static int
umem_dereg_on_lcore(void *arg)
{
	struct change *change = arg;
	int err = rcd_mr_deregister(change->umem->mrs, change->key);

	if (err == 0 && change->foreign)
		rcd_ucopied_swap(&change->umem->copied);
	return err;
}

int
rcd_umem_dereg(struct rcd_umem *umem, uint32_t key)
{
	struct change change = { .umem = umem, .umr = umem_find_umr(umem, key), .key = { key } };
	int err = 0;

	RCD_ON_CONTROL();
	if (change.umr == NULL)
		return -ENOENT;
	change.foreign = umem_is_foreign(change.umr);
	if (change.foreign)
		err = rcd_ucopied_prepare(&umem->copied, change.umr, NULL, umem->work);
	if (err == 0)
		err = umem_on_lcore(&change, umem_dereg_on_lcore);
	if (err == 0) {
		umem_leave(umem, change.umr);
		rcd_quota_uncharge(umem->quota, RCD_RESOURCE_MRS, 1);
	}
	return err;
}

static int
umem_mw_alloc_on_lcore(void *arg)
{
	struct change *change = arg;

	return rcd_mw_alloc(change->umem->mrs, change->kind, change->pd, &change->key);
}

/* A window keeps its protection domain busy, and is counted by it, until the context ends. */
int
rcd_umem_mw_alloc(struct rcd_umem *umem, const struct rcd_ctrl_mw_req *req, uint32_t *key)
{
	struct change change = { .umem = umem,
		.kind = req->type == 1 ? RCD_MR_WINDOW_1 : RCD_MR_WINDOW_2,
		.pd = req->pd };
	int err;

	RCD_ON_CONTROL();
	if (req->type != 1 && req->type != 2)
		return -EINVAL;
	err = umem_charge_key(umem, req->pd);
	if (err != 0)
		return err;
	err = umem_on_lcore(&change, umem_mw_alloc_on_lcore);
	if (err == 0) {
		umem->mw_count++;
		*key = change.key.val;
	}
	return umem_charged(umem, err);
}

static int
umem_mw_free_on_lcore(void *arg)
{
	struct change *change = arg;

	return rcd_mw_free(change->umem->mrs, change->key);
}

int
rcd_umem_mw_free(struct rcd_umem *umem, uint32_t key)
{
	struct change change = { .umem = umem, .key = { key } };
	int err;

	RCD_ON_CONTROL();
	err = umem_on_lcore(&change, umem_mw_free_on_lcore);
	if (err == 0) {
		umem->mw_count--;
		rcd_quota_uncharge(umem->quota, RCD_RESOURCE_MRS, 1);
	}
	return err;
}

int
rcd_umem_init(struct rcd_umem *umem, const struct rcd_umem_conf *conf)
{
	RCD_ON_CONTROL();
	*umem = (struct rcd_umem){ .mrs = conf->mrs,
		.ops = conf->ops,
		.owner = conf->owner,
		.quota = conf->quota,
		.pds = conf->pds,
		.work = conf->work };
	TAILQ_INIT(&umem->umrs);
	/* Pages that no key ever leads to are never touched. */
	umem->umr_of = calloc(rcd_mr_capacity(conf->mrs), sizeof(umem->umr_of[0]));
	return umem->umr_of != NULL ? rcd_table_init(&umem->mems, conf->mems_max) : -ENOMEM;
}

void
rcd_umem_close(struct rcd_umem *umem)
{
	struct rcd_umr *umr;

	RCD_ON_CONTROL();
	while ((umr = TAILQ_FIRST(&umem->umrs)) != NULL) {
		umem_remove(umem, umr);
		rcd_uregion_free(umem, umr);
	}
	for (uint32_t i = 0; i < umem->mems.fresh; i++)
		if (umem->mems.slots[i] != NULL)
			rcd_ushare_del(umem, i);
}

void
rcd_umem_fini(struct rcd_umem *umem)
{
	RCD_ON_CONTROL();
	rcd_table_fini(&umem->mems);
	rcd_ucopied_fini(&umem->copied);
	free(umem->umr_of);
	umem->umr_of = NULL;
	umem->mrs = NULL;
}
