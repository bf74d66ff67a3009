/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: RoCE of devices that a program feeds is right on several lcores, whichever of them is given
 * a packet: what comes to another than that of its queue pair is handed over, and counted. Another
 * MTU of the program's port gives longer packets. A packet of which the port does not show the IPv4
 * identification is taken, and counted, if its ICRC is right for any; no other is.
 *
 * Method: two devices of an engine with two lcores, and a queue pair on each, on lcores of their
 * own. The test polls both, and carries what one device sends to the other, to the lcore that a
 * test says.
 */
#include <errno.h>
#include <rte_common.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>
#include <string.h>

#include "local_rig.h"
#include "rcd_bytes.h"
#include "rcd_counter.h"
#include "rcd_csum.h"
#include "rcd_dev_conf.h"
#include "rcd_eth.h"
#include "rcd_inline.h"
#include "rcd_ip.h"
#include "rcd_mbuf_flag.h"
#include "rcd_number.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define BURST    64
#define SEED     20261126
#define LEN      20000
#define PATH_MTU 1024

/** Where packets are given to. */
enum feed {
	FEED_OWNER,  /**< the lcore of the queue pair that they are for */
	FEED_OTHER,  /**< the other one */
	FEED_EITHER, /**< now this, now that */
};

static struct rcd_inline *devs[2];
static struct side sides[2];
static enum feed feed = FEED_OWNER;
static struct rcd_sequence drawn = { SEED };
static uint32_t longest;
static uint64_t any_id; /**< the flag of mbufs */

/** What becomes of packets on their way. */
static struct {
	bool other_id;  /**< they get another identification... */
	uint64_t flags; /**< ...and these */
	bool damaged;   /**< the next one besides */
} way;

static uint32_t
lcore_for(uint32_t to)
{
	uint32_t owner = rcd_local_lcore(sides[to].local);

	if (feed == FEED_EITHER)
		return (uint32_t)(rcd_sequence_next(&drawn) >> 8) % 2;
	return feed == FEED_OWNER ? owner : 1 - owner;
}

/* As a port hands over that knows no identification. */
static void
change_id(struct rte_mbuf *mbuf)
{
	uint8_t *ip = rte_pktmbuf_mtod_offset(mbuf, uint8_t *, RCD_ETH_LEN);

	rcd_put_be16(ip + 4, (uint16_t)(rcd_get_be16(ip + 4) + 12345));
	rcd_put_be16(ip + 10, 0);
	rcd_put_be16(ip + 10, rcd_csum_fold(rcd_csum_add(0, ip, RCD_IPV4_LEN)));
	if (way.damaged)
		ip[rte_pktmbuf_data_len(mbuf) - RCD_ETH_LEN - 1] ^= 1;
	way.damaged = false;
	mbuf->ol_flags |= way.flags;
}

/* What a device sends by an lcore, to the other device. */
static void
carry(uint32_t from, uint32_t index)
{
	struct rte_mbuf *mbufs[BURST];
	uint16_t count, left;

	count = rcd_inline_tx(devs[from], rcd_engine_lcore(engine, index), mbufs, BURST);
	for (uint16_t i = 0; i < count; i++) {
		longest = RTE_MAX(longest, rte_pktmbuf_pkt_len(mbufs[i]));
		if (way.other_id)
			change_id(mbufs[i]);
		left = rcd_inline_rx(devs[1 - from], rcd_engine_lcore(engine, lcore_for(1 - from)),
			&mbufs[i], 1);
		/* What all are to hear is the program's, too. */
		if (left > 0)
			rte_pktmbuf_free(mbufs[i]);
	}
}

static void
turn(void)
{
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t index = 0; index < 2; index++)
			if (devs[0] != NULL && devs[1] != NULL && sides[1 - i].local != NULL)
				carry(i, index);
}

static void
open_sides(void)
{
	static const char *const names[] = { "x", "y" };

	for (uint32_t i = 0; i < 2; i++)
		side_open(&sides[i], names[i], RCD_QP_RC);
	CU_ASSERT_NOT_EQUAL_FATAL(rcd_local_lcore(sides[0].local), rcd_local_lcore(sides[1].local));
}

static void
begun(void)
{
	static const struct rte_mbuf_dynflag flag = { .name = RCD_MBUF_FLAG_ANY_ID };
	int bit = rte_mbuf_dynflag_register(&flag);

	CU_ASSERT_FATAL(bit >= 0);
	any_id = UINT64_C(1) << bit;
	local_begin(NULL);
	CU_ASSERT_EQUAL_FATAL(rcd_engine_lcore_count(engine), 2);
	devs[0] = local_feed("x", "02:00:00:00:0c:00", "10.8.0.1/24");
	devs[1] = local_feed("y", "02:00:00:00:0c:01", "10.8.0.2/24");
	/* There are workers, and this thread polls for them. */
	local_polls = true;
	local_also = turn;
	open_sides();
	side_join(&sides[0], &sides[1]);
}

static uint64_t
count_of(enum rcd_counter counter)
{
	return rcd_engine_dev_count(engine, "x", counter) +
		rcd_engine_dev_count(engine, "y", counter);
}

/* WRITEs and READs both ways, of which each byte is looked at. */
static void
transfer(uint32_t seed)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct side *from = &sides[i], *to = &sides[1 - i];
		struct rcd_cq_slot slot;
		struct rcd_sge sge;
		struct rcd_send_wr wr;

		bytes_fill(from->memory, LEN, seed + i);
		memset(to->memory, 0, LEN);
		wr = side_wr(from, to, RCD_WR_RDMA_WRITE, &sge, 0, LEN);
		CU_ASSERT_EQUAL_FATAL(rcd_local_post_send(from->qp, &wr, NULL), 0);
		rcd_local_ring(from->qp);
		CU_ASSERT_EQUAL_FATAL(side_wait(from, &slot), RCD_WC_SUCCESS);
		CU_ASSERT(bytes_filled(to->memory, LEN, seed + i));
		memset(from->memory, 0, LEN);
		wr = side_wr(from, to, RCD_WR_RDMA_READ, &sge, 0, LEN);
		CU_ASSERT_EQUAL_FATAL(rcd_local_post_send(from->qp, &wr, NULL), 0);
		rcd_local_ring(from->qp);
		CU_ASSERT_EQUAL_FATAL(side_wait(from, &slot), RCD_WC_SUCCESS);
		CU_ASSERT(bytes_filled(from->memory, LEN, seed + i));
	}
}

static void
handed_over(void)
{
	static const char *const names[] = { "owner", "other", "either" };

	for (feed = FEED_OWNER; feed <= FEED_EITHER; feed++) {
		uint64_t roce = count_of(RCD_COUNTER_RX_ROCE);
		uint64_t handed = count_of(RCD_COUNTER_RX_HANDOVER);

		for (uint32_t round = 0; round < 20; round++)
			transfer(SEED + 2 * round);
		roce = count_of(RCD_COUNTER_RX_ROCE) - roce;
		handed = count_of(RCD_COUNTER_RX_HANDOVER) - handed;
		printf("# to the %s: %u of %u packets were handed over\n", names[feed],
			(unsigned int)handed, (unsigned int)roce);
		CU_ASSERT(roce > 20 * 4 * LEN / PATH_MTU);
		if (feed == FEED_OWNER)
			CU_ASSERT_EQUAL(handed, 0);
		if (feed == FEED_OTHER)
			CU_ASSERT_EQUAL(handed, roce);
		if (feed == FEED_EITHER)
			CU_ASSERT(handed > roce / 4 && handed < roce - roce / 4);
	}
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_DROP_HANDOVER), 0);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_DROP_FED), 0);
	feed = FEED_OWNER;
}

/* A message gets there when packets have the flag, by each of them; until then none does. */
static void
identification_not_known(void)
{
	uint64_t roce = count_of(RCD_COUNTER_RX_ROCE), dropped;
	struct rcd_cq_slot slot;
	struct rcd_sge sge;
	struct rcd_send_wr wr = side_wr(&sides[0], &sides[1], RCD_WR_RDMA_WRITE, &sge, 0, LEN);

	way.other_id = true;
	CU_ASSERT_EQUAL_FATAL(rcd_local_post_send(sides[0].qp, &wr, NULL), 0);
	rcd_local_ring(sides[0].qp);
	LOCAL_UNTIL(count_of(RCD_COUNTER_RX_DROP_ICRC) >= LEN / PATH_MTU);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_ROCE), roce);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_ANY_ID), 0);
	way.flags = any_id;
	CU_ASSERT_EQUAL(side_wait(&sides[0], &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(memcmp(sides[0].memory, sides[1].memory, LEN), 0);
	for (feed = FEED_OWNER; feed <= FEED_EITHER; feed++)
		transfer(SEED + 50);
	feed = FEED_OWNER;
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_ANY_ID), count_of(RCD_COUNTER_RX_ROCE) - roce);
	/* It is no way around the check. */
	dropped = count_of(RCD_COUNTER_RX_DROP_ICRC);
	way.damaged = true;
	transfer(SEED + 60);
	CU_ASSERT(!way.damaged);
	CU_ASSERT_EQUAL(count_of(RCD_COUNTER_RX_DROP_ICRC), dropped + 1);
	way.other_id = false;
}

static struct rcd_ctrl_port_rep
port_of(const struct side *side)
{
	struct rcd_ctrl_port_rep port;

	CU_ASSERT_EQUAL_FATAL(rcd_local_port(side->local, &port), 0);
	return port;
}

static uint32_t
active_mtu(const struct side *side)
{
	return port_of(side).active_mtu_bytes;
}

static int
connect_by(struct side *side, const struct side *peer, uint32_t path_mtu)
{
	struct rcd_ctrl_qp_attr attr =
		side_attr(side, peer->gids.gids[peer->gid].raw, rcd_local_qp_num(peer->qp));

	attr.path_mtu_bytes = (uint16_t)path_mtu;
	return side_connect(side->qp, attr);
}

static void
another_mtu(void)
{
	static const uint32_t none[] = { 0, 1, RCD_DEV_MTU_MIN - 1, RCD_DEV_MTU_MAX + 1,
		UINT32_MAX };

	for (size_t i = 0; i < RTE_DIM(none); i++)
		CU_ASSERT_EQUAL(rcd_inline_set_mtu(devs[0], none[i]), -EINVAL);
	CU_ASSERT_EQUAL(active_mtu(&sides[0]), PATH_MTU);
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(rcd_inline_set_mtu(devs[i], 9000), 0);
	CU_ASSERT_EQUAL(active_mtu(&sides[0]), 4096);
	CU_ASSERT_EQUAL(active_mtu(&sides[1]), 4096);
	/* What is connected goes on as it was. */
	longest = 0;
	transfer(SEED + 100);
	CU_ASSERT(longest > PATH_MTU && longest < 1500);
	for (uint32_t i = 0; i < 2; i++)
		side_close(&sides[i]);
	open_sides();
	for (uint32_t i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(connect_by(&sides[i], &sides[1 - i], 4096), 0);
	transfer(SEED + 200);
	CU_ASSERT(longest > 4096 && longest < 4200);
	CU_ASSERT_EQUAL(rcd_inline_set_mtu(devs[0], 1500), 0);
	CU_ASSERT_EQUAL(active_mtu(&sides[0]), PATH_MTU);
	CU_ASSERT_EQUAL(active_mtu(&sides[1]), 4096);
	transfer(SEED + 300);
}

static uint32_t
port_state(const struct side *side)
{
	return port_of(side).state;
}

/* Whether there was an event of the kind, with all before it. */
static bool
heard(struct side *side, uint32_t type)
{
	struct rcd_ctrl_event event;

	while (rcd_local_event(side->local, &event))
		if (event.type == type)
			return true;
	return false;
}

/* Who has the device open is told of the program's link. */
static void
link_is_told(void)
{
	CU_ASSERT_EQUAL(port_state(&sides[0]), RCD_PORT_ACTIVE);
	CU_ASSERT(!heard(&sides[0], RCD_EVENT_PORT_ERR));
	rcd_inline_set_link(devs[0], false);
	LOCAL_UNTIL(port_state(&sides[0]) == RCD_PORT_DOWN);
	LOCAL_UNTIL(heard(&sides[0], RCD_EVENT_PORT_ERR));
	CU_ASSERT_EQUAL(port_state(&sides[1]), RCD_PORT_ACTIVE);
	rcd_inline_set_link(devs[0], true);
	LOCAL_UNTIL(port_state(&sides[0]) == RCD_PORT_ACTIVE);
	LOCAL_UNTIL(heard(&sides[0], RCD_EVENT_PORT_ACTIVE));
	transfer(SEED + 400);
}

static void
goes(void)
{
	for (uint32_t i = 0; i < 2; i++)
		side_close(&sides[i]);
	local_audit();
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "x"), 0);
	CU_ASSERT_EQUAL(rcd_inline_set_mtu(devs[0], 1500), -ENODEV);
	for (uint32_t i = 0; i < 2; i++) {
		rcd_inline_destroy(devs[i]);
		devs[i] = NULL;
	}
	local_end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(begun),
		RCD_TEST(handed_over),
		RCD_TEST(identification_not_known),
		RCD_TEST(another_mtu),
		RCD_TEST(link_is_told),
		RCD_TEST(goes),
	};

	printf("# seed %d\n", SEED);
	local_eal("0@0,1@0,2@0");
	return rcd_tap_run("inline_data", tests, RTE_DIM(tests));
}
