/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Addresses of embedded wires, given to the kernel for as long as the engine lives. All functions
 * belong to the control thread.
 */
#ifndef RCD_KADDR_H
#define RCD_KADDR_H

#include <jansson.h>

#include "rcd_engine_priv.h"

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

/** What the kernel has, or why it has nothing; null when it was not asked for. */
json_t *
rcd_kaddr_json(const struct rcd_engine *engine);

/** An address as text (rcd_admin.c). */
json_t *
rcd_gid_json(const struct rcd_gid *gid);

#endif /* RCD_KADDR_H */
