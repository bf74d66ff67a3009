/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The way of packets through the device: into lanes and out of them, to and from the wrapped port.
 */
#include "impair_path.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <string.h>

#include "impair_csum.h"
#include "impair_dev.h"
#include "impair_lane.h"
#include "impair_nic.h"

#define BURST 32

static bool
impair_path_is_cut(const struct impair_dev *dev)
{
	return __atomic_load_n(&dev->cut, __ATOMIC_RELAXED);
}

/* Give the wrapped port what is ready; what it does not take waits. */
static void
impair_path_drain(struct impair_queue *queue)
{
	struct rte_mbuf **mbufs;
	uint32_t count = impair_lane_ready(queue->lane, &mbufs);

	if (count == 0)
		return;
	impair_nic_tx_lock(queue->dev->nic);
	impair_lane_done(queue->lane,
		rte_eth_tx_burst(queue->port_id, queue->index, mbufs, (uint16_t)count));
	impair_nic_tx_unlock(queue->dev->nic);
}

uint16_t
impair_path_tx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
	struct impair_queue *queue = arg;
	struct impair_lane *lane = queue->lane;
	bool csum = __atomic_load_n(&queue->dev->csum, __ATOMIC_RELAXED);
	uint64_t now = rte_rdtsc();
	uint16_t taken = 0;

	if (__atomic_load_n(&queue->dev->down, __ATOMIC_RELAXED))
		return 0;
	count = RTE_MIN(count, __atomic_load_n(&queue->dev->burst, __ATOMIC_RELAXED));
	if (impair_path_is_cut(queue->dev)) {
		rte_pktmbuf_free_bulk(mbufs, count);
		return count;
	}
	rte_spinlock_lock(&lane->lock);
	if (impair_lane_waits(lane))
		impair_lane_release(lane, now, 0);
	impair_path_drain(queue);
	while (taken < count && impair_lane_room(lane) > 0) {
		/* As in a NIC's: before the wire damages anything. */
		if (csum)
			impair_csum_finish(mbufs[taken]);
		impair_lane_take(lane, mbufs[taken++], now);
		if (impair_lane_waits(lane))
			impair_lane_release(lane, now, 0);
	}
	impair_path_drain(queue);
	rte_spinlock_unlock(&lane->lock);
	return taken;
}

/* What its own sums take, or what the wrapped port wants of other things. */
uint16_t
impair_path_tx_prepare(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
	const struct impair_queue *queue = arg;
	uint16_t prepared;

	if (__atomic_load_n(&queue->dev->csum, __ATOMIC_RELAXED))
		return impair_csum_prepare(mbufs, count);
	impair_nic_tx_lock(queue->dev->nic);
	prepared = rte_eth_tx_prepare(queue->port_id, queue->index, mbufs, count);
	impair_nic_tx_unlock(queue->dev->nic);
	return prepared;
}

/* A sender that has nothing to send does not call: what it gave before goes in its time. */
static void
impair_path_look_after(struct impair_queue *queue, uint64_t now)
{
	struct impair_lane *lane = queue->lane;

	if (lane == NULL || (!impair_lane_waits(lane) && lane->ready_count == 0) ||
		!rte_spinlock_trylock(&lane->lock))
		return;
	impair_lane_release(lane, now, 0);
	impair_path_drain(queue);
	rte_spinlock_unlock(&lane->lock);
}

/* A burst of the wrapped port's queue, through the lane. */
static uint16_t
impair_path_take(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
	struct impair_queue *queue = arg;
	struct impair_lane *lane = queue->lane;
	struct rte_mbuf *received[BURST];
	struct rte_mbuf **ready;
	uint64_t now = rte_rdtsc();
	uint32_t got;

	rte_spinlock_lock(&lane->lock);
	if (impair_lane_room(lane) >= BURST) {
		got = rte_eth_rx_burst(queue->port_id, queue->index, received, BURST);
		for (uint32_t i = 0; i < got; i++) {
			if (!impair_filter_passes(&queue->dev->filter, received[i])) {
				rte_pktmbuf_free(received[i]);
				continue;
			}
			impair_lane_take(lane, received[i], now);
			if (impair_lane_waits(lane))
				impair_lane_release(lane, now, got - i - 1);
		}
	}
	if (impair_lane_waits(lane))
		impair_lane_release(lane, now, 0);
	got = impair_lane_ready(lane, &ready);
	if (got > count)
		got = count;
	memcpy(mbufs, ready, got * sizeof(mbufs[0]));
	impair_lane_done(lane, got);
	rte_spinlock_unlock(&lane->lock);
	return (uint16_t)got;
}

/* As the program gets them. @return how many are left */
static uint16_t
impair_path_lay_out(const struct impair_queue *queue, struct rte_mbuf **mbufs, uint16_t count)
{
	struct impair_dev *dev = queue->dev;
	uint32_t segment = __atomic_load_n(&dev->segment, __ATOMIC_RELAXED);
	bool strip = __atomic_load_n(&dev->strip, __ATOMIC_RELAXED);
	uint16_t kept = 0;

	if (impair_path_is_cut(dev)) {
		rte_pktmbuf_free_bulk(mbufs, count);
		return 0;
	}
	for (uint16_t i = 0; i < count; i++) {
		struct rte_mbuf *mbuf = mbufs[i];

		if (strip)
			impair_filter_strip(mbuf);
		if (segment != 0)
			mbuf = impair_filter_segment(mbuf, segment, queue->pool);
		if (mbuf != NULL)
			mbufs[kept++] = mbuf;
	}
	if (kept < count)
		__atomic_fetch_add(&dev->no_buffer, count - kept, __ATOMIC_RELAXED);
	return kept;
}

uint16_t
impair_path_rx_burst(void *arg, struct rte_mbuf **mbufs, uint16_t count)
{
	struct impair_queue *queue = arg;
	struct impair_dev *dev = queue->dev;

	if (__atomic_load_n(&dev->down, __ATOMIC_RELAXED))
		return 0;
	count = RTE_MIN(count, __atomic_load_n(&dev->burst, __ATOMIC_RELAXED));
	impair_path_look_after(queue->other, rte_rdtsc());
	if (dev->nic == NULL)
		count = impair_path_take(queue, mbufs, count);
	else
		count = impair_nic_rx_burst(dev->nic, (uint16_t)(queue - dev->rx), mbufs, count,
			impair_path_take, &dev->rx[0]);
	return impair_path_lay_out(queue, mbufs, count);
}
