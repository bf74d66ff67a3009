/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Datagram sockets: made, bound, connected and closed; names and options. A socket's number is that
 * of its UDP socket, which the service thread reads.
 */
#include "rcd_ds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_MS 10000

int
rcd_ds_create(struct rcd_rs *rs, int udp)
{
	struct rcd_ds *ds = calloc(1, sizeof(*ds));

	if (ds == NULL) {
		close(udp);
		return -ENOMEM;
	}
	rs->ds = ds;
	rs->number = udp;
	rs->readable = rs->writable = true;
	LIST_INIT(&ds->qps);
	STAILQ_INIT(&ds->queue);
	TAILQ_INIT(&ds->uses);
	for (uint32_t i = 0; i < RCD_DS_BUCKETS; i++)
		LIST_INIT(&ds->buckets[i]);
	ds->epoll = epoll_create1(EPOLL_CLOEXEC);
	return ds->epoll < 0 ? -errno : rcd_ds_udp_init(udp, rs->domain);
}

void
rcd_ds_destroy(struct rcd_rs *rs)
{
	struct rcd_ds *ds = rs->ds;
	struct rcd_ds_message *message;
	struct rcd_ds_qp *qp;

	while ((message = STAILQ_FIRST(&ds->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&ds->queue, link);
		if (message->qp == NULL)
			free(message);
	}
	rcd_ds_dests_free(ds);
	while ((qp = LIST_FIRST(&ds->qps)) != NULL) {
		LIST_REMOVE(qp, link);
		rcd_ds_qp_free(qp);
	}
	rcd_ds_forget(rs);
	free(ds);
}

void
rcd_ds_forget(struct rcd_rs *rs)
{
	if (rs->ds->epoll >= 0)
		close(rs->ds->epoll);
	close(rs->number);
}

static bool
ds_socket_is_sent(const struct rcd_rs *rs)
{
	const struct rcd_ds_qp *qp;

	LIST_FOREACH(qp, &rs->ds->qps, link)
		if (qp->send_room < rs->ds->send_queue)
			return rs->state == RCD_RS_FAILED;
	return true;
}

void
rcd_ds_close(struct rcd_rs *rs)
{
	int64_t end_ms = rcd_rs_now_ms() + LINGER_MS;
	int err;

	rs->writable = false;
	do
		err = rcd_rs_wait(rs, ds_socket_is_sent, rcd_rs_left_ms(end_ms));
	while (err == -EINTR && rcd_rs_now_ms() < end_ms);
}

/* How many there are in a queue, of what a buffer of this size would have. */
static uint32_t
ds_socket_queue(uint16_t asked, uint32_t bytes)
{
	uint32_t count = rcd_rs_least(asked, bytes / RCD_DS_BUFFER);

	return count < RCD_RS_QUEUE_MIN ? RCD_RS_QUEUE_MIN : count;
}

/* Of addresses that the engine alone has one stands there for them. @return 0 or -errno */
static int
ds_socket_bind_udp(const struct rcd_rs *rs, const struct rcd_ds_addr *local)
{
	struct rcd_ds_addr carrier = rcd_ds_addr_carrier(local);
	bool carried = !rcd_ds_addr_is_any(local) && rcd_ds_addr_is_carried(local);
	struct sockaddr_storage addr;
	socklen_t len = rcd_ds_addr_give(rs->domain, carried ? &carrier : local, &addr);

	return bind(rs->number, (struct sockaddr *)&addr, len) != 0 ? -errno : 0;
}

static int
ds_socket_bind(struct rcd_rs *rs, const struct rcd_ds_addr *local)
{
	struct rcd_ds *ds = rs->ds;
	struct sockaddr_storage own;
	struct rcd_ds_addr named;
	struct rcd_ds_qp *qp;
	socklen_t len = sizeof(own);
	int err;

	if (rs->state != RCD_RS_NEW || rcd_ds_addr_is_loopback(local))
		return rs->state != RCD_RS_NEW ? -EINVAL : -EADDRNOTAVAIL;
	ds->send_queue = ds_socket_queue(rs->sizes.send_queue, rs->sizes.send_bytes);
	ds->recv_queue = ds_socket_queue(rs->sizes.recv_queue, rs->sizes.recv_bytes);
	err = ds_socket_bind_udp(rs, local);
	if (err == 0 && getsockname(rs->number, (struct sockaddr *)&own, &len) != 0)
		err = -errno;
	if (err == 0)
		err = rcd_ds_addr_take(rs->domain, (struct sockaddr *)&own, len, &named);
	if (err != 0)
		return err;
	ds->local = *local;
	ds->local.port = named.port;
	/* One that the engine does not have is found now. */
	if (!rcd_ds_addr_is_any(local))
		err = rcd_ds_qp_get(rs, &ds->local, &qp);
	if (err == 0)
		err = rcd_rs_service_add(rs, 0);
	if (err == 0)
		rs->state = RCD_RS_BOUND;
	return err;
}

int
rcd_ds_bind(struct rcd_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	struct rcd_ds_addr local;
	int err = rcd_ds_addr_take(rs->domain, addr, len, &local);

	return err != 0 ? err : ds_socket_bind(rs, &local);
}

int
rcd_ds_open(struct rcd_rs *rs)
{
	struct sockaddr_storage any = { .ss_family = (sa_family_t)rs->domain };

	return rs->state != RCD_RS_NEW ? 0 : rcd_ds_bind(rs, (struct sockaddr *)&any, sizeof(any));
}

int
rcd_ds_connect(struct rcd_rs *rs, const struct sockaddr *addr, socklen_t len)
{
	struct rcd_ds *ds = rs->ds;
	struct rcd_ds_dest *dest;
	struct rcd_ds_addr peer;
	int err;

	if (addr != NULL && len >= sizeof(addr->sa_family) && addr->sa_family == AF_UNSPEC) {
		ds->peer.port = 0;
		return 0;
	}
	err = rcd_ds_addr_take(rs->domain, addr, len, &peer);
	if (err == 0 && (peer.port == 0 || rcd_ds_addr_is_any(&peer)))
		err = -EINVAL;
	if (err == 0 && rcd_ds_addr_is_loopback(&peer))
		err = -ENETUNREACH;
	if (err == 0)
		err = rcd_ds_open(rs);
	if (err != 0)
		return err;
	dest = rcd_ds_dest_get(ds, &peer);
	if (dest == NULL)
		return -ENOBUFS;
	dest->pinned = true;
	err = rcd_ds_dest_route(rs, dest);
	dest->pinned = false;
	if (err == 0)
		ds->peer = peer;
	return err;
}

int
rcd_ds_name(struct rcd_rs *rs, bool peer, struct sockaddr_storage *to)
{
	struct rcd_ds *ds = rs->ds;
	struct rcd_ds_addr own = ds->local;
	const struct rcd_ds_dest *dest = rcd_ds_dest_find(ds, &ds->peer);

	if (peer && ds->peer.port == 0)
		return -ENOTCONN;
	/* Connected, it has the address that leads there. */
	if (!peer && rcd_ds_addr_is_any(&own) && dest != NULL && dest->qp != NULL)
		own = dest->qp->local;
	rcd_ds_addr_give(rs->domain, peer ? &ds->peer : &own, to);
	return 0;
}

/* Those that are the UDP socket's, and change nothing of what it says to peers. */
static bool
ds_socket_is_kernels(int level, int option)
{
	switch (level) {
	case SOL_SOCKET:
		return option == SO_REUSEADDR || option == SO_REUSEPORT || option == SO_BROADCAST ||
			option == SO_BINDTODEVICE;
	case IPPROTO_IP:
		return option == IP_TOS || option == IP_TTL;
	case IPPROTO_IPV6:
		return option == IPV6_V6ONLY || option == IPV6_TCLASS;
	default:
		return false;
	}
}

int
rcd_ds_set_option(struct rcd_rs *rs, int level, int option, const void *val, socklen_t len)
{
	int number;

	if (ds_socket_is_kernels(level, option)) {
		if (setsockopt(rs->number, level, option, val, len) != 0)
			return -errno;
		if ((level == IPPROTO_IP && option == IP_TOS) ||
			(level == IPPROTO_IPV6 && option == IPV6_TCLASS)) {
			len = sizeof(rs->tos);
			return getsockopt(rs->number, level, option, &rs->tos, &len) != 0 ? -errno
											  : 0;
		}
		return 0;
	}
	if (level != SOL_SOCKET || (option != SO_RCVBUF && option != SO_SNDBUF))
		return -ENOPROTOOPT;
	if (val == NULL || len < sizeof(number))
		return -EINVAL;
	memcpy(&number, val, sizeof(number));
	if (rs->state == RCD_RS_NEW)
		*(option == SO_RCVBUF ? &rs->sizes.recv_bytes : &rs->sizes.send_bytes) =
			rcd_rs_buffer_bytes(number);
	return 0;
}

int
rcd_ds_get_option(struct rcd_rs *rs, int level, int option, void *val, socklen_t *len)
{
	int number = 0;

	if (ds_socket_is_kernels(level, option))
		return getsockopt(rs->number, level, option, val, len) != 0 ? -errno : 0;
	if (level != SOL_SOCKET)
		return -ENOPROTOOPT;
	switch (option) {
	case SO_TYPE:
		number = SOCK_DGRAM;
		break;
	case SO_DOMAIN:
		number = rs->domain;
		break;
	case SO_PROTOCOL:
		number = IPPROTO_UDP;
		break;
	case SO_ACCEPTCONN:
		break;
	case SO_ERROR:
		number = rs->error;
		break;
	case SO_RCVBUF:
		number = (int)rs->sizes.recv_bytes;
		break;
	case SO_SNDBUF:
		number = (int)rs->sizes.send_bytes;
		break;
	default:
		return -ENOPROTOOPT;
	}
	if (val == NULL || len == NULL)
		return -EFAULT;
	*len = rcd_rs_least(*len, sizeof(number));
	memcpy(val, &number, *len);
	if (option == SO_ERROR)
		rs->error = 0; /* it is told once */
	return 0;
}

short
rcd_ds_revents(const struct rcd_rs *rs, short events)
{
	const struct rcd_ds_qp *qp;
	bool room = true;
	short got = 0;

	if (rs->state == RCD_RS_CLOSED)
		return POLLNVAL;
	LIST_FOREACH(qp, &rs->ds->qps, link)
		room &= qp->send_room > 0;
	if (!STAILQ_EMPTY(&rs->ds->queue) || !rs->readable)
		got |= events & (POLLIN | POLLRDNORM);
	if (room || !rs->writable)
		got |= events & (POLLOUT | POLLWRNORM);
	if (rs->state == RCD_RS_FAILED)
		got |= POLLERR;
	return got;
}
