/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whatever the network sends, state and work stay bounded, all of it is counted by name, a
 * VLAN is a wall, and connections go on. Method: an engine whose device p0 is an end of a veth in a
 * namespace of the test's own; the test has the other end and injects frames. Counts are compared,
 * not times.
 *
 *   10.78.0.0/16 and fd78::/64 untagged, 10.79.0.0/16 and fd79::/64 in VLAN 7; the engine is .0.1,
 *   peers that answer are .0.2 and .0.3
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "network.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"

#define STRANGERS 4500
#define POLLS     2000 /**< in which an lcore takes all that is there */

struct rig rig;
struct link far;
uint8_t engine_mac[RCD_MAC_LEN];
static uint64_t changed; /**< when settles() last saw its counter change, ms */

static long long
number(const char *line, const char *name)
{
	char *answer = rig_admin(rig.socket, line);
	long long val = rig_number(answer, name);

	free(answer);
	return val;
}

long long
counter(const char *name)
{
	return number("statistic p0", name);
}

bool
grows(const char *name, long long before, long long by)
{
	uint64_t deadline = now_ms() + FOREVER_MS;

	while (counter(name) - before < by && now_ms() < deadline)
		usleep(5000);
	return counter(name) - before == by;
}

uint64_t
last_change(void)
{
	return changed;
}

long long
told_or_limited(long long told, long long limited, long long least)
{
	uint64_t deadline = now_ms() + FOREVER_MS;
	long long sum;

	for (;;) {
		sum = counter("rx_link_told") - told + counter("rx_drop_link_rate") - limited;
		if (sum >= least || now_ms() > deadline)
			return sum;
		usleep(1000);
	}
}

long long
settles(const char *name)
{
	long long before, polls, now, val = counter(name);

	changed = now_ms();
	/* Twice the same: in one window the sender's end may have been busy. */
	for (int quiet = 0; quiet < 2; quiet++) {
		/* However slow the machine is, what waits is taken within so many polls. */
		polls = now = rig_engine(&rig, "polls");
		while (now - polls < POLLS) {
			MUST(now >= 0);
			usleep(1000);
			now = rig_engine(&rig, "polls");
		}
		before = val;
		val = counter(name);
		if (val != before) {
			changed = now_ms();
			quiet = -1;
		}
	}
	return val;
}

void
open_node(struct node *node, uint32_t type, uint8_t *plain, uint8_t *tagged)
{
	struct rcd_gid gids[2] = { link_gid(78, 0, 1), link_gid(79, 0, 1) };

	node_open(node, rig.socket, "p0", type);
	node_memory(node, 65536);
	*plain = *tagged = 0;
	for (uint8_t i = 0; i < node->gids.count; i++) {
		if (memcmp(node->gids.gids[i].raw, gids[0].raw, 16) == 0)
			*plain = i;
		if (memcmp(node->gids.gids[i].raw, gids[1].raw, 16) == 0)
			*tagged = i;
	}
}

int
new_ah(struct node *node, uint8_t sgid_index, const struct rcd_gid *dgid, uint32_t *handle)
{
	struct rcd_ctrl_ah_req req = { .pd = node->pd,
		.av = { .sgid_index = sgid_index, .hop_limit = 64 } };
	struct rcd_ctrl_handle rep = { .handle = 0 };
	int err;

	memcpy(req.av.dgid, dgid->raw, 16);
	err = rcd_client_call(&node->client, RCD_CTRL_AH_CREATE, &req, &rep, NULL, NULL);
	*handle = rep.handle;
	return err;
}

void
join_peer(struct node *node, uint8_t sgid_index)
{
	struct rcd_gid peer = link_gid(78, 0, 2);
	struct rcd_ctrl_qp_attr attr = node_attr(node, node, 1);

	attr.dest_qpn = 0x4242;
	attr.timeout = 20;
	attr.av.sgid_index = sgid_index;
	memcpy(attr.av.dgid, peer.raw, 16);
	MUST(node_connect(&node->qp, RCD_QP_RC, attr) == 0);
}

/* Messages of CM about nothing that is known, each from an address of its own. */
static void
strangers_make_no_neighbours(void)
{
	struct rcd_gid here = link_gid(78, 0, 1);
	struct rcd_cm msg = { .attr = RCD_CM_DREQ,
		.dreq = { .local_comm_id = 5, .remote_comm_id = 99 } };
	uint32_t asked = __atomic_load_n(&far.asked, __ATOMIC_SEQ_CST);
	long long got = counter("cm_rx_dreq"), full = counter("cm_rx_drop_full");
	uint64_t deadline = now_ms() + FOREVER_MS;
	struct node node;
	uint32_t handle;
	uint8_t plain, tagged;

	for (uint32_t i = 0; i < STRANGERS; i++) {
		struct rcd_gid from = link_gid(78, (uint8_t)(1 + i / 250), (uint8_t)(1 + i % 250));
		struct rcd_path path = link_path(&from, &here, link_stranger_mac, engine_mac, 0);

		link_cm(&far, &path, &msg);
		if (i % 50 == 49)
			usleep(5000);
	}
	/* The port may have taken fewer, when the machine is busy. */
	while (counter("cm_rx_dreq") - got + counter("cm_rx_drop_full") - full < STRANGERS &&
		now_ms() < deadline)
		usleep(10000);
	got = counter("cm_rx_dreq") - got;
	CU_ASSERT(got > STRANGERS / 10);
	CU_ASSERT_EQUAL(counter("cm_rx_drop_nobody"), got);
	/* Each was answered, and where the question came from; nobody was asked for. */
	CU_ASSERT_EQUAL(counter("cm_tx_drep"), got);
	CU_ASSERT(__atomic_load_n(&far.dreps, __ATOMIC_SEQ_CST) > 0);
	CU_ASSERT_EQUAL(__atomic_load_n(&far.dreps_astray, __ATOMIC_SEQ_CST), 0);
	CU_ASSERT_EQUAL(__atomic_load_n(&far.asked, __ATOMIC_SEQ_CST), asked);
	CU_ASSERT_EQUAL(number("engine", "neighbours"), 0);
	open_node(&node, RCD_QP_UD, &plain, &tagged);
	here = link_gid(78, 0, 2);
	CU_ASSERT_EQUAL(new_ah(&node, plain, &here, &handle), 0);
	node_close(&node);
}

/* A client that has the engine ask for addresses where nobody is. */
static void
ask_for_many(int told, int end)
{
	struct rcd_ctrl_cm_create_req create = { .space = RCD_CMA_SPACE_TCP };
	struct rcd_ctrl_cm_resolve_req resolve = { .timeout_ms = 1000000 };
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;
	struct rcd_client client;
	char byte = 0;

	MUST(rcd_client_connect(&client, rig.socket) == 0);
	MUST(rcd_client_call(&client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &rep, NULL, &fds) == 0);
	create.channel = rep.handle;
	for (uint32_t i = 0; i < STRANGERS; i++) {
		struct rcd_gid to = link_gid(78, (uint8_t)(1 + i / 250), (uint8_t)(1 + i % 250));

		MUST(rcd_client_call(&client, RCD_CTRL_CM_CREATE, &create, &rep, NULL, NULL) == 0);
		resolve.id = rep.handle;
		resolve.dst.family = 4;
		memcpy(resolve.dst.addr, to.raw, 16);
		rcd_client_call(&client, RCD_CTRL_CM_RESOLVE_ADDR, &resolve, NULL, NULL, NULL);
	}
	MUST(write(told, &byte, 1) == 1);
	MUST(read(end, &byte, 1) == 1);
	_exit(0);
}

static void
one_client_leaves_room(void)
{
	/* One that nobody has asked for yet. */
	struct rcd_gid peer = link_gid(78, 0, 3);
	int told[2], end[2], status = -1;
	struct node node;
	uint32_t handle;
	uint8_t plain, tagged;
	char byte = 0;
	pid_t pid;

	MUST(pipe(told) == 0 && pipe(end) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		ask_for_many(told[1], end[0]);
	MUST(read(told[0], &byte, 1) == 1);
	/* It has its part, which is not nearly all. */
	CU_ASSERT(number("engine", "neighbours") >= 64);
	CU_ASSERT(number("engine", "neighbours") <= 1024);
	open_node(&node, RCD_QP_UD, &plain, &tagged);
	CU_ASSERT_EQUAL(new_ah(&node, plain, &peer, &handle), 0);
	node_close(&node);
	MUST(write(end[1], &byte, 1) == 1);
	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
}

/* A datagram to a queue pair, from the peer. */
static void
datagram(const struct node *node, const struct rcd_gid *to, uint16_t vlan_id)
{
	struct rcd_gid from = link_gid(to->raw[13], 0, 2);
	struct rcd_path path = link_path(&from, to, far.peer_mac, engine_mac, vlan_id);
	struct rcd_roce roce = {
		.bth = { .opcode = RCD_OPCODE_UD_SEND_ONLY,
			.pkey = { RCD_PKEY_DEFAULT },
			.dest_qpn = { node->qp.qpn } },
		.deth = { .qkey = { 0x1234 }, .src_qpn = { 0x4242 } },
	};

	link_roce(&far, &path, &roce, "datagram", 8);
}

static void
a_vlan_is_a_wall_for_datagrams(void)
{
	struct rcd_gid plain_gid = link_gid(78, 0, 1), tagged_gid = link_gid(79, 0, 1);
	long long dropped = counter("rx_drop_vlan");
	struct rcd_ctrl_qp_attr attr = { .qkey = 0x1234, .port = 1 };
	struct rcd_cq_slot slot;
	struct node node;
	uint8_t plain, tagged;

	open_node(&node, RCD_QP_UD, &plain, &tagged);
	MUST(node_connect(&node.qp, RCD_QP_UD, attr) == 0);
	for (int i = 0; i < 4; i++)
		MUST(node_recv(&node, 0, 4096, 1) == 0);
	datagram(&node, &plain_gid, VLAN);
	datagram(&node, &tagged_gid, 0);
	datagram(&node, &tagged_gid, VLAN + 1);
	CU_ASSERT_TRUE(grows("rx_drop_vlan", dropped, 3));
	CU_ASSERT_EQUAL(rcd_cl_poll(&node.cq, &slot, 1), 0);
	datagram(&node, &plain_gid, 0);
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	datagram(&node, &tagged_gid, VLAN);
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(rcd_cl_poll(&node.cq, &slot, 1), 0);
	node_close(&node);
}

void
to_rc(const struct node *node, struct rcd_roce roce, uint16_t vlan_id, uint32_t len)
{
	struct rcd_gid from = link_gid(78, 0, 2), to = link_gid(78, 0, 1);
	struct rcd_path path = link_path(&from, &to, far.peer_mac, engine_mac, vlan_id);

	roce.bth.pkey.val = RCD_PKEY_DEFAULT;
	roce.bth.dest_qpn.val = node->qp.qpn;
	link_roce(&far, &path, &roce, "12345678", len);
}

static void
a_vlan_is_a_wall_for_connections(void)
{
	long long dropped = counter("rx_drop_vlan");
	struct rcd_roce send = { .bth = { .opcode = RCD_OPCODE_RC_SEND_ONLY,
					 .psn = rcd_psn(1000) } };
	struct rcd_cq_slot slot;
	struct node node;
	uint8_t plain, tagged;

	open_node(&node, RCD_QP_RC, &plain, &tagged);
	join_peer(&node, plain);
	MUST(node_recv(&node, 0, 4096, 1) == 0);
	to_rc(&node, send, VLAN, 8);
	CU_ASSERT_TRUE(grows("rx_drop_vlan", dropped, 1));
	CU_ASSERT_EQUAL(rcd_cl_poll(&node.cq, &slot, 1), 0);
	to_rc(&node, send, 0, 8);
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	node_close(&node);
}

bool
sends_to(struct node *node, uint32_t ah, uint32_t qpn, const uint8_t *mac, int limit_ms)
{
	uint64_t deadline = now_ms() + (uint64_t)limit_ms;
	struct rcd_sge sge = { (uintptr_t)node->memory, 8, { node->mr.key } };
	struct rcd_send_wr wr = { .opcode = RCD_WR_SEND, .sge_count = 1, .sges = &sge };

	if (qpn != 0x4242)
		wr.ud.ah = ah;
	wr.ud.qpn.val = qpn;
	wr.ud.qkey.val = 0x1234;
	do {
		__atomic_store_n(&far.to_qpn, 0, __ATOMIC_SEQ_CST);
		if (rcd_cl_post_send(&node->qp, &wr) == 0)
			rcd_cl_ring(&node->qp);
		for (int i = 0; i < 100 && __atomic_load_n(&far.to_qpn, __ATOMIC_SEQ_CST) != qpn;
			i++)
			usleep(1000);
		if (__atomic_load_n(&far.to_qpn, __ATOMIC_SEQ_CST) == qpn &&
			link_went_to(&far, mac))
			return true;
	} while (now_ms() < deadline);
	return false;
}

static void
arp_of_another_vlan(void)
{
	static const uint8_t wrong[RCD_MAC_LEN] = { 2, 9, 9, 9, 9, 9 };
	struct rcd_gid plain_gid = link_gid(78, 0, 1), tagged_gid = link_gid(79, 0, 1);
	struct rcd_gid peer = link_gid(78, 0, 2), stranger = link_gid(79, 0, 9);
	struct rcd_ctrl_qp_attr attr = { .qkey = 0x1234, .port = 1 };
	long long dropped = counter("rx_drop_vlan");
	uint32_t answers = __atomic_load_n(&far.answers, __ATOMIC_SEQ_CST);
	uint64_t deadline = now_ms() + FOREVER_MS;
	struct node node;
	uint32_t handle;
	uint8_t plain, tagged;

	open_node(&node, RCD_QP_UD, &plain, &tagged);
	MUST(node_connect(&node.qp, RCD_QP_UD, attr) == 0);
	CU_ASSERT_EQUAL(new_ah(&node, plain, &peer, &handle), 0);
	/* The peer's address with another MAC, from a VLAN where it is not. */
	link_arp(&far, &peer, wrong, &plain_gid, VLAN);
	link_arp(&far, &peer, wrong, &peer, VLAN);
	link_arp(&far, &stranger, wrong, &tagged_gid, 0);
	CU_ASSERT_TRUE(grows("rx_drop_vlan", dropped, 2));
	/* What is told all the same, as the filter is small, comes to nothing. */
	settles("rx_link_told");
	CU_ASSERT_EQUAL(__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST), answers);
	CU_ASSERT_TRUE(sends_to(&node, handle, 77, far.peer_mac, FOREVER_MS));
	/* Who is in the VLAN is answered. */
	link_arp(&far, &stranger, wrong, &tagged_gid, VLAN);
	while (__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST) == answers && now_ms() < deadline)
		usleep(1000);
	CU_ASSERT_EQUAL(__atomic_load_n(&far.answers, __ATOMIC_SEQ_CST), answers + 1);
	node_close(&node);
}

static void
new_macs_reach_everybody(void)
{
	static const uint8_t second[RCD_MAC_LEN] = "\2peer2", first[RCD_MAC_LEN] = "\2peer1";
	struct rcd_gid peer = link_gid(78, 0, 2);
	struct rcd_ctrl_qp_attr attr = { .qkey = 0x1234, .port = 1 };
	struct node ud, rc;
	uint32_t handles[3];
	uint8_t plain, tagged;

	open_node(&ud, RCD_QP_UD, &plain, &tagged);
	MUST(node_connect(&ud.qp, RCD_QP_UD, attr) == 0);
	for (int i = 0; i < 3; i++)
		MUST(new_ah(&ud, plain, &peer, &handles[i]) == 0);
	open_node(&rc, RCD_QP_RC, &plain, &tagged);
	join_peer(&rc, plain);
	CU_ASSERT_TRUE(sends_to(&ud, handles[0], 77, first, FOREVER_MS));
	CU_ASSERT_TRUE(sends_to(&rc, 0, 0x4242, first, FOREVER_MS));
	/* It has another one from now on, and says so. */
	link_be(&far, second);
	link_arp(&far, &peer, second, &peer, 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(sends_to(&ud, handles[i], 77, second, FOREVER_MS));
	CU_ASSERT_TRUE(sends_to(&rc, 0, 0x4242, second, FOREVER_MS));
	link_be(&far, first);
	link_arp(&far, &peer, first, &peer, 0);
	CU_ASSERT_TRUE(sends_to(&ud, handles[1], 77, first, FOREVER_MS));
	node_close(&ud);
	node_close(&rc);
}

static void
floods_of_arp(void)
{
	struct rcd_gid here = link_gid(78, 0, 1), peer = link_gid(78, 0, 2);
	long long told, limited, sum, arps = counter("rx_arp");
	struct node node;
	uint32_t handle;
	uint8_t plain, tagged;
	uint64_t begin, took;

	open_node(&node, RCD_QP_UD, &plain, &tagged);
	MUST(new_ah(&node, plain, &peer, &handle) == 0);
	/* Of strangers the control thread does not even hear. */
	told = counter("rx_link_told");
	arps = counter("rx_arp");
	for (uint32_t i = 0; i < 2000; i++) {
		struct rcd_gid from = link_gid(78, (uint8_t)(99 + i / 250), (uint8_t)(1 + i % 250));

		link_arp(&far, &from, link_stranger_mac, &here, 0);
		if (i % 50 == 49)
			usleep(2000);
	}
	arps = settles("rx_arp") - arps;
	CU_ASSERT(arps > 200);
	/* But for those that a small filter takes for some of the addresses asked for before. */
	CU_ASSERT(counter("rx_link_told") - told < arps / 8);
	/* Of one that was asked for it hears, but not each time. */
	told = counter("rx_link_told");
	limited = counter("rx_drop_link_rate");
	arps = counter("rx_arp");
	begin = now_ms();
	for (uint32_t i = 0; i < 4000; i++) {
		link_arp(&far, &peer, far.peer_mac, &here, 0);
		if (i % 200 == 199)
			usleep(2000);
	}
	arps = settles("rx_arp") - arps;
	/* Until the last was handled, which may be long after it was sent. */
	took = last_change() - begin;
	CU_ASSERT(arps > 200);
	/* And some of ND, of neighbours that are asked whether they are there. */
	sum = told_or_limited(told, limited, arps);
	CU_ASSERT(sum >= arps && sum <= arps + SOME);
	told = counter("rx_link_told") - told;
	CU_ASSERT(told <= (long long)(took + 100) * 16);
	CU_ASSERT_EQUAL(number("engine", "events_lost"), -1);
	node_close(&node);
}

/* What the peer of a connection might send, were it mad: not one of them is of this connection. */
static void
packets_of_no_connection(void)
{
	static const struct {
		struct rcd_roce roce;
		uint32_t len;
	} noise[] = {
		/* Acknowledges and NAKs far outside of what was sent. */
		{ { .bth = { .opcode = RCD_OPCODE_RC_ACKNOWLEDGE, .psn = { 0x700000 } },
			  .aeth = { .syndrome = 0x1f } },
			0 },
		{ { .bth = { .opcode = RCD_OPCODE_RC_ACKNOWLEDGE, .psn = { 0x700000 } },
			  .aeth = { .syndrome = 0x60 } },
			0 },
		{ { .bth = { .opcode = RCD_OPCODE_RC_ACKNOWLEDGE, .psn = { 0x700000 } },
			  .aeth = { .syndrome = 0x63 } },
			0 },
		/* Answers to nothing, and requests from far ahead. */
		{ { .bth = { .opcode = RCD_OPCODE_RC_RDMA_READ_RESPONSE_ONLY,
			    .psn = { 0x700000 } } },
			8 },
		{ { .bth = { .opcode = RCD_OPCODE_RC_SEND_ONLY, .psn = { 0x700000 } } }, 8 },
		{ { .bth = { .opcode = RCD_OPCODE_UC_SEND_ONLY, .psn = { 1000 } } }, 8 },
		{ { .bth = { .opcode = RCD_OPCODE_CNP, .becn = true } }, 0 },
	};
	struct rcd_roce send = { .bth = { .opcode = RCD_OPCODE_RC_SEND_ONLY,
					 .psn = rcd_psn(1000) } };
	long long roce = counter("rx_roce"), cnps = counter("rx_cnp");
	long long stale = counter("rx_drop_stale"), vlan = counter("rx_drop_vlan");
	uint32_t rounds = 300, count = sizeof(noise) / sizeof(noise[0]);
	struct rcd_cq_slot slot;
	struct node node;
	uint8_t plain, tagged;

	open_node(&node, RCD_QP_RC, &plain, &tagged);
	join_peer(&node, plain);
	MUST(node_recv(&node, 0, 4096, 1) == 0);
	for (uint32_t i = 0; i < rounds * count; i++) {
		to_rc(&node, noise[i % count].roce, 0, noise[i % count].len);
		to_rc(&node, noise[i % count].roce, VLAN, noise[i % count].len);
		if (i % 20 == 19)
			usleep(1000);
	}
	/* Half of what came had the tag; the port may have taken fewer than were sent. */
	roce = settles("rx_roce") - roce;
	vlan = counter("rx_drop_vlan") - vlan;
	CU_ASSERT(roce > rounds);
	CU_ASSERT(vlan > roce / 4 && vlan < roce - roce / 4);
	CU_ASSERT(counter("rx_cnp") > cnps);
	CU_ASSERT(counter("rx_drop_stale") > stale);
	/* Nothing has come of it, and the connection takes what is its own. */
	CU_ASSERT_EQUAL(rcd_cl_poll(&node.cq, &slot, 1), 0);
	to_rc(&node, send, 0, 8);
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.byte_len, 8);
	node_close(&node);
}

static void
engine_ends_well(void)
{
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* The engine with its end of the link, and its MAC. */
static void
begin(void)
{
	const char *lines[] = { "link add p0 port net_af_packet0,iface=v0",
		"addr add p0 10.78.0.1/16", "addr add p0 10.79.0.1/16 vlan 7",
		"addr add p0 fd78::1/64", "addr add p0 fd79::1/64 vlan 7" };
	char *answer;

	rig_start(&rig, NULL);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		answer = rig_admin(rig.socket, lines[i]);
		MUST(answer != NULL && strcmp(answer, "{}") == 0);
		free(answer);
	}
}

static bool
read_mac(void)
{
	unsigned int mac[RCD_MAC_LEN];
	char line[64] = "";
	FILE *shown = popen("ip -br link show dev v0", "r");
	char *at;

	if (shown == NULL || fgets(line, sizeof(line), shown) == NULL)
		return false;
	pclose(shown);
	at = strstr(line, "UP");
	at = at != NULL ? strchr(at, ' ') : NULL;
	if (at == NULL ||
		sscanf(at, " %x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
			&mac[5]) != RCD_MAC_LEN)
		return false;
	for (int i = 0; i < RCD_MAC_LEN; i++)
		engine_mac[i] = (uint8_t)mac[i];
	return true;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S10 messages of strangers make no neighbours", strangers_make_no_neighbours },
		{ "S10 one client's neighbours leave room for others'", one_client_leaves_room },
		{ "S18 datagrams of another VLAN", a_vlan_is_a_wall_for_datagrams },
		{ "S18 packets of connections in another VLAN", a_vlan_is_a_wall_for_connections },
		{ "S18 ARP of another VLAN", arp_of_another_vlan },
		{ "S18 ND of another VLAN", nd_of_another_vlan },
		{ "T6 a new MAC reaches queue pairs and address handles",
			new_macs_reach_everybody },
		{ "low 3 floods of ARP are not told", floods_of_arp },
		{ "low 3 floods of ND are not told", floods_of_nd },
		{ "S11 requests of nobody's end nothing", requests_of_nobody },
		{ "packets outside of a connection's window are counted and no more",
			packets_of_no_connection },
		{ "S8 acknowledges of many requests at once", acknowledges_of_much },
		{ "H12 what a budget left of a burst is checked behind groups",
			rest_behind_groups },
		{ "the engine ends well", engine_ends_well },
	};
	const char *reason = link_make();

	if (reason != NULL) {
		printf("1..0 # SKIP %s\n", reason);
		return 0;
	}
	begin();
	MUST(read_mac());
	link_open(&far);
	return rcd_tap_run("network", tests, sizeof(tests) / sizeof(tests[0]));
}
