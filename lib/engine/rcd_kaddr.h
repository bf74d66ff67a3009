/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Addresses of embedded wires, given to the kernel for as long as the engine lives. All functions
 * belong to the control thread.
 */
#ifndef RCD_KADDR_H
#define RCD_KADDR_H

#include "rcd_engine_priv.h"
#include "rcd_show.h"

/** Begin, when the configuration wants it. @return 0 or -ENOMEM */
int
rcd_kaddr_open(struct rcd_engine *engine);

/** Take all of them back. */
void
rcd_kaddr_close(struct rcd_engine *engine);

/** Give and take back what has changed since: devices came or went, or their addresses. */
void
rcd_kaddr_sync(struct rcd_engine *engine);

/** Renew what has a lifetime. */
void
rcd_kaddr_tick(struct rcd_engine *engine, uint64_t now_ns);

/** When to call that next. @return UINT64_MAX: never, as things are */
uint64_t
rcd_kaddr_next(const struct rcd_engine *engine);

/** Show what the kernel has, or why it has nothing; nothing at all when it was not asked for. */
void
rcd_kaddr_show(const struct rcd_show *show, const char *name, const struct rcd_engine *engine);

#endif /* RCD_KADDR_H */
