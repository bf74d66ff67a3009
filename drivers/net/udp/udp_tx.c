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
#include <rte_mbuf.h>
#include <string.h>

#include "udp_dev.h"
#include "udp_frame.h"

#define PIECES    256   /**< of datagrams, in all calls of a system call */
#define RUN_BYTES 65000 /**< of a run, with all headers within 65535 */
#define ICRC_LEN  4

/** Datagrams that go one by one when a run was refused: then runs are tried again. */
#define APART 4096

/** Control messages of a call: source, TOS, TTL, size. */
#define CONTROL_LEN                                                                                \
	(CMSG_SPACE(sizeof(struct in6_pktinfo)) + 2 * CMSG_SPACE(sizeof(int)) +                    \
		CMSG_SPACE(sizeof(uint16_t)))

/* One datagram, or a run. */
struct call {
	struct udp_flow flow;
	uint16_t first, count; /**< of the buffers of a burst */
	uint16_t size;         /**< of each datagram but the last, which may be shorter */
	uint32_t len;          /**< of all */
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

static bool
udp_tx_may_run(const struct udp_txq *txq, const struct udp_flow *flow)
{
	const struct udp_dev *dev = txq->dev;

	if (txq->apart > 0 || !txq->sockets->runs || dev->args.runs == UDP_RUNS_NONE)
		return false;
	return flow->v6 || dev->args.runs == UDP_RUNS_ALL ||
		udp_peers_known(&dev->peers, flow->dst.s6_addr32[0], flow->dport);
}

/* Whether a datagram goes into the last call. */
static bool
udp_tx_joins(const struct udp_txq *txq, const struct batch *batch, const struct udp_frame *frame)
{
	const struct call *last;

	if (batch->call_count == 0)
		return false;
	last = &batch->calls[batch->call_count - 1];
	return !last->closed && last->count < UDP_RUN_MAX && frame->len <= last->size &&
		frame->len > 0 && last->len + frame->len <= RUN_BYTES &&
		udp_flow_same(&last->flow, &frame->flow) && udp_tx_may_run(txq, &frame->flow);
}

/* The bytes of a datagram, without its headers. */
static void
udp_tx_pieces(struct batch *batch, struct rte_mbuf *mbuf, const struct udp_frame *frame)
{
	struct msghdr *msg = &batch->msgs[batch->call_count - 1].msg_hdr;
	uint32_t skip = frame->hdr_len, left = frame->len;

	while (left > 0 && mbuf != NULL) {
		uint32_t part = RTE_MIN(rte_pktmbuf_data_len(mbuf) - skip, left);

		if (part > 0)
			msg->msg_iov[msg->msg_iovlen++] =
				(struct iovec){ rte_pktmbuf_mtod_offset(mbuf, uint8_t *, skip),
					part };
		batch->piece_count += part > 0;
		left -= part;
		skip = 0;
		mbuf = mbuf->next;
	}
}

static void
udp_tx_add(struct udp_txq *txq, struct batch *batch, uint16_t index, struct rte_mbuf *mbuf,
	const struct udp_frame *frame)
{
	struct call *call;
	uint16_t id = 0;

	if (udp_tx_joins(txq, batch, frame)) {
		call = &batch->calls[batch->call_count - 1];
		id = call->count++;
		call->closed = frame->len < call->size;
	} else {
		call = &batch->calls[batch->call_count];
		*call = (struct call){
			.flow = frame->flow, .first = index, .count = 1, .size = frame->len
		};
		batch->msgs[batch->call_count].msg_hdr =
			(struct msghdr){ .msg_iov = batch->pieces + batch->piece_count };
		batch->call_count++;
	}
	call->len += frame->len;
	if (txq->dev->args.icrc && frame->len >= ICRC_LEN &&
		(frame->sport != txq->dev->args.port || (frame->id != id && !frame->flow.v6)))
		udp_frame_amend(mbuf, frame, id, txq->dev->args.port,
			udp_icrc_change(&txq->icrc, frame->l3_len,
				(uint32_t)frame->l3_len + 8 + frame->len - ICRC_LEN,
				(uint16_t)(frame->id ^ id),
				(uint16_t)(frame->sport ^ txq->dev->args.port)));
	udp_tx_pieces(batch, mbuf, frame);
}

/* Of one that others have, too, nothing may be written. @return NULL: no memory */
static struct rte_mbuf *
udp_tx_own(struct rte_mbuf *mbuf)
{
	const struct rte_mbuf *segment;
	struct rte_mbuf *copy;

	for (segment = mbuf; segment != NULL; segment = segment->next)
		if (!RTE_MBUF_DIRECT(segment) || rte_mbuf_refcnt_read(segment) > 1)
			break;
	if (likely(segment == NULL))
		return mbuf;
	copy = rte_pktmbuf_copy(mbuf, mbuf->pool, 0, UINT32_MAX);
	if (copy != NULL)
		rte_pktmbuf_free(mbuf);
	return copy;
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
		struct rte_mbuf *mbuf;

		if (batch->call_count == UDP_CALLS ||
			batch->piece_count + mbufs[taken]->nb_segs > PIECES ||
			!udp_frame_parse(mbufs[taken], &frame) ||
			txq->sockets->fds[frame.flow.v6 ? UDP_V6 : UDP_V4] < 0)
			break;
		mbuf = txq->dev->args.icrc ? udp_tx_own(mbufs[taken]) : mbufs[taken];
		if (mbuf == NULL)
			break;
		mbufs[taken] = mbuf;
		udp_tx_add(txq, batch, taken, mbuf, &frame);
	}
	for (uint16_t i = 0; i < batch->call_count; i++)
		udp_tx_address(batch, i);
	return taken;
}

/* What a call that failed comes to. */
enum outcome {
	OUTCOME_AGAIN, /**< it is tried again, now */
	OUTCOME_LATER, /**< when the socket has room */
	OUTCOME_APART, /**< its datagrams one by one, and others for a while */
	OUTCOME_DROP,
};

static enum outcome
udp_tx_judge(struct udp_txq *txq, const struct call *call, int err, bool again)
{
	switch (err) {
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		return OUTCOME_LATER;
	case EINTR:
		return OUTCOME_AGAIN;
	case EMSGSIZE:
		return OUTCOME_DROP;
	}
	/* An answer to an earlier one is told once, by whatever call comes next. */
	if (!again &&
		udp_errors_read(txq->sockets->fds[call->flow.v6 ? UDP_V6 : UDP_V4], &txq->counts) >
			0)
		return OUTCOME_AGAIN;
	/* Netdevs that do no sums take no runs from some kernels. */
	if (call->count > 1 && (err == EIO || err == EINVAL || err == EOPNOTSUPP))
		return OUTCOME_APART;
	return OUTCOME_DROP;
}

static void
udp_tx_sent(struct udp_txq *txq, const struct call *call, struct rte_mbuf **mbufs)
{
	udp_count(&txq->counts.calls, 1);
	udp_count(&txq->counts.runs, call->count > 1);
	udp_count(&txq->counts.packets, call->count);
	udp_count(&txq->counts.bytes, call->len);
	txq->apart -= txq->apart > 0;
	rte_pktmbuf_free_bulk(mbufs + call->first, call->count);
}

/* Calls of one socket that stand together. @return how many the kernel took, or -errno */
static int
udp_tx_system_call(const struct udp_txq *txq, struct batch *batch, uint16_t at)
{
	bool v6 = batch->calls[at].flow.v6;
	uint16_t end = at;
	int sent;

	while (end < batch->call_count && batch->calls[end].flow.v6 == v6)
		end++;
	sent = sendmmsg(txq->sockets->fds[v6 ? UDP_V6 : UDP_V4], batch->msgs + at,
		(unsigned int)(end - at), MSG_DONTWAIT);
	return sent >= 0 ? sent : -errno;
}

/*
 * @param blocked  set when the sockets have no room
 * @return how many of the buffers are gone, sent or dropped
 */
static uint16_t
udp_tx_send(struct udp_txq *txq, struct batch *batch, struct rte_mbuf **mbufs, bool *blocked)
{
	uint16_t at = 0;
	bool again = false;

	while (at < batch->call_count) {
		const struct call *call = &batch->calls[at];
		int sent = udp_tx_system_call(txq, batch, at);

		if (sent >= 0) {
			again = false;
			for (int i = 0; i < sent; i++)
				udp_tx_sent(txq, &batch->calls[at++], mbufs);
			continue;
		}
		switch (udp_tx_judge(txq, call, -sent, again)) {
		case OUTCOME_AGAIN:
			again = true;
			continue;
		case OUTCOME_LATER:
			*blocked = true;
			return call->first;
		case OUTCOME_APART:
			txq->apart = APART;
			return call->first;
		case OUTCOME_DROP:
			udp_tx_drop(mbufs + call->first, call->count,
				sent == -EMSGSIZE ? &txq->counts.too_long : &txq->counts.refused);
			again = false;
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
