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
#define SIDE_QKEY   0x1234

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

/** One more queue pair of a side, with its completion queue. @param srq  NULL: none */
struct ibv_qp *
side_new_qp(struct side *side, enum ibv_qp_type type, struct ibv_srq *srq);

/** Destroy all of it; each must succeed: assertions of the test. */
void
side_close(struct side *side);

/** Join the queue pairs of two sides over IPv4. */
void
side_join(struct side *a, struct side *b);

/** Join two queue pairs of a type over IPv4. */
void
side_join_qps(struct side *a, struct ibv_qp *qp_a, struct side *b, struct ibv_qp *qp_b);

/** An address handle of a side for another, over IPv4 or IPv6. */
struct ibv_ah *
side_ah(struct side *from, struct side *to, int v6);

/** Take a queue pair of datagrams, which has no peer, to where it sends and receives. */
void
side_ready(struct ibv_qp *qp);

/** Post one operation and poll for its completion. @return its status; -1: there is none */
int
side_operate(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t to,
	uint32_t rkey);

#endif /* SIDE_H */
