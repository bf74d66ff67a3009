/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Verbs without a second process: protection domains, regions, completion queues and queue pairs of
 * a DPDK program that the engine is a part of. No socket, no shared file, no copy beside the one
 * between the program's memory and a packet; clients of other processes use the same engine at the
 * same time. To the engine a program is one more client, checked, charged by quotas and shown by
 * rocade(8) like the others, under the program's own number and name.
 *
 * Threads: two kinds of functions.
 *
 * Those of control make, change and end things. They belong to one thread at a time, any one that
 * is on no lcore; each takes the place of the control thread between two steps of it
 * (rcd_engine_step()), and waits for the lcore where one has a thread: that has to go on with its
 * rounds meanwhile, so they are not called from its loop. Where the program polls the lcores itself
 * all is one thread. None waits for the network: what has to returns -EINPROGRESS, and is to be
 * called again after a step of the engine and a round of its lcore.
 *
 * Those marked "On the lcore" post and poll. They belong to the thread that calls rcd_lcore_poll()
 * for the lcore that the device was opened on, between two rounds: the loop of rcd_engine_launch(),
 * or the program's thread. They never block, allocate or log. What they are given has to be there:
 * a queue pair is destroyed by the control thread when the lcore has stopped to use it.
 *
 * An object outlives its device: when that is removed, or the engine destroyed, everything returns
 * -ENODEV, all mbufs that were posted are free, and the objects are still to be destroyed, or go
 * with rcd_local_close().
 *
 * Not here: shared receive queues, memory windows, multicast groups, and connection management; the
 * two sides tell each other QPN, PSN and GID by ways of the program's own.
 */
#ifndef RCD_LOCAL_H
#define RCD_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_api.h"
#include "rcd_cq_slot.h"
#include "rcd_ctrl_value.h"
#include "rcd_id.h"
#include "rcd_number.h"
#include "rcd_wr.h"

RCD_API_BEGIN

struct rcd_engine;
struct rcd_local;
struct rcd_local_cq;
struct rcd_local_pool;
struct rcd_local_qp;
struct rte_mbuf;
struct rte_mempool;

/** Events that wait for rcd_local_event(), at most: what comes then is counted as lost. */
#define RCD_LOCAL_EVENTS 64

/* rcd_local.c */

/**
 * Open a device of an engine. Control.
 *
 * @param lcore_index  of rcd_engine_lcore(): all that is made stays there; -1: one that has few
 * @param local        set; for rcd_local_close(), which comes before it is forgotten, whatever
 *                     becomes of the device and the engine
 * @return 0; -ENODEV: no such device; -EINVAL: no such lcore, or the device has no queue for it;
 *         -EUSERS, -EMFILE, -ENOMEM, and what a quota says
 */
int
rcd_local_open(
	struct rcd_engine *engine, const char *device, int lcore_index, struct rcd_local **local);

/**
 * End all that is left, free the mbufs of requests that are not complete, and forget it. Pools of
 * rcd_local_pool_reg() have to be given back before. Control.
 */
void
rcd_local_close(struct rcd_local *local);

/** The number of the lcore that it was opened on, also when the device has gone. Any thread. */
uint32_t
rcd_local_lcore(const struct rcd_local *local);

/** The port as it is now: its state, its path MTU. Control. @return 0; -ENODEV */
int
rcd_local_port(struct rcd_local *local, struct rcd_ctrl_port_rep *port);

/** All GIDs, by the indices that address vectors name. Control. @return 0; -ENODEV */
int
rcd_local_gids(struct rcd_local *local, struct rcd_ctrl_gids_rep *gids);

/**
 * Take the oldest event: a queue pair failed (RCD_EVENT_QP_FATAL and others), a completion queue
 * overflowed, the port or its addresses changed, the device goes (RCD_EVENT_DEVICE_FATAL). One of
 * an object may come when that was destroyed a moment ago: it is known by its cookie alone. One
 * thread at a time, any; it waits for nobody.
 *
 * @param event  set when there is one
 * @return whether there was one
 */
bool
rcd_local_event(struct rcd_local *local, struct rcd_ctrl_event *event);

/* rcd_local_mem.c */

/** Make a protection domain. Control. @param pd set @return 0; -ENODEV, -ENOMEM */
int
rcd_local_pd_create(struct rcd_local *local, uint32_t *pd);

/** Remove it. Control. @return 0; -ENOENT; -EBUSY: something refers to it; -ENODEV */
int
rcd_local_pd_destroy(struct rcd_local *local, uint32_t pd);

/**
 * Register memory of this process, of any kind: work requests and peers name its addresses, or
 * offsets with RCD_ACCESS_ZERO_BASED, and it is read and written there. It is the program's and has
 * to stay until the region is removed: an access beyond what is mapped ends the program. Control.
 *
 * @param len     bytes
 * @param access  RCD_ACCESS_*; 0: local reads alone, as for what is only sent
 * @param key     set: L_Key and R_Key in one
 * @return 0; -ENOENT: no such domain; -EINVAL: rights that contradict each other, a range that
 *         wraps or is too long; -EOPNOTSUPP: RCD_ACCESS_FLUSH_PERSISTENT; -ENODEV, -ENOMEM
 */
int
rcd_local_mr_reg(struct rcd_local *local, uint32_t pd, void *addr, uint64_t len, uint32_t access,
	struct rcd_key *key);

/** Remove a region: nobody reaches its memory any more. Control. @return 0; -ENOENT; -ENODEV */
int
rcd_local_mr_dereg(struct rcd_local *local, struct rcd_key key);

/**
 * Make an address handle, for datagrams. Control.
 *
 * @param ah  set, for struct rcd_send_wr's ud.ah
 * @return 0; -EINPROGRESS: the neighbour is being asked for; -ETIMEDOUT: it did not answer;
 *         -ENETUNREACH; -ENOENT: no such domain; -EINVAL: no such source; -ENODEV, -ENOMEM
 */
int
rcd_local_ah_create(
	struct rcd_local *local, uint32_t pd, const struct rcd_ctrl_av *av, uint32_t *ah);

/** Remove it, of the domain that it was made in. Control. @return 0; -ENOENT; -ENODEV */
int
rcd_local_ah_destroy(struct rcd_local *local, uint32_t pd, uint32_t ah);

/* rcd_local_pool.c */

/**
 * Register all memory of a mempool: a region for each part of it that is contiguous, which with
 * hugepages is mostly one. The mbufs themselves lie there too, beside their data: peers that may
 * write a part may write those, so rights of peers are for pools of data alone. Control.
 *
 * @param pool    whole: memory that is added later is not registered
 * @param access  RCD_ACCESS_*; 0: what is sent
 * @param made    set; for rcd_local_pool_dereg(), before the pool is freed
 * @return 0; -EINVAL: it has no memory yet, or as rcd_local_mr_reg(); -ENOENT, -ENODEV, -ENOMEM
 */
int
rcd_local_pool_reg(struct rcd_local *local, uint32_t pd, struct rte_mempool *pool, uint32_t access,
	struct rcd_local_pool **made);

/** Remove its regions, and forget it; the device may have gone. Control. */
void
rcd_local_pool_dereg(struct rcd_local_pool *pool);

/**
 * The key of memory of a pool. Any thread.
 *
 * @param key  set when 0 is returned
 * @return 0; -EINVAL: not all of these bytes are of one of its regions
 */
int
rcd_local_pool_key(
	const struct rcd_local_pool *pool, const void *addr, uint32_t len, struct rcd_key *key);

/**
 * The data of an mbuf, segment by segment, as elements of a work request. Any thread.
 *
 * @param count_max  room at @p sges
 * @return elements, at least 1; -EMSGSIZE: it has more segments; -EINVAL: data of one is elsewhere,
 *         as that of an attached buffer of another pool
 */
int
rcd_local_pool_sges(const struct rcd_local_pool *pool, const struct rte_mbuf *mbuf,
	struct rcd_sge *sges, uint32_t count_max);

/* rcd_local_cq.c */

/**
 * Make a completion queue. Control.
 *
 * @param depth   completions; rounded up to a power of two
 * @param cookie  given back with its events
 * @param cq      set
 * @return 0; -EINVAL: no depth that there can be; -ENODEV, -ENOMEM
 */
int
rcd_local_cq_create(
	struct rcd_local *local, uint32_t depth, uint64_t cookie, struct rcd_local_cq **cq);

/** The number of the lcore that it is polled on: that of its device. Any thread. */
uint32_t
rcd_local_cq_lcore(const struct rcd_local_cq *cq);

/** Destroy it. Control. @return 0; -EBUSY: a queue pair or a node refers to it */
int
rcd_local_cq_destroy(struct rcd_local_cq *cq);

/* rcd_local_qp.c */

/** What a queue pair is to be. */
struct rcd_local_qp_conf {
	enum rcd_qp_type type;        /**< RC, UC or UD */
	uint32_t pd;                  /**< protection domain */
	struct rcd_local_cq *send_cq; /**< of the same open device, as is recv_cq */
	struct rcd_local_cq *recv_cq; /**< likewise */
	uint32_t sq_depth;            /**< requests; rounded up to a power of two, 1 at least */
	uint32_t rq_depth;            /**< likewise; 0: it receives none */
	uint32_t max_send_sge;        /**< elements of a request, up to RCD_SGE_MAX */
	uint32_t max_recv_sge;        /**< likewise */
	uint32_t max_inline;          /**< bytes */
	bool signal_all;              /**< each send request completes as if signalled */
	uint64_t cookie;              /**< given back with its events */
};

/**
 * Make a queue pair, in RESET. Control.
 *
 * @return 0; -EINVAL: out of range, or a queue of another device; -ENOENT: no such domain;
 *         -ENODEV, -ENOMEM
 */
int
rcd_local_qp_create(
	struct rcd_local *local, const struct rcd_local_qp_conf *conf, struct rcd_local_qp **qp);

/**
 * Destroy it: mbufs of what is not complete are freed, and completions that wait stay. Control.
 */
void
rcd_local_qp_destroy(struct rcd_local_qp *qp);

/**
 * Change it, as ibv_modify_qp(). To RESET: what was posted is forgotten, its mbufs are freed.
 * Control.
 *
 * @param mask  RCD_QP_ATTR_*: what of @p attr is given
 * @return 0; -EINPROGRESS: the peer's neighbour is being asked for, or requests from before are
 *         being flushed; -ETIMEDOUT: the neighbour did not answer; -ENETUNREACH; -EINVAL: its state
 *         does not permit it, something is missing or out of range; -EPERM: a Q_Key of managers,
 *         without CAP_NET_RAW; -ENODEV, -ENOMEM
 */
int
rcd_local_qp_modify(struct rcd_local_qp *qp, const struct rcd_ctrl_qp_attr *attr, uint32_t mask);

/**
 * Lead a queue pair to RTS, from RESET or wherever an earlier call came to. Control.
 *
 * @param attr  all that its kind needs on the way: port and access or Q_Key; but for datagrams the
 *              vector, path MTU, number and PSN of the peer; PSN of its own; of RC timers, retries
 *              and READs at once
 * @return 0: it is in RTS; -EINPROGRESS: again, after a step of the engine and a round of its
 *         lcore; -EINVAL: it is in another state than those, or as rcd_local_qp_modify()
 */
int
rcd_local_qp_connect(struct rcd_local_qp *qp, const struct rcd_ctrl_qp_attr *attr);

/** Its attributes as they are. Control. @return 0; -ENODEV */
int
rcd_local_qp_query(struct rcd_local_qp *qp, struct rcd_ctrl_qp_attr *attr);

/** Its number, which peers are told. Any thread. */
uint32_t
rcd_local_qp_num(const struct rcd_local_qp *qp);

/* rcd_local_io.c */

/** Its state; RCD_QP_ERR also when the device has gone. On the lcore. */
enum rcd_qp_state
rcd_local_qp_state(const struct rcd_local_qp *qp);

/**
 * Post a send request. It is looked at behind the next rcd_local_ring(): several are posted, and
 * rung for once. What its elements name has to stay as it is until the request is complete; an mbuf
 * that it is given does. Inline data and elements themselves are copied. On the lcore.
 *
 * @param wr    sges, sge_count and inline_data are the caller's; sge_max, inline_max not looked at
 * @param mbuf  freed, with all of its segments, when the request is complete: acknowledged by the
 *              peer (RC), sent (UC, UD), flushed or forgotten, whether it is signalled or not; no
 *              completion of the request is seen before. The library's if 0 is returned, else the
 *              caller's still. Nothing else is asked of it: which bytes are sent, @p wr says. NULL:
 *              none
 * @return 0; -ENOMEM: the queue is full; -EINVAL: more elements or inline bytes than it was made
 *         for, no opcode, one of windows, or its state permits none; -ENODEV: the device has gone
 */
int
rcd_local_post_send(struct rcd_local_qp *qp, const struct rcd_send_wr *wr, struct rte_mbuf *mbuf);

/** Have what was posted looked at, by the next round of the lcore. On the lcore. */
void
rcd_local_ring(struct rcd_local_qp *qp);

/**
 * Post a receive request; it needs no ringing. Its elements are copied; what they name is written
 * until it completes. Of a datagram the first RCD_GRH_LEN bytes are the network header (IPv6, or 20
 * unused bytes and IPv4: struct rcd_cq_slot's sl tells), and byte_len counts them. On the lcore.
 *
 * @return as rcd_local_post_send()
 */
int
rcd_local_post_recv(struct rcd_local_qp *qp, const struct rcd_recv_wr *wr);

/** Send requests that are posted and not complete, as of the last round. On the lcore. */
uint32_t
rcd_local_qp_sends(const struct rcd_local_qp *qp);

/** Receive requests that are posted and not complete, likewise. On the lcore. */
uint32_t
rcd_local_qp_recvs(const struct rcd_local_qp *qp);

/**
 * Take completions, the oldest first. On the lcore.
 *
 * @param slots  room for @p count
 * @return how many were taken; -ENODEV: the device has gone, with all that nobody took
 */
int
rcd_local_poll_cq(struct rcd_local_cq *cq, struct rcd_cq_slot *slots, uint32_t count);

RCD_API_END

#endif /* RCD_LOCAL_H */
