/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: timer and credit codes, and syndromes in words. Method: lists typed from the tables of
 * IBTA Vol. 1, 9.7.5.2, while the code computes.
 */
#include <string.h>

#include "rcd_aeth.h"
#include "rcd_bytes.h"
#include "rcd_tap.h"
#include "rcd_timer.h"

static void
rnr_timer_codes(void)
{
	static const uint32_t hundredths_of_ms[32] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48,
		64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
		12288, 16384, 24576, 32768, 49152 };

	for (unsigned int code = 0; code < 32; code++) {
		CU_ASSERT_EQUAL(
			rcd_rnr_timer_ns((uint8_t)code), (uint64_t)hundredths_of_ms[code] * 10000);
		/* Bits of a syndrome above the code don't matter. */
		CU_ASSERT_EQUAL(rcd_rnr_timer_ns((uint8_t)(code | 0x20)),
			(uint64_t)hundredths_of_ms[code] * 10000);
	}
}

static void
ack_timeout_codes(void)
{
	/* Microseconds of the first codes by hand, then each twice the one before. */
	static const double us[] = { 0, 8.192, 16.384, 32.768, 65.536, 131.072, 262.144 };

	for (unsigned int code = 0; code < RCD_ARRAY_COUNT(us); code++)
		CU_ASSERT_DOUBLE_EQUAL(
			(double)rcd_ack_timeout_ns((uint8_t)code), us[code] * 1000, 0.5);
	for (unsigned int code = 2; code < 32; code++)
		CU_ASSERT_EQUAL(rcd_ack_timeout_ns((uint8_t)code),
			2 * rcd_ack_timeout_ns((uint8_t)(code - 1)));
	/* 14 is what programs ask for: 67.1 ms. 31 is the longest: 8796 s. */
	CU_ASSERT_EQUAL(rcd_ack_timeout_ns(14), 67108864);
	CU_ASSERT_EQUAL(rcd_ack_timeout_ns(31) / 1000000000, 8796);
}

static void
credit_codes(void)
{
	static const uint32_t credits[31] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768 };

	for (unsigned int code = 0; code < RCD_ARRAY_COUNT(credits); code++)
		CU_ASSERT_EQUAL(rcd_aeth_credits((uint8_t)code), credits[code]);
}

static void
syndromes_in_words(void)
{
	static const struct {
		uint8_t syndrome;
		enum rcd_aeth_kind kind;
		const char *text;
	} rows[] = {
		{ 0x1f, RCD_AETH_ACK, "ACK, no credits used" },
		{ 0x00, RCD_AETH_ACK, "ACK, credits 0" },
		{ 0x1e, RCD_AETH_ACK, "ACK, credits 32768" },
		{ 0x20, RCD_AETH_RNR_NAK, "RNR NAK, wait 655.36 ms" },
		{ 0x2c, RCD_AETH_RNR_NAK, "RNR NAK, wait 0.64 ms" },
		{ 0x40, RCD_AETH_RESERVED, "reserved syndrome 0x40" },
		{ 0x60, RCD_AETH_NAK, "NAK, PSN sequence error" },
		{ 0x61, RCD_AETH_NAK, "NAK, invalid request" },
		{ 0x62, RCD_AETH_NAK, "NAK, remote access error" },
		{ 0x63, RCD_AETH_NAK, "NAK, remote operational error" },
		{ 0x64, RCD_AETH_NAK, "NAK, invalid RD request" },
		{ 0x65, RCD_AETH_NAK, "NAK, reserved code 5" },
		{ 0x7f, RCD_AETH_NAK, "NAK, reserved code 31" },
	};
	char text[RCD_AETH_TEXT_SIZE];

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		rcd_aeth_text(rows[i].syndrome, text, sizeof(text));
		CU_ASSERT_STRING_EQUAL(text, rows[i].text);
		CU_ASSERT_EQUAL(rcd_aeth_kind(rows[i].syndrome), rows[i].kind);
		CU_ASSERT_EQUAL(rcd_aeth_syndrome(rows[i].kind, rcd_aeth_value(rows[i].syndrome)),
			rows[i].syndrome);
	}
	for (unsigned int syndrome = 0; syndrome < 256; syndrome++) {
		memset(text, 'x', sizeof(text));
		rcd_aeth_text((uint8_t)syndrome, text, sizeof(text));
		CU_ASSERT_TRUE(strnlen(text, sizeof(text)) < sizeof(text) - 1);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(rnr_timer_codes),
		RCD_TEST(ack_timeout_codes),
		RCD_TEST(credit_codes),
		RCD_TEST(syndromes_in_words),
	};

	return rcd_tap_run("timer", tests, RCD_ARRAY_COUNT(tests));
}
