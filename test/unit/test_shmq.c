/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: work requests come out of slots as they were put in, never more of them than there is room
 * for; doorbells are never lost between two threads. Method: round trips of all forms, slots of
 * random bytes, and a poster against a taker (which ThreadSanitizer watches in its own build).
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_shm.h"
#include "rcd_tap.h"
#include "rcd_wqe.h"

static uint8_t slot[RCD_SGE_MAX * 16 + RCD_INLINE_MAX + 64];
static struct rcd_sge sges[RCD_SGE_MAX];
static uint8_t inline_data[RCD_INLINE_MAX];

static struct rcd_send_wr
room(void)
{
	return (struct rcd_send_wr){ .sges = sges,
		.sge_max = RCD_SGE_MAX,
		.inline_data = inline_data,
		.inline_max = RCD_INLINE_MAX };
}

static void
remote_round_trip(void)
{
	struct rcd_sge in[2] = { { 0x1000, 10, { 7 } }, { 0x2000, 20, { 8 } } };
	struct rcd_send_wr wr = { .wr_id = 0x123456789abcdef0,
		.opcode = RCD_WR_COMPARE_SWAP,
		.flags = RCD_SEND_SIGNALED | RCD_SEND_FENCE,
		.sge_count = 2,
		.imm = 0xdeadbeef,
		.sges = in,
		.remote = { .va = UINT64_MAX - 7,
			.rkey = { 0xabcdef01 },
			.compare_or_add = 1,
			.swap = 2 } };
	struct rcd_send_wr out = room();

	rcd_sq_wqe_put(slot, &wr, RCD_WQE_REMOTE);
	rcd_sq_wqe_get(slot, false, &out);
	CU_ASSERT_EQUAL(out.wr_id, wr.wr_id);
	CU_ASSERT_EQUAL(out.opcode, wr.opcode);
	CU_ASSERT_EQUAL(out.flags, wr.flags);
	CU_ASSERT_EQUAL(out.imm, wr.imm);
	CU_ASSERT_EQUAL(out.sge_count, 2);
	CU_ASSERT_EQUAL(memcmp(sges, in, sizeof(in)), 0);
	CU_ASSERT_EQUAL(out.remote.va, wr.remote.va);
	CU_ASSERT_EQUAL(out.remote.rkey.val, wr.remote.rkey.val);
	CU_ASSERT_EQUAL(out.remote.compare_or_add, 1);
	CU_ASSERT_EQUAL(out.remote.swap, 2);
}

static void
datagram_and_bind_round_trips(void)
{
	struct rcd_send_wr wr = { .opcode = RCD_WR_SEND,
		.flags = RCD_SEND_INLINE,
		.inline_len = 5,
		.inline_data = (uint8_t[]){ 1, 2, 3, 4, 5 },
		.ud = { .ah = 9, .qpn = { 0xfffffe }, .qkey = { 0x80010000 } } };
	struct rcd_send_wr bind = { .opcode = RCD_WR_BIND_MW,
		.bind = { .mw = { 1 },
			.new_rkey = { 2 },
			.mr = { 3 },
			.addr = 4,
			.len = 5,
			.access = 6 } };
	struct rcd_send_wr out = room();

	rcd_sq_wqe_put(slot, &wr, RCD_WQE_DATAGRAM);
	rcd_sq_wqe_get(slot, true, &out);
	CU_ASSERT_EQUAL(out.inline_len, 5);
	CU_ASSERT_EQUAL(memcmp(inline_data, wr.inline_data, 5), 0);
	CU_ASSERT_EQUAL(out.ud.ah, 9);
	CU_ASSERT_EQUAL(out.ud.qpn.val, 0xfffffe);
	CU_ASSERT_EQUAL(out.ud.qkey.val, 0x80010000);
	rcd_sq_wqe_put(slot, &bind, RCD_WQE_BIND);
	rcd_sq_wqe_get(slot, false, &out);
	CU_ASSERT_EQUAL(out.bind.mw.val, 1);
	CU_ASSERT_EQUAL(out.bind.new_rkey.val, 2);
	CU_ASSERT_EQUAL(out.bind.mr.val, 3);
	CU_ASSERT_EQUAL(out.bind.addr, 4);
	CU_ASSERT_EQUAL(out.bind.len, 5);
	CU_ASSERT_EQUAL(out.bind.access, 6);
}

static void
flush_and_atomic_write_round_trips(void)
{
	struct rcd_send_wr flush = { .opcode = RCD_WR_FLUSH,
		.flush = { .va = UINT64_MAX,
			.rkey = { 0xabcdef01 },
			.placement = 0xfe,
			.selectivity = 0xfd,
			.len = UINT64_MAX - 1 } };
	struct rcd_send_wr write = { .opcode = RCD_WR_ATOMIC_WRITE,
		.atomic_write = {
			.va = 8, .rkey = { 0xabcdef02 }, .bytes = { 1, 2, 3, 4, 5, 6, 7, 8 } } };
	struct rcd_send_wr out = room();

	rcd_sq_wqe_put(slot, &flush, rcd_wqe_form_of(false, flush.opcode));
	rcd_sq_wqe_get(slot, false, &out);
	CU_ASSERT_EQUAL(out.flush.va, UINT64_MAX);
	CU_ASSERT_EQUAL(out.flush.rkey.val, 0xabcdef01);
	CU_ASSERT_EQUAL(out.flush.placement, 0xfe);
	CU_ASSERT_EQUAL(out.flush.selectivity, 0xfd);
	CU_ASSERT_EQUAL(out.flush.len, UINT64_MAX - 1);
	rcd_sq_wqe_put(slot, &write, rcd_wqe_form_of(false, write.opcode));
	rcd_sq_wqe_get(slot, false, &out);
	CU_ASSERT_EQUAL(out.atomic_write.va, 8);
	CU_ASSERT_EQUAL(out.atomic_write.rkey.val, 0xabcdef02);
	CU_ASSERT_EQUAL(memcmp(out.atomic_write.bytes, write.atomic_write.bytes, 8), 0);
}

/* Whatever a client writes, no more is copied than there is room for. */
static void
hostile_slots(void)
{
	srand(2);
	for (int round = 0; round < 20000; round++) {
		struct rcd_sge few[3];
		uint8_t bytes[17];
		struct rcd_send_wr wr = {
			.sges = few, .sge_max = 2, .inline_data = bytes, .inline_max = 16
		};
		struct rcd_recv_wr recv = { .sges = few, .sge_max = 2 };

		for (size_t i = 0; i < sizeof(slot); i++)
			slot[i] = (uint8_t)rand();
		memset(&few[2], 0x55, sizeof(few[2]));
		bytes[16] = 0x55;
		rcd_sq_wqe_get(slot, round % 2, &wr);
		rcd_rq_wqe_get(slot, &recv);
		CU_ASSERT(bytes[16] == 0x55 && few[2].len == 0x55555555);
	}
}

static void
strides(void)
{
	CU_ASSERT_EQUAL(rcd_sq_stride(1, 0), 64);
	CU_ASSERT_EQUAL(rcd_sq_stride(1, 16), 64);
	CU_ASSERT_EQUAL(rcd_sq_stride(1, 17), 128);
	CU_ASSERT_EQUAL(rcd_sq_stride(32, 512), 576);
	CU_ASSERT_EQUAL(rcd_rq_stride(1), 32);
	CU_ASSERT_EQUAL(rcd_rq_stride(2), 64);
}

#define POSTS 200000
#define QPS   300

struct posts {
	struct rcd_shm_hdr hdr;
	struct rcd_shm_wq wqs[QPS];
	uint32_t data[QPS]; /**< written before the index */
	uint32_t torn;
};

static void *
poster(void *arg)
{
	struct posts *posts = arg;

	for (uint32_t i = 0; i < POSTS; i++) {
		uint32_t qp = i * 7 % QPS;
		uint32_t next = posts->wqs[qp].producer + 1;

		__atomic_store_n(&posts->data[qp], next, __ATOMIC_RELAXED);
		rcd_shm_store(&posts->wqs[qp].producer, next);
		rcd_db_ring(&posts->hdr, qp * 50);
	}
	return NULL;
}

/* Takes doorbells until all posts were seen: a lost one would leave it waiting. */
static void
doorbells_are_not_lost(void)
{
	struct posts *posts = aligned_alloc(64, (sizeof(*posts) + 63) / 64 * 64);
	uint32_t seen[QPS] = { 0 };
	uint64_t total = 0;
	pthread_t thread;
	uint32_t idle = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(posts);
	memset(posts, 0, sizeof(*posts));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, poster, posts), 0);
	while (total < POSTS && idle < 20000000) {
		uint64_t summary = rcd_db_any(&posts->hdr) ? rcd_db_take_summary(&posts->hdr) : 0;

		if (summary == 0 && ++idle % 64 == 0)
			sched_yield();
		for (; summary != 0; summary &= summary - 1) {
			uint32_t first = (uint32_t)__builtin_ctzll(summary) * RCD_DB_PER_BIT;

			for (uint32_t word = first; word < first + RCD_DB_PER_BIT; word++) {
				uint64_t bits = rcd_db_take_word(&posts->hdr, word);

				for (; bits != 0; bits &= bits - 1) {
					uint32_t qp =
						(word * 64 + (uint32_t)__builtin_ctzll(bits)) / 50;
					uint32_t now = rcd_shm_load(&posts->wqs[qp].producer);
					uint32_t data =
						__atomic_load_n(&posts->data[qp], __ATOMIC_RELAXED);

					posts->torn += (int32_t)(data - now) < 0;
					total += now - seen[qp];
					seen[qp] = now;
				}
			}
		}
	}
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(total, POSTS);
	CU_ASSERT_EQUAL(posts->torn, 0);
	free(posts);
}

/*
 * Of a ring as an engine leaves it that is killed behind any store of these, and behind the one of
 * the completions: as much is reported as has completions.
 */
static void
kill_everywhere(struct rcd_shm_wq ring, uint32_t done, struct rcd_shm_reach cq)
{
	struct rcd_shm_wq after = ring;
	uint32_t before = ring.consumer;

	rcd_shm_wq_done(&after, before, done, &cq);
	CU_ASSERT_EQUAL(after.consumer, done);
	CU_ASSERT_EQUAL(rcd_shm_wq_reported(&ring, cq.published, cq.mask), before);
	ring.reported = after.reported;
	CU_ASSERT_EQUAL(rcd_shm_wq_reported(&ring, cq.published, cq.mask), before);
	ring.covered_at = after.covered_at;
	CU_ASSERT_EQUAL(rcd_shm_wq_reported(&ring, cq.published, cq.mask),
		cq.published == cq.producer ? ring.consumer : before);
	ring.consumer = after.consumer;
	CU_ASSERT_EQUAL(rcd_shm_wq_reported(&ring, cq.published, cq.mask),
		cq.published == cq.producer ? done : before);
	CU_ASSERT_EQUAL(rcd_shm_wq_reported(&ring, cq.producer, cq.mask), done);
}

/* Indices that wrap, requests without completions, full queues, and one that others have moved. */
static void
killed_between_stores(void)
{
	static const uint32_t starts[] = { 0, 5, UINT32_MAX - 2, UINT32_C(1) << 31 };

	for (uint32_t i = 0; i < 4; i++) {
		for (uint32_t j = 0; j < 4; j++) {
			for (uint32_t fresh = 0; fresh <= 8; fresh++) {
				struct rcd_shm_wq ring = { .consumer = starts[i],
					.reported = starts[i] - 1,
					.covered_at = starts[j] - fresh };

				kill_everywhere(ring, starts[i] + 8,
					(struct rcd_shm_reach){ starts[j], starts[j] + fresh, 7 });
				ring.covered_at = starts[j] + (UINT32_C(1) << 31);
				kill_everywhere(ring, starts[i] + 8,
					(struct rcd_shm_reach){ starts[j], starts[j] + fresh, 7 });
			}
		}
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(remote_round_trip),
		RCD_TEST(datagram_and_bind_round_trips),
		RCD_TEST(flush_and_atomic_write_round_trips),
		RCD_TEST(hostile_slots),
		RCD_TEST(strides),
		RCD_TEST(doorbells_are_not_lost),
		RCD_TEST(killed_between_stores),
	};

	return rcd_tap_run("shmq", tests, sizeof(tests) / sizeof(tests[0]));
}
