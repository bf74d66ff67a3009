/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the ICRC of any packet is right, and it finds every damaged bit that it should.
 *
 * Method: a second ICRC, computed bit by bit over a copy in which the masked fields were set to
 * ones, as the specification tells it; ours never makes a copy. The vectors suite has the judge:
 * packets of the kernel. What another identification changes is compared with what the ICRC of such
 * a packet is.
 */
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_crc_shift.h"
#include "rcd_icrc.h"
#include "rcd_pkt.h"
#include "rcd_roce.h"
#include "rcd_tap.h"
#include "rcd_udp.h"

enum {
	PACKET_ROOM = 4200
};

/* Bytes of the IP header. */
static size_t
ip_len(enum rcd_l3 l3)
{
	return l3 == RCD_L3_IPV4 ? RCD_IPV4_LEN : RCD_IPV6_LEN;
}

/* Whether bit `bit` (0 is the least significant) of byte `offset` counts as one. */
static bool
is_masked(enum rcd_l3 l3, size_t offset, unsigned int bit)
{
	size_t udp = ip_len(l3);

	if (offset == udp + 6 || offset == udp + 7 || offset == udp + RCD_UDP_LEN + 4)
		return true;
	if (l3 == RCD_L3_IPV4)
		return offset == 1 || offset == 8 || offset == 10 || offset == 11;
	return (offset == 0 && bit < 4) || (offset >= 1 && offset <= 3) || offset == 7;
}

static uint32_t
reference(enum rcd_l3 l3, const uint8_t *ip, size_t len)
{
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < len + 8; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			bool one = i < 8 || is_masked(l3, i - 8, bit) || (ip[i - 8] >> bit & 1);

			crc = (crc >> 1) ^ ((crc & 1) != one ? 0xedb88320 : 0);
		}
	}
	return ~crc;
}

static void
fill(uint8_t *ip, size_t len)
{
	for (size_t i = 0; i < len; i++)
		ip[i] = (uint8_t)rand();
}

/* Masked fields as most packets have them: the code has a shorter way for these. */
static void
set_usual(enum rcd_l3 l3, uint8_t *ip, size_t len)
{
	for (size_t offset = 0; offset < len; offset++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			if (is_masked(l3, offset, bit))
				ip[offset] &= (uint8_t) ~(1 << bit);
		}
	}
	ip[l3 == RCD_L3_IPV4 ? 8 : 7] = 64; /* TTL or hop limit */
}

static void
any_bytes_of_any_length(void)
{
	static uint8_t ip[PACKET_ROOM];

	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		size_t shortest = ip_len(l3) + RCD_UDP_LEN + RCD_BTH_LEN;

		for (size_t len = shortest; len <= PACKET_ROOM; len += len < 700 ? 1 : 97) {
			fill(ip, len);
			CU_ASSERT_EQUAL(rcd_icrc(l3, ip, len), reference(l3, ip, len));
		}
	}
}

static void
every_value_of_every_masked_byte(void)
{
	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		size_t len = ip_len(l3) + RCD_UDP_LEN + RCD_BTH_LEN + 8;
		uint8_t *ip = calloc(1, len);
		uint32_t expected;

		fill(ip, len);
		set_usual(l3, ip, len);
		expected = reference(l3, ip, len);
		for (size_t offset = 0; offset < len; offset++) {
			uint8_t before = ip[offset];
			uint8_t mask = 0;

			for (unsigned int bit = 0; bit < 8; bit++)
				mask |= (uint8_t)(is_masked(l3, offset, bit) << bit);
			for (unsigned int i = 0; mask != 0 && i < 256; i++) {
				ip[offset] = (uint8_t)((ip[offset] & ~mask) | (i & mask));
				CU_ASSERT_EQUAL(rcd_icrc(l3, ip, len), expected);
			}
			/* One unusual byte at a time. */
			ip[offset] = before;
		}
		free(ip);
	}
}

static void
every_flipped_bit(void)
{
	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		size_t len = ip_len(l3) + RCD_UDP_LEN + RCD_BTH_LEN + RCD_RETH_LEN + 1024;
		uint8_t *ip = malloc(len);
		unsigned int masked = 0;
		uint32_t good;

		fill(ip, len);
		good = rcd_icrc(l3, ip, len);
		for (size_t i = 0; i < 8 * len; i++) {
			bool found;

			ip[i / 8] ^= (uint8_t)(1 << i % 8);
			found = rcd_icrc(l3, ip, len) != good;
			ip[i / 8] ^= (uint8_t)(1 << i % 8);
			CU_ASSERT_EQUAL(found, !is_masked(l3, i / 8, i % 8));
			masked += !found;
		}
		/* TOS, TTL, checksum; or class, flow label, hop limit. Then UDP checksum, BTH. */
		CU_ASSERT_EQUAL(masked, (l3 == RCD_L3_IPV4 ? 8 + 8 + 16 : 8 + 20 + 8) + 16 + 8);
		free(ip);
	}
}

static void
in_pieces(void)
{
	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		size_t len = ip_len(l3) + RCD_UDP_LEN + RCD_BTH_LEN + 600;
		uint8_t *ip = malloc(len);
		uint32_t expected;

		fill(ip, len);
		expected = rcd_icrc(l3, ip, len);
		for (size_t cut = 0; cut <= len; cut++) {
			uint32_t crc = rcd_icrc_start(l3, ip);

			crc = rcd_icrc_update(crc, ip, cut);
			CU_ASSERT_EQUAL(rcd_icrc_update(crc, ip + cut, len - cut), expected);
		}
		free(ip);
	}
}

/* Nothing behind the stated length is read: a sanitizer watches the heap block. */
static void
reads_no_further(void)
{
	static const size_t start_len[] = { RCD_ICRC_START_LEN_IPV4, RCD_ICRC_START_LEN_IPV6 };

	for (enum rcd_l3 l3 = RCD_L3_IPV4; l3 <= RCD_L3_IPV6; l3++) {
		uint8_t *ip = malloc(start_len[l3]);

		fill(ip, start_len[l3]);
		CU_ASSERT_EQUAL(rcd_icrc(l3, ip, start_len[l3]), reference(l3, ip, start_len[l3]));
		free(ip);
	}
}

/* The identification of an IPv4 packet. */
static void
set_id(uint8_t *ip, unsigned int id)
{
	ip[4] = (uint8_t)(id >> 8);
	ip[5] = (uint8_t)id;
}

/* Bytes that the ICRC is over, behind the identification. */
static uint32_t
behind_id(size_t len)
{
	return (uint32_t)(len - 6);
}

/* A check is moved to each identification, and tells from each which one it is for. */
static void
every_identification(void)
{
	static const size_t lens[] = { 40, 44, 60, 300, 1072, 4136 };
	static uint8_t ip[PACKET_ROOM];

	for (size_t i = 0; i < RCD_ARRAY_COUNT(lens); i++) {
		unsigned int first = (unsigned int)rand() & 0xffff;
		unsigned int wrong = 0;
		uint32_t good;

		fill(ip, lens[i]);
		set_id(ip, first);
		good = rcd_icrc(RCD_L3_IPV4, ip, lens[i]);
		for (unsigned int id = 0; id <= 0xffff; id++) {
			uint16_t found = 0;
			uint32_t change;

			set_id(ip, id);
			change = rcd_icrc(RCD_L3_IPV4, ip, lens[i]) ^ good;
			wrong += change !=
				rcd_crc_change16((uint16_t)(id ^ first), behind_id(lens[i]));
			wrong += !rcd_crc_explain16(change, behind_id(lens[i]), &found);
			wrong += found != (id ^ first);
		}
		CU_ASSERT_EQUAL(wrong, 0);
	}
}

/* No bit that is flipped elsewhere looks like another identification, in any packet's length. */
static void
damage_is_no_identification(void)
{
	static const size_t lens[] = { 40, 300, 1072, 4136 };
	static uint8_t ip[PACKET_ROOM];

	for (size_t i = 0; i < RCD_ARRAY_COUNT(lens); i++) {
		unsigned int explained = 0;
		uint32_t good;

		fill(ip, lens[i]);
		good = rcd_icrc(RCD_L3_IPV4, ip, lens[i]);
		for (size_t bit = 0; bit < 8 * lens[i]; bit++) {
			uint16_t found;
			uint32_t change;

			if (bit / 8 == 4 || bit / 8 == 5 ||
				is_masked(RCD_L3_IPV4, bit / 8, bit % 8))
				continue;
			ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
			change = rcd_icrc(RCD_L3_IPV4, ip, lens[i]) ^ good;
			ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
			explained += rcd_crc_explain16(change, behind_id(lens[i]), &found);
		}
		CU_ASSERT_EQUAL(explained, 0);
	}
}

/* What is left of the check by any identification: one wrong ICRC in 65536 passes. */
static void
as_many_pass_as_there_are_identifications(void)
{
	unsigned int passed = 0;
	uint16_t found;

	for (uint32_t i = 0; i < 1u << 20; i++)
		passed += rcd_crc_explain16(i * 4096 + (i >> 8 & 0xfff), 1066, &found);
	/* 16 are to be expected. */
	CU_ASSERT(passed > 0 && passed < 64);
}

/* A packet is right for any identification with which its ICRC was, and for nothing else. */
static void
right_for_some_identification(void)
{
	static const size_t lens[] = { 40, 300, 1072, 4136 };
	static uint8_t ip[PACKET_ROOM];

	for (size_t i = 0; i < RCD_ARRAY_COUNT(lens); i++) {
		struct rcd_pkt pkt = { .ip = ip, .ip_len = (uint16_t)(lens[i] + RCD_ICRC_LEN) };
		unsigned int wrong = 0, passed = 0;

		fill(ip, lens[i]);
		rcd_put_le32(ip + lens[i], rcd_icrc(RCD_L3_IPV4, ip, lens[i]));
		pkt.l3 = RCD_L3_IPV4;
		for (uint32_t id = 0; id <= UINT16_MAX; id += 257) {
			rcd_put_be16(ip + 4, (uint16_t)id);
			wrong += !rcd_pkt_icrc_any_id(&pkt);
		}
		CU_ASSERT_EQUAL(wrong, 0);
		for (size_t bit = 0; bit < 8 * (lens[i] + RCD_ICRC_LEN); bit++) {
			if (bit / 8 == 4 || bit / 8 == 5 ||
				is_masked(RCD_L3_IPV4, bit / 8, bit % 8))
				continue;
			ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
			passed += rcd_pkt_icrc_any_id(&pkt);
			ip[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		CU_ASSERT_EQUAL(passed, 0);
		/* IPv6 has none, be the ICRC right or wrong. */
		pkt.l3 = RCD_L3_IPV6;
		rcd_put_le32(ip + lens[i], rcd_icrc(RCD_L3_IPV6, ip, lens[i]));
		passed += rcd_pkt_icrc_ok(&pkt) && rcd_pkt_icrc_any_id(&pkt);
		ip[lens[i]] ^= 1;
		passed += rcd_pkt_icrc_any_id(&pkt);
		CU_ASSERT_EQUAL(passed, 0);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(any_bytes_of_any_length),
		RCD_TEST(every_value_of_every_masked_byte),
		RCD_TEST(every_flipped_bit),
		RCD_TEST(in_pieces),
		RCD_TEST(reads_no_further),
		RCD_TEST(every_identification),
		RCD_TEST(damage_is_no_identification),
		RCD_TEST(as_many_pass_as_there_are_identifications),
		RCD_TEST(right_for_some_identification),
	};

	return rcd_tap_run("icrc", tests, RCD_ARRAY_COUNT(tests));
}
