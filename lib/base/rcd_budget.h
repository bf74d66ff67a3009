/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How much is done for clients before others have their turn: by one poll of an lcore, and by one
 * round of the control thread.
 */
#ifndef RCD_BUDGET_H
#define RCD_BUDGET_H

/*
 * What one poll does for clients at most, beside the packets that RCD_BURST_MAX bounds, so that
 * nobody waits for what another asks: doorbells, flushed requests and events each have these
 * budgets, and clients take turns. A unit is about 0.1 us when its memory is at hand and 0.35 us
 * when it is not: a client's share delays others by some 10 us at worst, all shares by 50.
 */
#define RCD_WORK_CLIENT 32  /**< units of one client */
#define RCD_WORK_AGAIN  8   /**< of one that used all of that in the poll before */
#define RCD_WORK_ALL    128 /**< of all clients */
#define RCD_WORK_EVENT  8   /**< units of an event: a system call of about 1 us */
#define RCD_WORK_TIMERS 64  /**< timers of a poll: all clients' */
#define RCD_WORK_CALLS  4   /**< commands of the control thread, which waits for each */
#define RCD_WORK_TURNS  128 /**< queue pairs that are asked for a packet, and have none */
#define RCD_WORK_RX     256 /**< what received packets cause: the rest of a burst waits */
#define RCD_WORK_KERNEL 4   /**< frames of the kernel's for one port */
#define RCD_WORK_SNIFF  128 /**< copies for sniffers: of what is beyond there is none */
#define RCD_WORK_OTHER  8   /**< frames of a queue without RoCE: some drivers give 8 or none */
#define RCD_WORK_GROUPS 32  /**< copies of packets for groups, and their completions */
#define RCD_WORK_PAUSED 16  /**< units of a queue pair that did its share of local operations */
#define RCD_WORK_COPY   256 /**< completions that a command moves to a resized queue: 16 KiB */
#define RCD_WORK_LEAVE  16  /**< queue pairs that a command takes from their lcore, or fails */

/*
 * What the control thread does for one client before the next has its turn, in units: a page that
 * is cleared or entered into the page table, about 0.3 us, or a message. What takes longer is done
 * in several rounds, and its reply comes after the last.
 */
#define RCD_ROUND_SLICE  256 /**< units of a client in a round */
#define RCD_ROUND_OPEN   64  /**< units of a context that is opened: its segment and tables */
#define RCD_ROUND_CM     8   /**< units of a message or request of connection management */
#define RCD_ROUND_SLICES 8   /**< clients with unfinished requests that go on in a round */

#endif /* RCD_BUDGET_H */
