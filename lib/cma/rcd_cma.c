/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The CM service: its agent and its time; MADs to it, and from it to the host, which sends them.
 */
#include "rcd_cma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_cma_event.h"
#include "rcd_cma_tell.h"

#define LIFE_NS       (UINT64_C(4096) << 16) /**< of a packet, as the kernel assumes on RoCE */
#define PATIENCE      24                     /**< code: 68 s, as the kernel's */
#define PARKED_FOR_NS 1000000000u

/* Counters of messages, by attribute. */
static enum rcd_counter
rx_counter(uint32_t attr)
{
	return (enum rcd_counter)(RCD_COUNTER_CM_RX_REQ + (attr - RCD_CM_REQ));
}

static enum rcd_counter
tx_counter(uint32_t attr)
{
	return (enum rcd_counter)(RCD_COUNTER_CM_TX_REQ + (attr - RCD_CM_REQ));
}

static void
count(const struct rcd_cma *cma, uint32_t serial, enum rcd_counter counter, uint64_t add)
{
	if (add > 0)
		cma->ops->count(cma->arg, serial, counter, add);
}

/* What the agent has counted since, as the doing of this device. */
static void
settle(struct rcd_cma *cma, uint32_t serial)
{
	const struct rcd_cm_counts *now = rcd_cm_agent_counts(cma->agent);
	struct rcd_cm_counts *told = &cma->told;
	struct rcd_cma_dev dev;

	/* Of one that has gone it is the next one's. */
	if (!rcd_cma_dev(cma, serial, &dev))
		return;
	for (uint32_t attr = RCD_CM_REQ; attr <= RCD_CM_APR; attr++) {
		count(cma, serial, rx_counter(attr), now->received[attr] - told->received[attr]);
		count(cma, serial, tx_counter(attr), now->sent[attr] - told->sent[attr]);
	}
	count(cma, serial, RCD_COUNTER_CM_TX_AGAIN, now->sent_again - told->sent_again);
	count(cma, serial, RCD_COUNTER_CM_RX_DUPLICATE, now->duplicates - told->duplicates);
	count(cma, serial, RCD_COUNTER_CM_RX_DROP_CLASS, now->dropped_class - told->dropped_class);
	count(cma, serial, RCD_COUNTER_CM_RX_DROP_RATE, now->dropped_rate - told->dropped_rate);
	count(cma, serial, RCD_COUNTER_CM_RX_DROP_ROOM, now->dropped_full - told->dropped_full);
	count(cma, serial, RCD_COUNTER_CM_RX_DROP_NOBODY,
		now->dropped_nobody - told->dropped_nobody);
	count(cma, serial, RCD_COUNTER_CM_RX_DROP_STALE, now->stale - told->stale);
	*told = *now;
}

void
rcd_cma_rx(struct rcd_cma *cma, const struct rcd_cm_way *way, const uint8_t *mad)
{
	rcd_cm_rx(cma->agent, mad, way, rcd_cma_now_ns(cma));
	settle(cma, way->dev);
}

/* Keep it until the neighbour answers. Without room it is lost, as any packet may be. */
static void
park(struct rcd_cma *cma, const struct rcd_cm_way *way, const uint8_t *mad)
{
	for (uint32_t i = 0; i < RCD_CMA_PARKED; i++) {
		struct rcd_cma_parked *parked = &cma->parked[i];

		if (parked->used)
			continue;
		parked->used = true;
		parked->until_ns = rcd_cma_now_ns(cma) + PARKED_FOR_NS;
		parked->way = *way;
		memcpy(parked->mad, mad, RCD_MAD_LEN);
		cma->parked_count++;
		return;
	}
}

static void
unpark(struct rcd_cma *cma, uint64_t now_ns)
{
	for (uint32_t i = 0; i < RCD_CMA_PARKED && cma->parked_count > 0; i++) {
		struct rcd_cma_parked *parked = &cma->parked[i];

		if (!parked->used)
			continue;
		if (cma->ops->send(cma->arg, &parked->way, parked->mad) == -EAGAIN &&
			now_ns < parked->until_ns)
			continue;
		parked->used = false;
		cma->parked_count--;
	}
}

static void
on_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad)
{
	struct rcd_cma *cma = arg;

	if (cma->ops->send(cma->arg, way, mad) == -EAGAIN)
		park(cma, way, mad);
	settle(cma, way->dev);
}

struct rcd_cma *
rcd_cma_create(const struct rcd_cma_conf *conf)
{
	static const struct rcd_cm_ops ops = { .send = on_send, .event = rcd_cma_on_event };
	struct rcd_cma *cma = calloc(1, sizeof(*cma));
	struct rcd_cm_conf agent = {
		.connections = RCD_CMA_CONNECTIONS,
		.req_rate = RCD_CMA_REQ_RATE,
		.secret = conf->secret,
		.first_tid = conf->first_tid,
		.guid = conf->guid,
		.life_ns = LIFE_NS,
		.patience = PATIENCE,
		.ops = &ops,
		.arg = cma,
	};

	if (cma == NULL)
		return NULL;
	cma->ops = conf->ops;
	cma->arg = conf->arg;
	TAILQ_INIT(&cma->waiting);
	cma->agent = rcd_cm_agent_create(&agent);
	if (cma->agent == NULL || rcd_cma_ports_init(cma) != 0) {
		rcd_cma_destroy(cma);
		return NULL;
	}
	return cma;
}

void
rcd_cma_destroy(struct rcd_cma *cma)
{
	if (cma == NULL)
		return;
	rcd_cm_agent_destroy(cma->agent);
	rcd_cma_accounts_end(&cma->rests);
	rcd_cma_ports_fini(cma);
	free(cma);
}

void
rcd_cma_tick(struct rcd_cma *cma, uint64_t now_ns)
{
	if (!TAILQ_EMPTY(&cma->waiting))
		rcd_cmid_look(cma, now_ns);
	unpark(cma, now_ns);
	rcd_cm_expire(cma->agent, now_ns);
}

void
rcd_cma_neighbours(struct rcd_cma *cma)
{
	uint64_t now_ns = rcd_cma_now_ns(cma);

	unpark(cma, now_ns);
	rcd_cmid_look(cma, now_ns);
}

uint32_t
rcd_cma_connections(const struct rcd_cma *cma)
{
	return rcd_cm_agent_used(cma->agent);
}

void
rcd_cma_dev_gone(struct rcd_cma *cma, uint32_t serial)
{
	struct rcd_cmid *id;

	LIST_FOREACH(id, &cma->ids, all_link) {
		if (id->dev != serial)
			continue;
		rcd_cmid_let_go(id);
		id->state = RCD_CMA_DEVICE_REMOVAL;
		id->dev = RCD_CMA_NO_DEV;
		rcd_cma_event_tell(id, RCD_CMA_EVENT_DEVICE_REMOVAL, 0);
	}
}
