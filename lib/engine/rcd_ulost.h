/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that clients take away. Control thread.
 */
#ifndef RCD_ULOST_H
#define RCD_ULOST_H

#include <stdint.h>

struct rcd_engine;
struct rcd_session;

/** Give addresses of a session's memory back. A fault there that nobody knows of yet is its own. */
void
rcd_ulost_release(struct rcd_session *session, void *start, uint64_t len);

/** Count what is untold of a session that ends. */
void
rcd_ulost_settle(struct rcd_session *session);

/** Reports of the guard: whose memory went away, and what ends by it. Each tick. */
void
rcd_ulost_check(struct rcd_engine *engine);

#endif /* RCD_ULOST_H */
