/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Regions that follow what the process maps (IBV_ACCESS_ON_DEMAND): which there are, and advice
 * about them. The engine has no part in advice: what is fetched is pages of this process, for the
 * thread that makes copies.
 */
#include "rcd_vb.h"

#include <sys/mman.h>
#include <unistd.h>

#include "rcd_limits.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/** As `ibv_reg_mr()` names all addresses. */
#define ALL_BYTES SIZE_MAX

int
rcd_vb_demand_attr(struct rcd_cl_mr_attr *attr)
{
	if (!attr->on_demand)
		return 0;
	if (attr->addr == NULL && attr->len == ALL_BYTES) {
		attr->len = RCD_MR_ALL_BYTES;
		return attr->start == 0 ? 0 : EINVAL;
	}
	if (attr->len > RCD_MR_MAX_BYTES || attr->len > UINTPTR_MAX - (uintptr_t)attr->addr)
		return EINVAL;
	return 0;
}

void
rcd_vb_demand_set(struct rcd_vb_mr *mr, const struct rcd_cl_mr_attr *attr)
{
	struct rcd_vb_context *context = rcd_vb_context(mr->mr.context);

	pthread_mutex_lock(&context->lock);
	if (mr->demand.on_demand)
		LIST_REMOVE(mr, link);
	mr->demand = *attr;
	if (attr->on_demand)
		LIST_INSERT_HEAD(&context->demand, mr, link);
	pthread_mutex_unlock(&context->lock);
}

void
rcd_vb_demand_end(struct rcd_vb_mr *mr)
{
	rcd_vb_demand_set(mr, &(struct rcd_cl_mr_attr){ .on_demand = false });
}

/* What a region is to be, by its key. @return whether there is such a one */
static bool
vb_demand_find(struct ibv_context *ibv, uint32_t key, struct rcd_cl_mr_attr *attr)
{
	struct rcd_vb_context *context = rcd_vb_context(ibv);
	const struct rcd_vb_mr *mr;

	pthread_mutex_lock(&context->lock);
	LIST_FOREACH(mr, &context->demand, link)
		if (mr->cl.mr.key == key)
			break;
	if (mr != NULL)
		*attr = mr->demand;
	pthread_mutex_unlock(&context->lock);
	return mr != NULL;
}

/* Where what an element names is in this process. @return 0 or an errno value */
static int
vb_demand_place(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, const struct ibv_sge *sge,
	uintptr_t *at)
{
	struct rcd_cl_mr_attr attr;
	uint64_t offset;

	if (!vb_demand_find(pd->context, sge->lkey, &attr))
		return ENOENT;
	if (attr.pd != pd->handle ||
		(advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE &&
			!(attr.access & RCD_ACCESS_LOCAL_WRITE)))
		return EPERM;
	offset = sge->addr - attr.start;
	if (sge->addr < attr.start || offset > attr.len || sge->length > attr.len - offset)
		return EFAULT;
	*at = (uintptr_t)attr.addr + offset;
	return 0;
}

/* @param wait  until all of it is there; else the kernel is told, and nothing is said of it */
static int
vb_demand_fetch(uintptr_t at, size_t len, bool write, bool wait)
{
	size_t before = at % (size_t)sysconf(_SC_PAGESIZE);
	int how = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	void *start = (void *)(at - before);

	if (len == 0)
		return 0;
	len += before;
	/* Linux before 5.14 knows no better than the other one. */
	if (!wait || madvise(start, 0, how) != 0) {
		madvise(start, len, MADV_WILLNEED);
		return 0;
	}
	return madvise(start, len, how) == 0 ? 0 : EFAULT;
}

int
rcd_vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sges, uint32_t count)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uintptr_t at;
	int err = 0;

	if (!write && advice != IBV_ADVISE_MR_ADVICE_PREFETCH &&
		advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return ENOTSUP;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) != 0 || count == 0 || sges == NULL)
		return EINVAL;
	for (uint32_t i = 0; i < count && err == 0; i++)
		err = vb_demand_place(pd, advice, &sges[i], &at);
	/* Pages that are there need nothing more to be reached. */
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return err;
	for (uint32_t i = 0; i < count && err == 0; i++) {
		err = vb_demand_place(pd, advice, &sges[i], &at);
		if (err == 0)
			err = vb_demand_fetch(
				at, sges[i].length, write, (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0);
	}
	return err;
}
