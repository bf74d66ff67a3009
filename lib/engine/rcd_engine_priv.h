/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as its own files know it: the control thread and all that belongs to it. What lcores
 * read is changed only by rcd_lcore_call(), or before they can see it, or replaced as a whole
 * (rcd_lport.h); or it is a word that is stored at once: MACs of next hops, owners of queue pair
 * numbers, tables of groups.
 */
#ifndef RCD_ENGINE_PRIV_H
#define RCD_ENGINE_PRIV_H

#include <rte_config.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_alarm.h"
#include "rcd_chore.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_counter.h"
#include "rcd_engine.h"
#include "rcd_lcores.h"
#include "rcd_pace.h"
#include "rcd_ports.h"
#include "rcd_quota.h"
#include "rcd_random.h"

/** What the control thread does again and again (rcd_chores.c). */
enum {
	RCD_CHORE_LINKS,
	RCD_CHORE_NEIGHS,
	RCD_CHORE_KADDRS,
	RCD_CHORE_MEMORY,
	RCD_CHORE_REFUSED,
	RCD_CHORE_CONNECTIONS,
	RCD_CHORES,
};

struct rcd_closer;
struct rcd_cma;
struct rcd_gsi;
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
	uint32_t next_serial; /**< of connections */
	uint8_t *qp_high; /**< RCD_QP_SLOTS places: high bits of the number that each had last */
	uint32_t qp_used;
	struct rte_mempool *pools[RTE_MAX_NUMA_NODES];
	int epoll_fd;
	int listen_fd;
	int spare_fd; /**< for a moment without a free descriptor: to refuse, not to spin */
	struct rcd_closer *closer;
	bool guarded;      /**< nobody sends descriptors before it may */
	bool accept_later; /**< the closer is full, or the kernel has no room */
	bool read_later;   /**< as some connection has it */
	struct rcd_quota_book book;
	bool stopping;        /**< atomic: any thread asks */
	bool yield;           /**< tell clients to yield */
	struct rcd_pace pace; /**< of the control thread, if it shares its core */
	uint64_t used_ns;     /**< by it since it rested or might have */
	uint32_t client_count;
	uint32_t parked_count;
	uint32_t unfinished_count;      /**< of the parked */
	uint32_t work;                  /**< units of this step */
	uint32_t longest_work;          /**< units of the largest step */
	struct rcd_parked_queue parked; /**< those with a request that waits, oldest first */
	struct rcd_conn_list conns;
	struct rcd_conn_list conns_by_serial[RCD_CONN_BUCKETS]; /**< rcd_conn_find()'s */
	struct rcd_context_list contexts;
	bool told_left; /**< there are waiters to call yet */
	struct rcd_alarms alarms;
	struct rcd_cma *cma;
	struct rcd_gsi *gsi;
	struct rcd_alarms chore_alarms; /**< apart: clients set none of them */
	struct rcd_chore chores[RCD_CHORES];
	bool faulted; /**< memory of clients, unseen so far; by signal handlers, atomic */
	uint64_t started_ns;
	struct rcd_counters counters;
};

#endif /* RCD_ENGINE_PRIV_H */
