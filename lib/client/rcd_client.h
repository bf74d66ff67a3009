/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The client half: a session with the engine, its segment mapped, requests, and the queues that an
 * application posts to and polls. No verbs names, no EAL.
 *
 * Requests (rcd_client_call() and all that is built on it) may come from any thread; they take
 * turns. A queue belongs to one thread at a time; the caller sees to that.
 */
#ifndef RCD_CLIENT_H
#define RCD_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "rcd_ctrl.h"
#include "rcd_shm.h"
#include "rcd_wqe.h"

/** A session. Create with rcd_client_connect(); members are private but for those noted. */
struct rcd_client {
	int sock;
	uint32_t number; /**< of the last request */
	pthread_mutex_t lock;
	struct rcd_shm_hdr *shm; /**< NULL until rcd_client_open() */
	uint64_t shm_bytes;      /**< of its part in small pages */
	uint64_t huge_bytes;     /**< of that in hugepages, mapped behind it */
	int wake_fd;
	pid_t pid;     /**< of the process that has the segment mapped; 0: none has */
	int seg_fd;    /**< readable: of the segment; who has it may import the session */
	int events_fd; /**< readable: stream of struct rcd_ctrl_event; it ends with the engine */
	bool yield;    /**< readable: cores are scarce */
	uint32_t dead; /**< the engine is gone, or this is a forked child; atomic */
	uint32_t empty_polls;
	struct rcd_cl_copy *copy; /**< who copies for the engine (rcd_cl_copy.h); NULL: nobody */
	uint64_t copy_offset;     /**< of the queue of copies in the segment; 0: not made yet */
	struct rcd_ctrl_hello_rep engine; /**< readable */
};

/**
 * Connect to the engine and agree on versions.
 *
 * @param path  of its socket; NULL: where rcd_cl_place.h looks
 * @return 0; -ENOENT or -ECONNREFUSED: no engine there; -EACCES: not for this user;
 *         -EPROTONOSUPPORT: other version, see client->engine; -EUSERS: too many clients
 */
int
rcd_client_connect(struct rcd_client *client, const char *path);

/** Close the session. All that belongs to it is gone then; calls give -EIO as without an engine. */
void
rcd_client_close(struct rcd_client *client);

/* rcd_cl_call.c */

/**
 * Send a request and wait for its reply.
 *
 * @param op       the request
 * @param req      its body, of the size that the operation has
 * @param rep      body of the reply; NULL: not wanted
 * @param fds_in   to send along, still the caller's; NULL: none
 * @param fds_out  received ones, the caller's to close; NULL: none are expected
 * @return 0; the engine's -errno; -EIO when the engine is gone
 */
int
rcd_client_call(struct rcd_client *client, enum rcd_ctrl_op op, const void *req, void *rep,
	const struct rcd_ctrl_fds *fds_in, struct rcd_ctrl_fds *fds_out);

/* rcd_client.c */

/** Open a device for this session: map the segment. @param index of struct rcd_ctrl_device_rep */
int
rcd_client_open(struct rcd_client *client, uint32_t index);

/**
 * Instead of opening: share a session that another connection opened, with all of its objects.
 *
 * @param seg_fd  of that session; still the caller's
 * @param index   set to the device's
 * @return 0; -EBADF: it is of no session of this engine
 */
int
rcd_client_import(struct rcd_client *client, int seg_fd, uint32_t *index);

/** Whether this is a forked child of who opened the session: nothing of it is mapped here. */
static inline bool
rcd_client_forked(const struct rcd_client *client)
{
	return client->pid != 0 && client->pid != getpid();
}

/** Whether the engine is gone. Cheap: what is known. */
static inline bool
rcd_client_dead(const struct rcd_client *client)
{
	return __atomic_load_n(&client->dead, __ATOMIC_RELAXED) != 0;
}

/* rcd_cl_call.c */

/**
 * Look whether the engine is gone, by a system call. Pollers call it now and then.
 *
 * @return whether it is
 */
bool
rcd_client_check(struct rcd_client *client);

/** A channel or the event stream has ended: the engine is gone, or has dropped this session. */
void
rcd_client_lost(struct rcd_client *client);

/** After a fork: this process has no session any more; what it calls fails with -EIO. */
void
rcd_client_poison(struct rcd_client *client);

/** A completion queue, the client's side. */
struct rcd_cl_cq {
	struct rcd_client *client;
	struct rcd_shm_cq *shm;
	struct rcd_cq_slot *slots;
	uint32_t mask;
	uint32_t handle;
	uint32_t consumer;
	uint32_t arm; /**< as last stored */
};

/** A send, receive or shared receive queue, the client's side. */
struct rcd_cl_wq {
	struct rcd_shm_wq *shm;
	uint8_t *slots;
	uint32_t mask;
	uint32_t stride;
	uint32_t producer;
	uint32_t flushed; /**< work requests before this were reported after the engine's end */
};

/** A queue pair, the client's side. */
struct rcd_cl_qp {
	struct rcd_client *client;
	struct rcd_cl_wq sq;
	struct rcd_cl_wq rq; /**< mask and slots 0 with a shared receive queue */
	uint32_t handle;
	uint32_t qpn;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	bool datagram;
	bool has_rq;
	bool target; /**< of XRC: it has no queues, and its handle is one of targets */
};

/** A shared receive queue, the client's side. */
struct rcd_cl_srq {
	struct rcd_client *client;
	struct rcd_cl_wq wq;
	uint32_t handle;
	uint32_t max_sge;
};

/* rcd_cl_queue.c */

/** Make a completion queue. @return 0 or -errno */
int
rcd_cl_cq_create(
	struct rcd_client *client, const struct rcd_ctrl_cq_req *req, struct rcd_cl_cq *cq);

/** Move a completion queue to a ring of at least this depth. What is not polled moves along. */
int
rcd_cl_cq_resize(struct rcd_cl_cq *cq, uint32_t depth);

/** Make a shared receive queue. @return 0 or -errno */
int
rcd_cl_srq_create(
	struct rcd_client *client, const struct rcd_ctrl_srq_req *req, struct rcd_cl_srq *srq);

/**
 * Move a shared receive queue to a ring of at least this depth, with what is posted. Nobody posts
 * meanwhile.
 *
 * @param limit  to arm with it; NULL: that of the queue stays
 * @return 0 or -errno, then all is as before; -EINVAL also when more is posted than that, or the
 *         limit exceeds the ring
 */
int
rcd_cl_srq_resize(struct rcd_cl_srq *srq, uint32_t depth, const uint32_t *limit);

/** The same of an XRC domain. @param number  set: peers name it by that */
int
rcd_cl_xsrq_create(struct rcd_client *client, const struct rcd_ctrl_xsrq_req *req,
	struct rcd_cl_srq *srq, uint32_t *number);

/** Make a queue pair. @return 0 or -errno */
int
rcd_cl_qp_create(
	struct rcd_client *client, const struct rcd_ctrl_qp_req *req, struct rcd_cl_qp *qp);

/** Set attributes; to RESET its queues begin anew. @return 0 or -errno */
int
rcd_cl_qp_modify(struct rcd_cl_qp *qp, const struct rcd_ctrl_qp_attr *attr, uint32_t mask);

/** Destroy an object by its handle. @return 0 or -errno */
int
rcd_cl_destroy(struct rcd_client *client, enum rcd_ctrl_op op, uint32_t handle);

/** Room in a queue. @return slots that are free */
static inline uint32_t
rcd_cl_room(const struct rcd_cl_wq *wq)
{
	return wq->mask + 1 - (wq->producer - rcd_shm_load(&wq->shm->consumer));
}

/**
 * Put a send work request into the queue; it is sent after rcd_cl_ring().
 *
 * @return 0; -ENOMEM when the queue is full; -EINVAL for more elements or inline bytes than the
 *         queue pair has; -EIO when the engine is gone
 */
int
rcd_cl_post_send(struct rcd_cl_qp *qp, const struct rcd_send_wr *wr);

/** Show the engine what was put. Once for a chain of work requests. */
void
rcd_cl_ring(struct rcd_cl_qp *qp);

/**
 * Post a receive work request.
 *
 * @param in_error  the queue pair is in ERR, where somebody has to be told
 * @return as rcd_cl_post_send()
 */
int
rcd_cl_post_recv(struct rcd_cl_qp *qp, const struct rcd_recv_wr *wr, bool in_error);

/** Post to a shared receive queue. @return as rcd_cl_post_send() */
int
rcd_cl_post_srq_recv(struct rcd_cl_srq *srq, const struct rcd_recv_wr *wr);

/**
 * Take completions.
 *
 * @param slots  room for @p count
 * @return how many; 0 also when the engine is gone: then rcd_cl_flush() has the rest
 */
uint32_t
rcd_cl_poll(struct rcd_cl_cq *cq, struct rcd_cq_slot *slots, uint32_t count);

/**
 * After the engine's end, when rcd_cl_poll() has no more: the next work request that has no
 * completion, as one that was flushed.
 *
 * @param cq    of this queue
 * @param recv  of the receive queue
 * @return whether there was one
 */
bool
rcd_cl_flush(struct rcd_cl_qp *qp, const struct rcd_cl_cq *cq, bool recv, struct rcd_cq_slot *slot);

/** Forget the completions of a queue pair that were not polled: it begins anew. */
void
rcd_cl_cq_clean(struct rcd_cl_cq *cq, uint32_t qpn);

/** Ask for one event at the next completion. */
void
rcd_cl_arm(struct rcd_cl_cq *cq, bool solicited_only);

#endif /* RCD_CLIENT_H */
