/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A UD queue pair for each local address of a datagram socket, with the buffers that it sends from
 * and receives into.
 */
#include "rcd_ds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define SLOT  2112 /**< of a receive buffer: the IP header's place, a datagram, whole cache lines */
#define BATCH 16
#define GIDS  64 /**< of a device, that are looked at */

static_assert(SLOT >= RCD_DS_GRH + RCD_DS_BUFFER, "both are in it");

static int
ds_qp_post_recv(struct rcd_ds_qp *qp, uint32_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)qp->recv_buf + (uint64_t)slot * SLOT,
		.length = RCD_DS_GRH + RCD_DS_BUFFER,
		.lkey = qp->recv_mr->lkey };
	struct ibv_recv_wr wr = {
		.wr_id = rcd_rs_work(RCD_RS_WORK_RECV, slot), .sg_list = &sge, .num_sge = 1
	};
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(qp->id->qp, &wr, &bad);
}

/* Its identifier, with a device. @return 0 or -errno */
static int
ds_qp_bind(struct rcd_ds_qp *qp)
{
	struct rcd_ds_addr any_port = qp->local;
	struct sockaddr_storage addr;
	struct ibv_port_attr port;
	union ibv_gid gid = { .raw = { 0 } };
	int index = 0;

	/* Its port is the UDP socket's; nobody asks for one of the engine's. */
	any_port.port = 0;
	rcd_ds_addr_give(AF_INET6, &any_port, &addr);
	if (rdma_create_id(NULL, &qp->id, NULL, RDMA_PS_UDP) != 0)
		return -errno;
	if (rdma_bind_addr(qp->id, (struct sockaddr *)&addr) != 0)
		return errno == ENODEV ? -EADDRNOTAVAIL : -errno;
	if (qp->id->verbs == NULL || ibv_query_port(qp->id->verbs, 1, &port) != 0)
		return -ENODEV;
	/* Packets must have this very address: by it peers know from whom they are. */
	while (ibv_query_gid(qp->id->verbs, 1, index, &gid) == 0 &&
		memcmp(gid.raw, qp->local.ip, 16) != 0 && index < UINT8_MAX)
		index++;
	if (memcmp(gid.raw, qp->local.ip, 16) != 0)
		return -EADDRNOTAVAIL;
	qp->sgid_index = (uint8_t)index;
	qp->most = rcd_rs_least(RCD_DS_BUFFER, 128u << port.active_mtu);
	return 0;
}

static int
ds_qp_create_queues(struct rcd_rs *rs, struct rcd_ds_qp *qp)
{
	const struct rcd_ds *ds = rs->ds;
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1 };

	qp->comp = ibv_create_comp_channel(qp->id->verbs);
	if (qp->comp == NULL || fcntl(qp->comp->fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	qp->cq = ibv_create_cq(
		qp->id->verbs, (int)(ds->send_queue + ds->recv_queue), rs, qp->comp, 0);
	if (qp->cq == NULL)
		return -errno;
	attr.send_cq = attr.recv_cq = qp->cq;
	attr.cap.max_send_wr = ds->send_queue;
	attr.cap.max_recv_wr = ds->recv_queue;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
	attr.cap.max_inline_data = rs->sizes.inline_bytes;
	if (rdma_create_qp(qp->id, NULL, &attr) != 0)
		return -errno;
	qp->inline_bytes = attr.cap.max_inline_data;
	return 0;
}

static int
ds_qp_create_memory(struct rcd_rs *rs, struct rcd_ds_qp *qp)
{
	const struct rcd_ds *ds = rs->ds;
	size_t recv_len = (size_t)ds->recv_queue * SLOT;
	size_t send_len = (size_t)ds->send_queue * RCD_DS_BUFFER;

	qp->recv_buf = rcd_rs_alloc(recv_len);
	qp->send_buf = rcd_rs_alloc(send_len);
	qp->messages = calloc(ds->recv_queue, sizeof(qp->messages[0]));
	if (qp->recv_buf == NULL || qp->send_buf == NULL || qp->messages == NULL)
		return -ENOMEM;
	qp->recv_mr = ibv_reg_mr(qp->id->pd, qp->recv_buf, recv_len, IBV_ACCESS_LOCAL_WRITE);
	qp->send_mr = ibv_reg_mr(qp->id->pd, qp->send_buf, send_len, IBV_ACCESS_LOCAL_WRITE);
	if (qp->recv_mr == NULL || qp->send_mr == NULL)
		return -errno;
	return 0;
}

static int
ds_qp_create(struct rcd_rs *rs, struct rcd_ds_qp *qp)
{
	struct epoll_event event = { .events = EPOLLIN };
	int err = ds_qp_bind(qp);

	if (err == 0)
		err = ds_qp_create_queues(rs, qp);
	if (err == 0)
		err = ds_qp_create_memory(rs, qp);
	for (uint32_t i = 0; err == 0 && i < rs->ds->recv_queue; i++)
		err = ds_qp_post_recv(qp, i);
	if (err == 0 && epoll_ctl(rs->ds->epoll, EPOLL_CTL_ADD, qp->comp->fd, &event) != 0)
		err = -errno;
	qp->send_room = rs->ds->send_queue;
	return err;
}

void
rcd_ds_qp_free(struct rcd_ds_qp *qp)
{
	if (qp->id != NULL && qp->id->qp != NULL)
		rdma_destroy_qp(qp->id);
	if (qp->cq != NULL)
		ibv_destroy_cq(qp->cq);
	if (qp->comp != NULL)
		ibv_destroy_comp_channel(qp->comp);
	if (qp->recv_mr != NULL)
		ibv_dereg_mr(qp->recv_mr);
	if (qp->send_mr != NULL)
		ibv_dereg_mr(qp->send_mr);
	if (qp->id != NULL)
		rdma_destroy_id(qp->id);
	free(qp->recv_buf);
	free(qp->send_buf);
	free(qp->messages);
	free(qp);
}

int
rcd_ds_qp_get(struct rcd_rs *rs, const struct rcd_ds_addr *local, struct rcd_ds_qp **given)
{
	struct rcd_ds *ds = rs->ds;
	struct rcd_ds_addr own = *local;
	struct rcd_ds_qp *qp;
	int err;

	own.port = ds->local.port;
	LIST_FOREACH(qp, &ds->qps, link)
		if (rcd_ds_addr_equal(&qp->local, &own)) {
			*given = qp;
			return 0;
		}
	if (ds->qp_count == RCD_DS_QPS_MOST)
		return -ENOBUFS;
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	qp->local = own;
	qp->carried = rcd_ds_addr_is_carried(&own);
	err = ds_qp_create(rs, qp);
	if (err != 0) {
		rcd_ds_qp_free(qp);
		return err;
	}
	LIST_INSERT_HEAD(&ds->qps, qp, link);
	ds->qp_count++;
	/* Who sleeps already has passed where it would have done so. */
	rcd_ds_arm(rs);
	*given = qp;
	return 0;
}

/* Of a device's addresses the one that has this carrier. */
static bool
ds_qp_find_carried(
	struct ibv_context *verbs, const struct rcd_ds_addr *carrier, struct rcd_ds_addr *local)
{
	struct ibv_gid_entry gids[GIDS];
	ssize_t count = ibv_query_gid_table(verbs, gids, GIDS, 0);

	for (ssize_t i = 0; i < count; i++) {
		struct rcd_ds_addr own = { .port = carrier->port };
		struct rcd_ds_addr its;

		memcpy(own.ip, gids[i].gid.raw, 16);
		its = rcd_ds_addr_carrier(&own);
		if (rcd_ds_addr_equal(&its, carrier) && rcd_ds_addr_is_carried(&own)) {
			*local = own;
			return true;
		}
	}
	return false;
}

int
rcd_ds_qp_get_carried(
	struct rcd_rs *rs, const struct rcd_ds_addr *carrier, struct rcd_ds_qp **given)
{
	struct ibv_context **devices;
	struct rcd_ds_addr local;
	struct rcd_ds_qp *qp;
	bool found = false;
	int count;

	LIST_FOREACH(qp, &rs->ds->qps, link) {
		struct rcd_ds_addr its = rcd_ds_addr_carrier(&qp->local);

		if (qp->carried && rcd_ds_addr_equal(&its, carrier)) {
			*given = qp;
			return 0;
		}
	}
	devices = rdma_get_devices(&count);
	if (devices == NULL)
		return -errno;
	for (int i = 0; i < count && !found; i++)
		found = ds_qp_find_carried(devices[i], carrier, &local);
	rdma_free_devices(devices);
	return found ? rcd_ds_qp_get(rs, &local, given) : -EADDRNOTAVAIL;
}

bool
rcd_ds_is_wanted(const struct rcd_ds *ds, const struct rcd_ds_addr *from)
{
	return from->port != 0 && (ds->peer.port == 0 || rcd_ds_addr_equal(&ds->peer, from));
}

/* The IP header is in the first 40 bytes; IPv4's in the last 20 of them. */
static bool
ds_qp_is_from(const uint8_t *grh, const struct rcd_ds_addr *from)
{
	if (rcd_ds_addr_is_ipv4(from))
		return grh[20] >> 4 == 4 && memcmp(grh + 20 + 12, from->ip + 12, 4) == 0;
	return grh[0] >> 4 == 6 && memcmp(grh + 8, from->ip, 16) == 0;
}

/* Have a datagram wait for the application. @return whether there is one, and it makes sense */
static bool
ds_qp_take(struct rcd_rs *rs, struct rcd_ds_qp *qp, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;
	struct rcd_ds_message *message = &qp->messages[slot];
	const uint8_t *grh = qp->recv_buf + (size_t)slot * SLOT;
	uint32_t header, len;

	if (wc->byte_len < RCD_DS_GRH || wc->byte_len > RCD_DS_GRH + RCD_DS_BUFFER)
		return false;
	len = wc->byte_len - RCD_DS_GRH;
	header = rcd_ds_header_parse(grh + RCD_DS_GRH, len, &message->from);
	if (header == 0 || !ds_qp_is_from(grh, &message->from) ||
		(rs->domain == AF_INET && !rcd_ds_addr_is_ipv4(&message->from)))
		return false;
	if (message->from.ip[0] == 0xfe && (message->from.ip[1] & 0xc0) == 0x80)
		message->from.scope = qp->local.scope;
	if (!rcd_ds_is_wanted(rs->ds, &message->from))
		return false;
	message->qp = qp;
	message->data = grh + RCD_DS_GRH + header;
	message->len = len - header;
	STAILQ_INSERT_TAIL(&rs->ds->queue, message, link);
	return true;
}

static void
ds_qp_complete(struct rcd_rs *rs, struct rcd_ds_qp *qp, const struct ibv_wc *wc)
{
	int err = 0;

	if (wc->wr_id >> 32 == RCD_RS_WORK_SEND) {
		qp->send_room++;
		qp->done++;
	}
	if (wc->status != IBV_WC_SUCCESS)
		err = -EIO;
	else if (wc->wr_id >> 32 == RCD_RS_WORK_RECV && !ds_qp_take(rs, qp, wc))
		err = ds_qp_post_recv(qp, (uint32_t)wc->wr_id);
	if (err != 0)
		rcd_rs_fail(rs, -err);
}

static bool
ds_qp_progress(struct rcd_rs *rs, struct rcd_ds_qp *qp)
{
	/* No more than there can be at a time, however fast a peer is. */
	uint32_t most = rs->ds->send_queue + rs->ds->recv_queue;
	uint32_t taken = 0;
	struct ibv_wc wcs[BATCH];
	int got;

	do {
		got = ibv_poll_cq(qp->cq, BATCH, wcs);
		for (int i = 0; i < got; i++)
			ds_qp_complete(rs, qp, &wcs[i]);
		if (got > 0)
			taken += (uint32_t)got;
	} while (got == BATCH && taken < most);
	if (got < 0)
		rcd_rs_fail(rs, EIO);
	return taken > 0;
}

bool
rcd_ds_progress(struct rcd_rs *rs)
{
	struct rcd_ds_qp *qp;
	bool changed = false;

	LIST_FOREACH(qp, &rs->ds->qps, link)
		changed |= ds_qp_progress(rs, qp);
	return changed;
}

void
rcd_ds_arm(struct rcd_rs *rs)
{
	struct rcd_ds_qp *qp;

	LIST_FOREACH(qp, &rs->ds->qps, link)
		if (!qp->armed)
			qp->armed = ibv_req_notify_cq(qp->cq, 0) == 0;
}

void
rcd_ds_disarm(struct rcd_rs *rs)
{
	struct rcd_ds_qp *qp;

	LIST_FOREACH(qp, &rs->ds->qps, link) {
		struct ibv_cq *cq;
		void *context;

		if (ibv_get_cq_event(qp->comp, &cq, &context) == 0) {
			ibv_ack_cq_events(cq, 1);
			qp->armed = false;
		} else if (errno != EAGAIN && errno != EINTR) {
			/* The engine is gone. */
			rcd_rs_fail(rs, EIO);
		}
	}
	/* Who sleeps relied on what was armed. */
	rcd_rs_ring(rs, NULL);
}

void
rcd_ds_release(struct rcd_rs *rs, struct rcd_ds_message *message)
{
	struct rcd_ds_qp *qp = message->qp;

	if (qp == NULL) {
		rs->ds->early--;
		free(message);
		return;
	}
	if (ds_qp_post_recv(qp, (uint32_t)(message - qp->messages)) != 0)
		rcd_rs_fail(rs, EIO);
}
