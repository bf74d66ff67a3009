/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * QP1, the general services interface (IBTA Vol. 1, 16.1): the MADs of connection management
 * between lcores and the CM service.
 *
 * Threads: the control thread.
 */
#ifndef RCD_GSI_H
#define RCD_GSI_H

#include <stdint.h>

#include "rcd_cm_agent.h"

struct rcd_engine;
struct rcd_lcore;
struct rcd_lport;
struct rcd_pkt;
struct rcd_waiter;

/** Make what lies between them, before there are lcores. @return 0 or -ENOMEM */
int
rcd_gsi_create(struct rcd_engine *engine);

/** Free it, when no lcore runs any more. One that was not made is left alone. */
void
rcd_gsi_destroy(struct rcd_engine *engine);

/**
 * A packet to QP1: to the control thread, or counted. On the lcore; copies what it keeps.
 *
 * @param arg  the engine
 */
void
rcd_gsi_rx(void *arg, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_pkt *pkt, uint16_t vlan_id);

/** Give the service what lcores received, so much that others have their turn. */
void
rcd_gsi_take(struct rcd_engine *engine);

/**
 * Send a MAD of RCD_MAD_LEN bytes.
 *
 * @param waiter  is called when it pays to try again, if -EAGAIN is returned; NULL: nobody waits
 * @return 0, and it may be lost; -EAGAIN: the neighbour is being asked for; -ENODEV, -ENETUNREACH,
 *         -ETIMEDOUT, -ENOMEM: it can't be sent
 */
int
rcd_gsi_send(struct rcd_engine *engine, const struct rcd_cm_way *way, const uint8_t *mad,
	struct rcd_waiter *waiter);

#endif /* RCD_GSI_H */
