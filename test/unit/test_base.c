/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: lib/base computes what it says. Method: tables of known results, and random values against
 * 64-bit arithmetic.
 */
#include <ctype.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_amount.h"
#include "rcd_bits.h"
#include "rcd_bytes.h"
#include "rcd_check.h"
#include "rcd_counter.h"
#include "rcd_psn.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"
#include "rcd_text.h"

static void
psn_known_distances(void)
{
	static const struct {
		uint32_t to, from;
		int32_t diff;
	} rows[] = {
		{ 0, 0, 0 },
		{ 1, 0, 1 },
		{ 0, 1, -1 },
		{ 0, 0xffffff, 1 },
		{ 0xffffff, 0, -1 },
		{ 5, 0xfffff0, 21 },
		{ 0xfffff0, 5, -21 },
		{ 0x7fffff, 0, 0x7fffff },
		{ 0x800000, 0, -0x800000 },
		{ 0x800001, 0, -0x7fffff },
		{ 0, 0x800001, 0x7fffff },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		struct rcd_psn to = rcd_psn(rows[i].to);
		struct rcd_psn from = rcd_psn(rows[i].from);

		CU_ASSERT_EQUAL(rcd_psn_diff(to, from), rows[i].diff);
		CU_ASSERT_EQUAL(rcd_psn_before(to, from), rows[i].diff < 0);
		CU_ASSERT_EQUAL(rcd_psn_eq(to, from), rows[i].diff == 0);
	}
}

static void
psn_add_and_sub_wrap(void)
{
	CU_ASSERT_EQUAL(rcd_psn(0x12abcdef).val, 0xabcdef);
	CU_ASSERT_EQUAL(rcd_psn_add(rcd_psn(0xffffff), 1).val, 0);
	CU_ASSERT_EQUAL(rcd_psn_add(rcd_psn(0xfffff0), 0x20).val, 0x10);
	CU_ASSERT_EQUAL(rcd_psn_sub(rcd_psn(0), 1).val, 0xffffff);
	CU_ASSERT_EQUAL(rcd_psn_add(rcd_psn(7), 1 << 24).val, 7);
	for (int i = 0; i < 100000; i++) {
		struct rcd_psn psn = rcd_psn((uint32_t)rand());
		uint32_t step = (uint32_t)rand() & 0x7fffff;
		struct rcd_psn next = rcd_psn_add(psn, step);

		CU_ASSERT_EQUAL_FATAL(next.val, ((uint64_t)psn.val + step) % (1 << 24));
		CU_ASSERT_EQUAL_FATAL(rcd_psn_diff(next, psn), (int32_t)step);
		CU_ASSERT_EQUAL_FATAL(rcd_psn_sub(next, step).val, psn.val);
	}
}

static void
psn_range_wraps(void)
{
	struct rcd_psn first = rcd_psn(0xfffffe);

	CU_ASSERT_FALSE(rcd_psn_in(rcd_psn(0xfffffd), first, 4));
	CU_ASSERT_TRUE(rcd_psn_in(rcd_psn(0xfffffe), first, 4));
	CU_ASSERT_TRUE(rcd_psn_in(rcd_psn(0xffffff), first, 4));
	CU_ASSERT_TRUE(rcd_psn_in(rcd_psn(0), first, 4));
	CU_ASSERT_TRUE(rcd_psn_in(rcd_psn(1), first, 4));
	CU_ASSERT_FALSE(rcd_psn_in(rcd_psn(2), first, 4));
	CU_ASSERT_FALSE(rcd_psn_in(first, first, 0));
}

static void
byte_orders(void)
{
	static const uint8_t src[] = { 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88 };
	uint8_t dst[8];

	CU_ASSERT_EQUAL(rcd_get_be16(src), 0x8182);
	CU_ASSERT_EQUAL(rcd_get_be24(src), 0x818283);
	CU_ASSERT_EQUAL(rcd_get_be32(src), 0x81828384);
	CU_ASSERT_EQUAL(rcd_get_be64(src), UINT64_C(0x8182838485868788));
	CU_ASSERT_EQUAL(rcd_get_le32(src), 0x84838281);

	rcd_put_be16(dst, 0x8182);
	CU_ASSERT_EQUAL(memcmp(dst, src, 2), 0);
	rcd_put_be24(dst, 0xff818283);
	CU_ASSERT_EQUAL(memcmp(dst, src, 3), 0);
	rcd_put_be32(dst, 0x81828384);
	CU_ASSERT_EQUAL(memcmp(dst, src, 4), 0);
	rcd_put_be64(dst, UINT64_C(0x8182838485868788));
	CU_ASSERT_EQUAL(memcmp(dst, src, 8), 0);
	rcd_put_le32(dst, 0x84838281);
	CU_ASSERT_EQUAL(memcmp(dst, src, 4), 0);
}

static void
counters_are_named_and_count(void)
{
	struct rcd_counters set = { { 0 } };

	for (int i = 0; i < RCD_COUNTER_COUNT; i++) {
		const char *name = rcd_counter_name((enum rcd_counter)i);

		CU_ASSERT_TRUE(strlen(name) >= 3);
		CU_ASSERT_TRUE(strlen(rcd_counter_description((enum rcd_counter)i)) > 3);
		CU_ASSERT_TRUE(strlen(rcd_counter_unit((enum rcd_counter)i)) > 3);
		for (const char *c = name; *c != '\0'; c++)
			CU_ASSERT_TRUE(islower(*c) || isdigit(*c) || *c == '_');
		for (int j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(name, rcd_counter_name((enum rcd_counter)j));
	}
	rcd_counter_add(&set, RCD_COUNTER_RX_BYTES, 1500);
	rcd_counter_add(&set, RCD_COUNTER_RX_BYTES, 64);
	CU_ASSERT_EQUAL(rcd_counter_get(&set, RCD_COUNTER_RX_BYTES), 1564);
	CU_ASSERT_EQUAL(rcd_counter_get(&set, RCD_COUNTER_RX_PACKETS), 0);
}

static void
broken_invariant_aborts(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		/* The message is expected: keep it out of the report. */
		fclose(stderr);
		RCD_CHECK(getpid() == 0);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void
powers_of_two(void)
{
	static const struct {
		uint32_t val, power;
		unsigned int log2;
	} rows[] = {
		{ 0, 1, 0 },
		{ 1, 1, 0 },
		{ 2, 2, 1 },
		{ 3, 4, 2 },
		{ 4, 4, 2 },
		{ 5, 8, 3 },
		{ 65535, 65536, 16 },
		{ 65536, 65536, 16 },
		{ 65537, 131072, 17 },
		{ UINT32_C(1) << 31, UINT32_C(1) << 31, 31 },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++) {
		CU_ASSERT_EQUAL(rcd_power_up(rows[i].val), rows[i].power);
		CU_ASSERT_EQUAL(rcd_log2_up(rows[i].val), rows[i].log2);
	}
	CU_ASSERT_EQUAL(rcd_log2_up(UINT32_MAX), 32);
}

static void
multiples(void)
{
	static const struct {
		uint64_t val, power, up;
	} rows[] = {
		{ 0, 4096, 0 },
		{ 1, 4096, 4096 },
		{ 4095, 4096, 4096 },
		{ 4096, 4096, 4096 },
		{ 4097, 4096, 8192 },
		{ 7, 1, 7 },
		{ UINT64_C(0xffffffff), 64, UINT64_C(0x100000000) },
		{ UINT64_MAX - 63, 64, UINT64_MAX - 63 },
	};

	for (size_t i = 0; i < RCD_ARRAY_COUNT(rows); i++)
		CU_ASSERT_EQUAL(rcd_align_up(rows[i].val, rows[i].power), rows[i].up);
}

/* The first numbers of this seed, as others have published them. */
static void
sequence_is_the_published_one(void)
{
	static const uint64_t numbers[] = {
		UINT64_C(6457827717110365317),
		UINT64_C(3203168211198807973),
		UINT64_C(9817491932198370423),
		UINT64_C(4593380528125082431),
		UINT64_C(16408922859458223821),
	};
	struct rcd_sequence sequence = { 1234567 };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(numbers); i++)
		CU_ASSERT_EQUAL(rcd_sequence_next(&sequence), numbers[i]);
}

/* Letters of other alphabets are, in UTF-8. */
static void
printable_texts(void)
{
	static const char *const not [] = { "\n", "a\tb", "\x1b[2J", "\x7f", "a\x01" };
	static const char *const are[] = { "", " ", "a~", "\xc3\xa9\xe2\x82\xac" };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(not ); i++)
		CU_ASSERT(!rcd_text_printable(not [i]));
	for (size_t i = 0; i < RCD_ARRAY_COUNT(are); i++)
		CU_ASSERT(rcd_text_printable(are[i]));
}

static void
amounts(void)
{
	static const struct {
		const char *text;
		uint64_t most, val; /* 0: refused */
	} of[] = { { "7", 7, 7 }, { "8", 7, 0 }, { "1K", 1024, 1024 }, { "0x10", 16, 16 },
		{ "010", 8, 8 }, { "15T", UINT64_MAX, 15ull << 40 },
		{ "16777215T", UINT64_MAX, 16777215ull << 40 }, { "16777216T", UINT64_MAX, 0 },
		{ "18446744073709551615", UINT64_MAX, UINT64_MAX },
		{ "18446744073709551616", UINT64_MAX, 0 }, { "1KK", 1 << 20, 0 }, { "1k", 1024, 0 },
		{ "", 9, 0 }, { "+1", 9, 0 }, { "-1", UINT64_MAX, 0 }, { "K", 1024, 0 } };

	for (size_t i = 0; i < RCD_ARRAY_COUNT(of); i++) {
		uint64_t val = 0;

		CU_ASSERT_EQUAL(rcd_amount_parse(of[i].text, of[i].most, &val), of[i].val != 0);
		CU_ASSERT_EQUAL(val, of[i].val);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(psn_known_distances),
		RCD_TEST(psn_add_and_sub_wrap),
		RCD_TEST(psn_range_wraps),
		RCD_TEST(byte_orders),
		RCD_TEST(counters_are_named_and_count),
		RCD_TEST(broken_invariant_aborts),
		RCD_TEST(powers_of_two),
		RCD_TEST(multiples),
		RCD_TEST(sequence_is_the_published_one),
		RCD_TEST(printable_texts),
		RCD_TEST(amounts),
	};

	return rcd_tap_run("base", tests, RCD_ARRAY_COUNT(tests));
}
