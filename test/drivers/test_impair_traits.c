/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: net_impair has the traits of other drivers that it is told to have: frames in several
 * buffers, tags beside them, a filter of multicast groups, no promiscuous mode, a cable that is
 * out, PAUSE frames, events, statistics. Method: it wraps a ring port that receives what it sends.
 */
#include <errno.h>
#include <rte_bus_vdev.h>
#include <rte_eth_ring.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mempool.h>
#include <rte_udp.h>
#include <stdio.h>
#include <string.h>

#include "begin.h"
#include "rcd_pmd_impair.h"
#include "rcd_tap.h"

#define BUFFERS 255
#define TRAITS  "groups=2,vlans=2,promiscuous=0,pause=1,csum=1,lost=buffer"

static struct rte_mempool *pool;
static uint16_t port;
static int heard[RTE_ETH_EVENT_MAX];

static const struct rte_ether_addr ours = { { 2, 0, 0, 0, 0, 1 } };
static const struct rte_ether_addr group = { { 1, 0, 0x5e, 1, 2, 3 } };
static const struct rte_ether_addr other = { { 0x33, 0x33, 0, 0, 0, 9 } };
static const struct rte_ether_addr all = { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } };

static int
set(const char *args)
{
	char error[256] = "";

	return rcd_pmd_impair_set(port, args, error, sizeof(error));
}

/* Send a frame of so many bytes, each the low byte of its place behind the header. */
static void
give(const struct rte_ether_addr *to, uint16_t len, bool tagged)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint8_t *frame = (uint8_t *)rte_pktmbuf_append(mbuf, len);

	for (uint16_t i = 0; i < len; i++)
		frame[i] = (uint8_t)i;
	memcpy(frame, to, sizeof(*to));
	memcpy(frame + 12, tagged ? "\x81\0\x60\5\x88\xb5" : "\x88\xb5\xb5\xb5\xb5\xb5", 6);
	CU_ASSERT_EQUAL(rte_eth_tx_burst(port, 0, &mbuf, 1), 1);
}

static struct rte_mbuf *
take(void)
{
	struct rte_mbuf *mbuf = NULL;

	return rte_eth_rx_burst(port, 0, &mbuf, 1) == 1 ? mbuf : NULL;
}

static bool
comes(const struct rte_ether_addr *to)
{
	struct rte_mbuf *mbuf;

	give(to, 100, false);
	mbuf = take();
	rte_pktmbuf_free(mbuf);
	return mbuf != NULL;
}

static void
segments(void)
{
	static const uint16_t lens[] = { 60, 64, 65, 128, 1000 };
	uint8_t copy[1000];

	CU_ASSERT_EQUAL(set("segment=64"), 0);
	for (size_t i = 0; i < RTE_DIM(lens); i++) {
		struct rte_mbuf *mbuf;
		const uint8_t *bytes;

		give(&ours, lens[i], false);
		mbuf = take();
		CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
		CU_ASSERT_EQUAL(mbuf->nb_segs, (lens[i] + 63) / 64);
		CU_ASSERT_EQUAL(mbuf->pkt_len, lens[i]);
		CU_ASSERT_EQUAL(mbuf->data_len, RTE_MIN(lens[i], 64));
		bytes = rte_pktmbuf_read(mbuf, 0, lens[i], copy);
		CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
		for (uint16_t k = 18; k < lens[i]; k++)
			CU_ASSERT_EQUAL(bytes[k], (uint8_t)k);
		rte_pktmbuf_free(mbuf);
	}
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

/* What there are no buffers for is lost, and counted. */
static void
segments_without_buffers(void)
{
	struct rte_mbuf *held[BUFFERS];
	struct rte_eth_stats before, after;

	CU_ASSERT_EQUAL(set("segment=64"), 0);
	give(&ours, 1000, false);
	CU_ASSERT_EQUAL(rte_pktmbuf_alloc_bulk(pool, held, BUFFERS - 8), 0);
	CU_ASSERT_EQUAL(rte_eth_stats_get(port, &before), 0);
	CU_ASSERT_PTR_NULL(take());
	CU_ASSERT_EQUAL(rte_eth_stats_get(port, &after), 0);
	CU_ASSERT_EQUAL(after.rx_nombuf - before.rx_nombuf, 1);
	rte_pktmbuf_free_bulk(held, BUFFERS - 8);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static void
strips(void)
{
	CU_ASSERT_EQUAL(set("strip=1,segment=64"), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_set_vlan_offload(port, RTE_ETH_VLAN_FILTER_OFFLOAD), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_vlan_filter(port, 5, 1), 0);
	for (int tagged = 0; tagged < 2; tagged++) {
		struct rte_mbuf *mbuf;

		give(&ours, 100, tagged);
		mbuf = take();
		CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
		CU_ASSERT_EQUAL((mbuf->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) != 0, tagged);
		CU_ASSERT_EQUAL(mbuf->pkt_len, tagged ? 96 : 100);
		CU_ASSERT_EQUAL(rte_pktmbuf_mtod(mbuf, uint8_t *)[12], 0x88);
		if (tagged)
			CU_ASSERT_EQUAL(mbuf->vlan_tci, 0x6005);
		rte_pktmbuf_free(mbuf);
	}
	CU_ASSERT_EQUAL(rte_eth_dev_vlan_filter(port, 5, 0), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_set_vlan_offload(port, 0), 0);
}

static void
groups(void)
{
	struct rte_ether_addr list[3] = { group, other, ours };

	CU_ASSERT_EQUAL(set(""), 0);
	CU_ASSERT(comes(&ours) && comes(&all));
	CU_ASSERT(!comes(&group) && !comes(&other));
	CU_ASSERT_EQUAL(rte_eth_allmulticast_enable(port), -ENOTSUP);
	CU_ASSERT_EQUAL(rte_eth_promiscuous_enable(port), -ENOTSUP);
	CU_ASSERT_EQUAL(rte_eth_dev_set_mc_addr_list(port, list, 3), -ENOSPC);
	CU_ASSERT_EQUAL(rte_eth_dev_set_mc_addr_list(port, list, 1), 0);
	CU_ASSERT(comes(&group) && !comes(&other));
	CU_ASSERT_EQUAL(rte_eth_dev_set_mc_addr_list(port, list, 2), 0);
	CU_ASSERT(comes(&group) && comes(&other));
	/* It forgets them when it is stopped. */
	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_start(port), 0);
	CU_ASSERT(!comes(&group) && comes(&ours));
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static bool
comes_tagged(void)
{
	struct rte_mbuf *mbuf;

	give(&ours, 100, true);
	mbuf = take();
	rte_pktmbuf_free(mbuf);
	return mbuf != NULL;
}

static void
vlans(void)
{
	CU_ASSERT_EQUAL(set(""), 0);
	CU_ASSERT(!comes_tagged() && comes(&ours));
	CU_ASSERT_EQUAL(rte_eth_dev_set_vlan_offload(port, RTE_ETH_VLAN_FILTER_OFFLOAD), 0);
	CU_ASSERT(!comes_tagged() && comes(&ours));
	CU_ASSERT_EQUAL(rte_eth_dev_vlan_filter(port, 6, 1), 0);
	CU_ASSERT(!comes_tagged());
	CU_ASSERT_EQUAL(rte_eth_dev_vlan_filter(port, 5, 1), 0);
	CU_ASSERT(comes_tagged());
	CU_ASSERT(rte_eth_dev_vlan_filter(port, 7, 1) != 0);
	CU_ASSERT_EQUAL(rte_eth_dev_vlan_filter(port, 5, 1), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_vlan_filter(port, 5, 0), 0);
	CU_ASSERT(!comes_tagged() && comes(&ours));
}

static int
hear(uint16_t port_id, enum rte_eth_event_type type, void *arg, void *param)
{
	(void)port_id;
	(void)arg;
	(void)param;
	heard[type]++;
	return 0;
}

static void
cable(void)
{
	struct rte_eth_link link;

	for (int way = 0; way < 2; way++) {
		CU_ASSERT_EQUAL(set(way ? "link=1" : "link=0"), 0);
		CU_ASSERT_EQUAL(set(way ? "link=1" : "link=0"), 0);
		CU_ASSERT_EQUAL(heard[RTE_ETH_EVENT_INTR_LSC], way + 1);
		CU_ASSERT_EQUAL(rte_eth_link_get_nowait(port, &link), 0);
		CU_ASSERT_EQUAL(link.link_status, way ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN);
		CU_ASSERT_EQUAL(comes(&ours), way);
	}
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static void
pause_frames(void)
{
	static const enum rte_eth_fc_mode modes[] = { RTE_ETH_FC_NONE, RTE_ETH_FC_RX_PAUSE,
		RTE_ETH_FC_TX_PAUSE, RTE_ETH_FC_FULL };
	struct rte_eth_fc_conf conf = { .mode = RTE_ETH_FC_NONE };

	CU_ASSERT_EQUAL(rte_eth_dev_flow_ctrl_set(port, &conf), -EINVAL);
	for (size_t i = 0; i < RTE_DIM(modes); i++) {
		CU_ASSERT_EQUAL(rte_eth_dev_flow_ctrl_get(port, &conf), 0);
		conf.mode = modes[i];
		CU_ASSERT_EQUAL(rte_eth_dev_flow_ctrl_set(port, &conf), 0);
		CU_ASSERT_EQUAL(rte_eth_dev_flow_ctrl_get(port, &conf), 0);
		CU_ASSERT_EQUAL(conf.mode, modes[i]);
	}
}

static void
what_is_lost(void)
{
	struct rte_eth_stats before, after;

	CU_ASSERT_EQUAL(rte_eth_stats_get(port, &before), 0);
	CU_ASSERT_EQUAL(set("drop=1,side=rx"), 0);
	for (int i = 0; i < 7; i++)
		CU_ASSERT(!comes(&ours));
	CU_ASSERT_EQUAL(rte_eth_stats_get(port, &after), 0);
	CU_ASSERT_EQUAL(after.rx_nombuf - before.rx_nombuf, 7);
	CU_ASSERT_EQUAL(after.imissed - before.imissed, 0);
	CU_ASSERT_EQUAL(after.ierrors - before.ierrors, 0);
}

/* A datagram whose sum is left to the port, if any is. */
static struct rte_mbuf *
datagram(uint16_t payload, uint64_t flags)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	uint16_t len = sizeof(struct rte_ipv4_hdr) + sizeof(struct rte_udp_hdr) + payload;
	struct rte_ether_hdr *eth =
		(void *)rte_pktmbuf_append(mbuf, (uint16_t)(sizeof(*eth) + len));
	struct rte_ipv4_hdr *ip = (void *)(eth + 1);
	struct rte_udp_hdr *udp = (void *)(ip + 1);

	memset(eth, 0x5a, sizeof(*eth) + len);
	eth->dst_addr = ours;
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->fragment_offset = 0;
	ip->next_proto_id = IPPROTO_UDP;
	ip->total_length = rte_cpu_to_be_16(len);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)(sizeof(*udp) + payload));
	mbuf->l2_len = sizeof(*eth);
	mbuf->l3_len = sizeof(*ip);
	mbuf->ol_flags = flags;
	return mbuf;
}

/* Those that are left to it are there, before it does damage; what it can't do it says. */
static void
sums(void)
{
	const uint64_t udp = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
	struct rte_eth_dev_info info;
	struct rte_mbuf *mbuf;

	CU_ASSERT_EQUAL(rte_eth_dev_info_get(port, &info), 0);
	CU_ASSERT(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	CU_ASSERT(info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
	CU_ASSERT_EQUAL(set("seed=1"), 0);
	for (uint16_t payload = 18; payload < 40; payload++) {
		const struct rte_ipv4_hdr *ip;
		struct rte_udp_hdr *got;
		uint16_t sum;

		mbuf = datagram(payload, udp);
		CU_ASSERT_EQUAL(rte_eth_tx_prepare(port, 0, &mbuf, 1), 1);
		CU_ASSERT_EQUAL_FATAL(rte_eth_tx_burst(port, 0, &mbuf, 1), 1);
		CU_ASSERT_EQUAL_FATAL(rte_eth_rx_burst(port, 0, &mbuf, 1), 1);
		ip = rte_pktmbuf_mtod_offset(mbuf, void *, sizeof(struct rte_ether_hdr));
		got = rte_pktmbuf_mtod_offset(
			mbuf, void *, sizeof(struct rte_ether_hdr) + sizeof(*ip));
		sum = got->dgram_cksum;
		got->dgram_cksum = 0;
		CU_ASSERT_EQUAL(rte_ipv4_udptcp_cksum(ip, got), sum);
		rte_pktmbuf_free(mbuf);
	}
	mbuf = datagram(18, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_SCTP_CKSUM);
	CU_ASSERT_EQUAL(rte_eth_tx_prepare(port, 0, &mbuf, 1), 0);
	CU_ASSERT_EQUAL(rte_errno, ENOTSUP);
	mbuf->ol_flags = udp;
	mbuf->l3_len = 60;
	CU_ASSERT_EQUAL(rte_eth_tx_prepare(port, 0, &mbuf, 1), 0);
	CU_ASSERT_EQUAL(rte_errno, ENOTSUP);
	rte_pktmbuf_free(mbuf);
}

static void
wrong_arguments(void)
{
	static const char *const wrong[] = { "segment=31", "segment=65536", "segment=-1", "strip=2",
		"link=2", "link=", "remove=2", "groups=3", "groups=0", "groups=257", "vlans=0",
		"vlans=4096", "vlans=3", "vlans_off=1", "vlans_off=2", "promiscuous=1",
		"promiscuous=x", "pause=0", "csum=0", "csum=2", "lost=missed", "lost=never",
		"lost=" };

	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		char error[256] = "";

		if (rcd_pmd_impair_set(port, wrong[i], error, sizeof(error)) != -EINVAL)
			printf("# taken: %s\n", wrong[i]);
		CU_ASSERT_EQUAL(rcd_pmd_impair_set(port, wrong[i], error, sizeof(error)), -EINVAL);
		CU_ASSERT(error[0] != '\0');
	}
}

static void
removal(void)
{
	CU_ASSERT_EQUAL(set(""), 0);
	CU_ASSERT_EQUAL(heard[RTE_ETH_EVENT_INTR_RMV], 0);
	CU_ASSERT_EQUAL(set("remove=1"), 0);
	CU_ASSERT_EQUAL(heard[RTE_ETH_EVENT_INTR_RMV], 1);
	CU_ASSERT_EQUAL(heard[RTE_ETH_EVENT_INTR_RESET], 0);
	CU_ASSERT_PTR_NULL(take());
	CU_ASSERT_EQUAL(rte_eth_dev_stop(port), 0);
	CU_ASSERT_EQUAL(rte_eth_dev_close(port), 0);
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static int
open_port(void)
{
	static const enum rte_eth_event_type events[] = { RTE_ETH_EVENT_INTR_LSC,
		RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_INTR_RMV };
	struct rte_ring *ring =
		rte_ring_create("loop", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	struct rte_eth_conf conf = { .rxmode.mtu = 1500 };

	pool = rte_pktmbuf_pool_create(
		"pool", BUFFERS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (ring == NULL || pool == NULL ||
		rte_eth_from_rings("loop", &ring, 1, &ring, 1, (unsigned int)SOCKET_ID_ANY) < 0 ||
		rte_vdev_init("net_impair0", "port=net_ring_loop," TRAITS) != 0 ||
		rte_eth_dev_get_port_by_name("net_impair0", &port) != 0)
		return -1;
	for (size_t i = 0; i < RTE_DIM(events); i++)
		rte_eth_dev_callback_register(port, events[i], hear, NULL);
	return rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
			rte_eth_rx_queue_setup(port, 0, 256, 0, NULL, pool) != 0 ||
			rte_eth_tx_queue_setup(port, 0, 256, 0, NULL) != 0
		? -1
		: rte_eth_dev_start(port);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(segments),
		RCD_TEST(segments_without_buffers),
		RCD_TEST(strips),
		RCD_TEST(groups),
		RCD_TEST(vlans),
		RCD_TEST(cable),
		RCD_TEST(pause_frames),
		RCD_TEST(what_is_lost),
		RCD_TEST(sums),
		RCD_TEST(wrong_arguments),
		RCD_TEST(removal),
	};

	if (begin_eal("impair_traits") != 0 || open_port() != 0) {
		printf("Bail out! no port\n");
		return 1;
	}
	return rcd_tap_run("impair_traits", tests, RTE_DIM(tests));
}
