/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * QP1: MADs from lcores to the control thread, which gives them to the CM service, and from there
 * to the lcore that sends them. What they mean is lib/cma's business.
 */
#include "rcd_gsi.h"

#include <errno.h>
#include <rte_mbuf.h>
#include <rte_ring_elem.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_budget.h"
#include "rcd_cm_agent.h"
#include "rcd_cma.h"
#include "rcd_counter.h"
#include "rcd_dev.h"
#include "rcd_eth.h"
#include "rcd_gid_table.h"
#include "rcd_id.h"
#include "rcd_lcore.h"
#include "rcd_lcores.h"
#include "rcd_limits.h"
#include "rcd_lport.h"
#include "rcd_mad.h"
#include "rcd_pkt.h"
#include "rcd_ports.h"
#include "rcd_psn.h"
#include "rcd_qp.h"
#include "rcd_roce.h"
#include "rcd_route.h"
#include "rcd_thread.h"
#include "rcd_tx.h"

#define PKEY_BASE 0x7fffu
#define TAKE_MOST 64   /**< MADs before others have their turn */
#define MADS      1024 /**< that wait for the control thread; a power of two */
#define SEND_MOST 32   /**< MADs that an lcore is given at once */

/* A MAD on its way from an lcore. */
struct mad {
	struct rcd_cm_way way;
	uint8_t mad[RCD_MAD_LEN];
};

/* A MAD to send, with all that an lcore needs. */
struct sending {
	const struct rcd_lport *lport;
	struct rcd_av av;
	uint8_t mad[RCD_MAD_LEN];
};

struct rcd_gsi {
	struct rcd_ports *ports;
	struct rcd_lcores *lcores;
	struct rte_ring *mads;
	uint32_t psn; /**< of packets from QP1; the lcore's that sends them */
	uint32_t sending_count;
	struct sending sending[SEND_MOST]; /**< until rcd_gsi_flush() */
};

struct rcd_gsi *
rcd_gsi_create(struct rcd_ports *ports, struct rcd_lcores *lcores, uint32_t psn)
{
	struct rcd_gsi *gsi = calloc(1, sizeof(*gsi));

	RCD_ON_CONTROL();
	if (gsi == NULL)
		return NULL;
	*gsi = (struct rcd_gsi){ .ports = ports, .lcores = lcores, .psn = psn };
	gsi->mads = rte_ring_create_elem(
		"rocade_mads", sizeof(struct mad), MADS, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (gsi->mads == NULL) {
		free(gsi);
		return NULL;
	}
	return gsi;
}

void
rcd_gsi_destroy(struct rcd_gsi *gsi)
{
	RCD_ON_CONTROL();
	if (gsi == NULL)
		return;
	rte_ring_free(gsi->mads);
	free(gsi);
}

void
rcd_gsi_rx(const struct rcd_gsi *gsi, struct rcd_lcore *lcore, const struct rcd_lport *lport,
	const struct rcd_pkt *pkt, uint16_t vlan_id)
{
	const struct rcd_roce *roce = &pkt->roce;
	const struct rcd_gid_table *gids = &rcd_lport_view(lport)->gids;
	int at = rcd_gid_table_find(gids, &pkt->dgid);
	struct rte_ring *ring = gsi->mads;
	struct mad mad = {
		.way = {
			.local = pkt->dgid,
			.remote = pkt->sgid,
			.flow_label = pkt->flow_label,
			.netns = lport->netns,
			.dev = lport->serial,
			.tclass = pkt->tclass & 0xfc,
			.hop_limit = RCD_HOP_LIMIT,
			.from_link = true,
		},
	};

	RCD_ON_LCORES();
	if (roce->bth.opcode != RCD_OPCODE_UD_SEND_ONLY || pkt->payload_len != RCD_MAD_LEN) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_CM_RX_DROP_CLASS, 1);
		return;
	}
	/* Management speaks from QP1 to QP1; other queue pairs are users'. */
	if (roce->deth.src_qpn.val != RCD_QPN_GSI) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_CM_RX_DROP_SOURCE, 1);
		return;
	}
	if (roce->deth.qkey.val != RCD_QKEY_GSI || (roce->bth.pkey.val & PKEY_BASE) != PKEY_BASE ||
		at < 0) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_QKEY, 1);
		return;
	}
	if (gids->entries[at].vlan_id != vlan_id) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_RX_DROP_VLAN, 1);
		return;
	}
	/* An answer goes to one station, whatever was put there. */
	if (pkt->eth.src[0] & 1) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_CM_RX_DROP_SOURCE, 1);
		return;
	}
	memcpy(mad.way.mac, pkt->eth.src, RCD_MAC_LEN);
	memcpy(mad.mad, pkt->payload, RCD_MAD_LEN);
	if (rte_ring_enqueue_elem(ring, &mad, sizeof(mad)) != 0) {
		rcd_counter_add(rcd_lcore_counters(lcore, lport), RCD_COUNTER_CM_RX_DROP_FULL, 1);
		return;
	}
	rcd_lcores_told(gsi->lcores, ring);
}

uint32_t
rcd_gsi_take(struct rcd_gsi *gsi, struct rcd_cma *cma)
{
	struct mad mad;
	uint32_t taken = 0;

	RCD_ON_CONTROL();
	for (; taken < TAKE_MOST && rte_ring_dequeue_elem(gsi->mads, &mad, sizeof(mad)) == 0;
		taken++)
		rcd_cma_rx(cma, &mad.way, mad.mad);
	if (taken > 0)
		rcd_lcores_look_again(gsi->lcores, gsi->mads);
	return taken * RCD_ROUND_CM;
}

static void
gsi_send_one(struct rcd_lcore *lcore, struct rcd_gsi *gsi, const struct sending *sending)
{
	struct rcd_roce roce = {
		.bth = {
			.opcode = RCD_OPCODE_UD_SEND_ONLY,
			.pkey = { RCD_PKEY_DEFAULT },
			.dest_qpn = { RCD_QPN_GSI },
			.psn = rcd_psn(gsi->psn++),
		},
		.deth = { .qkey = { RCD_QKEY_GSI }, .src_qpn = { RCD_QPN_GSI } },
	};
	struct rte_mbuf *mbuf =
		lcore->txq_of[sending->lport->index] != NULL ? rcd_tx_mbuf(lcore) : NULL;
	struct rcd_path path;
	const struct rcd_lport *loop;
	uint8_t *frame;
	size_t len;

	if (mbuf == NULL)
		return;
	loop = rcd_tx_path(lcore, sending->lport, &sending->av, RCD_QPN_GSI, RCD_QPN_GSI, &path);
	path.ipv4_id = lcore->ipv4_id++;
	frame = rte_pktmbuf_mtod(mbuf, uint8_t *);
	len = rcd_pkt_build(frame, &path, &roce, RCD_MAD_LEN);
	memcpy(frame + len, sending->mad, RCD_MAD_LEN);
	len = rcd_pkt_seal(frame, &path, len, RCD_MAD_LEN);
	mbuf->data_len = (uint16_t)len;
	mbuf->pkt_len = (uint32_t)len;
	if (loop != NULL)
		rcd_tx_loop(lcore, sending->lport, loop, mbuf);
	else
		rcd_tx_frame(lcore, sending->lport, mbuf);
}

static int
gsi_send_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_gsi *gsi = arg;

	for (uint32_t i = 0; i < gsi->sending_count; i++)
		gsi_send_one(lcore, gsi, &gsi->sending[i]);
	lcore->work += gsi->sending_count;
	return 0;
}

void
rcd_gsi_flush(struct rcd_gsi *gsi)
{
	RCD_ON_CONTROL();
	if (gsi == NULL || gsi->sending_count == 0)
		return;
	rcd_lcore_call(gsi->lcores->lcore[0], gsi_send_on_lcore, gsi);
	gsi->sending_count = 0;
}

int
rcd_gsi_send(struct rcd_gsi *gsi, const struct rcd_cm_way *way, const uint8_t *mad,
	struct rcd_waiter *waiter)
{
	struct rcd_dev *dev = rcd_dev_by_serial(gsi->ports, way->dev);
	int at = dev != NULL ? rcd_dev_gid_find(dev, &way->local) : -1;
	struct rcd_route_query query = { .sgid_index = at, .dgid = &way->remote, .waiter = waiter };
	struct sending sending;
	uint32_t hop;
	int err = 0;

	RCD_ON_CONTROL();
	if (at < 0)
		return -ENODEV;
	sending.lport = &dev->lport;
	memcpy(sending.mad, mad, RCD_MAD_LEN);
	sending.av = (struct rcd_av){
		.sgid = way->local,
		.dgid = way->remote,
		.flow_label = way->flow_label,
		.sgid_index = (uint8_t)at,
		.tclass = way->tclass,
		.hop_limit = way->hop_limit,
	};
	memcpy(sending.av.dmac, way->mac, RCD_MAC_LEN);
	/*
	 * Who wrote to us is answered where that came from: strangers have us ask for nobody, and
	 * need no neighbour here. One that is known is at home where it is known to be.
	 */
	if (way->from_link)
		rcd_route_known(dev, at, &way->remote, sending.av.dmac);
	else
		err = rcd_route_resolve(dev, &query, sending.av.dmac, &hop);
	if (err != 0)
		return err;
	gsi->sending[gsi->sending_count++] = sending;
	if (gsi->sending_count == SEND_MOST)
		rcd_gsi_flush(gsi);
	return 0;
}
