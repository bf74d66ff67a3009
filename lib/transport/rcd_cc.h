/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Congestion control behind one table of functions, and the algorithms by name. When a queue pair
 * asks them is the gate's (rcd_gate.h); here nothing is sent, no clock is read and nothing is
 * allocated.
 *
 * Threads: that of the queue pair; rcd_cc_by_name() and rcd_cc_params_init() any.
 */
#ifndef RCD_CC_H
#define RCD_CC_H

#include <stdbool.h>
#include <stdint.h>

/** Bytes of state that an algorithm has per queue pair. */
#define RCD_CC_STATE_BYTES 96

/** Private state of an algorithm. */
struct rcd_cc {
	uint64_t words[RCD_CC_STATE_BYTES / 8];
};

/** A window that holds nothing back. */
#define RCD_CC_NO_WINDOW UINT32_MAX

/**
 * What was held back leaves when a timer says so, late by up to a tick of RCD_WHEEL_TICK_LOG2 or by
 * what a scheduler takes: so much time is made up for with a burst, so that a rate holds.
 */
#define RCD_CC_CREDIT_NS 32768

/** Parameters: what rcd_cc_param.def lists. */
struct rcd_cc_params {
#define RCD_CC_PARAM(algorithm, name, field, least, most, start, what) uint32_t field;
#include "rcd_cc_param.def"
};

/** What an acknowledge tells an algorithm. */
struct rcd_cc_ack {
	uint32_t bytes;  /**< acknowledged by it, on the wire */
	uint32_t flight; /**< bytes not acknowledged before it, what the peer keeps included */
	uint32_t rtt_ns; /**< a measured round trip; 0: none */
	/** With one: so long this end may have been away and packets waited for that; 0: never */
	uint32_t away_ns;
	uint64_t now_ns;
};

/**
 * A congestion control algorithm. All times are the engine's clock in nanoseconds, which is never 0
 * and never goes back; bytes are those on the wire, headers and all.
 */
struct rcd_cc_ops {
	const char *name;
	bool of_responses; /**< responses to READs have its pace as well: it hears of their way */
	bool by_acks;      /**< it grows by acknowledges alone: not for UC, which has none then */

	/**
	 * Begin, when the queue pair first has something to send; @p cc is zeroed.
	 *
	 * @param params  good during the call
	 * @param packet_bytes  of the longest packet
	 */
	void (*init)(struct rcd_cc *cc, const struct rcd_cc_params *params, uint32_t packet_bytes,
		uint64_t now_ns);

	/** A CNP came: a packet of this queue pair met congestion. */
	void (*on_cnp)(struct rcd_cc *cc, uint64_t now_ns);

	/**
	 * Requests were acknowledged, or a response came. Not said when no round trip was measured
	 * and less than half of a window is used: nothing is learnt of it.
	 */
	void (*on_ack)(struct rcd_cc *cc, const struct rcd_cc_ack *ack);

	/**
	 * Packets were lost: once for all that is under way, and not for a probe, which says
	 * nothing of a loss.
	 *
	 * @param heavy  more than a path loses or delays for reasons of its own: of this once in a
	 *     round trip
	 */
	void (*on_loss)(struct rcd_cc *cc, bool heavy, uint64_t now_ns);

	/**
	 * What it was told of as lost was late, all of it: have back what that took, and no more.
	 * Nothing when packets waited too long since.
	 *
	 * @param before  its state when it was first told; no CNP came since
	 */
	void (*undo)(struct rcd_cc *cc, const struct rcd_cc *before);

	/**
	 * So much is on its way from now on: a request, for the first time or again, or a response
	 * to a READ.
	 *
	 * Not called while rate() is 0: nothing is held back then, and nothing is kept of it.
	 *
	 * @return when the next may follow; at or before @p now_ns: at once
	 */
	uint64_t (*send_at)(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns);

	/**
	 * Bytes of SENDs and WRITEs that may be on their way. One packet may whenever none is, and
	 * the last may go beyond the window. Asked after each of the calls above but send_at().
	 *
	 * @return 1 to RCD_CC_NO_WINDOW
	 */
	uint32_t (*window)(const struct rcd_cc *cc);

	/**
	 * The rate that send_at() has: for people, and whether to ask that. Asked when the window
	 * is, and after a send_at() that holds something back; between two such calls it does not
	 * come to be.
	 *
	 * @return kb/s; 0: it has none now
	 */
	uint32_t (*rate)(const struct rcd_cc *cc);
};

/** No congestion control. */
extern const struct rcd_cc_ops rcd_cc_none;

/** A window by delay, in the manner of Swift: rcd_swift.c. */
extern const struct rcd_cc_ops rcd_cc_swift;

/** A rate by the peer's notifications, DCQCN: rcd_dcqcn.c. */
extern const struct rcd_cc_ops rcd_cc_dcqcn;

/**
 * So many bytes leave now of a flow that has a rate.
 *
 * @param pace_ns  when the next may; kept by the caller, 0 at first
 * @param kbps     thousands of bits in a second, not 0
 * @return the new one
 */
static inline uint64_t
rcd_cc_pace(uint64_t *pace_ns, uint32_t bytes, uint32_t kbps, uint64_t now_ns)
{
	uint64_t earliest = now_ns > RCD_CC_CREDIT_NS ? now_ns - RCD_CC_CREDIT_NS : 0;

	if (*pace_ns < earliest)
		*pace_ns = earliest;
	*pace_ns += bytes * UINT64_C(8000000) / kbps;
	return *pace_ns;
}

/** What holds of each parameter that is not given. */
void
rcd_cc_params_init(struct rcd_cc_params *params);

/** The algorithm of this name. @return a static table, or NULL */
const struct rcd_cc_ops *
rcd_cc_by_name(const char *name);

/**
 * An algorithm and its parameters from text: its name, and after commas what is not to be as
 * rcd_cc_param.def has it, as "swift,target=25,gain=2".
 *
 * @param params  all of them are set
 * @return NULL; else what is wrong with the text, static, and nothing was set
 */
const char *
rcd_cc_parse(const char *text, const struct rcd_cc_ops **ops, struct rcd_cc_params *params);

/**
 * The algorithm of a traffic class from text: "DSCP:NAME, ...", as "26:dcqcn,46:none"; "" has none.
 *
 * @param ops  set if the table has this class, else it stays; NULL: the text alone is looked at
 * @return NULL; else what is wrong with the text, static, and @p ops may be set
 */
const char *
rcd_cc_of_class(const char *text, uint8_t dscp, const struct rcd_cc_ops **ops);

#endif /* RCD_CC_H */
