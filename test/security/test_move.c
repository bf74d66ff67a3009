/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a context is on the lcore that its packets come to, from its first connection on, with all
 * that was posted and armed before; and a client that rings and writes meanwhile harms nobody.
 * Method: an engine with two lcores, whose port is a NIC of net_impair's with two queues, and a
 * peer with one:
 *
 *     m0 [impair queues=2] == memif == m1
 *
 * Where packets come to is worked out from the definition of the hash, and compared with the lcore
 * that the engine tells.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"
#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"

#define MEMORY      65536
#define CONNECTIONS 24
#define SOME        1000 /**< bytes of a message */
#define PLACES      256  /**< of queue pairs: more don't move */
#define MOVES       RIG_TIMES(300)
#define ROCE        4791

static struct rig rig, peer;
static char path[] = "/tmp/rcdmove.XXXXXX";

static const uint8_t key[] = { 0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25,
	0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb,
	0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa };

/* Each bit of the input that is set adds the 32 bits of the key that begin with its place. */
static uint32_t
toeplitz(const uint8_t *input, uint32_t len)
{
	uint32_t hash = 0;

	for (uint32_t bit = 0; bit < len * 8; bit++) {
		uint32_t window = 0;

		if (!(input[bit / 8] >> (7 - bit % 8) & 1))
			continue;
		for (uint32_t i = bit; i < bit + 32; i++)
			window = window << 1 | (key[i / 8] >> (7 - i % 8) & 1);
		hash ^= window;
	}
	return hash;
}

/* The lcore that packets of a peer come to: of the first node's GIDs, from the other's. */
static int
lcore_of(const uint8_t *src, const uint8_t *dst, int v4, uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t mixed = (uint64_t)qpn * dest_qpn;
	uint32_t at = v4 ? 12 : 0, len = 16 - at;
	uint8_t input[36];
	uint16_t sport;

	mixed ^= mixed >> 20;
	mixed ^= mixed >> 40;
	sport = (uint16_t)(0xc000 | ((mixed & 0x3fff) ^ (mixed >> 14 & 0x3f)));
	memcpy(input, src + at, len);
	memcpy(input + len, dst + at, len);
	rcd_put_be16(input + 2 * len, sport);
	rcd_put_be16(input + 2 * len + 2, ROCE);
	return (int)(toeplitz(input, 2 * len + 4) % 128 % 2);
}

static const uint8_t *
gid_of(const struct node *node, int v4)
{
	return node->gids.gids[node_gid(node, v4)].raw;
}

/* Contexts of each lcore. */
static void
contexts(long long count[2])
{
	char *answer = rig_admin(rig.socket, "engine");
	const char *at = answer;

	MUST(answer != NULL);
	for (int i = 0; i < 2; i++) {
		at = strstr(at, "\"contexts\":");
		MUST(at != NULL);
		at += strlen("\"contexts\":");
		count[i] = strtoll(at, NULL, 10);
	}
	free(answer);
}

/* Where a context is that came since those were counted. */
static int
lcore_since(const long long before[2])
{
	long long now[2];

	contexts(now);
	CU_ASSERT_EQUAL(now[0] + now[1], before[0] + before[1] + 1);
	return now[1] > before[1];
}

static long long
counter(const char *name)
{
	char *answer = rig_admin(rig.socket, "statistic m0");
	long long count = rig_number(answer, name);

	free(answer);
	return count;
}

static void
to_init(const struct node *node, struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_attr attr = {
		.state = RCD_QP_INIT, .port = 1, .access = RCD_ACCESS_REMOTE
	};

	(void)node;
	MUST(rcd_cl_qp_modify(qp, &attr,
		     RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
			     RCD_QP_ATTR_ACCESS) == 0);
}

/* An event of the node's completion queue. */
static void
take_event(struct node *node, uint64_t cookie)
{
	struct pollfd wait = { .fd = node->channel_fd, .events = POLLIN };
	uint64_t got = 0;

	CU_ASSERT_EQUAL(poll(&wait, 1, FOREVER_MS), 1);
	CU_ASSERT_EQUAL(read(node->channel_fd, &got, sizeof(got)), (ssize_t)sizeof(got));
	CU_ASSERT_EQUAL(got, cookie);
}

/* A message each way; the receive of the first one is posted already. */
static void
exchange(struct node *a, struct node *b, uint32_t seed)
{
	struct rcd_cq_slot slot;

	fill(b->memory, SOME, seed);
	CU_ASSERT_EQUAL(node_write(b, NULL, RCD_WR_SEND, 0, SOME, 1), 0);
	CU_ASSERT_EQUAL(node_wait(b, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	take_event(a, 77);
	CU_ASSERT_EQUAL(node_wait(a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.wr_id, seed);
	CU_ASSERT(slot.byte_len == SOME && filled(a->memory, SOME, seed));
	fill(a->memory, MEMORY, seed + 1);
	CU_ASSERT_EQUAL(node_write(a, b, RCD_WR_RDMA_WRITE, 0, MEMORY, 2), 0);
	CU_ASSERT_EQUAL(node_wait(a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT(filled(b->memory, MEMORY, seed + 1));
}

static void
open_pair(struct node *a, struct node *b)
{
	node_open(a, rig.socket, "m0", RCD_QP_RC);
	node_open(b, peer.socket, "m1", RCD_QP_RC);
	node_memory(a, MEMORY);
	node_memory(b, MEMORY);
}

static void
goes_where_its_packets_come(void)
{
	long long handed = counter("rx_handover");
	uint32_t moved = 0, stayed = 0;

	for (uint32_t i = 0; i < CONNECTIONS; i++) {
		int v4 = i % 2, wanted, first;
		long long before[2];
		struct node a, b;

		contexts(before);
		open_pair(&a, &b);
		first = lcore_since(before);
		wanted = lcore_of(gid_of(&b, v4), gid_of(&a, v4), v4, a.qp.qpn, b.qp.qpn);
		to_init(&a, &a.qp);
		MUST(node_recv(&a, 0, SOME, 100 + i) == 0);
		rcd_cl_arm(&a.cq, false);
		node_join(&a, &b, RCD_QP_RC, v4);
		CU_ASSERT_EQUAL(lcore_since(before), wanted);
		moved += wanted != first;
		stayed += wanted == first;
		exchange(&a, &b, 100 + i);
		node_close(&a);
		node_close(&b);
		MUST(rig_contexts(&rig, 0, FOREVER_MS));
	}
	printf("# %u moved, %u stayed\n", moved, stayed);
	CU_ASSERT(moved > 0 && stayed > 0);
	CU_ASSERT_EQUAL(counter("rx_handover"), handed);
}

/* A peer's number with which packets come to the other lcore. */
static uint32_t
number_for(const struct node *a, const struct node *b, uint32_t qpn, int lcore)
{
	for (uint32_t number = 0x100;; number++)
		if (lcore_of(gid_of(b, 1), gid_of(a, 1), 1, qpn, number) == lcore)
			return number;
}

static void
connect_to(const struct node *a, const struct node *b, struct rcd_cl_qp *qp, uint32_t number)
{
	struct rcd_ctrl_qp_attr attr = node_attr(a, b, 1);

	attr.dest_qpn = number;
	MUST(node_connect(qp, RCD_QP_RC, attr) == 0);
}

/* Once one is connected, all are where that one is, and what comes elsewhere is handed over. */
static void
others_come_along(void)
{
	long long before[2], handed = counter("rx_handover");
	int lcore, wanted;
	struct node a, b;

	contexts(before);
	open_pair(&a, &b);
	/* A second one of each, until their packets come to the other lcore. */
	node_join(&a, &b, RCD_QP_RC, 1);
	lcore = lcore_since(before);
	do {
		node_qp(&a, RCD_QP_RC, &a.qp);
		node_qp(&b, RCD_QP_RC, &b.qp);
		wanted = lcore_of(gid_of(&b, 1), gid_of(&a, 1), 1, a.qp.qpn, b.qp.qpn);
	} while (wanted == lcore);
	to_init(&a, &a.qp);
	MUST(node_recv(&a, 0, SOME, 5) == 0);
	rcd_cl_arm(&a.cq, false);
	node_join(&a, &b, RCD_QP_RC, 1);
	CU_ASSERT_EQUAL(lcore_since(before), lcore);
	exchange(&a, &b, 5);
	CU_ASSERT(counter("rx_handover") > handed);
	node_close(&a);
	node_close(&b);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
}

/* A datagram queue pair that receives, more queue pairs than move, and none of all that. */
static void
what_stays(void)
{
	for (int what = 0; what < 3; what++) {
		long long before[2];
		struct node a, b;
		struct rcd_cl_qp other;
		int lcore;

		contexts(before);
		open_pair(&a, &b);
		lcore = lcore_since(before);
		if (what == 1) {
			node_qp(&a, RCD_QP_UD, &other);
			MUST(node_connect(&other, RCD_QP_UD, node_attr(&a, &b, 1)) == 0);
		}
		for (int i = 0; what == 2 && i < PLACES; i++)
			node_qp(&a, RCD_QP_RC, &other);
		connect_to(&a, &b, &a.qp, number_for(&a, &b, a.qp.qpn, !lcore));
		CU_ASSERT_EQUAL(lcore_since(before), what == 0 ? !lcore : lcore);
		node_close(&a);
		node_close(&b);
		MUST(rig_contexts(&rig, 0, FOREVER_MS));
	}
}

/* When its queue pairs have gone, the next decides; an event that waits for its time goes along. */
static void
decides_anew(void)
{
	struct rcd_ctrl_cq_modify_req moderation = { .count = 8, .period_us = 60000 };
	struct rcd_ctrl_qp_attr error = { .state = RCD_QP_ERR };
	struct rcd_cq_slot slot;
	long long before[2];
	struct node a, b;
	int lcore;

	contexts(before);
	open_pair(&a, &b);
	lcore = lcore_since(before);
	moderation.handle = a.cq.handle;
	MUST(rcd_client_call(&a.client, RCD_CTRL_CQ_MODIFY, &moderation, NULL, NULL, NULL) == 0);
	for (uint32_t round = 0; round < 20; round++) {
		rcd_cl_arm(&a.cq, false);
		to_init(&a, &a.qp);
		MUST(node_recv(&a, 0, SOME, round) == 0);
		MUST(rcd_cl_qp_modify(&a.qp, &error, RCD_QP_ATTR_STATE) == 0);
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
		MUST(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, a.qp.handle) == 0);
		node_qp(&a, RCD_QP_RC, &a.qp);
		connect_to(&a, &b, &a.qp, number_for(&a, &b, a.qp.qpn, !lcore));
		CU_ASSERT_EQUAL(lcore_since(before), !lcore);
		lcore = !lcore;
		take_event(&a, 77);
		MUST(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, a.qp.handle) == 0);
		node_qp(&a, RCD_QP_RC, &a.qp);
	}
	node_close(&a);
	node_close(&b);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
}

/** A client that rings and writes. */
struct hostile {
	const struct node *node;
	bool stop;
};

/* All doorbells, and nonsense into all indices; the header it leaves alone. */
static void *
ring_and_write(void *arg)
{
	struct hostile *hostile = arg;
	struct rcd_shm_hdr *shm = hostile->node->client.shm;
	uint32_t *words = (uint32_t *)(void *)shm;
	uint64_t first = sizeof(*shm) / 4, count = 65536;
	struct rcd_sequence sequence = { 9 };

	while (!__atomic_load_n(&hostile->stop, __ATOMIC_RELAXED)) {
		for (int word = 0; word < 64; word++)
			__atomic_store_n(&shm->db_words[word], UINT64_MAX, __ATOMIC_SEQ_CST);
		__atomic_store_n(&shm->db_summary, UINT64_MAX, __ATOMIC_SEQ_CST);
		for (int i = 0; i < 64; i++) {
			uint64_t random = rcd_sequence_next(&sequence);

			__atomic_store_n(&words[first + random % count], (uint32_t)(random >> 32),
				__ATOMIC_RELAXED);
		}
		__atomic_store_n(&shm->sleeping, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* It moves as often as it can, and rings and writes meanwhile. */
static void
hostile_while_it_moves(void)
{
	struct honest honest = honest_start(&rig);
	struct hostile hostile = { .stop = false };
	long long before[2];
	uint32_t moves = 0;
	struct node a, b;
	pthread_t thread;

	MUST(rig_contexts(&rig, 2, FOREVER_MS));
	contexts(before);
	open_pair(&a, &b);
	hostile.node = &a;
	MUST(pthread_create(&thread, NULL, ring_and_write, &hostile) == 0);
	for (uint32_t i = 0; i < MOVES; i++) {
		int lcore = lcore_since(before);

		connect_to(&a, &b, &a.qp, number_for(&a, &b, a.qp.qpn, !lcore));
		moves += lcore_since(before) != lcore;
		MUST(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, a.qp.handle) == 0);
		node_qp(&a, RCD_QP_RC, &a.qp);
	}
	__atomic_store_n(&hostile.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(moves, MOVES);
	node_close(&a);
	node_close(&b);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
	/* And whoever comes next. */
	goes_where_its_packets_come();
}

/* Unlike others, a member of an XRC domain stays when its last queue pair goes, and the next one's
 * packets come elsewhere. */
static void
a_member_stays(void)
{
	struct rcd_cl_qp target;
	long long before[2];
	struct member a;
	struct node sender;
	int lcore;

	contexts(before);
	member_open(&a, &rig, "m0", path);
	lcore = lcore_since(before);
	member_sender_open(&sender, &peer, "m1");
	MUST(member_target(&a, 0, &target) == 0);
	member_connect(&a, &target, &sender);
	MUST(rcd_cl_destroy(&a.node.client, RCD_CTRL_QP_DESTROY, a.node.qp.handle) == 0);
	node_qp(&a.node, RCD_QP_RC, &a.node.qp);
	connect_to(
		&a.node, &sender, &a.node.qp, number_for(&a.node, &sender, a.node.qp.qpn, !lcore));
	CU_ASSERT_EQUAL(lcore_since(before), lcore);
	CU_ASSERT(member_receives(&a, &sender));
	node_close(&a.node);
	node_close(&sender);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
}

/* Who joins comes to the domain's lcore, and does not when it has a peer already. */
static void
a_member_is_brought(void)
{
	struct hostile hostile = { .stop = false };
	struct node node, other;
	long long before[2];
	struct member a;
	pthread_t thread;
	int lcore, first;
	uint32_t xrcd;

	contexts(before);
	member_open(&a, &rig, "m0", path);
	lcore = lcore_since(before);
	/* The lcore with fewer contexts, which is the other one. */
	for (int connected = 0; connected < 2; connected++) {
		contexts(before);
		node_open(&node, rig.socket, "m0", RCD_QP_RC);
		first = lcore_since(before);
		CU_ASSERT_NOT_EQUAL(first, lcore);
		node_open(&other, peer.socket, "m1", RCD_QP_RC);
		if (connected)
			connect_to(&node, &other, &node.qp,
				number_for(&node, &other, node.qp.qpn, first));
		hostile = (struct hostile){ .node = &node };
		MUST(pthread_create(&thread, NULL, ring_and_write, &hostile) == 0);
		CU_ASSERT_EQUAL(member_join(&node.client, path, 0, &xrcd), connected ? -EBUSY : 0);
		__atomic_store_n(&hostile.stop, true, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		CU_ASSERT_EQUAL(lcore_since(before), connected ? first : lcore);
		node_close(&node);
		node_close(&other);
		MUST(rig_contexts(&rig, 1, FOREVER_MS));
	}
	node_close(&a.node);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
}

static void
engines_end_well(void)
{
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	CU_ASSERT_EQUAL(rig_stop(&peer, FOREVER_MS), 0);
}

static void
start(void)
{
	char text[600];
	struct node a, b;

	/* Each address once, and both ends of a socket that no other test has. */
	for (int end = 1; end >= 0; end--) {
		snprintf(text, sizeof(text),
			"[device m%d]\ntype = port\n"
			"devargs = net_memif0,role=%s,socket=rcdmove%d,bsize=8192,"
			"mac=02:00:00:00:00:0%d\n"
			"address = 10.79.0.%d/24, fd79::%d/64\n%s",
			end, end == 1 ? "server" : "client", (int)getpid(), end + 1, end + 1,
			end + 1, end == 0 ? "impair = queues=2\n" : "");
		if (end == 0)
			setenv("ROCADED_LCORES", "0@(0-1),1@0,2@1", 1);
		rig_start_text(end == 0 ? &rig : &peer, text, end == 0);
	}
	/* Until both ends of the memif know each other. */
	open_pair(&a, &b);
	node_join(&a, &b, RCD_QP_RC, 1);
	node_close(&a);
	node_close(&b);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(goes_where_its_packets_come),
		RCD_TEST(others_come_along),
		RCD_TEST(what_stays),
		RCD_TEST(decides_anew),
		RCD_TEST(hostile_while_it_moves),
		RCD_TEST(a_member_stays),
		RCD_TEST(a_member_is_brought),
		RCD_TEST(engines_end_well),
	};

	int failed;

	member_file(path);
	start();
	failed = rcd_tap_run("move", tests, sizeof(tests) / sizeof(tests[0]));
	unlink(path);
	return failed;
}
