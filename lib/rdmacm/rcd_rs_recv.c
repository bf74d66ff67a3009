/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Receiving: bytes are copied out of the ring, in the order in which the peer has announced them.
 */
#include "rcd_ds.h"

#include <limits.h>
#include <string.h>

static bool
rs_recv_is_possible(const struct rcd_rs *rs)
{
	return rs->held > 0 || !rs->readable;
}

/* @return 0: there are bytes, or there will never be; -errno */
static int
rs_recv_wait(struct rcd_rs *rs, bool nonblock)
{
	int err = 0;

	if (rs->held == 0)
		err = rcd_rs_wait(rs, rs_recv_is_possible, nonblock ? 0 : -1);
	if (err == 0 && rs->held == 0 && rs->state == RCD_RS_CLOSED)
		err = -EBADF;
	/* It is told once; after that it is the end. */
	if (err == 0 && rs->held == 0)
		err = -rs->error;
	return err;
}

/* Copy what is there, without the lock: only who has recv_lock moves on. */
static size_t
rs_recv_copy(struct rcd_rs *rs, uint8_t *to, size_t len, uint32_t skip)
{
	uint32_t size = rs->sizes.recv_bytes;
	uint32_t now = rcd_rs_least(len, rs->held - skip);
	uint32_t at = (uint32_t)(((uint64_t)rs->read_at + skip) % size);
	uint32_t first = rcd_rs_least(now, size - at);

	pthread_mutex_unlock(&rs->lock);
	memcpy(to, rs->ring + at, first);
	memcpy(to + first, rs->ring, now - first);
	pthread_mutex_lock(&rs->lock);
	return now;
}

/* Into one buffer after the other. @return bytes */
static size_t
rs_recv_some(struct rcd_rs *rs, const struct iovec *iov, int count, size_t done, bool peek)
{
	size_t before = 0;
	size_t got = 0;

	for (int i = 0; i < count; i++) {
		size_t used = done > before ? done - before : 0;
		size_t now;

		before += iov[i].iov_len;
		if (used >= iov[i].iov_len)
			continue;
		if (rs->held == (peek ? got : 0))
			break;
		now = rs_recv_copy(rs, (uint8_t *)iov[i].iov_base + used, iov[i].iov_len - used,
			peek ? (uint32_t)got : 0);
		got += now;
		done += now;
		if (!peek) {
			rs->held -= (uint32_t)now;
			rs->spare += (uint32_t)now;
			rs->read_at = (uint32_t)((rs->read_at + now) % rs->sizes.recv_bytes);
		}
		/* More may have come meanwhile: it belongs here, not into the next buffer. */
		if (done < before)
			break;
	}
	return got;
}

static ssize_t
rs_recv_all(struct rcd_rs *rs, const struct iovec *iov, int count, int flags, bool nonblock)
{
	bool peek = flags & MSG_PEEK;
	size_t want;
	size_t got = 0;
	int err;

	err = rcd_rs_measure(iov, count, &want);
	if (err != 0)
		return err;
	err = rcd_rs_wait_connected(rs, nonblock);
	while (err == 0 && got < want) {
		err = rs_recv_wait(rs, nonblock);
		if (err != 0 || rs->held == 0)
			break;
		got += rs_recv_some(rs, iov, count, got, peek);
		if (peek || !(flags & MSG_WAITALL))
			break;
	}
	/* Half of the ring may be free by now. */
	if (got > 0 && !peek)
		rcd_rs_progress(rs, NULL);
	return rcd_rs_done(rs, got, err);
}

/* Of a connection the name is that of its peer, which has no need to be told. */
static void
rs_recv_tell_nothing(struct msghdr *msg)
{
	msg->msg_flags = 0;
	msg->msg_namelen = 0;
}

/* @param msg NULL; gets flags, and of datagrams the sender's name */
static ssize_t
rs_recv_by_number(int number, const struct iovec *iov, int count, int flags, struct msghdr *msg)
{
	int kept = errno;
	struct rcd_rs *rs;
	bool nonblock;
	ssize_t ret;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return rcd_rs_ret(-EOPNOTSUPP);
	if (count < 0 || count > IOV_MAX || (count > 0 && iov == NULL))
		return rcd_rs_ret(-EINVAL);
	rs = rcd_rs_get(number);
	if (rs == NULL)
		return -1;
	nonblock = rcd_rs_is_nonblock(rs, flags);
	ret = rcd_rs_take_side(rs, &rs->recv_lock, nonblock);
	if (ret == 0) {
		if (rs->ds != NULL)
			ret = rcd_ds_recv(rs, iov, count, flags, nonblock, msg);
		else if (flags & MSG_TRUNC)
			ret = -EOPNOTSUPP;
		else
			ret = rs_recv_all(rs, iov, count, flags, nonblock);
		if (rs->ds == NULL && msg != NULL)
			rs_recv_tell_nothing(msg);
		rcd_rs_give_side(rs, &rs->recv_lock);
	}
	rcd_rs_put(rs);
	errno = kept;
	return rcd_rs_ret(ret);
}

ssize_t
rrecv(int number, void *buf, size_t len, int flags)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };

	return rs_recv_by_number(number, &iov, 1, flags, NULL);
}

ssize_t
rrecvfrom(int number, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addr_len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = { .msg_name = addr_len != NULL ? addr : NULL,
		.msg_namelen = addr != NULL && addr_len != NULL ? *addr_len : 0 };
	ssize_t ret = rs_recv_by_number(number, &iov, 1, flags, &msg);

	if (ret >= 0 && msg.msg_namelen > 0) {
		*addr_len = msg.msg_namelen;
		return ret;
	}
	/* As of a stream of the kernel's: the address is that of the connection. */
	if (ret >= 0 && addr != NULL && addr_len != NULL &&
		rgetpeername(number, addr, addr_len) != 0)
		*addr_len = 0;
	return ret;
}

ssize_t
rrecvmsg(int number, struct msghdr *msg, int flags)
{
	ssize_t ret;

	if (msg->msg_iovlen > IOV_MAX)
		return rcd_rs_ret(-EMSGSIZE);
	ret = rs_recv_by_number(number, msg->msg_iov, (int)msg->msg_iovlen, flags, msg);
	if (ret >= 0)
		msg->msg_controllen = 0;
	return ret;
}

ssize_t
rread(int number, void *buf, size_t len)
{
	return rrecv(number, buf, len, 0);
}

ssize_t
rreadv(int number, const struct iovec *iov, int count)
{
	return rs_recv_by_number(number, iov, count, 0, NULL);
}
