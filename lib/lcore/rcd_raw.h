/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Raw packets: frames that are not RoCE's, for the queue pairs whose flows they match.
 *
 * What a flow leads to a queue pair is a copy: the engine, the kernel and other clients have their
 * part in each frame as if there was no flow. Flows decide between the queue pairs of one context.
 * RoCE, well-formed or not, is in no flow but those of sniffers, which a device has to be told to
 * have: they get all that its port receives and sends, until they have had their part of a poll
 * (RCD_WORK_SNIFF). What is beyond is dropped for all of them, so that RoCE goes on.
 *
 * Flows of a device are a table, which the control thread replaces as a whole, and writes to again
 * behind rcd_lcores_synchronize(). A queue pair may be on any lcore: that one gets a copy.
 *
 * Threads: the lcore, unless it says otherwise.
 */
#ifndef RCD_RAW_H
#define RCD_RAW_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_flow_key.h"
#include "rcd_limits.h"
#include "rcd_lport.h"

struct rcd_hqp;
struct rcd_lcore;
struct rte_mbuf;

/** What a flow wanted. Lcores add to it, relaxed; the control thread reads it. */
struct rcd_raw_count {
	uint64_t frames;
	uint64_t bytes;
};

/** A flow. */
struct rcd_raw_flow {
	struct rcd_flow_key value;
	struct rcd_flow_key mask;
	uint32_t qpn;        /**< that it leads to */
	uint16_t priority;   /**< the lowest comes first */
	uint8_t kind;        /**< enum rcd_flow_kind */
	uint8_t group;       /**< of its context's flows, below RCD_FLOWS_MAX */
	uint8_t count;       /**< which is its, of the device's */
	bool drop;           /**< the context gets no frame of it */
	uint32_t handle;     /**< the control thread's: of no other of its context */
	struct rcd_hqp *hqp; /**< likewise: of that number */
};

/** Those of a device, in the order in which they are tried. */
struct rcd_raw_table {
	uint32_t count;
	uint32_t sniffers;            /**< of these: the last ones */
	struct rcd_raw_count *counts; /**< RCD_FLOWS_MAX, the same of both tables */
	struct rcd_raw_flow flows[RCD_FLOWS_MAX];
};

/** All of a device: lcores see one of the tables, or none. */
struct rcd_raw_flows {
	struct rcd_raw_table tables[2];
	struct rcd_raw_count counts[RCD_FLOWS_MAX];
};

/**
 * Have lcores see a table, and no other one when this returns. Control thread.
 *
 * @param table    of the device's all_flows; NULL: it has no flows
 * @param sniffed  whether sniffers get copies
 */
void
rcd_raw_show(struct rcd_lport *lport, const struct rcd_raw_table *table, bool sniffed);

/** Whether a device has sniffers that get copies: for once in a burst. Any thread. */
static inline bool
rcd_raw_is_sniffed(const struct rcd_lport *lport)
{
	return __atomic_load_n(&lport->sniffed, __ATOMIC_RELAXED) != NULL;
}

/**
 * Frames that a port gave, or that it is about to be given, for sniffers. They stay the caller's;
 * those that came are in one piece then, where a buffer holds them.
 */
void
rcd_raw_sniff(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf **mbufs,
	uint32_t count, bool sent);

/** Copies that rcd_raw_sniff() of another lcore handed over. They stay the caller's. */
void
rcd_raw_sniff_handed(struct rcd_lcore *lcore, const struct rcd_lport *lport,
	struct rte_mbuf **mbufs, uint32_t count);

/**
 * A frame that came to a device, for its flows. It stays the caller's.
 *
 * @param handed  a copy of rcd_raw_rx() or rcd_raw_tx() of another lcore
 */
void
rcd_raw_rx(struct rcd_lcore *lcore, const struct rcd_lport *lport, const struct rte_mbuf *mbuf,
	bool handed);

/**
 * A frame that a queue pair sends, one segment: puts its checksums in, if it is to, and gives it to
 * flows of the same device which ask for it by more than "all".
 */
void
rcd_raw_tx(
	struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf, bool csum);

#endif /* RCD_RAW_H */
