/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of the drop-in libibverbs, shared by its files. Objects begin with the struct that
 * applications see.
 *
 *   rcd_vb_device.c  devices and contexts, what they can
 *   rcd_vb_mem.c     protection domains, memory regions and windows, rcd_vb_dm.c device memory
 *   rcd_vb_demand.c  regions that follow what is mapped, and advice about them
 *   rcd_vb_cq.c      completion queues and channels, rcd_vb_cq_ex.c the extended way to poll them
 *   rcd_vb_qp.c      queue pairs and shared receive queues, rcd_vb_wr.c posting to them,
 *                    rcd_vb_qp_ex.c the ibv_wr_* way to post
 *   rcd_vb_addr.c    GIDs, address handles, multicast
 *   rcd_vb_event.c   asynchronous events
 *   rcd_vb_flow.c    flows of raw packets, rcd_vb_counters.c their counters
 *   rcd_vb_text.c    strings and rates
 *   rcd_vb_release.c the rdma-core that all of it is fitted to
 */
#ifndef RCD_VB_H
#define RCD_VB_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/queue.h>

#include "rcd_cl_dmabuf.h"
#include "rcd_cl_mem.h"
#include "rcd_client.h"
#include "rcd_ctrl_verbs.h"

/** A device: never freed, so that pointers stay good. */
struct rcd_vb_device {
	struct ibv_device device;
	/* Providers of others look behind it; zeros are what they find. */
	uint64_t tail[16];
	struct rcd_ctrl_device_rep rep;
	struct rcd_vb_device *next;
};

/** What events and the engine's end are about. */
struct rcd_vb_qp;
struct rcd_vb_cq;
struct rcd_vb_srq;
LIST_HEAD(rcd_vb_qps, rcd_vb_qp);
LIST_HEAD(rcd_vb_cqs, rcd_vb_cq);
LIST_HEAD(rcd_vb_srqs, rcd_vb_srq);

struct rcd_vb_mr;
LIST_HEAD(rcd_vb_mrs, rcd_vb_mr);

/** A context. */
struct rcd_vb_context {
	struct verbs_context base;
	struct rcd_client client;
	struct rcd_ctrl_device_rep rep;
	pthread_mutex_t lock; /**< of the lists */
	struct rcd_vb_qps qps;
	struct rcd_vb_cqs cqs;
	struct rcd_vb_srqs srqs;
	struct rcd_vb_mrs demand;  /**< regions that follow what is mapped */
	pthread_mutex_t flow_lock; /**< of the next two, and all that they lead to */
	LIST_HEAD(, rcd_vb_flow) flows;
	LIST_HEAD(, rcd_vb_counters) counters;
	bool single;    /**< ROCADE_SINGLE_THREADED: no locks */
	bool fatal;     /**< the engine's end was told */
	int cmd_fd;     /**< of an imported context, which it was imported by; -1 */
	uint32_t users; /**< its objects, and who has it open */
};

/** A lock of the data path: uncontended but for applications that share an object. */
struct rcd_vb_lock {
	uint32_t held;
	bool off;
};

/** A protection domain, or a parent domain. */
struct rcd_vb_pd {
	struct ibv_pd pd;
	struct ibv_pd *parent; /**< of a parent domain */
	struct ibv_td *td;
	uint32_t users; /**< parent domains made of it */
};

/** A region. */
struct rcd_vb_mr {
	struct ibv_mr mr;
	struct rcd_cl_dmabuf cl; /**< of memory by its address, nothing of that is mapped */
	uint32_t access;
	bool fixed;                   /**< it can not be registered anew */
	LIST_ENTRY(rcd_vb_mr) link;   /**< of those that follow what is mapped */
	struct rcd_cl_mr_attr demand; /**< what it was made or changed to be */
};

/** An address handle. */
struct rcd_vb_ah {
	struct ibv_ah ah;
};

/** Counters: points, each of which adds a number of flows to one place. */
struct rcd_vb_counters {
	struct ibv_counters counters;
	LIST_ENTRY(rcd_vb_counters) link;
	SLIST_HEAD(, rcd_vb_point) points;
	uint32_t made; /**< flows that were made with it */
};

/** A flow. */
struct rcd_vb_flow {
	struct ibv_flow flow;
	LIST_ENTRY(rcd_vb_flow) link;
	struct rcd_vb_counters *counters; /**< that it was made with; NULL */
};

/** An XRC domain. */
struct rcd_vb_xrcd {
	struct ibv_xrcd xrcd;
	uint32_t handle;
};

/** A channel of completion events. */
struct rcd_vb_channel {
	struct ibv_comp_channel channel;
	uint32_t handle;
};

/** A completion queue. */
struct rcd_vb_cq {
	struct ibv_cq_ex cq;
	struct rcd_cl_cq cl;
	struct rcd_vb_lock lock;
	LIST_ENTRY(rcd_vb_cq) link;
	uint32_t comp_delivered;
	uint32_t async_delivered;
	struct rcd_cq_slot at; /**< of the extended poll */
};

/** A shared receive queue. */
struct rcd_vb_srq {
	struct ibv_srq srq;
	struct rcd_cl_srq cl;
	struct rcd_vb_lock lock;
	LIST_ENTRY(rcd_vb_srq) link;
	uint32_t delivered;
	uint32_t depth;
	uint32_t max_sge;
	uint32_t number; /**< of XRC; 0: it is none */
};

/** A queue pair. */
struct rcd_vb_qp {
	struct ibv_qp_ex qp;
#ifndef RCD_VERBS_FLUSH
	/* Of newer headers the last member of that, for programs that were built with them. */
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, size_t len,
		uint8_t placement, uint8_t selectivity);
#endif
	struct rcd_cl_qp cl;
	struct rcd_vb_lock sq_lock;
	struct rcd_vb_lock rq_lock;
	LIST_ENTRY(rcd_vb_qp) link;
	uint32_t delivered;
	struct ibv_qp_cap cap;
	bool sig_all;
	/* A chain of ibv_wr_*: where it began, and the request being made. */
	uint32_t begin;
	int wr_err;
	bool wr_open;
	struct rcd_send_wr wr;
	struct rcd_sge sges[RCD_SGE_MAX];
	uint8_t inline_data[RCD_INLINE_MAX];
};

#ifndef RCD_VERBS_FLUSH
static_assert(offsetof(struct rcd_vb_qp, wr_flush) == sizeof(struct ibv_qp_ex), "no gap");
#endif

/** Our context of the one that applications have. */
static inline struct rcd_vb_context *
rcd_vb_context(struct ibv_context *context)
{
	return (struct rcd_vb_context *)((uint8_t *)context -
		offsetof(struct verbs_context, context));
}

/** The session of a context with the engine. */
static inline struct rcd_client *
rcd_vb_client(struct ibv_context *context)
{
	return &rcd_vb_context(context)->client;
}

/** Our completion queue of the one that applications have. */
static inline struct rcd_vb_cq *
rcd_vb_cq(struct ibv_cq *cq)
{
	return (struct rcd_vb_cq *)(void *)cq;
}

/** Our queue pair, likewise. */
static inline struct rcd_vb_qp *
rcd_vb_qp(struct ibv_qp *qp)
{
	return (struct rcd_vb_qp *)(void *)qp;
}

/** Our shared receive queue, likewise. */
static inline struct rcd_vb_srq *
rcd_vb_srq(struct ibv_srq *srq)
{
	return (struct rcd_vb_srq *)(void *)srq;
}

/** Wait until nobody else has the lock, and take it. */
static inline void
rcd_vb_lock(struct rcd_vb_lock *lock)
{
	if (lock->off)
		return;
	while (__atomic_exchange_n(&lock->held, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock->held, __ATOMIC_RELAXED))
			sched_yield();
}

/** Give it back. */
static inline void
rcd_vb_unlock(struct rcd_vb_lock *lock)
{
	if (!lock->off)
		__atomic_store_n(&lock->held, 0, __ATOMIC_RELEASE);
}

/** Rights that the transport knows. */
#define RCD_VB_ACCESS_KNOWN                                                                        \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |            \
		IBV_ACCESS_FLUSH_GLOBAL)

/** Flags of send work requests that the engine knows. */
#define RCD_VB_SEND_FLAGS                                                                          \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE |               \
		IBV_SEND_IP_CSUM)

/**
 * Rights of a window: what it has of itself, also such as are refused. Local rights in the mask
 * mean nothing.
 */
#define RCD_VB_MW_ACCESS                                                                           \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |             \
		IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)

/** A negative errno value as the verbs return it. */
static inline int
rcd_vb_ret(int err)
{
	return err < 0 ? -err : 0;
}

/* rcd_vb_object.c */

/** Memory for an object of a context, zeroed. @return NULL and errno */
void *
rcd_vb_new(struct ibv_context *context, size_t bytes);

/**
 * Free an object of a context. A garbage collector may close a device before it destroys what was
 * made with it, so a closed context stays until the last of its objects goes; what is asked of the
 * engine meanwhile fails as if there were none.
 */
void
rcd_vb_free(struct ibv_context *context, void *object);

/** Who has a context open has it no more. The last user frees it. */
void
rcd_vb_leave(struct rcd_vb_context *context);

/** Whether what is made of it is used by one thread at a time, as its owner says. */
bool
rcd_vb_single_threaded(const struct ibv_pd *pd);

/** Applications have the shared receive queue from now on. */
void
rcd_vb_srq_enter(struct rcd_vb_srq *srq, struct ibv_pd *pd, void *srq_context);

/** Likewise a queue pair, of which all is filled in but its lock. */
void
rcd_vb_qp_enter(struct rcd_vb_qp *qp);

/* rcd_vb_device.c */

/** Say something on stderr, when ROCADE_DEBUG is set. */
void
rcd_vb_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* rcd_vb_cq.c; functions of a name that rdma-core has do and return what ibv_* of that name do. */

int
rcd_vb_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int
rcd_vb_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int
rcd_vb_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* rcd_vb_cq_ex.c */

struct ibv_cq_ex *
rcd_vb_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

/* rcd_vb_cq.c */

/** Take completions, or what is flushed after the engine's end. */
uint32_t
rcd_vb_take(struct rcd_vb_cq *cq, struct rcd_cq_slot *slots, uint32_t count);

/** Make a completion queue. @return NULL and errno */
struct rcd_vb_cq *
rcd_vb_cq_make(struct ibv_context *context, uint32_t cqe, void *cq_context,
	struct ibv_comp_channel *channel, bool single);

/* rcd_vb_mem.c; functions of a name that rdma-core has do and return what ibv_* of that name do. */

/** Whether there are these rights. @return 0; -EOPNOTSUPP: no memory here has them; -EINVAL */
int
rcd_vb_access_check(int access);

struct ibv_mw *
rcd_vb_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int
rcd_vb_dealloc_mw(struct ibv_mw *mw);
struct ibv_mr *
rcd_vb_alloc_null_mr(struct ibv_pd *pd);
struct ibv_td *
rcd_vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr);
int
rcd_vb_dealloc_td(struct ibv_td *td);
struct ibv_pd *
rcd_vb_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr);

/* rcd_vb_dm.c; functions of a name that rdma-core has do and return what ibv_* of that name do. */

struct ibv_dm *
rcd_vb_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr);
int
rcd_vb_free_dm(struct ibv_dm *dm);
struct ibv_mr *
rcd_vb_reg_dm_mr(
	struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t len, unsigned int access);

/* rcd_vb_demand.c */

/**
 * What the verbs ask of a region that follows what is mapped, as the client's library has it. Of
 * others nothing is changed.
 *
 * @return 0; EINVAL: no such range
 */
int
rcd_vb_demand_attr(struct rcd_cl_mr_attr *attr);

/** A region is made, or changed, to be this. */
void
rcd_vb_demand_set(struct rcd_vb_mr *mr, const struct rcd_cl_mr_attr *attr);

/** A region ends. */
void
rcd_vb_demand_end(struct rcd_vb_mr *mr);

/** As ibv_advise_mr(). */
int
rcd_vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sges, uint32_t count);

/* rcd_vb_qp.c; functions of a name that rdma-core has do and return what ibv_* of that name do. */

struct ibv_qp *
rcd_vb_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
int
rcd_vb_modify_qp_rate_limit(struct ibv_qp *ibv, struct ibv_qp_rate_limit_attr *attr);
struct ibv_srq *
rcd_vb_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);

/* rcd_vb_xrc.c; functions of a name that rdma-core has do and return what ibv_* of that name do. */

struct ibv_xrcd *
rcd_vb_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int
rcd_vb_close_xrcd(struct ibv_xrcd *xrcd);
int
rcd_vb_get_srq_num(struct ibv_srq *srq, uint32_t *number);
struct ibv_qp *
rcd_vb_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);

/** ibv_create_srq_ex() of type XRC. */
struct ibv_srq *
rcd_vb_create_xrc_srq(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);

/** ibv_create_qp_ex() of a target. */
struct ibv_qp *
rcd_vb_create_target(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* rcd_vb_flow.c; functions of a name that rdma-core has do and return what ibv_* of that do. */

struct ibv_flow *
rcd_vb_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int
rcd_vb_destroy_flow(struct ibv_flow *flow);

/* rcd_vb_counters.c; likewise. */

struct ibv_counters *
rcd_vb_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr);
int
rcd_vb_destroy_counters(struct ibv_counters *counters);
int
rcd_vb_attach_counters_point_flow(
	struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
int
rcd_vb_read_counters(
	struct ibv_counters *counters, uint64_t *values, uint32_t count, uint32_t flags);

/** A flow is there: it counts from now on for the counters that it was made with. */
void
rcd_vb_counters_enter(struct rcd_vb_flow *flow);

/** It is gone, and its counters keep what it counted. Its context's flow_lock is held. */
void
rcd_vb_counters_leave(struct rcd_vb_flow *flow, const struct rcd_ctrl_flow_counts *counts);

/* rcd_vb_wr.c; functions of a name that rdma-core has do and return what ibv_* of that name do. */

int
rcd_vb_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int
rcd_vb_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int
rcd_vb_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int
rcd_vb_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* rcd_vb_qp_ex.c */

/** Fill in the functions that ibv_wr_* call. */
void
rcd_vb_wr_functions(struct rcd_vb_qp *qp);

#endif /* RCD_VB_H */
