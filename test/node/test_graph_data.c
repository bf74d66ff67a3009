/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: RoCE that ends in a graph carries every byte right, though the network loses packets of it,
 * while the graph routes other traffic beside it, of which every packet goes on unchanged, in
 * order, and is counted.
 *
 * Method: a router of two ports of rings, walked by the test. Behind port 0 there is a peer: a
 * device of the same engine, whose frames the test carries, and loses some of, in the midst of
 * traffic of all kinds (mix.c). Queue pairs of both sides write, read and send to each other,
 * requests of every length.
 *
 *     mix.c ──────────┬── ring ── ethdev_rx-0-0 ── rocade_classify-0 ─┬─ pkt_cls ── ip4_lookup ...
 *     peer ── losses ─┘                                               └─ rocade_rx-0
 *
 *     rocade_poll ── rocade_tx-0 ── ethdev_tx-0 ── ring ─┬─ losses ── peer
 *                                                        └─ mix.c
 */
#include <assert.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_graph_worker.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_node_eth_api.h>
#include <rte_node_ip4_api.h>
#include <rte_ring.h>
#include <stdio.h>
#include <string.h>

#include "local_rig.h"
#include "mix.h"
#include "rcd_bytes.h"
#include "rcd_counter.h"
#include "rcd_eth.h"
#include "rcd_inline.h"
#include "rcd_node.h"
#include "rcd_number.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define BUFFERS   8191
#define BURST     64
#define SEED      20261126
#define LOST      40 /**< of a thousand packets of RoCE, each way */
#define REQUESTS  8  /**< of each side at once */
#define LONGEST   6000
#define REGION    (SIDE_BYTES / 4) /**< a quarter for each kind of request */
#define SPACING   (REGION / REQUESTS)
#define PEER_MAC  "02:00:00:00:0b:80"
#define PEER_ADDR "10.0.0.8/24"

static_assert(LONGEST <= SPACING, "requests lie side by side");

/* Frames of one direction. */
struct way {
	uint64_t roce, lost;
};

static struct rte_mempool *pool;
static struct rte_ring *wire; /**< what port 0 sends */
static struct rcd_inline *devs[MIX_PORTS], *peer;
static struct rcd_lcore *lcore;
static struct rte_graph *graph;
static struct mix mix;
static struct side here, there;
static struct way to_graph, to_peer;
static struct rcd_sequence drawn = { SEED };
static uint32_t traffic; /**< packets of mix.c in a turn, at most */

static uint32_t
draw(uint32_t below)
{
	return (uint32_t)(rcd_sequence_next(&drawn) >> 8) % below;
}

/* Whether a frame of the peer's, or for it, goes lost: RoCE, as others are asked for once. */
static bool
is_lost(struct way *way, const struct rte_mbuf *mbuf)
{
	bool lost;

	if (rcd_get_be16(rte_pktmbuf_mtod(mbuf, const uint8_t *) + 12) != RCD_ETHERTYPE_IPV4)
		return false;
	lost = draw(1000) < LOST;
	way->roce += !lost;
	way->lost += lost;
	return lost;
}

/* @return how many are left, in order */
static uint16_t
lose(struct way *way, struct rte_mbuf **mbufs, uint16_t count)
{
	uint16_t left = 0;

	for (uint16_t i = 0; i < count; i++)
		if (is_lost(way, mbufs[i]))
			rte_pktmbuf_free(mbufs[i]);
		else
			mbufs[left++] = mbufs[i];
	return left;
}

static void
carry_to_graph(void)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count = rcd_inline_tx(peer, lcore, mbufs, BURST);

	count = lose(&to_graph, mbufs, count);
	CU_ASSERT_EQUAL(rte_ring_enqueue_bulk(mix.in[0][0], (void **)mbufs, count, NULL), count);
}

static void
carry_to_peer(void)
{
	struct rte_mbuf *mbufs[BURST], *ours[BURST];
	uint16_t count, left;

	while ((count = (uint16_t)rte_ring_dequeue_burst(wire, (void **)mbufs, BURST, NULL)) > 0) {
		left = rcd_inline_split(peer, lcore, mbufs, count, ours);
		count = lose(&to_peer, ours, (uint16_t)(count - left));
		rcd_inline_give(peer, lcore, ours, count);
		CU_ASSERT_EQUAL(
			rte_ring_enqueue_bulk(mix.out[0][0], (void **)mbufs, left, NULL), left);
	}
	mix_get(&mix, 0, 0);
	mix_get(&mix, 1, 0);
}

/* Other traffic before, between and behind what the peer sends. */
static void
turn(void)
{
	for (int i = 0; i < 3; i++) {
		if (traffic > 0) {
			mix_put(&mix, 0, 0, MIX_ANY, draw(traffic));
			mix_put(&mix, 1, 0, MIX_ANY, draw(traffic));
		}
		carry_to_graph();
	}
	rte_graph_walk(graph);
	carry_to_peer();
}

static uint64_t
count_of(const char *device, enum rcd_counter counter)
{
	return rcd_engine_dev_count(engine, device, counter);
}

static void
made(void)
{
	const char *patterns[] = { "ethdev_rx-?-0", "rocade_poll" };
	struct rte_graph_param param = { .socket_id = (int)rte_socket_id(),
		.nb_node_patterns = RTE_DIM(patterns),
		.node_patterns = patterns };

	devs[0] = local_feed("port0", "02:00:00:00:0a:00", "10.0.0.1/24");
	devs[1] = local_feed("port1", "02:00:00:00:0a:01", "10.0.1.1/24");
	peer = local_feed("peer", PEER_MAC, PEER_ADDR);
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		struct rcd_node_conf conf = { .dev = devs[port], .port_id = port };

		CU_ASSERT_EQUAL_FATAL(rcd_node_add(&conf), 0);
		CU_ASSERT_EQUAL_FATAL(rcd_node_insert(port), 0);
	}
	CU_ASSERT_EQUAL_FATAL(rcd_node_bind("graph", lcore), 0);
	CU_ASSERT_NOT_EQUAL_FATAL(rte_graph_create("graph", &param), RTE_GRAPH_ID_INVALID);
	graph = rte_graph_lookup("graph");
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		struct rte_ether_hdr eth = { .dst_addr = { MIX_MAC(port, true) },
			.src_addr = { MIX_MAC(port, false) },
			.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4) };

		CU_ASSERT_EQUAL_FATAL(
			rte_node_ip4_rewrite_add(port, (uint8_t *)&eth, sizeof(eth), port), 0);
		CU_ASSERT_EQUAL_FATAL(rte_node_ip4_route_add(RTE_IPV4(10, 2, port, 0), 24, port,
					      RTE_NODE_IP4_LOOKUP_NEXT_REWRITE),
			0);
	}
}

static void
joined(void)
{
	side_open(&here, "port0", RCD_QP_RC);
	side_open(&there, "peer", RCD_QP_RC);
	side_join(&here, &there);
	CU_ASSERT_EQUAL(to_graph.lost + to_peer.lost, 0);
}

/* Where the bytes of a kind of request lie, in the memory of who has them and of who gets them. */
enum part {
	PART_WRITTEN, /**< from here, there... */
	PART_READ,    /**< ...to here, from there... */
	PART_SENT,    /**< ...and to where a receive request says */
	PART_BACK,    /**< the same that was written, from there */
};

static uint64_t
place(enum part part, uint32_t index)
{
	return (uint64_t)part * REGION + index * SPACING;
}

static void
fill(struct side *side, enum part part, uint32_t index, uint32_t len, uint32_t seed)
{
	memset(side->memory + place(part, index), 0, SPACING);
	bytes_fill(side->memory + place(part, index), len, seed);
}

/* All of it, and nothing behind it. */
static bool
is_right(const struct side *side, enum part part, uint32_t index, uint32_t len, uint32_t seed)
{
	const uint8_t *memory = side->memory + place(part, index);

	for (uint32_t i = len; i < SPACING; i++)
		if (memory[i] != 0)
			return false;
	return bytes_filled(memory, len, seed);
}

static void
post(struct side *from, struct side *to, uint8_t opcode, enum part part, uint32_t index,
	uint32_t len)
{
	struct rcd_sge sge;
	struct rcd_send_wr wr = side_wr(from, to, opcode, &sge, place(part, index), len);

	CU_ASSERT_EQUAL_FATAL(rcd_local_post_send(from->qp, &wr, NULL), 0);
}

static void
post_recv(struct side *side, uint32_t index)
{
	struct rcd_sge sge = { (uintptr_t)side->memory + place(PART_SENT, index), SPACING,
		side->key };
	struct rcd_recv_wr wr = { .wr_id = place(PART_SENT, index), .sge_count = 1, .sges = &sge };

	CU_ASSERT_EQUAL_FATAL(rcd_local_post_recv(side->qp, &wr), 0);
}

/* All of a side are complete, and well; what was received is of the length that was sent. */
static void
take(struct side *side, uint32_t count, const uint32_t *lens)
{
	struct rcd_cq_slot slot;
	uint32_t received = 0;

	while (count-- > 0) {
		CU_ASSERT_EQUAL_FATAL(side_wait(side, &slot), RCD_WC_SUCCESS);
		if (slot.opcode != RCD_WC_RECV)
			continue;
		CU_ASSERT_EQUAL(slot.wr_id, place(PART_SENT, received));
		CU_ASSERT_EQUAL(slot.byte_len, lens[received]);
		received++;
	}
}

/* Requests of all kinds, both ways. @param seed  of their bytes: each has two of its own */
static void
batch(uint32_t seed)
{
	uint32_t lens[REQUESTS];

	for (uint32_t i = 0; i < REQUESTS; i++) {
		uint32_t len = lens[i] = 1 + draw(LONGEST);

		memset(there.memory + place(PART_WRITTEN, i), 0, SPACING);
		memset(there.memory + place(PART_SENT, i), 0, SPACING);
		memset(here.memory + place(PART_READ, i), 0, SPACING);
		memset(here.memory + place(PART_BACK, i), 0, SPACING);
		fill(&here, PART_WRITTEN, i, len, seed + 4 * i);
		fill(&there, PART_READ, i, len, seed + 4 * i + 1);
		fill(&here, PART_SENT, i, len, seed + 4 * i + 2);
		fill(&there, PART_BACK, i, len, seed + 4 * i + 3);
		post_recv(&there, i);
		post(&here, &there, RCD_WR_RDMA_WRITE, PART_WRITTEN, i, len);
		post(&here, &there, RCD_WR_RDMA_READ, PART_READ, i, len);
		post(&here, &there, RCD_WR_SEND, PART_SENT, i, len);
		post(&there, &here, RCD_WR_RDMA_WRITE, PART_BACK, i, len);
	}
	rcd_local_ring(here.qp);
	rcd_local_ring(there.qp);
	take(&here, 3 * REQUESTS, lens);
	take(&there, 2 * REQUESTS, lens);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		CU_ASSERT(is_right(&there, PART_WRITTEN, i, lens[i], seed + 4 * i));
		CU_ASSERT(is_right(&here, PART_READ, i, lens[i], seed + 4 * i + 1));
		CU_ASSERT(is_right(&there, PART_SENT, i, lens[i], seed + 4 * i + 2));
		CU_ASSERT(is_right(&here, PART_BACK, i, lens[i], seed + 4 * i + 3));
	}
}

static uint64_t
objs_of(const char *node)
{
	return rte_graph_node_get_by_name("graph", node)->total_objs;
}

/* What is on its way arrives. */
static void
settle(void)
{
	traffic = 0;
	for (int i = 0; i < 40; i++)
		local_turn();
}

/* Nothing of the others is wrong, missing or late; all are counted, by nodes and devices. */
static void
others_right(void)
{
	uint64_t routed = 0;

	settle();
	CU_ASSERT_EQUAL(mix_missing(&mix), 0);
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		const struct mix_count *put = &mix.put[port], *got = &mix.got[port];

		CU_ASSERT_EQUAL(put->wrong, 0);
		CU_ASSERT_EQUAL(got->wrong, 0);
		CU_ASSERT_EQUAL(got->arp, put->arp);
		CU_ASSERT_EQUAL(got->echo, put->echo);
		CU_ASSERT(put->routed > 1000 && put->roce > 100);
		CU_ASSERT_EQUAL(
			count_of(port == 0 ? "port0" : "port1", RCD_COUNTER_RX_DROP_FED), 0);
		routed += got->routed;
	}
	CU_ASSERT_EQUAL(routed, mix.put[0].routed + mix.put[1].routed);
	CU_ASSERT_EQUAL(objs_of("pkt_cls"), routed + mix.put[0].dropped + mix.put[1].dropped);
	CU_ASSERT_EQUAL(objs_of("pkt_drop"), mix.put[0].dropped + mix.put[1].dropped);
	CU_ASSERT_EQUAL(objs_of("rocade_classify-1"), mix.put[1].all);
}

/* Every packet of RoCE that was carried was seen, and the lost ones were sent again. */
static void
roce_counted(void)
{
	CU_ASSERT_EQUAL(count_of("port0", RCD_COUNTER_RX_ROCE), mix.put[0].roce + to_graph.roce);
	CU_ASSERT_EQUAL(count_of("port1", RCD_COUNTER_RX_ROCE), mix.put[1].roce);
	CU_ASSERT_EQUAL(count_of("peer", RCD_COUNTER_RX_ROCE), to_peer.roce);
	CU_ASSERT_EQUAL(count_of("peer", RCD_COUNTER_RX_DROP_FED), 0);
	CU_ASSERT(to_graph.lost > 50 && to_peer.lost > 50);
	CU_ASSERT(count_of("port0", RCD_COUNTER_RETRANSMITTED_PKTS) > 20);
	CU_ASSERT(count_of("peer", RCD_COUNTER_RETRANSMITTED_PKTS) > 20);
	printf("# to the graph %u of %u packets of RoCE were lost, to the peer %u of %u\n",
		(unsigned int)to_graph.lost, (unsigned int)(to_graph.lost + to_graph.roce),
		(unsigned int)to_peer.lost, (unsigned int)(to_peer.lost + to_peer.roce));
}

static void
data_with_loss(void)
{
	for (uint32_t i = 0; i < 60; i++) {
		traffic = 40;
		batch(SEED + i * 4 * REQUESTS);
	}
	others_right();
	roce_counted();
}

static void
all_back(void)
{
	side_close(&here);
	side_close(&there);
	settle();
	local_audit();
	CU_ASSERT_EQUAL(rte_mempool_avail_count(pool), BUFFERS);
}

static int
make_port(uint16_t port)
{
	struct rte_eth_conf conf = { .rxmode.mq_mode = RTE_ETH_MQ_RX_NONE };
	char name[16];

	snprintf(name, sizeof(name), "mix%u", port);
	if (rte_eth_from_rings(name, mix.in[port], 1, port == 0 ? &wire : mix.out[port], 1,
		    SOCKET_ID_ANY) != port ||
		rte_eth_dev_configure(port, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) != 0 ||
		rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) != 0)
		return -1;
	return rte_eth_dev_start(port);
}

static int
begin(void)
{
	struct rte_node_ethdev_config ports[MIX_PORTS];
	struct rcd_engine_conf conf;
	char error[256] = "";

	local_eal("0");
	/* The graph does. */
	local_polls = false;
	local_also = turn;
	pool = rte_pktmbuf_pool_create("packets", BUFFERS, 0, 0, 1024, SOCKET_ID_ANY);
	wire = rte_ring_create("wire", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (pool == NULL || wire == NULL || mix_init(&mix, pool, SEED) != 0)
		return -1;
	for (uint16_t port = 0; port < MIX_PORTS; port++) {
		if (make_port(port) != 0)
			return -1;
		ports[port] = (struct rte_node_ethdev_config){
			.port_id = port, .num_rx_queues = 1, .num_tx_queues = 1
		};
	}
	if (rte_node_eth_config(ports, MIX_PORTS, 1) != 0)
		return -1;
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 4095;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	if (engine == NULL) {
		fprintf(stderr, "# %s\n", error);
		return -1;
	}
	lcore = rcd_engine_lcore(engine, 0);
	return 0;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(made),
		RCD_TEST(joined),
		RCD_TEST(data_with_loss),
		RCD_TEST(all_back),
	};
	int status;

	if (begin() != 0)
		return 1;
	printf("# seed %d\n", SEED);
	status = rcd_tap_run("graph_data", tests, RTE_DIM(tests));
	rte_graph_destroy(rte_graph_from_name("graph"));
	for (uint16_t port = 0; port < MIX_PORTS; port++)
		rcd_inline_destroy(devs[port]);
	rcd_inline_destroy(peer);
	rcd_engine_destroy(engine);
	return status;
}
