/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: states, transitions and attributes of queue pairs, and what a packet of any opcode meets
 * in any state. Method: every cell of from x to x service is walked, with a second list of what is
 * required and allowed, written as letters from IBTA Vol. 1, 11.2.5.2.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"
#include "sim.h"

/* Letters of attributes: upper case in a rule is required, lower case allowed. */
static const struct {
	char letter;
	uint32_t attr;
} letters[] = {
	{ 'c', RCD_QP_ATTR_CUR },
	{ 'n', RCD_QP_ATTR_SQD_NOTIFY },
	{ 'a', RCD_QP_ATTR_ACCESS },
	{ 'k', RCD_QP_ATTR_PKEY_INDEX },
	{ 'p', RCD_QP_ATTR_PORT },
	{ 'q', RCD_QP_ATTR_QKEY },
	{ 'v', RCD_QP_ATTR_AV },
	{ 'm', RCD_QP_ATTR_PATH_MTU },
	{ 't', RCD_QP_ATTR_TIMEOUT },
	{ 'r', RCD_QP_ATTR_RETRY_CNT },
	{ 'w', RCD_QP_ATTR_RNR_RETRY },
	{ 's', RCD_QP_ATTR_RQ_PSN },
	{ 'x', RCD_QP_ATTR_MAX_RD_ATOMIC },
	{ 'i', RCD_QP_ATTR_MIN_RNR_TIMER },
	{ 'o', RCD_QP_ATTR_SQ_PSN },
	{ 'd', RCD_QP_ATTR_MAX_DEST_RD_ATOMIC },
	{ 'e', RCD_QP_ATTR_DEST_QPN },
	{ 'l', RCD_QP_ATTR_RATE },
};

/* Order: RC, UC, UD, GSI, raw packets, XRC initiator, target; "-" where there is no transition. */
static const struct {
	enum rcd_qp_state from, to;
	const char *rules[RCD_QP_TYPE_COUNT];
} rows[] = {
	{ RCD_QP_RESET, RCD_QP_INIT, { "KPA", "KPA", "KPQ", "KQp", "P", "KPA", "KPA" } },
	{ RCD_QP_INIT, RCD_QP_INIT, { "kpa", "kpa", "kpq", "kq", "p", "kpa", "kpa" } },
	{ RCD_QP_INIT, RCD_QP_RTR, { "VMESDIka", "VMESka", "kq", "kq", "", "VMESka", "VMESDIka" } },
	{ RCD_QP_RTR, RCD_QP_RTS,
		{ "OTRWXcail", "Ocal", "Ocql", "Ocql", "cl", "OTRWXcal", "OTcail" } },
	{ RCD_QP_RTS, RCD_QP_RTS, { "cail", "cal", "cql", "cql", "cl", "cal", "cail" } },
	{ RCD_QP_RTS, RCD_QP_SQD, { "n", "n", "n", "n", "n", "n", "n" } },
	{ RCD_QP_SQD, RCD_QP_RTS, { "cail", "cal", "cql", "cql", "cl", "cal", "cail" } },
	{ RCD_QP_SQD, RCD_QP_SQD, { "pvtrwxdaki", "vak", "kq", "kq", "-", "pvtrwxak", "pvtdaki" } },
	{ RCD_QP_SQE, RCD_QP_RTS, { "-", "cal", "cql", "cql", "cl", "-", "-" } },
};

static const char *
rule_for(enum rcd_qp_state from, enum rcd_qp_state to, enum rcd_qp_type type)
{
	if (to == RCD_QP_RESET || to == RCD_QP_ERR)
		return "c";
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		if (rows[i].from == from && rows[i].to == to)
			return rows[i].rules[type];
	}
	return "-";
}

static uint32_t
attrs_of(const char *rule, bool required)
{
	uint32_t mask = 0;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(letters); i++) {
		char upper = (char)(letters[i].letter - 'a' + 'A');

		if (strchr(rule, upper) != NULL)
			mask |= letters[i].attr;
		else if (!required && strchr(rule, letters[i].letter) != NULL)
			mask |= letters[i].attr;
	}
	return mask;
}

static struct rcd_qp_init
init_of(enum rcd_qp_type type)
{
	static const uint16_t frame_max = 1518;

	return (struct rcd_qp_init){
		.type = type,
		.sq_depth = 4,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.max_rd_atomic = 4,
		.port_mtu_bytes = 1024,
		.frame_max = type == RCD_QP_RAW ? &frame_max : NULL,
	};
}

static struct rcd_qp_attr
good_attr(struct sim *sim)
{
	struct rcd_qp_attr attr = sim_attr(sim);

	attr.av = sim_av(&sim->nodes[0]);
	attr.dest_qpn.val = 0x200;
	return attr;
}

static int
modify(struct sim_qp *qp, struct rcd_qp_attr *attr, enum rcd_qp_state to, uint32_t mask)
{
	attr->state = (uint8_t)to;
	attr->cur_state = (uint8_t)rcd_qp_state(qp->qp);
	return rcd_qp_modify(qp->qp, attr, mask | RCD_QP_ATTR_STATE);
}

/* Brings a fresh queue pair into a state on the shortest way. */
static struct sim_qp *
qp_in(struct sim *sim, enum rcd_qp_type type, enum rcd_qp_state state)
{
	static const enum rcd_qp_state way[] = { RCD_QP_INIT, RCD_QP_RTR, RCD_QP_RTS, RCD_QP_SQD };
	struct rcd_qp_init init = init_of(type);
	struct rcd_qp_attr attr = good_attr(sim);
	enum rcd_qp_state from = RCD_QP_RESET;
	struct sim_qp *qp;

	sim->nodes[0].qp_count = 0;
	qp = sim_qp_create(&sim->nodes[0], &init);
	if (state == RCD_QP_ERR) {
		CU_ASSERT_EQUAL(modify(qp, &attr, RCD_QP_ERR, 0), 0);
		return qp;
	}
	for (size_t i = 0; i < RCD_ARRAY_COUNT(way) && from != state; i++) {
		enum rcd_qp_state to = way[i];

		if (state == RCD_QP_SQE && to == RCD_QP_SQD)
			break;
		CU_ASSERT_EQUAL(modify(qp, &attr, to, attrs_of(rule_for(from, to, type), true)), 0);
		from = to;
	}
	if (state == RCD_QP_SQE) {
		/* A send request with a key that is not valid. */
		struct rcd_tx_pkt pkt;

		qp->sq.sges[0][0] = (struct rcd_sge){ 0, 8, { 0xdead } };
		qp->sq.wrs[0] = (struct rcd_send_wr){ .opcode = RCD_WR_SEND, .sge_count = 1 };
		if (type == RCD_QP_UD || type == RCD_QP_GSI)
			CU_ASSERT_EQUAL(
				rcd_ah_create(sim->nodes[0].ahs, 0, &attr.av, &qp->sq.wrs[0].ud.ah),
				0);
		qp->sq.posted = 1;
		while (rcd_qp_tx_next(qp->qp, 1, &pkt))
			continue;
		CU_ASSERT_EQUAL(rcd_qp_flush(qp->qp, 100), 0);
	}
	return qp;
}

static void
drop(struct sim_qp *qp)
{
	rcd_qp_fini(qp->qp);
	free(qp->qp);
	qp->node->qp_count = 0;
	memset(qp, 0, sizeof(*qp));
}

static bool
reachable(enum rcd_qp_type type, enum rcd_qp_state state)
{
	return state != RCD_QP_SQE || type == RCD_QP_UC || type == RCD_QP_UD ||
		type == RCD_QP_GSI || type == RCD_QP_RAW;
}

static void
check_cell(struct sim *sim, enum rcd_qp_type type, enum rcd_qp_state from, enum rcd_qp_state to)
{
	const char *rule = rule_for(from, to, type);
	uint32_t required = attrs_of(rule, true);
	uint32_t allowed = attrs_of(rule, false);

	for (size_t i = 0; i <= RCD_ARRAY_COUNT(letters); i++) {
		/* The required ones with this one turned round; last, as they are. */
		uint32_t one = i < RCD_ARRAY_COUNT(letters) ? letters[i].attr : 0;
		uint32_t mask = required ^ one;
		bool good =
			rule[0] != '-' && (mask & required) == required && (mask & ~allowed) == 0;
		struct rcd_qp_attr attr = good_attr(sim);
		struct sim_qp *qp = qp_in(sim, type, from);

		CU_ASSERT_EQUAL(rcd_qp_state(qp->qp), from);
		CU_ASSERT_EQUAL(modify(qp, &attr, to, mask), good ? 0 : -EINVAL);
		CU_ASSERT_EQUAL(rcd_qp_state(qp->qp), good ? to : from);
		drop(qp);
	}
}

/* Covers: IBTA 11.2.5.2 qp_modify_check_transition() */
static void
every_transition(void)
{
	static struct sim sim;

	sim_init(&sim, 1, 64, 0);
	for (enum rcd_qp_type type = RCD_QP_RC; type < RCD_QP_TYPE_COUNT; type++) {
		for (enum rcd_qp_state from = RCD_QP_RESET; from <= RCD_QP_ERR; from++) {
			if (!reachable(type, from))
				continue;
			for (enum rcd_qp_state to = RCD_QP_RESET; to <= RCD_QP_ERR; to++) {
				rcd_ah_table_destroy(sim.nodes[0].ahs);
				sim.nodes[0].ahs = rcd_ah_table_create(64);
				sim.nodes[0].cqe_count = 0;
				check_cell(&sim, type, from, to);
			}
		}
	}
	sim_fini(&sim);
}

static void
values_out_of_range(void)
{
	static struct sim sim;
	struct rcd_qp_attr good;
	struct sim_qp *qp;
	struct rcd_qp_attr attr;

	sim_init(&sim, 1, 64, 0);
	good = good_attr(&sim);
#define REFUSED(from, to, change)                                                                  \
	do {                                                                                       \
		qp = qp_in(&sim, RCD_QP_RC, from);                                                 \
		attr = good;                                                                       \
		change;                                                                            \
		CU_ASSERT_EQUAL(                                                                   \
			modify(qp, &attr, to, attrs_of(rule_for(from, to, RCD_QP_RC), true)),      \
			-EINVAL);                                                                  \
		CU_ASSERT_EQUAL(rcd_qp_state(qp->qp), from);                                       \
		drop(qp);                                                                          \
	} while (0)
	REFUSED(RCD_QP_RESET, RCD_QP_INIT, attr.port = 2);
	REFUSED(RCD_QP_RESET, RCD_QP_INIT, attr.pkey_index = 1);
	REFUSED(RCD_QP_RESET, RCD_QP_INIT, attr.access = 1u << 20);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.path_mtu_bytes = 1000);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.path_mtu_bytes = 128);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.path_mtu_bytes = 2048);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.min_rnr_timer = 32);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.max_dest_rd_atomic = 5);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.rq_psn.val = 1 << 24);
	REFUSED(RCD_QP_INIT, RCD_QP_RTR, attr.dest_qpn.val = 1 << 24);
	REFUSED(RCD_QP_RTR, RCD_QP_RTS, attr.timeout = 32);
	REFUSED(RCD_QP_RTR, RCD_QP_RTS, attr.retry_cnt = 8);
	REFUSED(RCD_QP_RTR, RCD_QP_RTS, attr.rnr_retry = 8);
	REFUSED(RCD_QP_RTR, RCD_QP_RTS, attr.max_rd_atomic = RCD_QP_RD_ATOMIC_MAX + 1);
	REFUSED(RCD_QP_RTR, RCD_QP_RTS, attr.sq_psn.val = 1 << 24);
#undef REFUSED
	sim_fini(&sim);
}

static void
query_gives_what_was_set(void)
{
	static struct sim sim;
	struct rcd_qp_attr set, got;
	struct sim_qp *qp;

	sim_init(&sim, 1, 64, 0);
	qp = qp_in(&sim, RCD_QP_RC, RCD_QP_INIT);
	set = good_attr(&sim);
	set.rq_psn.val = 0x123456;
	set.min_rnr_timer = 12;
	set.max_dest_rd_atomic = 3;
	CU_ASSERT_EQUAL(modify(qp, &set, RCD_QP_RTR, attrs_of("VMESDIka", false)), 0);
	set.timeout = 14;
	set.retry_cnt = 5;
	set.rnr_retry = 6;
	set.max_rd_atomic = 2;
	set.sq_psn.val = 0x654321;
	CU_ASSERT_EQUAL(modify(qp, &set, RCD_QP_RTS, attrs_of("OTRWX", true)), 0);
	rcd_qp_query(qp->qp, &got);
	CU_ASSERT_EQUAL(got.state, RCD_QP_RTS);
	CU_ASSERT_EQUAL(got.rq_psn.val, 0x123456);
	CU_ASSERT_EQUAL(got.sq_psn.val, 0x654321);
	CU_ASSERT_EQUAL(got.min_rnr_timer, 12);
	CU_ASSERT_EQUAL(got.max_dest_rd_atomic, 3);
	CU_ASSERT_EQUAL(got.max_rd_atomic, 2);
	CU_ASSERT_EQUAL(got.timeout, 14);
	CU_ASSERT_EQUAL(got.retry_cnt, 5);
	CU_ASSERT_EQUAL(got.rnr_retry, 6);
	CU_ASSERT_EQUAL(got.path_mtu_bytes, 1024);
	CU_ASSERT_EQUAL(got.dest_qpn.val, 0x200);
	CU_ASSERT_EQUAL(got.access, RCD_ACCESS_REMOTE);
	CU_ASSERT_EQUAL(got.port, 1);
	CU_ASSERT_TRUE(rcd_gid_eq(&got.av.dgid, &set.av.dgid));
	drop(qp);
	sim_fini(&sim);
}

static uint64_t
sum(const struct rcd_counters *counters, enum rcd_counter first, enum rcd_counter last)
{
	uint64_t total = 0;

	for (int i = first; i <= (int)last; i++)
		total += rcd_counter_get(counters, (enum rcd_counter)i);
	return total;
}

/*
 * Every opcode of RC, UC, UD and XRC meets every queue pair in every state: what the state or the
 * service forbids is dropped and counted as such, and nothing is answered.
 *
 * Covers: IBTA 9.6 qp_check_common()
 */
static void
every_opcode_in_every_state(void)
{
	static struct sim sim;

	sim_init(&sim, 1, 64, 0);
	for (unsigned int cell = 0; cell < 256 * RCD_QP_TYPE_COUNT * RCD_QP_STATE_COUNT; cell++) {
		uint8_t opcode = (uint8_t)cell;
		enum rcd_qp_type type = (enum rcd_qp_type)(cell / 256 % RCD_QP_TYPE_COUNT);
		enum rcd_qp_state state = (enum rcd_qp_state)(cell / 256 / RCD_QP_TYPE_COUNT);
		enum rcd_service service = (enum rcd_service)rcd_opcode_info(opcode)->service;
		static const enum rcd_service own[] = { RCD_SERVICE_RC, RCD_SERVICE_UC,
			RCD_SERVICE_UD, RCD_SERVICE_UD,
			/* None of its own; nothing here is of this one. */
			RCD_SERVICE_CNP, RCD_SERVICE_XRC, RCD_SERVICE_XRC };
		static uint8_t ip[RCD_IPV6_LEN], payload[1024];
		struct rcd_pkt pkt = { .ip = ip, .payload = payload };
		enum rcd_rx_verdict verdict;
		struct rcd_tx_pkt out;
		struct sim_qp *qp;
		bool answers, fits;

		if ((service != RCD_SERVICE_RC && service != RCD_SERVICE_UC &&
			    service != RCD_SERVICE_UD && service != RCD_SERVICE_XRC) ||
			!reachable(type, state))
			continue;
		rcd_ah_table_destroy(sim.nodes[0].ahs);
		sim.nodes[0].ahs = rcd_ah_table_create(4);
		sim.nodes[0].cqe_count = 0;
		qp = qp_in(&sim, type, state);
		pkt.sgid = sim_av(&sim.nodes[0]).dgid;
		pkt.dgid = sim_av(&sim.nodes[0]).sgid;
		pkt.roce.bth.opcode = opcode;
		pkt.roce.bth.pkey.val = 0xffff;
		pkt.roce.bth.ack_req = true;
		memset(&sim.nodes[0].counters, 0, sizeof(sim.nodes[0].counters));
		verdict = rcd_qp_rx(qp->qp, &pkt, 1000);
		answers = rcd_qp_tx_next(qp->qp, 1000, &out);
		/* Requests are not for an XRC initiator, and answers not for a target. */
		fits = service == own[type] &&
			!(type == RCD_QP_XRC_SEND && rcd_opcode_is_request(opcode)) &&
			!(type == RCD_QP_XRC_RECV && rcd_opcode_is_response(opcode));
		if (!fits)
			CU_ASSERT_EQUAL(verdict, RCD_RX_SERVICE);
		if (fits &&
			(state < RCD_QP_RTR || state == RCD_QP_ERR ||
				(state == RCD_QP_RTR && rcd_opcode_is_response(opcode))))
			CU_ASSERT_EQUAL(verdict, RCD_RX_STATE);
		if (verdict == RCD_RX_SERVICE || verdict == RCD_RX_STATE ||
			(type != RCD_QP_RC && type != RCD_QP_XRC_RECV))
			CU_ASSERT_FALSE(answers);
		if (fits && (type == RCD_QP_RC || type == RCD_QP_XRC_RECV) &&
			rcd_opcode_is_request(opcode) && state >= RCD_QP_RTR && state != RCD_QP_ERR)
			CU_ASSERT_TRUE(answers);
		CU_ASSERT_EQUAL(rcd_counter_get(&sim.nodes[0].counters, RCD_COUNTER_RCVD_PKTS), 1);
		CU_ASSERT_TRUE(sum(&sim.nodes[0].counters, RCD_COUNTER_OUT_OF_SEQ_KEPT,
				       RCD_COUNTER_RX_DROP_MESSAGE) +
				sum(&sim.nodes[0].counters, RCD_COUNTER_DUPLICATE_REQUEST,
					RCD_COUNTER_SEND_RNR_ERR) >=
			1);
		drop(qp);
	}
	sim_fini(&sim);
}

static void
sizes(void)
{
	struct rcd_qp_init init = {
		.type = RCD_QP_RC,
		.sq_depth = RCD_QP_SQ_DEPTH_DEFAULT,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline = 64,
		.max_rd_atomic = RCD_QP_RD_ATOMIC_DEFAULT,
		.port_mtu_bytes = 4096,
	};

	printf("# an idle RC queue pair with default depths takes %zu bytes, 128 of them hot\n",
		rcd_qp_size(&init));
	CU_ASSERT_TRUE(rcd_qp_size(&init) > 0 && rcd_qp_size(&init) <= 4096);
	init.max_send_sge = RCD_SGE_MAX + 1;
	CU_ASSERT_EQUAL(rcd_qp_size(&init), 0);
	init.max_send_sge = 1;
	init.sq_depth = 0;
	CU_ASSERT_EQUAL(rcd_qp_size(&init), 0);
	init.sq_depth = 1;
	init.port_mtu_bytes = 1500;
	CU_ASSERT_EQUAL(rcd_qp_size(&init), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(every_transition),
		RCD_TEST(values_out_of_range),
		RCD_TEST(query_gives_what_was_set),
		RCD_TEST(every_opcode_in_every_state),
		RCD_TEST(sizes),
	};

	return rcd_tap_run("qp_states", tests, RCD_ARRAY_COUNT(tests));
}
