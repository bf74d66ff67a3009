/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Binding, listening, connecting and accepting; names of both ends.
 */
#include "rcd_ds.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* @return 0; -EINVAL: it is too short; -EAFNOSUPPORT */
static int
rs_conn_check_addr(const struct rcd_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	socklen_t least =
		rs->domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

	if (addr == NULL || len < sizeof(addr->sa_family))
		return -EINVAL;
	if (addr->sa_family != rs->domain)
		return -EAFNOSUPPORT;
	return len < least ? -EINVAL : 0;
}

int
rbind(int number, const struct sockaddr *addr, socklen_t len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	struct sockaddr_storage own;
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	err = rs_conn_check_addr(rs, addr, len);
	if (err == 0 && rs->state != RCD_RS_NEW)
		err = -EINVAL;
	if (err == 0 && rs->ds != NULL) {
		err = rcd_ds_bind(rs, addr, len);
	} else if (err == 0) {
		memset(&own, 0, sizeof(own));
		memcpy(&own, addr, len < sizeof(own) ? len : sizeof(own));
		err = rdma_bind_addr(rs->id, (struct sockaddr *)&own) != 0 ? -errno : 0;
	}
	if (err == 0)
		rs->state = RCD_RS_BOUND;
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

int
rlisten(int number, int backlog)
{
	struct rcd_rs *rs = rcd_rs_get_stream(number);
	int err = 0;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (rs->state != RCD_RS_NEW && rs->state != RCD_RS_BOUND && rs->state != RCD_RS_LISTENING)
		err = -EINVAL;
	if (err == 0 && rs->state == RCD_RS_NEW) {
		struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->domain };

		err = rdma_bind_addr(rs->id, (struct sockaddr *)&any) != 0 ? -errno : 0;
	}
	if (err == 0 && rs->state != RCD_RS_LISTENING) {
		/* Now: a request may come before the call returns. */
		err = rdma_listen(rs->id, backlog) != 0 ? -errno : 0;
		if (err == 0)
			rs->state = RCD_RS_LISTENING;
	}
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

static bool
rs_conn_has_request(const struct rcd_rs *rs)
{
	return rs->pending_count > 0 || rs->state != RCD_RS_LISTENING;
}

/* Accept with what the request said. @return 0 or -errno */
static int
rs_conn_accept(struct rcd_rs *rs, const struct rdma_conn_param *asked)
{
	struct rdma_conn_param param = *asked;
	struct rcd_rs_hello hello;
	int err = rcd_rs_hello_take(rs, asked->private_data, asked->private_data_len);

	if (err == 0)
		err = rcd_rs_link_create(rs);
	if (err != 0)
		return err;
	rcd_rs_hello_fill(rs, &hello);
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	rs->state = RCD_RS_ACCEPTING;
	return rdma_accept(rs->id, &param) != 0 ? -errno : 0;
}

/* A socket of a request, with the channel. @return with a reference; NULL and errno: refused */
static struct rcd_rs *
rs_conn_make(const struct rcd_rs *listener, struct rdma_event_channel *channel,
	struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	uint8_t data[UINT8_MAX];
	struct rdma_conn_param param = event->param.conn;
	struct rcd_rs *rs = NULL;
	int err = 0;

	if (param.private_data != NULL)
		param.private_data = memcpy(data, param.private_data, param.private_data_len);
	rdma_ack_cm_event(event);
	if (fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0 || rdma_migrate_id(id, channel) != 0)
		err = -errno;
	if (err == 0) {
		rs = rcd_rs_make(channel, id, listener->domain);
		err = rs == NULL ? -ENOMEM : 0;
	}
	if (err == 0) {
		rs->sizes = listener->sizes;
		rs->options = listener->options;
		rs->keep = listener->keep;
		err = rs_conn_accept(rs, &param);
	}
	if (err == 0)
		err = rcd_rs_enter(rs);
	if (err == 0)
		return rs;
	rdma_reject(id, NULL, 0);
	if (rs != NULL) {
		rcd_rs_put(rs);
	} else {
		rdma_destroy_id(id);
		rdma_destroy_event_channel(channel);
	}
	errno = -err;
	return NULL;
}

static int
rs_conn_copy_addr(const struct sockaddr *from, struct sockaddr *to, socklen_t *len)
{
	socklen_t size = from->sa_family == AF_INET ? sizeof(struct sockaddr_in)
						    : sizeof(struct sockaddr_in6);

	/* Without room: librspreload.so asks for the size alone. */
	if (len == NULL || (to == NULL && *len > 0))
		return -EFAULT;
	if (to != NULL)
		memcpy(to, from, *len < size ? *len : size);
	*len = size;
	return 0;
}

int
raccept(int number, struct sockaddr *addr, socklen_t *len)
{
	struct rcd_rs *listener = rcd_rs_get_stream(number);
	struct rcd_rs *rs = NULL;
	int err = 0;
	int got;

	if (listener == NULL)
		return -1;
	pthread_mutex_lock(&listener->lock);
	if (listener->state != RCD_RS_LISTENING)
		err = -EINVAL;
	while (err == 0 && rs == NULL) {
		struct rdma_event_channel *channel;
		struct rcd_rs_pending *pending;

		err = rcd_rs_wait(listener, rs_conn_has_request, listener->nonblock ? 0 : -1);
		if (err == 0 && listener->pending_count == 0)
			err = listener->error != 0 ? -listener->error : -EBADF;
		if (err != 0)
			break;
		/* Without a number for it, the request stays: as the kernel has it. */
		channel = rdma_create_event_channel();
		if (channel == NULL) {
			err = -errno;
			break;
		}
		pending = STAILQ_FIRST(&listener->pending);
		STAILQ_REMOVE_HEAD(&listener->pending, link);
		listener->pending_count--;
		rs = rs_conn_make(listener, channel, pending->event);
		free(pending);
		/* One that is none of ours, or makes no sense, was refused. */
		if (rs == NULL && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
			err = -errno;
	}
	pthread_mutex_unlock(&listener->lock);
	rcd_rs_put(listener);
	if (rs == NULL)
		return (int)rcd_rs_ret(err);
	pthread_mutex_lock(&rs->lock);
	rcd_rs_keep_begin(rs);
	pthread_mutex_unlock(&rs->lock);
	if (addr != NULL)
		rs_conn_copy_addr(rdma_get_peer_addr(rs->id), addr, len);
	got = rs->number;
	rcd_rs_put(rs);
	return got;
}

static int
rs_conn_connect_datagrams(struct rcd_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	int err = rcd_rs_take_side(rs, &rs->send_lock, false);

	if (err == 0) {
		err = rcd_ds_connect(rs, addr, len);
		rcd_rs_give_side(rs, &rs->send_lock);
	}
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

int
rconnect(int number, const struct sockaddr *addr, socklen_t len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	bool begun;
	int err;

	if (rs == NULL)
		return -1;
	if (rs->ds != NULL)
		return rs_conn_connect_datagrams(rs, addr, len);
	pthread_mutex_lock(&rs->lock);
	err = rs_conn_check_addr(rs, addr, len);
	rcd_rs_progress(rs, NULL);
	begun = rs->state >= RCD_RS_RESOLVING && rs->state <= RCD_RS_CONNECTING;
	if (err == 0 && !begun) {
		if (rs->state == RCD_RS_NEW || rs->state == RCD_RS_BOUND)
			err = rcd_rs_cm_resolve(rs, addr);
		else if ((rs->state == RCD_RS_FAILED && rs->error != 0) ||
			(rs->state == RCD_RS_CONNECTED && rs->untold))
			err = 0; /* of the attempt before: told below, once */
		else
			err = rs->state == RCD_RS_LISTENING ? -EINVAL : -EISCONN;
	}
	if (err == 0)
		err = rs->state == RCD_RS_FAILED ? -rs->error
						 : rcd_rs_wait_connected(rs, rs->nonblock);
	if (err == -EAGAIN)
		err = begun ? -EALREADY : -EINPROGRESS;
	rs->untold = err == -EALREADY || err == -EINPROGRESS;
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

int
rgetpeername(int number, struct sockaddr *addr, socklen_t *len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	struct sockaddr_storage peer;
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	rcd_rs_progress(rs, NULL);
	if (rs->ds != NULL) {
		err = rcd_ds_name(rs, true, &peer);
		if (err == 0)
			err = rs_conn_copy_addr((struct sockaddr *)&peer, addr, len);
	} else {
		err = rs->state < RCD_RS_ACCEPTING || rs->state >= RCD_RS_FAILED
			? -ENOTCONN
			: rs_conn_copy_addr(rdma_get_peer_addr(rs->id), addr, len);
	}
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

int
rgetsockname(int number, struct sockaddr *addr, socklen_t *len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	struct sockaddr_storage none = { .ss_family = AF_UNSPEC };
	const struct sockaddr *own;
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	own = (struct sockaddr *)&none;
	if (rs->ds != NULL)
		rcd_ds_name(rs, false, &none);
	else
		own = rdma_get_local_addr(rs->id);
	if (own->sa_family != AF_INET && own->sa_family != AF_INET6) {
		none.ss_family = (sa_family_t)rs->domain;
		own = (struct sockaddr *)&none;
	}
	err = rs_conn_copy_addr(own, addr, len);
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}
