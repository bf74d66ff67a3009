/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames of simulated nodes: real bytes, IPv4, able to carry ECN marks.
 */
#ifndef FRAME_H
#define FRAME_H

#include "rcd_qp.h"

/** Most bytes of a frame. */
#define FRAME_MAX (RCD_PKT_HDR_MAX_LEN + RCD_PATH_MTU_MAX_BYTES + RCD_PKT_TAIL_MAX_LEN)

/** Preamble, check sequence and gap: bytes that a frame takes on the wire beside its own. */
#define FRAME_WIRE_BYTES 24

/** GID of a node. @param number  0..65534 */
struct rcd_gid
frame_gid(uint32_t number);

/** Number of the node that a frame of frame_build() is for. */
uint32_t
frame_dest(const uint8_t *frame);

/** Build a frame, sealed. @param frame  FRAME_MAX bytes @return its length, bytes */
uint32_t
frame_build(uint8_t *frame, const struct rcd_tx_pkt *pkt);

/** Whether its sender takes marks (RFC 3168, section 5: ECT(0), ECT(1) or CE). */
bool
frame_can_mark(const uint8_t *frame);

/** Mark it as a router does that is congested: CE, and the header checksum that goes with it. */
void
frame_mark(uint8_t *frame);

#endif /* FRAME_H */
