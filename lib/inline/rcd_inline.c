/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Devices that programs feed: a port of rings, of which the engine has one end and the program the
 * other, and what decides which packets go in.
 */
#include "rcd_inline.h"

#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_counter.h"
#include "rcd_dev_conf.h"
#include "rcd_engine.h"
#include "rcd_engine_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_eth.h"
#include "rcd_inline_whose.h"
#include "rcd_ip.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_lport.h"
#include "rcd_ring.h"
#include "rcd_thread.h"
#include "rcd_udp.h"

#define GIVEN_MOST 64 /**< packets that are put in at once */
#define PREFETCH   4  /**< packets ahead */

struct rcd_inline {
	uint32_t index;  /**< of the device, and... */
	uint32_t serial; /**< ...its own for ever */
	struct rte_ring *in[RCD_LCORES_MAX];
	struct rte_ring *out[RCD_LCORES_MAX];

	/* Of who makes and destroys it. */
	struct rcd_engine *engine;
	char port[16]; /**< without the driver's prefix */
	uint16_t port_id;
	bool has_port;
	uint32_t lcores;
};

static int
inline_make_rings(struct rcd_inline *dev)
{
	char name[RTE_RING_NAMESIZE];

	for (uint32_t i = 0; i < dev->lcores; i++) {
		int socket_id = rcd_lcore_socket_id(rcd_engine_lcore(dev->engine, i));

		snprintf(name, sizeof(name), "%s_i%u", dev->port, i);
		dev->in[i] = rte_ring_create(name, RCD_INLINE_RING, socket_id,
			RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
		snprintf(name, sizeof(name), "%s_o%u", dev->port, i);
		dev->out[i] = rte_ring_create(name, RCD_INLINE_RING, socket_id,
			RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
		if (dev->in[i] == NULL || dev->out[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int
inline_make_port(struct rcd_inline *dev)
{
	static uint32_t numbers;
	int port;

	snprintf(dev->port, sizeof(dev->port), "rcdi%u",
		__atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED));
	if (inline_make_rings(dev) != 0)
		return -ENOMEM;
	port = rte_eth_from_rings(
		dev->port, dev->in, dev->lcores, dev->out, dev->lcores, SOCKET_ID_ANY);
	if (port < 0)
		return rte_errno != 0 ? -rte_errno : -ENODEV;
	dev->port_id = (uint16_t)port;
	dev->has_port = true;
	return 0;
}

static int
inline_make(struct rcd_inline *dev, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	struct rcd_dev_conf full = *conf;
	int err = inline_make_port(dev);

	if (err != 0) {
		snprintf(error, error_len, "%s: no port of rings: %s", conf->name, strerror(-err));
		return err;
	}
	full.attach = RCD_ATTACH_PORT;
	full.fed = true;
	full.impair[0] = '\0';
	full.kernel[0] = '\0';
	snprintf(full.target, sizeof(full.target), "net_ring_%s", dev->port);
	return rcd_engine_dev_add_place(
		dev->engine, &full, &dev->index, &dev->serial, error, error_len);
}

struct rcd_inline *
rcd_inline_create(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len)
{
	struct rcd_inline *dev = calloc(1, sizeof(*dev));

	if (dev == NULL) {
		snprintf(error, error_len, "%s: no memory", conf->name);
		return NULL;
	}
	dev->engine = engine;
	dev->lcores = rcd_engine_lcore_count(engine);
	if (inline_make(dev, conf, error, error_len) == 0)
		return dev;
	rcd_inline_destroy(dev);
	return NULL;
}

void
rcd_inline_destroy(struct rcd_inline *dev)
{
	char vdev[48];

	if (dev == NULL)
		return;
	if (dev->serial != 0)
		rcd_engine_dev_del_serial(dev->engine, dev->serial);
	if (dev->has_port) {
		rte_eth_dev_close(dev->port_id);
		snprintf(vdev, sizeof(vdev), "net_ring_%s", dev->port);
		rte_eal_hotplug_remove("vdev", vdev);
	}
	rcd_engine_take_over();
	for (uint32_t i = 0; i < dev->lcores; i++) {
		rcd_ring_free(dev->in[i]);
		rcd_ring_free(dev->out[i]);
	}
	rcd_engine_let_go(dev->engine);
	free(dev);
}

void
rcd_inline_set_link(struct rcd_inline *dev, bool up)
{
	if (up)
		rte_eth_dev_set_link_up(dev->port_id);
	else
		rte_eth_dev_set_link_down(dev->port_id);
}

int
rcd_inline_set_mtu(struct rcd_inline *dev, uint32_t mtu)
{
	return rcd_engine_dev_set_mtu_serial(dev->engine, dev->serial, mtu);
}

/* The device, as long as this lcore has it. */
static inline const struct rcd_lport *
inline_lport(const struct rcd_inline *dev, const struct rcd_lcore *lcore)
{
	const struct rcd_txq *txq = lcore->txq_of[dev->index];

	return likely(txq != NULL && txq->lport->serial == dev->serial) ? txq->lport : NULL;
}

/* Whether IP may be ours: most that is not shows so here. @param ip with 28 readable bytes */
static __rte_always_inline bool
inline_maybe_ipv4(const uint8_t *ip)
{
	if (unlikely(ip[0] != 0x45))
		return true;
	if (likely(ip[9] == RCD_IP_PROTO_UDP))
		return rcd_get_be16(ip + RCD_IPV4_LEN + 2) == RCD_UDP_PORT_ROCE;
	return ip[9] < 6; /* ICMP, IGMP; TCP is 6, and what pipelines carry else is above that */
}

static __rte_always_inline bool
inline_maybe_ipv6(const uint8_t *ip, uint32_t len)
{
	if (likely(ip[6] == RCD_IP_PROTO_UDP) && len >= RCD_IPV6_LEN + 4)
		return rcd_get_be16(ip + RCD_IPV6_LEN + 2) == RCD_UDP_PORT_ROCE;
	return ip[6] != 6;
}

static __rte_always_inline bool
inline_maybe(const struct rte_mbuf *mbuf)
{
	const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
	uint32_t len = rte_pktmbuf_data_len(mbuf);
	uint32_t at = RCD_ETH_LEN, word;
	uint16_t type;

	if (unlikely(len < RCD_ETH_LEN + RCD_VLAN_TAG_LEN + RCD_IPV4_LEN + 8))
		return true;
	/* Most are UDP in IPv4 without options, and have no tag. */
	memcpy(&word, frame + 12, sizeof(word));
	if (likely((word & RTE_BE32(0xffffff00)) == RTE_BE32(0x08004500) &&
		    frame[RCD_ETH_LEN + 9] == RCD_IP_PROTO_UDP))
		return rcd_get_be16(frame + RCD_ETH_LEN + RCD_IPV4_LEN + 2) == RCD_UDP_PORT_ROCE;
	type = rcd_get_be16(frame + 12);
	if (unlikely(type == RCD_ETHERTYPE_VLAN)) {
		type = rcd_get_be16(frame + 16);
		at += RCD_VLAN_TAG_LEN;
	}
	if (likely(type == RCD_ETHERTYPE_IPV4))
		return inline_maybe_ipv4(frame + at);
	if (type == RCD_ETHERTYPE_IPV6)
		return inline_maybe_ipv6(frame + at, len - at);
	return type == RCD_ETHERTYPE_ARP;
}

static void
inline_count_drop(const struct rcd_lcore *lcore, const struct rcd_lport *lport, uint32_t count)
{
	rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_FED, count);
}

/*
 * One that nobody else has, in as few pieces as it fits: the engine writes into what it has.
 *
 * @return NULL: no buffer
 */
static struct rte_mbuf *
inline_own(struct rcd_lcore *lcore, struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy;

	if (likely(mbuf->nb_segs == 1 && rte_mbuf_refcnt_read(mbuf) == 1 && RTE_MBUF_DIRECT(mbuf)))
		return mbuf;
	/* No packet of RoCE's is longer than a buffer. */
	copy = rte_pktmbuf_pkt_len(mbuf) + RTE_PKTMBUF_HEADROOM <=
			rte_pktmbuf_data_room_size(lcore->pool)
		? rte_pktmbuf_copy(mbuf, lcore->pool, 0, UINT32_MAX)
		: NULL;
	rte_pktmbuf_free(mbuf);
	return copy;
}

/* @return how many of the packets, which may be NULL, were put in */
static uint32_t
inline_put(struct rte_ring *ring, struct rte_mbuf **mbufs, uint32_t count)
{
	uint32_t kept = 0;
	uint32_t put;

	for (uint32_t i = 0; i < count; i++)
		if (likely(mbufs[i] != NULL))
			mbufs[kept++] = mbufs[i];
	put = rte_ring_enqueue_burst(ring, (void **)mbufs, kept, NULL);
	rte_pktmbuf_free_bulk(mbufs + put, kept - put);
	return put;
}

static void
inline_give(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	struct rte_mbuf **mbufs, uint32_t count)
{
	uint32_t put;

	for (uint32_t i = 0; i < count; i++)
		mbufs[i] = inline_own(lcore, mbufs[i]);
	put = inline_put(dev->in[lcore->index], mbufs, count);
	if (unlikely(put < count))
		inline_count_drop(lcore, lport, count - put);
}

/* The engine hears it, too. */
static __rte_noinline void
inline_tell(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rte_mbuf *mbuf)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(mbuf, lcore->pool, 0, UINT32_MAX);

	if (inline_put(dev->in[lcore->index], &copy, 1) == 0)
		inline_count_drop(lcore, lport, 1);
}

static __rte_noinline bool
inline_look(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rte_mbuf *mbuf)
{
	switch (rcd_inline_whose(lcore, lport, mbuf)) {
	case RCD_INLINE_PROGRAMS:
		return false;
	case RCD_INLINE_BOTHS:
		inline_tell(dev, lcore, lport, mbuf);
		return false;
	case RCD_INLINE_OURS:
		return true;
	}
	return false;
}

bool
rcd_inline_is_ours(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rte_mbuf *mbuf)
{
	struct rcd_thread_place place;
	const struct rcd_lport *lport;
	bool ours;

	if (likely(!inline_maybe(mbuf)))
		return false;
	place = rcd_lcore_enter(lcore);
	lport = inline_lport(dev, lcore);
	ours = lport != NULL && inline_look(dev, lcore, lport, mbuf);
	rcd_thread_leave(place);
	return ours;
}

void
rcd_inline_give(
	struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint16_t count)
{
	struct rcd_thread_place place = rcd_lcore_enter(lcore);
	const struct rcd_lport *lport = inline_lport(dev, lcore);

	if (likely(lport != NULL))
		inline_give(dev, lcore, lport, mbufs, count);
	else
		rte_pktmbuf_free_bulk(mbufs, count);
	rcd_thread_leave(place);
}

/*
 * Part a burst in two.
 *
 * @param left  where the others go, perhaps to where they came from
 * @return how many are left
 */
static __rte_always_inline uint32_t
inline_split(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	struct rte_mbuf *const *mbufs, uint32_t count, struct rte_mbuf **left,
	struct rte_mbuf **ours)
{
	uint32_t left_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mbufs[i];

		if (i + PREFETCH < count)
			rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + PREFETCH], void *));
		if (likely(!inline_maybe(mbuf)) || !inline_look(dev, lcore, lport, mbuf))
			left[left_count++] = mbuf;
		else
			*ours++ = mbuf;
	}
	return left_count;
}

/* @return packets that are left */
static uint32_t
inline_rx(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	struct rte_mbuf **mbufs, uint32_t count)
{
	struct rte_mbuf *ours[GIVEN_MOST];
	uint32_t left = 0;

	for (uint32_t at = 0; at < count; at += GIVEN_MOST) {
		uint32_t part = RTE_MIN(count - at, (uint32_t)GIVEN_MOST);
		uint32_t kept =
			inline_split(dev, lcore, lport, mbufs + at, part, mbufs + left, ours);

		if (kept < part)
			inline_give(dev, lcore, lport, ours, part - kept);
		left += kept;
	}
	return left;
}

uint16_t
rcd_inline_rx(
	struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint16_t count)
{
	struct rcd_thread_place place = rcd_lcore_enter(lcore);
	const struct rcd_lport *lport = inline_lport(dev, lcore);
	uint32_t left = likely(lport != NULL) ? inline_rx(dev, lcore, lport, mbufs, count) : count;

	rcd_thread_leave(place);
	return (uint16_t)left;
}

uint16_t
rcd_inline_split(struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs,
	uint16_t count, struct rte_mbuf **ours)
{
	struct rcd_thread_place place = rcd_lcore_enter(lcore);
	const struct rcd_lport *lport = inline_lport(dev, lcore);
	uint32_t left = count;

	if (likely(lport != NULL))
		left = inline_split(dev, lcore, lport, mbufs, count, mbufs, ours);
	rcd_thread_leave(place);
	return (uint16_t)left;
}

uint16_t
rcd_inline_tx(
	struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint16_t max)
{
	return (uint16_t)rte_ring_dequeue_burst(dev->out[lcore->index], (void **)mbufs, max, NULL);
}
