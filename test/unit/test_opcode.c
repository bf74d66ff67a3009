/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the opcode table is right. Method: a second list, written from the tables of IBTA Vol. 1,
 * chapter 9, not from rcd_opcode.def: bytes of headers behind the BTH as a sum, and the predicates
 * as letters. Every one of the 256 values is looked at, the reserved ones too.
 */
#include <stdio.h>
#include <string.h>

#include "rcd_opcode.h"
#include "rcd_tap.h"

/* Letters: q request, r response; b begins and e ends a message; i immediate data, v invalidate,
 * w consumes a receive work request; p may carry payload, 8 carries exactly eight bytes, m has a
 * bitmap. */
struct row {
	uint8_t opcode;
	const char *name;
	uint8_t ext_len;
	const char *letters;
};

/* RC; XRC requests have 4 bytes more and otherwise the same, responses are the same. */
static const struct row reliable[] = {
	{ 0x00, "SEND_FIRST", 0, "qbwp" },
	{ 0x01, "SEND_MIDDLE", 0, "qwp" },
	{ 0x02, "SEND_LAST", 0, "qewp" },
	{ 0x03, "SEND_LAST_WITH_IMMEDIATE", 4, "qeiwp" },
	{ 0x04, "SEND_ONLY", 0, "qbewp" },
	{ 0x05, "SEND_ONLY_WITH_IMMEDIATE", 4, "qbeiwp" },
	{ 0x06, "RDMA_WRITE_FIRST", 16, "qbp" },
	{ 0x07, "RDMA_WRITE_MIDDLE", 0, "qp" },
	{ 0x08, "RDMA_WRITE_LAST", 0, "qep" },
	{ 0x09, "RDMA_WRITE_LAST_WITH_IMMEDIATE", 4, "qeiwp" },
	{ 0x0a, "RDMA_WRITE_ONLY", 16, "qbep" },
	{ 0x0b, "RDMA_WRITE_ONLY_WITH_IMMEDIATE", 16 + 4, "qbeiwp" },
	{ 0x0c, "RDMA_READ_REQUEST", 16, "qbe" },
	{ 0x0d, "RDMA_READ_RESPONSE_FIRST", 4, "rbp" },
	{ 0x0e, "RDMA_READ_RESPONSE_MIDDLE", 0, "rp" },
	{ 0x0f, "RDMA_READ_RESPONSE_LAST", 4, "rep" },
	{ 0x10, "RDMA_READ_RESPONSE_ONLY", 4, "rbep" },
	{ 0x11, "ACKNOWLEDGE", 4, "rbe" },
	{ 0x12, "ATOMIC_ACKNOWLEDGE", 4 + 8, "rbe" },
	{ 0x13, "COMPARE_SWAP", 28, "qbe" },
	{ 0x14, "FETCH_ADD", 28, "qbe" },
	{ 0x16, "SEND_LAST_WITH_INVALIDATE", 4, "qevwp" },
	{ 0x17, "SEND_ONLY_WITH_INVALIDATE", 4, "qbevwp" },
};

static const struct row others[] = {
	{ 0x1c, "RC_FLUSH", 4 + 16, "qbe" },
	{ 0x1d, "RC_ATOMIC_WRITE", 16, "qbe8" },
	{ 0x64, "UD_SEND_ONLY", 8, "qbewp" },
	{ 0x65, "UD_SEND_ONLY_WITH_IMMEDIATE", 8 + 4, "qbeiwp" },
	{ 0x81, "CNP", 16, "be" },
	{ 0xc1, "SACK", 4 + 8, "rbem" },
	{ 0xc2, "HELLO", 4 + 8, "be" },
	{ 0xc3, "HELLO_ACK", 4 + 8, "be" },
};

static bool seen[256];

static void
check_row(uint8_t opcode, enum rcd_service service, const char *name, unsigned int ext_len,
	const char *letters)
{
	const struct rcd_opcode_info *info = rcd_opcode_info(opcode);
	enum rcd_payload payload = strchr(letters, 'p') != NULL ? RCD_PAYLOAD_ANY
		: strchr(letters, '8') != NULL                  ? RCD_PAYLOAD_ATOMIC
		: strchr(letters, 'm') != NULL                  ? RCD_PAYLOAD_BITMAP
								: RCD_PAYLOAD_NONE;

	CU_ASSERT_FALSE(seen[opcode]);
	seen[opcode] = true;
	CU_ASSERT_TRUE(rcd_opcode_known(opcode));
	CU_ASSERT_PTR_NOT_NULL_FATAL(rcd_opcode_name(opcode));
	CU_ASSERT_STRING_EQUAL(rcd_opcode_name(opcode), name);
	CU_ASSERT_EQUAL(info->service, service);
	CU_ASSERT_EQUAL(info->ext_len, ext_len);
	CU_ASSERT_EQUAL(info->payload, payload);
	CU_ASSERT_EQUAL(rcd_opcode_is_request(opcode), strchr(letters, 'q') != NULL);
	CU_ASSERT_EQUAL(rcd_opcode_is_response(opcode), strchr(letters, 'r') != NULL);
	CU_ASSERT_EQUAL(rcd_opcode_begins(opcode), strchr(letters, 'b') != NULL);
	CU_ASSERT_EQUAL(rcd_opcode_ends(opcode), strchr(letters, 'e') != NULL);
	CU_ASSERT_EQUAL(rcd_opcode_has(opcode, RCD_EXT_IMMDT), strchr(letters, 'i') != NULL);
	CU_ASSERT_EQUAL(rcd_opcode_has(opcode, RCD_EXT_IETH), strchr(letters, 'v') != NULL);
	CU_ASSERT_EQUAL(rcd_opcode_consumes_recv(opcode), strchr(letters, 'w') != NULL);
}

static void
check_prefixed(const struct row *row, uint8_t base, enum rcd_service service, const char *prefix,
	unsigned int extra_len)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", prefix, row->name);
	check_row((uint8_t)(base + row->opcode), service, name, row->ext_len + extra_len,
		row->letters);
}

static void
every_value_of_the_byte(void)
{
	static const enum rcd_service services[] = {
		RCD_SERVICE_RC,
		RCD_SERVICE_RC,
		RCD_SERVICE_UD,
		RCD_SERVICE_UD,
		RCD_SERVICE_CNP,
		RCD_SERVICE_SACK,
		RCD_SERVICE_HELLO,
		RCD_SERVICE_HELLO,
	};

	memset(seen, 0, sizeof(seen));
	for (size_t i = 0; i < RCD_ARRAY_COUNT(reliable); i++) {
		const struct row *row = &reliable[i];
		bool request = strchr(row->letters, 'q') != NULL;

		check_prefixed(row, 0x00, RCD_SERVICE_RC, "RC", 0);
		check_prefixed(row, 0xa0, RCD_SERVICE_XRC, "XRC", request ? 4 : 0);
		/* UC has SEND and WRITE only, and nothing that needs an answer. */
		if (row->opcode <= 0x0b)
			check_prefixed(row, 0x20, RCD_SERVICE_UC, "UC", 0);
	}
	for (size_t i = 0; i < RCD_ARRAY_COUNT(others); i++)
		check_row(others[i].opcode, services[i], others[i].name, others[i].ext_len,
			others[i].letters);
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		if (seen[opcode])
			continue;
		CU_ASSERT_FALSE(rcd_opcode_known((uint8_t)opcode));
		CU_ASSERT_PTR_NULL(rcd_opcode_name((uint8_t)opcode));
		CU_ASSERT_FALSE(rcd_opcode_is_request((uint8_t)opcode));
		CU_ASSERT_FALSE(rcd_opcode_is_response((uint8_t)opcode));
		CU_ASSERT_FALSE(rcd_opcode_begins((uint8_t)opcode));
		CU_ASSERT_FALSE(rcd_opcode_ends((uint8_t)opcode));
		CU_ASSERT_FALSE(rcd_opcode_consumes_recv((uint8_t)opcode));
		CU_ASSERT_EQUAL(rcd_opcode_info((uint8_t)opcode)->ext_len, 0);
	}
}

static void
lengths_of_the_extended_headers(void)
{
	/* IBTA Vol. 1, 9.3, and the annexes, by hand. */
	CU_ASSERT_EQUAL(RCD_XRCETH_LEN, 4);
	CU_ASSERT_EQUAL(RCD_DETH_LEN, 8);
	CU_ASSERT_EQUAL(RCD_FETH_LEN, 4);
	CU_ASSERT_EQUAL(RCD_RETH_LEN, 16);
	CU_ASSERT_EQUAL(RCD_ATOMICETH_LEN, 28);
	CU_ASSERT_EQUAL(RCD_AETH_LEN, 4);
	CU_ASSERT_EQUAL(RCD_ATOMICACKETH_LEN, 8);
	CU_ASSERT_EQUAL(RCD_IMMDT_LEN, 4);
	CU_ASSERT_EQUAL(RCD_IETH_LEN, 4);
	CU_ASSERT_EQUAL(RCD_CNP_LEN, 16);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(every_value_of_the_byte),
		RCD_TEST(lengths_of_the_extended_headers),
	};

	return rcd_tap_run("opcode", tests, RCD_ARRAY_COUNT(tests));
}
