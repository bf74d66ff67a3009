/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of the engine, shared by the files that make it up.
 *
 * On lcores:
 *   rcd_poll.c     the poll function, timers, sleeping; rcd_lcore.c its making, commands, clock
 *   rcd_rx.c       received packets to queue pairs
 *   rcd_tx.c       packets of queue pairs to the ports; rcd_turn.c whose turn it is
 *   rcd_link.c     ARP, neighbour discovery and echo
 *   rcd_host.c     shared rings: work requests in, completions out
 *   rcd_late.c     what clients may ask of one poll, and what waits for the next
 *   rcd_event.c    completion events
 *   rcd_ucopy.c    copies that clients make; rcd_ucopy_take.c what becomes of them
 * In the control thread:
 *   rcd_engine.c   creation, the event loop, listening
 *   rcd_dev.c      devices: ports, addresses, link state
 *   rcd_attach.c   the three attachments: what is the port of a device; rcd_xdp.c care of AF_XDP's
 *   rcd_neigh.c    neighbours; rcd_hop.c which one is the next hop; rcd_follow.c whose MAC changed
 *   rcd_netlink.c  what the kernel says of a netdev
 *   rcd_kaddr.c    what the kernel is told of the wires' addresses
 *   rcd_session.c  sessions: their objects and end; rcd_session_mem.c their memory (lib/memory)
 *   rcd_capacity.c how much of everything there is for them
 *   rcd_cred.c     what their clients may
 *   rcd_closer.c   descriptors of clients are closed, in threads of their own
 *   rcd_guest.c    contexts that several connections share
 *   rcd_serve.c    requests of clients
 *   rcd_hcq.c      likewise: completion queues; rcd_verbs.c receive queues, queue pairs
 *   rcd_modify.c   attributes of queue pairs, address handles, multicast
 *   rcd_gsi.c      MADs between lcores and the CM service (lib/cma); rcd_cm_host.c what that asks
 *   rcd_admin.c    requests of the command line, in rcd_admin_*.c those about objects and quotas
 *   rcd_telemetry.c
 *
 * What lcores read is changed only by rcd_lcore_call(), or before they can see it.
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
#include "rcd_budget.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_gid_table.h"
#include "rcd_limits.h"
#include "rcd_mcast.h"
#include "rcd_mr.h"
#include "rcd_pace.h"
#include "rcd_pkt.h"
#include "rcd_qp.h"
#include "rcd_random.h"
#include "rcd_reorder.h"
#include "rcd_lcore.h"
#include "rcd_queue.h"
#include "rcd_segment.h"
#include "rcd_shm.h"
#include "rcd_srq.h"
#include "rcd_table.h"
#include "rcd_turn.h"
#include "rcd_ucopy.h"
#include "rcd_umem.h"
#include "rcd_wheel.h"
#include "rcd_wqe.h"

extern int rcd_logtype;
#define RCD_LOG(level, format, ...)                                                                \
	rte_log(RTE_LOG_##level, (uint32_t)rcd_logtype, "rocade: " format "\n", ##__VA_ARGS__)

#define RCD_PARKED_NS 3000000000ull /**< how long a request waits for a neighbour */

struct rcd_closer;
struct rcd_session;
struct rcd_engine;
struct rcd_cma_client;

/** A device: one port and its addresses. */
struct rcd_dev {
	/* Constant, or replaced as a whole: read by lcores. */
	uint32_t index; /**< in engine->devs */
	uint16_t port_id;
	bool answers; /**< the engine owns the addresses: it answers ARP, ND and echo */
	bool wire;
	union {
		uint8_t mac[RCD_MAC_LEN]; /**< the control thread's; lcores: rcd_dev_mac() */
		uint64_t mac_whole;
	};
	const struct rcd_gid_table *gids; /**< as lcores see it: never changed, replaced */
	struct rcd_counters *counters;    /**< one set for each lcore */

	/* The control thread's. */
	struct rcd_engine *engine;
	struct rcd_dev_conf conf;
	uint32_t serial; /**< differs from that of any other device of this engine's life */
	struct rcd_dev *peer;
	char driver[32]; /**< of DPDK */
	char vdev[64];   /**< EAL device that was made for it, and goes with it; "": none */
	struct rte_device *wrapped; /**< what is behind net_impair, and goes with it; NULL: none */
	struct rcd_xdp *xdp;        /**< of a port by AF_XDP; NULL: another (rcd_xdp.c) */
	uint32_t ifindex;           /**< of the netdev; 0: none */
	int hold[2];                /**< sockets that hold port 4791; -1: none */
	struct rte_mempool
		*pool;     /**< of its own, where the driver wants that; NULL: the engine's */
	uint32_t mtu_max;  /**< that the driver can do, whatever the netdev has; 0: any */
	uint32_t mtu;      /**< of IP */
	uint32_t path_mtu; /**< largest of the five that fits */
	int socket_id;
	bool up;
	bool link_up;    /**< of a netdev, as the kernel says */
	bool xdp_taken;  /**< likewise: it has an XDP program */
	bool admin_down; /**< taken down by a command */
	bool started;
	bool wire_waits; /**< the first end of a wire: named, no port yet */
	uint16_t queues;
	struct rcd_txq *txqs; /**< one for each lcore */
};

LIST_HEAD(rcd_session_list, rcd_session);

/** Doorbells that were taken and not answered yet: words of queue pairs, one after another. */
struct rcd_doorbells {
	uint64_t groups; /**< bits of the summary */
	uint64_t bits;   /**< of the word at hand */
	uint32_t word;
	uint32_t words_left; /**< of the group at hand, behind this one */
};

/**
 * A client: one connection, one context. A guest (ibv_import_device()) has a connection and an
 * event stream of its own, and works on the context of its host; when the host's connection ends,
 * a guest's takes its place.
 */
struct rcd_session {
	/* The lcore's. */
	struct rcd_shm_hdr *shm; /**< NULL: nothing was opened */
	uint64_t spent_poll;     /**< number of the last poll in which it used up a budget */
	uint32_t idle_polls;
	bool hot;
	bool in_flushing, in_owing; /**< of the lists of the lcore */
	bool flush_held;            /**< until a completion queue has moved nothing is flushed */
	struct rcd_doorbells doorbells;
	struct rcd_hqp **qps; /**< by doorbell bit; RCD_DB_BITS places or fewer */
	uint32_t qp_places;
	struct rcd_lcore *lcore;
	struct rcd_mr_table *mrs;
	struct rcd_ah_table *ahs;
	struct rcd_counters counters; /**< offences */
	struct rcd_ucopy *ucopy;      /**< NULL: nothing is copied */
	pid_t pid;
	bool bad_memory;                   /**< its memory went away under the engine */
	TAILQ_HEAD(, rcd_hqp) flushing;    /**< queue pairs to flush */
	TAILQ_HEAD(, rcd_channel) waiting; /**< channels with events to send, the full ones last */
	TAILQ_ENTRY(rcd_session) flush_link;
	TAILQ_ENTRY(rcd_session) owe_link;
	struct rcd_timer retry; /**< RCD_TIMER_SESSION: all channels with events are full */
	uint32_t event_round;   /**< of looks at full channels */

	/* The control thread's. */
	LIST_ENTRY(rcd_session) link;
	struct rcd_engine *engine;
	struct rcd_dev *dev;
	struct rcd_quota_entry quota; /**< what it has */
	uint32_t serial;
	uint32_t via;                   /**< serial of the connection whose request is served */
	struct rcd_session *host;       /**< the session whose context this one shares */
	struct rcd_session_list guests; /**< those that share this one's */
	LIST_ENTRY(rcd_session) guest_link;
	int sock;
	uid_t uid;
	gid_t gid;
	uint64_t caps; /**< capabilities that it had when it connected, in our user namespace */
	char comm[32]; /**< printable ASCII */
	bool greeted;
	bool ended;    /**< nothing is served any more; it goes when its socket says so */
	bool pages_go; /**< of its segment, with its end: nobody has to read them any more */
	int events;    /**< sending end of the event stream; -1: none */
	int wake_fd;   /**< of this session: clients can't take each other's wake-ups away */
	struct rcd_segment segment; /**< whose address is `shm` */
	struct rcd_cq_move *moving; /**< a queue that is being resized; NULL: none is */
	struct rcd_table pds;
	struct rcd_table channels;
	struct rcd_table cqs;
	struct rcd_table srqs;
	struct rcd_umem umem;
	struct rcd_table hqps;
	uint32_t ah_count;
	uint32_t ah_places;
	struct rcd_next *ah_next;   /**< by address handle; ah_places of them */
	struct rcd_cma_client *cma; /**< identifiers and channels; NULL: none were asked for */
	/* A request that waits for a neighbour. */
	TAILQ_ENTRY(rcd_session) parked_link;
	bool read_later; /**< it brings descriptors, and the closer has no room */
	bool parked;
	bool unfinished; /**< parked, and to go on in the next round */
	uint64_t parked_until_ns;
	struct rcd_ctrl_msg parked_msg;
};

struct rcd_neigh_table;
struct rcd_kaddr;
struct rcd_netlink;
struct rcd_cma;
struct rcd_gsi;

/** The engine. */
struct rcd_engine {
	struct rcd_engine_conf conf;
	uid_t creator; /**< may administer */
	uint64_t generation;
	uint64_t secret[4];
	struct rcd_random random;
	uint32_t lcore_count;
	struct rcd_lcore *lcores[RCD_LCORES_MAX];
	uint8_t *qp_owner; /**< RCD_QP_SLOTS places: index of the lcore plus 1, 0: free; atomic */
	struct rcd_dev *devs[RCD_DEVS_MAX];
	uint32_t next_serial;
	uint8_t *qp_high; /**< RCD_QP_SLOTS places: high bits of the number that each had last */
	uint32_t qp_used;
	struct rte_mempool *pools[RTE_MAX_NUMA_NODES];
	struct rte_ring *notes; /**< from the lcores */
	int note_fd;
	int epoll_fd;
	int listen_fd;
	int spare_fd; /**< for a moment without a free descriptor: to refuse, not to spin */
	struct rcd_closer *closer;
	bool guarded;      /**< nobody sends descriptors before it may */
	bool accept_later; /**< the closer is full */
	bool read_later;   /**< as some session has it */
	struct rcd_quota_book book;
	bool started;
	bool stopping;
	bool yield;           /**< tell clients to yield */
	struct rcd_pace pace; /**< of the control thread, if it shares its core */
	uint64_t used_ns;     /**< by it since it rested or might have */
	uint32_t client_count;
	uint32_t parked_count;
	uint32_t unfinished_count;       /**< of the parked */
	uint32_t work;                   /**< units of this step */
	uint32_t longest_work;           /**< units of the largest step */
	struct rcd_session_queue parked; /**< those with a request that waits, oldest first */
	struct rcd_session_list sessions;
	struct rcd_neigh_table *neighs;
	uint32_t follow_serial; /**< where rcd_follow() goes on: session and place in it */
	uint32_t follow_place;
	bool follow_soon; /**< at each step, and not only at each tick */
	struct rcd_netlink *netlink;
	struct rcd_kaddr *kaddr; /**< NULL: the kernel is given no addresses */
	struct rcd_cma *cma;
	struct rcd_gsi *gsi;
	uint64_t next_tick_ns;
	uint64_t started_ns;
	struct rcd_counters counters;
};

/** The next power of two at or above a number. */
static inline uint32_t
rcd_power_up(uint32_t val)
{
	uint32_t power = 1;

	while (power < val)
		power *= 2;
	return power;
}

/** Leave a session's messages unread until the next tick. */
void
rcd_engine_read_later(struct rcd_session *session);

#include "rcd_cred.h"
#include "rcd_engine_calls.h"
#include "rcd_link.h"
#include "rcd_neigh.h"
#include "rcd_whole.h"

#endif /* RCD_ENGINE_PRIV_H */
