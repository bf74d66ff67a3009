/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the files of the engine offer each other. Included by rcd_engine_priv.h, behind the structs,
 * and by nothing else.
 */
#ifndef RCD_ENGINE_CALLS_H
#define RCD_ENGINE_CALLS_H

/* rcd_dev.c */

/** Whether the address belongs to the device now. @return its place in the table; -1: no */
int
rcd_dev_gid_find(const struct rcd_dev *dev, const struct rcd_gid *gid);

struct rcd_dev *
rcd_dev_find(struct rcd_engine *engine, const char *name);

/** By its number, which no other device of this engine's life has. @return NULL: it went */
struct rcd_dev *
rcd_dev_by_serial(const struct rcd_engine *engine, uint32_t serial);

/** Another MAC from now on. @return 0; -ENOMEM: it has the old one */
int
rcd_dev_set_mac(struct rcd_dev *dev, const uint8_t *mac);

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

/** As rcd_engine_dev_add() and rcd_engine_dev_del(), from within a step. */
int
rcd_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len);
int
rcd_dev_del(struct rcd_engine *engine, const char *name);

/** As rcd_engine_dev_set(), from within a step. */
int
rcd_dev_set(struct rcd_engine *engine, const char *name, const char *key, const char *val,
	char *error, size_t error_len);

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

/* rcd_hcq.c */

int
rcd_verbs_cq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_req *req, struct rcd_ctrl_cq_rep *rep);
int
rcd_verbs_cq_resize(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_cq_resize_req *req, struct rcd_ctrl_cq_rep *rep);
int
rcd_verbs_cq_destroy(struct rcd_context *context, uint32_t handle);
int
rcd_verbs_cq_modify(struct rcd_context *context, const struct rcd_ctrl_cq_modify_req *req);
/* rcd_verbs.c */

int
rcd_verbs_srq_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_srq_req *req, struct rcd_ctrl_srq_rep *rep);
int
rcd_verbs_srq_modify(struct rcd_context *context, const struct rcd_ctrl_srq_modify_req *req);
int
rcd_verbs_srq_query(
	struct rcd_context *context, uint32_t handle, struct rcd_ctrl_srq_query_rep *rep);
int
rcd_verbs_srq_destroy(struct rcd_context *context, uint32_t handle);
int
rcd_verbs_qp_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_qp_req *req, struct rcd_ctrl_qp_rep *rep);

/**
 * Whether a queue pair is of a connection's process: of its context, or of one that the process has
 * by another connection, as with librdmacm's identifiers.
 */
bool
rcd_verbs_qpn_is_of(const struct rcd_conn *conn, uint32_t qpn);

int
rcd_verbs_qp_modify(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_qp_modify_req *req);
int
rcd_verbs_qp_query(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_qp_attr *attr);
int
rcd_verbs_qp_destroy(struct rcd_context *context, uint32_t handle);

/** Unbind the type 2 windows of a queue pair that can bind no more, some in each poll. */
void
rcd_verbs_unbind(struct rcd_hqp *hqp);

int
rcd_verbs_mcast(struct rcd_context *context, const struct rcd_ctrl_mcast_req *req, bool attach);
int
rcd_verbs_ah_create(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_ah_req *req, uint32_t *handle);
int
rcd_verbs_ah_destroy(struct rcd_context *context, const struct rcd_ctrl_ah_handle *req);

/** Take a context and all its queue pairs from its lcore; their memory stays. */
void
rcd_verbs_end(struct rcd_context *context);

/** Take all queue pairs of a context to ERR: its memory or its device went away. */
void
rcd_verbs_fail_all(struct rcd_context *context);

/* rcd_telemetry.c */

/** Register the commands for an engine; NULL: there is none any more. */
void
rcd_telemetry_init(struct rcd_engine *engine);

/** Held while the control thread works: telemetry reads what it likes when it rests. */
void
rcd_telemetry_lock(void);
void
rcd_telemetry_unlock(void);

#endif /* RCD_ENGINE_CALLS_H */
