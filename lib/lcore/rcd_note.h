/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Notes: what lcores tell the control thread, without waiting for it.
 *
 * Threads: the lcore.
 */
#ifndef RCD_NOTE_H
#define RCD_NOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_eth.h"
#include "rcd_gid.h"

struct rcd_lcore;
struct rcd_lcores;

/** What an lcore tells the control thread. */
enum rcd_note_kind {
	RCD_NOTE_EVENT,  /**< asynchronous event of a client's object */
	RCD_NOTE_NEIGH,  /**< a neighbour was seen */
	RCD_NOTE_QUERY,  /**< a router asks for multicast groups */
	RCD_NOTE_AGREED, /**< a queue pair wants memory for selective acknowledgement */
};

struct rcd_note {
	uint32_t kind; /**< enum rcd_note_kind */
	uint32_t whom; /**< serial of a connection, number of a queue pair, index of a device */
	uint64_t cookie;
	uint32_t type; /**< of rcd_ctrl_event */
	uint32_t of;
	struct rcd_gid gid;
	uint8_t mac[RCD_MAC_LEN];
	uint16_t vlan_id;
};

/** Tell the control thread something. A full ring is counted. */
void
rcd_note_send(struct rcd_lcore *lcore, struct rcd_note *note);

/**
 * The same for what a packet of the network gave rise to: so many in a time at most, and never so
 * many that there is no room for clients' events.
 *
 * @return whether it was told
 */
bool
rcd_note_send_link(struct rcd_lcore *lcore, struct rcd_note *note);

/** The peer of a queue pair has agreed. @param hqp  struct rcd_hqp: as struct rcd_qp_ops says */
bool
rcd_note_agreed(void *hqp);

/** The next that one of them has sent. Control thread. @return false: there is none */
bool
rcd_note_take(const struct rcd_lcores *lcores, struct rcd_note *note);

#endif /* RCD_NOTE_H */
