/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The exception path of a port (DPDK, sample applications, "Exception Path"): frames that are no
 * RoCE for us go to a netdev of the kernel's, and what the kernel sends there goes out by the port.
 * Between the lcores and who carries to the kernel are rings. A kernel that stops reading fills
 * one, one that floods fills another, and an lcore takes a few frames of that in a poll. By the
 * third an lcore gets buffers back: who carries may lose its core at any time, and who needed the
 * pool at that moment would wait for it.
 *
 * Threads: the lcore.
 */
#ifndef RCD_EXCEPTION_H
#define RCD_EXCEPTION_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_lcore;
struct rcd_lport;
struct rte_mbuf;
struct rte_ring;

/** Frames that may wait for the kernel, and for the port. */
#define RCD_EXCEPTION_TO   512
#define RCD_EXCEPTION_FROM 256
#define RCD_EXCEPTION_BACK 512

/** That of one port. */
struct rcd_exception {
	struct rte_ring *to;   /**< lcores put, the carrier takes */
	struct rte_ring *from; /**< the carrier puts, the first lcore takes */
	struct rte_ring *back; /**< likewise: buffers of frames that were carried */
	int wake_fd;           /**< an eventfd that wakes the carrier */
	bool asleep;           /**< it waits for that; atomic */
	uint64_t wake_ns;      /**< when it may be woken next; relaxed, lcores store it */
};

/**
 * Make the rings. Control thread.
 *
 * @param serial  of the device: a name of theirs
 * @return 0, -ENOMEM or -errno: it is for rcd_exception_fini()
 */
int
rcd_exception_init(struct rcd_exception *exception, uint32_t serial, int socket_id);

/** Free them and what is in them: no lcore knows the port, nobody carries. Control thread. */
void
rcd_exception_fini(struct rcd_exception *exception);

/**
 * A frame for the kernel.
 *
 * @param mbuf  one or more segments; the ring's when true is returned
 * @return false: no room, and it is counted
 */
bool
rcd_exception_put(struct rcd_lcore *lcore, const struct rcd_lport *lport, struct rte_mbuf *mbuf);

/** What the kernel sends, to the port, and a call for the carrier. @return frames */
uint32_t
rcd_exception_poll(struct rcd_lcore *lcore, const struct rcd_lport *lport);

/** Whether an lcore that would sleep has something to do. */
bool
rcd_exception_waits(const struct rcd_lcore *lcore);

/** One thread, the carrier: frames for the kernel, its own from now on. @return how many */
uint32_t
rcd_exception_take(struct rcd_exception *exception, struct rte_mbuf **mbufs, uint32_t max);

/** One thread, the carrier: their buffers, which are used up. */
void
rcd_exception_give_back(
	const struct rcd_exception *exception, struct rte_mbuf **mbufs, uint32_t count);

/** One thread, the carrier: whether there is room for a frame of the kernel's. */
bool
rcd_exception_has_room(const struct rcd_exception *exception);

/**
 * One thread, the carrier: a frame of the kernel's, when there is room. Wakes the first lcore.
 *
 * @param mbuf  one segment; where lport->csum says so it may ask for a sum of TCP or UDP, with that
 *     of the pseudo header in its place, l2_len, l3_len and the version of IP
 */
void
rcd_exception_give(const struct rcd_lport *lport, struct rte_mbuf *mbuf);

/** One thread, the carrier: before it waits for wake_fd. @return false: something is to be done */
bool
rcd_exception_may_sleep(struct rcd_exception *exception);

/** One thread, the carrier: after it. */
void
rcd_exception_awake(struct rcd_exception *exception);

#endif /* RCD_EXCEPTION_H */
