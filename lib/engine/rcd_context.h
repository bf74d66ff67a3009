/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A context: an open device, with all that was made in it. It is there for as long as a connection
 * uses it, whichever opened it, and ends before that when its device or its segment goes.
 *
 * One connection is the first: who opened it; when that has gone, who joined last. The context is
 * shown by its name, charged to its user, and its process alone makes copies of memory.
 *
 * Threads: the control thread, but for `client` of a context.
 */
#ifndef RCD_CONTEXT_H
#define RCD_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_cm_host.h"
#include "rcd_conn.h"
#include "rcd_ctrl.h"
#include "rcd_lclient.h"
#include "rcd_quota.h"
#include "rcd_segment.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_umem.h"

struct rcd_av;
struct rcd_contexts;
struct rcd_cq_move;
struct rcd_dev;

/** A context. */
struct rcd_context {
	struct rcd_lclient client; /**< as its lcore knows it */
	LIST_ENTRY(rcd_context) link;
	struct rcd_contexts *all; /**< that it is one of */
	struct rcd_dev *dev;
	struct rcd_conn_list conns;   /**< that use it, the first one first */
	struct rcd_quota_entry quota; /**< what was made in it, and itself */
	struct rcd_cm_user cm;
	bool bad_memory; /**< its memory went away under the engine */
	bool followed;   /**< its packets (rcd_context_follow()), since it had a queue pair first */
	bool pages_go;   /**< of its segment, with its end: nobody has to read them any more */
	int wake_fd;     /**< of this context: clients can't take each other's wake-ups away */
	struct rcd_segment segment; /**< whose address is the client's `shm` */
	struct rcd_umem umem;
	struct rcd_cq_move *resizing; /**< a queue that is being resized; NULL: none is */
	struct rcd_table pds;
	struct rcd_table dms; /**< device memory */
	struct rcd_table channels;
	struct rcd_table cqs;
	struct rcd_table srqs;
	struct rcd_table hqps;
	struct rcd_table xrcds; /**< memberships */
	struct rcd_table xqps;  /**< targets that it has open */
	uint32_t ah_count;
	uint32_t flow_number; /**< of the flow that was made last */
	uint32_t raw_count;   /**< queue pairs of raw packets */
};

LIST_HEAD(rcd_context_list, rcd_context);

/** The context that an lcore knows by this. Any thread. */
static inline struct rcd_context *
rcd_context_of(struct rcd_lclient *client)
{
	return (struct rcd_context *)(void *)((uint8_t *)client -
		offsetof(struct rcd_context, client));
}

/** The connection that it is shown by and charged to. */
static inline struct rcd_conn *
rcd_context_first(const struct rcd_context *context)
{
	RCD_ON_CONTROL();
	return LIST_FIRST(&context->conns);
}

/**
 * Open a device for a connection that has no context. Of a connection with an owner, the context
 * stays on its lcore.
 *
 * @param lcore  NULL: one that has few
 * @return 0 or -errno: it has none still
 */
int
rcd_context_open(struct rcd_contexts *all, struct rcd_conn *conn, struct rcd_dev *dev,
	struct rcd_lcore *lcore);

/**
 * A connection joins the context whose segment this is.
 *
 * @return 0; -EINVAL: it has one already, or identifiers of its own; -EBADF: it is of no context
 */
int
rcd_context_join(struct rcd_contexts *all, struct rcd_conn *conn, int fd);

/** A connection uses it no more. The last one ends it. */
void
rcd_context_leave(struct rcd_context *context, struct rcd_conn *conn);

/** Destroy it and all that was made in it, and end its connections. One of them may be served. */
void
rcd_context_end(struct rcd_context *context);

/** A request of this connection is over: what was begun for it and not taken goes. */
void
rcd_context_settle(struct rcd_context *context, const struct rcd_conn *conn);

/** Tell all connections something about the device. */
void
rcd_context_event(struct rcd_context *context, uint32_t type, uint32_t of, uint64_t cookie);

/* rcd_context_move.c */

/**
 * A queue pair is about to be connected. If it is the context's first, the context goes to the
 * lcore that its packets come to, unless it is of a connection with an owner, and as far as that
 * can be told and nothing is under way: all queue
 * pairs are in RESET or INIT and in no group, no completion queue is being resized, no memory of
 * the client is copied, and places were used for 256 at most of either kind of queue.
 *
 * @param av  of packets to the peer
 */
void
rcd_context_follow(
	struct rcd_context *context, const struct rcd_av *av, uint32_t qpn, uint32_t dest_qpn);

/**
 * Take a context to an lcore where others of its XRC domain are, if it is not there and as far as
 * rcd_context_follow() could.
 *
 * @return whether it is there now
 */
bool
rcd_context_bring(struct rcd_context *context, struct rcd_lcore *lcore);

/* rcd_context_objects.c */

/** Take it and all its queue pairs from its lcore; their memory stays. */
void
rcd_context_objects_leave(struct rcd_context *context);

/** Take all its queue pairs, and its queues of XRC domains, to ERR: its memory went away. */
void
rcd_context_objects_fail(struct rcd_context *context);

/** Free all that no lcore knows any more, but for what is in the segment. */
void
rcd_context_objects_free(struct rcd_context *context);

/* rcd_context_mem.c */

/** Make and map its segment. What fails halfway is for rcd_context_mem_end(). @return 0; -errno */
int
rcd_context_mem_make(struct rcd_context *context);

/** Make the tables of its memory, behind the segment and the table of keys. @return 0; -ENOMEM */
int
rcd_context_mem_open(struct rcd_context *context);

/**
 * Make its queue of copies.
 *
 * @param conn  that asks
 * @return 0; -EOPNOTSUPP: it is not the first, or its context is of an XRC domain or has raw
 *         packets; -EBUSY: there is one; -EPERM: its maker is gone; -ENOMEM; -EINPROGRESS: as
 *         rcd_segment_alloc()
 */
int
rcd_context_mem_copy(
	struct rcd_context *context, const struct rcd_conn *conn, struct rcd_ctrl_copy_rep *rep);

/** Nobody makes copies any more: what is out fails, and what comes. */
void
rcd_context_mem_break(struct rcd_context *context);

/** Why a request of this connection may have no bytes reached by copies; 0: it may. */
int
rcd_context_mem_copies(const struct rcd_context *context, const struct rcd_conn *conn);

/** It ends: unmap all that was shared, and tell what is untold of what was taken away. */
void
rcd_context_mem_close(struct rcd_context *context);

/** Unmap its segment, and free what is left of its memory. */
void
rcd_context_mem_end(struct rcd_context *context);

/** It took memory away that it had shared: counted, and told once. */
void
rcd_context_mem_blame(struct rcd_context *context);

/** The same, if it gave back what it had taken away, and that is untold. */
void
rcd_context_mem_settle(struct rcd_context *context);

#endif /* RCD_CONTEXT_H */
