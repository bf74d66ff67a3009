/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The send path.
 *
 * Threads: the lcore.
 */
#ifndef RCD_TX_H
#define RCD_TX_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_pkt.h"
#include "rcd_qp.h"

struct rcd_lport;
struct rcd_hqp;
struct rcd_lcore;
struct rcd_staged;
struct rte_mbuf;

/** Let queue pairs send. @return packets */
uint32_t
rcd_tx_poll(struct rcd_lcore *lcore, uint32_t budget);

/**
 * Let those that are urgent tell of a packet that is missing, if they still have to, and give that
 * to the ports. None is urgent any more.
 *
 * @return packets, RCD_TURN_URGENT at most
 */
uint32_t
rcd_tx_urgent(struct rcd_lcore *lcore);

/** Give what waits to the ports. */
void
rcd_tx_flush(struct rcd_lcore *lcore);

/** Send a packet whose payload has come. @return false: not now */
bool
rcd_tx_staged(struct rcd_lcore *lcore, struct rcd_hqp *hqp, const struct rcd_staged *staged);

/** An empty buffer. @return NULL when there is none: try again later */
struct rte_mbuf *
rcd_tx_mbuf(struct rcd_lcore *lcore);

/** How many frames a queue takes now. @return 0: none */
uint32_t
rcd_tx_room(const struct rcd_lcore *lcore, const struct rcd_lport *lport);

/** Queue a finished frame. Takes the buffer, and drops it when the queue is full. */
void
rcd_tx_frame(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf);

/** Queue a finished frame for a device of this engine. Takes the buffer. @return false: dropped */
bool
rcd_tx_loop(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_lport *loop,
	struct rte_mbuf *mbuf);

/**
 * Whether a packet of a group was sent by the queue pair itself, which does not want it back. Of
 * another device it may have the same number.
 *
 * @param hqp  in the group, of the lcore at hand
 */
bool
rcd_tx_came_back(const struct rcd_hqp *hqp, const struct rcd_pkt *pkt);

/**
 * The way of packets with this address vector.
 *
 * @return the device of this engine that it ends at without a port; NULL: it leaves by the port
 */
const struct rcd_lport *
rcd_tx_path(const struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rcd_av *av,
	uint32_t qpn, uint32_t dest_qpn, struct rcd_path *path);

#endif /* RCD_TX_H */
