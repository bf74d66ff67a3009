/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a device says of itself is so: limits are limits, what it has works, and it has
 * nothing that it does not say. Method: the drop-in library on an embedded wire; each claim is
 * tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

static struct rig rig;
static struct side side, other;
static struct ibv_device_attr_ex attr;

static void
open_side(void)
{
	side_open(&side, "roce0");
	MUST(ibv_query_device_ex(side.context, NULL, &attr) == 0);
}

static int
try_qp(enum ibv_qp_type type, uint32_t wr, uint32_t sge)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = side.cq, .recv_cq = side.cq, .cap = { wr, 1, sge, 1, 0 }
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(side.pd, &init);
	if (qp == NULL)
		return errno;
	return ibv_destroy_qp(qp);
}

static int
try_srq(uint32_t wr, uint32_t sge)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = wr, .max_sge = sge } };
	struct ibv_srq *srq;

	errno = 0;
	srq = ibv_create_srq(side.pd, &init);
	if (srq == NULL)
		return errno;
	return ibv_destroy_srq(srq);
}

static void
limits_are_limits(void)
{
	const struct ibv_device_attr *orig = &attr.orig_attr;
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 2 };

	open_side();
	CU_ASSERT_EQUAL(try_qp(IBV_QPT_RC, (uint32_t)orig->max_qp_wr, 1), 0);
	CU_ASSERT_EQUAL(try_qp(IBV_QPT_RC, (uint32_t)orig->max_qp_wr + 1, 1), EINVAL);
	CU_ASSERT_EQUAL(try_qp(IBV_QPT_UD, 1, (uint32_t)orig->max_sge), 0);
	CU_ASSERT_EQUAL(try_qp(IBV_QPT_UD, 1, (uint32_t)orig->max_sge + 1), EINVAL);
	CU_ASSERT_EQUAL(try_srq((uint32_t)orig->max_srq_wr, 1), 0);
	CU_ASSERT_EQUAL(try_srq((uint32_t)orig->max_srq_wr + 1, 1), EINVAL);
	CU_ASSERT_EQUAL(try_srq(1, (uint32_t)orig->max_srq_sge), 0);
	CU_ASSERT_EQUAL(try_srq(1, (uint32_t)orig->max_srq_sge + 1), EINVAL);
	CU_ASSERT_PTR_NULL(ibv_create_cq(side.context, orig->max_cqe + 1, NULL, NULL, 0));
	CU_ASSERT_EQUAL(orig->phys_port_cnt, 1);
	CU_ASSERT_NOT_EQUAL(orig->device_cap_flags & IBV_DEVICE_UD_AV_PORT_ENFORCE, 0);
	CU_ASSERT_PTR_NULL(ibv_create_ah(side.pd, &ah));
	side_close(&side);
}

static void
what_is_said_works(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
			IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT };
	struct ibv_srq_attr larger = { .max_wr = 100 };
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_mw *mw;

	open_side();
	CU_ASSERT_NOT_EQUAL(attr.orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE, 0);
	srq = ibv_create_srq(side.pd, &init);
	MUST(srq != NULL);
	CU_ASSERT_EQUAL(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_NOT_EQUAL(attr.orig_attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0);
	mw = ibv_alloc_mw(side.pd, IBV_MW_TYPE_2);
	MUST(mw != NULL);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	CU_ASSERT_NOT_EQUAL(attr.orig_attr.device_cap_flags & IBV_DEVICE_XRC, 0);
	xrcd = ibv_open_xrcd(side.context, &domain);
	MUST(xrcd != NULL);
	CU_ASSERT_EQUAL(ibv_close_xrcd(xrcd), 0);
	side_close(&side);
}

/* What offloads and counters there are: none is taken and then not kept. */
static void
what_is_not_there(void)
{
	struct ibv_qp_attr change = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	const uint32_t unkept = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
		IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_RESIZE_MAX_WR | IBV_DEVICE_CHANGE_PHY_PORT |
		IBV_DEVICE_SHUTDOWN_PORT | IBV_DEVICE_N_NOTIFY_CQ | IBV_DEVICE_UD_IP_CSUM;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;

	open_side();
	CU_ASSERT_EQUAL(attr.orig_attr.device_cap_flags & unkept, 0);
	CU_ASSERT_EQUAL(attr.tso_caps.max_tso, 0);
	CU_ASSERT_EQUAL(attr.rss_caps.supported_qpts, 0);
	CU_ASSERT_EQUAL(attr.max_wq_type_rq, 0);
	CU_ASSERT_EQUAL(attr.tm_caps.max_num_tags, 0);
	side_close(&side);
	/* A rate of a path is no limit here, and a queue pair does not say that it was. */
	open_side();
	side_open(&other, "roce1");
	side_join(&side, &other);
	CU_ASSERT_EQUAL(ibv_query_qp(side.qp, &now, IBV_QP_AV, &init), 0);
	change.qp_state = IBV_QPS_RESET;
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &change, IBV_QP_STATE), 0);
	change.qp_state = IBV_QPS_INIT;
	CU_ASSERT_EQUAL(
		ibv_modify_qp(side.qp, &change,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	now.qp_state = IBV_QPS_RTR;
	now.ah_attr.static_rate = IBV_RATE_10_GBPS;
	CU_ASSERT_EQUAL(
		ibv_modify_qp(side.qp, &now,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
		0);
	CU_ASSERT_EQUAL(ibv_query_qp(side.qp, &now, IBV_QP_AV, &init), 0);
	CU_ASSERT_EQUAL(now.ah_attr.static_rate, 0);
	side_close(&other);
	side_close(&side);
}

static void
raw_packets_where_there_are(void)
{
	open_side();
	CU_ASSERT_EQUAL(attr.orig_attr.device_cap_flags &
			(IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING),
		0);
	CU_ASSERT_EQUAL(attr.orig_attr.max_raw_ethy_qp, 0);
	CU_ASSERT_EQUAL(attr.raw_packet_caps, 0);
	CU_ASSERT_EQUAL(try_qp(IBV_QPT_RAW_PACKET, 1, 1), EOPNOTSUPP);
	side_close(&side);
	free(rig_admin(rig.socket, "link set roce0 raw on"));
	open_side();
	CU_ASSERT_NOT_EQUAL(attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM, 0);
	CU_ASSERT_NOT_EQUAL(attr.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING, 0);
	CU_ASSERT(attr.orig_attr.max_raw_ethy_qp > 0);
	CU_ASSERT_EQUAL(attr.raw_packet_caps, IBV_RAW_PACKET_CAP_IP_CSUM);
	CU_ASSERT_EQUAL(try_qp(IBV_QPT_RAW_PACKET, 1, 1), 0);
	side_close(&side);
}

/* There and back again. What is no rate has no number. */
static void
rates(void)
{
	int known = 0;

	for (int rate = 1; rate < 64; rate++) {
		int mbps = ibv_rate_to_mbps((enum ibv_rate)rate);
		int mult = ibv_rate_to_mult((enum ibv_rate)rate);

		if (mbps <= 0)
			continue;
		known++;
		CU_ASSERT_EQUAL((int)mbps_to_ibv_rate(mbps), rate);
		CU_ASSERT_EQUAL((int)mult_to_ibv_rate(mult), rate);
	}
	CU_ASSERT_EQUAL(known, 23);
	CU_ASSERT_EQUAL(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
	CU_ASSERT_EQUAL(mbps_to_ibv_rate(123), IBV_RATE_MAX);
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
		RCD_TEST(limits_are_limits),
		RCD_TEST(what_is_said_works),
		RCD_TEST(what_is_not_there),
		RCD_TEST(raw_packets_where_there_are),
		RCD_TEST(rates),
		RCD_TEST(the_engine_ends_well),
	};

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	return rcd_tap_run("truth", tests, sizeof(tests) / sizeof(tests[0]));
}
