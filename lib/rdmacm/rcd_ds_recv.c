/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Receiving datagrams, one at a time; what a buffer has no room for is lost.
 */
#include "rcd_ds.h"

#include <string.h>

static bool
ds_recv_is_possible(const struct rcd_rs *rs)
{
	return !STAILQ_EMPTY(&rs->ds->queue) || !rs->readable;
}

/* @return bytes that had room */
static size_t
ds_recv_scatter(const struct rcd_ds_message *message, const struct iovec *iov, int count)
{
	size_t done = 0;

	for (int i = 0; i < count && done < message->len; i++) {
		size_t now = rcd_rs_least(iov[i].iov_len, message->len - done);

		if (now > 0)
			memcpy(iov[i].iov_base, message->data + done, now);
		done += now;
	}
	return done;
}

static void
ds_recv_tell(const struct rcd_rs *rs, const struct rcd_ds_message *message, size_t done,
	struct msghdr *msg)
{
	struct sockaddr_storage from;
	socklen_t len = rcd_ds_addr_give(rs->domain, &message->from, &from);

	msg->msg_flags = done < message->len ? MSG_TRUNC : 0;
	if (msg->msg_name == NULL) {
		msg->msg_namelen = 0;
		return;
	}
	memcpy(msg->msg_name, &from, rcd_rs_least(msg->msg_namelen, len));
	msg->msg_namelen = len;
}

ssize_t
rcd_ds_recv(struct rcd_rs *rs, const struct iovec *iov, int count, int flags, bool nonblock,
	struct msghdr *msg)
{
	struct rcd_ds_message *message;
	size_t want, done;
	ssize_t ret;
	int err;

	err = rcd_rs_measure(iov, count, &want);
	if (err == 0)
		err = rcd_ds_open(rs);
	if (err == 0)
		err = rcd_rs_wait(rs, ds_recv_is_possible, nonblock ? 0 : -1);
	if (err != 0)
		return err;
	message = STAILQ_FIRST(&rs->ds->queue);
	if (message == NULL) {
		if (rs->state == RCD_RS_CLOSED)
			return -EBADF;
		/* It is told once; after that it is the end. */
		return rcd_rs_done(rs, 0, -rs->error);
	}
	/* Only who has recv_lock takes it away. */
	pthread_mutex_unlock(&rs->lock);
	done = ds_recv_scatter(message, iov, count);
	pthread_mutex_lock(&rs->lock);
	if (msg != NULL)
		ds_recv_tell(rs, message, done, msg);
	ret = (ssize_t)(flags & MSG_TRUNC ? message->len : done);
	if (!(flags & MSG_PEEK)) {
		STAILQ_REMOVE_HEAD(&rs->ds->queue, link);
		rcd_ds_release(rs, message);
	}
	return ret;
}
