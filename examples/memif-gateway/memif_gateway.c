/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Programs with verbs on one side, a pipeline on the other: a port of the program's own, a memif to
 * a VPP or the like, carries RoCE of the programs that attach to the engine in here. What comes and
 * is not theirs goes to a second port, if there is one, and what comes by that goes to the first.
 *
 *   memif-gateway [EAL OPTIONS] -- --address 10.0.0.1/24 [--mac MAC] [--mtu BYTES]
 *           [--socket PATH] [--vxlan VNI,LOCAL,REMOTE,MAC]
 *
 *   memif-gateway --vdev net_memif0,role=client,socket=/run/vpp/memif.sock -- --address 10.0.0.1/24
 *
 * With --vxlan RoCE is in a tunnel (RFC 7348): outer headers are taken off before the engine sees a
 * packet, and put before what it sends; LOCAL and REMOTE are the ends, MAC the next hop's, as this
 * program answers no ARP. All else is dropped then.
 */
#include <getopt.h>
#include <rcd_clock.h>
#include <rcd_dev_conf.h>
#include <rcd_engine.h>
#include <rcd_inline.h>
#include <rcd_poll.h>
#include <arpa/inet.h>
#include <netinet/ether.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_pdump.h>
#include <rte_udp.h>
#include <rte_vxlan.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "start_port.h"

#define BURST      32
#define BUFFERS    16383
#define ROOM       (RTE_PKTMBUF_HEADROOM + 9216)
#define PORTS      2
#define VXLAN_PORT 4789

/** What is before a frame in the tunnel. */
struct outer {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
	struct rte_vxlan_hdr vxlan;
} __rte_packed __rte_aligned(2);

struct gateway {
	struct rcd_engine *engine;
	struct rcd_lcore *lcore;
	struct rcd_inline *dev;
	uint16_t ports;
	bool tunnel;
	struct outer outer;
	uint64_t other, dropped;
};

static volatile sig_atomic_t stop;

static void
on_signal(int signo)
{
	(void)signo;
	stop = 1;
}

static void
send_all(struct gateway *gateway, uint16_t port, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t sent = rte_eth_tx_burst(port, 0, mbufs, count);

	/* A port that takes no more loses packets, as any does. */
	gateway->dropped += (uint64_t)(count - sent);
	rte_pktmbuf_free_bulk(mbufs + sent, count - sent);
}

/* Whether a packet is of our tunnel, and goes on without it. */
static bool
take_outer_off(struct gateway *gateway, struct rte_mbuf *mbuf)
{
	struct outer copy;
	const struct outer *outer = rte_pktmbuf_read(mbuf, 0, sizeof(copy), &copy);

	return outer != NULL && outer->eth.ether_type == gateway->outer.eth.ether_type &&
		outer->ip.version_ihl == gateway->outer.ip.version_ihl &&
		outer->ip.next_proto_id == IPPROTO_UDP &&
		outer->ip.dst_addr == gateway->outer.ip.src_addr &&
		outer->ip.src_addr == gateway->outer.ip.dst_addr &&
		outer->udp.dst_port == gateway->outer.udp.dst_port &&
		outer->vxlan.vx_vni == gateway->outer.vxlan.vx_vni &&
		rte_pktmbuf_adj(mbuf, sizeof(*outer)) != NULL;
}

static bool
put_outer_on(struct gateway *gateway, struct rte_mbuf *mbuf)
{
	uint32_t len = rte_pktmbuf_pkt_len(mbuf);
	struct outer *outer = (struct outer *)(void *)rte_pktmbuf_prepend(mbuf, sizeof(*outer));

	if (outer == NULL)
		return false;
	*outer = gateway->outer;
	outer->ip.total_length =
		rte_cpu_to_be_16((uint16_t)(len + sizeof(*outer) - sizeof(outer->eth)));
	outer->udp.dgram_len =
		rte_cpu_to_be_16((uint16_t)(len + sizeof(outer->udp) + sizeof(outer->vxlan)));
	outer->ip.hdr_checksum = rte_ipv4_cksum(&outer->ip);
	return true;
}

/* Packets of a burst for which this is so go first. @return how many */
static uint16_t
keep(struct gateway *gateway, struct rte_mbuf **mbufs, uint16_t count,
	bool (*fn)(struct gateway *gateway, struct rte_mbuf *mbuf))
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < count; i++) {
		if (fn(gateway, mbufs[i])) {
			mbufs[kept++] = mbufs[i];
		} else {
			gateway->dropped++;
			rte_pktmbuf_free(mbufs[i]);
		}
	}
	return kept;
}

/* @return whether there was something to do */
static bool
round_once(struct gateway *gateway)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count = rte_eth_rx_burst(0, 0, mbufs, BURST);
	uint32_t done = count;

	if (gateway->tunnel)
		count = keep(gateway, mbufs, count, take_outer_off);
	count = rcd_inline_rx(gateway->dev, gateway->lcore, mbufs, count);
	gateway->other += count;
	if (gateway->ports > 1 && !gateway->tunnel) {
		send_all(gateway, 1, mbufs, count);
		count = rte_eth_rx_burst(1, 0, mbufs, BURST);
		send_all(gateway, 0, mbufs, count);
	} else {
		rte_pktmbuf_free_bulk(mbufs, count);
	}
	done += rcd_lcore_poll(gateway->lcore, rcd_clock_ns(), BURST);
	while ((count = rcd_inline_tx(gateway->dev, gateway->lcore, mbufs, BURST)) > 0) {
		if (gateway->tunnel)
			count = keep(gateway, mbufs, count, put_outer_on);
		send_all(gateway, 0, mbufs, count);
	}
	return done > 0;
}

static int
loop(void *arg)
{
	struct gateway *gateway = arg;

	while (!rcd_lcore_stopping(gateway->lcore))
		if (!round_once(gateway))
			rte_pause();
	return 0;
}

/* @return exit status */
static int
run(struct gateway *gateway)
{
	struct rte_eth_link link;
	bool workers = rte_lcore_count() > 1;

	if (workers && rcd_engine_launch(gateway->engine, 0, loop, gateway) != 0)
		return 1;
	while (!stop && !rcd_engine_stopping(gateway->engine)) {
		/* Without a core of its own it leaves this one to others when there is nothing. */
		for (int i = 0; i < 16 && !workers; i++)
			if (!round_once(gateway))
				sched_yield();
		if (rte_eth_link_get_nowait(0, &link) == 0)
			rcd_inline_set_link(gateway->dev, link.link_status != 0);
		rcd_engine_step(gateway->engine, workers ? 100 : 0);
	}
	rcd_engine_end_loops(gateway->engine);
	return 0;
}

static int
parse_tunnel(struct gateway *gateway, const char *text)
{
	struct outer *outer = &gateway->outer;
	char local[32], remote[32], mac[32];
	struct ether_addr hop;
	unsigned int vni;

	if (sscanf(text, "%u,%31[^,],%31[^,],%31s", &vni, local, remote, mac) != 4 ||
		vni > 0xffffff || inet_pton(AF_INET, local, &outer->ip.src_addr) != 1 ||
		inet_pton(AF_INET, remote, &outer->ip.dst_addr) != 1 ||
		ether_aton_r(mac, &hop) == NULL)
		return -1;
	memcpy(&outer->eth.dst_addr, &hop, sizeof(hop));
	outer->eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	outer->ip.version_ihl = RTE_IPV4_VHL_DEF;
	outer->ip.time_to_live = 64;
	outer->ip.next_proto_id = IPPROTO_UDP;
	outer->udp.dst_port = RTE_BE16(VXLAN_PORT);
	outer->udp.src_port = RTE_BE16(0xc000);
	outer->vxlan.vx_flags = RTE_BE32(0x08000000);
	outer->vxlan.vx_vni = rte_cpu_to_be_32(vni << 8);
	gateway->tunnel = true;
	return 0;
}

static int
parse(struct gateway *gateway, int argc, char **argv, struct rcd_engine_conf *conf,
	struct rcd_dev_conf *dev)
{
	static const struct option options[] = { { "address", 1, NULL, 'a' },
		{ "mac", 1, NULL, 'm' }, { "mtu", 1, NULL, 'u' }, { "socket", 1, NULL, 's' },
		{ "vxlan", 1, NULL, 'x' }, { NULL, 0, NULL, 0 } };
	char error[256] = "";
	int letter, err = 0;

	snprintf(dev->name, sizeof(dev->name), "gateway0");
	while (err == 0 && (letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (letter == 's')
			snprintf(conf->socket, sizeof(conf->socket), "%s", optarg);
		else if (letter == 'x' || letter == '?')
			err = letter == 'x' ? parse_tunnel(gateway, optarg) : -1;
		else
			err = rcd_dev_conf_set(dev,
				letter == 'a'           ? "address"
					: letter == 'm' ? "mac"
							: "mtu",
				optarg, error, sizeof(error));
	}
	if (err == 0 && dev->addr_count > 0 && optind == argc)
		return 0;
	fprintf(stderr, "memif-gateway: %s\n",
		error[0] != '\0' ? error : "see the comment that its source begins with");
	return -1;
}

int
main(int argc, char **argv)
{
	struct gateway gateway = { .ports = 0 };
	struct rcd_dev_conf dev = { .addr_count = 0 };
	struct rcd_engine_conf conf;
	struct rte_ether_addr mac;
	struct rte_mempool *pool;
	char error[256] = "not all ports start, or there is none";
	int used = rte_eal_init(argc, argv), status = 1;
	uint16_t ports, mtu;

	if (used < 0)
		return 1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	rcd_engine_conf_init(&conf);
	conf.lcores = 1;
	rte_pdump_init(); /* for dpdk-dumpcap; without shared memory there is none */
	if (parse(&gateway, argc - used, argv + used, &conf, &dev) != 0)
		return 2;
	pool = rte_pktmbuf_pool_create("ports", BUFFERS, 256, 0, ROOM, SOCKET_ID_ANY);
	ports = RTE_MIN(rte_eth_dev_count_avail(), PORTS);
	while (pool != NULL && gateway.ports < ports &&
		start_port(gateway.ports, 1, pool, true) == 0)
		gateway.ports++;
	if (ports > 0 && gateway.ports == ports && rte_eth_macaddr_get(0, &mac) == 0) {
		gateway.outer.eth.src_addr = mac;
		/* What is before it in a tunnel is in the packets of the port, too. */
		if ((dev.given & 1u << RCD_LINK_KEY_MTU) == 0 && rte_eth_dev_get_mtu(0, &mtu) == 0)
			dev.mtu = mtu - (gateway.tunnel ? sizeof(gateway.outer) : 0);
		if ((dev.given & 1u << RCD_LINK_KEY_MAC) == 0)
			memcpy(dev.mac, &mac, sizeof(dev.mac));
		gateway.engine = rcd_engine_create(&conf, error, sizeof(error));
	}
	if (gateway.engine != NULL) {
		gateway.lcore = rcd_engine_lcore(gateway.engine, 0);
		gateway.dev = rcd_inline_create(gateway.engine, &dev, error, sizeof(error));
	}
	if (gateway.dev != NULL)
		status = run(&gateway);
	else
		fprintf(stderr, "memif-gateway: %s\n", error);
	rcd_inline_destroy(gateway.dev);
	start_port_stop(gateway.ports);
	rcd_engine_destroy(gateway.engine);
	printf("not RoCE: %llu packets, dropped: %llu\n", (unsigned long long)gateway.other,
		(unsigned long long)gateway.dropped);
	return status;
}
