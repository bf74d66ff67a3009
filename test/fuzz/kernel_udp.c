/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What recvmsg(2) may do with a message, and control messages that no kernel writes.
 */
#include "kernel_udp.h"

#include <assert.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

#include "rcd_check.h"
#include "udp_dev.h"

struct kernel kernel;

ssize_t
__wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t
__wrap_recv(int fd, void *buf, size_t len, int flags);

uint32_t
kernel_take(struct kernel_input *in, size_t bytes)
{
	uint32_t val = 0;

	for (; bytes > 0 && in->len > 0; bytes--, in->len--)
		val = val << 8 | *in->data++;
	return val;
}

const uint8_t *
kernel_bytes(uint32_t serial, uint32_t at)
{
	/* More than all buffers of a call take; no two arrivals of an input begin alike. */
	static uint8_t bytes[1 << 19];
	static uint32_t state;

	for (uint32_t i = 0; bytes[sizeof(bytes) - 1] == 0; i++) {
		state = state * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(state >> 24 | 1);
	}
	return bytes + serial % 2048 * 64 + at;
}

/* Kinds of control messages, and how long their values are. */
enum effect {
	NOTHING,
	ADDRESS,
	TCLASS,
	HOP_LIMIT,
	SIZE,
	OPTIONS,
	FRAGMENTS
};

static const struct control {
	int level, type;
	size_t len;
	enum effect effect[UDP_FAMILIES]; /**< by the socket's version of IP */
} controls[] = {
	{ IPPROTO_IP, IP_PKTINFO, sizeof(struct in_pktinfo), { ADDRESS, NOTHING } },
	{ IPPROTO_IPV6, IPV6_PKTINFO, sizeof(struct in6_pktinfo), { NOTHING, ADDRESS } },
	{ IPPROTO_IP, IP_TOS, 1, { TCLASS, NOTHING } },
	{ IPPROTO_IPV6, IPV6_TCLASS, sizeof(int), { NOTHING, TCLASS } },
	{ IPPROTO_IP, IP_TTL, sizeof(int), { HOP_LIMIT, NOTHING } },
	{ IPPROTO_IPV6, IPV6_HOPLIMIT, sizeof(int), { NOTHING, HOP_LIMIT } },
	{ IPPROTO_UDP, UDP_GRO, sizeof(int), { SIZE, SIZE } },
	{ IPPROTO_IP, IP_RECVOPTS, 0, { OPTIONS, NOTHING } },
	{ IPPROTO_IPV6, IPV6_HOPOPTS, 0, { NOTHING, OPTIONS } },
	{ IPPROTO_IPV6, IPV6_DSTOPTS, 0, { NOTHING, OPTIONS } },
	{ IPPROTO_IPV6, IPV6_RTHDR, 0, { NOTHING, OPTIONS } },
	{ IPPROTO_IP, IP_RECVFRAGSIZE, 0, { FRAGMENTS, NOTHING } },
	{ IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 0, { NOTHING, FRAGMENTS } },
	{ SOL_SOCKET, SO_TIMESTAMP, 16, { NOTHING, NOTHING } },
	{ IPPROTO_UDP, UDP_SEGMENT, 2, { NOTHING, NOTHING } },
	{ IPPROTO_TCP, IP_PKTINFO, sizeof(struct in_pktinfo), { NOTHING, NOTHING } },
};

/* Each is as likely, and an input means the same as long as there are so many. */
static_assert(RTE_DIM(controls) == 16, "a number of bits chooses one");

/* What is known of a message while it is made. */
struct making {
	struct kernel_arrival arrival;
	bool aimed, options, fragments;
};

static void
kernel_mean(struct making *making, enum effect effect, const uint8_t *val)
{
	struct udp_flow *flow = &making->arrival.flow;
	int number;

	memcpy(&number, val, sizeof(number));
	switch (effect) {
	case NOTHING:
		break;
	case ADDRESS:
		making->aimed = true;
		if (flow->v6)
			memcpy(&flow->dst, val, sizeof(flow->dst));
		else
			memcpy(&flow->dst, val + offsetof(struct in_pktinfo, ipi_addr), 4);
		break;
	case TCLASS:
		flow->tclass = val[0];
		break;
	case HOP_LIMIT:
		flow->hop_limit = val[0];
		break;
	case SIZE:
		making->arrival.size = (uint32_t)number & UINT16_MAX;
		break;
	case OPTIONS:
		making->options = true;
		break;
	case FRAGMENTS:
		making->fragments = true;
		break;
	}
}

/* Up to 15 control messages, right ones and others, in the room that there is. */
static void
kernel_control(struct msghdr *msg, struct making *making)
{
	uint32_t count = kernel_take(kernel.in, 1) % 16;
	size_t room = msg->msg_controllen, at = 0;
	uint8_t *control = msg->msg_control;

	for (uint32_t i = 0; i < count && room - at >= CMSG_LEN(0); i++) {
		uint32_t what = kernel_take(kernel.in, 1);
		const struct control *kind = &controls[what % RTE_DIM(controls)];
		/* Of four, one is of another length than it has. */
		size_t len = what < 0xc0 ? kind->len : kernel_take(kernel.in, 1) % 64;
		struct cmsghdr hdr = { .cmsg_level = kind->level, .cmsg_type = kind->type };
		uint8_t val[64];
		uint32_t seed = kernel_take(kernel.in, 2);

		for (size_t k = 0; k < sizeof(val); k++)
			val[k] = k < 2 ? (uint8_t)(seed >> 8 * k) : (uint8_t)(seed + 31 * k);
		len = RTE_MIN(len, room - at - CMSG_LEN(0));
		hdr.cmsg_len = CMSG_LEN(len);
		memcpy(control + at, &hdr, sizeof(hdr));
		memcpy(control + at + CMSG_LEN(0), val, len);
		if (len >= kind->len)
			kernel_mean(making, kind->effect[making->arrival.flow.v6], val);
		at += RTE_MIN(CMSG_SPACE(len), room - at);
	}
	msg->msg_controllen = at;
}

static void
kernel_source(struct msghdr *msg, struct kernel_arrival *arrival)
{
	uint32_t seed = kernel_take(kernel.in, 1);
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	uint8_t *addr = arrival->flow.v6 ? v6.sin6_addr.s6_addr : (uint8_t *)&v4.sin_addr;
	uint32_t len = arrival->flow.v6 ? 16 : 4;

	arrival->sport = (uint16_t)kernel_take(kernel.in, 2);
	for (uint32_t i = 0; i < len; i++)
		addr[i] = (uint8_t)(seed + 7 * i);
	memcpy(&arrival->flow.src, addr, len);
	v4.sin_port = v6.sin6_port = arrival->sport;
	msg->msg_namelen = arrival->flow.v6 ? sizeof(v6) : sizeof(v4);
	memcpy(msg->msg_name, arrival->flow.v6 ? (void *)&v6 : (void *)&v4, msg->msg_namelen);
}

/* Bytes into what the driver named. @return how many there was room for */
static uint32_t
kernel_pour(const struct msghdr *msg, uint32_t serial, uint32_t len)
{
	uint32_t at = 0;

	RCD_CHECK(msg->msg_iovlen >= 1 && msg->msg_iovlen <= UDP_RUN_MAX + 1);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		uint32_t part = RTE_MIN((uint32_t)msg->msg_iov[i].iov_len, len - at);

		memcpy(msg->msg_iov[i].iov_base, kernel_bytes(serial, at), part);
		at += part;
	}
	return at;
}

/* One in sixteen has a flag that says that something is missing. */
static void
kernel_flags(struct msghdr *msg, uint32_t len, uint32_t poured)
{
	uint32_t flags = kernel_take(kernel.in, 1);

	msg->msg_flags = len > poured || flags == 0xff ? MSG_TRUNC : 0;
	if (flags >= 0xf0 && flags < 0xff)
		msg->msg_flags |= MSG_CTRUNC;
}

static ssize_t
kernel_deliver(struct msghdr *msg, bool v6)
{
	struct making making = { .arrival = { .flow = { .v6 = v6, .dport = htons(kernel.port) } } };
	struct kernel_arrival *arrival = &making.arrival;
	uint32_t want = kernel_take(kernel.in, 2);

	/* Some are longer than a datagram can be. */
	if (want >= 0xfff0)
		want += (want & 15) * 8192;
	arrival->serial = ++kernel.serial;
	kernel_source(msg, arrival);
	kernel_control(msg, &making);
	arrival->len = kernel_pour(msg, arrival->serial, want);
	kernel_flags(msg, want, arrival->len);
	if (msg->msg_flags & MSG_CTRUNC)
		arrival->size = 0;
	if (arrival->size == 0 || arrival->size > arrival->len)
		arrival->size = arrival->len;
	arrival->count = arrival->len == 0 ? 1 : (arrival->len + arrival->size - 1) / arrival->size;
	arrival->accepted = making.aimed && !making.options && !making.fragments &&
		msg->msg_flags == 0 && arrival->count <= UDP_RUN_ROOM &&
		arrival->len <= UDP_BYTES &&
		arrival->size + (v6 ? UDP_FRAME_HDR_LEN6 : UDP_FRAME_HDR_LEN4) <= kernel.room;
	RCD_CHECK(kernel.arrivals < KERNEL_CALLS);
	kernel.arrival[kernel.arrivals++] = *arrival;
	return arrival->len;
}

/* What is kept of errors: a few, then no more. */
static ssize_t
kernel_error(struct msghdr *msg)
{
	uint32_t what = kernel_take(kernel.in, 1);
	struct sock_extended_err err = { .ee_origin = what >> 4 & 3 };
	struct cmsghdr hdr = { .cmsg_level = what & 4 ? IPPROTO_IP : IPPROTO_IPV6,
		.cmsg_type = what & 8 ? IP_RECVERR : IPV6_RECVERR };
	size_t len = what & 2 ? sizeof(err) : kernel_take(kernel.in, 1) % sizeof(err);

	if (!(what & 1)) {
		errno = EAGAIN;
		return -1;
	}
	hdr.cmsg_len = CMSG_LEN(len);
	memcpy(msg->msg_control, &hdr, sizeof(hdr));
	memcpy((uint8_t *)msg->msg_control + CMSG_LEN(0), &err, len);
	msg->msg_controllen = CMSG_LEN(len);
	return 0;
}

ssize_t
__wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	static const int errors[] = { EAGAIN, EINTR, ECONNREFUSED, ENOMEM };
	uint32_t what;

	RCD_CHECK(fd == KERNEL_FDS || fd == KERNEL_FDS + 1);
	RCD_CHECK(flags & MSG_DONTWAIT);
	if (flags & MSG_ERRQUEUE)
		return kernel_error(msg);
	kernel.before();
	what = kernel_take(kernel.in, 1);
	if (what >= 4)
		return kernel_deliver(msg, fd == KERNEL_FDS + 1);
	errno = errors[what];
	return -1;
}

ssize_t
__wrap_recv(int fd, void *buf, size_t len, int flags)
{
	RCD_CHECK(fd == KERNEL_FDS || fd == KERNEL_FDS + 1);
	RCD_CHECK(buf == NULL && len == 0 && flags == (MSG_PEEK | MSG_DONTWAIT));
	if (kernel.in->len > 0)
		return 0;
	errno = EAGAIN;
	return -1;
}
