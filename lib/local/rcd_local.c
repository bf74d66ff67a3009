/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device that the program has open: its beginning and end, its port, and what it is told.
 */
#include "rcd_local.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_conn.h"
#include "rcd_lcore_ctl.h"
#include "rcd_local_object.h"
#include "rcd_own.h"

/* In the thread that has the engine: who takes events may be another one. */
static bool
local_event(void *arg, const struct rcd_ctrl_event *event)
{
	struct rcd_local *local = arg;
	uint32_t put = local->event_put;

	if (put - __atomic_load_n(&local->event_taken, __ATOMIC_ACQUIRE) == RCD_LOCAL_EVENTS)
		return false;
	local->events[put % RCD_LOCAL_EVENTS] = *event;
	__atomic_store_n(&local->event_put, put + 1, __ATOMIC_RELEASE);
	return true;
}

static void
local_gone(void *arg)
{
	struct rcd_local *local = arg;

	local->conn = NULL;
}

static const struct rcd_conn_owner owner = {
	.lcore = &rcd_local_io_ops,
	.event = local_event,
	.gone = local_gone,
};

int
rcd_local_open(
	struct rcd_engine *engine, const char *device, int lcore_index, struct rcd_local **local)
{
	struct rcd_own_conf conf = { .device = device, .lcore = lcore_index, .owner = &owner };
	struct rcd_local *made = calloc(1, sizeof(*made));
	int err;

	if (made == NULL)
		return -ENOMEM;
	LIST_INIT(&made->cqs);
	LIST_INIT(&made->qps);
	conf.arg = made;
	err = rcd_own_open(engine, &conf, &made->conn, &made->lcore_index);
	if (err != 0) {
		free(made);
		return err;
	}
	*local = made;
	return 0;
}

void
rcd_local_close(struct rcd_local *local)
{
	struct rcd_local_qp *qp;
	struct rcd_local_cq *cq;

	if (local->conn != NULL)
		rcd_own_close(local->conn);
	while ((qp = LIST_FIRST(&local->qps)) != NULL) {
		LIST_REMOVE(qp, link);
		rcd_local_qp_free(qp);
	}
	while ((cq = LIST_FIRST(&local->cqs)) != NULL) {
		LIST_REMOVE(cq, link);
		free(cq);
	}
	free(local);
}

uint32_t
rcd_local_lcore(const struct rcd_local *local)
{
	return local->lcore_index;
}

int
rcd_local_port(struct rcd_local *local, struct rcd_ctrl_port_rep *port)
{
	return rcd_local_request(local, RCD_CTRL_PORT, NULL, port);
}

int
rcd_local_gids(struct rcd_local *local, struct rcd_ctrl_gids_rep *gids)
{
	const struct rcd_ctrl_index_req req = { .index = 0 };

	return rcd_local_request(local, RCD_CTRL_GIDS, &req, gids);
}

bool
rcd_local_event(struct rcd_local *local, struct rcd_ctrl_event *event)
{
	uint32_t taken = local->event_taken;

	if (taken == __atomic_load_n(&local->event_put, __ATOMIC_ACQUIRE))
		return false;
	*event = local->events[taken % RCD_LOCAL_EVENTS];
	__atomic_store_n(&local->event_taken, taken + 1, __ATOMIC_RELEASE);
	return true;
}
