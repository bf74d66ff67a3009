/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device memory, made, freed and registered. Which bytes a region has is said by what is kept here,
 * never by what a client can write.
 */
#include "rcd_hdm.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_bits.h"
#include "rcd_context.h"
#include "rcd_mr.h"
#include "rcd_segment.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_umem.h"

#define PAGE 4096u

struct hdm {
	uint64_t offset; /**< in the segment */
	uint64_t len;
	uint32_t users; /**< regions of it */
};

/* What it takes of the segment. */
static uint64_t
hdm_bytes(uint64_t len)
{
	return rcd_align_up(len, PAGE);
}

uint64_t
rcd_hdm_most(const struct rcd_quota_entry *quota)
{
	uint64_t most = rcd_quota_limit(quota, RCD_RESOURCE_DM_BYTES);
	uint64_t queues = rcd_quota_limit(quota, RCD_RESOURCE_QUEUE_BYTES) / 2;

	RCD_ON_CONTROL();
	return (queues < most ? queues : most) / PAGE * PAGE;
}

int
rcd_hdm_alloc(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_dm_req *req, struct rcd_ctrl_dm_rep *rep)
{
	uint64_t bytes = hdm_bytes(req->len);
	uint32_t handle;
	struct hdm *dm;
	int err;

	RCD_ON_CONTROL();
	if (req->len == 0)
		return -EINVAL;
	/* Before it is rounded, it may be too long to be. */
	if (req->len > rcd_hdm_most(&context->quota))
		return -ENOMEM;
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_DM_BYTES, bytes);
	if (err != 0)
		return err;
	dm = calloc(1, sizeof(*dm));
	err = dm != NULL ? rcd_table_add(&context->dms, dm, &handle) : -ENOMEM;
	if (err == 0) {
		err = rcd_segment_alloc(&context->segment, conn->serial, bytes, &dm->offset);
		if (err != 0)
			rcd_table_del(&context->dms, handle);
	}
	if (err != 0) {
		free(dm);
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_DM_BYTES, bytes);
		return err;
	}
	dm->len = req->len;
	return rcd_hdm_query(context, handle, rep);
}

int
rcd_hdm_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_dm_rep *rep)
{
	const struct hdm *dm = rcd_table_get(&context->dms, handle);

	RCD_ON_CONTROL();
	if (dm == NULL)
		return -ENOENT;
	*rep = (struct rcd_ctrl_dm_rep){ .offset = dm->offset, .len = dm->len, .handle = handle };
	return 0;
}

int
rcd_hdm_free(struct rcd_context *context, uint32_t handle)
{
	struct hdm *dm = rcd_table_get(&context->dms, handle);

	RCD_ON_CONTROL();
	if (dm == NULL)
		return -ENOENT;
	if (dm->users > 0)
		return -EBUSY;
	rcd_table_del(&context->dms, handle);
	rcd_segment_free(&context->segment, dm->offset, hdm_bytes(dm->len));
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_DM_BYTES, hdm_bytes(dm->len));
	free(dm);
	return 0;
}

int
rcd_hdm_reg(struct rcd_context *context, const struct rcd_ctrl_dm_mr_req *req, uint32_t *key)
{
	struct hdm *dm = rcd_table_get(&context->dms, req->dm);
	struct rcd_umem_own own = { .pd = req->pd, .access = req->access, .len = req->len };

	RCD_ON_CONTROL();
	if (dm == NULL)
		return -ENOENT;
	if (!(req->access & RCD_ACCESS_ZERO_BASED) || req->offset > dm->len ||
		req->len > dm->len - req->offset)
		return -EINVAL;
	own.addr = (uint8_t *)context->segment.shm + dm->offset + req->offset;
	own.users = &dm->users;
	return rcd_umem_reg_own(&context->umem, &own, key);
}
