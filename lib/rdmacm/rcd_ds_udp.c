/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Messages by a datagram socket's UDP socket: they bring the number of the sender's queue pair,
 * and perhaps a datagram.
 */
#include "rcd_ds.h"

#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/** Room for what the kernel says, or is told, of a message's local address. */
union control {
	struct cmsghdr header; /* so that it is aligned */
	uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + 64];
};

/** A message. */
struct ds_udp_message {
	uint8_t bytes[RCD_DS_UDP_MAX + RCD_DS_BUFFER + 1];
	size_t len;
	struct rcd_ds_addr from;
	struct rcd_ds_addr to;
	enum rcd_ds_op op;
	uint32_t qpn;
	uint32_t header;
};

int
rcd_ds_udp_init(int udp, int domain)
{
	int on = 1;
	int err = domain == AF_INET
		? setsockopt(udp, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on))
		: setsockopt(udp, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));

	return err != 0 ? -errno : 0;
}

/* To which address it has come. @return false: the kernel does not say */
static bool
ds_udp_local(struct msghdr *msg, int domain, struct rcd_ds_addr *to)
{
	for (struct cmsghdr *part = CMSG_FIRSTHDR(msg); part != NULL;
		part = CMSG_NXTHDR(msg, part)) {
		struct sockaddr_in sin = { .sin_family = AF_INET };
		struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };
		struct in_pktinfo info;
		struct in6_pktinfo info6;

		if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
			memcpy(&info, CMSG_DATA(part), sizeof(info));
			sin.sin_addr = info.ipi_addr;
			return domain == AF_INET &&
				rcd_ds_addr_take(
					domain, (struct sockaddr *)&sin, sizeof(sin), to) == 0;
		}
		if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
			memcpy(&info6, CMSG_DATA(part), sizeof(info6));
			sin6.sin6_addr = info6.ipi6_addr;
			sin6.sin6_scope_id = info6.ipi6_ifindex;
			return domain == AF_INET6 &&
				rcd_ds_addr_take(
					domain, (struct sockaddr *)&sin6, sizeof(sin6), to) == 0;
		}
	}
	return false;
}

/* The header, and who has sent it. @return whether it makes sense */
static bool
ds_udp_understand(struct ds_udp_message *message)
{
	struct rcd_ds_addr said, its;

	message->header =
		rcd_ds_udp_parse(message->bytes, message->len, &message->op, &message->qpn, &said);
	if (message->header == 0 || message->len - message->header > RCD_DS_BUFFER)
		return false;
	if (!rcd_ds_addr_is_loopback(&message->from))
		return rcd_ds_addr_is_ipv4(&said) == rcd_ds_addr_is_ipv4(&message->from);
	/*
	 * Of an address that the kernel does not have: the header says of which. Any program here
	 * may send from there, so it is no word for others: such addresses are told of among
	 * themselves, and one of the kernel's speaks for itself.
	 */
	said.port = message->from.port;
	its = rcd_ds_addr_carrier(&said);
	if (!rcd_ds_addr_equal(&its, &message->from) || rcd_ds_addr_is_loopback(&said) ||
		rcd_ds_addr_is_any(&said) || !rcd_ds_addr_is_loopback(&message->to) ||
		!rcd_ds_addr_is_carried(&said))
		return false;
	message->from = said;
	return true;
}

/* @return 1; 0: it makes no sense; -errno: there is none */
static int
ds_udp_read(const struct rcd_rs *rs, struct ds_udp_message *message)
{
	struct iovec iov = { .iov_base = message->bytes, .iov_len = sizeof(message->bytes) };
	struct sockaddr_storage from;
	union control control;
	struct msghdr msg = { .msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t got = recvmsg(rs->number, &msg, MSG_DONTWAIT);

	if (got < 0)
		return -errno;
	message->len = (size_t)got;
	return !(msg.msg_flags & MSG_TRUNC) &&
		rcd_ds_addr_take(rs->domain, (struct sockaddr *)&from, msg.msg_namelen,
			&message->from) == 0 &&
		ds_udp_local(&msg, rs->domain, &message->to) && ds_udp_understand(message);
}

/* Its datagram waits for the application, unless too many do. */
static void
ds_udp_deliver(struct rcd_ds *ds, const struct ds_udp_message *from)
{
	uint32_t len = (uint32_t)(from->len - from->header);
	struct rcd_ds_message *message;

	if (ds->early == RCD_DS_EARLY_MOST)
		return;
	message = malloc(sizeof(*message) + len);
	if (message == NULL)
		return;
	*message = (struct rcd_ds_message){
		.from = from->from, .data = (uint8_t *)(message + 1), .len = len
	};
	memcpy(message + 1, from->bytes + from->header, len);
	STAILQ_INSERT_TAIL(&ds->queue, message, link);
	ds->early++;
}

static void
ds_udp_handle(struct rcd_rs *rs, struct ds_udp_message *message)
{
	struct rcd_ds *ds = rs->ds;
	struct rcd_ds_dest *dest;
	struct rcd_ds_qp *qp;
	int err;

	if (!rcd_ds_is_wanted(ds, &message->from))
		return;
	/* Who only answers answers a question of ours. */
	dest = message->op == RCD_DS_DATA ? rcd_ds_dest_get(ds, &message->from)
					  : rcd_ds_dest_find(ds, &message->from);
	if (dest == NULL)
		return;
	message->to.port = ds->local.port;
	if (dest->qp == NULL) {
		err = rcd_ds_addr_is_loopback(&message->to)
			? rcd_ds_qp_get_carried(rs, &message->to, &qp)
			: rcd_ds_qp_get(rs, &message->to, &qp);
		if (err != 0)
			return;
		dest->qp = qp;
	}
	dest->qpn = message->qpn;
	if (message->op != RCD_DS_DATA)
		return;
	rcd_ds_udp_send(rs, dest, RCD_DS_CONTROL, NULL, 0);
	if (rs->readable)
		ds_udp_deliver(ds, message);
}

void
rcd_ds_udp_take(struct rcd_rs *rs)
{
	struct ds_udp_message message;

	pthread_mutex_lock(&rs->lock);
	for (int i = 0; i < RCD_DS_UDP_AT_ONCE && rs->state == RCD_RS_BOUND; i++) {
		int got = ds_udp_read(rs, &message);

		if (got == -EAGAIN || got == -EINTR)
			break;
		if (got > 0)
			ds_udp_handle(rs, &message);
	}
	rcd_rs_ring(rs, NULL);
	pthread_mutex_unlock(&rs->lock);
}

/* From which address it is to come: a socket may have many. */
static void
ds_udp_set_local(struct msghdr *msg, int domain, const struct rcd_ds_addr *local)
{
	struct cmsghdr *part = msg->msg_control;
	struct in_pktinfo info = { .ipi_ifindex = 0 };
	struct in6_pktinfo info6 = { .ipi6_ifindex = local->scope };

	if (domain == AF_INET) {
		memcpy(&info.ipi_spec_dst, local->ip + 12, 4);
		part->cmsg_level = IPPROTO_IP;
		part->cmsg_type = IP_PKTINFO;
		part->cmsg_len = CMSG_LEN(sizeof(info));
		memcpy(CMSG_DATA(part), &info, sizeof(info));
		msg->msg_controllen = CMSG_SPACE(sizeof(info));
		return;
	}
	memcpy(&info6.ipi6_addr, local->ip, 16);
	part->cmsg_level = IPPROTO_IPV6;
	part->cmsg_type = IPV6_PKTINFO;
	part->cmsg_len = CMSG_LEN(sizeof(info6));
	memcpy(CMSG_DATA(part), &info6, sizeof(info6));
	msg->msg_controllen = CMSG_SPACE(sizeof(info6));
}

int
rcd_ds_udp_send(struct rcd_rs *rs, const struct rcd_ds_dest *dest, enum rcd_ds_op op,
	const void *data, size_t len)
{
	const struct rcd_ds_qp *qp = dest->qp;
	struct rcd_ds_addr to = qp->carried ? rcd_ds_addr_carrier(&dest->addr) : dest->addr;
	struct rcd_ds_addr from = qp->carried ? rcd_ds_addr_carrier(&qp->local) : qp->local;
	uint8_t header[RCD_DS_UDP_MAX];
	struct iovec parts[2] = { { .iov_base = header },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len } };
	struct sockaddr_storage addr;
	union control control = { .bytes = { 0 } };
	struct msghdr msg = {
		.msg_name = &addr, .msg_iov = parts, .msg_iovlen = 2, .msg_control = &control
	};

	parts[0].iov_len = rcd_ds_udp_build(header, op, qp->id->qp->qp_num, &qp->local);
	msg.msg_namelen = rcd_ds_addr_give(rs->domain, &to, &addr);
	if (msg.msg_namelen == 0)
		return -EAFNOSUPPORT;
	ds_udp_set_local(&msg, rs->domain, &from);
	return sendmsg(rs->number, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}
