/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Completion queues of the program: made and destroyed. Completions are taken by rcd_local_io.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_local_object.h"
#include "rcd_own.h"
#include "rcd_queue.h"
#include "rcd_table.h"

/* As the engine has it. */
static int
local_cq_make(struct rcd_local *local, const struct rcd_ctrl_cq_req *req, struct rcd_local_cq *cq)
{
	struct rcd_conn *conn = local->conn;
	struct rcd_ctrl_cq_rep rep;
	const struct rcd_hcq *hcq;
	int err = rcd_own_serve(conn, RCD_CTRL_CQ_CREATE, req, &rep);

	if (err != 0)
		return err;
	hcq = rcd_table_get(&conn->context->cqs, rep.handle);
	cq->local = local;
	cq->shm = hcq->shm;
	cq->slots = hcq->slots;
	cq->mask = hcq->mask;
	cq->handle = rep.handle;
	LIST_INSERT_HEAD(&local->cqs, cq, link);
	return 0;
}

int
rcd_local_cq_create(
	struct rcd_local *local, uint32_t depth, uint64_t cookie, struct rcd_local_cq **cq)
{
	const struct rcd_ctrl_cq_req req = {
		.depth = depth, .channel = RCD_CTRL_NO_HANDLE, .cookie = cookie
	};
	struct rcd_local_cq *made = calloc(1, sizeof(*made));
	int err = -ENOMEM;

	if (made != NULL)
		err = local->conn != NULL ? rcd_own_begin(local->conn) : -ENODEV;
	if (err == 0) {
		err = local_cq_make(local, &req, made);
		rcd_own_end(local->conn);
	}
	if (err != 0) {
		free(made);
		return err;
	}
	*cq = made;
	return 0;
}

uint32_t
rcd_local_cq_lcore(const struct rcd_local_cq *cq)
{
	return rcd_local_lcore(cq->local);
}

int
rcd_local_cq_destroy(struct rcd_local_cq *cq)
{
	const struct rcd_ctrl_handle req = { .handle = cq->handle };
	struct rcd_local *local = cq->local;

	if (cq->users > 0)
		return -EBUSY;
	/* With the device it went. */
	rcd_local_request(local, RCD_CTRL_CQ_DESTROY, &req, NULL);
	LIST_REMOVE(cq, link);
	free(cq);
	return 0;
}
