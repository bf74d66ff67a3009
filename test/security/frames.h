/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Frames for tests of raw packets, and devices that have such.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include <stdint.h>

/** EtherType for local experiments (IEEE 802). */
#define FRAMES_TYPE 0x88b5

/** An Ethernet header to a group, and bytes behind it. @param len  of the frame, bytes */
void
frames_make(uint8_t *frame, uint32_t len, uint16_t type, uint8_t what);

/** UDP in IPv4, with sums of 0. @param len  42 or more */
void
frames_make_udp(uint8_t *frame, uint32_t len, uint16_t port);

/** Tell both devices of an embedded wire whether they have raw packets. @param value  of "raw" */
void
frames_switch(const char *socket, const char *value);

#endif /* FRAMES_H */
