/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Protection domains, thread domains, memory regions and windows.
 */
#include "rcd_vb.h"

#include <stdlib.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/** Those that are none of the transport's, and what only asks for speed and is passed over. */
#define ACCESS_MORE (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | (int)IBV_ACCESS_OPTIONAL_RANGE)

/** That there is, and that no memory of ours has. */
#define ACCESS_NONE_HAS IBV_ACCESS_FLUSH_PERSISTENT

/** Addresses of a buffer lie in its pages as those of the region do. */
#define DMABUF_ALIGN 4096u

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

int
rcd_vb_access_check(int access)
{
	if ((access & ~(RCD_VB_ACCESS_KNOWN | ACCESS_MORE)) == 0)
		return 0;
	return access & ACCESS_NONE_HAS ? -EOPNOTSUPP : -EINVAL;
}

/* By its address, or else by a descriptor. */
struct place {
	void *addr;
	int fd; /**< -1: it has none */
	uint64_t offset;
};

static struct ibv_mr *
vb_mem_reg(struct ibv_pd *pd, struct place place, size_t len, uint64_t iova, int access)
{
	struct rcd_client *client = rcd_vb_client(pd->context);
	struct rcd_vb_mr *mr;
	struct rcd_cl_mr_attr attr = {
		.pd = pd->handle,
		.access = (uint32_t)(access & RCD_VB_ACCESS_KNOWN),
		.addr = place.addr,
		.len = len,
		.start = access & IBV_ACCESS_ZERO_BASED ? 0 : iova,
		.on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0,
	};
	int err = rcd_vb_access_check(access);

	/* What a descriptor names does not follow anything. */
	if (err == 0 && place.fd >= 0 && attr.on_demand)
		err = -EOPNOTSUPP;
	if (err == 0)
		err = -rcd_vb_demand_attr(&attr);
	if (err != 0) {
		errno = -err;
		return NULL;
	}
	mr = rcd_vb_new(pd->context, sizeof(*mr));
	if (mr == NULL)
		return NULL;
	err = place.fd < 0 ? rcd_cl_mr_reg(client, &attr, &mr->cl.mr)
			   : rcd_cl_dmabuf_reg(client, &attr, place.fd, place.offset, &mr->cl);
	if (err != 0) {
		rcd_vb_free(pd->context, mr);
		errno = -err;
		return NULL;
	}
	mr->access = attr.access;
	mr->fixed = place.fd >= 0;
	mr->mr = (struct ibv_mr){ .context = pd->context,
		.pd = pd,
		.addr = place.addr,
		.length = len,
		.handle = mr->cl.mr.key >> 8,
		.lkey = mr->cl.mr.key,
		.rkey = mr->cl.mr.key };
	rcd_vb_demand_set(mr, &attr);
	return &mr->mr;
}

static struct ibv_mr *
vb_mem_reg_addr(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return vb_mem_reg(pd, (struct place){ .addr = addr, .fd = -1 }, len, iova, access);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	return vb_mem_reg_addr(pd, addr, len, (uintptr_t)addr, access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access)
{
	return vb_mem_reg_addr(pd, addr, len, iova, access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, unsigned int access)
{
	return vb_mem_reg_addr(pd, addr, len, iova, (int)access);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	/* As adapters want it, and as their libraries tell it: an address in the buffer. */
	struct place place = { .addr = (void *)(uintptr_t)offset, .fd = fd, .offset = offset };

	if (fd < 0 || (offset ^ iova) % DMABUF_ALIGN != 0) {
		errno = fd < 0 ? EBADF : EINVAL;
		return NULL;
	}
	return vb_mem_reg(pd, place, len, iova, access);
}

/* By which address it is named from then on: by the same as before, unless it is another place. */
static uint64_t
vb_mem_start_of(const struct rcd_vb_mr *mr, int flags, const struct rcd_cl_mr_attr *attr)
{
	if (attr->access & IBV_ACCESS_ZERO_BASED)
		return 0;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) || (mr->access & IBV_ACCESS_ZERO_BASED))
		return (uintptr_t)attr->addr;
	return mr->demand.start;
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

	/* Of device memory, mapped buffers and what was imported no address of ours says it. */
	errno = mr->fixed ? EOPNOTSUPP : EINVAL;
	if (mr->fixed || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 || flags == 0)
		return IBV_REREG_MR_ERR_INPUT;
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) && (access & ACCESS_NONE_HAS))
		errno = EOPNOTSUPP;
	if (((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (addr == NULL || len == 0)) ||
		((flags & IBV_REREG_MR_CHANGE_PD) && pd == NULL) ||
		((flags & IBV_REREG_MR_CHANGE_ACCESS) &&
			(access & ~(RCD_VB_ACCESS_KNOWN | ACCESS_MORE))))
		return IBV_REREG_MR_ERR_INPUT;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		attr.addr = addr;
		attr.len = len;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		attr.pd = pd->handle;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS) {
		attr.access = (uint32_t)(access & RCD_VB_ACCESS_KNOWN);
		attr.on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
	}
	attr.start = vb_mem_start_of(mr, flags, &attr);
	length = attr.len;
	if (rcd_vb_demand_attr(&attr) != 0)
		return IBV_REREG_MR_ERR_INPUT;
	err = rcd_cl_mr_rereg(rcd_vb_client(ibv->context), &attr, &mr->cl.mr);
	if (err != 0) {
		errno = -err;
		return IBV_REREG_MR_ERR_CMD;
	}
	mr->access = attr.access;
	ibv->addr = attr.addr;
	ibv->length = length;
	ibv->lkey = ibv->rkey = mr->cl.mr.key;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		ibv->pd = pd;
	rcd_vb_demand_set(mr, &attr);
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct rcd_vb_mr *mr = (struct rcd_vb_mr *)(void *)ibv;
	int err = rcd_cl_dmabuf_dereg(rcd_vb_client(ibv->context), &mr->cl);

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
	mr->cl.mr = (struct rcd_cl_mr){ .key = rep.key, .pd = pd->handle };
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
	mr->cl.mr = (struct rcd_cl_mr){ .key = rep.key, .pd = pd->handle };
	mr->access = rep.access;
	mr->fixed = true;
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
