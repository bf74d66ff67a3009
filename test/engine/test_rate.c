/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the rate that a program gives a queue pair is kept, and told, and what is wrong with one is
 * said; and its traffic class chooses its congestion control. Method: the
 * drop-in library on an embedded wire. Bytes never take less time than the rate gives them; how
 * much more is nobody's promise.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

enum {
	MTU = 1024,
	PACKET_BYTES = 82, /* beside its payload */
	FRAME_BYTES = 24,
	CREDIT_NS = 32768, /* made up for by a burst, when none is given */
};

static struct rig rig;
static struct side side, other;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void
open_sides(void)
{
	side_open(&side, "roce0");
	side_open(&other, "roce1");
	side_join(&side, &other);
}

static void
close_sides(void)
{
	side_close(&other);
	side_close(&side);
}

static int
set_rate(struct ibv_qp *qp, uint32_t kbps, uint32_t burst)
{
	struct ibv_qp_rate_limit_attr attr = { .rate_limit = kbps, .max_burst_sz = burst };

	return ibv_modify_qp_rate_limit(qp, &attr);
}

static uint32_t
rate_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CU_ASSERT_EQUAL(ibv_query_qp(qp, &attr, IBV_QP_RATE_LIMIT, &init), 0);
	return attr.rate_limit;
}

/* Nanoseconds that a message has at a rate, but for its last packet, which waits for nobody. */
static uint64_t
least_ns(uint64_t bytes, uint64_t packets, uint32_t kbps)
{
	return (bytes + packets * PACKET_BYTES - MTU - PACKET_BYTES) * 8000000 / kbps;
}

/* One after the other. @return nanoseconds that they took */
static uint64_t
transfer(enum ibv_wr_opcode opcode, uint32_t count)
{
	struct ibv_sge sge = { (uintptr_t)side.memory, SIDE_LEN, side.mr->lkey };
	uint64_t begin_ns = now_ns();

	for (uint32_t i = 0; i < count; i++)
		CU_ASSERT_EQUAL(
			side_operate(side.qp, opcode, sge, (uintptr_t)other.memory, other.mr->rkey),
			IBV_WC_SUCCESS);
	return now_ns() - begin_ns;
}

static void
what_is_said(void)
{
	const uint32_t types = 1 << IBV_QPT_RC | 1 << IBV_QPT_UC | 1 << IBV_QPT_UD |
		1 << IBV_QPT_XRC_SEND | 1 << IBV_QPT_XRC_RECV;
	struct ibv_device_attr_ex attr;

	open_sides();
	CU_ASSERT_EQUAL(ibv_query_device_ex(side.context, NULL, &attr), 0);
	CU_ASSERT_EQUAL(attr.packet_pacing_caps.qp_rate_limit_min, 1);
	CU_ASSERT_EQUAL(attr.packet_pacing_caps.qp_rate_limit_max, UINT32_MAX);
	CU_ASSERT_EQUAL(attr.packet_pacing_caps.supported_qpts, types);
	CU_ASSERT_EQUAL(rate_of(side.qp), 0);
	CU_ASSERT_EQUAL(set_rate(side.qp, UINT32_MAX, 0), 0);
	CU_ASSERT_EQUAL(rate_of(side.qp), UINT32_MAX);
	CU_ASSERT_EQUAL(set_rate(side.qp, 0, 0), 0);
	CU_ASSERT_EQUAL(rate_of(side.qp), 0);
	close_sides();
}

static void
it_is_kept(void)
{
	const uint64_t bytes = 16 * SIDE_LEN, kbps = 10000;
	const uint64_t ns = least_ns(bytes, bytes / MTU, kbps);
	char *shown;

	open_sides();
	CU_ASSERT_EQUAL(set_rate(side.qp, kbps, 0), 0);
	CU_ASSERT(transfer(IBV_WR_RDMA_WRITE, 16) + CREDIT_NS >= ns);
	shown = rig_admin(rig.socket, "resource qp");
	CU_ASSERT_PTR_NOT_NULL(strstr(shown, "\"rate_limit_kbps\":10000"));
	free(shown);
	/* What was not used is made up for, as far as it is asked for. */
	CU_ASSERT_EQUAL(set_rate(side.qp, kbps, SIDE_LEN), 0);
	CU_ASSERT(transfer(IBV_WR_RDMA_WRITE, 16) + SIDE_LEN * 8000000ull / kbps >= ns);
	CU_ASSERT_EQUAL(set_rate(side.qp, 0, 0), 0);
	/* The peer's is that of what it answers. */
	CU_ASSERT_EQUAL(set_rate(other.qp, kbps, 0), 0);
	CU_ASSERT(transfer(IBV_WR_RDMA_READ, 16) + CREDIT_NS >= ns);
	close_sides();
}

/* Datagrams and frames: one by one, and no queue pair of theirs was ever limited before. */
static void
without_peers(void)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED },
			   *bad;
	const uint64_t count = 20, len = 1000, kbps = 1000;

	free(rig_admin(rig.socket, "link set roce0 raw on"));
	open_sides();
	memset(side.memory, 0x5a, SIDE_LEN);
	for (int raw = 0; raw < 2; raw++) {
		uint64_t bytes = len + (raw ? FRAME_BYTES : PACKET_BYTES);
		struct ibv_qp *qp = side_new_qp(&side, raw ? IBV_QPT_RAW_PACKET : IBV_QPT_UD, NULL);
		struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
		uint64_t begin_ns, end_ms = now_ms() + FOREVER_MS;
		struct ibv_wc wc;

		sge = (struct ibv_sge){ (uintptr_t)side.memory, (uint32_t)len, side.mr->lkey };
		if (raw) {
			CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
			attr.qp_state = IBV_QPS_RTR;
			CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
			attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .rate_limit = kbps };
			CU_ASSERT_EQUAL(
				ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), 0);
		} else {
			side_ready(qp);
			CU_ASSERT_EQUAL(set_rate(qp, kbps, 0), 0);
			wr.wr.ud.ah = side_ah(&side, &other, 0);
			wr.wr.ud.remote_qpn = 0x123;
		}
		CU_ASSERT_EQUAL(rate_of(qp), kbps);
		begin_ns = now_ns();
		for (uint32_t i = 0; i < count; i++)
			CU_ASSERT_EQUAL(ibv_post_send(qp, &wr, &bad), 0);
		for (uint32_t i = 0; i < count && now_ms() < end_ms;) {
			int got = ibv_poll_cq(qp->send_cq, 1, &wc);

			CU_ASSERT(got == 0 || wc.status == IBV_WC_SUCCESS);
			i += got == 1;
		}
		CU_ASSERT(now_ns() - begin_ns + CREDIT_NS >= bytes * (count - 1) * 8000000 / kbps);
		if (!raw)
			CU_ASSERT_EQUAL(ibv_destroy_ah(wr.wr.ud.ah), 0);
		CU_ASSERT_EQUAL(ibv_destroy_qp(qp), 0);
	}
	close_sides();
}

/* To RTR, with a traffic class. */
static void
connect_with(struct ibv_qp *qp, uint8_t tclass)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET, .port_num = 1 };
	union ibv_gid gid;

	CU_ASSERT_EQUAL(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_INIT;
	CU_ASSERT_EQUAL(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	MUST(ibv_query_gid(other.context, 1, 1, &gid) == 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other.qp->qp_num,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = gid,
				.sgid_index = 1,
				.hop_limit = 1,
				.traffic_class = tclass } } };
	CU_ASSERT_EQUAL(
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		0);
}

/* Whether the only queue pair with an algorithm has this one; NULL: whether none has one. */
static bool
has_cc(const char *name)
{
	char *shown = rig_admin(rig.socket, "resource qp");
	char *at = strstr(shown, "\"cc\":\"");
	bool has =
		name == NULL ? at == NULL : at != NULL && strncmp(at + 6, name, strlen(name)) == 0;

	free(shown);
	return has;
}

/* The device's algorithm, but for the classes that have another, as it is when they connect. */
static void
classes(void)
{
	free(rig_admin(rig.socket, "link set roce0 cc none"));
	free(rig_admin(rig.socket, "link set roce1 cc none"));
	open_sides();
	free(rig_admin(rig.socket, "link set roce0 cc_class 26:dcqcn,46:none"));
	connect_with(side.qp, 26 << 2);
	CU_ASSERT_TRUE(has_cc("dcqcn"));
	connect_with(side.qp, 26 << 2 | 1);
	CU_ASSERT_TRUE(has_cc("dcqcn"));
	connect_with(side.qp, 26);
	CU_ASSERT_TRUE(has_cc(NULL));
	free(rig_admin(rig.socket, "link set roce0 cc swift"));
	CU_ASSERT_TRUE(has_cc(NULL));
	connect_with(side.qp, 0);
	CU_ASSERT_TRUE(has_cc("swift"));
	connect_with(side.qp, 46 << 2);
	CU_ASSERT_TRUE(has_cc(NULL));
	connect_with(side.qp, 26 << 2);
	free(rig_admin(rig.socket, "link set roce0 cc none"));
	free(rig_admin(rig.socket, "link set roce0 cc_class none"));
	CU_ASSERT_TRUE(has_cc("dcqcn"));
	connect_with(side.qp, 26 << 2);
	CU_ASSERT_TRUE(has_cc(NULL));
	side_close(&other);
	/* One that was made with an algorithm, and has none when it connects, may have a rate. */
	free(rig_admin(rig.socket, "link set roce1 cc swift"));
	side_open(&other, "roce1");
	free(rig_admin(rig.socket, "link set roce1 cc none"));
	side_close(&side);
	side_open(&side, "roce0");
	side_join(&side, &other);
	CU_ASSERT_TRUE(has_cc(NULL));
	CU_ASSERT_EQUAL(set_rate(other.qp, 1000000, 0), 0);
	transfer(IBV_WR_RDMA_READ, 1);
	close_sides();
}

/* Of a queue pair that waits for half an hour: another rate holds at once, and none too. */
static void
changes(void)
{
	static const uint32_t rates[] = { 1, UINT32_MAX, 0, 1000000, 0, 1 };
	struct ibv_sge sge = { (uintptr_t)side.memory, SIDE_LEN, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED },
			   *bad;
	uint64_t end_ms = now_ms() + FOREVER_MS;
	struct ibv_wc wc;
	int got = 0;

	open_sides();
	sge = (struct ibv_sge){ (uintptr_t)side.memory, SIDE_LEN, side.mr->lkey };
	wr.wr.rdma.remote_addr = (uintptr_t)other.memory;
	wr.wr.rdma.rkey = other.mr->rkey;
	CU_ASSERT_EQUAL(set_rate(side.qp, 1, 0), 0);
	for (uint32_t i = 0; i < 60; i++)
		CU_ASSERT_EQUAL(ibv_post_send(side.qp, &wr, &bad), 0);
	for (uint32_t i = 0; i < 300; i++)
		CU_ASSERT_EQUAL(set_rate(i % 3 ? side.qp : other.qp, rates[i % 6],
					rates[i % 6] ? i * 14316557u : 0),
			0);
	CU_ASSERT_EQUAL(set_rate(side.qp, 0, 0), 0);
	while (got < 60 && now_ms() < end_ms) {
		if (ibv_poll_cq(side.cq, 1, &wc) == 1) {
			CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
			got++;
		}
	}
	CU_ASSERT_EQUAL(got, 60);
	/* Destroyed while it waits. */
	CU_ASSERT_EQUAL(set_rate(side.qp, 1, 0), 0);
	CU_ASSERT_EQUAL(ibv_post_send(side.qp, &wr, &bad), 0);
	close_sides();
}

static void
what_is_wrong(void)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000, .comp_mask = 1 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .rate_limit = 1000 };
	const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

	side_open(&side, "roce0");
	CU_ASSERT_EQUAL(set_rate(side.qp, 1000, 0), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, init | IBV_QP_RATE_LIMIT), EINVAL);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, init), 0);
	CU_ASSERT_EQUAL(set_rate(side.qp, 1000, 0), EINVAL);
	side_close(&side);
	open_sides();
	CU_ASSERT_EQUAL(ibv_modify_qp_rate_limit(side.qp, &rate), EINVAL);
	rate = (struct ibv_qp_rate_limit_attr){ .typical_pkt_sz = 64 };
	CU_ASSERT_EQUAL(ibv_modify_qp_rate_limit(side.qp, &rate), EINVAL);
	CU_ASSERT_EQUAL(set_rate(side.qp, 0, 64), EINVAL);
	rate.rate_limit = 1000;
	CU_ASSERT_EQUAL(ibv_modify_qp_rate_limit(side.qp, &rate), 0);
	attr.qp_state = IBV_QPS_ERR;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT), EINVAL);
	CU_ASSERT_EQUAL(rate_of(side.qp), 1000);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, IBV_QP_STATE), 0);
	CU_ASSERT_EQUAL(set_rate(side.qp, 1000, 0), EINVAL);
	attr.qp_state = IBV_QPS_RESET;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, IBV_QP_STATE), 0);
	CU_ASSERT_EQUAL(rate_of(side.qp), 0);
	close_sides();
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
		RCD_TEST(what_is_said),
		RCD_TEST(it_is_kept),
		RCD_TEST(without_peers),
		RCD_TEST(classes),
		RCD_TEST(changes),
		RCD_TEST(what_is_wrong),
		RCD_TEST(the_engine_ends_well),
	};

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	return rcd_tap_run("rate", tests, sizeof(tests) / sizeof(tests[0]));
}
