/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of clients to the CM service, as the engine hands them over. What is asked stands in one
 * place and what is answered in another; fields that are not set are zero.
 */
#ifndef CMA_ASK_H
#define CMA_ASK_H

#include "cma_host.h"

/** The next request, zeroed by each, and the answer to the last. */
extern union rcd_ctrl_body cma_req, cma_rep;

/** Have the request served. @param asker  whose rights count */
int
cma_ask_as(struct cma_host_client *client, const void *asker, enum rcd_ctrl_op op);

/** Likewise, with rights of its own. */
int
cma_ask(struct cma_host_client *client, enum rcd_ctrl_op op);

/** Requests that name an identifier, or one and something else. */
int
cma_ask_of(struct cma_host_client *client, enum rcd_ctrl_op op, uint32_t id);
int
cma_ask_of_pair(struct cma_host_client *client, enum rcd_ctrl_op op, uint32_t id, uint32_t second);

/** An identifier of the client's channel. */
uint32_t
cma_ask_create(struct cma_host_client *client, uint8_t qp_type);

/** Bind it to an address, written as text. */
int
cma_ask_bind_as(struct cma_host_client *client, const void *asker, uint32_t id, const char *text,
	uint16_t port);

/** The next event that is no news of an address. @return its type; -1: there is none */
int
cma_ask_event(struct cma_host_client *client);

#endif /* CMA_ASK_H */
