/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device that a program feeds: the program owns the ports, receives and sends, and gives the
 * engine what is RoCE out of what it received. For clients such a device is as any other.
 *
 * The engine answers for the addresses of the device: what is addressed to them and is RoCE, ARP,
 * neighbour discovery or ICMP is its, all else stays the program's. A program has its
 * own stack on other addresses of the same MAC, or on the same wire.
 *
 * A loop of one lcore, which rcd_engine_launch() runs, or the program's only thread:
 *
 *     count = rte_eth_rx_burst(port, queue, mbufs, 32);
 *     count = rcd_inline_rx(dev, lcore, mbufs, count);      what is left is the program's
 *     ...
 *     rcd_lcore_poll(lcore, rcd_clock_ns(), 32);
 *     count = rcd_inline_tx(dev, lcore, mbufs, 32);
 *     rte_eth_tx_burst(port, queue, mbufs, count);          what is not taken, the program frees
 *
 * Between lcores there is nothing to agree on: each feeds what it receives, and a packet for a
 * queue pair of another is handed over within the engine. Where a NIC spreads packets by RSS, all
 * that is fed for one flow should come to one lcore.
 *
 * Buffers: those that are given may be of any pool, lie at any headroom, and be of several
 * segments; they belong to the engine from then on and are freed in rcd_lcore_poll(). What is
 * shared, a clone, or in external memory is copied, and so is what is in segments. Their
 * `hash` is overwritten. A tag that a port took off (RTE_MBUF_F_RX_VLAN_STRIPPED) is looked at;
 * what it says of checksums is not believed, and worked out. Those that come from rcd_inline_tx()
 * are of the engine's pools, in one segment, whole, with RTE_PKTMBUF_HEADROOM before them at least:
 * they ask for no offload. They belong to the program then, which gives them back, or stops the
 * port that has them, before rcd_engine_destroy(): the memory of a pool that lacks some is lost,
 * which is logged. As long as the program takes none, sending waits (tx_waits).
 *
 * A port that feeds has to hear groups (rte_eth_allmulticast_enable()): neighbour discovery comes
 * by them, and what clients join.
 *
 * Threads: rcd_inline_create() and rcd_inline_destroy() as rcd_engine_dev_add(): any, but where the
 * program polls the lcores itself, that one; all else that of the lcore that is named. On an lcore
 * nothing blocks, allocates memory but from pools of buffers, or logs.
 */
#ifndef RCD_INLINE_H
#define RCD_INLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_api.h"

RCD_API_BEGIN

struct rcd_dev_conf;
struct rcd_engine;
struct rcd_inline;
struct rcd_lcore;
struct rte_mbuf;

/** Packets that wait for rcd_lcore_poll() on an lcore, and as many for rcd_inline_tx(), at most. */
#define RCD_INLINE_RING 1024

/**
 * Add a device that is fed.
 *
 * @param conf   mac is the MAC that packets to it have, usually that of the program's port; the
 *               rest as of any device, but type and devargs, which are set here, and impair, which
 *               is not heeded; mtu, that of the program's port, changes by rcd_inline_set_mtu()
 * @param error  set to a sentence when NULL is returned
 * @return NULL: as rcd_engine_dev_add() fails, or no memory
 */
struct rcd_inline *
rcd_inline_create(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len);

/**
 * Remove the device, if nobody has (rcd_engine_dev_del(), `rocade link del`), and free what waits
 * in it. No lcore feeds it any more. Before rcd_engine_destroy(). NULL is allowed.
 */
void
rcd_inline_destroy(struct rcd_inline *dev);

/**
 * Tell whether packets can go: the link of the program's port. Clients see it within a tenth of a
 * second. It is up at first. Any thread, one at a time.
 */
void
rcd_inline_set_link(struct rcd_inline *dev, bool up);

/**
 * Tell that the program's port has another MTU: that of IP. Queue pairs that are connected keep
 * their path MTU, as with a NIC. Any thread, as rcd_inline_create().
 *
 * @return 0; -EINVAL: not 576 to 65535; -ENODEV: the device has been removed
 */
int
rcd_inline_set_mtu(struct rcd_inline *dev, uint32_t mtu);

/**
 * Take what is the engine's out of a burst. What has no room on the lcore, has to be copied and
 * finds no buffer, or is in several segments and longer than a buffer, is freed, and counted as
 * rx_drop_fed.
 *
 * @param mbufs  what is left stands first afterwards, in its order
 * @return how many are left
 */
uint16_t
rcd_inline_rx(
	struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint16_t count);

/**
 * Take what is to be sent. Usually called behind rcd_lcore_poll(), of which it is the result.
 *
 * @param max  places in mbufs
 * @return how many were taken
 */
uint16_t
rcd_inline_tx(
	struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint16_t max);

/**
 * Whether a packet is the engine's, as rcd_inline_rx() asks of each: for programs that sort packets
 * themselves. Of what everybody is to hear, as of groups, the engine takes a copy here: asked once
 * for each packet, and not of what rcd_inline_rx() is given.
 */
bool
rcd_inline_is_ours(struct rcd_inline *dev, struct rcd_lcore *lcore, const struct rte_mbuf *mbuf);

/**
 * As of rcd_inline_is_ours() for a burst: part it in two.
 *
 * @param mbufs  what is left stands first afterwards, in its order
 * @param ours   the others, likewise: `count` places
 * @return how many are left
 */
uint16_t
rcd_inline_split(struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs,
	uint16_t count, struct rte_mbuf **ours);

/**
 * Give packets that were found to be the engine's (rcd_inline_is_ours(), rcd_inline_split()): all
 * are taken, and what has no room is freed and counted. If the device has gone since, all is freed.
 */
void
rcd_inline_give(
	struct rcd_inline *dev, struct rcd_lcore *lcore, struct rte_mbuf **mbufs, uint16_t count);

RCD_API_END

#endif /* RCD_INLINE_H */
