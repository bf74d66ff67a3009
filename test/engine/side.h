/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * One side of a connection, made with the verbs that programs use.
 */
#ifndef SIDE_H
#define SIDE_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define SIDE_LEN    8192
#define SIDE_DEPTH  256
#define SIDE_INLINE 64

/** One queue pair of a context with what it needs. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};

/** A device by its name, opened, and a queue pair on it. What must succeed ends the program. */
void
side_open(struct side *side, const char *device);

/** A channel, a completion queue and a queue pair for a side that has the rest. */
void
side_qp(struct side *side);

/** Destroy all of it; each must succeed: assertions of the test. */
void
side_close(struct side *side);

/** Join the queue pairs of two sides over IPv4. */
void
side_join(struct side *a, struct side *b);

/** Post one operation and poll for its completion. @return its status; -1: there is none */
int
side_operate(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t to,
	uint32_t rkey);

#endif /* SIDE_H */
