/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Ports of net_udp on the loopback interface of a network namespace of the test's own, frames of
 * RoCE for them, and sockets of strangers.
 *
 * Threads: one.
 */
#ifndef UDP_RIG_H
#define UDP_RIG_H

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

#include "rcd_pkt.h"
#include "rcd_tap.h"

#define RIG_ROOM 4400 /**< bytes of a frame that a buffer takes */

/** Of the ports of this test: which UDP port each has. */
#define RIG_A 4791
#define RIG_B 4792

/** A frame that is to be sent. All zero: IPv4, 0 bytes. */
struct rig_frame {
	bool v6;
	uint8_t tclass;
	uint8_t hop_limit; /**< 0: 64 */
	uint16_t dport;    /**< 0: that of B */
	uint32_t number;   /**< what its bytes follow from */
	uint32_t size;     /**< of the payload, a multiple of 4 */
};

/** Buffers of all frames. */
extern struct rte_mempool *rig_pool;

/** 2; 1 on a machine without IPv6. */
extern int rig_families;

/** Two ports, of rig_open_two(). */
extern int rig_a, rig_b;

/** A namespace with lo up, EAL, buffers. @return NULL, or why the test can't be */
const char *
rig_begin(void);

/** The MTU of lo. */
void
rig_mtu(int mtu);

/**
 * A port that is started.
 *
 * @param args  behind "iface=lo,"
 * @param queues  of each direction
 * @return its number, or -errno of what failed
 */
int
rig_open(const char *args, uint16_t queues);

/** Stop and take away; all its buffers are back. */
void
rig_close(int port);

/** Two ports on lo, with RIG_A and RIG_B. @param args  of both, each with a comma before it */
void
rig_open_two(const char *args);

/** Let the first hear from the second: then it knows that there is a socket. */
void
rig_meet(void);

/** Close them: all buffers are back. */
void
rig_close_two(void);

/** A buffer with a frame. NULL: none is left. */
struct rte_mbuf *
rig_make(const struct rig_frame *frame);

/** Send all of them, however often it takes. @return whether they went */
bool
rig_send(int port, struct rte_mbuf **mbufs, uint16_t count);

/** Receive so many, or wait in vain. @return how many came */
uint16_t
rig_receive(int port, struct rte_mbuf **mbufs, uint16_t count);

/** Whether a received frame is this one, with a right ICRC for its header, whatever the port. */
bool
rig_is(const struct rte_mbuf *mbuf, const struct rig_frame *frame);

/** Frames of one size and flow, numbered from first on: sent by a, received by b, as they were. */
bool
rig_pass(int a, int b, struct rig_frame frame, uint16_t count);

/** An extended statistic. */
uint64_t
rig_count(int port, const char *name);

/** A socket of a stranger on 127.0.0.1. @param port  0: any */
int
rig_socket(uint16_t port);

/** Let it send to a port. @return whether it could */
bool
rig_say(int fd, uint16_t port, const void *data, size_t len);

#endif /* UDP_RIG_H */
