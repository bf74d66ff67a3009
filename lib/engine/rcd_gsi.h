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

struct rcd_cma;
struct rcd_gsi;
struct rcd_lcore;
struct rcd_lcores;
struct rcd_lport;
struct rcd_pkt;
struct rcd_ports;
struct rcd_waiter;

/**
 * Make what lies between them, before there are lcores.
 *
 * @param psn  random: packets from QP1 count from there
 * @return NULL: there is no memory
 */
struct rcd_gsi *
rcd_gsi_create(struct rcd_ports *ports, struct rcd_lcores *lcores, uint32_t psn);

/** Free it, when no lcore runs any more. NULL is allowed. */
void
rcd_gsi_destroy(struct rcd_gsi *gsi);

/**
 * A packet to QP1: to the control thread, or counted. On the lcore; copies what it keeps.
 */
void
rcd_gsi_rx(const struct rcd_gsi *gsi, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_pkt *pkt, uint16_t vlan_id);

/**
 * Give the service what lcores received, so much that others have their turn.
 *
 * @return units of work done
 */
uint32_t
rcd_gsi_take(struct rcd_gsi *gsi, struct rcd_cma *cma);

/**
 * Send a MAD of RCD_MAD_LEN bytes, at rcd_gsi_flush() at the latest: the end of one client may be
 * thousands of them, and an lcore is waited for once for many.
 *
 * @param waiter  is called when it pays to try again, if -EAGAIN is returned; NULL: nobody waits
 * @return 0, and it may be lost; -EAGAIN: the neighbour is being asked for; -ENODEV, -ENETUNREACH,
 *         -ETIMEDOUT, -ENOMEM: it can't be sent
 */
int
rcd_gsi_send(struct rcd_gsi *gsi, const struct rcd_cm_way *way, const uint8_t *mad,
	struct rcd_waiter *waiter);

/** Send what is to be sent. Before a device is hidden, and before the control thread rests. */
void
rcd_gsi_flush(struct rcd_gsi *gsi);

#endif /* RCD_GSI_H */
