/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests that take one more of something.
 */
#include "takers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

long long
use_of(const struct rig *rig, const char *who, const char *resource, long long *limit)
{
	char *answer = rig_admin(rig->socket, "resource quota");
	const char *at = answer != NULL ? strstr(answer, who) : NULL;
	char key[64];
	long long used = -1;

	snprintf(key, sizeof(key), "\"%s\":{", resource);
	at = at != NULL ? strstr(at, key) : NULL;
	if (at != NULL) {
		used = rig_number(at, "used");
		*limit = rig_number(at, "limit");
	}
	free(answer);
	return used;
}

int
take_descriptor(struct taker *taker)
{
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;
	int err = rcd_client_call(
		&taker->node.client, RCD_CTRL_CHANNEL_CREATE, NULL, &rep, NULL, &fds);

	rcd_ctrl_fds_close(&fds);
	return err;
}

void
keeper_open(struct keeper *keeper, const char *socket)
{
	struct rcd_ctrl_index_req req = { .index = 0 };
	struct rcd_ctrl_device_rep device;
	struct rcd_ctrl_open_rep rep;
	struct rcd_ctrl_fds fds;

	MUST(rcd_client_connect(&keeper->client, socket) == 0);
	MUST(rcd_client_call(&keeper->client, RCD_CTRL_DEVICE, &req, &device, NULL, NULL) == 0);
	req.index = device.index;
	MUST(rcd_client_call(&keeper->client, RCD_CTRL_OPEN, &req, &rep, NULL, &fds) == 0);
	keeper->files[0] = fds.fds[0];
	keeper->files[1] = fds.count > 3 ? fds.fds[3] : -1;
	close(fds.fds[1]);
	close(fds.fds[2]);
	for (int i = 0; i < 12; i++) {
		struct rcd_ctrl_cq_req cq = { .depth = 1 << 14, .channel = RCD_CTRL_NO_HANDLE };
		struct rcd_ctrl_cq_rep made;

		/* A megabyte each: in hugepages as long as there are some. */
		MUST(rcd_client_call(&keeper->client, RCD_CTRL_CQ_CREATE, &cq, &made, NULL, NULL) ==
			0);
	}
}

long long
keeper_bytes(const struct keeper *keeper)
{
	long long bytes = 0;

	for (int i = 0; i < 2; i++) {
		struct stat stat;

		if (keeper->files[i] < 0)
			continue;
		MUST(fstat(keeper->files[i], &stat) == 0);
		bytes += (long long)stat.st_blocks * 512;
	}
	return bytes;
}

int
mem_add(struct taker *taker, uint64_t len, uint32_t *handle)
{
	return mem_add_part(taker, 0, len, handle);
}

int
mem_add_part(struct taker *taker, uint64_t offset, uint64_t len, uint32_t *handle)
{
	struct rcd_ctrl_mem_req req = { .offset = offset, .len = len };
	struct rcd_ctrl_fds fds = { .fds = { taker->fd }, .count = 1 };
	struct rcd_ctrl_handle rep = { .handle = 0 };
	int err = rcd_client_call(&taker->node.client, RCD_CTRL_MEM_ADD, &req, &rep, &fds, NULL);

	*handle = rep.handle;
	return err;
}

int
take_mem(struct taker *taker)
{
	uint32_t handle;

	return mem_add(taker, 4096, &handle);
}

int
take_addresses(struct taker *taker)
{
	uint32_t handle;

	return mem_add(taker, UINT64_C(512) << 20, &handle);
}

int
share_file(struct taker *taker, uint64_t len)
{
	struct taker other = *taker;
	uint32_t handle;
	int err;

	other.fd = memfd_create("shared", MFD_CLOEXEC);
	MUST(other.fd >= 0 && ftruncate(other.fd, (off_t)len) == 0);
	err = mem_add(&other, len, &handle);
	close(other.fd);
	return err;
}

int
take_shared(struct taker *taker)
{
	return share_file(taker, UINT64_C(256) << 20);
}

int
take_mappings(struct taker *taker)
{
	struct rcd_ctrl_mr_req req;
	struct rcd_ctrl_mr_rep rep;

	memset(&req, 0, sizeof(req));
	req.pd = taker->node.pd;
	req.extent_count = 64;
	req.len = 64 * 4096;
	for (uint32_t i = 0; i < req.extent_count; i++) {
		req.extents[i].offset = (uint64_t)i * 8192;
		req.extents[i].len = 4096;
		req.extents[i].mem = taker->mem;
	}
	return rcd_client_call(&taker->node.client, RCD_CTRL_MR_REG, &req, &rep, NULL, NULL);
}

static int
take_cq_of(struct taker *taker, uint32_t depth)
{
	struct rcd_ctrl_cq_req req = { .depth = depth, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_cl_cq cq;

	return rcd_cl_cq_create(&taker->node.client, &req, &cq);
}

int
take_cq(struct taker *taker)
{
	return take_cq_of(taker, 1);
}

int
take_slots(struct taker *taker)
{
	return take_cq_of(taker, 4096);
}

static int
take_srq_of(struct taker *taker, uint32_t depth)
{
	struct rcd_ctrl_srq_req req = { .pd = taker->node.pd, .depth = depth, .max_sge = 1 };
	struct rcd_ctrl_srq_rep rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_SRQ_CREATE, &req, &rep, NULL, NULL);
}

int
take_srq(struct taker *taker)
{
	return take_srq_of(taker, 1);
}

int
take_xrcd(struct taker *taker)
{
	struct rcd_ctrl_handle rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_XRCD_CREATE, NULL, &rep, NULL, NULL);
}

int
take_bytes(struct taker *taker)
{
	return take_srq_of(taker, 1u << 15);
}

int
take_dm(struct taker *taker)
{
	struct rcd_ctrl_dm_req req = { .len = 1 << 20 };
	struct rcd_ctrl_dm_rep rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_DM_ALLOC, &req, &rep, NULL, NULL);
}

static int
make_qp(struct taker *taker, struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_req req = { .pd = taker->node.pd,
		.type = RCD_QP_UD,
		.send_cq = taker->node.cq.handle,
		.recv_cq = taker->node.cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = 1,
		.rq_depth = 1 };

	return rcd_cl_qp_create(&taker->node.client, &req, qp);
}

int
take_qp(struct taker *taker)
{
	struct rcd_cl_qp qp;

	return make_qp(taker, &qp);
}

int
take_null_mr(struct taker *taker)
{
	struct rcd_ctrl_handle req = { .handle = taker->node.pd };
	struct rcd_ctrl_key rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_MR_NULL, &req, &rep, NULL, NULL);
}

int
take_mw(struct taker *taker)
{
	struct rcd_ctrl_mw_req req = { .pd = taker->node.pd, .type = 2 };
	struct rcd_ctrl_key rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_MW_ALLOC, &req, &rep, NULL, NULL);
}

int
take_pd(struct taker *taker)
{
	struct rcd_ctrl_handle rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_PD_CREATE, NULL, &rep, NULL, NULL);
}

int
take_ah(struct taker *taker)
{
	uint8_t own = node_gid(&taker->node, 1);
	struct rcd_ctrl_ah_req req = { .pd = taker->node.pd, .av = { .sgid_index = own } };
	struct rcd_ctrl_ah_handle rep;

	memcpy(req.av.dgid, taker->node.gids.gids[own].raw, 16);
	return rcd_client_call(&taker->node.client, RCD_CTRL_AH_CREATE, &req, &rep, NULL, NULL);
}

int
take_cm_id(struct taker *taker)
{
	struct rcd_ctrl_cm_create_req req = {
		.channel = taker->cm_channel, .space = 0x0106, .qp_type = RCD_QP_RC
	};
	struct rcd_ctrl_handle rep;

	return rcd_client_call(&taker->node.client, RCD_CTRL_CM_CREATE, &req, &rep, NULL, NULL);
}

int
share_cm_port(struct taker *taker, uint16_t *port, uint32_t *id)
{
	struct rcd_client *client = &taker->node.client;
	struct rcd_ctrl_cm_create_req create = {
		.channel = taker->cm_channel, .space = 0x0106, .qp_type = RCD_QP_RC
	};
	struct rcd_ctrl_cm_set_req reuse = { .option = RCD_CTRL_CM_REUSEADDR, .value = 1 };
	struct rcd_ctrl_cm_addr_req bind = { .addr = { .addr = { [10] = 0xff, [11] = 0xff },
						     .family = 4 } };
	struct rcd_ctrl_cm_query_rep query;
	struct rcd_ctrl_handle rep;
	int err = rcd_client_call(client, RCD_CTRL_CM_CREATE, &create, &rep, NULL, NULL);

	if (err != 0)
		return err;
	*id = bind.id = reuse.id = rep.handle;
	bind.addr.port = *port;
	err = rcd_client_call(client, RCD_CTRL_CM_SET, &reuse, NULL, NULL, NULL);
	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL);
	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_QUERY, &rep, &query, NULL, NULL);
	if (err == 0)
		*port = query.src.port;
	return err;
}

int
take_cm_port(struct taker *taker)
{
	uint16_t port = 0;
	uint32_t id;

	return share_cm_port(taker, &port, &id);
}

/* Somebody who listens, and never answers. @return 0 or -errno */
static int
listen_once(struct taker *taker)
{
	struct rcd_client *client = &taker->node.client;
	struct rcd_ctrl_cm_create_req create = {
		.channel = taker->cm_channel, .space = 0x0106, .qp_type = RCD_QP_RC
	};
	struct rcd_ctrl_cm_addr_req bind = { .addr = { .family = 4 } };
	struct rcd_ctrl_cm_pair listen = { .second = 1000 };
	struct rcd_ctrl_cm_query_rep query;
	struct rcd_ctrl_handle id;
	int err;

	if (taker->listener.port != 0)
		return 0;
	memcpy(bind.addr.addr, taker->node.gids.gids[node_gid(&taker->node, 1)].raw, 16);
	err = rcd_client_call(client, RCD_CTRL_CM_CREATE, &create, &id, NULL, NULL);
	bind.id = listen.id = id.handle;
	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL);
	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_LISTEN, &listen, NULL, NULL, NULL);
	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_QUERY, &id, &query, NULL, NULL);
	if (err == 0)
		taker->listener = query.src;
	return err;
}

int
take_cm_connection(struct taker *taker)
{
	struct rcd_client *client = &taker->node.client;
	struct rcd_ctrl_cm_create_req create = {
		.channel = taker->cm_channel, .space = 0x0106, .qp_type = RCD_QP_RC
	};
	struct rcd_ctrl_cm_resolve_req resolve = { .timeout_ms = 2000 };
	struct rcd_ctrl_cm_param_req connect = { .qpn = 0 };
	struct rcd_ctrl_handle id;
	int err = listen_once(taker);

	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_CREATE, &create, &id, NULL, NULL);
	if (err != 0)
		return err;
	resolve.id = connect.id = id.handle;
	resolve.dst = taker->listener;
	err = rcd_client_call(client, RCD_CTRL_CM_RESOLVE_ADDR, &resolve, NULL, NULL, NULL);
	if (err == 0)
		err = rcd_client_call(client, RCD_CTRL_CM_RESOLVE_ROUTE, &id, NULL, NULL, NULL);
	return err == 0 ? rcd_client_call(client, RCD_CTRL_CM_CONNECT, &connect, NULL, NULL, NULL)
			: err;
}

int
take_group(struct taker *taker)
{
	struct rcd_ctrl_mcast_req req = { .qp = taker->group_qp - 1 };
	struct rcd_cl_qp qp;
	int err;

	if (taker->group_qp == 0) {
		err = make_qp(taker, &qp);
		if (err != 0)
			return err;
		taker->group_qp = qp.handle + 1;
		req.qp = qp.handle;
	}
	memcpy(req.group, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xef\x01\0", 15);
	req.group[15] = (uint8_t)++taker->group;
	return rcd_client_call(&taker->node.client, RCD_CTRL_MCAST_ATTACH, &req, NULL, NULL, NULL);
}

int
taker_open(struct taker *taker, const char *socket)
{
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;
	int err = node_try_open(&taker->node, socket, "roce0");

	if (err != 0)
		return err;
	taker->fd = memfd_create("t", 0);
	MUST(taker->fd >= 0 && ftruncate(taker->fd, (off_t)HUGE) == 0);
	err = take_pd(taker);
	if (err == 0)
		err = mem_add(taker, HUGE, &taker->mem);
	if (err == 0) {
		struct rcd_ctrl_cq_req req = { .depth = 16, .channel = RCD_CTRL_NO_HANDLE };

		err = rcd_cl_cq_create(&taker->node.client, &req, &taker->node.cq);
	}
	if (err == 0)
		err = rcd_client_call(
			&taker->node.client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &rep, NULL, &fds);
	if (err == 0)
		rcd_ctrl_fds_close(&fds);
	taker->cm_channel = rep.handle;
	return err;
}
