/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An lcore as the control thread has it: commands for it, where it is, and how much it has to do.
 * What a command does there, and with what, is the business of who runs on it (rcd_lcore.h).
 *
 * Threads: the control thread.
 */
#ifndef RCD_LCORE_CTL_H
#define RCD_LCORE_CTL_H

#include <stdint.h>

struct rcd_lcore;

/* rcd_lcore.c */

/** End an lcore's sleep, if it sleeps. Any thread. */
void
rcd_lcore_wake(struct rcd_lcore *lcore);

/** Run a function on an lcore and wait for it. @return the function's answer */
int
rcd_lcore_call(struct rcd_lcore *lcore, int (*fn)(struct rcd_lcore *lcore, void *arg), void *arg);

/* rcd_lcore_ctl.c */

/** Its place among those of its engine, from 0. Any thread. */
uint32_t
rcd_lcore_index(const struct rcd_lcore *lcore);

/** The NUMA node that it is on, for memory near it. Any thread. */
int
rcd_lcore_socket_id(const struct rcd_lcore *lcore);

/** Contexts that it has. */
uint32_t
rcd_lcore_contexts(const struct rcd_lcore *lcore);

/** It has another one, or one less. */
void
rcd_lcore_context_add(struct rcd_lcore *lcore);
void
rcd_lcore_context_del(struct rcd_lcore *lcore);

/** Have an event on a descriptor end its sleep, each anew. @return 0 or -errno */
int
rcd_lcore_watch(struct rcd_lcore *lcore, int fd);

/** No more. */
void
rcd_lcore_unwatch(struct rcd_lcore *lcore, int fd);

#endif /* RCD_LCORE_CTL_H */
