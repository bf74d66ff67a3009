/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The gate of a queue pair whose sending is limited: by congestion control, or to a rate. Requests,
 * what is sent again and responses to READs pass it, each charged with its bytes on the wire; what
 * has no data of its own and answers a peer does not. A queue pair that nothing limits costs one
 * branch (struct rcd_qp_hot, limited). Inside of a queue pair, on its lcore.
 *
 * One with a window that has room costs little more. rcd_gate_open() says how many packets may pass
 * unasked, whatever they hold (hot.pass); rcd_gate_charge() takes each off and adds its bytes to
 * hot.passed, and the gate counts those before it next looks at what is under way. All of them are
 * new, in order, and of no READ: who goes back, or begins a READ, sets hot.pass to 0 (rcd_req.c).
 * The gate does so itself when the window shrinks, something is lost or the rate changes.
 *
 * In a window a READ counts with what its responses bring. A long one is asked for in parts, each a
 * request of its own, with a RETH, a PSN and a responder resource, as the window has room for them.
 * Where parts end stays as it was when they were first asked for: a responder finds what it is
 * asked for again by the request that it had.
 *
 * What a pace holds back waits for a timer, which may be late by a tick and more: of that
 * RCD_CC_CREDIT_NS is made up for.
 */
#ifndef RCD_GATE_H
#define RCD_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_cc.h"
#include "rcd_gate_part.h"
#include "rcd_qp.h"

struct rcd_tx_pkt;

/** Parts of READs under way, those that end in the middle of one. */
#define RCD_GATE_PARTS 16

/** Ethernet, IPv4, UDP, BTH, ICRC, and what a frame takes beside that. */
#define RCD_GATE_PACKET_BYTES 82

/** What a frame takes beside itself: FCS, preamble and gap. */
#define RCD_GATE_FRAME_BYTES 24

/** State of the gate: what each packet looks at first. */
struct rcd_gate {
	uint64_t now_ns;    /**< of the call under way */
	uint64_t next_ns;   /**< from then on the next may leave, as the algorithm says, ... */
	uint64_t rate_ns;   /**< ...and as the program's rate does */
	uint64_t held_ns;   /**< something waits until then, when hot.held */
	uint64_t since_ns;  /**< since when something is held back; 0: nothing is */
	uint32_t flight;    /**< bytes of SENDs, WRITEs and responses not acknowledged */
	uint32_t used;      /**< the most of late of the same, when an acknowledge came */
	uint32_t rate_kbps; /**< the program's; 0: none */
	uint32_t rate_rest; /**< of a nanosecond of rate_ns, in parts of rate_kbps */
	bool begun;
	bool undo;      /**< what the last loss took may be given back */
	bool losing;    /**< what was under way at the last loss is not all acknowledged */
	bool heavy;     /**< and the algorithm was told that it is heavy */
	bool asks;      /**< one passes a closed window, to ask for an acknowledge */
	bool by_window; /**< what is held back is by the window, else by a pace */
	struct rcd_qp_limits seen; /**< written by its lcore, loaded by any: each number whole */
	uint64_t read_ns;          /**< when answers last may have waited for others at the peer */
	struct rcd_cc cc;
	uint64_t credit_ns; /**< of the program's rate: so much lost time a burst makes up for */
	uint64_t repair_ns; /**< from then on the next may be sent again */
	uint64_t loss_ns;   /**< when the algorithm was last told of a loss */
	uint64_t una_ns;    /**< when loss_una was first told, or told again */
	struct rcd_psn loss_end; /**< what is lost before it was under way at the last loss */
	struct rcd_psn loss_una; /**< the packet that was lost last */
	uint32_t loss_debt;      /**< losses, each of so many packets, less those that came */
	uint32_t relost;         /**< the same of what was sent again and lost again */
	uint32_t lossy; /**< packets that have to come before the path is taken to lose none */
	struct rcd_cc before;                 /**< what it was when first told of the last loss */
	struct rcd_psn parts[RCD_GATE_PARTS]; /**< one past each, a ring in the order of PSNs */
	uint8_t part_first, part_count;
	struct rcd_cc_params params; /**< of the algorithm; all else goes with RESET */
};

/** Forget everything, and find out whether anything limits the queue pair. */
void
rcd_gate_reset(struct rcd_qp *qp);

/**
 * The program's rate and burst are now those of the queue pair's attributes: what was held back for
 * the old one is so no more. The smaller of its pace and the algorithm's holds.
 */
void
rcd_gate_limit(struct rcd_qp *qp);

/** Nothing is on its way or waits any more. */
void
rcd_gate_flush(struct rcd_qp *qp);

/**
 * The next packet is asked for, of a queue pair whose replies are limited.
 *
 * @return whether to look: no when responses are held back
 */
bool
rcd_gate_enter(struct rcd_qp *qp, uint64_t now_ns);

/**
 * Whether a pace holds the next request, or what is sent again, back: then until hot.held ends. Who
 * sends again without rcd_gate_open() asks this first, as rcd_gate_charge() charges at that time.
 */
bool
rcd_gate_paced(struct rcd_qp *qp, uint64_t now_ns);

/**
 * A timer is due of the requester. While a pace holds everything back no time passes for it: a
 * probe would wait, and no answer is missing that was asked for in time.
 *
 * @return whether it was set to when the next packet may leave
 */
bool
rcd_gate_defers(struct rcd_qp *qp, uint64_t now_ns);

/**
 * Whether the request that comes next may be sent, and how many may follow unasked. To be asked
 * before each while hot.pass is 0.
 */
bool
rcd_gate_open(struct rcd_qp *qp, uint64_t now_ns);

/**
 * How much of a READ the request for psn_tx asks for: the first time what the window has room for,
 * and a packet at least; then what it was. One that ends within the READ is kept track of.
 *
 * @param left  bytes of the READ from psn_tx on
 * @return 1 to @p left, whole packets if less; 0 if @p left is
 */
uint32_t
rcd_gate_part(struct rcd_qp *qp, uint32_t left);

/**
 * A packet was built: a request, passed unasked or not, or a response where replies are limited.
 *
 * @param fresh  a request for the first time
 */
void
rcd_gate_charge(struct rcd_qp *qp, const struct rcd_tx_pkt *pkt, bool fresh);

/**
 * So many PSNs before psn_una are outstanding no more. The algorithm hears of it if there is
 * something to learn (rcd_cc_ops, on_ack).
 *
 * @param rtt_ns  0: none was measured
 */
void
rcd_gate_acked(struct rcd_qp *qp, uint32_t packets, uint64_t rtt_ns, uint64_t now_ns);

/**
 * Packets are sent again that were not heard of.
 *
 * @return whether the algorithm is told of a loss, and not of more of the last one
 */
bool
rcd_gate_lost(struct rcd_qp *qp, uint64_t now_ns);

/**
 * All that was sent again for the last loss was so in vain: there was none, and its effect is
 * undone, once (RFC 3708, RFC 4015). A peer that lies so has what it had before, and no more. Not
 * after a CNP.
 */
void
rcd_gate_undo(struct rcd_qp *qp);

/** What the last loss took is not given back: of something nobody can tell whether it was lost. */
void
rcd_gate_keep_loss(struct rcd_qp *qp);

/** A CNP came. */
void
rcd_gate_cnp(struct rcd_qp *qp, uint64_t now_ns);

/** A response to a READ came marked: what was asked for met congestion. No more often than CNPs. */
void
rcd_gate_marked(struct rcd_qp *qp, uint64_t now_ns);

#endif /* RCD_GATE_H */
