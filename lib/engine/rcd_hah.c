/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Address handles of a context: their vectors stand in a table that its lcore reads.
 */
#include "rcd_hah.h"

#include <errno.h>

#include "rcd_ah.h"
#include "rcd_contexts.h"
#include "rcd_ctrl.h"
#include "rcd_hop.h"
#include "rcd_lcore_ctl.h"
#include "rcd_ports.h"
#include "rcd_qp.h"
#include "rcd_quota.h"
#include "rcd_resolve.h"
#include "rcd_table.h"
#include "rcd_thread.h"

struct ah_change {
	struct rcd_context *context;
	uint32_t pd;
	struct rcd_av av;
	uint32_t handle;
};

static int
hah_create_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct ah_change *change = arg;

	(void)lcore;
	return rcd_ah_create(change->context->client.ahs, change->pd, &change->av, &change->handle);
}

int
rcd_hah_create(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_ah_req *req, uint32_t *handle)
{
	struct rcd_pd *pd = rcd_table_get(&context->pds, req->pd);
	struct ah_change change = { .context = context, .pd = req->pd };
	int err;

	RCD_ON_CONTROL();
	if (pd == NULL)
		return -ENOENT;
	err = rcd_resolve_av(context, conn, &req->av, &change.av);
	if (err != 0)
		return err;
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_AHS, 1);
	if (err == 0) {
		err = rcd_lcore_call(context->client.lcore, hah_create_on_lcore, &change);
		if (err != 0)
			rcd_quota_uncharge(&context->quota, RCD_RESOURCE_AHS, 1);
	}
	if (err != 0) {
		rcd_hop_put(context->all->conf.ports->hops, change.av.hop);
		return err;
	}
	pd->users++;
	context->ah_count++;
	*handle = change.handle;
	return 0;
}

static int
hah_destroy_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct ah_change *change = arg;
	const struct rcd_av *av =
		rcd_ah_get(change->context->client.ahs, change->pd, change->handle);

	(void)lcore;
	if (av == NULL)
		return -ENOENT;
	change->av = *av;
	return rcd_ah_destroy(change->context->client.ahs, change->pd, change->handle);
}

int
rcd_hah_destroy(struct rcd_context *context, const struct rcd_ctrl_ah_handle *req)
{
	struct ah_change change = { .context = context, .pd = req->pd, .handle = req->handle };
	struct rcd_pd *pd = rcd_table_get(&context->pds, req->pd);
	int err;

	RCD_ON_CONTROL();
	if (pd == NULL)
		return -ENOENT;
	err = rcd_lcore_call(context->client.lcore, hah_destroy_on_lcore, &change);
	if (err == 0) {
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_AHS, 1);
		pd->users--;
		context->ah_count--;
		rcd_hop_put(context->all->conf.ports->hops, change.av.hop);
	}
	return err;
}
