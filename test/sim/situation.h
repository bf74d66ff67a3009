/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * One situation at a time: two nodes in the simulator with a queue pair each, requests posted one
 * by one, packets watched on the way or made by hand. For CUnit tests.
 */
#ifndef SITUATION_H
#define SITUATION_H

#include "sim.h"

enum {
	SITUATION_MEMORY = 1 << 21, /**< bytes of each node, one region with all rights */
	SITUATION_PD = 2,
};

/** Two nodes with one queue pair each. */
struct situation {
	struct sim sim;
	struct sim_qp *a, *b;
	struct rcd_key key[2]; /**< of each node's memory */
	uint32_t ah[2];        /**< address handle of each node to the other */
	uint32_t srqn;         /**< of XRC: b's shared receive queue, of SITUATION_PD */
};

extern struct situation p;

/** What went over the links, counted by node and opcode; acknowledges by syndrome. */
extern uint32_t sent[2][256];
extern uint32_t naks[256];
extern uint32_t ack_reqs;

/** When node 0 sent last, and how long after the packet before. */
extern uint64_t last_ns, gap_ns;

/** The trace function that counts them. */
void
watch(const struct sim *sim, const struct sim_node *from, const struct rcd_tx_pkt *pkt, bool lost);

/** Properties with which most situations work. */
struct rcd_qp_init
default_init(enum rcd_qp_type type);

/**
 * Begin a situation: both queue pairs in RTS; of XRC a is the initiator and b the target.
 *
 * @param change  attributes; NULL: sim_attr()
 */
void
begin(const struct rcd_qp_init *init, const struct rcd_qp_attr *change);

/** Post a signalled request of one piece. @return it, to be changed */
struct rcd_send_wr *
post(struct sim_qp *qp, enum rcd_wr_opcode opcode, uint64_t at, uint32_t len, uint64_t remote);

/** Post a datagram from a to b. */
struct rcd_send_wr *
post_datagram(uint64_t at, uint32_t len, uint32_t qkey);

/** Post a receive request of one piece. */
void
post_recv(struct sim_recv_queue *queue, uint32_t node, uint64_t at, uint32_t len);

/** Let it come to its end. */
void
run(void);

/** End the situation. */
void
end(void);

/** Whether completion i of a node has this number and status. */
bool
completed(uint32_t node, uint32_t i, uint64_t wr_id, enum rcd_wc_status status);

/** Whether a node had this event. */
bool
raised(uint32_t node, enum rcd_event event);

/** Counter of a node. */
uint64_t
counter(uint32_t node, enum rcd_counter id);

/** A packet for b as a would send it, so many PSNs behind the expected one. */
struct rcd_pkt
by_hand(uint8_t opcode, uint32_t psns);

/** A NAK for a: the packet with this PSN is missing. */
struct rcd_pkt
nak_by_hand(struct rcd_psn psn);

/** A SACK for a (doc/sack.md). @param bitmap  stays the caller's while the packet is used */
struct rcd_pkt
sack_by_hand(struct rcd_psn expected, struct rcd_psn seen, const uint8_t *bitmap, uint16_t len);

/** Begin a situation in which b is fed READs by hand. @return the first READ */
struct rcd_pkt
begin_with_reads(uint8_t max_dest_rd_atomic);

#endif /* SITUATION_H */
