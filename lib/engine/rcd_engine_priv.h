/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as those files know it that make it, administer it, or show it whole; the others know
 * what they work on: connections, contexts, numbers, the CM's host. What lcores
 * read is changed only by rcd_lcore_call(), or before they can see it, or replaced as a whole
 * (rcd_lport.h); or it is a word that is stored at once: MACs of next hops, owners of queue pair
 * numbers, tables of groups.
 *
 * Threads: any.
 */
#ifndef RCD_ENGINE_PRIV_H
#define RCD_ENGINE_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_alarm.h"
#include "rcd_chore.h"
#include "rcd_cm_host.h"
#include "rcd_conns.h"
#include "rcd_contexts.h"
#include "rcd_counter.h"
#include "rcd_engine.h"
#include "rcd_guest.h"
#include "rcd_lcores.h"
#include "rcd_pace.h"
#include "rcd_ports.h"
#include "rcd_qpns.h"
#include "rcd_quota.h"
#include "rcd_random.h"

/** What the control thread does again and again (rcd_chores.c). */
enum {
	RCD_CHORE_LINKS,
	RCD_CHORE_NEIGHS,
	RCD_CHORE_KADDRS,
	RCD_CHORE_NETLINK,
	RCD_CHORE_MEMORY,
	RCD_CHORE_REFUSED,
	RCD_CHORE_CONNECTIONS,
	RCD_CHORES,
};

/** NUMA nodes: as many as DPDK is built for, on any machine. */
#define RCD_NODES_MAX 64

struct rcd_closer;
struct rte_mempool;

/** The engine. */
struct rcd_engine {
	struct rcd_engine_conf conf;
	uid_t creator; /**< may administer */
	uint64_t generation;
	uint64_t secret[4];
	struct rcd_random random;
	struct rcd_lcores lcores;
	struct rcd_ports ports;
	struct rcd_qpns qpns;
	struct rte_mempool *pools[RCD_NODES_MAX];
	int epoll_fd;
	struct rcd_closer *closer;
	struct rcd_quota_book book;
	struct rcd_conns conns;
	struct rcd_contexts contexts;
	struct rcd_cm_host cm;
	struct rcd_guests guests;
	bool stopping;         /**< atomic: any thread asks */
	bool yield;            /**< tell clients to yield */
	struct rcd_pace pace;  /**< of the control thread, if it shares its core */
	uint64_t used_ns;      /**< by it since it rested or might have */
	uint32_t work;         /**< units of this step */
	uint32_t longest_work; /**< units of the largest step */
	bool told_left;        /**< there are waiters to call yet */
	struct rcd_alarms alarms;
	struct rcd_alarms chore_alarms; /**< apart: clients set none of them */
	struct rcd_chore chores[RCD_CHORES];
	bool faulted; /**< memory of clients, unseen so far; by signal handlers, atomic */
	uint64_t started_ns;
	struct rcd_counters counters;
};

/* rcd_engine_eal.c */

/** Make its lcores, and buffers near each. Control thread. @return 0, -ENOMEM or -errno */
int
rcd_engine_eal_begin(struct rcd_engine *engine);

/** Free its buffers, when there are no lcores, no devices. Control thread. */
void
rcd_engine_eal_end(struct rcd_engine *engine);

/* rcd_engine.c */

/** Be the control thread from now on: nobody else is, or looks at what it works on. */
void
rcd_engine_take_over(void);

/** No more: others may be it; what is to be sent is. Control thread. */
void
rcd_engine_let_go(struct rcd_engine *engine);

#endif /* RCD_ENGINE_PRIV_H */
