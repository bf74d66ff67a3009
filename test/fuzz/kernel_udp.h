/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A kernel that gives net_udp what the input says: the program is linked so that recv() and
 * recvmsg() come here. What is to become of each datagram is known from how it was made.
 */
#ifndef KERNEL_UDP_H
#define KERNEL_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "udp_frame.h"

/** Input, read front to back; zeros when it is used up. */
struct kernel_input {
	const uint8_t *data;
	size_t len;
};

/** Of descriptors: that of IPv4 is the first, that of IPv6 the next. None of this process's. */
#define KERNEL_FDS 1000000

/** Calls that receive between two looks of the driver's user. */
#define KERNEL_CALLS 64

/** What came by one call, and what is to become of it. */
struct kernel_arrival {
	bool accepted;
	struct udp_flow flow; /**< as the control messages have it */
	uint16_t sport;       /**< in network byte order */
	uint32_t serial;      /**< what its bytes follow from */
	uint32_t len, size;   /**< of all, and of each datagram */
	uint32_t count;       /**< of datagrams, at least 1 */
};

/** Since the last look. */
struct kernel {
	struct kernel_input *in;
	uint16_t port;     /**< of the sockets, in host byte order */
	uint32_t room;     /**< of a buffer, with headers */
	uint32_t serial;   /**< of arrivals */
	uint32_t arrivals; /**< since the last look */
	struct kernel_arrival arrival[KERNEL_CALLS];
	void (*before)(void); /**< called before each that is received */
};

extern struct kernel kernel;

/** The next bytes of an input as a number. */
uint32_t
kernel_take(struct kernel_input *in, size_t bytes);

/** Bytes of an arrival from one on, as many as there may be. */
const uint8_t *
kernel_bytes(uint32_t serial, uint32_t at);

#endif /* KERNEL_UDP_H */
