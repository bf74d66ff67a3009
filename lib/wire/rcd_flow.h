/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Keys of Ethernet frames, and what flows make of them: at most one tag, IPv4 with any options or
 * IPv6 without extension headers, TCP or UDP behind that. Nothing here keeps state; any thread.
 */
#ifndef RCD_FLOW_H
#define RCD_FLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "rcd_flow_key.h"

/** Where the parts of a frame begin. */
struct rcd_flow_layout {
	uint16_t l3; /**< the IP header; 0: there is none */
	uint16_t l4; /**< that of TCP or UDP; 0: none, or not whole, or of a later fragment */
};

/**
 * Make the key of a frame. Every length is checked before a byte behind it is read; what is cut off
 * or malformed is 0, as what is not there.
 *
 * @param key     set
 * @param layout  set
 */
void
rcd_flow_key_of(
	const uint8_t *frame, size_t len, struct rcd_flow_key *key, struct rcd_flow_layout *layout);

/** Whether a key is that of a flow: where the mask has bits, the value is that. */
bool
rcd_flow_key_matches(const struct rcd_flow_key *key, const struct rcd_flow_key *value,
	const struct rcd_flow_key *mask);

/** Whether a frame is RoCE's, well-formed or not: no flow gets it. */
bool
rcd_flow_key_is_roce(const struct rcd_flow_key *key);

#endif /* RCD_FLOW_H */
