/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device memory: allocated, imported, copied to and from, registered.
 */
#include "rcd_vb.h"

#include "rcd_cl_dm.h"

/** Alignment of all that there is: log2 of a page. */
#define ALIGN_LOG2_MAX 12

/** Device memory. */
struct vb_dm {
	struct ibv_dm dm;
	struct rcd_cl_dm cl;
};

static struct vb_dm *
vb_dm_of(struct ibv_dm *dm)
{
	return (struct vb_dm *)(void *)dm;
}

static int
vb_dm_write(struct ibv_dm *dm, uint64_t offset, const void *from, size_t len)
{
	return rcd_vb_ret(rcd_cl_dm_write(&vb_dm_of(dm)->cl, offset, from, len));
}

static int
vb_dm_read(void *to, struct ibv_dm *dm, uint64_t offset, size_t len)
{
	return rcd_vb_ret(rcd_cl_dm_read(&vb_dm_of(dm)->cl, offset, to, len));
}

/* Applications have it from now on, unless it could not be made. */
static struct ibv_dm *
vb_dm_enter(struct ibv_context *context, struct vb_dm *dm, int err)
{
	if (err != 0) {
		rcd_vb_free(context, dm);
		errno = -err;
		return NULL;
	}
	dm->dm = (struct ibv_dm){ .context = context,
		.memcpy_to_dm = vb_dm_write,
		.memcpy_from_dm = vb_dm_read,
		.handle = dm->cl.handle };
	return &dm->dm;
}

struct ibv_dm *
rcd_vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct vb_dm *dm;

	if (attr->comp_mask != 0 || attr->log_align_req > ALIGN_LOG2_MAX) {
		errno = EINVAL;
		return NULL;
	}
	dm = rcd_vb_new(context, sizeof(*dm));
	if (dm == NULL)
		return NULL;
	return vb_dm_enter(
		context, dm, rcd_cl_dm_alloc(rcd_vb_client(context), attr->length, &dm->cl));
}

int
rcd_vb_free_dm(struct ibv_dm *ibv)
{
	struct vb_dm *dm = vb_dm_of(ibv);
	int err = rcd_cl_dm_free(&dm->cl);

	/* Without an engine there is nothing left to free but this. */
	if (err != 0 && err != -EIO)
		return -err;
	rcd_vb_free(ibv->context, dm);
	return 0;
}

struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	struct vb_dm *dm = rcd_vb_new(context, sizeof(*dm));

	if (dm == NULL)
		return NULL;
	return vb_dm_enter(context, dm, rcd_cl_dm_import(rcd_vb_client(context), handle, &dm->cl));
}

void
ibv_unimport_dm(struct ibv_dm *dm)
{
	rcd_cl_dm_forget(&vb_dm_of(dm)->cl);
	rcd_vb_free(dm->context, dm);
}

struct ibv_mr *
rcd_vb_reg_dm_mr(
	struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t len, unsigned int access)
{
	struct rcd_ctrl_dm_mr_req req = { .pd = pd->handle,
		.dm = dm->handle,
		.access = access & RCD_VB_ACCESS_KNOWN,
		.offset = offset,
		.len = len };
	struct rcd_vb_mr *mr;
	int err = rcd_vb_access_check((int)access);

	/* It is mapped for good: there is no demand. */
	if (err == 0 && (access & IBV_ACCESS_ON_DEMAND))
		err = -EINVAL;
	if (err != 0) {
		errno = -err;
		return NULL;
	}
	mr = rcd_vb_new(pd->context, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	err = rcd_cl_dm_reg(rcd_vb_client(pd->context), &req, &mr->cl.mr.key);
	if (err != 0) {
		rcd_vb_free(pd->context, mr);
		errno = -err;
		return NULL;
	}
	mr->cl.mr.pd = pd->handle;
	mr->access = req.access;
	mr->fixed = true;
	mr->mr = (struct ibv_mr){ .context = pd->context,
		.pd = pd,
		.length = len,
		.handle = mr->cl.mr.key >> 8,
		.lkey = mr->cl.mr.key,
		.rkey = mr->cl.mr.key };
	return &mr->mr;
}
