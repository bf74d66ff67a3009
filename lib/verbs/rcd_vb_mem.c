/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Protection domains, thread domains, memory regions and windows.
 */
#include "rcd_vb.h"

#include <stdlib.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/** Rights that the transport knows. */
#define ACCESS_KNOWN                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |            \
		IBV_ACCESS_FLUSH_GLOBAL)

/** Those that are none of the transport's, and what only asks for speed and is passed over. */
#define ACCESS_MORE (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | (int)IBV_ACCESS_OPTIONAL_RANGE)

/** That there is, and that no memory of ours has. */
#define ACCESS_NONE_HAS IBV_ACCESS_FLUSH_PERSISTENT

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct rcd_vb_pd *pd = rcd_vb_new(context, sizeof(*pd));
	struct rcd_ctrl_handle rep;
	int err;

	if (pd == NULL)
		return NULL;
	err = rcd_client_call(rcd_vb_client(context), RCD_CTRL_PD_CREATE, NULL, &rep, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(context, pd);
		errno = -err;
		return NULL;
	}
	pd->pd.context = context;
	pd->pd.handle = rep.handle;
	return &pd->pd;
}

int
ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct rcd_vb_pd *pd = (struct rcd_vb_pd *)(void *)ibv;
	int err = 0;

	if (pd->users > 0)
		return EBUSY;
	if (pd->parent != NULL)
		((struct rcd_vb_pd *)(void *)pd->parent)->users--;
	else
		err = rcd_cl_destroy(rcd_vb_client(ibv->context), RCD_CTRL_PD_DESTROY, ibv->handle);
	/* Without an engine there is nothing left to free but this. */
	if (err != 0 && err != -EIO)
		return -err;
	rcd_vb_free(ibv->context, pd);
	return 0;
}

struct ibv_td *
rcd_vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct ibv_td *td;

	if (attr->comp_mask != 0) {
		errno = EINVAL;
		return NULL;
	}
	td = rcd_vb_new(context, sizeof(*td));
	if (td != NULL)
		td->context = context;
	return td;
}

int
rcd_vb_dealloc_td(struct ibv_td *td)
{
	rcd_vb_free(td->context, td);
	return 0;
}

struct ibv_pd *
rcd_vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct rcd_vb_pd *pd;

	if (attr->pd == NULL ||
		(attr->comp_mask &
			~(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) != 0) {
		errno = EINVAL;
		return NULL;
	}
	pd = rcd_vb_new(context, sizeof(*pd));
	if (pd == NULL)
		return NULL;
	pd->pd.context = context;
	pd->pd.handle = attr->pd->handle;
	pd->parent = attr->pd;
	pd->td = attr->td;
	((struct rcd_vb_pd *)(void *)attr->pd)->users++;
	return &pd->pd;
}

static struct ibv_mr *
vb_mem_reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	struct rcd_vb_mr *mr;
	struct rcd_cl_mr_attr attr = {
		.pd = pd->handle,
		.access = (uint32_t)(access & ACCESS_KNOWN),
		.addr = addr,
		.len = len,
		.start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0,
	};
	int err = rcd_vb_demand_attr(&attr);

	if (access & ~(ACCESS_KNOWN | ACCESS_MORE))
		err = access & ACCESS_NONE_HAS ? EOPNOTSUPP : EINVAL;
	if (err != 0) {
		errno = err;
		return NULL;
	}
	mr = rcd_vb_new(pd->context, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	err = rcd_cl_mr_reg(rcd_vb_client(pd->context), &attr, &mr->cl);
	if (err != 0) {
		rcd_vb_free(pd->context, mr);
		errno = -err;
		return NULL;
	}
	mr->access = attr.access;
	mr->mr = (struct ibv_mr){ .context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = len,
		.handle = mr->cl.key >> 8,
		.lkey = mr->cl.key,
		.rkey = mr->cl.key };
	rcd_vb_demand_set(mr, &attr);
	return &mr->mr;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return vb_mem_reg(pd, addr, len, (uintptr_t)addr, access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return vb_mem_reg(pd, addr, len, iova, access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access)
{
	return vb_mem_reg(pd, addr, len, iova, (int)access);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	(void)pd, (void)offset, (void)len, (void)iova, (void)fd, (void)access;
	errno = EOPNOTSUPP;
	return NULL;
}

int
ibv_rereg_mr(struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t len, int access)
{
	struct rcd_vb_mr *mr = (struct rcd_vb_mr *)(void *)ibv;
	struct rcd_cl_mr_attr attr = {
		.pd = ibv->pd->handle,
		.access = mr->access,
		.addr = ibv->addr,
		.len = ibv->length,
		.on_demand = mr->demand.on_demand,
	};
	size_t length;
	int err;

	errno = EINVAL;
	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0)
		return IBV_REREG_MR_ERR_INPUT;
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) && (access & ACCESS_NONE_HAS))
		errno = EOPNOTSUPP;
	if (((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (addr == NULL || len == 0)) ||
		((flags & IBV_REREG_MR_CHANGE_PD) && pd == NULL) ||
		((flags & IBV_REREG_MR_CHANGE_ACCESS) && (access & ~(ACCESS_KNOWN | ACCESS_MORE))))
		return IBV_REREG_MR_ERR_INPUT;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		attr.addr = addr;
		attr.len = len;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		attr.pd = pd->handle;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		attr.access = (uint32_t)(access & ACCESS_KNOWN);
		attr.on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
	}
	attr.start = attr.access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)attr.addr;
	length = attr.len;
	if (rcd_vb_demand_attr(&attr) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	err = rcd_cl_mr_rereg(rcd_vb_client(ibv->context), &attr, &mr->cl);
	if (err != 0) {
		errno = -err;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr->access = attr.access;
	ibv->addr = attr.addr;
	ibv->length = length;
	ibv->lkey = ibv->rkey = mr->cl.key;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibv->pd = pd;
	rcd_vb_demand_set(mr, &attr);
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct rcd_vb_mr *mr = (struct rcd_vb_mr *)(void *)ibv;
	int err = rcd_cl_mr_dereg(rcd_vb_client(ibv->context), &mr->cl);

	if (err != 0 && err != -EIO)
		return -err;
	rcd_vb_demand_end(mr);
	rcd_vb_free(ibv->context, mr);
	return 0;
}

struct ibv_mw *
rcd_vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct rcd_ctrl_mw_req req = { .pd = pd->handle, .type = (uint32_t)type };
	struct ibv_mw *mw = rcd_vb_new(pd->context, sizeof(*mw));
	struct rcd_ctrl_key rep;
	int err;

	if (mw == NULL)
		return NULL;
	err = rcd_client_call(
		rcd_vb_client(pd->context), RCD_CTRL_MW_ALLOC, &req, &rep, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(pd->context, mw);
		errno = -err;
		return NULL;
	}
	mw->context = pd->context;
	mw->pd = pd;
	mw->rkey = rep.key;
	mw->handle = rep.key >> 8;
	mw->type = type;
	return mw;
}

int
rcd_vb_dealloc_mw(struct ibv_mw *mw)
{
	struct rcd_ctrl_key req = { .key = mw->rkey };
	int err = rcd_client_call(
		rcd_vb_client(mw->context), RCD_CTRL_MW_FREE, &req, NULL, NULL, NULL);

	if (err != 0 && err != -EIO)
		return -err;
	rcd_vb_free(mw->context, mw);
	return 0;
}

/* Reads give zeros, what is written is gone. */
struct ibv_mr *
rcd_vb_alloc_null_mr(struct ibv_pd *pd)
{
	struct rcd_ctrl_handle req = { .handle = pd->handle };
	struct rcd_vb_mr *mr = rcd_vb_new(pd->context, sizeof(*mr));
	struct rcd_ctrl_mr_rep rep;
	int err;

	if (mr == NULL)
		return NULL;
	err = rcd_client_call(rcd_vb_client(pd->context), RCD_CTRL_MR_NULL, &req, &rep, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(pd->context, mr);
		errno = -err;
		return NULL;
	}
	mr->cl = (struct rcd_cl_mr){ .key = rep.key, .pd = pd->handle };
	mr->access = IBV_ACCESS_LOCAL_WRITE;
	mr->mr = (struct ibv_mr){
		.context = pd->context, .pd = pd, .handle = rep.key >> 8, .lkey = rep.key
	};
	return &mr->mr;
}

struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	struct rcd_ctrl_handle req = { .handle = handle };
	struct rcd_vb_pd *pd = rcd_vb_new(context, sizeof(*pd));
	int err;

	if (pd == NULL)
		return NULL;
	err = rcd_client_call(rcd_vb_client(context), RCD_CTRL_PD_QUERY, &req, NULL, NULL, NULL);
	if (err != 0) {
		rcd_vb_free(context, pd);
		errno = -err;
		return NULL;
	}
	pd->pd.context = context;
	pd->pd.handle = handle;
	return &pd->pd;
}

void
ibv_unimport_pd(struct ibv_pd *pd)
{
	rcd_vb_free(pd->context, pd);
}

/* Its address is that of another process, and says nothing here. */
struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	struct rcd_ctrl_handle req = { .handle = handle };
	struct rcd_vb_mr *mr = rcd_vb_new(pd->context, sizeof(*mr));
	struct rcd_ctrl_mr_query_rep rep;
	int err;

	if (mr == NULL)
		return NULL;
	err = rcd_client_call(
		rcd_vb_client(pd->context), RCD_CTRL_MR_QUERY, &req, &rep, NULL, NULL);
	if (err == 0 && rep.pd != pd->handle)
		err = -EINVAL;
	if (err != 0) {
		rcd_vb_free(pd->context, mr);
		errno = -err;
		return NULL;
	}
	mr->cl = (struct rcd_cl_mr){ .key = rep.key, .pd = pd->handle };
	mr->access = rep.access;
	mr->mr = (struct ibv_mr){
		.context = pd->context, .pd = pd, .handle = handle, .lkey = rep.key, .rkey = rep.key
	};
	return &mr->mr;
}

void
ibv_unimport_mr(struct ibv_mr *mr)
{
	rcd_vb_free(mr->context, mr);
}

struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	(void)context, (void)handle;
	errno = EOPNOTSUPP;
	return NULL;
}

void
ibv_unimport_dm(struct ibv_dm *dm)
{
	(void)dm;
}
