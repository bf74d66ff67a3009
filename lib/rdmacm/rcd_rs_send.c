/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sending: bytes go into the send buffer, and from there by writes into the half of the peer's ring
 * that it has granted.
 */
#include "rcd_ds.h"

#include <byteswap.h>
#include <limits.h>
#include <string.h>

#define FIRST_TRANSFER 2048 /**< the first of a long send is on its way while the next is copied */

/** Where in the application's buffers the next byte is. */
struct cursor {
	const struct iovec *iov;
	size_t at;
};

int
rcd_rs_stage(struct rcd_rs *rs, struct ibv_sge sges[2], uint32_t len)
{
	uint32_t first = rcd_rs_least(len, rs->sizes.send_bytes - rs->send_at);

	sges[0] = (struct ibv_sge){ .addr = (uintptr_t)(rs->send_buf + rs->send_at),
		.length = first,
		.lkey = rs->send_mr->lkey };
	sges[1] = (struct ibv_sge){
		.addr = (uintptr_t)rs->send_buf, .length = len - first, .lkey = rs->send_mr->lkey
	};
	return len > first ? 2 : 1;
}

/* Copy the next bytes. */
static void
rs_send_copy(struct cursor *from, void *to, size_t len)
{
	while (len > 0) {
		size_t here = from->iov->iov_len - from->at;
		size_t now = here < len ? here : len;

		if (now > 0)
			memcpy(to, (const uint8_t *)from->iov->iov_base + from->at, now);
		to = (uint8_t *)to + now;
		len -= now;
		from->at += now;
		if (from->at == from->iov->iov_len) {
			from->iov++;
			from->at = 0;
		}
	}
}

static bool
rs_send_is_possible(const struct rcd_rs *rs)
{
	return rcd_rs_can_send(rs) || rs->state != RCD_RS_CONNECTED || !rs->writable;
}

/* @return 0; -EPIPE, -ECONNRESET; -errno */
static int
rs_send_wait(struct rcd_rs *rs, bool nonblock)
{
	int err = 0;

	if (!rcd_rs_can_send(rs))
		err = rcd_rs_wait(rs, rs_send_is_possible, nonblock ? 0 : -1);
	if (err != 0)
		return err;
	if (rs->state == RCD_RS_CLOSED)
		return -EBADF;
	if (rs->state == RCD_RS_CONNECTED && rs->writable)
		return 0;
	/* It is told once. */
	return rs->error != 0 ? -rs->error : -EPIPE;
}

int
rcd_rs_post_staged(struct rcd_rs *rs, struct ibv_sge sges[2], int count, uint64_t addr,
	uint32_t key, uint32_t message)
{
	uint32_t len = sges[0].length + sges[1].length;
	uint32_t held = len <= rs->sizes.inline_bytes ? 0 : len;
	int err = rcd_rs_post_write(
		rs, sges, count, addr, key, message, rcd_rs_work(RCD_RS_WORK_SEND, held));

	if (err != 0) {
		rcd_rs_fail(rs, -err);
		return err;
	}
	rs->send_room--;
	rs->send_free -= held;
	rs->send_at = (uint32_t)(((uint64_t)rs->send_at + held) % rs->sizes.send_bytes);
	return 0;
}

/* Send as much as goes at once, up to a length. @return bytes or -errno */
static int64_t
rs_send_some(struct rcd_rs *rs, struct cursor *from, uint32_t most)
{
	struct rcd_rs_sge *half = &rs->halves[rs->half_at];
	uint32_t len = rcd_rs_least(most, rcd_rs_least(rs->send_free, half->len));
	struct ibv_sge sges[2];
	int count = rcd_rs_stage(rs, sges, len);
	int err;

	/* Only who has send_lock takes room away, or uses up the half. */
	pthread_mutex_unlock(&rs->lock);
	for (int i = 0; i < count; i++)
		rs_send_copy(from, (void *)(uintptr_t)sges[i].addr, sges[i].length);
	pthread_mutex_lock(&rs->lock);
	if (rs->state != RCD_RS_CONNECTED || !rs->writable)
		return rs_send_wait(rs, true);
	err = rcd_rs_post_staged(rs, sges, count, half->addr, half->key,
		(uint32_t)RCD_RS_DATA << RCD_RS_MESSAGE_SHIFT | len);
	if (err != 0)
		return err;
	rs->said++;
	half->addr += len;
	half->len -= len;
	if (half->len == 0)
		rs->half_at = (rs->half_at + 1) % RCD_RS_LIST;
	return len;
}

/* The entry of a mapping, as the peer has them. */
static struct rcd_rs_iomap
rs_send_entry(const struct rcd_rs *rs, const struct rcd_rs_mapping *mapping)
{
	struct rcd_rs_iomap entry = {
		.offset = mapping->offset,
		.sge = { .addr = (uintptr_t)mapping->mr->addr,
			.key = mapping->mr->rkey,
			.len = (uint32_t)mapping->mr->length },
	};

	if (rs->big_peer != (__BYTE_ORDER == __BIG_ENDIAN))
		entry = (struct rcd_rs_iomap){
			.offset = bswap_64(entry.offset),
			.sge = { .addr = bswap_64(entry.sge.addr),
				.key = bswap_32(entry.sge.key),
				.len = bswap_32(entry.sge.len) },
		};
	return entry;
}

static struct rcd_rs_mapping *
rs_send_untold(const struct rcd_rs *rs)
{
	struct rcd_rs_mapping *mapping;

	LIST_FOREACH(mapping, &rs->mappings, link)
		if (mapping->untold)
			break;
	return mapping;
}

int
rcd_rs_tell_mappings(struct rcd_rs *rs, bool nonblock)
{
	while (rs_send_untold(rs) != NULL) {
		int err = rs_send_wait(rs, nonblock);
		struct rcd_rs_mapping *mapping = rs_send_untold(rs);
		struct rcd_rs_iomap entry;
		struct iovec iov = { .iov_base = &entry, .iov_len = sizeof(entry) };
		struct cursor from = { .iov = &iov };
		struct ibv_sge sges[2];
		int count;

		if (err != 0)
			return err;
		if (mapping == NULL)
			return 0;
		entry = rs_send_entry(rs, mapping);
		count = rcd_rs_stage(rs, sges, sizeof(entry));
		for (int i = 0; i < count; i++)
			rs_send_copy(&from, (void *)(uintptr_t)sges[i].addr, sges[i].length);
		err = rcd_rs_post_staged(rs, sges, count,
			rs->peer_table.addr + mapping->index * sizeof(entry), rs->peer_table.key,
			(uint32_t)RCD_RS_IOMAP << RCD_RS_MESSAGE_SHIFT | mapping->index);
		if (err != 0)
			return err;
		rs->said++;
		mapping->untold = false;
	}
	return 0;
}

/* @return bytes; -errno: none were sent */
static ssize_t
rs_send_all(struct rcd_rs *rs, const struct iovec *iov, int count, bool nonblock)
{
	struct cursor from = { .iov = iov };
	uint32_t most = FIRST_TRANSFER;
	size_t left;
	size_t sent = 0;
	int err;

	err = rcd_rs_measure(iov, count, &left);
	if (err != 0)
		return err;
	err = rcd_rs_wait_connected(rs, nonblock);
	if (err == 0)
		err = rcd_rs_tell_mappings(rs, nonblock);
	while (err == 0 && left > 0) {
		int64_t now;

		err = rs_send_wait(rs, nonblock);
		if (err != 0)
			break;
		now = rs_send_some(rs, &from, rcd_rs_least(left, most));
		if (now < 0) {
			err = (int)now;
			break;
		}
		left -= (size_t)now;
		sent += (size_t)now;
		if (most < RCD_RS_TRANSFER_MAX)
			most *= 2;
	}
	return rcd_rs_done(rs, sent, err);
}

/* @param to NULL; of datagrams: to whom */
static ssize_t
rs_send_by_number(int number, const struct iovec *iov, int count, int flags,
	const struct sockaddr *to, socklen_t to_len)
{
	int kept = errno;
	struct rcd_rs *rs;
	bool nonblock;
	ssize_t ret;

	/* As the kernel, it passes over flags that mean nothing to it. */
	if (flags & MSG_OOB)
		return rcd_rs_ret(-EOPNOTSUPP);
	if (count < 0 || count > IOV_MAX || (count > 0 && iov == NULL))
		return rcd_rs_ret(-EINVAL);
	rs = rcd_rs_get(number);
	if (rs == NULL)
		return -1;
	nonblock = rcd_rs_is_nonblock(rs, flags);
	ret = rcd_rs_take_side(rs, &rs->send_lock, nonblock);
	if (ret == 0) {
		ret = rs->ds != NULL ? rcd_ds_send(rs, iov, count, to, to_len, nonblock)
				     : rs_send_all(rs, iov, count, nonblock);
		rcd_rs_give_side(rs, &rs->send_lock);
	}
	rcd_rs_put(rs);
	errno = kept;
	return rcd_rs_ret(ret);
}

ssize_t
rsend(int number, const void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };

	return rs_send_by_number(number, &iov, 1, flags, NULL, 0);
}

ssize_t
rsendto(int number, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	socklen_t addr_len)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct rcd_rs *rs = rcd_rs_get(number);
	bool stream = rs != NULL && rs->ds == NULL;

	if (rs == NULL)
		return -1;
	rcd_rs_put(rs);
	if (stream && addr != NULL)
		return rcd_rs_ret(-EISCONN);
	return rs_send_by_number(number, &iov, 1, flags, addr, addr_len);
}

ssize_t
rsendmsg(int number, const struct msghdr *msg, int flags)
{
	if (msg->msg_controllen > 0)
		return rcd_rs_ret(-EOPNOTSUPP);
	if (msg->msg_iovlen > IOV_MAX)
		return rcd_rs_ret(-EMSGSIZE);
	return rs_send_by_number(
		number, msg->msg_iov, (int)msg->msg_iovlen, flags, msg->msg_name, msg->msg_namelen);
}

ssize_t
rwrite(int number, const void *buf, size_t len)
{
	return rsend(number, buf, len, 0);
}

ssize_t
rwritev(int number, const struct iovec *iov, int count)
{
	return rs_send_by_number(number, iov, count, 0, NULL, 0);
}
