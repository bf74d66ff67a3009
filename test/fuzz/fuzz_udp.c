/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whatever a kernel gives net_udp - lengths, control messages, runs of any size, errors - its
 * user gets each datagram that is a right one, whole, once and in order, and nothing else; buffers
 * are written to within their room, all are back at the end, and every datagram is counted.
 * Method: a queue without sockets, received from with buffers that are held and given back as the
 * input says; and frames of any bytes that are to be sent.
 */
#include <rte_mempool.h>
#include <stdlib.h>
#include <string.h>

#include "begin.h"
#include "kernel_udp.h"
#include "rcd_check.h"
#include "udp_dev.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

#define BUFFERS  191  /**< fewer than two runs of the most datagrams */
#define ROOM_MAX 4400 /**< of the largest buffer */
#define GUARD    64   /**< bytes behind the room of each */
#define BURSTS   64
#define PORT     4791

static struct rte_mempool *pool;
static struct udp_dev *dev;
static struct udp_rxq *rxq;
static struct rte_mbuf *held[BUFFERS];
static uint32_t held_count;
static uint64_t no_buffer, dropped; /**< that were counted at the last look */
static uint32_t settled;            /**< serial of the arrival that was last then */
static uint32_t expected_at, expected_index;

static void
begin(void)
{
	if (pool != NULL)
		return;
	RCD_CHECK(begin_eal("fuzz_udp") == 0);
	pool = rte_pktmbuf_pool_create(
		"fuzz", BUFFERS, 0, 0, RTE_PKTMBUF_HEADROOM + ROOM_MAX + GUARD, SOCKET_ID_ANY);
	dev = calloc(1, sizeof(*dev));
	rxq = calloc(1, sizeof(*rxq));
	RCD_CHECK(pool != NULL && dev != NULL && rxq != NULL);
	rxq->rest = malloc(UDP_BYTES);
	rxq->whole = malloc(UDP_BYTES);
	RCD_CHECK(rxq->rest != NULL && rxq->whole != NULL);
}

static uint8_t *
guard_of(const struct rte_mbuf *mbuf)
{
	return (uint8_t *)mbuf->buf_addr + RTE_PKTMBUF_HEADROOM + rxq->room;
}

static void
check_guard(const struct rte_mbuf *mbuf)
{
	for (uint32_t i = 0; i < GUARD; i++)
		RCD_CHECK(guard_of(mbuf)[i] == 0xa5);
}

/* What could not be given to its user is the end of the arrival that was last. */
static void
settle(void)
{
	const struct udp_counts *counts = &rxq->counts;
	uint64_t drops = counts->invalid + counts->too_long + counts->options + counts->fragments;
	uint32_t lost = (uint32_t)(counts->no_buffer - no_buffer);

	RCD_CHECK(rxq->armed_count <= UDP_RUN_ROOM);
	if (kernel.arrivals > 0 && kernel.serial != settled) {
		struct kernel_arrival *last = &kernel.arrival[kernel.arrivals - 1];

		RCD_CHECK(drops - dropped == (last->accepted ? 0 : last->count));
		RCD_CHECK(lost <= (last->accepted ? last->count : 0));
		last->count -= lost;
	} else {
		RCD_CHECK(drops == dropped && lost == 0);
	}
	settled = kernel.serial;
	no_buffer = counts->no_buffer;
	dropped = drops;
}

static void
before_receiving(void)
{
	/* Nothing is received before what was is taken. */
	RCD_CHECK(rxq->ready_count == 0);
	settle();
}

static void
begin_queue(struct kernel_input *in)
{
	static const uint32_t rooms[] = { ROOM_MAX, 2048, 300, UDP_FRAME_HDR_LEN6 + 1 };
	uint8_t *rest = rxq->rest, *whole = rxq->whole;
	uint32_t how = kernel_take(in, 1);
	uint32_t count = 0;

	memset(dev, 0, sizeof(*dev));
	dev->args.port = PORT;
	dev->peers.seed = 1;
	dev->sockets[0] = UDP_SOCKETS_NONE;
	dev->sockets[0].gro = how & 1;
	dev->sockets[0].fds[UDP_V4] = how & 2 ? -1 : KERNEL_FDS;
	dev->sockets[0].fds[UDP_V6] = (how & 6) == 4 ? -1 : KERNEL_FDS + 1;
	*rxq = (struct udp_rxq){ .dev = dev,
		.sockets = &dev->sockets[0],
		.pool = pool,
		.port_id = 7,
		.room = rooms[how >> 3 & 3],
		.rest = rest,
		.whole = whole };
	for (int i = 0; i < UDP_FAMILIES; i++)
		rxq->guess[i].size =
			RTE_MIN(1 + kernel_take(in, 2), rxq->room - (uint32_t)UDP_FRAME_HDR_LEN6);
	while (count < BUFFERS && (held[count] = rte_pktmbuf_alloc(pool)) != NULL)
		memset(guard_of(held[count++]), 0xa5, GUARD);
	RCD_CHECK(count == BUFFERS);
	rte_pktmbuf_free_bulk(held, BUFFERS);
	held_count = 0;
	no_buffer = dropped = 0;
	settled = expected_at = expected_index = 0;
}

static void
check_frame(const struct rte_mbuf *mbuf, const struct kernel_arrival *arrival, uint32_t index)
{
	uint32_t at = index * arrival->size;
	uint32_t len = RTE_MIN(arrival->size, arrival->len - at);
	uint32_t hdr_len = arrival->flow.v6 ? UDP_FRAME_HDR_LEN6 : UDP_FRAME_HDR_LEN4;
	const uint8_t *data = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	struct udp_frame frame;

	RCD_CHECK(mbuf->nb_segs == 1 && mbuf->data_off == RTE_PKTMBUF_HEADROOM);
	RCD_CHECK(mbuf->data_len == hdr_len + len && mbuf->pkt_len == hdr_len + len);
	RCD_CHECK(mbuf->port == 7 && udp_frame_parse(mbuf, &frame));
	RCD_CHECK(udp_flow_same(&frame.flow, &arrival->flow));
	RCD_CHECK(frame.hdr_len == hdr_len && frame.len == len);
	RCD_CHECK(frame.sport == rte_be_to_cpu_16(arrival->sport));
	RCD_CHECK(frame.flow.v6 || frame.id == index);
	RCD_CHECK(memcmp(data + hdr_len, kernel_bytes(arrival->serial, at), len) == 0);
	check_guard(mbuf);
}

/* @return whether there is a datagram that was not taken: expected_index of arrival expected_at */
static bool
expects_more(void)
{
	for (; expected_at < kernel.arrivals; expected_at++, expected_index = 0)
		if (kernel.arrival[expected_at].accepted &&
			expected_index < kernel.arrival[expected_at].count)
			return true;
	return false;
}

/* All that a burst gave, against what came since all was taken. */
static void
check_burst(struct rte_mbuf *const *mbufs, uint16_t got)
{
	for (uint16_t i = 0; i < got; i++) {
		RCD_CHECK(expects_more());
		check_frame(mbufs[i], &kernel.arrival[expected_at], expected_index++);
	}
	if (expects_more()) {
		/* The rest of the last one waits for the next burst. */
		RCD_CHECK(expected_at + 1 == kernel.arrivals);
		kernel.arrival[0] = kernel.arrival[expected_at];
		RCD_CHECK(rxq->ready_count == kernel.arrival[0].count - expected_index);
		kernel.arrivals = 1;
	} else {
		RCD_CHECK(rxq->ready_count == 0);
		kernel.arrivals = 0;
		expected_index = 0;
	}
	expected_at = 0;
}

static void
give_back(uint32_t count)
{
	count = RTE_MIN(count, held_count);
	held_count -= count;
	rte_pktmbuf_free_bulk(held + held_count, count);
}

static void
receive(struct kernel_input *in)
{
	begin_queue(in);
	kernel.in = in;
	kernel.port = PORT;
	kernel.room = rxq->room;
	kernel.arrivals = 0;
	kernel.serial = 0;
	kernel.before = before_receiving;
	for (int i = 0; i < BURSTS && in->len > 0; i++) {
		uint32_t how = kernel_take(in, 1);
		struct rte_mbuf *mbufs[32];
		uint16_t got = udp_rx_burst(rxq, mbufs, (uint16_t)(how & 31));

		RCD_CHECK(got <= (how & 31));
		settle();
		check_burst(mbufs, got);
		memcpy(held + held_count, mbufs, got * sizeof(mbufs[0]));
		held_count += got;
		if (how & 0x20)
			give_back(held_count);
		else if (how & 0x40)
			give_back(5);
	}
	give_back(held_count);
	for (uint32_t i = 0; i < rxq->armed_count; i++)
		check_guard(rxq->armed[i]);
	udp_rx_clear(rxq);
	RCD_CHECK(rte_mempool_full(pool));
}

/* A frame of these bytes, in one piece or two: nothing beyond it is looked at or written. */
static void
send_frame(struct kernel_input *in)
{
	uint32_t split = kernel_take(in, 2), change = kernel_take(in, 4);
	uint32_t len = (uint32_t)in->len, first = split < len ? split : len;
	uint8_t *one = malloc(first), *two = malloc(len - first);
	struct rte_mbuf rest = { .buf_addr = two, .data_len = (uint16_t)(len - first) };
	struct rte_mbuf mbuf = { .buf_addr = one,
		.data_len = (uint16_t)first,
		.pkt_len = len,
		.nb_segs = first < len ? 2 : 1,
		.next = first < len ? &rest : NULL };
	struct udp_frame frame;

	if (first > 0)
		memcpy(one, in->data, first);
	if (first < len)
		memcpy(two, in->data + first, len - first);
	if (udp_frame_parse(&mbuf, &frame)) {
		RCD_CHECK(frame.hdr_len <= first && (uint32_t)frame.hdr_len + frame.len <= len);
		if (frame.len >= UDP_ICRC_LEN)
			udp_frame_amend(&mbuf, &frame, 1, 2, change);
	}
	free(one);
	free(two);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_input in = { .data = data, .len = RTE_MIN(size, (size_t)UINT16_MAX) };

	begin();
	if (kernel_take(&in, 1) & 1)
		receive(&in);
	else
		send_frame(&in);
	return 0;
}
