/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Addresses of embedded wires, given to the kernel for as long as the engine lives.
 *
 * Threads: the control thread.
 */
#ifndef RCD_KADDR_H
#define RCD_KADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"

struct rcd_ports;

/** Begin. @return 0 or -ENOMEM */
int
rcd_kaddr_open(struct rcd_ports *ports);

/** Take all of them back. */
void
rcd_kaddr_close(struct rcd_ports *ports);

/** Give and take back what has changed since: devices came or went, or their addresses. */
void
rcd_kaddr_sync(struct rcd_ports *ports);

/** Renew what has a lifetime. */
void
rcd_kaddr_tick(struct rcd_ports *ports, uint64_t now_ns);

/** When to call that next. @return UINT64_MAX: never, as things are */
uint64_t
rcd_kaddr_next(const struct rcd_ports *ports);

/** What the kernel has, for who shows it. */
struct rcd_kaddr_state {
	const char *missing; /**< why it has none; NULL: it has them */
	const char *ifname;  /**< of the netdev that they are on; "": none was needed yet */
	const struct rcd_gid *addrs;
	uint32_t count;
};

/** @param state  valid until devices or addresses change. @return false: it is given none */
bool
rcd_kaddr_state(const struct rcd_ports *ports, struct rcd_kaddr_state *state);

#endif /* RCD_KADDR_H */
