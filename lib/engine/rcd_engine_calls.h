/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the files of the engine offer each other. Included by rcd_engine_priv.h, behind the structs,
 * and by nothing else.
 */
#ifndef RCD_ENGINE_CALLS_H
#define RCD_ENGINE_CALLS_H

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
