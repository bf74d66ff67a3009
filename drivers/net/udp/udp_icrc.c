/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A table of what one bit changes for each length that is in use: nearly all packets have one of
 * few, and a packet then costs an exclusive or for each bit that differs.
 */
#include "udp_icrc.h"

#include "rcd_crc_shift.h"

#define IPV4_LEN    20 /**< bytes of the IPv4 header, without options */
#define IPV4_ID_END 6  /**< bytes of the IPv4 header up to behind the identification */
#define SPORT_END   2  /**< likewise, of the UDP header */

/* One bit after the other, from the one that the CRC sees last: each is x times the one before. */
static void
udp_icrc_fill(uint32_t *bits, uint32_t behind)
{
	uint32_t power = rcd_crc_change16(1 << 7, behind);

	for (int i = 0; i < 16; i++) {
		bits[i < 8 ? 7 - i : 23 - i] = power;
		power = rcd_crc_multiply(0x40000000u, power);
	}
}

static uint32_t
udp_icrc_sum(const uint32_t *bits, uint16_t differing)
{
	uint32_t sum = 0;

	for (uint32_t left = differing; left != 0; left &= left - 1)
		sum ^= bits[__builtin_ctz(left)];
	return sum;
}

uint32_t
udp_icrc_change(struct udp_icrc *icrc, uint32_t l3_len, uint32_t len, uint16_t id, uint16_t sport)
{
	/* Of IPv6 and IPv4 the same length puts the port elsewhere. */
	struct udp_icrc_len *known = &icrc->lens[(len / 4 + l3_len) % UDP_ICRC_LENS];
	uint32_t key = len << 8 | l3_len;

	if (known->key != key) {
		udp_icrc_fill(known->id, len - IPV4_ID_END);
		udp_icrc_fill(known->sport, len - l3_len - SPORT_END);
		known->key = key;
	}
	return udp_icrc_sum(known->id, l3_len == IPV4_LEN ? id : 0) ^
		udp_icrc_sum(known->sport, sport);
}
