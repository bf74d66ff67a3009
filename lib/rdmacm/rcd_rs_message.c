/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Messages both ways, and the credits for them. Whatever a peer says is held against what it was
 * granted here.
 */
#include "rcd_rs.h"

#include <byteswap.h>
#include <string.h>

#define BATCH 16

int
rcd_rs_post_recv(struct rcd_rs *rs)
{
	struct ibv_recv_wr wr = { .wr_id = rcd_rs_work(RCD_RS_WORK_RECV, 0) };
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(rs->id->qp, &wr, &bad);
}

int
rcd_rs_post_write(struct rcd_rs *rs, struct ibv_sge *sges, int count, uint64_t addr, uint32_t key,
	uint32_t message, uint64_t work)
{
	bool silent = message == UINT32_MAX;
	struct ibv_send_wr wr = {
		.wr_id = work,
		.sg_list = sges,
		.num_sge = count,
		.opcode = silent ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(message),
		.wr.rdma = { .remote_addr = addr, .rkey = key },
	};
	struct ibv_send_wr *bad;
	uint64_t len = 0;

	for (int i = 0; i < count; i++)
		len += sges[i].length;
	if (len > 0 && len <= rs->sizes.inline_bytes)
		wr.send_flags |= IBV_SEND_INLINE;
	return -ibv_post_send(rs->id->qp, &wr, &bad);
}

int
rcd_rs_post_control(struct rcd_rs *rs, enum rcd_rs_control control)
{
	uint32_t message = (uint32_t)RCD_RS_CONTROL << RCD_RS_MESSAGE_SHIFT | (uint32_t)control;
	int err;

	if (rs->control_room == 0)
		return -EAGAIN;
	err = rcd_rs_post_write(rs, NULL, 0, 0, 0, message, rcd_rs_work(RCD_RS_WORK_CONTROL, 0));
	if (err == 0)
		rs->control_room--;
	return err;
}

bool
rcd_rs_can_stage(const struct rcd_rs *rs)
{
	return rs->send_room > 0 && rs->send_free >= RCD_RS_LOW_WATER;
}

bool
rcd_rs_can_send(const struct rcd_rs *rs)
{
	return rs->state == RCD_RS_CONNECTED && rs->writable && rcd_rs_can_stage(rs) &&
		rs->said != rs->say_until && rs->halves[rs->half_at].len > 0;
}

/* The entry that grants the next half, where requests for control messages have it. */
static struct ibv_sge
rs_message_grant(struct rcd_rs *rs, uint32_t half)
{
	struct rcd_rs_sge grant = {
		.addr = (uintptr_t)(rs->ring + rs->grant_at), .key = rs->ring_mr->rkey, .len = half
	};
	uint8_t *place = rs->send_buf + rs->sizes.send_bytes + rs->control_at * sizeof(grant);

	if (rs->big_peer != (__BYTE_ORDER == __BIG_ENDIAN))
		grant = (struct rcd_rs_sge){ .addr = bswap_64(grant.addr),
			.key = bswap_32(grant.key),
			.len = bswap_32(grant.len) };
	memcpy(place, &grant, sizeof(grant));
	rs->control_at = (rs->control_at + 1) % RCD_RS_CONTROLS;
	return (struct ibv_sge){
		.addr = (uintptr_t)place, .length = sizeof(grant), .lkey = rs->send_mr->lkey
	};
}

/* Give the peer what it can use: half of the ring, or credits. */
static void
rs_message_give(struct rcd_rs *rs)
{
	uint32_t half = rs->sizes.recv_bytes / 2;
	bool grants = rs->spare >= half;
	uint16_t until = (uint16_t)(rs->heard + rs->sizes.recv_queue);
	uint32_t message = (uint32_t)RCD_RS_CREDIT << RCD_RS_MESSAGE_SHIFT | until;
	uint64_t addr = 0;
	struct ibv_sge sge;
	int err;

	if (rs->state != RCD_RS_CONNECTED || rs->control_room == 0 ||
		(!grants && (int16_t)(rs->heard - rs->credit_at) < 0))
		return;
	if (grants) {
		sge = rs_message_grant(rs, half);
		addr = rs->list.addr + rs->list_at * sizeof(struct rcd_rs_sge);
	}
	err = rcd_rs_post_write(rs, grants ? &sge : NULL, grants, addr, grants ? rs->list.key : 0,
		message, rcd_rs_work(RCD_RS_WORK_CONTROL, 0));
	if (err != 0) {
		rcd_rs_fail(rs, -err);
		return;
	}
	rs->control_room--;
	rs->credit_at = (uint16_t)(rs->heard + rs->sizes.recv_queue / 2);
	if (!grants)
		return;
	rs->spare -= half;
	rs->granted += half;
	rs->grant_at = rs->grant_at == 0 ? half : 0;
	rs->list_at = (rs->list_at + 1) % rs->list.len;
}

/* The peer has written the next entry of our list: into which half of its ring we may send. */
static int
rs_message_take_half(struct rcd_rs *rs)
{
	struct rcd_rs_sge *half = &rs->halves[rs->half_next];

	/* One that we have not sent all of: it may not take that back. */
	if (half->len > 0)
		return -EPROTO;
	memcpy(half, &rs->shared[rs->half_next], sizeof(*half));
	if (half->len > RCD_RS_MESSAGE_MASK)
		half->len = RCD_RS_MESSAGE_MASK;
	rs->half_next = (rs->half_next + 1) % RCD_RS_LIST;
	return 0;
}

/* The peer has written an entry of our table. */
static int
rs_message_take_iomap(struct rcd_rs *rs, uint32_t index)
{
	const uint8_t *entries = (const uint8_t *)(rs->shared + RCD_RS_LIST);

	rs->heard++;
	if (index >= rs->sizes.iomaps)
		return -EPROTO;
	memcpy(&rs->table[index], entries + index * sizeof(rs->table[0]), sizeof(rs->table[0]));
	return 0;
}

static int
rs_message_take_control(struct rcd_rs *rs, uint32_t control)
{
	switch (control) {
	case RCD_RS_SHUTDOWN:
		rs->readable = false;
		if (!rs->writable)
			rcd_rs_disconnected(rs);
		return 0;
	case RCD_RS_DISCONNECT:
		rcd_rs_disconnected(rs);
		return 0;
	case RCD_RS_KEEPALIVE:
		return 0;
	default:
		return -EPROTO;
	}
}

static int
rs_message_take(struct rcd_rs *rs, const struct ibv_wc *wc)
{
	uint32_t message = be32toh(wc->imm_data);
	uint32_t val = message & RCD_RS_MESSAGE_MASK;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		return -EPROTO;
	switch (message >> RCD_RS_MESSAGE_SHIFT) {
	case RCD_RS_DATA:
		if (val > rs->granted)
			return -EPROTO;
		rs->heard++;
		rs->granted -= val;
		rs->held += val;
		return 0;
	case RCD_RS_CREDIT:
		rs->say_until = (uint16_t)val;
		/* Some say no more than that. */
		return wc->byte_len >= sizeof(struct rcd_rs_sge) ? rs_message_take_half(rs) : 0;
	case RCD_RS_IOMAP:
		return rs_message_take_iomap(rs, val);
	case RCD_RS_CONTROL:
		return rs_message_take_control(rs, val);
	default:
		return -EPROTO;
	}
}

static void
rs_message_complete(struct rcd_rs *rs, const struct ibv_wc *wc)
{
	int err = 0;

	switch (wc->wr_id >> 32) {
	case RCD_RS_WORK_CONTROL:
		rs->control_room++;
		break;
	case RCD_RS_WORK_SEND:
		rs->send_room++;
		rs->send_free += (uint32_t)wc->wr_id;
		break;
	default:
		if (wc->status == IBV_WC_SUCCESS) {
			err = rs_message_take(rs, wc);
			if (err == 0 && rs->state == RCD_RS_CONNECTED)
				err = rcd_rs_post_recv(rs);
		}
		break;
	}
	if (wc->status != IBV_WC_SUCCESS)
		err = -ECONNRESET;
	if (err != 0)
		rcd_rs_fail(rs, -err);
}

bool
rcd_rs_message_progress(struct rcd_rs *rs)
{
	/* No more than there can be at a time, however fast a peer is. */
	uint32_t most = (uint32_t)rs->sizes.send_queue + rs->sizes.recv_queue;
	uint32_t taken = 0;
	struct ibv_wc wcs[BATCH];
	int got;

	if (rs->state < RCD_RS_CONNECTED || rs->cq == NULL)
		return false;
	do {
		got = ibv_poll_cq(rs->cq, BATCH, wcs);
		for (int i = 0; i < got; i++)
			rs_message_complete(rs, &wcs[i]);
		if (got > 0)
			taken += (uint32_t)got;
	} while (got == BATCH && taken < most);
	if (got < 0)
		rcd_rs_fail(rs, EIO);
	rs_message_give(rs);
	return taken > 0;
}
