/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rounds of an lcore's work. rcd_lcore_poll(), one of them, is of rcd_engine.h.
 */
#ifndef RCD_POLL_H
#define RCD_POLL_H

struct rcd_lcore;
struct rcd_session;

/** Main function of a worker. @param arg the lcore */
int
rcd_poll_main(void *arg);

/** Let a session's copies be measured, or no more. On its lcore. */
void
rcd_stage_watch(struct rcd_lcore *lcore, struct rcd_session *session);

#endif /* RCD_POLL_H */
