/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The inside of the drop-in librdmacm, shared by its files. Identifiers, their states and events
 * are the engine's; here are the structs that applications see, and the queue pairs, which are made
 * and led from state to state by the public verbs.
 *
 *   rcd_rm_session.c   the connection to the engine, and devices
 *   rcd_rm_id.c        identifiers: making, addresses, options
 *   rcd_rm_conn.c      connecting and disconnecting
 *   rcd_rm_qp.c        queue pairs and shared receive queues of identifiers
 *   rcd_rm_event.c     channels and their events
 *   rcd_rm_ep.c        endpoints: synchronous use
 *   rcd_rm_mcast.c     multicast groups
 *   rcd_rm_addrinfo.c  names to addresses, and strings
 *   rcd_rs_*.c         rsockets, on top of what is public of all this
 *
 * Locks, outer before inner: that of a channel, that of an identifier, that of a session.
 */
#ifndef RCD_RM_H
#define RCD_RM_H

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rcd_client.h"
#include "rcd_cm_step.h"
#include "rcd_ctrl_verbs.h"

/** A device that identifiers use: opened once for each session. */
struct rcd_rm_device {
	LIST_ENTRY(rcd_rm_device) link;
	struct ibv_context *verbs;
	struct ibv_pd *pd;     /**< the one that queue pairs get unless told otherwise */
	struct ibv_xrcd *xrcd; /**< likewise targets of XRC; NULL: nobody has asked for it */
	uint32_t index;        /**< of struct rcd_ctrl_device_rep */
	uint32_t refs;         /**< identifiers; without any the domain is freed */
	uint8_t max_rd_atomic;
};

/** A connection to the engine. Another one is made when it ends; freed when nobody uses it. */
struct rcd_rm_session {
	LIST_ENTRY(rcd_rm_session) link;
	struct rcd_client client;
	pthread_mutex_t lock; /**< of what follows */
	uint32_t refs;        /**< channels, and one while it is the current one */
	struct rcd_rm_id **ids;
	uint32_t id_room;
	LIST_HEAD(, rcd_rm_device) devices;
};

/** A channel. */
struct rcd_rm_channel {
	struct rdma_event_channel base;
	LIST_ENTRY(rcd_rm_channel) link;
	struct rcd_rm_session *session;
	uint32_t handle;
	pthread_mutex_t lock; /**< the stream has a byte for each event that the engine has */
};

/** A group that an identifier has joined. */
struct rcd_rm_group {
	LIST_ENTRY(rcd_rm_group) link;
	uint32_t handle;
	union ibv_gid gid;
	void *context;
	bool attached;
	bool send_only;
	struct sockaddr_storage addr;
};

/** An identifier. */
struct rcd_rm_id {
	struct rdma_cm_id base;
	struct rcd_rm_session *session;
	struct rcd_rm_device *device;
	uint32_t handle;
	bool sync;             /**< has a channel of its own, and waits for events itself */
	uint8_t state;         /**< enum rcd_rm_state; changed by rcd_rm_step() from any thread */
	uint32_t last_request; /**< of a listener: handle */
	uint32_t in_vain;      /**< waits for that to be looked at, one after the other */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	struct ibv_ece local_ece, remote_ece; /**< of vendors, passed on; 0: none */
	uint8_t connect_len;                  /**< private data of rdma_create_ep() */
	uint8_t connect_data[UINT8_MAX];
	struct ibv_qp_init_attr *qp_init_attr; /**< of an endpoint: for those that it accepts */
	struct ibv_pd *ep_pd;
	pthread_mutex_t lock;
	pthread_cond_t acked;
	uint32_t events_given;
	uint32_t events_acked;
	LIST_HEAD(, rcd_rm_group) groups;
	struct ibv_sa_path_rec path;
};

/** An event. */
struct rcd_rm_event {
	struct rdma_cm_event base;
	struct rcd_rm_id *counted; /**< at whom it was given */
	uint8_t private_data[RCD_CTRL_CM_PRIVATE_MAX];
};

/** Our identifier of the one that applications have. */
static inline struct rcd_rm_id *
rcd_rm_id(struct rdma_cm_id *id)
{
	return (struct rcd_rm_id *)(void *)id;
}

/** Our channel, likewise. */
static inline struct rcd_rm_channel *
rcd_rm_channel(struct rdma_event_channel *channel)
{
	return (struct rcd_rm_channel *)(void *)channel;
}

/** What rdma_* return: 0, or -1 with errno. @param err 0 or -errno */
static inline int
rcd_rm_ret(int err)
{
	if (err >= 0)
		return 0;
	errno = -err;
	return -1;
}

/** The lesser of two. */
static inline uint8_t
rcd_rm_at_most(uint8_t val, uint8_t most)
{
	return val < most ? val : most;
}

/* rcd_rm_session.c */

/** The current session, with a reference for the caller. @return NULL and errno */
struct rcd_rm_session *
rcd_rm_session_get(void);

/** One more reference. */
void
rcd_rm_session_hold(struct rcd_rm_session *session);

/** A reference less; the last one closes the session. */
void
rcd_rm_session_put(struct rcd_rm_session *session);

/** A device by its index, with a reference. @return NULL and errno */
struct rcd_rm_device *
rcd_rm_device_get(struct rcd_rm_session *session, uint32_t index);

/** The domain of XRC that a device's targets and their queues share. @return NULL and errno */
struct ibv_xrcd *
rcd_rm_device_xrcd(struct rcd_rm_session *session, struct rcd_rm_device *device);

/** Give the reference back. */
void
rcd_rm_device_put(struct rcd_rm_session *session, struct rcd_rm_device *device);

/** Know an identifier by its handle. @return 0 or -ENOMEM */
int
rcd_rm_session_add(struct rcd_rm_session *session, struct rcd_rm_id *id);

/** Know it no more; nothing happens when its handle is another one's by now. */
void
rcd_rm_session_del(struct rcd_rm_session *session, const struct rcd_rm_id *id);

/** The identifier with this handle. @return NULL: there is none */
struct rcd_rm_id *
rcd_rm_session_find(struct rcd_rm_session *session, uint32_t handle);

/** A request about an identifier. @return 0 or -errno */
int
rcd_rm_call(struct rcd_rm_id *id, enum rcd_ctrl_op op, const void *req, void *rep);

/** One that has no more than its handle. */
int
rcd_rm_call_handle(struct rcd_rm_id *id, enum rcd_ctrl_op op, void *rep);

/* rcd_rm_id.c */

/** Make an identifier of what the engine has. @return NULL and errno */
struct rcd_rm_id *
rcd_rm_id_make(struct rcd_rm_session *session, struct rdma_event_channel *channel, void *context,
	enum rdma_port_space ps, enum ibv_qp_type type);

/** Forget it; the engine has removed its own, or is asked to elsewhere. */
void
rcd_rm_id_free(struct rcd_rm_id *id);

/** Make one with the type of its queue pair. @return 0, or -1 and errno */
int
rcd_rm_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
	enum rdma_port_space ps, enum ibv_qp_type type);

/** Ask the engine for addresses, device and path. @return 0 or -errno */
int
rcd_rm_id_query(struct rcd_rm_id *id);

/** @return 0; -EAFNOSUPPORT */
int
rcd_rm_addr(const struct sockaddr *from, struct rcd_ctrl_cm_addr *to);

/** Take a step. Any thread. @return false: its state does not permit it, and stays */
static inline bool
rcd_rm_step(struct rcd_rm_id *id, enum rcd_cm_step step)
{
	uint8_t state = __atomic_load_n(&id->state, __ATOMIC_RELAXED);
	uint8_t next;

	do {
		next = state;
		if (!rcd_cm_move(&rcd_cm_rows[step].library, &next))
			return false;
	} while (!__atomic_compare_exchange_n(
		&id->state, &state, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

/** The application does something with an identifier. */
static inline void
rcd_rm_look(struct rcd_rm_id *id)
{
	rcd_rm_step(id, RCD_CM_STEP_LOOKED_AT);
}

/* rcd_rm_channel.c */

/** Make a channel. @param session a reference to it goes with the channel, or back */
struct rdma_event_channel *
rcd_rm_channel_make(struct rcd_rm_session *session);

/** The engine took so many events of the channel back: so many bytes. Channel locked. */
void
rcd_rm_channel_drain(struct rcd_rm_channel *channel, uint32_t count);

/**
 * A channel's stream has ended: so has the engine, or another thread has destroyed the channel.
 * With the kernel a thread that waits in a channel then waits on, and programs end while it does:
 * then this does not return.
 */
void
rcd_rm_channel_ended(const struct rcd_rm_channel *channel);

/* rcd_rm_event.c */

/** Wait for the event of a synchronous identifier. @return 0, or -1 and errno */
int
rcd_rm_complete(struct rcd_rm_id *id);

/* rcd_rm_qp_state.c */

/** A peer has agreed: to RTS, and confirm. @return 0 or -errno */
int
rcd_rm_confirm(struct rcd_rm_id *id);

/** To ERR, if there is a connected queue pair. */
int
rcd_rm_qp_error(struct rcd_rm_id *id);

/** To INIT again, as rights follow from what was agreed on, to RTR and RTS. @return 0 or -errno */
int
rcd_rm_qp_to_rts(struct rcd_rm_id *id);

/** Attributes for a state, applied. @return 0 or -errno */
int
rcd_rm_qp_to(struct rcd_rm_id *id, enum ibv_qp_state state);

/* rcd_rm_group.c */

/** The group of a join. @return NULL: it was left */
struct rcd_rm_group *
rcd_rm_group_find(struct rcd_rm_id *id, uint32_t handle);

/** Attach the queue pair. @return 0 or -errno */
int
rcd_rm_group_attach(struct rcd_rm_id *id, struct rcd_rm_group *group);

/** Forget its groups, when the engine has: the identifier is about to go. */
void
rcd_rm_groups_free(struct rcd_rm_id *id);

#endif /* RCD_RM_H */
