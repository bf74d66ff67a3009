/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device as lcores know it: its port, whose queues they poll, and its addresses, in a view that
 * is replaced as a whole. How the device came to be, and what else belongs to it, is the control
 * thread's business, and no lcore sees it.
 *
 * Threads: the control thread.
 */
#ifndef RCD_LPORT_H
#define RCD_LPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rcd_counter.h"
#include "rcd_eth.h"
#include "rcd_gid_table.h"
#include "rcd_lcores.h"
#include "rcd_rx_wait.h"

#define RCD_DEVS_MAX 32

struct rcd_exception;
struct rcd_raw_flows;
struct rcd_raw_table;
struct rcd_txq;

/** A device of this engine that packets get to without a port. */
struct rcd_lport_local {
	uint8_t mac[RCD_MAC_LEN];
	uint16_t index; /**< of the device */
};

/** What may change of a device. Never written once it is shown. */
struct rcd_lport_view {
	uint8_t mac[RCD_MAC_LEN];
	uint16_t local_count;
	struct rcd_lport_local locals[RCD_DEVS_MAX]; /**< each MAC once, its own among them */
	struct rcd_gid_table gids;
};

/**
 * Constant from rcd_lport_show() to rcd_lport_hide(), but for the view, the flows, frame_max
 * and what is counted; and for its queues, rx_waits and csum while it is paused.
 */
struct rcd_lport {
	uint32_t index;  /**< of no other device at this time, below RCD_DEVS_MAX */
	uint32_t serial; /**< of no other device in the engine's life; not 0 */
	/** Network namespace of its addresses (rcd_away.h); 0: the engine's, or none. */
	uint64_t netns;
	uint16_t port_id; /**< of DPDK */
	uint16_t queues;  /**< lcores with an index below this receive */
	/** Of what is no RoCE, behind those; the first lcore receives from it too. 0: none */
	uint16_t exception_queue;
	bool answers;  /**< the engine owns the addresses: it answers ARP, ND and echo */
	bool wire;     /**< an end of an embedded wire */
	bool impaired; /**< its port keeps packets for later, whoever sends */
	/** Flag of mbufs whose IPv4 identification is not known; 0: there is none. */
	uint64_t any_id;
	/**
	 * Its port works out checksums of TCP and UDP. The control thread stores it while the
	 * port is paused; lcores and the carrier load it, relaxed: what the carrier asked for is
	 * looked at again when an lcore takes it, and when one goes on with the port.
	 */
	bool csum;
	/** Longest frame, bytes. The control thread stores it, lcores load it, relaxed. */
	uint16_t frame_max;
	/** Stored by the control thread, loaded by any: rcd_lport_view(). */
	const struct rcd_lport_view *view;
	/** Likewise: rcd_raw.h. NULL: there are none. */
	const struct rcd_raw_table *flows;
	/** Likewise: the same table, where sniffers of it get copies now; else NULL. */
	const struct rcd_raw_table *sniffed;
	struct rcd_raw_flows *all_flows; /**< the control thread's: whose that is; NULL: none yet */
	struct rcd_lcores *lcores;
	/** A set for each lcore, one for the control thread, one for who carries to the kernel. */
	struct rcd_counters *counters;
	struct rcd_rx_wait rx_waits[RCD_LCORES_MAX + 1]; /**< by queue */
	struct rcd_exception *exception; /**< NULL: the kernel has no part in the port */
	struct rcd_txq *txqs;            /**< one for each lcore */
};

/**
 * What it is now: for an lcore until its poll ends, for the control thread until it changes it.
 * Any thread.
 */
static inline const struct rcd_lport_view *
rcd_lport_view(const struct rcd_lport *lport)
{
	return __atomic_load_n(&lport->view, __ATOMIC_ACQUIRE);
}

/**
 * Whether an address is the device's. Any thread.
 * @return its place in the table of the view; -1: it is not
 */
static inline int
rcd_lport_gid_find(const struct rcd_lport *lport, const struct rcd_gid *gid)
{
	return rcd_gid_table_find(&rcd_lport_view(lport)->gids, gid);
}

/**
 * Which device has a MAC that packets get to without a port. Any thread.
 * @return its index; -1: none has
 */
static inline int
rcd_lport_view_local(const struct rcd_lport_view *view, const uint8_t *mac)
{
	for (uint32_t i = 0; i < view->local_count; i++)
		if (memcmp(view->locals[i].mac, mac, RCD_MAC_LEN) == 0)
			return view->locals[i].index;
	return -1;
}

/** Queues that are received from, by lcores of that index; and that of the rest. Any thread. */
static inline uint16_t
rcd_lport_rx_queues(const struct rcd_lport *lport)
{
	return (uint16_t)(lport->queues + (lport->exception_queue != 0));
}

/** Make what lcores need, for all of them. @return 0 or -ENOMEM: it is for rcd_lport_fini() */
int
rcd_lport_init(struct rcd_lport *lport, struct rcd_lcores *lcores);

/** Free it, hidden, and its view. One of zeroes is left alone. */
void
rcd_lport_fini(struct rcd_lport *lport);

/** Let all lcores poll it, with its first view. */
void
rcd_lport_show(struct rcd_lport *lport);

/**
 * Have no lcore touch the port, while it is stopped to be changed: what is to be sent waits, queue
 * pairs and their clocks go on, and what waits for the kernel stays where it is. Shown, not paused.
 */
void
rcd_lport_pause(struct rcd_lport *lport);

/** And go on; its queues, and what tells of packets in them, may be others. */
void
rcd_lport_resume(struct rcd_lport *lport);

/** Have no lcore know it any more: none has a packet of it when this returns. Paused or not. */
void
rcd_lport_hide(struct rcd_lport *lport);

/**
 * Another view from now on.
 *
 * @param view  malloc()ed; its own from now on
 * @return the one before, to be free()d behind rcd_lcores_synchronize(); NULL: there was none
 */
const struct rcd_lport_view *
rcd_lport_set_view(struct rcd_lport *lport, const struct rcd_lport_view *view);

/** A counter, of all that count. Any thread. */
uint64_t
rcd_lport_sum(const struct rcd_lport *lport, enum rcd_counter counter);

/** The control thread's own counters of it. */
struct rcd_counters *
rcd_lport_control_counters(const struct rcd_lport *lport);

/** Those of who carries between the port and the kernel. Any thread; only that one counts. */
struct rcd_counters *
rcd_lport_carrier_counters(const struct rcd_lport *lport);

#endif /* RCD_LPORT_H */
