/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Counters of flows. The engine counts for each flow; which of that is added up in which place is
 * known here alone.
 */
#include "rcd_vb.h"

#include <stdlib.h>
#include <string.h>

struct rcd_vb_point {
	SLIST_ENTRY(rcd_vb_point) link;
	uint32_t index;
	enum ibv_counter_description what;
	bool of_made;             /**< of all flows that are made with the counters */
	struct rcd_vb_flow *flow; /**< else of this one; NULL: it is gone */
	uint64_t gone;            /**< what flows that are gone had, less what was before */
};

static struct rcd_vb_counters *
vb_counters_of(struct ibv_counters *counters)
{
	return (struct rcd_vb_counters *)(void *)counters;
}

static struct rcd_vb_flow *
vb_counters_flow(struct ibv_flow *flow)
{
	return (struct rcd_vb_flow *)(void *)flow;
}

static uint64_t
vb_counters_pick(const struct rcd_vb_point *point, const struct rcd_ctrl_flow_counts *counts)
{
	return point->what == IBV_COUNTER_PACKETS ? counts->frames : counts->bytes;
}

/* What a flow counted. One whose queue pair is gone has nothing more. @return 0 or -errno */
static int
vb_counters_ask(const struct rcd_vb_flow *flow, struct rcd_ctrl_flow_counts *counts)
{
	struct rcd_ctrl_handle req = { .handle = flow->flow.handle };
	int err;

	memset(counts, 0, sizeof(*counts));
	err = rcd_client_call(
		rcd_vb_client(flow->flow.context), RCD_CTRL_FLOW_READ, &req, counts, NULL, NULL);
	return err == -ENOENT ? 0 : err;
}

struct ibv_counters *
rcd_vb_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	struct rcd_vb_context *vb = rcd_vb_context(context);
	struct rcd_vb_counters *counters;

	if (attr->comp_mask != 0 || vb->rep.max_flows == 0) {
		errno = attr->comp_mask != 0 ? EINVAL : EOPNOTSUPP;
		return NULL;
	}
	counters = rcd_vb_new(context, sizeof(*counters));
	if (counters == NULL)
		return NULL;
	counters->counters.context = context;
	pthread_mutex_lock(&vb->flow_lock);
	LIST_INSERT_HEAD(&vb->counters, counters, link);
	pthread_mutex_unlock(&vb->flow_lock);
	return &counters->counters;
}

static bool
vb_counters_busy(const struct rcd_vb_counters *counters)
{
	const struct rcd_vb_point *point;

	if (counters->made > 0)
		return true;
	SLIST_FOREACH(point, &counters->points, link)
		if (point->flow != NULL)
			return true;
	return false;
}

int
rcd_vb_destroy_counters(struct ibv_counters *ibv)
{
	struct rcd_vb_context *vb = rcd_vb_context(ibv->context);
	struct rcd_vb_counters *counters = vb_counters_of(ibv);
	struct rcd_vb_point *point;
	bool busy;

	pthread_mutex_lock(&vb->flow_lock);
	busy = vb_counters_busy(counters);
	if (!busy)
		LIST_REMOVE(counters, link);
	pthread_mutex_unlock(&vb->flow_lock);
	if (busy)
		return EBUSY;
	while ((point = SLIST_FIRST(&counters->points)) != NULL) {
		SLIST_REMOVE_HEAD(&counters->points, link);
		free(point);
	}
	rcd_vb_free(ibv->context, counters);
	return 0;
}

/* @return 0 or an errno value */
static int
vb_counters_attach(struct rcd_vb_counters *counters, struct rcd_vb_point *point)
{
	struct rcd_ctrl_flow_counts counts;
	int err;

	if (point->of_made && counters->made > 0)
		return EBUSY;
	if (!point->of_made) {
		err = vb_counters_ask(point->flow, &counts);
		if (err != 0)
			return -err;
		point->gone = -vb_counters_pick(point, &counts);
	}
	SLIST_INSERT_HEAD(&counters->points, point, link);
	return 0;
}

int
rcd_vb_attach_counters_point_flow(
	struct ibv_counters *ibv, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct rcd_vb_context *vb = rcd_vb_context(ibv->context);
	struct rcd_vb_point *point;
	int err;

	if (attr->comp_mask != 0 || (flow != NULL && flow->context != ibv->context))
		return EINVAL;
	if (attr->counter_desc != IBV_COUNTER_PACKETS && attr->counter_desc != IBV_COUNTER_BYTES)
		return ENOTSUP;
	point = calloc(1, sizeof(*point));
	if (point == NULL)
		return ENOMEM;
	*point = (struct rcd_vb_point){ .index = attr->index,
		.what = attr->counter_desc,
		.of_made = flow == NULL,
		.flow = vb_counters_flow(flow) };
	pthread_mutex_lock(&vb->flow_lock);
	err = vb_counters_attach(vb_counters_of(ibv), point);
	pthread_mutex_unlock(&vb->flow_lock);
	if (err != 0)
		free(point);
	return err;
}

/* Of all flows that are made with the counters. @return 0 or -errno */
static int
vb_counters_sum(const struct rcd_vb_counters *counters, struct rcd_ctrl_flow_counts *sum)
{
	const struct rcd_vb_flow *flow;
	struct rcd_ctrl_flow_counts counts;
	int err = 0;

	memset(sum, 0, sizeof(*sum));
	LIST_FOREACH(flow, &rcd_vb_context(counters->counters.context)->flows, link) {
		if (err != 0 || flow->counters != counters)
			continue;
		err = vb_counters_ask(flow, &counts);
		sum->frames += counts.frames;
		sum->bytes += counts.bytes;
	}
	return err;
}

static int
vb_counters_read(const struct rcd_vb_counters *counters, uint64_t *values, uint32_t count)
{
	struct rcd_ctrl_flow_counts sum, counts;
	const struct rcd_vb_point *point;
	int err = vb_counters_sum(counters, &sum);

	SLIST_FOREACH(point, &counters->points, link) {
		if (err != 0)
			break;
		if (point->index >= count)
			return -EINVAL;
		counts = sum;
		if (!point->of_made)
			memset(&counts, 0, sizeof(counts));
		if (point->flow != NULL)
			err = vb_counters_ask(point->flow, &counts);
		values[point->index] += point->gone + vb_counters_pick(point, &counts);
	}
	return err;
}

int
rcd_vb_read_counters(struct ibv_counters *ibv, uint64_t *values, uint32_t count, uint32_t flags)
{
	struct rcd_vb_context *vb = rcd_vb_context(ibv->context);
	int err;

	/* Nothing is cached: what is preferred is not there. */
	if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return EINVAL;
	memset(values, 0, count * sizeof(values[0]));
	pthread_mutex_lock(&vb->flow_lock);
	err = vb_counters_read(vb_counters_of(ibv), values, count);
	pthread_mutex_unlock(&vb->flow_lock);
	return -err;
}

void
rcd_vb_counters_enter(struct rcd_vb_flow *flow)
{
	struct rcd_vb_context *vb = rcd_vb_context(flow->flow.context);

	pthread_mutex_lock(&vb->flow_lock);
	LIST_INSERT_HEAD(&vb->flows, flow, link);
	if (flow->counters != NULL)
		flow->counters->made++;
	pthread_mutex_unlock(&vb->flow_lock);
}

void
rcd_vb_counters_leave(struct rcd_vb_flow *flow, const struct rcd_ctrl_flow_counts *counts)
{
	struct rcd_vb_context *vb = rcd_vb_context(flow->flow.context);
	struct rcd_vb_counters *counters;
	struct rcd_vb_point *point;

	LIST_REMOVE(flow, link);
	if (flow->counters != NULL)
		flow->counters->made--;
	LIST_FOREACH(counters, &vb->counters, link)
		SLIST_FOREACH(point, &counters->points, link) {
			if (point->of_made ? flow->counters != counters : point->flow != flow)
				continue;
			point->gone += vb_counters_pick(point, counts);
			point->flow = NULL;
		}
}
