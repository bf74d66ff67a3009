/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine in the test's own process, and the two ends of an embedded wire that it opened itself.
 * The test's thread is the control thread and polls the lcore, unless EAL was given workers. What
 * must succeed for a test to make sense is checked here and ends the program.
 */
#ifndef LOCAL_RIG_H
#define LOCAL_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_id.h"
#include "rcd_local.h"
#include "rcd_wqe.h"

struct rcd_inline;

/** Bytes that each side has for peers and itself. */
#define SIDE_BYTES (256u << 10)

/** Places of the queues of a side. */
#define SIDE_DEPTH 64

/** Places of its completion queue. */
#define SIDE_COMPLETIONS 1024

/** What is waited for comes within that, however busy the machine is. */
#define FOREVER_NS UINT64_C(180000000000)

/** One end of the wire. */
struct side {
	struct rcd_local *local;
	uint32_t pd;
	struct rcd_local_cq *cq;
	struct rcd_local_qp *qp;
	uint8_t *memory;
	struct rcd_key key;
	struct rcd_ctrl_gids_rep gids;
	uint8_t gid; /**< index of one */
};

extern struct rcd_engine *engine;

/** Begin with EAL. @param lcores  of it; "0": the test polls */
void
local_eal(const char *lcores);

/** An engine as the test changed the defaults, with w0 and w1. @param change  NULL: nothing */
void
local_begin(void (*change)(struct rcd_engine_conf *conf));

/** Its end, behind the audit. */
void
local_end(void);

/** The engine is in order. */
void
local_audit(void);

/** Add an end of a wire again, that was removed. */
void
local_add(const char *name, const char *peer, const char *addr);

/** A device that the test feeds, whose packets for others of the engine come by it, too. */
struct rcd_inline *
local_feed(const char *name, const char *mac, const char *address);

/** Whether the test's thread polls the lcores: unless there are workers, or a test says so. */
extern bool local_polls;

/** What the test does besides in each turn: it carries packets. NULL: nothing. */
extern void (*local_also)(void);

/** A step of the engine, and some rounds of each lcore where the test polls them. */
void
local_turn(void);

/** Take turns until a condition holds, which is asked for once in each. */
#define LOCAL_UNTIL(condition)                                                                     \
	do {                                                                                       \
		uint64_t end_ns_ = local_now_ns() + FOREVER_NS;                                    \
		bool held_;                                                                        \
		while (!(held_ = (condition)) && local_now_ns() < end_ns_)                         \
			local_turn();                                                              \
		CU_ASSERT_FATAL(held_);                                                            \
	} while (0)

uint64_t
local_now_ns(void);

/** Open a device with a domain, memory, a completion queue and a queue pair. */
void
side_open(struct side *side, const char *device, enum rcd_qp_type type);

/** One more queue pair. @return 0 or -errno */
int
side_qp(struct side *side, enum rcd_qp_type type, struct rcd_local_qp **qp);

void
side_close(struct side *side);

/** Code of the time after which packets are sent again: 67 ms, unless a test says otherwise. */
extern uint8_t side_timeout;

/** Attributes with which a side talks to a queue pair at a GID. */
struct rcd_ctrl_qp_attr
side_attr(const struct side *side, const uint8_t dgid[16], uint32_t dest_qpn);

/** A step of a queue pair to RTS, asked again for as long as it waits. @return 0 or -errno */
int
side_to(struct rcd_local_qp *qp, enum rcd_qp_type type, struct rcd_ctrl_qp_attr attr,
	enum rcd_qp_state state);

/** An address handle, asked for again for as long as that waits. @return 0 or -errno */
int
side_ah(struct side *side, const struct rcd_ctrl_av *av, uint32_t *ah);

/** rcd_local_qp_connect(), asked again for as long as it waits. @return 0 or -errno */
int
side_connect(struct rcd_local_qp *qp, struct rcd_ctrl_qp_attr attr);

/** Both, with each other. */
void
side_join(struct side *a, struct side *b);

/** A pair on w0 and w1, joined. */
void
side_pair(struct side *a, struct side *b, enum rcd_qp_type type);

/** The first connected queue pair's request to its peer: the same offset on both sides. */
struct rcd_send_wr
side_wr(const struct side *from, const struct side *to, uint8_t opcode, struct rcd_sge *sge,
	uint64_t offset, uint32_t len);

/** Wait for a completion. @return its status */
int
side_wait(struct side *side, struct rcd_cq_slot *slot);

/** Bytes by a seed, and whether they are that. */
void
bytes_fill(uint8_t *memory, uint64_t len, uint32_t seed);
bool
bytes_filled(const uint8_t *memory, uint64_t len, uint32_t seed);

#endif /* LOCAL_RIG_H */
