/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sending datagrams: by the queue pair, or, as long as the peer's is not known, by UDP.
 */
#include "rcd_ds.h"

#include <string.h>

/* All that the buffers have. */
static void
ds_send_gather(uint8_t *to, const struct iovec *iov, int count)
{
	for (int i = 0; i < count; i++) {
		if (iov[i].iov_len > 0)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* @return 0; -EPIPE; -errno */
static int
ds_send_check(const struct rcd_rs *rs)
{
	if (rs->state == RCD_RS_CLOSED)
		return -EBADF;
	if (rs->state == RCD_RS_FAILED)
		return rs->error != 0 ? -rs->error : -EIO;
	return rs->writable ? 0 : -EPIPE;
}

static bool
ds_send_is_possible(const struct rcd_rs *rs)
{
	return rs->ds->sending->send_room > 0 || ds_send_check(rs) != 0;
}

/* Where the peer's queue pair is known. @return 0 or -errno */
static int
ds_send_post(
	struct rcd_rs *rs, struct rcd_ds_dest *dest, const struct iovec *iov, int count, size_t len)
{
	struct rcd_ds_qp *qp = dest->qp;
	uint8_t *slot = qp->send_buf + (size_t)qp->send_at * RCD_DS_BUFFER;
	uint32_t header = rcd_ds_header_build(slot, &qp->local);
	struct ibv_sge sge = {
		.addr = (uintptr_t)slot, .length = header + (uint32_t)len, .lkey = qp->send_mr->lkey
	};
	struct ibv_send_wr wr = { .wr_id = rcd_rs_work(RCD_RS_WORK_SEND, 0),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = sge.length <= qp->inline_bytes ? IBV_SEND_INLINE : 0,
		.wr.ud = {
			.ah = dest->ah, .remote_qpn = dest->qpn, .remote_qkey = RDMA_UDP_QKEY } };
	struct ibv_send_wr *bad;
	int err;

	ds_send_gather(slot + header, iov, count);
	err = -ibv_post_send(qp->id->qp, &wr, &bad);
	if (err != 0)
		return err;
	qp->send_at = (qp->send_at + 1) % rs->ds->send_queue;
	qp->send_room--;
	dest->last_sent = ++qp->sent;
	return 0;
}

/* @return 0 or -errno */
static int
ds_send_early(struct rcd_rs *rs, const struct rcd_ds_dest *dest, const struct iovec *iov, int count,
	size_t len)
{
	uint8_t data[RCD_DS_BUFFER];

	ds_send_gather(data, iov, count);
	return rcd_ds_udp_send(rs, dest, RCD_DS_DATA, data, len);
}

/* To a destination that nobody takes away. @return 0 or -errno */
static int
ds_send_to(struct rcd_rs *rs, struct rcd_ds_dest *dest, const struct iovec *iov, int count,
	size_t len, bool nonblock)
{
	uint32_t header;
	int err = rcd_ds_dest_route(rs, dest);

	if (err != 0)
		return err;
	header = rcd_ds_addr_is_ipv4(&dest->qp->local) ? RCD_DS_HEADER4 : RCD_DS_HEADER_MAX;
	if (len > dest->qp->most - header)
		return -EMSGSIZE;
	if (dest->qpn == 0)
		return ds_send_early(rs, dest, iov, count, len);
	err = rcd_ds_dest_handle(rs, dest);
	if (err != 0)
		return err;
	rs->ds->sending = dest->qp;
	err = rcd_rs_wait(rs, ds_send_is_possible, nonblock ? 0 : -1);
	if (err == 0)
		err = ds_send_check(rs);
	return err != 0 ? err : ds_send_post(rs, dest, iov, count, len);
}

ssize_t
rcd_ds_send(struct rcd_rs *rs, const struct iovec *iov, int count, const struct sockaddr *to,
	socklen_t to_len, bool nonblock)
{
	struct rcd_ds_addr addr = rs->ds->peer;
	struct rcd_ds_dest *dest;
	size_t len;
	int err;

	err = rcd_rs_measure(iov, count, &len);
	if (err == 0)
		err = ds_send_check(rs);
	if (err == 0 && to != NULL)
		err = rcd_ds_addr_take(rs->domain, to, to_len, &addr);
	else if (err == 0 && addr.port == 0)
		err = -EDESTADDRREQ;
	if (err == 0 && (addr.port == 0 || rcd_ds_addr_is_any(&addr)))
		err = -EINVAL;
	if (err == 0 && rcd_ds_addr_is_loopback(&addr))
		err = -ENETUNREACH;
	if (err == 0)
		err = rcd_ds_open(rs);
	if (err != 0)
		return rcd_rs_done(rs, 0, err);
	dest = rcd_ds_dest_get(rs->ds, &addr);
	if (dest == NULL)
		return -ENOBUFS;
	/* Until it is sent to: others may make destinations while this waits. */
	dest->pinned = true;
	err = ds_send_to(rs, dest, iov, count, len, nonblock);
	dest->pinned = false;
	return err != 0 ? rcd_rs_done(rs, 0, err) : (ssize_t)len;
}
