/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Flows of a device: two tables, of which lcores see one. A change is made in the other, which they
 * see then: so none needs memory, and the end of a queue pair can't fail.
 */
#include "rcd_hflow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "rcd_context.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_ports.h"
#include "rcd_queue.h"
#include "rcd_raw.h"
#include "rcd_table.h"
#include "rcd_thread.h"

static_assert(RCD_FLOWS_MAX <= 64, "a word has a bit for each count");

bool
rcd_hflow_offered(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	/* Sockets and AF_XDP have RoCE alone. */
	return dev->conf.raw != RCD_RAW_OFF && !rcd_dev_is_udp(dev) && dev->xdp == NULL;
}

int
rcd_hflow_may(const struct rcd_context *context, const struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	if (!rcd_hflow_offered(context->dev) || context->client.ucopy != NULL)
		return -EOPNOTSUPP;
	return rcd_cred_may(conn, RCD_CAP_NET_RAW) ? 0 : -EPERM;
}

/* Contexts have numbers in the order in which they are met. Sniffers are the last flows. */
static void
hflow_number(struct rcd_raw_table *table)
{
	uint8_t count = 0;

	table->sniffers = 0;
	for (uint32_t i = 0; i < table->count; i++) {
		uint32_t k = 0;

		table->sniffers += table->flows[i].kind == RCD_FLOW_SNIFFER;
		while (table->flows[k].hqp->client != table->flows[i].hqp->client)
			k++;
		table->flows[i].group = k < i ? table->flows[k].group : count++;
	}
}

/* The table that no lcore sees, with what the other one has. @return NULL: no memory */
static struct rcd_raw_table *
hflow_begin(struct rcd_dev *dev)
{
	const struct rcd_raw_table *shown = dev->lport.flows;
	struct rcd_raw_flows *all = dev->lport.all_flows;
	struct rcd_raw_table *table;

	if (all == NULL)
		all = dev->lport.all_flows = calloc(1, sizeof(*all));
	if (all == NULL)
		return NULL;
	table = &all->tables[shown == &all->tables[0]];
	if (shown != NULL)
		*table = *shown;
	else
		table->count = 0;
	table->counts = all->counts;
	return table;
}

/* It is seen from now on, and the other one is not when this returns. */
static void
hflow_show(struct rcd_dev *dev, struct rcd_raw_table *table)
{
	hflow_number(table);
	rcd_raw_show(&dev->lport, table->count > 0 ? table : NULL, dev->conf.raw == RCD_RAW_SNIFF);
}

static bool
hflow_goes_before(const struct rcd_raw_flow *flow, const struct rcd_raw_flow *other)
{
	if (flow->kind != other->kind)
		return flow->kind < other->kind;
	return flow->priority < other->priority;
}

/* Behind those of its priority that are there. */
static void
hflow_insert(struct rcd_raw_table *table, const struct rcd_raw_flow *flow)
{
	uint32_t at = table->count++;

	for (; at > 0 && hflow_goes_before(flow, &table->flows[at - 1]); at--)
		table->flows[at] = table->flows[at - 1];
	table->flows[at] = *flow;
}

/* A count that no flow has, so no lcore either, from 0. */
static uint8_t
hflow_take_count(struct rcd_raw_table *table)
{
	uint64_t taken = 0;
	uint8_t count;

	for (uint32_t i = 0; i < table->count; i++)
		taken |= UINT64_C(1) << table->flows[i].count;
	count = (uint8_t)__builtin_ctzll(~taken);
	table->counts[count] = (struct rcd_raw_count){ 0 };
	return count;
}

/* Whether the device, the context and its user all may have one more. */
static bool
hflow_has_room(const struct rcd_raw_table *table, const struct rcd_context *context)
{
	uint32_t of_user = 0;
	uint32_t of_context = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		struct rcd_lclient *client = table->flows[i].hqp->client;

		of_context += client == &context->client;
		of_user += rcd_context_of(client)->quota.user == context->quota.user;
	}
	return table->count < RCD_FLOWS_MAX && of_context < RCD_FLOWS_CLIENT_MAX &&
		of_user < RCD_FLOWS_USER_MAX;
}

/* A context's own. @return its place in the table that is shown; -ENOENT */
static int
hflow_find(const struct rcd_context *context, uint32_t handle)
{
	const struct rcd_raw_table *shown = context->dev->lport.flows;

	for (uint32_t i = 0; shown != NULL && i < shown->count; i++)
		if (shown->flows[i].handle == handle &&
			shown->flows[i].hqp->client == &context->client)
			return (int)i;
	return -ENOENT;
}

int
rcd_hflow_create(struct rcd_context *context, const struct rcd_conn *conn,
	const struct rcd_ctrl_flow_req *req, uint32_t *handle)
{
	struct rcd_hqp *hqp = rcd_table_get(&context->hqps, req->qp);
	struct rcd_dev *dev = context->dev;
	struct rcd_raw_flow flow = { .value = req->value,
		.mask = req->mask,
		.priority = req->priority,
		.kind = req->kind,
		.drop = req->drop != 0,
		.hqp = hqp };
	struct rcd_raw_table *table;
	int err;

	RCD_ON_CONTROL();
	if (hqp == NULL)
		return -ENOENT;
	if (!hqp->raw || req->kind >= RCD_FLOW_KIND_COUNT || req->drop > 1)
		return -EINVAL;
	err = rcd_hflow_may(context, conn);
	if (err == 0 && req->kind == RCD_FLOW_SNIFFER && dev->conf.raw != RCD_RAW_SNIFF)
		err = -EOPNOTSUPP;
	if (err != 0)
		return err;
	table = hflow_begin(dev);
	if (table == NULL || !hflow_has_room(table, context))
		return -ENOMEM;
	/* One that ended with its queue pair may be asked for yet: no later one has its handle. */
	do
		flow.handle = ++context->flow_number;
	while (hflow_find(context, flow.handle) >= 0);
	flow.qpn = hqp->qpn;
	flow.count = hflow_take_count(table);
	hflow_insert(table, &flow);
	hflow_show(dev, table);
	hqp->flows++;
	*handle = flow.handle;
	return 0;
}

static void
hflow_load(const struct rcd_raw_count *count, struct rcd_ctrl_flow_counts *counts)
{
	counts->frames = __atomic_load_n(&count->frames, __ATOMIC_RELAXED);
	counts->bytes = __atomic_load_n(&count->bytes, __ATOMIC_RELAXED);
}

int
rcd_hflow_read(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_flow_counts *counts)
{
	const struct rcd_raw_table *shown = context->dev->lport.flows;
	int at = hflow_find(context, handle);

	RCD_ON_CONTROL();
	if (at < 0)
		return at;
	hflow_load(&shown->counts[shown->flows[at].count], counts);
	return 0;
}

int
rcd_hflow_destroy(struct rcd_context *context, uint32_t handle, struct rcd_ctrl_flow_counts *counts)
{
	struct rcd_raw_table *table;
	int found = hflow_find(context, handle);
	uint32_t at = (uint32_t)found;
	uint8_t count;

	RCD_ON_CONTROL();
	if (found < 0)
		return found;
	table = hflow_begin(context->dev);
	count = table->flows[at].count;
	table->flows[at].hqp->flows--;
	for (table->count--; at < table->count; at++)
		table->flows[at] = table->flows[at + 1];
	hflow_show(context->dev, table);
	/* No lcore adds to it any more. */
	hflow_load(&table->counts[count], counts);
	return 0;
}

void
rcd_hflow_end(struct rcd_context *context, struct rcd_hqp *hqp)
{
	struct rcd_raw_table *table;
	uint32_t kept = 0;

	RCD_ON_CONTROL();
	if (hqp->flows == 0)
		return;
	hqp->flows = 0;
	table = hflow_begin(context->dev);
	for (uint32_t i = 0; i < table->count; i++)
		if (table->flows[i].hqp != hqp)
			table->flows[kept++] = table->flows[i];
	table->count = kept;
	hflow_show(context->dev, table);
}
