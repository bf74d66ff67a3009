/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A socket's queue pair, with the memory that it sends from and the ring that the peer writes into.
 */
#include "rcd_rs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *
rcd_rs_alloc(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *mem;

	len = (len + page - 1) / page * page;
	if (posix_memalign(&mem, page, len) != 0)
		return NULL;
	return memset(mem, 0, len);
}

static uint16_t
rs_link_queue_size(uint16_t asked, const struct ibv_device_attr *attr)
{
	uint32_t most = RCD_RS_QUEUE_MAX;

	if (attr->max_qp_wr > 0)
		most = rcd_rs_least(most, (uint32_t)attr->max_qp_wr);
	if (asked < RCD_RS_QUEUE_MIN)
		asked = RCD_RS_QUEUE_MIN;
	return (uint16_t)rcd_rs_least(asked, most);
}

static int
rs_link_create_qp(struct rcd_rs *rs)
{
	struct rcd_rs_sizes *sizes = &rs->sizes;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1 };
	struct ibv_device_attr device;

	if (ibv_query_device(rs->id->verbs, &device) != 0)
		return -ENODEV;
	sizes->send_queue = rs_link_queue_size(sizes->send_queue, &device);
	sizes->recv_queue = rs_link_queue_size(sizes->recv_queue, &device);
	rs->comp = ibv_create_comp_channel(rs->id->verbs);
	if (rs->comp == NULL || fcntl(rs->comp->fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	rs->cq = ibv_create_cq(
		rs->id->verbs, sizes->send_queue + sizes->recv_queue, rs, rs->comp, 0);
	if (rs->cq == NULL)
		return -errno;
	/* Who sleeps already has passed where it would have done so. */
	rcd_rs_arm(rs);
	attr.send_cq = attr.recv_cq = rs->cq;
	attr.cap.max_send_wr = sizes->send_queue;
	attr.cap.max_recv_wr = sizes->recv_queue;
	attr.cap.max_send_sge = 2;
	attr.cap.max_recv_sge = 1;
	attr.cap.max_inline_data = sizes->inline_bytes;
	if (rdma_create_qp(rs->id, NULL, &attr) != 0)
		return -errno;
	sizes->inline_bytes = (uint16_t)rcd_rs_least(attr.cap.max_inline_data, UINT16_MAX);
	return 0;
}

/* @return NULL and errno */
static struct ibv_mr *
rs_link_register(const struct rcd_rs *rs, void *mem, size_t len, int access)
{
	return ibv_reg_mr(rs->id->pd, mem, len, IBV_ACCESS_LOCAL_WRITE | access);
}

static int
rs_link_create_memory(struct rcd_rs *rs)
{
	const struct rcd_rs_sizes *sizes = &rs->sizes;
	size_t send_len = sizes->send_bytes + RCD_RS_CONTROLS * sizeof(struct rcd_rs_sge);
	size_t shared_len = RCD_RS_LIST * sizeof(struct rcd_rs_sge) +
		sizes->iomaps * sizeof(struct rcd_rs_iomap);

	rs->ring = rcd_rs_alloc(sizes->recv_bytes);
	rs->send_buf = rcd_rs_alloc(send_len);
	rs->shared = rcd_rs_alloc(shared_len);
	rs->table = calloc(sizes->iomaps + 1u, sizeof(rs->table[0]));
	if (rs->ring == NULL || rs->send_buf == NULL || rs->shared == NULL || rs->table == NULL)
		return -ENOMEM;
	rs->ring_mr = rs_link_register(rs, rs->ring, sizes->recv_bytes, IBV_ACCESS_REMOTE_WRITE);
	rs->send_mr = rs_link_register(rs, rs->send_buf, send_len, 0);
	rs->shared_mr = rs_link_register(rs, rs->shared, shared_len, IBV_ACCESS_REMOTE_WRITE);
	if (rs->ring_mr == NULL || rs->send_mr == NULL || rs->shared_mr == NULL)
		return -errno;
	return 0;
}

int
rcd_rs_link_create(struct rcd_rs *rs)
{
	uint32_t half = rs->sizes.recv_bytes / 2;
	int err = rs_link_create_qp(rs);

	if (err == 0)
		err = rs_link_create_memory(rs);
	for (uint32_t i = 0; err == 0 && i < rs->sizes.recv_queue; i++)
		err = rcd_rs_post_recv(rs);
	rs->granted = rs->spare = rs->grant_at = half;
	rs->credit_at = rs->sizes.recv_queue / 2;
	rs->send_free = rs->sizes.send_bytes;
	rs->send_room = rs->sizes.send_queue - RCD_RS_CONTROLS;
	rs->control_room = RCD_RS_CONTROLS;
	rs->half_next = 1;
	return err;
}

static void
rs_link_forget_mappings(struct rcd_rs *rs)
{
	struct rcd_rs_mapping *mapping;

	while ((mapping = LIST_FIRST(&rs->mappings)) != NULL) {
		LIST_REMOVE(mapping, link);
		ibv_dereg_mr(mapping->mr);
		free(mapping);
	}
}

void
rcd_rs_link_destroy(struct rcd_rs *rs)
{
	rs_link_forget_mappings(rs);
	if (rs->id->qp != NULL)
		rdma_destroy_qp(rs->id);
	if (rs->cq != NULL)
		ibv_destroy_cq(rs->cq);
	if (rs->comp != NULL)
		ibv_destroy_comp_channel(rs->comp);
	if (rs->ring_mr != NULL)
		ibv_dereg_mr(rs->ring_mr);
	if (rs->send_mr != NULL)
		ibv_dereg_mr(rs->send_mr);
	if (rs->shared_mr != NULL)
		ibv_dereg_mr(rs->shared_mr);
	free(rs->ring);
	free(rs->send_buf);
	free(rs->shared);
	free(rs->table);
}
