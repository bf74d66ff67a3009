/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Two nodes in the simulator (situation.h), of which a has an algorithm of congestion control that
 * writes down what it is told, with a window and a pace that the test sets.
 */
#ifndef TOLD_H
#define TOLD_H

#include "situation.h"

/** Bytes of a whole packet on the wire. */
#define PACKET (1024 + 82)

/** What it says its rate is, if the test has no other. */
#define TOLD_KBPS 77

/** What the algorithm was told, and what it answers. */
struct told {
	uint32_t inits, acks, losses, heavy, cnps, undone;
	uint64_t undone_to; /**< how many losses it had been told of in the state that came back */
	uint32_t packet_bytes;
	uint64_t init_ns;
	uint64_t sent, acked; /**< bytes */
	uint32_t rtts;
	uint32_t acked_away_ns; /**< with the last acknowledge */
	uint32_t away_ns;       /**< of the thread */
	uint32_t window;
	uint32_t rate_kbps; /**< 0: it may not be asked when the next may leave */
	uint64_t gap_ns;    /**< between two packets */
};

extern struct told told;

/** Begin with nothing told. */
void
begin_told(enum rcd_qp_type type, uint32_t window, uint64_t pace_ns);

/** The same of RC, with a window of responses to READs as well, as it does not pace those. */
void
begin_told_reads(uint32_t window, uint8_t max_rd_atomic);

/** An acknowledge for a, of all up to this PSN. */
struct rcd_pkt
ack_by_hand(struct rcd_psn last);

/** A CNP for a. @return what became of it: RCD_RX_CNP */
enum rcd_rx_verdict
congest(uint64_t now_ns);

/** The peer of a has all before the packet of this number, and misses that. */
void
miss(struct rcd_psn first, uint32_t number, uint64_t now_ns);

/** The peer of a tells: all before the one expected, what came last, and the bits behind. */
void
tell_sack(struct rcd_psn expected, struct rcd_psn seen, uint32_t bits, uint64_t now_ns);

/** All that a has to send. @return the first */
struct rcd_psn
send_all(uint64_t now_ns);

#endif /* TOLD_H */
