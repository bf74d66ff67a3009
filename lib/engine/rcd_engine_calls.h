/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the files of the engine offer each other. Included by rcd_engine_priv.h, behind the structs,
 * and by nothing else.
 */
#ifndef RCD_ENGINE_CALLS_H
#define RCD_ENGINE_CALLS_H

/* rcd_dev.c */

/** Counters of a device on this lcore. */
static inline struct rcd_counters *
rcd_dev_counters(const struct rcd_dev *dev, const struct rcd_lcore *lcore)
{
	return &dev->counters[lcore->index];
}

/** Whether the address belongs to the device now. @return its place in rcd_dev_gids(); -1: no */
int
rcd_dev_gid_find(const struct rcd_dev *dev, const struct rcd_gid *gid);

struct rcd_dev *
rcd_dev_find(struct rcd_engine *engine, const char *name);

/** By its number, which no other device of this engine's life has. @return NULL: it went */
struct rcd_dev *
rcd_dev_by_serial(const struct rcd_engine *engine, uint32_t serial);

/** A counter of a device: of all lcores and of the control thread. */
uint64_t
rcd_dev_sum(const struct rcd_dev *dev, enum rcd_counter counter);

/** Replace the GID table. */
int
rcd_dev_set_gids(struct rcd_dev *dev, const struct rcd_gid_table *table);

/** Add or remove an address; the others keep their places. @return 0, -EEXIST, -ENOENT, -ENOSPC */
int
rcd_dev_addr_add(struct rcd_dev *dev, const struct rcd_addr *addr);
int
rcd_dev_addr_del(struct rcd_dev *dev, const struct rcd_gid *gid);

/** Speed of a device's link. @return Mb/s; 0: not known */
uint32_t
rcd_dev_speed_mbps(const struct rcd_dev *dev);

/** Look at the link again; tell clients when it changed. */
void
rcd_dev_check_link(struct rcd_dev *dev);

/** The netdev's MTU changed. */
void
rcd_dev_set_mtu(struct rcd_dev *dev, uint32_t mtu);

/** Tell all clients of a device. */
void
rcd_dev_event(struct rcd_dev *dev, uint32_t type);

/** Remove all devices, at the end. */
void
rcd_dev_del_all(struct rcd_engine *engine);

/* rcd_attach.c */

/** Find or make the port of a device. @return 0 or -errno with a sentence */
int
rcd_attach(struct rcd_dev *dev, char *error, size_t error_len);

/** Make the rings of a wire between a device and its peer. */
int
rcd_attach_wire_rings(struct rcd_dev *dev, char *error, size_t error_len);

/** Close the port. */
void
rcd_detach(struct rcd_dev *dev);

/** Free the rings by which a device sends on its wire, when both ends are detached. */
void
rcd_detach_wire_rings(const struct rcd_dev *dev);

/* rcd_netlink.c */

int
rcd_netlink_open(struct rcd_engine *engine);
void
rcd_netlink_close(struct rcd_engine *engine);
void
rcd_netlink_ready(struct rcd_engine *engine);
int
rcd_netlink_fd(const struct rcd_engine *engine);

struct nlmsghdr;

/** Have the kernel do something, with an acknowledgement. @return 0 or -errno */
int
rcd_netlink_request(struct rcd_engine *engine, struct nlmsghdr *nlh);

/** Read a netdev's link, addresses and neighbours. @return 0 or -errno */
int
rcd_netlink_sync(struct rcd_dev *dev);

/** Make the kernel look for a neighbour. */
void
rcd_netlink_probe(struct rcd_dev *dev, const struct rcd_gid *gid);

/** The next hop towards an address. @return 0, or -ENETUNREACH */
int
rcd_netlink_route(struct rcd_dev *dev, const struct rcd_gid *dgid, struct rcd_gid *hop);

/**
 * The netdev that packets to an address leave by, and the address that they come from.
 *
 * @param ifindex  the netdev wanted, 0: any; set
 * @param src      set, when the kernel says it
 * @return 0, or -ENETUNREACH
 */
int
rcd_netlink_source(struct rcd_engine *engine, const struct rcd_gid *dgid, uint32_t *ifindex,
	struct rcd_gid *src);

/* rcd_session.c */

void
rcd_session_accept(struct rcd_engine *engine);

/** The socket of a session can be read. */
void
rcd_session_ready(struct rcd_session *session);

/** Destroy all that a session has, and tell its client. It may be the one that is being served. */
void
rcd_session_end(struct rcd_session *session);

/** Destroy a session and all that it has. */
void
rcd_session_close(struct rcd_session *session);

/** Open a device for a session: segment and tables. @return 0 or -errno */
int
rcd_session_open(struct rcd_session *session, struct rcd_dev *dev);

/** A session's request waits for a neighbour, or no more. */
void
rcd_session_park(struct rcd_session *session, bool parked);

/** Go on with requests that are not finished, of a few sessions in turns. */
void
rcd_session_go_on(struct rcd_engine *engine);

/** Try parked requests again. */
void
rcd_session_unpark(struct rcd_engine *engine);

/** Memory for what an lcore touches, near it, zeroed; free() gives it back. */
void *
rcd_session_zalloc(const struct rcd_session *session, size_t bytes);

/**
 * A stream for events: the client reads the first end, and we send to the second without ever
 * blocking. A socket and no pipe: who reads a pipe holds its lock while the page that he reads into
 * comes, and who writes waits for that lock however it was opened. Our end is charged.
 *
 * @return 0 or -errno
 */
int
rcd_session_stream(struct rcd_session *session, int ends[2]);

/** Close our end of one. */
void
rcd_session_stream_close(struct rcd_session *session, int sock);

struct rcd_session *
rcd_session_find(struct rcd_engine *engine, uint32_t serial);

/** Send an asynchronous event; one that does not fit is counted. */
void
rcd_session_event(struct rcd_session *session, uint32_t type, uint32_t of, uint64_t cookie);

/* rcd_guest.c */

/** A new connection joins the context whose segment this is. @return 0; -EBADF: of none */
int
rcd_guest_join(struct rcd_session *guest, int fd);

/** A connection has ended. @return whether a guest took its place, and the session lives on */
bool
rcd_guest_leave(struct rcd_session *session);

/** A context ends: so do the connections of its guests. */
void
rcd_guest_end_all(struct rcd_session *host);

/** Tell all connections of a context something about its device. */
void
rcd_guest_event(struct rcd_session *host, uint32_t type, uint32_t of, uint64_t cookie);

/* rcd_serve.c */

/** A reply's fields and descriptors. */
struct rcd_reply {
	struct rcd_ctrl_msg msg;
	struct rcd_ctrl_fds fds;
	uint32_t keep; /**< bits of descriptors that are not to be closed after sending */
};

/**
 * Serve a request that passed rcd_ctrl_req_check().
 *
 * @param via  the connection that it came by
 * @param fds  of the request; what is kept is set to -1
 * @return 0 with the body filled; -errno; -EAGAIN: it waits for a neighbour; -EINPROGRESS: serve it
 *         again in the next round
 */
int
rcd_serve(struct rcd_session *via, const struct rcd_ctrl_msg *req, struct rcd_ctrl_fds *fds,
	struct rcd_reply *reply);

/* rcd_hcq.c */

int
rcd_verbs_cq_create(struct rcd_session *session, const struct rcd_ctrl_cq_req *req,
	struct rcd_ctrl_cq_rep *rep);
int
rcd_verbs_cq_resize(struct rcd_session *session, const struct rcd_ctrl_cq_resize_req *req,
	struct rcd_ctrl_cq_rep *rep);
int
rcd_verbs_cq_destroy(struct rcd_session *session, uint32_t handle);
int
rcd_verbs_cq_modify(struct rcd_session *session, const struct rcd_ctrl_cq_modify_req *req);
/* rcd_verbs.c */

int
rcd_verbs_srq_create(struct rcd_session *session, const struct rcd_ctrl_srq_req *req,
	struct rcd_ctrl_srq_rep *rep);
int
rcd_verbs_srq_modify(struct rcd_session *session, const struct rcd_ctrl_srq_modify_req *req);
int
rcd_verbs_srq_query(
	struct rcd_session *session, uint32_t handle, struct rcd_ctrl_srq_query_rep *rep);
int
rcd_verbs_srq_destroy(struct rcd_session *session, uint32_t handle);
int
rcd_verbs_qp_create(struct rcd_session *session, const struct rcd_ctrl_qp_req *req,
	struct rcd_ctrl_qp_rep *rep);

/**
 * Whether a queue pair is of the process whose request is served: of its context, or of one that
 * the process has by another connection, as with librdmacm's identifiers.
 */
bool
rcd_verbs_qpn_is_of(const struct rcd_session *session, uint32_t qpn);

int
rcd_verbs_qp_modify(struct rcd_session *session, const struct rcd_ctrl_qp_modify_req *req);
int
rcd_verbs_qp_query(struct rcd_session *session, uint32_t handle, struct rcd_ctrl_qp_attr *attr);
int
rcd_verbs_qp_destroy(struct rcd_session *session, uint32_t handle);

/** Unbind the type 2 windows of a queue pair that can bind no more, some in each poll. */
void
rcd_verbs_unbind(struct rcd_hqp *hqp);

int
rcd_verbs_mcast(struct rcd_session *session, const struct rcd_ctrl_mcast_req *req, bool attach);
int
rcd_verbs_ah_create(
	struct rcd_session *session, const struct rcd_ctrl_ah_req *req, uint32_t *handle);
int
rcd_verbs_ah_destroy(struct rcd_session *session, const struct rcd_ctrl_ah_handle *req);

/** Take a session and all its queue pairs from its lcore; their memory stays. */
void
rcd_verbs_end(struct rcd_session *session);

/** Take all queue pairs of a session to ERR: its memory or its device went away. */
void
rcd_verbs_fail_all(struct rcd_session *session);

/* rcd_session_mem.c */

/** Make and map a segment. What fails halfway is for rcd_session_end(). @return 0 or -errno */
int
rcd_session_mem_make(struct rcd_session *session);

/** Make the tables of its memory, behind the segment and the table of keys. @return 0; -ENOMEM */
int
rcd_session_mem_open(struct rcd_session *session);

/**
 * Make the queue of copies of a session. Control thread.
 *
 * @return 0; -EOPNOTSUPP: an imported connection asks; -EBUSY: there is one; -EPERM: its maker
 *         is gone; -ENOMEM; -EINPROGRESS: as rcd_segment_alloc()
 */
int
rcd_session_mem_copy(struct rcd_session *session, struct rcd_ctrl_copy_rep *rep);

/** Nobody makes copies any more: what is out fails, and what comes. Control thread. */
void
rcd_session_mem_break(struct rcd_session *session);

/** Why its next request may have no bytes reached by copies; 0: it may. */
int
rcd_session_mem_copies(const struct rcd_session *session);

/** It ends: unmap all that it shared, and tell what is untold of what it took away. */
void
rcd_session_mem_close(struct rcd_session *session);

/** Unmap its segment, and free what is left of its memory. */
void
rcd_session_mem_end(struct rcd_session *session);

/** Reports of the guard: whose memory went away, and what ends by it. Each tick. */
void
rcd_session_mem_check(struct rcd_engine *engine);

/* rcd_telemetry.c */

/** Register the commands for an engine; NULL: there is none any more. */
void
rcd_telemetry_init(struct rcd_engine *engine);

/** Held while the list of devices changes. */
void
rcd_telemetry_lock(void);
void
rcd_telemetry_unlock(void);

#endif /* RCD_ENGINE_CALLS_H */
