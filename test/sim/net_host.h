/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Hosts of a simulated network: a NIC, and an engine with queue pairs of lib/transport. What the
 * queue pairs carry is net_flow.h.
 *
 * The engine takes no time for its work, but may have its core to itself only now and then: away
 * from it, it hears, sends and times nothing, and its NIC keeps what comes.
 */
#ifndef NET_HOST_H
#define NET_HOST_H

#include "net.h"
#include "rcd_mr.h"
#include "rcd_reorder.h"

/** Most queue pairs of a host. */
#define NET_QPS_MAX 130

/** Bytes that the NIC is given before it has sent them, as a port's ring is short. */
#define NET_NIC_BYTES (64 << 10)

/** Frames that the NIC keeps of what came. */
#define NET_RING_FRAMES 4096

/** What a host is like. */
struct net_host_init {
	uint32_t kept;    /**< room for packets out of order; 0: it keeps none, as rxe: go-back-N */
	uint64_t run_ns;  /**< for so long it has its core */
	uint64_t away_ns; /**< for so long it has not, and so on; 0: always */
	uint64_t tick_ns; /**< times are looked at so often; 0: exactly */
	bool sack; /**< selective acknowledgement, unless it or the peer keeps nothing: as rxe */
};

struct net_host;

/** A queue pair. */
struct net_qp {
	struct net_host *host;
	struct rcd_qp *qp;
	struct rcd_qp_init init;
	void *sack; /**< its memory, when that was agreed on */
	void *gate; /**< likewise, when it has a rate */
	struct net_event timer;
	struct net_qp *next;        /**< in the list of those that may have something to send */
	bool ready;                 /**< it is there */
	struct net_series *arrived; /**< payload that came, bytes; NULL: nobody asks */
};

/** A host. */
struct net_host {
	struct net *net;
	uint32_t number;
	struct net_host_init init;
	uint32_t away_ns; /**< of that, as its queue pairs are told of it */
	struct net_port nic;
	struct net_queue ring; /**< came while it was away */
	struct net_event wake; /**< it has its core again */
	struct rcd_mr_table *mrs;
	struct rcd_reorder_pool *reorder;
	struct rcd_counters counters;
	uint64_t wrong; /**< frames that the parser refused */
	struct net_qp *qps[NET_QPS_MAX];
	uint32_t qp_count;
	struct net_qp *first, *last; /**< that may have something to send */
};

/** Make a host. @param link  from its NIC; whose `arrive` that has is for the caller to say */
void
net_host_init(struct net_host *host, struct net *net, uint32_t number,
	const struct net_host_init *init, const struct net_link *link);

/** Release the frames that wait in it. */
void
net_host_clear(struct net_host *host);

/** End it, with its queue pairs, after the network, which has events of theirs. */
void
net_host_fini(struct net_host *host);

/** A frame comes to a host: the `arrive` of ports that lead to one. */
void
net_host_arrive(void *host, struct net_frame *frame);

/** Make a queue pair, in RESET. @param init  tables and counters are filled in */
struct net_qp *
net_qp_create(struct net_host *host, const struct rcd_qp_init *init);

/** Bring two queue pairs of two hosts to RTS. @param attr  of both; PSNs are made up */
void
net_qp_connect(struct net_qp *a, struct net_qp *b, const struct rcd_qp_attr *attr);

/** Give one that is connected a rate, not 0. Once. */
void
net_qp_set_rate(struct net_qp *qp, uint32_t kbps);

/** Work requests were posted, or time passed: let it send. */
void
net_qp_touch(struct net_qp *qp);

#endif /* NET_HOST_H */
