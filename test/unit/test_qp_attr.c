/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: each attribute of a queue pair gets from an application to the transport and back as it
 * was, by its own bit and into no other's field. Method: a second list of bits and fields, from
 * rdma-core's manual pages; each row goes alone through messages, and all go through a queue pair.
 */
#include <errno.h>
#include <string.h>

#include "rcd_attr.h"
#include "rcd_ctrl_verbs.h"
#include "rcd_tap.h"
#include "sim.h"

#define OTHER 0xa5 /* what fills memory that nobody may take for an attribute */

#define ROW(bit, field, val)                                                                       \
	{                                                                                          \
		bit, offsetof(struct ibv_qp_attr, field), FIELD_SIZE(field), val                   \
	}
#define FIELD_SIZE(field) sizeof(((struct ibv_qp_attr *)NULL)->field)

/* Values that a queue pair takes, no two alike where there is a choice. */
static const struct row {
	uint32_t bit;
	size_t offset, size;
	uint32_t val;
} rows[] = {
	ROW(IBV_QP_STATE, qp_state, IBV_QPS_RTS),
	ROW(IBV_QP_CUR_STATE, cur_qp_state, IBV_QPS_RTR),
	ROW(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, 1),
	ROW(IBV_QP_ACCESS_FLAGS, qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
	ROW(IBV_QP_PKEY_INDEX, pkey_index, 0),
	ROW(IBV_QP_PORT, port_num, 1),
	ROW(IBV_QP_QKEY, qkey, 0x11111111),
	ROW(IBV_QP_AV, ah_attr.grh.dgid.raw[0], 0xfd),
	ROW(IBV_QP_AV, ah_attr.grh.dgid.raw[15], 0x22),
	ROW(IBV_QP_AV, ah_attr.grh.flow_label, 0xfedcb),
	ROW(IBV_QP_AV, ah_attr.grh.sgid_index, 5),
	ROW(IBV_QP_AV, ah_attr.grh.hop_limit, 63),
	ROW(IBV_QP_AV, ah_attr.grh.traffic_class, 0xb8),
	ROW(IBV_QP_AV, ah_attr.sl, 3),
	ROW(IBV_QP_AV, ah_attr.is_global, 1),
	ROW(IBV_QP_AV, ah_attr.port_num, 1),
	ROW(IBV_QP_PATH_MTU, path_mtu, IBV_MTU_512),
	ROW(IBV_QP_TIMEOUT, timeout, 14),
	ROW(IBV_QP_RETRY_CNT, retry_cnt, 6),
	ROW(IBV_QP_RNR_RETRY, rnr_retry, 7),
	ROW(IBV_QP_RQ_PSN, rq_psn, 0x123456),
	ROW(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, 4),
	ROW(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, 12),
	ROW(IBV_QP_SQ_PSN, sq_psn, 0x654321),
	ROW(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, 2),
	ROW(IBV_QP_DEST_QPN, dest_qp_num, 0xabcdef),
	ROW(IBV_QP_RATE_LIMIT, rate_limit, 0xfedcba98),
};

static void
put(struct ibv_qp_attr *attr, const struct row *row)
{
	uint8_t *at = (uint8_t *)attr + row->offset;

	CU_ASSERT_FATAL(row->size == 1 || row->size == 2 || row->size == 4);
	if (row->size == 1)
		*at = (uint8_t)row->val;
	else if (row->size == 2)
		memcpy(at, &(uint16_t){ (uint16_t)row->val }, 2);
	else
		memcpy(at, &row->val, 4);
}

static uint32_t
get(const struct ibv_qp_attr *attr, const struct row *row)
{
	const uint8_t *at = (const uint8_t *)attr + row->offset;
	uint16_t half;
	uint32_t word;

	if (row->size == 1)
		return *at;
	memcpy(&half, at, sizeof(half));
	if (row->size == 2)
		return half;
	memcpy(&word, at, sizeof(word));
	return word;
}

/* Those of a mask have their values; what the others have is not for anybody. */
static struct ibv_qp_attr
attr_of(uint32_t mask)
{
	struct ibv_qp_attr attr;

	memset(&attr, OTHER, sizeof(attr));
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		if (rows[i].bit & mask)
			put(&attr, &rows[i]);
	/* A number whose ends are to be seen may have anything between. */
	if (mask & IBV_QP_AV)
		memset(attr.ah_attr.grh.dgid.raw + 1, 0, 14);
	return attr;
}

static uint32_t
all_bits(void)
{
	uint32_t all = 0;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		all |= rows[i].bit;
	return all;
}

/* Through a message into the transport's struct. */
static struct rcd_qp_attr
taken(const struct ibv_qp_attr *from, uint32_t mask)
{
	struct rcd_ctrl_qp_attr message;
	struct rcd_qp_attr attr;

	CU_ASSERT_EQUAL(rcd_ctrl_qp_attr_of_verbs(from, mask, &message), 0);
	rcd_attr_take(&message, &attr);
	return attr;
}

/* And back, what is in the mask; of the rest it stays what nobody may take. */
static struct ibv_qp_attr
shown(const struct rcd_qp_attr *from, uint32_t mask)
{
	struct rcd_ctrl_qp_attr message;
	struct ibv_qp_attr attr;

	rcd_attr_show(from, &message);
	memset(&attr, OTHER, sizeof(attr));
	rcd_ctrl_qp_attr_to_verbs(&message, mask, &attr);
	return attr;
}

static void
each_attribute_alone_there_and_back(void)
{
	for (uint32_t bit = 1; bit != 0; bit <<= 1) {
		struct ibv_qp_attr from = attr_of(bit);
		struct ibv_qp_attr nothing;
		struct rcd_qp_attr attr;

		if (!(all_bits() & bit))
			continue;
		memset(&nothing, OTHER, sizeof(nothing));
		attr = taken(&from, bit);
		for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
			const struct row *row = &rows[i];
			struct ibv_qp_attr own = shown(&attr, bit);
			struct ibv_qp_attr all = shown(&attr, all_bits());

			if (row->bit == bit) {
				CU_ASSERT_EQUAL(get(&own, row), row->val);
				CU_ASSERT_EQUAL(get(&all, row), row->val);
				continue;
			}
			CU_ASSERT_EQUAL(get(&own, row), get(&nothing, row));
			/* Every address vector is of the one port, and global. */
			if (row->offset != offsetof(struct ibv_qp_attr, ah_attr.is_global) &&
				row->offset != offsetof(struct ibv_qp_attr, ah_attr.port_num))
				CU_ASSERT_EQUAL(get(&all, row), 0);
		}
	}
}

static struct rcd_qp *
qp_of(struct sim *sim, enum ibv_qp_type type)
{
	struct rcd_qp_init init = {
		.sq_depth = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_rd_atomic = 4,
		.port_mtu_bytes = 1024,
	};
	uint32_t service = UINT32_MAX;

	CU_ASSERT_EQUAL(rcd_ctrl_qp_type_of_verbs(type, &service), 0);
	init.type = (enum rcd_qp_type)service;
	return sim_qp_create(&sim->nodes[0], &init)->qp;
}

/* What the manual page of ibv_modify_qp() asks for. */
static int
modify(struct rcd_qp *qp, enum ibv_qp_state to, uint32_t mask)
{
	struct ibv_qp_attr from = attr_of(mask);
	struct rcd_qp_attr attr;

	from.qp_state = to;
	attr = taken(&from, mask | IBV_QP_STATE);
	return rcd_qp_modify(qp, &attr, mask | IBV_QP_STATE);
}

static void
expect(const struct rcd_qp *qp, uint32_t mask)
{
	struct ibv_qp_attr attr;
	struct rcd_qp_attr now;

	rcd_qp_query(qp, &now);
	attr = shown(&now, all_bits());
	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		if (rows[i].bit & mask)
			CU_ASSERT_EQUAL(get(&attr, &rows[i]), rows[i].val);
}

static void
all_attributes_through_a_queue_pair(void)
{
	uint32_t init = IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	uint32_t rtr = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	uint32_t rts = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RATE_LIMIT;
	uint32_t seen = init | rtr | rts | IBV_QP_STATE;
	static struct sim sim;
	_Alignas(8) static uint8_t gate[1024];
	struct rcd_qp_attr drained;
	struct ibv_qp_attr told;
	struct rcd_qp *qp;

	sim_init(&sim, 1, 64, 0);
	qp = qp_of(&sim, IBV_QPT_RC);
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_INIT, init | IBV_QP_ACCESS_FLAGS), 0);
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_RTS, rts | IBV_QP_CUR_STATE), -EINVAL);
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_RTR, rtr), 0);
	/* A rate takes memory. */
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_RTS, rts | IBV_QP_CUR_STATE), -EINVAL);
	CU_ASSERT_FATAL(rcd_qp_gate_size() <= sizeof(gate));
	CU_ASSERT_EQUAL(rcd_qp_set_gate(qp, gate), 0);
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_RTS, rts | IBV_QP_CUR_STATE), 0);
	expect(qp, seen | IBV_QP_ACCESS_FLAGS);
	/* It is not in the state that it was in. */
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_RTS, IBV_QP_CUR_STATE), -EINVAL);
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	rcd_qp_query(qp, &drained);
	told = shown(&drained, all_bits());
	CU_ASSERT_EQUAL(told.qp_state, IBV_QPS_SQD);
	CU_ASSERT_EQUAL(told.cur_qp_state, IBV_QPS_SQD);
	CU_ASSERT_EQUAL(told.en_sqd_async_notify, 1);
	qp = qp_of(&sim, IBV_QPT_UD);
	CU_ASSERT_EQUAL(modify(qp, IBV_QPS_INIT, init | IBV_QP_QKEY), 0);
	expect(qp, init | IBV_QP_QKEY);
	sim_fini(&sim);
}

static void
what_is_no_attribute_is_refused(void)
{
	struct ibv_qp_attr from = attr_of(all_bits());
	struct rcd_ctrl_qp_attr message;

	CU_ASSERT_EQUAL(all_bits(), RCD_QP_ATTR_ALL);
	for (uint32_t bit = 1; bit != 0; bit <<= 1)
		CU_ASSERT_EQUAL(rcd_ctrl_qp_attr_of_verbs(&from, bit, &message),
			all_bits() & bit ? 0 : EOPNOTSUPP);
	from.ah_attr.is_global = 0;
	CU_ASSERT_EQUAL(rcd_ctrl_qp_attr_of_verbs(&from, IBV_QP_AV, &message), EINVAL);
	from.ah_attr.is_global = 1;
	from.ah_attr.port_num = 2;
	CU_ASSERT_EQUAL(rcd_ctrl_qp_attr_of_verbs(&from, IBV_QP_AV, &message), EINVAL);
	CU_ASSERT_EQUAL(rcd_ctrl_qp_attr_of_verbs(&from, IBV_QP_PORT, &message), 0);
}

/* Whoever writes to the socket: what does not fit is not taken for something that does. */
static void
values_too_large_are_cut_or_not_valid(void)
{
	struct rcd_ctrl_qp_attr message = { .path_mtu_bytes = 65536 + 1024,
		.rq_psn = UINT32_MAX,
		.sq_psn = UINT32_MAX,
		.dest_qpn = UINT32_MAX,
		.sqd_notify = 2,
		.av.flow_label = UINT32_MAX };
	struct rcd_qp_attr attr;

	rcd_attr_take(&message, &attr);
	CU_ASSERT_EQUAL(attr.path_mtu_bytes, 0);
	CU_ASSERT_EQUAL(attr.rq_psn.val, 0xffffff);
	CU_ASSERT_EQUAL(attr.sq_psn.val, 0xffffff);
	CU_ASSERT_EQUAL(attr.dest_qpn.val, 0xffffff);
	CU_ASSERT_TRUE(attr.sqd_notify);
	CU_ASSERT_EQUAL(attr.av.flow_label, 0xfffff);
}

/* The order of the list is that of the protocol. */
static void
fields_stand_where_clients_put_them(void)
{
	static const struct {
		size_t is, shall;
	} places[] = {
#define AT(field, place) { offsetof(struct rcd_ctrl_qp_attr, field), place }
		AT(av.dgid, 0),
		AT(av.flow_label, 16),
		AT(av.sgid_index, 20),
		AT(av.tclass, 21),
		AT(av.hop_limit, 22),
		AT(av.sl, 23),
		AT(access, 24),
		AT(qkey, 28),
		AT(rq_psn, 32),
		AT(sq_psn, 36),
		AT(dest_qpn, 40),
		AT(rate_kbps, 44),
		AT(path_mtu_bytes, 48),
		AT(pkey_index, 52),
		AT(state, 54),
		AT(cur_state, 55),
		AT(sqd_notify, 56),
		AT(port, 57),
		AT(timeout, 58),
		AT(retry_cnt, 59),
		AT(rnr_retry, 60),
		AT(max_rd_atomic, 61),
		AT(min_rnr_timer, 62),
		AT(max_dest_rd_atomic, 63),
		AT(sq_draining, 64),
		AT(burst_bytes, 68),
#undef AT
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(places); i++)
		CU_ASSERT_EQUAL(places[i].is, places[i].shall);
}

static void
path_mtus_and_their_codes(void)
{
	static const struct {
		uint32_t bytes, code;
		bool exact;
	} mtus[] = {
		{ 0, 0, false },
		{ 255, 0, false },
		{ 256, IBV_MTU_256, true },
		{ 511, IBV_MTU_256, false },
		{ 512, IBV_MTU_512, true },
		{ 1024, IBV_MTU_1024, true },
		{ 1500, IBV_MTU_1024, false },
		{ 2048, IBV_MTU_2048, true },
		{ 4095, IBV_MTU_2048, false },
		{ 4096, IBV_MTU_4096, true },
		{ UINT32_MAX, IBV_MTU_4096, false },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(mtus); i++) {
		CU_ASSERT_EQUAL(rcd_mtu_code(mtus[i].bytes), mtus[i].code);
		if (mtus[i].exact)
			CU_ASSERT_EQUAL(rcd_mtu_bytes(mtus[i].code), mtus[i].bytes);
	}
	CU_ASSERT_EQUAL(rcd_mtu_bytes(0), 0);
	CU_ASSERT_EQUAL(rcd_mtu_bytes(6), 0);
	CU_ASSERT_EQUAL(rcd_mtu_bytes(UINT32_MAX), 0);
}

static void
services_by_the_types_of_the_verbs(void)
{
	static const struct {
		enum ibv_qp_type type;
		enum rcd_qp_type service;
	} known[] = {
		{ IBV_QPT_RC, RCD_QP_RC },
		{ IBV_QPT_UC, RCD_QP_UC },
		{ IBV_QPT_UD, RCD_QP_UD },
		{ IBV_QPT_XRC_SEND, RCD_QP_XRC_SEND },
		{ IBV_QPT_XRC_RECV, RCD_QP_XRC_RECV },
	};
	static const enum ibv_qp_type unknown[] = { IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(known); i++) {
		uint32_t service = UINT32_MAX;

		CU_ASSERT_EQUAL(rcd_ctrl_qp_type_of_verbs(known[i].type, &service), 0);
		CU_ASSERT_EQUAL(service, known[i].service);
	}
	for (size_t i = 0; i < RCD_ARRAY_COUNT(unknown); i++) {
		uint32_t service = UINT32_MAX;

		CU_ASSERT_EQUAL(rcd_ctrl_qp_type_of_verbs(unknown[i], &service), EOPNOTSUPP);
		CU_ASSERT_EQUAL(service, UINT32_MAX);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(each_attribute_alone_there_and_back),
		RCD_TEST(all_attributes_through_a_queue_pair),
		RCD_TEST(what_is_no_attribute_is_refused),
		RCD_TEST(values_too_large_are_cut_or_not_valid),
		RCD_TEST(fields_stand_where_clients_put_them),
		RCD_TEST(path_mtus_and_their_codes),
		RCD_TEST(services_by_the_types_of_the_verbs),
	};

	return rcd_tap_run("qp_attr", tests, RCD_ARRAY_COUNT(tests));
}
