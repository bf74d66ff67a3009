/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: in a VLAN the service level is the priority of the tag, and the traffic class that of IP:
 * the program's, or the one that the device has for the level, or for connections by address.
 * Method: the drop-in library on a wire whose addresses are in a VLAN; a sniffer sees the frames.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_cm.h"
#include "rcd_gid.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

enum {
	VLAN = 5,
	DSCP_SHIFT = 2,
	TAG_AT = 12,
	TYPE_AT = 16,
	IP_AT = 18,
	TOS_AT = IP_AT + 1,
	PROTOCOL_AT = IP_AT + 9,
	SNIFFED = 16, /* receives */
	FRAME_LEN = 256,
	PAYLOAD_LEN = 64,
};

/* Who has congestion control says in the class that marks are heeded. */
static const char config[] = "[device p0]\npeer = p1\naddress = 10.9.0.1/24@5\nraw = sniff\n"
			     "cc = none\n"
			     "[device p1]\npeer = p0\naddress = 10.9.0.2/24@5\ncc = none\n";

/* What is seen of a frame. */
struct seen {
	uint32_t tag;
	uint8_t tclass;
};

static struct rig rig;
static struct side side, other;

static struct ibv_ah_attr
way_to(const struct side *to, uint8_t sl, uint8_t tclass)
{
	struct ibv_ah_attr way = { .is_global = 1,
		.port_num = 1,
		.sl = sl,
		.grh = { .sgid_index = 1, .hop_limit = 64, .traffic_class = tclass } };

	MUST(ibv_query_gid(to->context, 1, 1, &way.grh.dgid) == 0);
	return way;
}

static void
connect_qp(struct ibv_qp *qp, uint32_t qpn, const struct ibv_ah_attr *way)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE
	};

	MUST(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.min_rnr_timer = 12,
		.ah_attr = *way };
	MUST(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 19, .retry_cnt = 7, .rnr_retry = 7
	};
	MUST(ibv_modify_qp(qp, &attr,
		     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* A queue pair that sees all frames of the device of `side`. */
static struct ibv_qp *
sniffer(struct ibv_flow **flow)
{
	struct ibv_flow_attr all = {
		.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(all), .port = 1
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = side_new_qp(&side, IBV_QPT_RAW_PACKET, NULL);

	MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT) == 0);
	for (uint64_t i = 0; i < SNIFFED; i++) {
		struct ibv_sge sge = { (uintptr_t)side.memory + (i + 1) * FRAME_LEN, FRAME_LEN,
			side.mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i + 1, .sg_list = &sge, .num_sge = 1 }, *bad;

		MUST(ibv_post_recv(qp, &wr, &bad) == 0);
	}
	attr.qp_state = IBV_QPS_RTR;
	MUST(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
	*flow = ibv_create_flow(qp, &all);
	MUST(*flow != NULL);
	return qp;
}

/*
 * The first frame of IPv4 and UDP that `sniffer` sees, and the success of what was sent. Both
 * complete in one queue. Then it and its flow are gone.
 */
static struct seen
look(struct ibv_qp *sniffer, struct ibv_flow *flow)
{
	static const uint8_t tagged[] = { 0x81, 0 }, ipv4[] = { 8, 0 };
	uint64_t end = now_ms() + FOREVER_MS;
	struct seen seen = { 0 };
	bool sent = false, found = false;
	struct ibv_wc wc;

	while (!(sent && found) && now_ms() < end) {
		const uint8_t *frame;

		if (ibv_poll_cq(sniffer->recv_cq, 1, &wc) != 1)
			continue;
		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		if (wc.status != IBV_WC_SUCCESS)
			break;
		if (wc.qp_num != sniffer->qp_num) {
			sent = true;
			continue;
		}
		frame = side.memory + wc.wr_id * FRAME_LEN;
		if (found || memcmp(frame + TAG_AT, tagged, sizeof(tagged)) != 0 ||
			memcmp(frame + TYPE_AT, ipv4, sizeof(ipv4)) != 0 ||
			frame[PROTOCOL_AT] != IPPROTO_UDP)
			continue;
		found = true;
		seen.tclass = frame[TOS_AT];
		seen.tag = (uint32_t)frame[TAG_AT + 2] << 8 | frame[TAG_AT + 3];
	}
	CU_ASSERT_TRUE(sent && found);
	CU_ASSERT_EQUAL(ibv_destroy_flow(flow), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(sniffer), 0);
	return seen;
}

static void
send_it(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)side.memory, PAYLOAD_LEN, side.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = ah != NULL ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (ah != NULL) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qpn;
		wr.wr.ud.remote_qkey = SIDE_QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)other.memory;
		wr.wr.rdma.rkey = other.mr->rkey;
	}
	MUST(ibv_post_send(qp, &wr, &bad) == 0);
}

/* A frame of a connection both of whose ends have this level: it is acknowledged as well. */
static struct seen
connected(uint8_t sl, uint8_t tclass)
{
	struct ibv_ah_attr there = way_to(&other, sl, tclass), here = way_to(&side, sl, tclass);
	struct ibv_qp *a = side_new_qp(&side, IBV_QPT_RC, NULL);
	struct ibv_qp *b = side_new_qp(&other, IBV_QPT_RC, NULL);
	struct ibv_flow *flow;
	struct ibv_qp *sees = sniffer(&flow);
	struct seen seen;

	connect_qp(b, a->qp_num, &here);
	connect_qp(a, b->qp_num, &there);
	send_it(a, NULL, 0);
	seen = look(sees, flow);
	CU_ASSERT_EQUAL(ibv_destroy_qp(b), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a), 0);
	return seen;
}

/* Likewise of a datagram, by an address handle. */
static struct seen
datagram(uint8_t sl, uint8_t tclass)
{
	struct ibv_ah_attr there = way_to(&other, sl, tclass);
	struct ibv_qp *a = side_new_qp(&side, IBV_QPT_UD, NULL);
	struct ibv_ah *ah = ibv_create_ah(side.pd, &there);
	struct ibv_flow *flow;
	struct ibv_qp *sees = sniffer(&flow);
	struct seen seen;

	MUST(ah != NULL);
	side_ready(a);
	send_it(a, ah, other.qp->qp_num);
	seen = look(sees, flow);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a), 0);
	return seen;
}

/* Four bits of a level, three of a priority; what is no level changes nothing else of the tag. */
static void
service_levels(void)
{
	static const uint8_t levels[] = { 0, 3, 7, 11, 15, 16, 255 };
	const uint8_t tclass = 26 << DSCP_SHIFT;

	side_open(&side, "p0");
	side_open(&other, "p1");
	for (size_t i = 0; i < sizeof(levels); i++) {
		uint32_t tag = (uint32_t)(levels[i] & 7) << 13 | VLAN;
		struct seen seen = connected(levels[i], tclass);

		CU_ASSERT_EQUAL(seen.tag, tag);
		CU_ASSERT_EQUAL(seen.tclass, tclass);
		seen = datagram(levels[i], tclass);
		CU_ASSERT_EQUAL(seen.tag, tag);
		CU_ASSERT_EQUAL(seen.tclass, tclass);
	}
	side_close(&other);
	side_close(&side);
}

/* What a table has for the level, unless the program chose; as it is when the way is given. */
static void
table_of_levels(void)
{
	static const struct {
		const char *table;
		uint8_t sl, tclass, wanted;
	} rows[] = {
		{ "3:26,5:46", 3, 0, 26 << DSCP_SHIFT },
		{ "3:26,5:46", 5, 0, 46 << DSCP_SHIFT },
		{ "3:26,5:46", 3, 10 << DSCP_SHIFT, 10 << DSCP_SHIFT },
		{ "3:26,5:46", 3, 1, 1 },
		{ "3:26,5:46", 4, 0, 0 },
		{ "3:26,5:46", 19, 0, 0 },
		{ "15:63", 15, 0, 63 << DSCP_SHIFT },
		{ "15:63", 255, 0, 0 },
		{ "none", 3, 0, 0 },
	};

	side_open(&side, "p0");
	side_open(&other, "p1");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char line[80];

		snprintf(line, sizeof(line), "link set p0 sl_dscp %s", rows[i].table);
		free(rig_admin(rig.socket, line));
		CU_ASSERT_EQUAL(connected(rows[i].sl, rows[i].tclass).tclass, rows[i].wanted);
		CU_ASSERT_EQUAL(datagram(rows[i].sl, rows[i].tclass).tclass, rows[i].wanted);
	}
	side_close(&other);
	side_close(&side);
}

/* What a connection by address would have, as its identifier says. */
static uint8_t
tclass_of_cm(void)
{
	static const struct rcd_gid ours = { { [10] = 0xff, 0xff, 10, 9, 0, 1 } };
	struct rcd_ctrl_cm_create_req create = { .space = RCD_CMA_SPACE_TCP, .qp_type = RCD_QP_RC };
	struct rcd_ctrl_cm_addr_req bind = { .addr = { .family = 4 } };
	struct rcd_ctrl_cm_query_rep query;
	struct rcd_ctrl_handle handle;
	struct rcd_client client;
	struct rcd_ctrl_fds fds;

	MUST(rcd_client_connect(&client, rig.socket) == 0);
	MUST(rcd_client_call(&client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &handle, NULL, &fds) == 0);
	MUST(fds.count == 1);
	create.channel = handle.handle;
	MUST(rcd_client_call(&client, RCD_CTRL_CM_CREATE, &create, &handle, NULL, NULL) == 0);
	bind.id = handle.handle;
	memcpy(bind.addr.addr, ours.raw, sizeof(bind.addr.addr));
	MUST(rcd_client_call(&client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL) == 0);
	MUST(rcd_client_call(&client, RCD_CTRL_CM_QUERY, &handle, &query, NULL, NULL) == 0);
	close(fds.fds[0]);
	rcd_client_close(&client);
	return query.av.tclass;
}

static void
connections_by_address(void)
{
	static const uint8_t classes[] = { 104, 255, 0 };

	CU_ASSERT_EQUAL(tclass_of_cm(), 0);
	for (size_t i = 0; i < sizeof(classes); i++) {
		char line[80];

		snprintf(line, sizeof(line), "link set p0 tos %u", classes[i]);
		free(rig_admin(rig.socket, line));
		CU_ASSERT_EQUAL(tclass_of_cm(), classes[i]);
	}
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
		RCD_TEST(service_levels),
		RCD_TEST(table_of_levels),
		RCD_TEST(connections_by_address),
		RCD_TEST(the_engine_ends_well),
	};

	rig_start_text(&rig, config, true);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	return rcd_tap_run("priority", tests, sizeof(tests) / sizeof(tests[0]));
}
