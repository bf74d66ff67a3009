/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: sniffers are for those who may have raw packets, where the operator said so and while he
 * does; they see all of their device, RoCE included, from whichever lcore; and cost RoCE nothing
 * but a bounded part of a poll.
 * Method: an engine of the test's own with two lcores and the embedded wire, sniffers on it, and an
 * honest pair beside them.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frames.h"
#include "rcd_bytes.h"
#include "rcd_limits.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

enum {
	NOBODY = 65534,
	PLACE = 4608, /**< bytes for a frame */
	PLACES = 14,
	MEMORY = PLACE * PLACES,
	PLAIN = 64, /**< bytes of most frames */
	TYPE = FRAMES_TYPE,
	ROCE = 4791,
	SOURCE_AT = 6, /**< of a frame: the MAC that sent it */
	TYPE_AT = 12,
	SNIFFERS = 4, /**< on two lcores at least */
	CROWD = 20,
	LONG = 4100,
	WORK_MOST =
		2000, /**< units, as in test_raw: of which sniffers have 128 and one frame more */
};

static struct rig rig;

static int
sniff(struct node *node, uint32_t *handle)
{
	struct rcd_ctrl_flow_req req = frames_flow_of(&node->qp, RCD_FLOW_SNIFFER);

	return frames_flow_create(node, &req, handle);
}

static void
open_sniffer(struct node *node, const char *device)
{
	frames_open(node, rig.socket, device, MEMORY);
	for (uint32_t i = 0; i < PLACES; i++)
		MUST(node_recv(node, i * PLACE, PLACE, i) == 0);
}

/* The next frame; its place is received into again. */
static const uint8_t *
next_frame(struct node *node, struct rcd_cq_slot *slot)
{
	static uint8_t frame[PLACE];

	if (node_wait(node, slot, FOREVER_MS) != RCD_WC_SUCCESS)
		return NULL;
	memcpy(frame, node->memory + slot->wr_id * PLACE, PLACE);
	MUST(node_recv(node, slot->wr_id * PLACE, PLACE, slot->wr_id) == 0);
	return frame;
}

static bool
is_roce(const uint8_t *frame)
{
	return rcd_get_be16(frame + TYPE_AT) == 0x0800 && rcd_get_be16(frame + 36) == ROCE;
}

/* RoCE of the honest pair comes, of both ends: of which one is its own device's. */
static bool
sees_roce(struct node *node)
{
	uint8_t first[6];
	struct rcd_cq_slot slot;
	bool seen = false;

	for (;;) {
		const uint8_t *frame = next_frame(node, &slot);

		if (frame == NULL)
			return false;
		if (!is_roce(frame))
			continue;
		if (seen && memcmp(first, frame + SOURCE_AT, sizeof(first)) != 0)
			return true;
		memcpy(first, frame + SOURCE_AT, sizeof(first));
		seen = true;
	}
}

/* @return copies of a frame of TYPE with this byte, before one with the next */
static uint32_t
copies_of(struct node *node, uint8_t what)
{
	struct rcd_cq_slot slot;
	const uint8_t *frame;
	uint32_t count = 0;

	while ((frame = next_frame(node, &slot)) != NULL) {
		if (rcd_get_be16(frame + TYPE_AT) != TYPE)
			continue;
		if (frame[PLAIN - 1] == (uint8_t)(what + 1))
			return count;
		count += frame[PLAIN - 1] == what;
		CU_ASSERT_EQUAL(slot.byte_len, PLAIN);
	}
	return UINT32_MAX;
}

static void
send_plain(struct node *node, uint8_t what)
{
	frames_make(node->memory, PLAIN, TYPE, what);
	MUST(frames_send(node, PLAIN, 0) == RCD_WC_SUCCESS);
}

/* What the sniffer was given so far is taken, and no more. */
static uint32_t
drain(struct node *node)
{
	struct rcd_cq_slot slot;
	uint32_t count = 0;

	while (rcd_cl_poll(&node->cq, &slot, 1) == 1)
		count++;
	return count;
}

static long long
statistic(const char *name)
{
	char *answer = rig_admin(rig.socket, "statistic roce1");
	long long val = rig_number(answer, name);

	free(answer);
	return val;
}

/* RoCE of the honest pair goes on. */
static void
roce_goes_by(void)
{
	long long before = statistic("rx_roce");
	uint64_t deadline = now_ms() + FOREVER_MS;

	while (statistic("rx_roce") <= before + 1 && now_ms() < deadline)
		usleep(1000);
	CU_ASSERT(statistic("rx_roce") > before + 1);
}

static void
who_may(void)
{
	struct node node;

	frames_set(rig.socket, "raw on");
	open_sniffer(&node, "roce1");
	CU_ASSERT_EQUAL(sniff(&node, NULL), -EOPNOTSUPP);
	frames_set(rig.socket, "raw sniff");
	CU_ASSERT_EQUAL(node.device.max_flows, RCD_FLOWS_CLIENT_MAX);
	CU_ASSERT_EQUAL(sniff(&node, NULL), 0);
	if (getuid() == 0) {
		MUST(seteuid(NOBODY) == 0);
		CU_ASSERT_EQUAL(sniff(&node, NULL), -EPERM);
		MUST(seteuid(0) == 0);
	}
	frames_set(rig.socket, "raw off");
	CU_ASSERT_EQUAL(sniff(&node, NULL), -EOPNOTSUPP);
	node_close(&node);
	frames_set(rig.socket, "raw sniff");
}

/* Sniffers on all lcores see RoCE of both ends, and who sends it gets nothing twice. */
static void
roce_is_seen(void)
{
	struct node nodes[SNIFFERS];
	struct honest honest;

	for (int i = 0; i < SNIFFERS; i++) {
		open_sniffer(&nodes[i], i % 2 ? "roce0" : "roce1");
		CU_ASSERT_EQUAL(sniff(&nodes[i], NULL), 0);
	}
	honest = honest_start(&rig);
	for (int i = 0; i < SNIFFERS; i++)
		CU_ASSERT_TRUE(sees_roce(&nodes[i]));
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	for (int i = 0; i < SNIFFERS; i++)
		node_close(&nodes[i]);
}

/* What its device sends and what it receives, once; and other flows have what is theirs beside. */
static void
both_ways_once(void)
{
	struct rcd_ctrl_flow_req req;
	struct node near, far, node, idle;

	frames_open(&near, rig.socket, "roce1", MEMORY);
	frames_open(&far, rig.socket, "roce0", MEMORY);
	open_sniffer(&node, "roce1");
	open_sniffer(&idle, "roce1");
	CU_ASSERT_EQUAL(sniff(&node, NULL), 0);
	/* The second one of a context waits for the first to go. */
	CU_ASSERT_EQUAL(sniff(&node, NULL), 0);
	req = frames_flow_of_type(&idle.qp, TYPE);
	CU_ASSERT_EQUAL(frames_flow_create(&idle, &req, NULL), 0);
	for (uint8_t i = 10; i < 30; i += 2) {
		struct node *from = i % 4 ? &near : &far;

		send_plain(from, i);
		send_plain(from, i + 1);
		CU_ASSERT_EQUAL(copies_of(&node, i), 1);
		CU_ASSERT_EQUAL(copies_of(&idle, i), 1);
	}
	node_close(&idle);
	node_close(&node);
	node_close(&far);
	node_close(&near);
}

/* When the operator's word is back, no frame comes that was not there; and then they go on. */
static void
the_word_is_taken_back(void)
{
	struct node nodes[SNIFFERS], witness;
	struct rcd_ctrl_flow_req req;
	struct honest honest;
	uint32_t handle = 0;

	frames_open(&witness, rig.socket, "roce0", MEMORY);
	for (int i = 0; i < SNIFFERS; i++) {
		open_sniffer(&nodes[i], "roce1");
		CU_ASSERT_EQUAL(sniff(&nodes[i], &handle), 0);
	}
	honest = honest_start(&rig);
	for (int i = 0; i < SNIFFERS; i++)
		CU_ASSERT_TRUE(sees_roce(&nodes[i]));
	frames_set(rig.socket, "raw on");
	for (int i = 0; i < SNIFFERS; i++) {
		drain(&nodes[i]);
		for (uint32_t k = 0; k < PLACES; k++)
			(void)node_recv(&nodes[i], k * PLACE, PLACE, k);
	}
	CU_ASSERT_EQUAL(sniff(&nodes[0], NULL), -EOPNOTSUPP);
	/* The table of flows is another one then. */
	roce_goes_by();
	req = frames_flow_of_type(&nodes[0].qp, TYPE);
	CU_ASSERT_EQUAL(frames_flow_create(&nodes[0], &req, NULL), 0);
	roce_goes_by();
	for (int i = 0; i < SNIFFERS; i++)
		CU_ASSERT_EQUAL(drain(&nodes[i]), 0);
	/* A flow of the usual kind goes on meanwhile. */
	send_plain(&witness, 1);
	send_plain(&witness, 2);
	CU_ASSERT_EQUAL(copies_of(&nodes[0], 1), 1);
	CU_ASSERT_EQUAL(drain(&nodes[1]), 0);
	frames_set(rig.socket, "raw sniff");
	CU_ASSERT_TRUE(sees_roce(&nodes[SNIFFERS - 1]));
	/* Its end is that of its copies. */
	CU_ASSERT_EQUAL(
		rcd_cl_destroy(&nodes[SNIFFERS - 1].client, RCD_CTRL_FLOW_DESTROY, handle), 0);
	drain(&nodes[SNIFFERS - 1]);
	CU_ASSERT_TRUE(sees_roce(&nodes[1]));
	CU_ASSERT_EQUAL(drain(&nodes[SNIFFERS - 1]), 0);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	for (int i = 0; i < SNIFFERS; i++)
		node_close(&nodes[i]);
	node_close(&witness);
}

/* More than sniffers have of a poll is dropped, for all of them, and others are not held up. */
static void
a_crowd_costs_a_part_of_a_poll(void)
{
	static struct node nodes[CROWD];
	struct honest honest = honest_start(&rig);
	struct rcd_cq_slot slot;
	struct node sender;
	long long before = statistic("rx_drop_copies");

	frames_open(&sender, rig.socket, "roce0", MEMORY);
	frames_make(sender.memory, LONG, TYPE, 1);
	for (int i = 0; i < CROWD; i++) {
		open_sniffer(&nodes[i], "roce1");
		CU_ASSERT_EQUAL(sniff(&nodes[i], NULL), 0);
	}
	for (int i = 0; i < 20; i++) {
		rig_halt(&rig);
		for (int k = 0; k < 32; k++)
			MUST(frames_post(&sender, LONG, 0) == 0);
		MUST(kill(rig.pid, SIGCONT) == 0);
		for (int k = 0; k < 32; k++)
			CU_ASSERT_EQUAL(node_wait(&sender, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	}
	CU_ASSERT(statistic("rx_drop_copies") > before);
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") < WORK_MOST);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	for (int i = 0; i < CROWD; i++)
		node_close(&nodes[i]);
	node_close(&sender);
}

static void
the_engine_ends_well(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(who_may),
		RCD_TEST(roce_is_seen),
		RCD_TEST(both_ways_once),
		RCD_TEST(the_word_is_taken_back),
		RCD_TEST(a_crowd_costs_a_part_of_a_poll),
		RCD_TEST(the_engine_ends_well),
	};

	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		setenv("ROCADED_LCORES", "0@(0-1),1@0,2@1", 1);
	rig_start(&rig, NULL);
	return rcd_tap_run("sniff", tests, sizeof(tests) / sizeof(tests[0]));
}
