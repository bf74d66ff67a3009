/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: counters of flows count each frame once, whichever lcore sees it, and what a program asks
 * of them that can't be is refused. Method: the drop-in library on an embedded wire with two
 * lcores; senders on one end, flows on the other, and a frame behind the others that tells when
 * they have come.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frames.h"
#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

enum {
	TYPE = FRAMES_TYPE,
	LAST = TYPE + 1, /**< of frames that come behind the others */
	LEN = 100,
	RECEIVERS = 6, /**< on whichever lcores they are */
	FRAMES = 40,
};

/** A flow of an EtherType with what may be done to its frames. */
struct typed_flow {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	union {
		struct ibv_flow_spec_counter_action count;
		struct ibv_flow_spec_action_drop drop;
	} actions[2];
} __attribute__((packed, aligned(8)));

static struct rig rig;
static struct side from, to;
static struct ibv_qp *sender, *receiver;

static void
ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT) == 0);
	attr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	attr.qp_state = IBV_QPS_RTS;
	MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static struct ibv_qp *
new_raw(struct side *side)
{
	struct ibv_qp *qp = side_new_qp(side, IBV_QPT_RAW_PACKET, NULL);

	ready(qp);
	return qp;
}

static void
open_sides(void)
{
	side_open(&from, "roce0");
	side_open(&to, "roce1");
	sender = new_raw(&from);
	receiver = new_raw(&to);
}

static void
close_sides(void)
{
	CU_ASSERT_EQUAL(ibv_destroy_qp(receiver), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(sender), 0);
	side_close(&to);
	side_close(&from);
}

/* @param counters  NULL: it has none */
static struct typed_flow
flow_of(uint16_t type, struct ibv_counters *counters)
{
	struct typed_flow flow = { .attr = { .size = sizeof(flow), .num_of_specs = 1, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH,
			.size = sizeof(flow.eth),
			.val = { .ether_type = htobe16(type) },
			.mask = { .ether_type = 0xffff } } };

	if (counters != NULL) {
		flow.attr.num_of_specs = 2;
		flow.actions[0].count.type = IBV_FLOW_SPEC_ACTION_COUNT;
		flow.actions[0].count.size = sizeof(flow.actions[0].count);
		flow.actions[0].count.counters = counters;
	}
	return flow;
}

static struct ibv_flow *
new_flow(struct ibv_qp *qp, uint16_t type, struct ibv_counters *counters)
{
	struct typed_flow attr = flow_of(type, counters);

	return ibv_create_flow(qp, &attr.attr);
}

static struct ibv_counters *
new_counters(struct side *side)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *counters = ibv_create_counters(side->context, &init);

	MUST(counters != NULL);
	return counters;
}

static int
attach(struct ibv_counters *counters, uint32_t index, enum ibv_counter_description what,
	struct ibv_flow *flow)
{
	struct ibv_counter_attach_attr attr = { .counter_desc = what, .index = index };

	return ibv_attach_counters_point_flow(counters, &attr, flow);
}

/* Frames of LEN bytes, which have left when this returns. */
static void
send_frames(uint16_t type, int count)
{
	struct ibv_sge sge = { (uintptr_t)from.memory, LEN, from.mr->lkey };

	frames_make(from.memory, LEN, type, 3);
	for (int i = 0; i < count; i++)
		MUST(side_operate(sender, IBV_WR_SEND, sge, 0, 0) == IBV_WC_SUCCESS);
}

/* Wait until as many of the last frames have come: then all have that were sent before. */
static void
await(struct ibv_counters *last, uint64_t wanted)
{
	uint64_t end = now_ms() + FOREVER_MS;
	uint64_t value = 0;

	while (value < wanted && now_ms() < end)
		MUST(ibv_read_counters(last, &value, 1, 0) == 0);
	CU_ASSERT_EQUAL(value, wanted);
}

static uint64_t
value_at(struct ibv_counters *counters, uint32_t index)
{
	uint64_t values[4] = { 1, 2, 3, 4 };

	MUST(ibv_read_counters(counters, values, 4, IBV_READ_COUNTERS_ATTR_PREFER_CACHED) == 0);
	return values[index];
}

/* Places add up what they are told to, of all flows, those that are gone too. */
static void
what_is_counted(void)
{
	struct ibv_counters *counters, *of_one, *last;
	struct ibv_flow *first, *second, *end;

	open_sides();
	counters = new_counters(&to);
	of_one = new_counters(&to);
	last = new_counters(&to);
	CU_ASSERT_EQUAL(attach(last, 0, IBV_COUNTER_PACKETS, NULL), 0);
	end = new_flow(receiver, LAST, last);
	MUST(end != NULL);
	CU_ASSERT_EQUAL(attach(counters, 0, IBV_COUNTER_PACKETS, NULL), 0);
	CU_ASSERT_EQUAL(attach(counters, 1, IBV_COUNTER_BYTES, NULL), 0);
	CU_ASSERT_EQUAL(attach(counters, 3, IBV_COUNTER_PACKETS, NULL), 0);
	CU_ASSERT_EQUAL(attach(counters, 3, IBV_COUNTER_BYTES, NULL), 0);
	first = new_flow(receiver, TYPE, counters);
	second = new_flow(receiver, TYPE + 2, counters);
	MUST(first != NULL && second != NULL);
	send_frames(TYPE, 5);
	send_frames(TYPE + 2, 2);
	send_frames(TYPE + 3, 9);
	send_frames(LAST, 1);
	await(last, 1);
	CU_ASSERT_EQUAL(value_at(counters, 0), 7);
	CU_ASSERT_EQUAL(value_at(counters, 1), 7 * LEN);
	CU_ASSERT_EQUAL(value_at(counters, 2), 0);
	CU_ASSERT_EQUAL(value_at(counters, 3), 7 + 7 * LEN);
	/* Of one that is there already, what comes from now on. */
	CU_ASSERT_EQUAL(attach(of_one, 2, IBV_COUNTER_PACKETS, second), 0);
	send_frames(TYPE + 2, 3);
	CU_ASSERT_EQUAL(ibv_destroy_flow(first), 0);
	send_frames(TYPE, 4);
	send_frames(LAST, 1);
	await(last, 2);
	CU_ASSERT_EQUAL(value_at(of_one, 2), 3);
	CU_ASSERT_EQUAL(value_at(counters, 0), 10);
	CU_ASSERT_EQUAL(ibv_destroy_flow(second), 0);
	CU_ASSERT_EQUAL(value_at(of_one, 2), 3);
	CU_ASSERT_EQUAL(value_at(counters, 1), 10 * LEN);
	/* Another one has nothing of those, in whose place its count is. */
	first = new_flow(receiver, TYPE, NULL);
	MUST(first != NULL);
	CU_ASSERT_EQUAL(ibv_destroy_counters(of_one), 0);
	of_one = new_counters(&to);
	CU_ASSERT_EQUAL(attach(of_one, 2, IBV_COUNTER_BYTES, NULL), 0);
	second = new_flow(receiver, TYPE, of_one);
	MUST(second != NULL);
	CU_ASSERT_EQUAL(value_at(of_one, 2), 0);
	CU_ASSERT_EQUAL(ibv_destroy_flow(second), 0);
	CU_ASSERT_EQUAL(ibv_destroy_flow(first), 0);
	CU_ASSERT_EQUAL(ibv_destroy_flow(end), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(of_one), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(counters), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(last), 0);
	close_sides();
}

/* One client for each, so that each gets a copy, from another lcore or not; and one that drops. */
static void
each_frame_once(void)
{
	static struct side sides[RECEIVERS];
	struct ibv_counters *counters[RECEIVERS], *last[RECEIVERS];
	struct ibv_flow *flows[RECEIVERS], *ends[RECEIVERS];
	struct ibv_qp *qps[RECEIVERS];

	open_sides();
	for (int i = 0; i < RECEIVERS; i++) {
		struct typed_flow attr;

		side_open(&sides[i], "roce1");
		qps[i] = new_raw(&sides[i]);
		counters[i] = new_counters(&sides[i]);
		last[i] = new_counters(&sides[i]);
		MUST(attach(counters[i], 0, IBV_COUNTER_PACKETS, NULL) == 0);
		MUST(attach(last[i], 0, IBV_COUNTER_PACKETS, NULL) == 0);
		attr = flow_of(TYPE, counters[i]);
		if (i == 0) {
			attr.attr.num_of_specs = 3;
			attr.actions[1].drop.type = IBV_FLOW_SPEC_ACTION_DROP;
			attr.actions[1].drop.size = sizeof(attr.actions[1].drop);
		}
		flows[i] = ibv_create_flow(qps[i], &attr.attr);
		ends[i] = new_flow(qps[i], LAST, last[i]);
		MUST(flows[i] != NULL && ends[i] != NULL);
	}
	send_frames(TYPE, FRAMES);
	send_frames(LAST, 1);
	for (int i = 0; i < RECEIVERS; i++) {
		await(last[i], 1);
		CU_ASSERT_EQUAL(value_at(counters[i], 0), FRAMES);
		CU_ASSERT_EQUAL(ibv_destroy_flow(ends[i]), 0);
		CU_ASSERT_EQUAL(ibv_destroy_flow(flows[i]), 0);
		CU_ASSERT_EQUAL(ibv_destroy_counters(counters[i]), 0);
		CU_ASSERT_EQUAL(ibv_destroy_counters(last[i]), 0);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qps[i]), 0);
		side_close(&sides[i]);
	}
	close_sides();
}

static void
refuses_flow(struct ibv_qp *qp, struct typed_flow attr, int error)
{
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_create_flow(qp, &attr.attr));
	CU_ASSERT_EQUAL(errno, error);
}

static void
what_can_not_be(void)
{
	struct ibv_counters_init_attr init = { .comp_mask = 1 };
	struct ibv_counter_attach_attr odd = { .comp_mask = 1 };
	struct ibv_counters *counters, *others;
	struct typed_flow attr;
	struct ibv_flow *flow;
	uint64_t values[8];

	open_sides();
	CU_ASSERT_PTR_NULL(ibv_create_counters(to.context, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	counters = new_counters(&to);
	others = new_counters(&from);
	CU_ASSERT_EQUAL(ibv_attach_counters_point_flow(counters, &odd, NULL), EINVAL);
	CU_ASSERT_EQUAL(attach(counters, 0, (enum ibv_counter_description)2, NULL), ENOTSUP);
	CU_ASSERT_EQUAL(attach(counters, UINT32_MAX, IBV_COUNTER_BYTES, NULL), 0);
	CU_ASSERT_EQUAL(ibv_read_counters(counters, values, 8, 0), EINVAL);
	CU_ASSERT_EQUAL(ibv_read_counters(counters, values, 0, 0), EINVAL);
	CU_ASSERT_EQUAL(ibv_read_counters(counters, values, 8, 2), EINVAL);
	attr = flow_of(TYPE, others);
	refuses_flow(receiver, attr, EINVAL);
	attr.actions[0].count.counters = NULL;
	refuses_flow(receiver, attr, EINVAL);
	attr.actions[0].count.counters = counters;
	attr.actions[0].count.size++;
	refuses_flow(receiver, attr, EINVAL);
	attr.actions[0].count.size--;
	attr.actions[1] = attr.actions[0];
	attr.attr.num_of_specs = 3;
	refuses_flow(receiver, attr, EINVAL);
	flow = new_flow(receiver, TYPE, counters);
	MUST(flow != NULL);
	CU_ASSERT_EQUAL(attach(counters, 0, IBV_COUNTER_BYTES, NULL), EBUSY);
	CU_ASSERT_EQUAL(attach(others, 0, IBV_COUNTER_BYTES, flow), EINVAL);
	CU_ASSERT_EQUAL(ibv_destroy_counters(counters), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_flow(flow), 0);
	CU_ASSERT_EQUAL(attach(counters, 0, IBV_COUNTER_BYTES, NULL), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(counters), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(others), 0);
	close_sides();
}

/* A flow that went with its queue pair has nothing more to say, and harms nobody. */
static void
flows_that_are_gone(void)
{
	struct ibv_counters *counters, *later;
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	open_sides();
	qp = new_raw(&to);
	counters = new_counters(&to);
	later = new_counters(&to);
	CU_ASSERT_EQUAL(attach(counters, 0, IBV_COUNTER_PACKETS, NULL), 0);
	flow = new_flow(qp, TYPE, counters);
	MUST(flow != NULL);
	CU_ASSERT_EQUAL(attach(later, 0, IBV_COUNTER_PACKETS, flow), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	CU_ASSERT_EQUAL(value_at(counters, 0), 0);
	CU_ASSERT_EQUAL(value_at(later, 0), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(later), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_flow(flow), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(later), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(counters), 0);
	close_sides();
}

/* What is asked by the handle of one that is gone is never told of a later one. */
static void
handles_are_of_one_flow(void)
{
	struct ibv_flow *gone, *later;
	struct ibv_qp *qp;
	uint32_t last;

	open_sides();
	qp = new_raw(&to);
	gone = new_flow(qp, TYPE, NULL);
	MUST(gone != NULL);
	CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	last = gone->handle;
	for (int i = 0; i < 3; i++) {
		later = new_flow(receiver, TYPE, NULL);
		MUST(later != NULL);
		CU_ASSERT(later->handle != gone->handle && later->handle != last);
		last = later->handle;
		CU_ASSERT_EQUAL(ibv_destroy_flow(later), 0);
	}
	CU_ASSERT_EQUAL(ibv_destroy_flow(gone), 0);
	close_sides();
}

/* Where the device is told to have sniffers; and of all frames, so with no specification. */
static void
of_a_sniffer(void)
{
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(attr), .port = 1
	};
	struct ibv_counters *counters;
	struct typed_flow typed;
	struct ibv_flow *flow;
	uint64_t end;

	open_sides();
	counters = new_counters(&to);
	typed = flow_of(TYPE, NULL);
	typed.attr.type = IBV_FLOW_ATTR_SNIFFER;
	CU_ASSERT_PTR_NULL(ibv_create_flow(receiver, &attr));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	frames_set(rig.socket, "raw sniff");
	CU_ASSERT_PTR_NULL(ibv_create_flow(receiver, &typed.attr));
	CU_ASSERT_EQUAL(errno, EINVAL);
	flow = ibv_create_flow(receiver, &attr);
	MUST(flow != NULL);
	CU_ASSERT_EQUAL(attach(counters, 0, IBV_COUNTER_PACKETS, flow), 0);
	send_frames(TYPE, 3);
	/* The engine asks for neighbours besides. */
	end = now_ms() + FOREVER_MS;
	while (value_at(counters, 0) < 3 && now_ms() < end)
		usleep(1000);
	CU_ASSERT(value_at(counters, 0) >= 3);
	CU_ASSERT_EQUAL(ibv_destroy_flow(flow), 0);
	frames_set(rig.socket, "raw on");
	CU_ASSERT_EQUAL(ibv_destroy_counters(counters), 0);
	close_sides();
}

static void
the_engine_goes_first(void)
{
	struct ibv_counters *counters;
	struct ibv_flow *flow;
	uint64_t value;

	open_sides();
	counters = new_counters(&to);
	CU_ASSERT_EQUAL(attach(counters, 0, IBV_COUNTER_PACKETS, NULL), 0);
	flow = new_flow(receiver, TYPE, counters);
	MUST(flow != NULL);
	CU_ASSERT_TRUE(rig_ends_well(&rig));
	CU_ASSERT_EQUAL(ibv_read_counters(counters, &value, 1, 0), EIO);
	CU_ASSERT_EQUAL(ibv_destroy_flow(flow), 0);
	CU_ASSERT_EQUAL(ibv_destroy_counters(counters), 0);
	close_sides();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_is_counted),
		RCD_TEST(each_frame_once),
		RCD_TEST(what_can_not_be),
		RCD_TEST(flows_that_are_gone),
		RCD_TEST(handles_are_of_one_flow),
		RCD_TEST(of_a_sniffer),
		RCD_TEST(the_engine_goes_first),
	};

	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		setenv("ROCADED_LCORES", "0@(0-1),1@0,2@1", 1);
	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	frames_set(rig.socket, "raw on");
	return rcd_tap_run("counters", tests, sizeof(tests) / sizeof(tests[0]));
}
