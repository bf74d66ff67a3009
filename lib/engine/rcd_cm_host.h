/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of the CM service: what lib/cma asks for.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CM_HOST_H
#define RCD_CM_HOST_H

#include "rcd_quota.h"

struct rcd_cma_client;
struct rcd_conn;
struct rcd_context;
struct rcd_engine;
struct rcd_request;

/**
 * Who has identifiers and their channels: a context, all of whose connections may use them; or a
 * connection, until it has a context. The owner of lib/cma's client.
 */
struct rcd_cm_user {
	struct rcd_cma_client *cma; /**< NULL: none were asked for */
	struct rcd_engine *engine;
	struct rcd_quota_entry *quota; /**< who is charged, for neighbours too */
	const struct rcd_conn *conn;   /**< NULL: it is a context's */
	const struct rcd_context *context;
};

/** Make the CM service of an engine, and QP1. @return 0 or -ENOMEM */
int
rcd_cm_host_create(struct rcd_engine *engine);

/** End both, after all users. What was not made is left alone. */
void
rcd_cm_host_destroy(struct rcd_engine *engine);

/** Serve a request of a connection, as rcd_cma_serve(). @return also -ENOMEM */
int
rcd_cm_host_serve(const struct rcd_request *r, int *fd);

/** A connection opens a context: that has from now on what the connection had. */
void
rcd_cm_host_hand(struct rcd_cm_user *from, struct rcd_cm_user *to);

/** A user ends: its peers are told. */
void
rcd_cm_host_end(struct rcd_cm_user *user);

#endif /* RCD_CM_HOST_H */
