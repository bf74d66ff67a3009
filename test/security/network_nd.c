/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Neighbour discovery of IPv6 from the network: floods of it, and of another VLAN.
 */
#include <string.h>
#include <unistd.h>

#include "network.h"
#include "rcd_mr.h"
#include "rcd_tap.h"

#define FLOOD 2000

/* The place of an address among those of a node. */
static uint8_t
place_of(const struct node *node, const struct rcd_gid *gid)
{
	for (uint32_t i = 0; i < node->gids.count; i++)
		if (rcd_gid_eq((const struct rcd_gid *)&node->gids.gids[i], gid))
			return (uint8_t)i;
	MUST(!"the address is there");
	return 0;
}

/* A sender of datagrams to a peer of IPv6. @param handle set to its address handle */
static void
open_sender(struct node *node, uint32_t *handle)
{
	struct rcd_ctrl_qp_attr attr = { .qkey = 0x1234, .port = 1 };
	struct rcd_gid here = link_gid6(0x78, 0, 1), peer = link_gid6(0x78, 0, 2);
	uint8_t plain, tagged;

	open_node(node, RCD_QP_UD, &plain, &tagged);
	MUST(node_connect(&node->qp, RCD_QP_UD, attr) == 0);
	MUST(new_ah(node, place_of(node, &here), &peer, handle) == 0);
}

/* Strangers ask for us, and tell of themselves: nobody asked for them. */
static void
strangers_tell(void)
{
	struct rcd_gid here = link_gid6(0x78, 0, 1);
	long long told = counter("rx_link_told"), got = counter("rx_icmpv6");
	long long neighbours = rig_engine(&rig, "neighbours");
	uint32_t answers = __atomic_load_n(&far.answers, __ATOMIC_SEQ_CST);
	uint64_t deadline = now_ms() + FOREVER_MS;

	for (uint32_t i = 0; i < FLOOD; i++) {
		struct rcd_gid from =
			link_gid6(0x78, (uint8_t)(99 + i / 250), (uint8_t)(1 + i % 250));

		if (i % 2 == 0)
			link_nd_ask(&far, &from, link_stranger_mac, &here, 0);
		else
			link_nd_tell(&far, &from, link_stranger_mac, &here, 0);
		if (i % 50 == 49)
			usleep(2000);
	}
	got = settles("rx_icmpv6") - got;
	CU_ASSERT(got > FLOOD / 10);
	/* But for those that a small filter takes for some of the addresses asked for before. */
	CU_ASSERT(counter("rx_link_told") - told < got / 8);
	/* A question has one answer; what is told has none. */
	while (__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST) == answers && now_ms() < deadline)
		usleep(1000);
	answers = __atomic_load_n(&far.answers, __ATOMIC_SEQ_CST) - answers;
	CU_ASSERT(answers > 0 && answers <= got);
	CU_ASSERT(rig_engine(&rig, "neighbours") <= neighbours);
}

/* One that was asked for tells again and again: the control thread hears, but not each time. */
static void
a_neighbour_tells(void)
{
	struct rcd_gid here = link_gid6(0x78, 0, 1), peer = link_gid6(0x78, 0, 2);
	long long told = counter("rx_link_told"), limited = counter("rx_drop_link_rate");
	long long sum, got = counter("rx_icmpv6");
	uint64_t begin = now_ms();

	for (uint32_t i = 0; i < 2 * FLOOD; i++) {
		link_nd_tell(&far, &peer, far.peer_mac, &here, 0);
		if (i % 200 == 199)
			usleep(2000);
	}
	got = settles("rx_icmpv6") - got;
	CU_ASSERT(got > FLOOD / 10);
	sum = told_or_limited(told, limited, got - SOME);
	told = counter("rx_link_told") - told;
	CU_ASSERT(told > 0 && sum >= got - SOME && sum <= got + SOME);
	/* 16 in a millisecond, until the last was handled: long after it was sent, perhaps. */
	CU_ASSERT(told <= (long long)(last_change() - begin + 100) * 16);
}

void
floods_of_nd(void)
{
	struct rcd_roce send = { .bth = { .opcode = RCD_OPCODE_RC_SEND_ONLY,
					 .psn = rcd_psn(1000) } };
	struct rcd_cq_slot slot;
	struct node ud, rc;
	uint32_t handle;
	uint8_t plain, tagged;

	open_sender(&ud, &handle);
	open_node(&rc, RCD_QP_RC, &plain, &tagged);
	join_peer(&rc, plain);
	MUST(node_recv(&rc, 0, 4096, 1) == 0);
	CU_ASSERT_TRUE(sends_to(&ud, handle, 77, far.peer_mac, FOREVER_MS));
	strangers_tell();
	a_neighbour_tells();
	CU_ASSERT_EQUAL(rig_engine(&rig, "events_lost"), -1);
	CU_ASSERT_TRUE(sends_to(&ud, handle, 77, far.peer_mac, FOREVER_MS));
	to_rc(&rc, send, 0, 8);
	CU_ASSERT_EQUAL(node_wait(&rc, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	node_close(&ud);
	node_close(&rc);
}

void
nd_of_another_vlan(void)
{
	static const uint8_t wrong[RCD_MAC_LEN] = { 2, 9, 9, 9, 9, 9 };
	struct rcd_gid plain = link_gid6(0x78, 0, 1), tagged = link_gid6(0x79, 0, 1);
	struct rcd_gid peer = link_gid6(0x78, 0, 2), stranger = link_gid6(0x79, 0, 9);
	long long dropped = counter("rx_drop_vlan");
	uint32_t answers;
	uint64_t deadline;
	struct node node;
	uint32_t handle;

	open_sender(&node, &handle);
	answers = __atomic_load_n(&far.answers, __ATOMIC_SEQ_CST);
	dropped = counter("rx_drop_vlan") > 0 ? counter("rx_drop_vlan") : 0;
	/* The peer's address with another MAC, from a VLAN where it is not. */
	link_nd_ask(&far, &peer, wrong, &plain, VLAN);
	link_nd_tell(&far, &peer, wrong, &plain, VLAN);
	link_nd_ask(&far, &stranger, wrong, &tagged, 0);
	CU_ASSERT_TRUE(grows("rx_drop_vlan", dropped, 2));
	/* What is told all the same, as the filter is small, comes to nothing. */
	settles("rx_link_told");
	CU_ASSERT_EQUAL(__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST), answers);
	CU_ASSERT_TRUE(sends_to(&node, handle, 77, far.peer_mac, FOREVER_MS));
	/* Who is in the VLAN is answered. */
	deadline = now_ms() + FOREVER_MS;
	link_nd_ask(&far, &stranger, wrong, &tagged, VLAN);
	while (__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST) == answers && now_ms() < deadline)
		usleep(1000);
	CU_ASSERT_EQUAL(__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST), answers + 1);
	node_close(&node);
}
