/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A client whose copies the test makes, one by one, and its peer; each with two queue pairs.
 */
#ifndef RCD_TEST_COPYQ_H
#define RCD_TEST_COPYQ_H

#include "rcd_copyq.h"
#include "rig.h"

/** Bytes of the copied region, and of what each shares. */
#define LEN (1u << 20)

extern struct rig rig;
extern struct node copied, peer;
extern struct rcd_cl_qp second, peer_second;
extern struct rcd_copyq *queue;
extern uint32_t done;
extern uint8_t *memory; /**< the copied region */
extern uint32_t key;

/** Register memory as copied. @return 0 or -errno */
int
reg_raw(struct node *node, const void *at, uint64_t len, uint32_t *made);

/** Make all of it, and undo it. */
void
setup(void);
void
teardown(void);

/**
 * Start the engine. Without congestion control: a window is acknowledged when copies are made, and
 * these tests have more of them out.
 */
void
copyq_begins(void);

/** Nothing is left of all clients, and the engine ends. */
void
copyq_ends(void);

/** Wait for jobs. @return whether so many are there */
bool
jobs(uint32_t count);

/** Make the oldest copy, or say that it failed. */
void
make(int status);

/** Make copies until a completion comes. @return its status */
int
make_until(struct node *node, struct rcd_cq_slot *slot);

/** Post a request. @return 0 or -errno */
int
post(struct rcd_cl_qp *qp, uint8_t opcode, struct rcd_sge sge, uint64_t va, uint32_t rkey);

/** The beginning of shared memory of the peer, and of the copied region. */
struct rcd_sge
peers(uint32_t len);
struct rcd_sge
ours(uint32_t len);

/** Post a receive. @return 0 or -errno */
int
post_recv(struct rcd_cl_qp *qp, struct rcd_sge sge, uint64_t wr_id);

#endif /* RCD_TEST_COPYQ_H */
