/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Datagrams into buffers. The kernel gives a run as one piece of memory; it is spread over buffers
 * by the size that its datagrams are expected to have, so that each lies where it belongs when the
 * size is right. When it is not, all of the run is copied.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <rte_branch_prediction.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <string.h>

#include "udp_dev.h"
#include "udp_frame.h"

/** A run of fewer bytes does not change what is expected: to copy it costs little. */
#define SHORT_RUN 8192

/** Of smaller datagrams a run is copied: to name a buffer for each of them costs more. */
#define SPREAD_MIN 256

/** As many datagrams of another size loosen an expectation as made it firm, this at most. */
#define FIRM 64

/** A socket that had nothing so many times is looked at less often. */
#define QUIET       256
#define QUIET_LOOKS 8

/* What comes beside a datagram. */
struct udp_info {
	struct udp_flow flow;
	uint32_t size; /**< of the datagrams of a run; 0: it is none */
	bool aimed;    /**< it is known whom it was sent to */
	bool options, fragments;
};

/* A received datagram or run. */
struct arrival {
	enum udp_family family;
	uint32_t len;     /**< of all */
	uint32_t hdr_len; /**< before each datagram */
	uint32_t spread;  /**< size that it was spread by */
	uint32_t buffers; /**< over so many */
	uint16_t sport;   /**< in network byte order */
	struct udp_info info;
};

/* @return whether all of it is there */
static bool
udp_rx_value(const struct cmsghdr *cmsg, void *val, size_t len)
{
	if (cmsg->cmsg_len < CMSG_LEN(len))
		return false;
	memcpy(val, CMSG_DATA(cmsg), len);
	return true;
}

static void
udp_rx_byte(const struct cmsghdr *cmsg, uint8_t *val)
{
	int number;

	if (udp_rx_value(cmsg, &number, sizeof(number)))
		*val = (uint8_t)number;
}

static void
udp_rx_info4(const struct cmsghdr *cmsg, struct udp_info *info)
{
	struct in_pktinfo to;

	switch (cmsg->cmsg_type) {
	case IP_PKTINFO:
		if (!udp_rx_value(cmsg, &to, sizeof(to)))
			break;
		memcpy(&info->flow.dst, &to.ipi_addr, sizeof(to.ipi_addr));
		info->aimed = true;
		break;
	case IP_TOS:
		udp_rx_value(cmsg, &info->flow.tclass, sizeof(info->flow.tclass));
		break;
	case IP_TTL:
		udp_rx_byte(cmsg, &info->flow.hop_limit);
		break;
	case IP_RECVOPTS:
		info->options = true;
		break;
	case IP_RECVFRAGSIZE:
		info->fragments = true;
		break;
	default:
		break;
	}
}

static void
udp_rx_info6(const struct cmsghdr *cmsg, struct udp_info *info)
{
	struct in6_pktinfo to;

	switch (cmsg->cmsg_type) {
	case IPV6_PKTINFO:
		if (!udp_rx_value(cmsg, &to, sizeof(to)))
			break;
		info->flow.dst = to.ipi6_addr;
		info->aimed = true;
		break;
	case IPV6_TCLASS:
		udp_rx_byte(cmsg, &info->flow.tclass);
		break;
	case IPV6_HOPLIMIT:
		udp_rx_byte(cmsg, &info->flow.hop_limit);
		break;
	case IPV6_HOPOPTS:
	case IPV6_DSTOPTS:
	case IPV6_RTHDR:
		info->options = true;
		break;
	case IPV6_RECVFRAGSIZE:
		info->fragments = true;
		break;
	default:
		break;
	}
}

static void
udp_rx_info(struct msghdr *msg, enum udp_family family, struct udp_info *info)
{
	int size;

	*info = (struct udp_info){ .size = 0 };
	/* Such a one is not taken. */
	if ((msg->msg_flags & MSG_CTRUNC) != 0)
		return;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL;
		cmsg = CMSG_NXTHDR(msg, cmsg)) {
		/* Those of the other version have addresses of another length. */
		if (cmsg->cmsg_level == IPPROTO_IP && family == UDP_V4)
			udp_rx_info4(cmsg, info);
		else if (cmsg->cmsg_level == IPPROTO_IPV6 && family == UDP_V6)
			udp_rx_info6(cmsg, info);
		else if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO &&
			udp_rx_value(cmsg, &size, sizeof(size)))
			info->size = (uint32_t)size & UINT16_MAX;
	}
}

/* As many empty buffers as there may be datagrams. */
static uint32_t
udp_rx_arm(struct udp_rxq *rxq, uint32_t count)
{
	if (rxq->armed_count < count &&
		rte_pktmbuf_alloc_bulk(
			rxq->pool, rxq->armed + rxq->armed_count, count - rxq->armed_count) == 0)
		rxq->armed_count = count;
	return RTE_MIN(rxq->armed_count, count);
}

/* The next one, as its owner gets it. */
static struct rte_mbuf *
udp_rx_finish(struct udp_rxq *rxq, const struct arrival *arrival, struct rte_mbuf *mbuf,
	uint16_t index, uint32_t len)
{
	const struct udp_dev *dev = rxq->dev;
	uint64_t word = __atomic_load_n(&dev->mac, __ATOMIC_RELAXED);
	struct rte_ether_addr mac;

	memcpy(&mac, &word, sizeof(mac));
	udp_frame_build(rte_pktmbuf_mtod(mbuf, uint8_t *), &arrival->info.flow, &mac,
		arrival->sport, index, (uint16_t)len);
	mbuf->data_len = (uint16_t)(arrival->hdr_len + len);
	mbuf->pkt_len = arrival->hdr_len + len;
	mbuf->port = rxq->port_id;
	mbuf->ol_flags = arrival->family == UDP_V4 ? dev->any_id : 0;
	mbuf->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L4_UDP |
		(arrival->family == UDP_V4 ? RTE_PTYPE_L3_IPV4 : RTE_PTYPE_L3_IPV6);
	udp_count(&rxq->counts.packets, 1);
	udp_count(&rxq->counts.bytes, mbuf->pkt_len);
	return mbuf;
}

/* All of a run, as one piece again. */
static const uint8_t *
udp_rx_gather(struct udp_rxq *rxq, const struct arrival *arrival)
{
	uint32_t at = 0;

	if (arrival->buffers == 0)
		return rxq->rest;
	for (uint32_t i = 0; i < arrival->buffers && at < arrival->len; i++) {
		uint32_t part = RTE_MIN(arrival->spread, arrival->len - at);

		memcpy(rxq->whole + at,
			rte_pktmbuf_mtod_offset(rxq->armed[i], uint8_t *, arrival->hdr_len), part);
		at += part;
	}
	memcpy(rxq->whole + at, rxq->rest, arrival->len - at);
	return rxq->whole;
}

static void
udp_rx_copy(struct udp_rxq *rxq, const struct arrival *arrival, uint32_t size, uint32_t count)
{
	const uint8_t *whole = udp_rx_gather(rxq, arrival);
	uint32_t have = udp_rx_arm(rxq, count);
	uint32_t at = 0;

	udp_count(&rxq->counts.copied, have);
	udp_count(&rxq->counts.no_buffer, count - have);
	for (uint32_t i = 0; i < have; i++, at += size) {
		uint32_t len = RTE_MIN(size, arrival->len - at);
		struct rte_mbuf *mbuf = rxq->armed[--rxq->armed_count];

		memcpy(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, arrival->hdr_len), whole + at, len);
		rxq->ready[i] = udp_rx_finish(rxq, arrival, mbuf, (uint16_t)i, len);
	}
	rxq->ready_count = have;
}

/* It was spread as it should be. */
static void
udp_rx_hand(struct udp_rxq *rxq, const struct arrival *arrival, uint32_t size, uint32_t count)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < count; i++, at += size)
		rxq->ready[i] = udp_rx_finish(
			rxq, arrival, rxq->armed[i], (uint16_t)i, RTE_MIN(size, arrival->len - at));
	rxq->armed_count -= count;
	memmove(rxq->armed, rxq->armed + count, rxq->armed_count * sizeof(rxq->armed[0]));
	rxq->ready_count = count;
}

/* @return whether anybody may have it */
static bool
udp_rx_accept(struct udp_rxq *rxq, const struct arrival *arrival, int flags, uint32_t size,
	uint32_t count)
{
	const struct udp_info *info = &arrival->info;
	uint64_t *reason = NULL;

	if (info->options)
		reason = &rxq->counts.options;
	else if (info->fragments)
		reason = &rxq->counts.fragments;
	else if ((flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || !info->aimed || count > UDP_RUN_ROOM ||
		arrival->len > UDP_BYTES)
		reason = &rxq->counts.invalid;
	else if (size > rxq->room - arrival->hdr_len)
		reason = &rxq->counts.too_long;
	if (reason == NULL)
		return true;
	udp_count(reason, RTE_MAX(count, 1u));
	return false;
}

/*
 * Expected is what most datagrams of late have: the first and the last packet of a message differ
 * from those between by a header, and those of two messages may make a run.
 */
static void
udp_rx_learn(struct udp_guess *guess, uint32_t len, uint32_t size, uint32_t count)
{
	if (count > 1 ? len <= SHORT_RUN : size <= guess->size)
		return;
	if (size == guess->size) {
		guess->firm = RTE_MIN(guess->firm + count, (uint32_t)FIRM);
	} else if (guess->firm >= count) {
		guess->firm -= count;
	} else {
		guess->size = size;
		guess->firm = count;
	}
}

static void
udp_rx_take(struct udp_rxq *rxq, struct arrival *arrival, int flags)
{
	uint32_t size = arrival->info.size, count;

	if (size == 0 || size > arrival->len)
		size = arrival->len;
	count = size == 0 ? 1 : (arrival->len + size - 1) / size;
	udp_count(&rxq->counts.calls, 1);
	udp_count(&rxq->counts.runs, count > 1);
	if (!udp_rx_accept(rxq, arrival, flags, size, count))
		return;
	udp_peers_heard(&rxq->dev->peers, &arrival->info.flow, arrival->sport);
	rxq->ready_at = 0;
	if (likely(count <= arrival->buffers &&
		    (size == arrival->spread || (count == 1 && size <= arrival->spread))))
		udp_rx_hand(rxq, arrival, size, count);
	else
		udp_rx_copy(rxq, arrival, size, count);
	udp_rx_learn(&rxq->guess[arrival->family], arrival->len, size, count);
}

/*
 * What a call that names many buffers costs, is paid only when something is there: most looks of
 * one who polls find nothing.
 */
static bool
udp_rx_look(struct udp_rxq *rxq, enum udp_family family)
{
	int fd = rxq->sockets->fds[family];

	if (rxq->guess[family].quiet == 0 || recv(fd, NULL, 0, MSG_PEEK | MSG_DONTWAIT) >= 0)
		return true;
	/* An error is told once. */
	return errno != EAGAIN && errno != EINTR && udp_errors_clear(fd, &rxq->counts);
}

bool
udp_rx_waiting(struct udp_rxq *rxq)
{
	struct pollfd fds[UDP_FAMILIES];
	bool some = rxq->ready_count > 0;

	for (int i = 0; i < UDP_FAMILIES; i++)
		fds[i] = (struct pollfd){ .fd = rxq->sockets->fds[i], .events = POLLIN };
	if (poll(fds, UDP_FAMILIES, 0) <= 0)
		return some;
	for (int i = 0; i < UDP_FAMILIES; i++) {
		if ((fds[i].revents & POLLERR) != 0)
			udp_errors_clear(fds[i].fd, &rxq->counts);
		some |= (fds[i].revents & POLLIN) != 0;
	}
	return some;
}

/* @return whether there was something, of use or not */
static bool
udp_rx_receive(struct udp_rxq *rxq, enum udp_family family)
{
	_Alignas(struct cmsghdr) uint8_t control[UDP_CTRL_LEN];
	struct iovec iov[UDP_RUN_MAX + 1];
	struct sockaddr_in6 from;
	struct arrival arrival = { .family = family,
		.hdr_len = family == UDP_V4 ? UDP_FRAME_HDR_LEN4 : UDP_FRAME_HDR_LEN6,
		.spread = rxq->guess[family].size };
	struct msghdr msg = { .msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = iov,
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	ssize_t len;

	arrival.spread = RTE_MIN(arrival.spread, rxq->room - arrival.hdr_len);
	arrival.buffers = udp_rx_arm(rxq,
		rxq->sockets->gro && arrival.spread >= SPREAD_MIN
			? RTE_MIN(UDP_BYTES / arrival.spread + 1, (uint32_t)UDP_RUN_MAX)
			: 1);
	/* A single one is for all that fits. */
	if (arrival.buffers == 1)
		arrival.spread = rxq->room - arrival.hdr_len;
	for (uint32_t i = 0; i < arrival.buffers; i++)
		iov[i] = (struct iovec){ rte_pktmbuf_mtod_offset(
						 rxq->armed[i], uint8_t *, arrival.hdr_len),
			arrival.spread };
	iov[arrival.buffers] = (struct iovec){ rxq->rest, UDP_BYTES };
	msg.msg_iovlen = arrival.buffers + 1;
	len = recvmsg(rxq->sockets->fds[family], &msg, MSG_DONTWAIT);
	if (len < 0)
		/* An error that is told is not that there is nothing. */
		return errno != EAGAIN && errno != EINTR &&
			udp_errors_clear(rxq->sockets->fds[family], &rxq->counts);
	arrival.len = (uint32_t)len;
	udp_rx_info(&msg, family, &arrival.info);
	arrival.info.flow.v6 = family == UDP_V6;
	arrival.info.flow.dport = htons(rxq->dev->args.port);
	if (family == UDP_V4) {
		struct sockaddr_in *from4 = (struct sockaddr_in *)(void *)&from;

		memcpy(&arrival.info.flow.src, &from4->sin_addr, sizeof(from4->sin_addr));
		arrival.sport = from4->sin_port;
	} else {
		arrival.info.flow.src = from.sin6_addr;
		arrival.sport = from.sin6_port;
	}
	udp_rx_take(rxq, &arrival, msg.msg_flags);
	return true;
}

/* What was received and is not taken yet. */
static uint16_t
udp_rx_deliver(struct udp_rxq *rxq, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t taken = (uint16_t)RTE_MIN(rxq->ready_count, count);

	memcpy(mbufs, rxq->ready + rxq->ready_at, taken * sizeof(mbufs[0]));
	rxq->ready_at += taken;
	rxq->ready_count -= taken;
	return taken;
}

/* Each look is a system call. Most machines speak one version of IP. */
static bool
udp_rx_skips(const struct udp_rxq *rxq, enum udp_family family)
{
	return rxq->sockets->fds[family] < 0 ||
		(rxq->guess[family].quiet >= QUIET && rxq->bursts % QUIET_LOOKS != 0);
}

uint16_t
udp_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
	struct udp_rxq *rxq = arg;
	uint16_t taken = udp_rx_deliver(rxq, mbufs, count);
	uint32_t first = rxq->bursts++;

	/* Both in turns, each with as many system calls at most as there may be packets. */
	for (uint32_t i = 0; i < UDP_FAMILIES; i++) {
		enum udp_family family = (enum udp_family)((first + i) % UDP_FAMILIES);
		struct udp_guess *guess = &rxq->guess[family];

		if (udp_rx_skips(rxq, family))
			continue;
		for (uint16_t calls = 0; taken < count && calls < count; calls++) {
			if (!udp_rx_look(rxq, family) || !udp_rx_receive(rxq, family)) {
				guess->quiet += calls == 0;
				break;
			}
			guess->quiet = 0;
			taken += udp_rx_deliver(rxq, mbufs + taken, (uint16_t)(count - taken));
		}
	}
	return taken;
}

void
udp_rx_clear(struct udp_rxq *rxq)
{
	rte_pktmbuf_free_bulk(rxq->armed, rxq->armed_count);
	rte_pktmbuf_free_bulk(rxq->ready + rxq->ready_at, rxq->ready_count);
	rxq->armed_count = rxq->ready_count = rxq->ready_at = 0;
}
