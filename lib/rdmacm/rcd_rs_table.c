/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Numbers to sockets. A socket's number is that of its channel's descriptor, so that no other file
 * of the process has it.
 */
#include "rcd_ds.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEND_BYTES   (1u << 17)
#define RECV_BYTES   (1u << 17)
#define QUEUE        384
#define INLINE_BYTES 64

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rcd_rs **table;
static uint32_t table_room;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void
rs_table_before_fork(void)
{
	pthread_mutex_lock(&table_lock);
}

static void
rs_table_after_fork_parent(void)
{
	pthread_mutex_unlock(&table_lock);
}

/* What the sockets use is not mapped here, and other threads may have had their locks. */
static void
rs_table_after_fork_child(void)
{
	for (uint32_t i = 0; i < table_room; i++) {
		if (table[i] != NULL && table[i]->ds != NULL)
			rcd_ds_forget(table[i]);
		table[i] = NULL;
	}
	rcd_rs_service_forget();
	pthread_mutex_unlock(&table_lock);
}

static void
rs_table_watch_forks(void)
{
	pthread_atfork(rs_table_before_fork, rs_table_after_fork_parent, rs_table_after_fork_child);
}

struct rcd_rs *
rcd_rs_make(struct rdma_event_channel *channel, struct rdma_cm_id *id, int domain)
{
	struct rcd_rs *rs = calloc(1, sizeof(*rs));

	if (rs == NULL)
		return NULL;
	rs->number = channel != NULL ? channel->fd : -1;
	rs->domain = domain;
	rs->refs = 1;
	rs->channel = channel;
	rs->id = id;
	rs->sizes = (struct rcd_rs_sizes){ .send_bytes = SEND_BYTES,
		.recv_bytes = RECV_BYTES,
		.send_queue = QUEUE,
		.recv_queue = QUEUE,
		.inline_bytes = INLINE_BYTES };
	rcd_rs_keep_init(&rs->keep);
	pthread_mutex_init(&rs->send_lock, NULL);
	pthread_mutex_init(&rs->recv_lock, NULL);
	pthread_mutex_init(&rs->lock, NULL);
	LIST_INIT(&rs->watches);
	LIST_INIT(&rs->mappings);
	STAILQ_INIT(&rs->pending);
	return rs;
}

static void
rs_table_free(struct rcd_rs *rs)
{
	struct rcd_rs_pending *pending;

	while ((pending = STAILQ_FIRST(&rs->pending)) != NULL) {
		struct rdma_cm_id *id = pending->event->id;

		STAILQ_REMOVE_HEAD(&rs->pending, link);
		rdma_reject(id, NULL, 0);
		rdma_ack_cm_event(pending->event);
		rdma_destroy_id(id);
		free(pending);
	}
	if (rs->ds != NULL) {
		rcd_ds_destroy(rs);
	} else if (rs->id != NULL) {
		rcd_rs_link_destroy(rs);
		rdma_destroy_id(rs->id);
		rdma_destroy_event_channel(rs->channel);
	}
	pthread_mutex_destroy(&rs->send_lock);
	pthread_mutex_destroy(&rs->recv_lock);
	pthread_mutex_destroy(&rs->lock);
	free(rs);
}

int
rcd_rs_enter(struct rcd_rs *rs)
{
	uint32_t number = (uint32_t)rs->number;
	int err = 0;

	pthread_once(&forks_once, rs_table_watch_forks);
	pthread_mutex_lock(&table_lock);
	if (number >= table_room) {
		uint32_t room = number < 32 ? 64 : 2 * number;
		struct rcd_rs **more = realloc(table, room * sizeof(more[0]));

		if (more != NULL) {
			memset(more + table_room, 0, (room - table_room) * sizeof(more[0]));
			table = more;
			table_room = room;
		} else {
			err = -ENOMEM;
		}
	}
	if (err == 0) {
		table[number] = rs;
		rs->refs++;
	}
	pthread_mutex_unlock(&table_lock);
	return err;
}

struct rcd_rs *
rcd_rs_get(int number)
{
	struct rcd_rs *rs;

	pthread_mutex_lock(&table_lock);
	rs = number >= 0 && (uint32_t)number < table_room ? table[number] : NULL;
	if (rs != NULL)
		rs->refs++;
	pthread_mutex_unlock(&table_lock);
	if (rs == NULL)
		errno = EBADF;
	return rs;
}

struct rcd_rs *
rcd_rs_get_stream(int number)
{
	struct rcd_rs *rs = rcd_rs_get(number);

	if (rs == NULL || rs->ds == NULL)
		return rs;
	rcd_rs_put(rs);
	errno = EOPNOTSUPP;
	return NULL;
}

void
rcd_rs_put(struct rcd_rs *rs)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --rs->refs == 0;
	pthread_mutex_unlock(&table_lock);
	if (last) {
		int kept = errno;

		rs_table_free(rs);
		errno = kept;
	}
}

/* Enter a new socket, unless making it has failed. @return its number; -1 and errno */
static int
rs_table_number(struct rcd_rs *rs, int err)
{
	int number = rs->number;

	if (err == 0)
		err = rcd_rs_enter(rs);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err != 0 ? err : number);
}

static int
rs_table_datagrams(int domain, int type, int protocol)
{
	struct rcd_rs *rs;
	int udp, err;

	if (protocol != 0 && protocol != IPPROTO_UDP)
		return (int)rcd_rs_ret(-EPROTONOSUPPORT);
	udp = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (udp < 0)
		return -1;
	rs = rcd_rs_make(NULL, NULL, domain);
	if (rs == NULL) {
		close(udp);
		return (int)rcd_rs_ret(-ENOMEM);
	}
	rs->nonblock = type & SOCK_NONBLOCK;
	rs->fd_flags = type & SOCK_CLOEXEC ? FD_CLOEXEC : 0;
	err = rcd_ds_create(rs, udp);
	return rs_table_number(rs, err);
}

int
rsocket(int domain, int type, int protocol)
{
	int kind = type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rcd_rs *rs;

	if (domain != AF_INET && domain != AF_INET6)
		return (int)rcd_rs_ret(-EAFNOSUPPORT);
	if (kind == SOCK_DGRAM)
		return rs_table_datagrams(domain, type, protocol);
	if (kind != SOCK_STREAM)
		return (int)rcd_rs_ret(-EOPNOTSUPP);
	if (protocol != 0 && protocol != IPPROTO_TCP)
		return (int)rcd_rs_ret(-EPROTONOSUPPORT);
	channel = rdma_create_event_channel();
	if (channel == NULL)
		return -1;
	if (fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0 ||
		rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) != 0) {
		int err = errno;

		rdma_destroy_event_channel(channel);
		return (int)rcd_rs_ret(-err);
	}
	rs = rcd_rs_make(channel, id, domain);
	if (rs == NULL) {
		rdma_destroy_id(id);
		rdma_destroy_event_channel(channel);
		return (int)rcd_rs_ret(-ENOMEM);
	}
	rs->nonblock = type & SOCK_NONBLOCK;
	rs->fd_flags = type & SOCK_CLOEXEC ? FD_CLOEXEC : 0;
	return rs_table_number(rs, 0);
}

struct rcd_rs *
rcd_rs_leave(int number)
{
	struct rcd_rs *rs = NULL;

	pthread_mutex_lock(&table_lock);
	if (number >= 0 && (uint32_t)number < table_room) {
		rs = table[number];
		table[number] = NULL;
	}
	pthread_mutex_unlock(&table_lock);
	if (rs == NULL)
		errno = EBADF;
	return rs;
}

int
rfcntl(int number, int cmd, ...)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	int ret = 0;
	va_list args;

	if (rs == NULL)
		return -1;
	va_start(args, cmd);
	pthread_mutex_lock(&rs->lock);
	switch (cmd) {
	case F_GETFL:
		ret = O_RDWR | (rs->nonblock ? O_NONBLOCK : 0);
		break;
	case F_SETFL:
		rs->nonblock = va_arg(args, int) & O_NONBLOCK;
		break;
	case F_GETFD:
		ret = rs->fd_flags;
		break;
	case F_SETFD:
		rs->fd_flags = va_arg(args, int);
		break;
	default:
		ret = -EOPNOTSUPP;
		break;
	}
	pthread_mutex_unlock(&rs->lock);
	va_end(args);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(ret);
}
