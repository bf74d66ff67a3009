/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Selective acknowledgement between two queue pairs of Rocade (doc/sack.md): what the peer of a
 * requester has, which of the rest is lost, and what a responder tells of it. Inside of a queue
 * pair, on its lcore.
 *
 * What a peer says here only decides what is sent again, and when. Requests complete by what
 * stands before the expected PSN, as ever, so that a lie costs the liar its own data.
 */
#ifndef RCD_SACK_H
#define RCD_SACK_H

#include "rcd_qp.h"
#include "rcd_sack_bits.h"

/** While something is missing a SACK leaves after so many packets, if not before. */
#define RCD_SACK_EVERY 16

/** NAKs that leave beside SACKs before those alone are taken to be heard. */
#define RCD_NAKS_BESIDE 32

/** Times of sending are kept in units of 2^6 ns, so that 32 bits are four minutes. */
#define RCD_SACK_TICK_SHIFT 6

/** State of both halves of a queue pair. */
struct rcd_sack {
	/* Requester. */
	struct rcd_sack_bits held;    /**< the peer has it */
	struct rcd_sack_bits again;   /**< sent more than once */
	struct rcd_sack_bits doubt;   /**< of those, while an earlier copy was on its way */
	struct rcd_sack_bits repair;  /**< of those, because it was taken for lost */
	uint32_t sent[RCD_SACK_PSNS]; /**< when last, in ticks */
	struct rcd_psn floor;         /**< the peer has all before it, whatever is still awaited */
	struct rcd_psn blind;      /**< of those before it nothing is known: sent too far ahead */
	struct rcd_psn scan;       /**< the first that may be lost and has not been looked at */
	struct rcd_psn last_psn;   /**< sent last of all, for the first time or again */
	struct rcd_psn newest_psn; /**< of all that is known to have come the one sent last */
	uint32_t newest;           /**< when, in ticks */
	bool newest_valid;
	uint8_t patience; /**< sixteenths of a round trip by which packets may overtake others */
	uint8_t calm;     /**< round trips with losses since it was last not enough */
	uint32_t tries;   /**< packets sent again by what was told, since progress */
	uint32_t base; /**< shortest time there and back, without the peer's, ticks; 0: unknown */
	uint32_t cut;  /**< when the window was last halved, ticks */
	uint64_t loss_ns; /**< when congestion control was last told */
	struct rcd_psn
		loss_from;     /**< what was the oldest outstanding when it began to hear of it */
	uint32_t loss_repairs; /**< from there on, sent again and not known to be so in vain */

	/* Responder. */
	struct rcd_sack_bits kept; /**< what is kept behind a missing request */
	struct rcd_psn seen;       /**< the last request that came */
	uint64_t seen_ns;
	uint16_t since;                          /**< packets since the last SACK */
	uint8_t bitmap[RCD_SACK_BITMAP_MAX_LEN]; /**< of the SACK that was built last */
};

/** The first PSN to send is known. */
void
rcd_sack_start(struct rcd_qp *qp);

/** A request was sent. @param again  not for the first time */
void
rcd_sack_sent(struct rcd_qp *qp, struct rcd_psn psn, bool again, uint64_t now_ns);

/** The oldest outstanding PSN moved on, from @p from to where it is now. */
void
rcd_sack_progress(struct rcd_qp *qp, struct rcd_psn from, uint64_t now_ns);

/** All that is outstanding is sent again: nothing is known of it. */
void
rcd_sack_forget(struct rcd_qp *qp);

/** Whether a SACK with this PSN says something: it is not late, and NAKs would be heard as well. */
bool
rcd_sack_fits(const struct rcd_qp *qp, struct rcd_psn expected, uint64_t now_ns);

/** What it says of the request that came last before it left. */
void
rcd_sack_take_seen(struct rcd_qp *qp, const struct rcd_sacketh *sacketh, uint64_t now_ns);

/**
 * And of those behind the expected one, all before which is acknowledged by now.
 *
 * @return whether one of them has come, and so the expected one is missing
 */
bool
rcd_sack_take_bitmap(struct rcd_qp *qp, const struct rcd_pkt *pkt, uint64_t now_ns);

/**
 * Whether what is told of the oldest outstanding PSN is of no use but as a NAK: it was sent before
 * there was memory for its time, or far before others; or nothing is sent again.
 */
bool
rcd_sack_is_blind(const struct rcd_qp *qp);

/**
 * Whether the oldest outstanding PSN was sent again, or is about to be: a NAK says nothing new, and
 * whether it is lost once more, the next SACK does.
 */
bool
rcd_sack_knows(struct rcd_qp *qp);

/** The next packet that is lost. @return whether there is one: it is sent again now */
bool
rcd_sack_next(struct rcd_qp *qp, uint64_t now_ns, struct rcd_psn *psn);

/** A request came, in order or not. */
void
rcd_sack_note(struct rcd_qp *qp, const struct rcd_bth *bth, uint64_t now_ns);

/** It is ahead of the expected one. @param kept  it was kept @param onward  and follows the one
 * that came before it */
void
rcd_sack_ahead(struct rcd_qp *qp, const struct rcd_bth *bth, bool kept, bool onward);

/** What was kept is taken, or dropped because it came again. */
void
rcd_sack_take_kept(struct rcd_qp *qp, struct rcd_psn psn);

/** What was kept is given up. */
void
rcd_sack_drop_kept(struct rcd_qp *qp);

/** Build a SACK. */
void
rcd_sack_build(struct rcd_qp *qp, uint64_t now_ns, struct rcd_tx_pkt *pkt);

#endif /* RCD_SACK_H */
