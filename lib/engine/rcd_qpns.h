/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Numbers of queue pairs: which are free, and on which lcore the others are.
 *
 * Threads: the control thread. Which lcore has a number, all lcores read (rcd_lcores.h).
 */
#ifndef RCD_QPNS_H
#define RCD_QPNS_H

#include <stdint.h>

struct rcd_lcores;
struct rcd_random;

/** The numbers. */
struct rcd_qpns {
	struct rcd_lcores *lcores; /**< made, and there as long as this is */
	struct rcd_random *random;
	uint8_t *high; /**< RCD_QP_SLOTS places: high bits of the number that each had last */
	uint32_t used;
};

/** All are free. @return 0 or -ENOMEM: it is for rcd_qpns_fini() */
int
rcd_qpns_init(struct rcd_qpns *qpns, struct rcd_lcores *lcores, struct rcd_random *random);

/** Forget them. All zero is allowed. */
void
rcd_qpns_fini(struct rcd_qpns *qpns);

/**
 * A number that nobody can guess: who names a queue pair has been told of it. Its low bits are a
 * free slot's, and its high bits differ from those of the slot's last use.
 *
 * @param lcore_index  of the lcore that gets what comes for it from now on
 * @return 0 or -ENOMEM: there are RCD_QP_SLOTS
 */
int
rcd_qpns_take(struct rcd_qpns *qpns, uint32_t lcore_index, uint32_t *qpn);

/** Another lcore gets what comes for it from now on. */
void
rcd_qpns_move(struct rcd_qpns *qpns, uint32_t qpn, uint32_t lcore_index);

/** Give one back. @param qpn  0: none was taken */
void
rcd_qpns_give(struct rcd_qpns *qpns, uint32_t qpn);

#endif /* RCD_QPNS_H */
