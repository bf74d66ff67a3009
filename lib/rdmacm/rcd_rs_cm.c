/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The events of a socket's connection, and what the two sides say of themselves in its private
 * data.
 */
#include "rcd_rs.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_MS   2000
#define RETRIES_MOST 7
#define LIST_MOST    65535 /**< entries of a peer's list */
#define CHANNEL_TURN 64    /**< of a connection: how often its channel is looked at unasked */

void
rcd_rs_hello_fill(const struct rcd_rs *rs, struct rcd_rs_hello *hello)
{
	*hello = (struct rcd_rs_hello){
		.version = RCD_RS_VERSION,
		.flags = RCD_RS_FLAG_IOMAP | (__BYTE_ORDER == __BIG_ENDIAN ? RCD_RS_FLAG_BIG : 0),
		.credits = htobe16(rs->sizes.recv_queue),
		.iomaps = rcd_rs_iomaps_code(rs->sizes.iomaps),
		.list = { .addr = htobe64((uintptr_t)rs->shared),
			.key = htobe32(rs->shared_mr->rkey),
			.len = htobe32(RCD_RS_LIST) },
		.half = { .addr = htobe64((uintptr_t)rs->ring),
			.key = htobe32(rs->ring_mr->rkey),
			.len = htobe32(rs->sizes.recv_bytes / 2) },
	};
}

static struct rcd_rs_sge
rs_cm_sge(const struct rcd_rs_sge *sge)
{
	return (struct rcd_rs_sge){
		.addr = be64toh(sge->addr), .key = be32toh(sge->key), .len = be32toh(sge->len)
	};
}

int
rcd_rs_hello_take(struct rcd_rs *rs, const void *data, size_t len)
{
	struct rcd_rs_hello hello;

	if (data == NULL || len < sizeof(hello))
		return -EPROTO;
	memcpy(&hello, data, sizeof(hello));
	if (hello.version != RCD_RS_VERSION)
		return -EPROTO;
	rs->list = rs_cm_sge(&hello.list);
	if (rs->list.len == 0 || rs->list.len > LIST_MOST)
		return -EPROTO;
	/* The first entry of its list is half, so to speak. */
	rs->list_at = 1 % rs->list.len;
	rs->halves[0] = rs_cm_sge(&hello.half);
	if (rs->halves[0].len > RCD_RS_MESSAGE_MASK)
		rs->halves[0].len = RCD_RS_MESSAGE_MASK;
	rs->say_until = be16toh(hello.credits);
	rs->big_peer = hello.flags & RCD_RS_FLAG_BIG;
	if (hello.flags & RCD_RS_FLAG_IOMAP)
		rs->peer_table = (struct rcd_rs_sge){
			.addr = rs->list.addr + rs->list.len * sizeof(struct rcd_rs_sge),
			.key = rs->list.key,
			.len = rcd_rs_iomaps_count(hello.iomaps),
		};
	return 0;
}

int
rcd_rs_cm_resolve(struct rcd_rs *rs, const struct sockaddr *addr)
{
	struct sockaddr_storage dst;

	memset(&dst, 0, sizeof(dst));
	memcpy(&dst, addr,
		addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6));
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)&dst, RESOLVE_MS) != 0)
		return -errno;
	rs->state = RCD_RS_RESOLVING;
	return 0;
}

/* With a device and a path: ask the other side. */
static int
rs_cm_ask(struct rcd_rs *rs)
{
	struct rcd_rs_hello hello;
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = RETRIES_MOST,
		.rnr_retry_count = RETRIES_MOST,
	};
	int err = rcd_rs_link_create(rs);

	if (err != 0)
		return err;
	rcd_rs_hello_fill(rs, &hello);
	if (rdma_connect(rs->id, &param) != 0)
		return -errno;
	rs->state = RCD_RS_CONNECTING;
	return 0;
}

/* There is a device for the destination. @return 0 or -errno */
static int
rs_cm_resolved(struct rcd_rs *rs)
{
	if (rs->state != RCD_RS_RESOLVING)
		return 0;
	if (rdma_resolve_route(rs->id, RESOLVE_MS) != 0)
		return -errno;
	rs->state = RCD_RS_ROUTING;
	return 0;
}

/* Who has asked hears now what the other side says of itself. @return 0 or -EPROTO */
static int
rs_cm_established(struct rcd_rs *rs, const struct rdma_conn_param *param)
{
	int err = 0;

	if (rs->state == RCD_RS_CONNECTING)
		err = rcd_rs_hello_take(rs, param->private_data, param->private_data_len);
	else if (rs->state != RCD_RS_ACCEPTING)
		return 0;
	if (err != 0) {
		rdma_disconnect(rs->id);
		return err;
	}
	rs->state = RCD_RS_CONNECTED;
	rs->readable = rs->writable = true;
	return 0;
}

/* A request: it waits for raccept(). @return false: it may not, for there are too many */
static bool
rs_cm_queue(struct rcd_rs *rs, struct rdma_cm_event *event)
{
	struct rcd_rs_pending *pending;

	if (rs->state != RCD_RS_LISTENING || rs->pending_count == RCD_RS_PENDING_MAX)
		return false;
	pending = calloc(1, sizeof(*pending));
	if (pending == NULL)
		return false;
	pending->event = event;
	STAILQ_INSERT_TAIL(&rs->pending, pending, link);
	rs->pending_count++;
	return true;
}

static void
rs_cm_request(struct rcd_rs *rs, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;

	if (rs_cm_queue(rs, event))
		return;
	rdma_reject(id, NULL, 0);
	rdma_ack_cm_event(event);
	rdma_destroy_id(id);
}

/* What an event means to somebody who uses sockets. @return 0; -errno: the socket has failed */
static int
rs_cm_handle(struct rcd_rs *rs, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return event->status != 0 ? -EHOSTUNREACH : rs_cm_resolved(rs);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (event->status != 0)
			return -EHOSTUNREACH;
		return rs->state == RCD_RS_ROUTING ? rs_cm_ask(rs) : 0;
	case RDMA_CM_EVENT_ESTABLISHED:
		return event->status != 0 ? -ECONNABORTED
					  : rs_cm_established(rs, &event->param.conn);
	case RDMA_CM_EVENT_DISCONNECTED:
		/* What came before it is read first. */
		rcd_rs_message_progress(rs);
		rcd_rs_disconnected(rs);
		rdma_disconnect(rs->id);
		return 0;
	case RDMA_CM_EVENT_REJECTED:
		return -ECONNREFUSED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return -ETIMEDOUT;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return -EHOSTUNREACH;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return -ECONNABORTED;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return -ENETDOWN;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	}
	return 0;
}

bool
rcd_rs_cm_progress(struct rcd_rs *rs)
{
	struct rdma_cm_event *event;
	uint32_t taken = 0;
	int err;

	if (rs->state == RCD_RS_NEW || rs->state == RCD_RS_BOUND || rs->state >= RCD_RS_FAILED)
		return false;
	/* Of a connection it has nothing but the end, and it takes a system call to know. */
	if (rs->state == RCD_RS_CONNECTED && !rs->channel_told &&
		++rs->channel_turns % CHANNEL_TURN != 0)
		return false;
	rs->channel_told = false;
	while (taken < RCD_RS_PENDING_MAX && rdma_get_cm_event(rs->channel, &event) == 0) {
		taken++;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			rs_cm_request(rs, event);
			continue;
		}
		err = rs_cm_handle(rs, event);
		rdma_ack_cm_event(event);
		if (err != 0)
			rcd_rs_fail(rs, -err);
	}
	/* The engine is gone: there will be no more. */
	if (taken < RCD_RS_PENDING_MAX && errno != EAGAIN && errno != EINTR) {
		rcd_rs_fail(rs, errno);
		taken++;
	}
	return taken > 0;
}
