/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The CM service: its agent and its time; MADs to it, and from it to the host, which sends them.
 */
#include "rcd_cma.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bits.h"
#include "rcd_cma_client.h"
#include "rcd_cma_event.h"
#include "rcd_cma_tell.h"
#include "rcd_limits.h"
#include "rcd_thread.h"

#define LIFE_NS       (UINT64_C(4096) << 16) /**< of a packet, as the kernel assumes on RoCE */
#define PATIENCE      24                     /**< code: 68 s, as the kernel's */
#define PARKED_FOR_NS 1000000000u
/** Of connections whose time has come: a step is short though all come at one moment. */
#define EXPIRE_AT_ONCE 1024

/* Counters of messages, by attribute. */
static enum rcd_counter
cma_rx_counter(uint32_t attr)
{
	return (enum rcd_counter)(RCD_COUNTER_CM_RX_REQ + (attr - RCD_CM_REQ));
}

static enum rcd_counter
cma_tx_counter(uint32_t attr)
{
	return (enum rcd_counter)(RCD_COUNTER_CM_TX_REQ + (attr - RCD_CM_REQ));
}

static void
cma_count(const struct rcd_cma *cma, uint32_t serial, enum rcd_counter counter, uint64_t add)
{
	if (add > 0)
		cma->ops->count(cma->arg, serial, counter, add);
}

/* What the agent has counted since, as the doing of this device. */
static void
cma_settle(struct rcd_cma *cma, uint32_t serial)
{
	const struct rcd_cm_counts *now = rcd_cm_agent_counts(cma->agent);
	struct rcd_cm_counts *told = &cma->told;
	struct rcd_cma_dev dev;

	/* Of one that has gone it is the next one's. */
	if (!rcd_cma_dev(cma, serial, &dev))
		return;
	for (uint32_t attr = RCD_CM_REQ; attr <= RCD_CM_APR; attr++) {
		cma_count(cma, serial, cma_rx_counter(attr),
			now->received[attr] - told->received[attr]);
		cma_count(cma, serial, cma_tx_counter(attr), now->sent[attr] - told->sent[attr]);
	}
	cma_count(cma, serial, RCD_COUNTER_CM_TX_AGAIN, now->sent_again - told->sent_again);
	cma_count(cma, serial, RCD_COUNTER_CM_RX_DUPLICATE, now->duplicates - told->duplicates);
	cma_count(cma, serial, RCD_COUNTER_CM_RX_DROP_CLASS,
		now->dropped_class - told->dropped_class);
	cma_count(cma, serial, RCD_COUNTER_CM_RX_DROP_RATE, now->dropped_rate - told->dropped_rate);
	cma_count(cma, serial, RCD_COUNTER_CM_RX_DROP_ROOM, now->dropped_full - told->dropped_full);
	cma_count(cma, serial, RCD_COUNTER_CM_RX_DROP_NOBODY,
		now->dropped_nobody - told->dropped_nobody);
	cma_count(cma, serial, RCD_COUNTER_CM_RX_DROP_STALE, now->stale - told->stale);
	*told = *now;
}

void
rcd_cma_rx(struct rcd_cma *cma, const struct rcd_cm_way *way, const uint8_t *mad)
{
	RCD_ON_CONTROL();
	rcd_cm_rx(cma->agent, mad, way, rcd_cma_now_ns(cma));
	cma_settle(cma, way->dev);
}

/* A MAD that waits is sent, or lost. */
static void
cma_parked_end(struct rcd_cma_parked *parked)
{
	struct rcd_cma *cma = parked->cma;

	rcd_waiter_cancel(&parked->waiter);
	rcd_alarm_cancel(cma->alarms, &parked->late);
	SLIST_INSERT_HEAD(&cma->unparked, parked, link);
	cma->parked_count--;
}

static void
cma_parked_told(struct rcd_waiter *waiter)
{
	struct rcd_cma_parked *parked = RCD_OWNER(waiter, struct rcd_cma_parked, waiter);
	const struct rcd_cma *cma = parked->cma;

	if (cma->ops->send(cma->arg, &parked->way, parked->mad, waiter) != -EAGAIN)
		cma_parked_end(parked);
}

static void
cma_parked_late(struct rcd_alarm *alarm, uint64_t now_ns)
{
	(void)now_ns;
	cma_parked_end(RCD_OWNER(alarm, struct rcd_cma_parked, late));
}

/* One whose neighbour is asked for waits. Without room it is lost, as any packet may be. */
static void
cma_on_send(void *arg, const struct rcd_cm_way *way, const uint8_t *mad)
{
	struct rcd_cma *cma = arg;
	struct rcd_cma_parked *parked = SLIST_FIRST(&cma->unparked);
	struct rcd_waiter *waiter = parked != NULL ? &parked->waiter : NULL;

	if (cma->ops->send(cma->arg, way, mad, waiter) == -EAGAIN && parked != NULL) {
		SLIST_REMOVE_HEAD(&cma->unparked, link);
		parked->way = *way;
		memcpy(parked->mad, mad, RCD_MAD_LEN);
		rcd_alarm_set(cma->alarms, &parked->late, rcd_cma_now_ns(cma) + PARKED_FOR_NS);
		cma->parked_count++;
	}
	cma_settle(cma, way->dev);
}

static void
cma_parked_init(struct rcd_cma *cma)
{
	SLIST_INIT(&cma->unparked);
	for (uint32_t i = 0; i < RCD_CMA_PARKED; i++) {
		struct rcd_cma_parked *parked = &cma->parked[i];

		parked->cma = cma;
		parked->waiter.fn = cma_parked_told;
		parked->late.fn = cma_parked_late;
		SLIST_INSERT_HEAD(&cma->unparked, parked, link);
	}
}

/* What they wait for is others', and stays. */
static void
cma_parked_fini(struct rcd_cma *cma)
{
	for (uint32_t i = 0; i < RCD_CMA_PARKED; i++) {
		rcd_waiter_cancel(&cma->parked[i].waiter);
		rcd_alarm_cancel(cma->alarms, &cma->parked[i].late);
	}
}

struct rcd_cma *
rcd_cma_create(const struct rcd_cma_conf *conf)
{
	static const struct rcd_cm_ops ops = { .send = cma_on_send, .event = rcd_cma_on_event };
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

	RCD_ON_CONTROL();
	if (cma == NULL)
		return NULL;
	cma->ops = conf->ops;
	cma->arg = conf->arg;
	cma->alarms = conf->alarms;
	cma->secret = conf->secret;
	cma_parked_init(cma);
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
	RCD_ON_CONTROL();
	if (cma == NULL)
		return;
	cma_parked_fini(cma);
	rcd_cm_agent_destroy(cma->agent);
	rcd_cma_accounts_end(&cma->rests);
	rcd_cma_ports_fini(cma);
	free(cma);
}

void
rcd_cma_tick(struct rcd_cma *cma, uint64_t now_ns)
{
	RCD_ON_CONTROL();
	rcd_cm_expire(cma->agent, now_ns, EXPIRE_AT_ONCE);
}

uint64_t
rcd_cma_next(const struct rcd_cma *cma)
{
	uint64_t next_ns = rcd_cm_next_deadline(cma->agent);

	RCD_ON_CONTROL();
	return next_ns != 0 ? next_ns : UINT64_MAX;
}

uint32_t
rcd_cma_connections(const struct rcd_cma *cma)
{
	RCD_ON_CONTROL();
	return rcd_cm_agent_used(cma->agent);
}

const void *
rcd_cma_offered(
	struct rcd_cma *cma, uint32_t remote_qpn, const struct rcd_cm_way *way, uint8_t offers)
{
	const struct rcd_cm_conn *conn;
	const struct rcd_cmid *id;

	RCD_ON_CONTROL();
	conn = rcd_cm_of_peer(cma->agent, remote_qpn, way);
	id = conn != NULL ? rcd_cm_cookie(conn) : NULL;
	return id != NULL && (rcd_cm_offered(conn) & offers) == offers ? id->client->owner : NULL;
}

void
rcd_cma_dev_gone(struct rcd_cma *cma, uint32_t serial)
{
	struct rcd_cmid *id;

	RCD_ON_CONTROL();
	LIST_FOREACH(id, &cma->ids, all_link) {
		if (id->dev != serial)
			continue;
		rcd_cmid_let_go(id);
		rcd_cmid_step(id, RCD_CM_STEP_DEVICE_GONE);
		id->dev = RCD_CMA_NO_DEV;
		rcd_cma_event_tell(id, RCD_CMA_EVENT_DEVICE_REMOVAL, 0);
	}
}
