/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The CM service: its agent and its time; MADs from lcores to the control thread, and from there to
 * the lcores that send them.
 */
#include "rcd_cma.h"

#include <errno.h>
#include <rte_ring_elem.h>
#include <stdlib.h>
#include <unistd.h>

#define PKEY_BASE     0x7fffu
#define TAKE_MOST     64                     /**< MADs before others have their turn */
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
count(const struct rcd_dev *dev, enum rcd_counter counter, uint64_t add)
{
	rcd_counter_add(&dev->counters[dev->engine->lcore_count], counter, add);
}

void
rcd_cma_rx(
	struct rcd_lcore *lcore, struct rcd_dev *dev, const struct rcd_pkt *pkt, uint16_t vlan_id)
{
	const struct rcd_roce *roce = &pkt->roce;
	const struct rcd_gid_table *gids = rcd_dev_gids(dev);
	int at = rcd_gid_table_find(gids, &pkt->dgid);
	struct rte_ring *ring = lcore->engine->cma->mads;
	uint64_t one = 1;
	struct rcd_cma_mad mad = {
		.way = {
			.local = pkt->dgid,
			.remote = pkt->sgid,
			.flow_label = pkt->flow_label,
			.dev = dev->serial,
			.tclass = pkt->tclass & 0xfc,
			.hop_limit = 64,
			.from_link = true,
		},
	};

	if (roce->bth.opcode != RCD_OPCODE_UD_SEND_ONLY || pkt->payload_len != RCD_MAD_LEN) {
		rcd_counter_add(rcd_dev_counters(dev, lcore), RCD_COUNTER_CM_RX_DROP_CLASS, 1);
		return;
	}
	/* Management speaks from QP1 to QP1; other queue pairs are users'. */
	if (roce->deth.src_qpn.val != RCD_QPN_GSI) {
		rcd_counter_add(rcd_dev_counters(dev, lcore), RCD_COUNTER_CM_RX_DROP_SOURCE, 1);
		return;
	}
	if (roce->deth.qkey.val != RCD_QKEY_GSI || (roce->bth.pkey.val & PKEY_BASE) != PKEY_BASE ||
		at < 0) {
		rcd_counter_add(rcd_dev_counters(dev, lcore), RCD_COUNTER_RX_DROP_QKEY, 1);
		return;
	}
	if (gids->entries[at].vlan_id != vlan_id) {
		rcd_counter_add(rcd_dev_counters(dev, lcore), RCD_COUNTER_RX_DROP_VLAN, 1);
		return;
	}
	/* An answer goes to one station, whatever was put there. */
	if (pkt->eth.src[0] & 1) {
		rcd_counter_add(rcd_dev_counters(dev, lcore), RCD_COUNTER_CM_RX_DROP_SOURCE, 1);
		return;
	}
	memcpy(mad.way.mac, pkt->eth.src, RCD_MAC_LEN);
	memcpy(mad.mad, pkt->payload, RCD_MAD_LEN);
	if (rte_ring_enqueue_elem(ring, &mad, sizeof(mad)) != 0) {
		rcd_counter_add(rcd_dev_counters(dev, lcore), RCD_COUNTER_CM_RX_DROP_FULL, 1);
		return;
	}
	/* Who takes them empties the ring: those that were first wake. */
	if (rte_ring_count(ring) > lcore->engine->lcore_count)
		return;
	if (write(lcore->engine->note_fd, &one, sizeof(one)) < 0) {
		/* Full: it is read before long. */
	}
}

/* What the agent has counted since, as the doing of this device. */
static void
settle(struct rcd_cma *cma, const struct rcd_dev *dev)
{
	const struct rcd_cm_counts *now = rcd_cm_agent_counts(cma->agent);
	struct rcd_cm_counts *told = &cma->told;

	if (dev == NULL)
		return;
	for (uint32_t attr = RCD_CM_REQ; attr <= RCD_CM_APR; attr++) {
		count(dev, rx_counter(attr), now->received[attr] - told->received[attr]);
		count(dev, tx_counter(attr), now->sent[attr] - told->sent[attr]);
	}
	count(dev, RCD_COUNTER_CM_TX_AGAIN, now->sent_again - told->sent_again);
	count(dev, RCD_COUNTER_CM_RX_DUPLICATE, now->duplicates - told->duplicates);
	count(dev, RCD_COUNTER_CM_RX_DROP_CLASS, now->dropped_class - told->dropped_class);
	count(dev, RCD_COUNTER_CM_RX_DROP_RATE, now->dropped_rate - told->dropped_rate);
	count(dev, RCD_COUNTER_CM_RX_DROP_ROOM, now->dropped_full - told->dropped_full);
	count(dev, RCD_COUNTER_CM_RX_DROP_NOBODY, now->dropped_nobody - told->dropped_nobody);
	count(dev, RCD_COUNTER_CM_RX_DROP_STALE, now->stale - told->stale);
	*told = *now;
}

void
rcd_cma_take(struct rcd_engine *engine)
{
	struct rcd_cma *cma = engine->cma;
	struct rcd_cma_mad mad;

	for (uint32_t i = 0; rte_ring_dequeue_elem(cma->mads, &mad, sizeof(mad)) == 0; i++) {
		rcd_cm_rx(cma->agent, mad.mad, &mad.way, rcd_clock_ns());
		settle(cma, rcd_dev_by_serial(engine, mad.way.dev));
		engine->work += RCD_ROUND_CM;
		if (i + 1 == TAKE_MOST) {
			rcd_engine_wake(engine);
			return;
		}
	}
}

/* A MAD to send, with all that an lcore needs. */
struct sending {
	struct rcd_cma *cma;
	struct rcd_dev *dev;
	struct rcd_av av;
	const uint8_t *mad;
};

static void
send_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	const struct sending *sending = arg;
	struct rcd_roce roce = {
		.bth = {
			.opcode = RCD_OPCODE_UD_SEND_ONLY,
			.pkey = { RCD_PKEY_DEFAULT },
			.dest_qpn = { RCD_QPN_GSI },
			.psn = rcd_psn(sending->cma->psn++),
		},
		.deth = { .qkey = { RCD_QKEY_GSI }, .src_qpn = { RCD_QPN_GSI } },
	};
	struct rte_mbuf *mbuf =
		lcore->txq_of[sending->dev->index] != NULL ? rcd_tx_mbuf(lcore) : NULL;
	struct rcd_path path;
	const struct rcd_dev *loop;
	uint8_t *frame;
	size_t len;

	if (mbuf == NULL)
		return;
	rcd_tx_path(sending->dev, &sending->av, RCD_QPN_GSI, RCD_QPN_GSI, &path, &loop);
	path.ipv4_id = lcore->ipv4_id++;
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	len = rcd_pkt_build(frame, &path, &roce, RCD_MAD_LEN);
	memcpy(frame + len, sending->mad, RCD_MAD_LEN);
	len = rcd_pkt_seal(frame, &path, len, RCD_MAD_LEN);
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	if (loop != NULL)
		rcd_tx_loop(lcore, sending->dev, loop, mbuf);
	else
		rcd_tx_frame(lcore, sending->dev, mbuf);
}

/* @return 0; -EAGAIN: the neighbour is being asked for; or it can't be sent */
static int
try_send(struct rcd_cma *cma, const struct rcd_cm_way *way, const uint8_t *mad)
{
	struct sending sending = { .cma = cma, .dev = rcd_dev_by_serial(cma->engine, way->dev) };
	int at = sending.dev != NULL ? rcd_dev_gid_find(sending.dev, &way->local) : -1;
	struct rcd_next next;
	int err = 0;

	if (at < 0)
		return -ENODEV;
	sending.mad = mad;
	sending.av = (struct rcd_av){
		.sgid = way->local,
		.dgid = way->remote,
		.flow_label = way->flow_label,
		.sgid_index = (uint8_t)at,
		.tclass = way->tclass,
		.hop_limit = way->hop_limit,
	};
	memcpy(next.mac, way->mac, RCD_MAC_LEN);
	/*
	 * Who wrote to us is answered where that came from: strangers have us ask for nobody, and
	 * need no neighbour here. One that is known is at home where it is known to be.
	 */
	if (way->from_link)
		rcd_neigh_known(sending.dev, at, &way->remote, next.mac);
	else
		err = rcd_neigh_resolve(NULL, sending.dev, at, &way->remote, &next);
	if (err != 0)
		return err;
	memcpy(sending.av.dmac, next.mac, RCD_MAC_LEN);
	rcd_lcore_call(cma->engine->lcores[0], send_on_lcore, &sending);
	return 0;
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
		parked->until_ns = rcd_clock_ns() + PARKED_FOR_NS;
		parked->mad.way = *way;
		memcpy(parked->mad.mad, mad, RCD_MAD_LEN);
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
		if (try_send(cma, &parked->mad.way, parked->mad.mad) == -EAGAIN &&
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

	if (try_send(cma, way, mad) == -EAGAIN)
		park(cma, way, mad);
	settle(cma, rcd_dev_by_serial(cma->engine, way->dev));
}

uint32_t
rcd_cma_random(struct rcd_cma *cma)
{
	return rcd_random_u32(&cma->engine->random);
}

int
rcd_cma_create(struct rcd_engine *engine)
{
	static const struct rcd_cm_ops ops = { .send = on_send, .event = rcd_cma_on_event };
	struct rcd_cma *cma = calloc(1, sizeof(*cma));
	struct rcd_cm_conf conf = {
		.connections = RCD_CMA_CONNECTIONS,
		.req_rate = RCD_CMA_REQ_RATE,
		.secret = engine->secret[2],
		.first_tid = engine->secret[3],
		.guid = engine->generation,
		.life_ns = LIFE_NS,
		.patience = PATIENCE,
		.ops = &ops,
		.arg = cma,
	};

	if (cma == NULL)
		return -ENOMEM;
	engine->cma = cma;
	cma->engine = engine;
	TAILQ_INIT(&cma->waiting);
	cma->psn = rcd_cma_random(cma);
	cma->agent = rcd_cm_agent_create(&conf);
	cma->mads = rte_ring_create_elem("rocade_mads", sizeof(struct rcd_cma_mad), RCD_CMA_MADS,
		SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (cma->agent == NULL || cma->mads == NULL)
		return -ENOMEM;
	return rcd_cma_ports_init(cma);
}

void
rcd_cma_destroy(struct rcd_engine *engine)
{
	struct rcd_cma *cma = engine->cma;

	if (cma == NULL)
		return;
	rcd_cm_agent_destroy(cma->agent);
	rcd_cma_accounts_end(cma);
	rte_ring_free(cma->mads);
	rcd_cma_ports_fini(cma);
	free(cma);
	engine->cma = NULL;
}

void
rcd_cma_tick(struct rcd_engine *engine, uint64_t now_ns)
{
	struct rcd_cma *cma = engine->cma;

	if (!TAILQ_EMPTY(&cma->waiting))
		rcd_cmid_look(cma, now_ns);
	unpark(cma, now_ns);
	rcd_cm_expire(cma->agent, now_ns);
}

void
rcd_cma_neighbours(struct rcd_engine *engine)
{
	uint64_t now_ns = rcd_clock_ns();

	unpark(engine->cma, now_ns);
	rcd_cmid_look(engine->cma, now_ns);
}

bool
rcd_cma_busy(const struct rcd_engine *engine)
{
	return rcd_cm_agent_used(engine->cma->agent) > 0;
}

void
rcd_cma_dev_gone(struct rcd_dev *dev)
{
	struct rcd_cmid *id;

	LIST_FOREACH(id, &dev->engine->cma->ids, all_link)
	{
		if (id->dev != dev)
			continue;
		rcd_cmid_let_go(id);
		id->state = RCD_CMA_DEVICE_REMOVAL;
		id->dev = NULL;
		rcd_cma_event_tell(id, RCD_CMA_EVENT_DEVICE_REMOVAL, 0);
	}
}
