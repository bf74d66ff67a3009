/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: bodies of CM messages are read and written as the specification lays them out.
 * Method: the list of fields judged for overlaps; random bodies there and back; a REQ put together
 * by hand, byte by byte. tshark's opinion of real ones is asked in test/vectors.
 */
#include <stdlib.h>

#include "rcd_cm.h"
#include "rcd_tap.h"

static const uint16_t attrs[] = { 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19,
	0x1a };

/* Which bits of a body are in a field; a bit in two is a fault. */
static void
make_mask(uint16_t attr, uint8_t *mask)
{
	uint32_t count;
	const struct rcd_cm_field *fields = rcd_cm_fields(attr, &count);

	memset(mask, 0, RCD_CM_BODY_LEN);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fields);
	for (uint32_t i = 0; i < count; i++) {
		CU_ASSERT_FATAL(fields[i].at + fields[i].bits <= RCD_CM_BODY_LEN * 8);
		for (uint32_t bit = fields[i].at; bit < fields[i].at + fields[i].bits; bit++) {
			uint8_t flag = (uint8_t)(0x80 >> bit % 8);

			CU_ASSERT_EQUAL(mask[bit / 8] & flag, 0);
			mask[bit / 8] |= flag;
		}
	}
	CU_ASSERT_EQUAL(fields[count - 1].kind, RCD_CM_KIND_PRIVATE);
	CU_ASSERT_EQUAL(fields[count - 1].at + fields[count - 1].bits, RCD_CM_BODY_LEN * 8);
}

static void
no_bit_is_in_two_fields(void)
{
	uint8_t mask[RCD_CM_BODY_LEN];
	uint32_t count = 7;

	for (size_t i = 0; i < RCD_ARRAY_COUNT(attrs); i++)
		make_mask(attrs[i], mask);
	CU_ASSERT_PTR_NULL(rcd_cm_fields(0x0f, &count));
	CU_ASSERT_EQUAL(count, 0);
}

static void
there_and_back(void)
{
	uint8_t mask[RCD_CM_BODY_LEN], body[RCD_CM_BODY_LEN], back[RCD_CM_BODY_LEN];
	struct rcd_cm cm;

	srand(7);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(attrs); i++) {
		make_mask(attrs[i], mask);
		for (int round = 0; round < 200; round++) {
			for (size_t k = 0; k < sizeof(body); k++)
				body[k] = (uint8_t)rand();
			CU_ASSERT_TRUE_FATAL(rcd_cm_parse(body, attrs[i], &cm));
			CU_ASSERT_EQUAL(cm.attr, attrs[i]);
			rcd_cm_build(back, &cm);
			for (size_t k = 0; k < sizeof(body); k++)
				CU_ASSERT_EQUAL_FATAL(back[k], body[k] & mask[k]);
		}
	}
	CU_ASSERT_FALSE(rcd_cm_parse(body, 0x01, &cm));
	CU_ASSERT_FALSE(rcd_cm_parse(body, 0x1b, &cm));
}

/* How many bytes of private data each message has (IBTA 12.6). */
static void
private_data(void)
{
	static const uint32_t lengths[] = { 92, 222, 148, 196, 224, 220, 224, 216, 136, 168, 148 };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(attrs); i++) {
		uint32_t count;
		const struct rcd_cm_field *fields = rcd_cm_fields(attrs[i], &count);

		CU_ASSERT_EQUAL(fields[count - 1].bits / 8u, lengths[i]);
	}
	CU_ASSERT_EQUAL(RCD_CM_REQ_PRIVATE_LEN, 92);
	CU_ASSERT_EQUAL(RCD_CM_SIDR_REP_PRIVATE_LEN, 136);
}

/* A REQ put together by hand. Covers: IBTA 12.6 rcd_cm_parse() */
static void
a_req_by_hand(void)
{
	uint8_t body[RCD_CM_BODY_LEN] = { 0x01, 0x02, 0x03, 0x04 };
	struct rcd_cm cm;

	rcd_put_be64(body + 8, 0x0000000001061c06);
	rcd_put_be32(body + 32, 0x00001104); /* QPN 0x11, 4 responder resources */
	rcd_put_be32(body + 36, 0x00000003); /* initiator depth 3 */
	body[43] = 20 << 3 | 0 << 1 | 1;     /* remote CM timeout 20, RC, flow control */
	rcd_put_be32(body + 44, 0xabcdef00 | 18 << 3 | 7);
	rcd_put_be16(body + 48, 0xffff);
	body[50] = 5 << 4 | 6;
	body[51] = 15 << 4 | 1 << 3;
	body[56 + 10] = body[56 + 11] = 0xff;
	memcpy(body + 56 + 12, "\x0a\x4d\x00\x02", 4);
	rcd_put_be32(body + 88, UINT32_C(0x12345) << 12 | 18);
	body[92] = 0x6a;
	body[93] = 64;
	body[94] = 3 << 4 | 1 << 3;
	body[95] = 14 << 3;
	body[140] = 0x77;
	CU_ASSERT_TRUE_FATAL(rcd_cm_parse(body, RCD_CM_REQ, &cm));
	CU_ASSERT_EQUAL(cm.req.local_comm_id, 0x01020304);
	CU_ASSERT_EQUAL(cm.req.service_id, 0x01061c06);
	CU_ASSERT_EQUAL(cm.req.local_qpn, 0x11);
	CU_ASSERT_EQUAL(cm.req.responder_resources, 4);
	CU_ASSERT_EQUAL(cm.req.initiator_depth, 3);
	CU_ASSERT_EQUAL(cm.req.remote_cm_response_timeout, 20);
	CU_ASSERT_EQUAL(cm.req.end_to_end_flow_control, 1);
	CU_ASSERT_EQUAL(cm.req.starting_psn, 0xabcdef);
	CU_ASSERT_EQUAL(cm.req.local_cm_response_timeout, 18);
	CU_ASSERT_EQUAL(cm.req.retry_count, 7);
	CU_ASSERT_EQUAL(cm.req.pkey, 0xffff);
	CU_ASSERT_EQUAL(cm.req.path_mtu, 5);
	CU_ASSERT_EQUAL(cm.req.rnr_retry_count, 6);
	CU_ASSERT_EQUAL(cm.req.max_cm_retries, 15);
	CU_ASSERT_EQUAL(cm.req.srq, 1);
	CU_ASSERT_TRUE(rcd_gid_is_ipv4(&cm.req.primary_local_gid));
	CU_ASSERT_EQUAL(cm.req.primary_local_gid.raw[13], 0x4d);
	CU_ASSERT_EQUAL(cm.req.primary_flow_label, 0x12345);
	CU_ASSERT_EQUAL(cm.req.primary_packet_rate, 18);
	CU_ASSERT_EQUAL(cm.req.primary_traffic_class, 0x6a);
	CU_ASSERT_EQUAL(cm.req.primary_hop_limit, 64);
	CU_ASSERT_EQUAL(cm.req.primary_sl, 3);
	CU_ASSERT_EQUAL(cm.req.primary_subnet_local, 1);
	CU_ASSERT_EQUAL(cm.req.primary_local_ack_timeout, 14);
	CU_ASSERT_EQUAL(cm.req.private_data[0], 0x77);
}

/*
 * Whose options, and which: of REQ bytes 5..7, of REP bytes 15, 19 and 23, which nothing else has;
 * and the attribute modifier, bytes 20..23 of the MAD.
 */
static void
options_of_vendors_by_hand(void)
{
	static const uint8_t modifier[] = { 0x89, 0xab, 0xcd, 0xef };
	uint8_t mad[RCD_MAD_LEN] = { 1, 0x07, 2, 0x03 }, back[RCD_MAD_LEN] = { 0 };
	uint8_t *body = mad + RCD_MAD_HDR_LEN;
	struct rcd_mad hdr;
	struct rcd_cm cm;

	memcpy(mad + 20, modifier, sizeof(modifier));
	CU_ASSERT_EQUAL_FATAL(rcd_mad_parse(mad, sizeof(mad), &hdr), RCD_VERDICT_OK);
	memcpy(body + 5, "\xa1\xb2\xc3", 3);
	CU_ASSERT_TRUE_FATAL(rcd_cm_parse(body, RCD_CM_REQ, &cm));
	rcd_cm_set_attr_mod(&cm, hdr.attr_mod);
	CU_ASSERT_EQUAL(cm.req.vendor_id, 0xa1b2c3);
	CU_ASSERT_EQUAL(cm.req.vendor_options, 0x89abcdef);
	CU_ASSERT_EQUAL(rcd_cm_attr_mod(&cm), 0x89abcdef);
	rcd_cm_build(back + RCD_MAD_HDR_LEN, &cm);
	CU_ASSERT_EQUAL(memcmp(back + RCD_MAD_HDR_LEN, body, RCD_CM_BODY_LEN), 0);

	memset(body, 0, RCD_CM_BODY_LEN);
	body[15] = 0xa1;
	body[19] = 0xb2;
	body[23] = 0xc3;
	CU_ASSERT_TRUE_FATAL(rcd_cm_parse(body, RCD_CM_REP, &cm));
	rcd_cm_set_attr_mod(&cm, hdr.attr_mod);
	CU_ASSERT_EQUAL(rcd_cm_rep_vendor_id(&cm.rep), 0xa1b2c3);
	CU_ASSERT_EQUAL(cm.rep.vendor_options, 0x89abcdef);
	cm = (struct rcd_cm){ .attr = RCD_CM_REP, .rep.vendor_options = 0x89abcdef };
	rcd_cm_rep_set_vendor_id(&cm.rep, 0xffa1b2c3);
	rcd_cm_build(back + RCD_MAD_HDR_LEN, &cm);
	CU_ASSERT_EQUAL(memcmp(back + RCD_MAD_HDR_LEN, body, RCD_CM_BODY_LEN), 0);
	hdr.attr_mod = rcd_cm_attr_mod(&cm);
	rcd_mad_build(back, &hdr);
	CU_ASSERT_EQUAL(memcmp(back + 20, modifier, sizeof(modifier)), 0);

	/* Of no other message is it anything. */
	CU_ASSERT_TRUE_FATAL(rcd_cm_parse(body, RCD_CM_RTU, &cm));
	rcd_cm_set_attr_mod(&cm, 0x89abcdef);
	CU_ASSERT_EQUAL(rcd_cm_attr_mod(&cm), 0);
}

/* Covers: IBTA 12.6.7.2 rcd_cm_rej_text() */
static void
header_of_rdma_cm(void)
{
	struct rcd_cma_hdr hdr = { .ip_version = 4, .port = 40000 }, back;
	uint8_t bytes[RCD_CMA_HDR_LEN];
	enum rcd_cma_space space;
	uint16_t port;

	hdr.src = rcd_gid_from_ipv4((const uint8_t *)"\x0a\x4d\x00\x02");
	hdr.dst = rcd_gid_from_ipv4((const uint8_t *)"\x0a\x4d\x00\x01");
	rcd_cma_hdr_build(bytes, &hdr);
	CU_ASSERT_EQUAL(bytes[1], 0x40);
	CU_ASSERT_EQUAL(bytes[16], 0x0a);
	CU_ASSERT_EQUAL(bytes[35], 0x01);
	CU_ASSERT_TRUE(rcd_cma_hdr_parse(bytes, &back));
	CU_ASSERT_TRUE(rcd_gid_eq(&back.src, &hdr.src) && rcd_gid_eq(&back.dst, &hdr.dst));
	CU_ASSERT_EQUAL(back.port, 40000);
	hdr.ip_version = 6;
	hdr.src.raw[0] = 0xfd;
	rcd_cma_hdr_build(bytes, &hdr);
	CU_ASSERT_TRUE(rcd_cma_hdr_parse(bytes, &back));
	CU_ASSERT_TRUE(rcd_gid_eq(&back.src, &hdr.src));
	bytes[1] = 0x50;
	CU_ASSERT_FALSE(rcd_cma_hdr_parse(bytes, &back));
	bytes[1] = 0x60;
	bytes[0] = 1;
	CU_ASSERT_FALSE(rcd_cma_hdr_parse(bytes, &back));
	CU_ASSERT_TRUE(
		rcd_cma_service_parse(rcd_cma_service_id(RCD_CMA_SPACE_TCP, 7174), &space, &port));
	CU_ASSERT_EQUAL(space, RCD_CMA_SPACE_TCP);
	CU_ASSERT_EQUAL(port, 7174);
	CU_ASSERT_FALSE(rcd_cma_service_parse(0x1000000000061c06, &space, &port));
	CU_ASSERT_FALSE(rcd_cma_service_parse(0x01071c06, &space, &port));
	CU_ASSERT_STRING_EQUAL(rcd_cm_rej_text(28), "consumer reject");
	CU_ASSERT_STRING_EQUAL(rcd_cm_rej_text(34), "unknown reason");
	CU_ASSERT_STRING_EQUAL(rcd_cm_rej_text(9999), "unknown reason");
}

/* GUIDs of others say nothing, and ours differ by what tells adapters apart. */
static void
guids(void)
{
	CU_ASSERT_EQUAL(rcd_cm_guid(UINT64_C(0x123456789abcdef0), 1), UINT64_C(0x025243449abcde01));
	CU_ASSERT_EQUAL(rcd_cm_guid_offers(UINT64_C(0x025243449abcde01)), RCD_CM_OFFERS_SACK);
	CU_ASSERT_EQUAL(rcd_cm_guid_offers(UINT64_C(0x025243449abcde00)), 0);
	CU_ASSERT_EQUAL(rcd_cm_guid_offers(UINT64_C(0x025243fffe77ff01)), 0);
	CU_ASSERT_EQUAL(rcd_cm_guid_offers(UINT64_C(0x005054fffe77ff01)), 0);
	CU_ASSERT_EQUAL(rcd_cm_guid_offers(0), 0);
	CU_ASSERT_EQUAL(rcd_cm_guid_offers(UINT64_MAX), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(no_bit_is_in_two_fields),
		RCD_TEST(there_and_back),
		RCD_TEST(private_data),
		RCD_TEST(a_req_by_hand),
		RCD_TEST(options_of_vendors_by_hand),
		RCD_TEST(header_of_rdma_cm),
		RCD_TEST(guids),
	};

	return rcd_tap_run("cm", tests, sizeof(tests) / sizeof(tests[0]));
}
