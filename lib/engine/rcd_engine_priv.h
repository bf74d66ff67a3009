/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of the engine, shared by the files that make it up.
 *
 * What lcores do is lib/lcore's.
 *
 * In the control thread:
 *   rcd_engine.c   creation, the event loop, listening
 *   rcd_engine_dev.c devices as programs ask for them, and as the host of lib/port
 *   rcd_conn.c     connections; rcd_inbox.c what comes by them; rcd_stream.c events for clients
 *   rcd_context.c  open devices, which connections share; rcd_context_mem.c their memory
 *   rcd_near.c     memory near an lcore
 *   rcd_capacity.c how much of everything there is for them
 *   rcd_cred.c     what clients may
 *   rcd_closer.c   descriptors of clients are closed, in threads of their own
 *   rcd_serve.c    requests of clients
 *   rcd_hcq.c      likewise: completion queues; rcd_verbs.c receive queues, queue pairs
 *   rcd_modify.c   attributes of queue pairs, address handles, multicast
 *   rcd_gsi.c      MADs between lcores and the CM service (lib/cma); rcd_cm_host.c what that asks
 *   rcd_admin.c    requests of the command line, in rcd_admin_*.c those about objects and quotas
 *   rcd_show.c     what is shown; rcd_show_json.c, rcd_telemetry.c how it is written down
 *
 * What lcores read is changed only by rcd_lcore_call(), or before they can see it, or replaced
 * as a whole (rcd_lport.h).
 */
#ifndef RCD_ENGINE_PRIV_H
#define RCD_ENGINE_PRIV_H

#include <net/if.h>
#include <rte_cycles.h>
#include <rte_ether.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "rcd_ah.h"
#include "rcd_alarm.h"
#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_chore.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_gid_table.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_mr.h"
#include "rcd_note.h"
#include "rcd_dev.h"
#include "rcd_hop.h"
#include "rcd_log.h"
#include "rcd_neigh.h"
#include "rcd_ports.h"
#include "rcd_route.h"
#include "rcd_pace.h"
#include "rcd_pkt.h"
#include "rcd_qp.h"
#include "rcd_random.h"
#include "rcd_reorder.h"
#include "rcd_lclient.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_lport.h"
#include "rcd_queue.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_table.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_umem.h"
#include "rcd_waiter.h"
#include "rcd_wheel.h"
#include "rcd_wqe.h"

#define RCD_PARKED_NS 3000000000ull /**< how long a request waits for a neighbour */

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
struct rcd_engine;

struct rcd_cma;
struct rcd_gsi;

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
	bool accept_later; /**< the closer is full */
	bool read_later;   /**< as some connection has it */
	struct rcd_quota_book book;
	bool stopping;
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
	struct rcd_chore chores[RCD_CHORES];
	bool faulted; /**< memory of clients, unseen so far; by signal handlers, atomic */
	uint64_t started_ns;
	struct rcd_counters counters;
};

#include "rcd_cred.h"
#include "rcd_engine_calls.h"
#include "rcd_link.h"

#endif /* RCD_ENGINE_PRIV_H */
