/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Congestion control behind one table of functions. Here are the table and `none`, which never
 * waits; there is no other algorithm so far.
 */
#ifndef RCD_CC_H
#define RCD_CC_H

#include <stdint.h>

/** Bytes of state that an algorithm has per queue pair. */
#define RCD_CC_STATE_BYTES 64

/** Private state of an algorithm. */
struct rcd_cc {
	uint64_t words[RCD_CC_STATE_BYTES / 8];
};

/** A congestion control algorithm. All times are the engine's clock in nanoseconds. */
struct rcd_cc_ops {
	const char *name;

	/** Begin; @p cc is zeroed. */
	void (*init)(struct rcd_cc *cc, uint64_t now_ns);

	/** A CNP came. */
	void (*on_cnp)(struct rcd_cc *cc, uint64_t now_ns);

	/** Requests were acknowledged. @param rtt_ns a measured round trip, 0 when there is none */
	void (*on_ack)(struct rcd_cc *cc, uint32_t packets, uint64_t rtt_ns, uint64_t now_ns);

	/** Packets are sent again, after a NAK, a gap or a timeout. */
	void (*on_loss)(struct rcd_cc *cc, uint64_t now_ns);

	/**
	 * A request packet is ready.
	 *
	 * @return 0 to send it now, else the time to wait for
	 */
	uint64_t (*send_at)(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns);
};

/** No congestion control. */
extern const struct rcd_cc_ops rcd_cc_none;

#endif /* RCD_CC_H */
