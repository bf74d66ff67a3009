/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: addresses, lengths and numbers at the ends of their types do what the same would do with
 * more bits. Method: every combination of a table of edges, compared with sums of 128 bits, or with
 * the rule of a clause; keys and requests of control messages likewise.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_cl_span.h"
#include "rcd_ctrl.h"
#include "rcd_guard.h"
#include "rcd_mr.h"
#include "rcd_psn.h"
#include "rcd_qp_priv.h"
#include "rcd_tap.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define HUGE         ((uint64_t)2 << 20)
#define BASE         ((uint8_t *)4096) /**< of memory that nobody looks at */

typedef unsigned __int128 wide;

static const uint64_t edges[] = { 0, 1, 2, 63, 64, 4095, 4096, 4097, HUGE - 1, HUGE, HUGE + 1,
	UINT32_MAX - 1, UINT32_MAX, UINT64_C(1) << 32, (UINT64_C(1) << 40) - 1, UINT64_C(1) << 40,
	(UINT64_C(1) << 63) - 1, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX - HUGE,
	UINT64_MAX - HUGE + 1, UINT64_MAX - HUGE + 4097, UINT64_MAX - 4096, UINT64_MAX - 4095,
	UINT64_MAX - 1, UINT64_MAX };

static bool
within(uint64_t addr, uint64_t len, uint64_t start, uint64_t room)
{
	return addr >= start && (wide)addr + len <= (wide)start + room;
}

/* A region is taken when it ends within 2^64, and gives what lies within it. */
static void
translate_one(uint64_t start, uint64_t room)
{
	struct rcd_mr_table *table = rcd_mr_table_create(2, 1);
	struct rcd_mr_attr attr = {
		.pd = 1, .access = RCD_ACCESS_REMOTE_READ, .start = start, .len = room, .base = BASE
	};
	struct rcd_mr_use use = { .pd = 1, .access = RCD_ACCESS_REMOTE_READ, .remote = true };
	bool fits = (wide)start + room <= (wide)1 << 64;
	unsigned int wrong = 0;
	struct rcd_key key;

	CU_ASSERT_EQUAL(rcd_mr_register(table, &attr, &key), fits ? 0 : -EINVAL);
	for (size_t i = 0; fits && i < 2 * COUNT(edges); i++) {
		/* From 0, and from where the region begins. */
		uint64_t addr = edges[i % COUNT(edges)] + (i < COUNT(edges) ? 0 : start);

		/* Further than a pointer goes there is no memory to give. */
		if (addr - start > UINT64_C(1) << 62 && within(addr, 1, start, room))
			continue;
		for (size_t k = 0; k < COUNT(edges); k++) {
			uint64_t len = edges[k];
			uint8_t *got = rcd_mr_translate(table, key, addr, len, &use);

			if (len > 0)
				wrong += within(addr, len, start, room)
					? got != BASE + (addr - start)
					: got != NULL;
		}
	}
	CU_ASSERT_EQUAL(wrong, 0);
	rcd_mr_table_destroy(table);
}

static void
regions_at_the_edges(void)
{
	for (size_t i = 0; i < COUNT(edges); i++)
		for (size_t k = 0; k < COUNT(edges); k++)
			translate_one(edges[i], edges[k]);
}

/* A window is bound to what lies within its region, and to nothing else. */
static void
windows_at_the_edges(void)
{
	static const uint64_t starts[] = { 0, 4096, UINT64_C(1) << 63, UINT64_MAX - HUGE + 1 };
	unsigned int wrong = 0;

	for (size_t i = 0; i < COUNT(starts) * COUNT(edges) * COUNT(edges); i++) {
		struct rcd_mr_table *table = rcd_mr_table_create(2, i);
		struct rcd_mr_attr attr = { .pd = 1,
			.access = RCD_ACCESS_REMOTE_READ | RCD_ACCESS_MW_BIND,
			.start = starts[i % COUNT(starts)],
			.len = HUGE,
			.base = BASE };
		struct rcd_mw_bind bind = { .pd = 1,
			.addr = attr.start + edges[i / COUNT(starts) % COUNT(edges)],
			.len = edges[i / COUNT(starts) / COUNT(edges)],
			.access = RCD_ACCESS_REMOTE_READ };
		bool fits = within(bind.addr, bind.len, attr.start, attr.len);
		struct rcd_key key;

		wrong += rcd_mr_register(table, &attr, &bind.mr) != 0;
		wrong += rcd_mw_alloc(table, RCD_MR_WINDOW_2, 1, &bind.mw) != 0;
		wrong += rcd_mw_bind(table, &bind, &key) != (fits ? 0 : -EINVAL);
		rcd_mr_table_destroy(table);
	}
	CU_ASSERT_EQUAL(wrong, 0);
}

/* Addresses are given whole and aligned, or not at all, and all come back. */
static void
reservations_at_the_edges(void)
{
	size_t before;

	CU_ASSERT_EQUAL_FATAL(rcd_guard_init(), 0);
	before = rcd_guard_used();
	for (size_t i = 0; i < 2 * COUNT(edges); i++) {
		enum rcd_guard_part part = i % 2 ? RCD_GUARD_SHARED : RCD_GUARD_COPIED;
		uint64_t len = edges[i / 2];
		uint8_t *got = rcd_guard_reserve(part, len);
		uintptr_t start;
		size_t room;

		if (got == NULL) {
			CU_ASSERT_TRUE(len == 0 || len > UINT64_C(1) << 40);
			CU_ASSERT_EQUAL(rcd_guard_used(), before);
			continue;
		}
		rcd_guard_window(part, &start, &room);
		CU_ASSERT_TRUE(within((uintptr_t)got, len, start, room));
		CU_ASSERT_EQUAL((uintptr_t)got % HUGE, 0);
		CU_ASSERT_EQUAL(rcd_guard_used() - before, (len + HUGE - 1) / HUGE * HUGE);
		rcd_guard_release(got, len);
		CU_ASSERT_EQUAL(rcd_guard_used(), before);
	}
	rcd_guard_fini();
}

/* Spec: IBTA 9.7.1 PSNs count modulo 2^24, and half of them lie before any one */
static void
sequence_numbers_at_the_edges(void)
{
	static const uint32_t counts[] = { 0, 1, 2, (1u << 23) - 1, 1u << 23, (1u << 23) + 1,
		(1u << 24) - 1, 1u << 24, (1u << 24) + 1, UINT32_MAX - 1, UINT32_MAX };
	const int64_t all = 1 << 24;

	for (size_t i = 0; i < COUNT(counts); i++) {
		for (size_t k = 0; k < COUNT(counts); k++) {
			struct rcd_psn a = rcd_psn(counts[i]);
			int64_t sum = ((int64_t)a.val + counts[k]) % all;
			int64_t rest = (((int64_t)a.val - counts[k]) % all + all) % all;
			struct rcd_psn b = rcd_psn(counts[k]);
			int64_t diff = ((int64_t)b.val - a.val + all) % all;

			CU_ASSERT_EQUAL(rcd_psn_add(a, counts[k]).val, sum);
			CU_ASSERT_EQUAL(rcd_psn_sub(a, counts[k]).val, rest);
			CU_ASSERT_EQUAL(rcd_psn_diff(b, a), diff >= all / 2 ? diff - all : diff);
			CU_ASSERT_EQUAL(rcd_psn_in(b, a, 1), diff == 0);
			CU_ASSERT_EQUAL(rcd_psn_in(b, a, 1u << 23), diff < all / 2);
		}
	}
}

/* As many elements as there may be, each as long as it can say: the sum is still right. */
static void
lengths_of_lists(void)
{
	struct rcd_sge sges[UINT8_MAX];

	for (size_t i = 0; i < COUNT(sges); i++)
		sges[i] = (struct rcd_sge){ .addr = UINT64_MAX, .len = UINT32_MAX };
	CU_ASSERT_EQUAL(rcd_sg_len(sges, 0), 0);
	CU_ASSERT_EQUAL(rcd_sg_len(sges, COUNT(sges)), (uint64_t)UINT8_MAX * UINT32_MAX);
}

/* A range of the application that no mapping covers, or that ends before it begins. */
static void
ranges_of_an_application(void)
{
	static const uintptr_t ends[] = { 0, 1, 4096, UINTPTR_MAX - 4096, UINTPTR_MAX - 1,
		UINTPTR_MAX };

	for (size_t i = 0; i < COUNT(ends) * COUNT(ends); i++) {
		uintptr_t start = ends[i / COUNT(ends)];
		uintptr_t end = ends[i % COUNT(ends)];
		struct rcd_cl_vma *vmas = NULL;

		if (start >= end)
			continue;
		CU_ASSERT_EQUAL(rcd_cl_vmas(start, end, &vmas), -EFAULT);
	}
}

static void
counts_of_requests(void)
{
	static const uint32_t extents[] = { 0, RCD_CTRL_EXTENTS_MAX, RCD_CTRL_EXTENTS_MAX + 1,
		INT32_MAX, UINT32_MAX };
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_MR_REG } };
	size_t len = rcd_ctrl_req_len(RCD_CTRL_MR_REG);

	for (size_t i = 0; i < COUNT(extents); i++) {
		msg.body.mr_reg_req.extent_count = extents[i];
		CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, len, 0),
			extents[i] <= RCD_CTRL_EXTENTS_MAX ? 0 : -EPROTO);
	}
	for (size_t i = 0; i < COUNT(edges); i++) {
		msg.hdr.op = (uint32_t)edges[i];
		if (edges[i] >= RCD_CTRL_OP_COUNT)
			CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, len, 0), -EPROTO);
		msg.hdr.op = RCD_CTRL_MR_NULL;
		CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, edges[i], 0), -EPROTO);
	}
}

/* F1: it looks like the end, and brings a descriptor. */
static void
message_of_no_bytes(void)
{
	struct rcd_ctrl_fds fds = { .count = 1, .fds = { memfd_create("t", MFD_CLOEXEC) } };
	struct rcd_ctrl_fds got;
	struct rcd_ctrl_msg msg;
	int ends[2], lowest;

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], &msg, 0, &fds, 0), 0);
	/* The lowest free number is free again when the message was taken. */
	lowest = dup(ends[0]);
	close(lowest);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], &msg, sizeof(msg), &got, 0), 0);
	CU_ASSERT_EQUAL(got.count, 0);
	CU_ASSERT_EQUAL(dup(ends[0]), lowest);
	close(lowest);
	close(ends[0]);
	close(ends[1]);
	rcd_ctrl_fds_close(&fds);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S1 regions at the edges of 2^64", regions_at_the_edges },
		{ "S1 windows at the edges of 2^64", windows_at_the_edges },
		{ "S7 reservations at the edges of 2^64", reservations_at_the_edges },
		{ "F1 a message of no bytes leaves no descriptor", message_of_no_bytes },
		RCD_TEST(sequence_numbers_at_the_edges),
		RCD_TEST(lengths_of_lists),
		RCD_TEST(ranges_of_an_application),
		RCD_TEST(counts_of_requests),
	};

	return rcd_tap_run("edges", tests, COUNT(tests));
}
