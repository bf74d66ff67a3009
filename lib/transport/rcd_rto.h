/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requester of RC: how long it waits for an answer. Inside of a queue pair, on its lcore.
 */
#ifndef RCD_RTO_H
#define RCD_RTO_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_qp;

/**
 * Without an answer for this long, or for two round trips and four times their variation when that
 * is longer, a packet is sent again to ask for one: the end of a burst may be lost, and nobody else
 * would say so before the timeout. Each further time it takes twice as long (after RFC 8985, tail
 * loss probes; RFC 9002, 6.2.1).
 */
#define RCD_PROBE_NS 70000

/**
 * The same while no round trip is known. Of an incast most senders lose all that they begin with:
 * in a millisecond who lost nothing sends 12 MB by 100 Gb/s before they ask. 300 us are three times
 * what a full buffer of 1 MiB holds back there, and a round trip. Who sends without limits floods
 * the queue again if he does not let it run empty first.
 */
#define RCD_PROBE_FIRST_NS        1000000
#define RCD_PROBE_FIRST_WINDOW_NS 300000 /**< with congestion control, and the first one only */

/** Probes before the timeout: what it doubles to stays a number. */
#define RCD_PROBES_MAX 24

/** Answers in a row that came with a probe: then the way is longer than it was. */
#define RCD_RTT_DOUBTS 4

/** A longer round trip is none that a probe could wait for. */
#define RCD_RTT_MAX_NS 500000000

/** Begin to wait for an answer: set the deadlines of probe and timeout. */
void
rcd_rto_arm(struct rcd_qp *qp, uint64_t now_ns);

/** A round trip was measured, of a packet that was sent once. */
void
rcd_rto_sample(struct rcd_qp *qp, uint64_t rtt_ns);

/** The smoothed round trip, ns; a guess while none was measured. */
uint64_t
rcd_rto_round(const struct rcd_qp *qp);

/** How long to wait for an answer before a probe, ns; to be doubled for each one before. */
uint64_t
rcd_rto_probe_after(const struct rcd_qp *qp);

/** What was timed is answered. @return the round trip, ns; 0: it says nothing of it */
uint64_t
rcd_rto_measure(struct rcd_qp *qp, uint64_t now_ns);

/** The retransmission timeout came, or the time for a probe. @return whether to send again */
bool
rcd_rto_expire(struct rcd_qp *qp, uint64_t now_ns);

#endif /* RCD_RTO_H */
