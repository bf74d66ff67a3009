/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Ends of a socket's life, and who is woken by them and by all else that changes.
 */
#include "rcd_rs.h"

#include <limits.h>
#include <sys/eventfd.h>

bool
rcd_rs_is_nonblock(struct rcd_rs *rs, int flags)
{
	bool nonblock;

	pthread_mutex_lock(&rs->lock);
	nonblock = rs->nonblock || (flags & MSG_DONTWAIT);
	pthread_mutex_unlock(&rs->lock);
	return nonblock;
}

int
rcd_rs_take_side(struct rcd_rs *rs, pthread_mutex_t *side, bool nonblock)
{
	int err = 0;

	if (!nonblock)
		err = -pthread_mutex_lock(side);
	else if (pthread_mutex_trylock(side) != 0)
		err = -EAGAIN;
	if (err == 0)
		pthread_mutex_lock(&rs->lock);
	return err;
}

void
rcd_rs_give_side(struct rcd_rs *rs, pthread_mutex_t *side)
{
	pthread_mutex_unlock(&rs->lock);
	pthread_mutex_unlock(side);
}

int
rcd_rs_measure(const struct iovec *iov, int count, size_t *len)
{
	*len = 0;
	for (int i = 0; i < count; i++)
		if (__builtin_add_overflow(*len, iov[i].iov_len, len) || *len > SSIZE_MAX)
			return -EINVAL;
	return 0;
}

ssize_t
rcd_rs_done(struct rcd_rs *rs, size_t done, int err)
{
	if (done > 0)
		return (ssize_t)done;
	if (err == -rs->error)
		rs->error = 0;
	return err;
}

void
rcd_rs_fail(struct rcd_rs *rs, int error)
{
	if (rs->state >= RCD_RS_DISCONNECTED)
		return;
	rs->state = RCD_RS_FAILED;
	rs->readable = rs->writable = false;
	rs->error = error;
}

void
rcd_rs_disconnected(struct rcd_rs *rs)
{
	if (rs->state >= RCD_RS_DISCONNECTED)
		return;
	rs->state = RCD_RS_DISCONNECTED;
	rs->readable = rs->writable = false;
}

void
rcd_rs_arm(struct rcd_rs *rs)
{
	if (rs->cq == NULL || rs->armed)
		return;
	rs->armed = ibv_req_notify_cq(rs->cq, 0) == 0;
}

void
rcd_rs_ring(struct rcd_rs *rs, const struct rcd_rs_watch *self)
{
	struct rcd_rs_watch *watch;

	LIST_FOREACH(watch, &rs->watches, link)
		if (watch != self && watch->bell >= 0)
			eventfd_write(watch->bell, 1);
}
