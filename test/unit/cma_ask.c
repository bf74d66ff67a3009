/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of clients to the CM service.
 */
#include "cma_ask.h"

#include <errno.h>
#include <string.h>

#include "rcd_tap.h"

union rcd_ctrl_body cma_req, cma_rep;

int
cma_ask_as(struct cma_host_client *client, const void *asker, enum rcd_ctrl_op op)
{
	union rcd_ctrl_body asked = cma_req;
	int fd = -1;
	int err;

	memset(&cma_req, 0, sizeof(cma_req));
	memset(&cma_rep, 0, sizeof(cma_rep));
	err = rcd_cma_serve(client->cma, asker, op, &asked, &cma_rep, &fd);
	CU_ASSERT_EQUAL(fd, -1);
	return err;
}

int
cma_ask(struct cma_host_client *client, enum rcd_ctrl_op op)
{
	return cma_ask_as(client, client, op);
}

int
cma_ask_of(struct cma_host_client *client, enum rcd_ctrl_op op, uint32_t id)
{
	cma_req.cm_destroy_req.handle = id;
	return cma_ask(client, op);
}

int
cma_ask_of_pair(struct cma_host_client *client, enum rcd_ctrl_op op, uint32_t id, uint32_t second)
{
	cma_req.cm_listen_req.id = id;
	cma_req.cm_listen_req.second = second;
	return cma_ask(client, op);
}

uint32_t
cma_ask_create(struct cma_host_client *client, uint8_t qp_type)
{
	cma_req.cm_create_req.channel = client->channel;
	cma_req.cm_create_req.space = qp_type == RCD_QP_UD ? RCD_CMA_SPACE_UDP : RCD_CMA_SPACE_TCP;
	cma_req.cm_create_req.qp_type = qp_type;
	CU_ASSERT_EQUAL_FATAL(cma_ask(client, RCD_CTRL_CM_CREATE), 0);
	return cma_rep.cm_create_rep.handle;
}

int
cma_ask_bind_as(struct cma_host_client *client, const void *asker, uint32_t id, const char *text,
	uint16_t port)
{
	cma_req.cm_bind_req.id = id;
	cma_req.cm_bind_req.addr = cma_host_addr(text, port);
	return cma_ask_as(client, asker, RCD_CTRL_CM_BIND);
}

int
cma_ask_event(struct cma_host_client *client)
{
	do {
		int err = cma_ask_of(client, RCD_CTRL_CM_EVENT, client->channel);

		if (err == -EAGAIN)
			return -1;
		CU_ASSERT_EQUAL_FATAL(err, 0);
	} while (cma_rep.cm_event_rep.event <= RCD_CMA_EVENT_ROUTE_ERROR);
	return (int)cma_rep.cm_event_rep.event;
}
