/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames to datagrams: neighbours of one flow and one size are one call, many calls one system
 * call, and the bytes are the kernel's to copy, straight from the buffers.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_mbuf.h>
#include <string.h>

#include "udp_dev.h"
#include "udp_frame.h"

#define PIECES    256   /**< of datagrams, in all calls of a system call */
#define RUN_BYTES 65000 /**< of a run, with all headers within 65535 */

/** Datagrams that go one by one when runs are refused: then they are tried again. */
#define APART 4096

/** Calls by which a socket may tell of earlier ones. */
#define TRIES 4

/**
 * How long a socket may have no room before what is for it is dropped: of who was heard, so long as
 * 65535 bytes take at 2.6 Mbit/s, and of strangers, whose neighbours may never answer.
 */
#define FULL_US           200000
#define FULL_STRANGERS_US 1000

/** Control messages of a call: source, TOS, TTL, size. */
#define CONTROL_LEN                                                                                \
	(CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) +                    \
		CMSG_SPACE(sizeof(uint16_t)))

/* One datagram, or a run. */
struct call {
	struct udp_flow flow;
	uint8_t socket;        /**< number of it */
	bool runs;             /**< others may join */
	uint16_t first, count; /**< of the buffers of a burst */
	uint16_t size;         /**< of each datagram but the last, which may be shorter */
	uint32_t len;          /**< of all */
	uint16_t hdr_len;      /**< of each frame */
	bool closed;           /**< the last one is shorter: none may follow */
};

/* What one system call sends. */
struct batch {
	uint16_t call_count;
	uint32_t piece_count;
	struct call calls[UDP_CALLS];
	struct mmsghdr msgs[UDP_CALLS];
	struct sockaddr_in6 to[UDP_CALLS];
	struct iovec pieces[PIECES];
	/** By piece: an ICRC that may not be written to a buffer. */
	uint8_t tails[PIECES][UDP_ICRC_LEN];
	_Alignas(struct cmsghdr) uint8_t control[UDP_CALLS][CONTROL_LEN];
};

static struct cmsghdr *
udp_tx_control(
	struct msghdr *msg, struct cmsghdr *at, int level, int type, const void *val, size_t len)
{
	at->cmsg_level = level;
	at->cmsg_type = type;
	at->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(at), val, len);
	msg->msg_controllen += CMSG_SPACE(len);
	return (struct cmsghdr *)(void *)((uint8_t *)at + CMSG_SPACE(len));
}

/* Addresses and what is to be in the headers. */
static void
udp_tx_address(struct batch *batch, uint16_t index)
{
	const struct call *call = &batch->calls[index];
	struct msghdr *msg = &batch->msgs[index].msg_hdr;
	struct cmsghdr *at = (struct cmsghdr *)(void *)batch->control[index];
	int tclass = call->flow.tclass, hop_limit = call->flow.hop_limit;
	struct in_pktinfo from4 = { .ipi_ifindex = 0 };
	struct in6_pktinfo from6 = { .ipi6_addr = call->flow.src };

	msg->msg_name = &batch->to[index];
	msg->msg_control = at;
	msg->msg_controllen = 0;
	if (call->flow.v6) {
		batch->to[index] = (struct sockaddr_in6){ .sin6_family = AF_INET6,
			.sin6_port = call->flow.dport,
			.sin6_addr = call->flow.dst };
		msg->msg_namelen = sizeof(struct sockaddr_in6);
		at = udp_tx_control(msg, at, IPPROTO_IPV6, IPV6_PKTINFO, &from6, sizeof(from6));
		at = udp_tx_control(msg, at, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof(int));
		at = udp_tx_control(msg, at, IPPROTO_IPV6, IPV6_HOPLIMIT, &hop_limit, sizeof(int));
	} else {
		struct sockaddr_in *to = (struct sockaddr_in *)(void *)&batch->to[index];

		*to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = call->flow.dport };
		memcpy(&to->sin_addr, &call->flow.dst, sizeof(to->sin_addr));
		memcpy(&from4.ipi_spec_dst, &call->flow.src, sizeof(from4.ipi_spec_dst));
		msg->msg_namelen = sizeof(*to);
		at = udp_tx_control(msg, at, IPPROTO_IP, IP_PKTINFO, &from4, sizeof(from4));
		at = udp_tx_control(msg, at, IPPROTO_IP, IP_TOS, &tclass, sizeof(int));
		at = udp_tx_control(msg, at, IPPROTO_IP, IP_TTL, &hop_limit, sizeof(int));
	}
	if (call->count > 1)
		udp_tx_control(msg, at, IPPROTO_UDP, UDP_SEGMENT, &call->size, sizeof(call->size));
}

/* By which socket, and whether in runs. */
static void
udp_tx_plan(const struct udp_txq *txq, struct call *call)
{
	const struct udp_dev *dev = txq->dev;
	const struct udp_flow *flow = &call->flow;
	bool group = flow->v6 ? IN6_IS_ADDR_MULTICAST(&flow->dst)
			      : IN_MULTICAST(ntohl(flow->dst.s6_addr32[0]));
	enum udp_peer peer = group ? UDP_PEER_HEARD : udp_peers_find(&dev->peers, flow);

	call->socket = flow->v6 ? UDP_V6 : UDP_V4;
	if (peer == UDP_PEER_STRANGER && txq->sockets->fds[call->socket + UDP_STRANGERS] >= 0)
		call->socket += UDP_STRANGERS;
	call->runs = txq->apart == 0 && txq->sockets->runs && dev->args.runs != UDP_RUNS_NONE &&
		(dev->args.runs == UDP_RUNS_ALL || peer == UDP_PEER_SOCKET ||
			/* No NIC: a packet socket at the other end would get all as one packet. */
			(flow->v6 && dev->cuts));
}

/* Whether a datagram goes into the last call. */
static bool
udp_tx_joins(const struct batch *batch, const struct udp_frame *frame)
{
	const struct call *last;

	if (batch->call_count == 0)
		return false;
	last = &batch->calls[batch->call_count - 1];
	return last->runs && !last->closed && last->count < UDP_RUN_MAX &&
		frame->len <= last->size && frame->len > 0 && last->len + frame->len <= RUN_BYTES &&
		udp_flow_same(&last->flow, &frame->flow);
}

static void
udp_tx_piece(struct batch *batch, void *base, uint32_t len)
{
	struct msghdr *msg = &batch->msgs[batch->call_count - 1].msg_hdr;

	msg->msg_iov[msg->msg_iovlen++] = (struct iovec){ base, len };
	batch->piece_count++;
}

/* Bytes of a datagram, without its headers. */
static void
udp_tx_pieces(struct batch *batch, struct rte_mbuf *mbuf, uint32_t skip, uint32_t left)
{
	while (left > 0 && mbuf != NULL) {
		uint32_t part = RTE_MIN(rte_pktmbuf_data_len(mbuf) - skip, left);

		if (part > 0)
			udp_tx_piece(batch, rte_pktmbuf_mtod_offset(mbuf, uint8_t *, skip), part);
		left -= part;
		skip = 0;
		mbuf = mbuf->next;
	}
}

/* Nothing may be written to one that others have, too. */
static bool
udp_tx_is_shared(const struct rte_mbuf *mbuf)
{
	for (; mbuf != NULL; mbuf = mbuf->next)
		if (!RTE_MBUF_DIRECT(mbuf) || rte_mbuf_refcnt_read(mbuf) > 1)
			return true;
	return false;
}

/* @return bits of the ICRC that become others; 0: none */
static uint32_t
udp_tx_change(struct udp_txq *txq, const struct udp_frame *frame, uint16_t id, uint16_t sport)
{
	uint16_t ids = frame->flow.v6 ? 0 : frame->id ^ id;

	if (!txq->dev->args.icrc || frame->len < UDP_ICRC_LEN ||
		(ids == 0 && frame->sport == sport))
		return 0;
	return udp_icrc_change(&txq->icrc, frame->l3_len,
		(uint32_t)frame->hdr_len - RTE_ETHER_HDR_LEN + frame->len - UDP_ICRC_LEN, ids,
		frame->sport ^ sport);
}

static void
udp_tx_tail(
	struct batch *batch, struct rte_mbuf *mbuf, const struct udp_frame *frame, uint32_t change)
{
	uint8_t *tail = batch->tails[batch->piece_count];
	uint32_t at = (uint32_t)frame->hdr_len + frame->len - UDP_ICRC_LEN;
	uint8_t room[UDP_ICRC_LEN];
	const uint8_t *icrc = rte_pktmbuf_read(mbuf, at, UDP_ICRC_LEN, room);

	for (int i = 0; i < UDP_ICRC_LEN; i++)
		tail[i] = icrc[i] ^ (uint8_t)(change >> 8 * i);
	udp_tx_piece(batch, tail, UDP_ICRC_LEN);
}

static void
udp_tx_add(struct udp_txq *txq, struct batch *batch, uint16_t index, struct rte_mbuf *mbuf,
	const struct udp_frame *frame)
{
	struct call *call;
	uint16_t id = 0;
	uint32_t change;

	if (udp_tx_joins(batch, frame)) {
		call = &batch->calls[batch->call_count - 1];
		id = call->count++;
		call->closed = frame->len < call->size;
	} else {
		call = &batch->calls[batch->call_count];
		*call = (struct call){ .flow = frame->flow,
			.first = index,
			.count = 1,
			.size = frame->len,
			.hdr_len = frame->hdr_len };
		udp_tx_plan(txq, call);
		batch->msgs[batch->call_count].msg_hdr =
			(struct msghdr){ .msg_iov = batch->pieces + batch->piece_count };
		batch->call_count++;
	}
	call->len += frame->len;
	change = udp_tx_change(txq, frame, id, txq->sockets->ports[call->socket]);
	if (change != 0 && unlikely(udp_tx_is_shared(mbuf))) {
		udp_tx_pieces(batch, mbuf, frame->hdr_len, (uint32_t)frame->len - UDP_ICRC_LEN);
		udp_tx_tail(batch, mbuf, frame, change);
		return;
	}
	if (change != 0)
		udp_frame_amend(mbuf, frame, id, txq->sockets->ports[call->socket], change);
	udp_tx_pieces(batch, mbuf, frame->hdr_len, frame->len);
}

static void
udp_tx_drop(struct rte_mbuf **mbufs, uint16_t count, uint64_t *counter)
{
	udp_count(counter, count);
	rte_pktmbuf_free_bulk(mbufs, count);
}

/*
 * As many as go into one system call.
 *
 * @return how many of the buffers; 0: the first is none that can be sent
 */
static uint16_t
udp_tx_collect(struct udp_txq *txq, struct batch *batch, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t taken = 0;

	batch->call_count = 0;
	batch->piece_count = 0;
	for (; taken < count; taken++) {
		struct udp_frame frame;

		/* One piece more than segments: an ICRC. */
		if (batch->call_count == UDP_CALLS ||
			batch->piece_count + mbufs[taken]->nb_segs + 1 > PIECES ||
			!udp_frame_parse(mbufs[taken], &frame) ||
			txq->sockets->fds[frame.flow.v6 ? UDP_V6 : UDP_V4] < 0)
			break;
		udp_tx_add(txq, batch, taken, mbufs[taken], &frame);
	}
	for (uint16_t i = 0; i < batch->call_count; i++)
		udp_tx_address(batch, i);
	return taken;
}

/* What a call that failed comes to. */
enum outcome {
	OUTCOME_AGAIN, /**< it is tried again, now */
	OUTCOME_LATER, /**< when the socket has room */
	OUTCOME_APART, /**< its datagrams one by one */
	OUTCOME_DROP,
};

/* A socket that has had no room for long gets none: others' packets wait behind. */
static enum outcome
udp_tx_judge_full(struct udp_txq *txq, uint8_t socket)
{
	uint64_t limit_us = socket >= UDP_STRANGERS ? FULL_STRANGERS_US : FULL_US;
	uint64_t now = rte_get_timer_cycles();

	/* Who gave up, and comes back later, waits anew. */
	if (txq->full_tsc[socket] == 0 || now - txq->asked_tsc[socket] > rte_get_timer_hz())
		txq->full_tsc[socket] = now;
	txq->asked_tsc[socket] = now;
	return now - txq->full_tsc[socket] < limit_us * rte_get_timer_hz() / 1000000 ? OUTCOME_LATER
										     : OUTCOME_DROP;
}

static enum outcome
udp_tx_judge(struct udp_txq *txq, const struct call *call, int err, int tries)
{
	if (err == EAGAIN)
		return udp_tx_judge_full(txq, call->socket);
	if (err == EINTR)
		return OUTCOME_AGAIN;
	/*
	 * An answer to an earlier one is told once, by whatever call comes next; the kernel queues
	 * what it says of this one, too, and who leaves that there has no room at last.
	 */
	if ((udp_errors_clear(txq->sockets->fds[call->socket], &txq->counts) ||
		    err == ECONNREFUSED) &&
		tries < TRIES)
		return OUTCOME_AGAIN;
	/* Netdevs that do no sums take no runs from some kernels; a run may find no memory. */
	if (call->count > 1 && (err == EIO || err == EINVAL || err == EOPNOTSUPP || err == ENOMEM))
		return OUTCOME_APART;
	return OUTCOME_DROP;
}

/* Datagrams by themselves fail as well: it was not that they were a run. */
static void
udp_tx_fail(struct udp_txq *txq, const struct call *call, struct rte_mbuf **mbufs, int err)
{
	uint64_t *reason = err == EAGAIN ? &txq->counts.full
		: err == EMSGSIZE        ? &txq->counts.too_long
					 : &txq->counts.refused;

	txq->apart_asked = false;
	txq->apart -= RTE_MIN(txq->apart, (uint32_t)call->count);
	udp_tx_drop(mbufs + call->first, call->count, reason);
}

static void
udp_tx_sent(struct udp_txq *txq, const struct call *call, struct rte_mbuf **mbufs)
{
	udp_count(&txq->counts.calls, 1);
	udp_count(&txq->counts.runs, call->count > 1);
	udp_count(&txq->counts.packets, call->count);
	udp_count(&txq->counts.bytes, call->len + (uint32_t)call->count * call->hdr_len);
	txq->full_tsc[call->socket] = 0;
	if (txq->apart_asked)
		txq->apart = APART;
	txq->apart_asked = false;
	txq->apart -= txq->apart > 0;
	rte_pktmbuf_free_bulk(mbufs + call->first, call->count);
}

/* Calls of one socket that stand together. @return how many the kernel took, or -errno */
static int
udp_tx_system_call(const struct udp_txq *txq, struct batch *batch, uint16_t at)
{
	uint8_t socket = batch->calls[at].socket;
	uint16_t end = at;
	int sent;

	while (end < batch->call_count && batch->calls[end].socket == socket)
		end++;
	sent = sendmmsg(txq->sockets->fds[socket], batch->msgs + at, (unsigned int)(end - at),
		MSG_DONTWAIT);
	return sent >= 0 ? sent : -errno;
}

/*
 * @param blocked  set when a socket has no room
 * @return how many of the buffers are gone, sent or dropped
 */
static uint16_t
udp_tx_send(struct udp_txq *txq, struct batch *batch, struct rte_mbuf **mbufs, bool *blocked)
{
	uint16_t at = 0;
	int tries = 0;

	while (at < batch->call_count) {
		const struct call *call = &batch->calls[at];
		int sent = udp_tx_system_call(txq, batch, at);

		tries = sent >= 0 ? 0 : tries + 1;
		if (sent >= 0) {
			for (int i = 0; i < sent; i++)
				udp_tx_sent(txq, &batch->calls[at++], mbufs);
			continue;
		}
		switch (udp_tx_judge(txq, call, -sent, tries)) {
		case OUTCOME_AGAIN:
			continue;
		case OUTCOME_LATER:
			*blocked = true;
			return call->first;
		case OUTCOME_APART:
			txq->apart = call->count;
			txq->apart_asked = sent != -ENOMEM;
			return call->first;
		case OUTCOME_DROP:
			udp_tx_fail(txq, call, mbufs, -sent);
			tries = 0;
			at++;
			break;
		}
	}
	return (uint16_t)(batch->calls[at - 1].first + batch->calls[at - 1].count);
}

uint16_t
udp_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
	struct udp_txq *txq = arg;
	struct batch batch;
	uint16_t done = 0;
	bool blocked = false;

	while (done < count && !blocked) {
		uint16_t taken =
			udp_tx_collect(txq, &batch, mbufs + done, (uint16_t)(count - done));

		if (taken == 0) {
			udp_tx_drop(mbufs + done, 1, &txq->counts.invalid);
			done++;
			continue;
		}
		done += udp_tx_send(txq, &batch, mbufs + done, &blocked);
	}
	return done;
}
