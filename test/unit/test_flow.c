/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a flow finds what its mask asks for in a frame, wherever that is, and nothing else, and no
 * frame makes it look behind its end; RoCE is known as such. Method: frames of each kind, each
 * field of the key by its own, cut at each length in memory of that length.
 */
#include "rcd_flow.h"

#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_tap.h"

#define MACS      0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2
#define TAG       0x81, 0, 0x20, 5
#define IP4(p)    0x45, 7, 0, 40, 0, 1, 0x40, 0, 63, (p), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define IP4OPT(p) 0x46, 7, 0, 44, 0, 1, 0x40, 0, 63, (p), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0
#define FIRST(p)  0x45, 7, 0, 40, 0, 1, 0x20, 0, 63, (p), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define LATER(p)  0x45, 7, 0, 40, 0, 1, 0x00, 9, 63, (p), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define A(last)   0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (last)
#define IP6(p)    0x60, 0x71, 2, 3, 0, 20, (p), 62, A(1), A(2)
#define PORTS     0x11, 0x22, 0x33, 0x44
#define ROCE      0x11, 0x22, 0x12, 0xb7

enum {
	FRAME = 100,
	TCP = 6,
	UDP = 17
};

static const struct {
	const char *what;
	uint8_t bytes[FRAME];
	uint16_t l3, l4; /* where they begin; 0: nowhere */
	uint8_t version, protocol;
	bool tagged, ports, roce;
} frames[] = {
	{ "UDP", { MACS, 8, 0, IP4(UDP), PORTS }, 14, 34, 4, UDP, false, true, false },
	{ "TCP", { MACS, 8, 0, IP4(TCP), PORTS }, 14, 34, 4, TCP, false, true, false },
	{ "an option", { MACS, 8, 0, IP4OPT(UDP), PORTS }, 14, 38, 4, UDP, false, true, false },
	{ "a tag", { MACS, TAG, 8, 0, IP4(UDP), PORTS }, 18, 38, 4, UDP, true, true, false },
	{ "IPv6", { MACS, 0x86, 0xdd, IP6(TCP), PORTS }, 14, 54, 6, TCP, false, true, false },
	{ "first", { MACS, 8, 0, FIRST(UDP), PORTS }, 14, 34, 4, UDP, false, true, false },
	{ "later", { MACS, 8, 0, LATER(UDP), ROCE }, 14, 0, 4, UDP, false, false, false },
	{ "SCTP", { MACS, 8, 0, IP4(132), PORTS }, 14, 0, 4, 132, false, false, false },
	{ "extension", { MACS, 0x86, 0xdd, IP6(0), PORTS }, 14, 0, 6, 0, false, false, false },
	{ "not that version", { MACS, 8, 0, IP6(UDP), PORTS }, 0, 0, 0, 0, false, false, false },
	{ "no header length", { MACS, 8, 0, 0x40, [23] = UDP }, 0, 0, 0, 0, false, false, false },
	{ "ARP", { MACS, 8, 6, PORTS }, 0, 0, 0, 0, false, false, false },
	{ "RoCE", { MACS, 8, 0, IP4(UDP), ROCE }, 14, 34, 4, UDP, false, true, true },
	{ "RoCE behind an option", { MACS, 8, 0, IP4OPT(UDP), ROCE }, 14, 38, 4, UDP, false, true,
		true },
	{ "RoCE in a VLAN", { MACS, TAG, 0x86, 0xdd, IP6(UDP), ROCE }, 18, 58, 6, UDP, true, true,
		true },
	{ "TCP to that port", { MACS, 8, 0, IP4(TCP), ROCE }, 14, 34, 4, TCP, false, true, false },
};

static void
frames_by_layout(void)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(frames); i++) {
		static const uint8_t macs[] = { MACS };
		const uint8_t *bytes = frames[i].bytes;
		struct rcd_flow_layout layout;
		struct rcd_flow_key key;

		rcd_flow_key_of(bytes, FRAME, &key, &layout);
		CU_ASSERT_EQUAL(layout.l3, frames[i].l3);
		CU_ASSERT_EQUAL(layout.l4, frames[i].l4);
		CU_ASSERT_EQUAL(memcmp(&key, macs, sizeof(macs)), 0);
		CU_ASSERT_EQUAL(key.version, frames[i].version);
		CU_ASSERT_EQUAL(key.proto, frames[i].protocol);
		CU_ASSERT_EQUAL(key.tagged, frames[i].tagged);
		CU_ASSERT_EQUAL(rcd_get_be16(key.vlan_tag), frames[i].tagged ? 0x2005 : 0);
		CU_ASSERT_EQUAL(key.l4, frames[i].ports ? frames[i].protocol : 0);
		CU_ASSERT_EQUAL(rcd_get_be16(key.src_port), frames[i].ports ? 0x1122 : 0);
		CU_ASSERT_EQUAL(rcd_flow_key_is_roce(&key), frames[i].roce);
		if (key.version == 4) {
			CU_ASSERT_EQUAL(rcd_get_be32(key.src_ip), 0x0a000001);
			CU_ASSERT_EQUAL(rcd_get_be32(key.dst_ip), 0x0a000002);
			CU_ASSERT_EQUAL(key.tos, 7);
			CU_ASSERT_EQUAL(key.ttl, 63);
			CU_ASSERT_EQUAL(key.ip_flags, bytes[frames[i].l3 + 6] >> 5);
		}
		if (key.version == 6) {
			CU_ASSERT_EQUAL(key.src_ip[15], 1);
			CU_ASSERT_EQUAL(key.dst_ip[15], 2);
			CU_ASSERT_EQUAL(key.tos, 7);
			CU_ASSERT_EQUAL(key.ttl, 62);
			CU_ASSERT_EQUAL(rcd_get_be32(key.flow_label), 0x10203);
		}
	}
}

/* In memory of its own length: whoever reads behind it is seen by a sanitizer. */
static void
cut_at_each_length(void)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(frames); i++) {
		for (size_t len = 0; len < FRAME; len++) {
			uint8_t *bytes = malloc(len + 1);
			struct rcd_flow_layout layout;
			struct rcd_flow_key key;

			if (bytes == NULL)
				return;
			/* The byte in front is there; none behind. */
			memcpy(bytes + 1, frames[i].bytes, len);
			rcd_flow_key_of(bytes + 1, len, &key, &layout);
			CU_ASSERT_TRUE(layout.l3 <= len && layout.l4 <= len);
			CU_ASSERT_TRUE(key.l4 == 0 || layout.l4 + 4u <= len);
			CU_ASSERT_TRUE(key.version == 0 || layout.l3 + 20u <= len);
			free(bytes);
		}
	}
}

/* Each bit of a key that the mask has counts, and no other does. */
static void
each_bit_of_the_mask(void)
{
	struct rcd_flow_layout layout;
	struct rcd_flow_key key;

	rcd_flow_key_of(frames[3].bytes, FRAME, &key, &layout);
	for (size_t bit = 0; bit < 8 * RCD_FLOW_KEY_LEN; bit++) {
		struct rcd_flow_key value = key;
		struct rcd_flow_key mask;
		uint8_t one = (uint8_t)(1u << bit % 8);

		memset(&mask, 0xff, sizeof(mask));
		CU_ASSERT_TRUE(rcd_flow_key_matches(&key, &value, &mask));
		((uint8_t *)&value)[bit / 8] ^= one;
		CU_ASSERT_FALSE(rcd_flow_key_matches(&key, &value, &mask));
		((uint8_t *)&mask)[bit / 8] ^= one;
		CU_ASSERT_TRUE(rcd_flow_key_matches(&key, &value, &mask));
		memset(&mask, 0, sizeof(mask));
		((uint8_t *)&mask)[bit / 8] = one;
		CU_ASSERT_FALSE(rcd_flow_key_matches(&key, &value, &mask));
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(frames_by_layout),
		RCD_TEST(cut_at_each_length),
		RCD_TEST(each_bit_of_the_mask),
	};

	return rcd_tap_run("flow", tests, RCD_ARRAY_COUNT(tests));
}
