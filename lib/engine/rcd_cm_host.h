/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine as host of the CM service: what lib/cma asks for.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CM_HOST_H
#define RCD_CM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_gid.h"
#include "rcd_quota.h"

struct rcd_alarms;
struct rcd_cma;
struct rcd_cma_client;
struct rcd_conn;
struct rcd_context;
struct rcd_counters;
struct rcd_gsi;
struct rcd_lcores;
struct rcd_lport;
struct rcd_ports;
struct rcd_random;
struct rcd_request;

/** What it needs. All of it is there as long as it is. */
struct rcd_cm_host_conf {
	struct rcd_ports *ports;
	struct rcd_lcores *lcores;
	struct rcd_alarms *alarms;
	struct rcd_random *random;
	struct rcd_counters *counters; /**< of what is no device's */
	const uint64_t *secret;        /**< two words that nobody can guess */
	uint64_t guid;                 /**< of the engine */
};

/** What routers are to be told of a group. */
struct rcd_cm_saying {
	const struct rcd_lport *lport;
	struct rcd_gid source;
	struct rcd_gid group;
	uint16_t vlan_id;
	bool leave;
};

#define RCD_CM_SAYINGS 32 /**< that an lcore is given at once */

/** The CM service of an engine, and QP1. */
struct rcd_cm_host {
	struct rcd_cm_host_conf conf;
	struct rcd_cma *cma;
	struct rcd_gsi *gsi;
	uint32_t saying_count;
	struct rcd_cm_saying sayings[RCD_CM_SAYINGS]; /**< until rcd_cm_host_flush() */
};

/**
 * Who has identifiers and their channels: a context, all of whose connections may use them; or a
 * connection, until it has a context. The owner of lib/cma's client.
 */
struct rcd_cm_user {
	struct rcd_cma_client *cma; /**< NULL: none were asked for */
	struct rcd_cm_host *host;
	struct rcd_quota_entry *quota; /**< who is charged, for neighbours too */
	uint64_t netns;                /**< that who connected was in; a context's: who opened it */
	const struct rcd_conn *conn;   /**< NULL: it is a context's */
	const struct rcd_context *context;
};

/** Make both. @return 0 or -ENOMEM: it is for rcd_cm_host_fini() */
int
rcd_cm_host_init(struct rcd_cm_host *host, const struct rcd_cm_host_conf *conf);

/** End both, after all users. All zero is allowed. */
void
rcd_cm_host_fini(struct rcd_cm_host *host);

/**
 * What is to be sent goes to an lcore, in groups: before the control thread waits, and before a
 * device goes.
 */
void
rcd_cm_host_flush(struct rcd_cm_host *host);

/** Serve a request of a connection, as rcd_cma_serve(). @return also -ENOMEM */
int
rcd_cm_host_serve(const struct rcd_request *r, int *fd);

/**
 * Whether a connection of the process that has a context agreed to selective acknowledgement.
 *
 * @param peer        address of the other end
 * @param remote_qpn  and its queue pair
 */
bool
rcd_cm_host_has_sack(const struct rcd_cm_host *host, const struct rcd_context *context,
	const struct rcd_gid *peer, uint32_t remote_qpn);

/** A connection opens a context: that has from now on what the connection had. */
void
rcd_cm_host_hand(struct rcd_cm_user *from, struct rcd_cm_user *to);

/** A user ends: its peers are told. */
void
rcd_cm_host_end(struct rcd_cm_user *user);

#endif /* RCD_CM_HOST_H */
