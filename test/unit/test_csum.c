/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: sums that a sender left to others are the port's where it can know them, else worked out
 * here, and whatever is said of a frame, nothing is touched beyond it. Method: frames by layout,
 * cut at each length, with every place of the sum; a sum in RFC 1071's own example.
 */
#include "rcd_csum.h"

#include <stdlib.h>
#include <string.h>

#include "rcd_tap.h"

#define HEAD        0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2
#define VLAN(id)    0x81, 0, 0, (id)
#define QINQ(id)    0x88, 0xa8, 0, (id)
#define IPV4(proto) 0x45, 0, 0, 40, 0, 1, 0x40, 0, 64, (proto), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define IPV4_OPTION(proto)                                                                         \
	0x46, 0, 0, 44, 0, 1, 0x40, 0, 64, (proto), 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 1, 0
#define IPV4_FRAGMENT(flags, offset)                                                               \
	0x45, 0, 0, 40, 0, 1, (flags), (offset), 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2
#define ADDRESS6    0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
#define IPV6(proto) 0x60, 0, 0, 0, 0, 20, (proto), 64, ADDRESS6, ADDRESS6

#define REST 24 /* bytes behind the IP header: of TCP or UDP, and some more */

struct frame {
	const char *what;
	uint8_t bytes[64];
	uint16_t l2_len, l3_len;
	uint16_t offset; /* of the sum; 0: it is not for a port */
	bool ipv6;
};

/* clang-format off */
static const struct frame frames[] = {
	{ "TCP", { HEAD, 8, 0, IPV4(6) }, 14, 20, 16, false },
	{ "UDP", { HEAD, 8, 0, IPV4(17) }, 14, 20, 6, false },
	{ "TCP behind an option", { HEAD, 8, 0, IPV4_OPTION(6) }, 14, 24, 0, false },
	{ "TCP, IPv6", { HEAD, 0x86, 0xdd, IPV6(6) }, 14, 40, 16, true },
	{ "UDP, IPv6", { HEAD, 0x86, 0xdd, IPV6(17) }, 14, 40, 6, true },
	{ "UDP in a VLAN", { HEAD, VLAN(5), 8, 0, IPV4(17) }, 18, 20, 6, false },
	{ "TCP in a tag around", { HEAD, QINQ(5), 8, 0, IPV4(6) }, 18, 20, 0, false },
	{ "TCP in two", { HEAD, QINQ(5), VLAN(6), 8, 0, IPV4(6) }, 22, 20, 0, false },
	{ "TCP in two VLANs", { HEAD, VLAN(5), VLAN(6), 8, 0, IPV4(6) }, 22, 20, 0, false },
	{ "SCTP", { HEAD, 8, 0, IPV4(132) }, 14, 20, 0, false },
	{ "the first fragment", { HEAD, 8, 0, IPV4_FRAGMENT(0x20, 0) }, 14, 20, 0, false },
	{ "the last fragment", { HEAD, 8, 0, IPV4_FRAGMENT(0, 9) }, 14, 20, 0, false },
	{ "an extension header", { HEAD, 0x86, 0xdd, IPV6(0) }, 14, 40, 0, true },
	{ "a header of no length", { HEAD, 8, 0, 0x40, [23] = 6 }, 14, 0, 0, false },
	{ "ARP", { HEAD, 8, 6 }, 14, 20, 0, false },
};
/* clang-format on */

/* In memory of its own length: whoever reads behind it is seen by a sanitizer. */
static bool
layout_of(const struct frame *frame, size_t len, uint16_t start, uint16_t offset,
	struct rcd_csum_layout *layout)
{
	uint8_t *copy = calloc(1, len != 0 ? len : 1);
	bool found;

	memcpy(copy, frame->bytes, len < sizeof(frame->bytes) ? len : sizeof(frame->bytes));
	found = rcd_csum_layout_parse(copy, len, start, offset, layout);
	free(copy);
	return found;
}

static void
what_a_port_can_do(void)
{
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		const struct frame *frame = &frames[i];
		uint16_t start = frame->l2_len + frame->l3_len;
		size_t least = (size_t)start + (frame->offset == 6 ? 8 : 20);
		struct rcd_csum_layout layout;

		for (size_t len = 0; len <= (size_t)start + REST; len++) {
			for (uint16_t offset = 0; offset < REST; offset++) {
				bool right = frame->offset != 0 && offset == frame->offset &&
					len >= least;
				bool found = layout_of(frame, len, start, offset, &layout);

				CU_ASSERT_EQUAL(found, right);
				if (found != right || !found)
					continue;
				CU_ASSERT_EQUAL(layout.l2_len, frame->l2_len);
				CU_ASSERT_EQUAL(layout.l3_len, frame->l3_len);
				CU_ASSERT_EQUAL(layout.l4_len, frame->offset == 6 ? 8 : 20);
				CU_ASSERT_EQUAL(layout.ipv6, frame->ipv6);
				CU_ASSERT_EQUAL(layout.udp, frame->offset == 6);
			}
		}
		for (uint32_t at = 0; at <= UINT16_MAX; at++)
			if (at != start)
				CU_ASSERT_FALSE(layout_of(frame, (size_t)start + REST, (uint16_t)at,
					frame->offset, &layout));
	}
}

static void
the_sum(void)
{
	/* RFC 1071, 3: the sum of the eight bytes is 0xddf2. */
	uint8_t bytes[12] = { 9, 9, 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0, 0 };
	uint8_t nothing[8] = { 0, 0, 0xff, 0xff };

	CU_ASSERT(rcd_csum_finish(bytes, sizeof(bytes), 2, 8));
	CU_ASSERT_EQUAL(bytes[10], 0x22);
	CU_ASSERT_EQUAL(bytes[11], 0x0d);
	/* 0 says that there is none, to UDP. */
	CU_ASSERT(rcd_csum_finish(nothing, sizeof(nothing), 2, 4));
	CU_ASSERT_EQUAL(nothing[6], 0xff);
	CU_ASSERT_EQUAL(nothing[7], 0xff);
}

static void
nothing_beyond_the_frame(void)
{
	static const uint16_t numbers[] = { 0, 1, 5, 6, 7, 8, 9, 0x7fff, 0x8000, 0xfffe, 0xffff };
	const size_t count = sizeof(numbers) / sizeof(numbers[0]);

	for (size_t len = 1; len <= 9; len++)
		for (size_t i = 0; i < count * count; i++) {
			uint16_t start = numbers[i / count], offset = numbers[i % count];
			uint8_t *frame = calloc(1, len);

			CU_ASSERT_EQUAL(rcd_csum_finish(frame, len, start, offset),
				(size_t)start + offset + 2 <= len);
			free(frame);
		}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_a_port_can_do),
		RCD_TEST(the_sum),
		RCD_TEST(nothing_beyond_the_frame),
	};

	return rcd_tap_run("csum", tests, sizeof(tests) / sizeof(tests[0]));
}
