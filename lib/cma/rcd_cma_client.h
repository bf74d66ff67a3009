/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A client of the CM service: its identifiers and channels, and its requests.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_CLIENT_H
#define RCD_CMA_CLIENT_H

#include <stdint.h>

#include "rcd_cma.h"
#include "rcd_ctrl.h"
#include "rcd_quota.h"
#include "rcd_table.h"

#define RCD_CMA_IDS_MAX  16384 /**< of a client */
#define RCD_CMA_CHANNELS 1024  /**< of a client */

/** What a client has. Its fields are the service's, but for audits, which read them. */
struct rcd_cma_client {
	struct rcd_cma *cma;
	void *owner;                   /**< the host's word for it, in struct rcd_cma_ops */
	struct rcd_quota_entry *quota; /**< the host's: it outlives the client */
	struct rcd_cma_account *account;
	struct rcd_table ids;
	struct rcd_table channels;
	uint32_t group_count;
};

/** The network namespace whose devices a client gets. */
static inline uint64_t
rcd_cma_client_netns(const struct rcd_cma_client *client)
{
	RCD_ON_CONTROL();
	return client->cma->ops->netns(client->owner);
}

/* rcd_cma_serve.c */

/** A client begins. @return NULL: no memory */
struct rcd_cma_client *
rcd_cma_client_create(struct rcd_cma *cma, void *owner, struct rcd_quota_entry *quota);

/**
 * Another one of the host's has it from now on.
 *
 * @param quota  has what the former one was charged for
 */
void
rcd_cma_client_hand(struct rcd_cma_client *client, void *owner, struct rcd_quota_entry *quota);

/** It ends: its peers are told. NULL is allowed. */
void
rcd_cma_client_destroy(struct rcd_cma_client *client);

/**
 * Serve a request of connection management.
 *
 * @param asker  the host's word for whose request it is, of those who share the client
 * @param op   enum rcd_ctrl_op, of those in rcd_ctrl.def that are RCD_CTRL_CM
 * @param out  zero; the body of the reply
 * @param fd   -1; set to a descriptor for the client, which the caller closes when it was sent
 * @return 0 or -errno
 */
int
rcd_cma_serve(struct rcd_cma_client *client, const void *asker, uint32_t op,
	const union rcd_ctrl_body *in, union rcd_ctrl_body *out, int *fd);

/** An identifier, for people. What is pointed to is there until the call ends. */
struct rcd_cma_listed {
	const char *ifname; /**< of its device; NULL: it has none */
	uint32_t handle;
	pid_t pid; /**< of the client, as comm */
	const char *comm;
	const char *state;
	const char *space;
	const char *qp_type;
	uint32_t qpn; /**< 0: none */
	const struct rcd_ctrl_cm_addr *src, *dst;
};

/* rcd_cma_list.c */

/** All identifiers of a service, told one by one. */
void
rcd_cma_list(const struct rcd_cma *cma, void (*fn)(void *arg, const struct rcd_cma_listed *listed),
	void *arg);

#endif /* RCD_CMA_CLIENT_H */
