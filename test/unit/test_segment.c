/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: parts of a segment never lie over each other, are zero when they are taken, are charged
 * while they are, and take no longer than a round's share at once. Method: a segment by itself,
 * without an engine or a client: tables of parts, and random ones beside a map of pages.
 */
#include "rcd_segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_budget.h"
#include "rcd_guard.h"
#include "rcd_limits.h"
#include "rcd_tap.h"

#define PAGE  UINT64_C(4096)
#define PAGES 2048 /**< of the segment */
#define SLICE (RCD_ROUND_SLICE * PAGE)

enum {
	OPENER = 7,
	GUEST = 8
};

static struct rcd_quota_book book;
static struct rcd_quota_entry entry;
static struct rcd_segment segment;
static uint32_t work;

/* @param bytes  limit of a session for queues */
static void
make(uint64_t bytes)
{
	static struct rcd_quota quota, none;
	const struct rcd_segment_conf conf = {
		.quota = &quota, .generation = 42, .entry = &entry, .work = &work
	};

	quota = (struct rcd_quota){ .queue_bytes = bytes, .qps = 4, .cqs = 4, .srqs = 4 };
	CU_ASSERT_EQUAL_FATAL(rcd_guard_init(), 0);
	rcd_quota_open(&book, &quota, &none, &none);
	CU_ASSERT_EQUAL_FATAL(rcd_quota_join(&book, &entry, 1000), 0);
	segment = (struct rcd_segment){ .fd = -1, .huge_fd = -1 };
	work = 0;
	CU_ASSERT_EQUAL_FATAL(rcd_segment_make(&segment, &conf), 0);
}

static void
end(void)
{
	rcd_segment_end(&segment, true);
	rcd_quota_leave(&entry);
	CU_ASSERT_EQUAL(rcd_guard_used(), RCD_MSG_MAX_BYTES);
	rcd_guard_fini();
}

static uint64_t
charged(void)
{
	return entry.used[RCD_RESOURCE_QUEUE_BYTES];
}

static uint64_t
alloc(uint64_t bytes)
{
	uint64_t offset = UINT64_MAX;
	int err;

	do
		err = rcd_segment_alloc(&segment, OPENER, bytes, &offset);
	while (err == -EINPROGRESS);
	return err == 0 ? offset : UINT64_MAX;
}

/* What the client reads in its first page. */
static void
header(void)
{
	make(PAGES * PAGE);
	CU_ASSERT_EQUAL(segment.bytes, PAGES * PAGE);
	CU_ASSERT_EQUAL(segment.shm->magic, RCD_SHM_MAGIC);
	CU_ASSERT_EQUAL(segment.shm->abi, RCD_SHM_ABI);
	CU_ASSERT_EQUAL(segment.shm->size, PAGES * PAGE);
	CU_ASSERT_EQUAL(segment.shm->generation, 42);
	CU_ASSERT_EQUAL(segment.shm->state, RCD_SHM_LIVE);
	CU_ASSERT(rcd_segment_has(&segment, (uintptr_t)segment.shm));
	CU_ASSERT(rcd_segment_has(&segment, (uintptr_t)segment.shm + PAGES * PAGE - 1));
	CU_ASSERT_FALSE(rcd_segment_has(&segment, (uintptr_t)segment.shm + PAGES * PAGE));
	CU_ASSERT_FALSE(rcd_segment_has(&segment, (uintptr_t)segment.shm - 1));
	end();
	CU_ASSERT_FALSE(rcd_segment_has(&segment, 0));
}

/* Parts in pages, the first place that is large enough, and quotas in pages too. */
static void
places(void)
{
	static const struct {
		uint64_t take;  /**< bytes; 0: give back instead */
		uint64_t at;    /**< page that it lies in; UINT64_MAX: nowhere */
		uint64_t bytes; /**< that go back */
		uint64_t used;  /**< pages that are charged behind it */
	} table[] = {
		{ 1, 1, 0, 1 },
		{ PAGE, 2, 0, 2 },
		{ PAGE + 1, 3, 0, 4 },
		{ 3 * PAGE, 5, 0, 7 },
		{ 0, 2, PAGE, 6 },
		{ 2 * PAGE, 8, 0, 8 },
		{ 0, 3, PAGE + 1, 6 },
		{ 3 * PAGE, 2, 0, 9 },
		{ 503 * PAGE, UINT64_MAX, 0, 9 },
		{ 500 * PAGE, 10, 0, 509 },
		{ UINT64_MAX - PAGE, UINT64_MAX, 0, 509 },
		{ 4 * PAGE, UINT64_MAX, 0, 509 },
		{ 2 * PAGE, 510, 0, 511 },
		{ 1, UINT64_MAX, 0, 511 },
		{ 0, 1, 1, 510 },
		{ 1, 1, 0, 511 },
	};

	make(512 * PAGE);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t wanted = table[i].at == UINT64_MAX ? UINT64_MAX : table[i].at * PAGE;

		if (table[i].take > 0) {
			CU_ASSERT_EQUAL(alloc(table[i].take), wanted);
		} else {
			rcd_segment_free(&segment, wanted, table[i].bytes);
		}
		CU_ASSERT_EQUAL(charged(), table[i].used * PAGE);
	}
	end();
}

/* One round clears no more than its share; another connection's part comes behind. */
static void
rounds(void)
{
	uint64_t offset;

	make(PAGES * PAGE);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(
			rcd_segment_alloc(&segment, OPENER, 4 * SLICE, &offset), -EINPROGRESS);
		CU_ASSERT_EQUAL(work, (uint32_t)(i + 1) * RCD_ROUND_SLICE);
		CU_ASSERT_EQUAL(rcd_segment_alloc(&segment, GUEST, PAGE, &offset), -EINPROGRESS);
	}
	CU_ASSERT_EQUAL(rcd_segment_alloc(&segment, OPENER, 4 * SLICE, &offset), 0);
	CU_ASSERT_EQUAL(offset, PAGE);
	CU_ASSERT_EQUAL(rcd_segment_alloc(&segment, GUEST, PAGE, &offset), 0);
	CU_ASSERT_EQUAL(offset, PAGE + 4 * SLICE);
	/* One whose request ends meanwhile has nothing of it, and others are not asked. */
	CU_ASSERT_EQUAL(rcd_segment_alloc(&segment, OPENER, 2 * SLICE, &offset), -EINPROGRESS);
	rcd_segment_settle(&segment, GUEST);
	CU_ASSERT_EQUAL(charged(), 6 * SLICE + PAGE);
	rcd_segment_settle(&segment, OPENER);
	CU_ASSERT_EQUAL(charged(), 4 * SLICE + PAGE);
	/* Neither has one that asks for something else instead. */
	CU_ASSERT_EQUAL(rcd_segment_alloc(&segment, OPENER, 2 * SLICE, &offset), -EINPROGRESS);
	CU_ASSERT_EQUAL(rcd_segment_alloc(&segment, OPENER, PAGE, &offset), 0);
	CU_ASSERT_EQUAL(offset, 2 * PAGE + 4 * SLICE);
	CU_ASSERT_EQUAL(charged(), 4 * SLICE + 2 * PAGE);
	end();
}

/* The part is zero, and nobody else's. */
static bool
is_new(uint8_t *part, uint64_t bytes)
{
	for (uint64_t i = 0; i < bytes; i += 64)
		if (part[i] != 0)
			return false;
	memset(part, 0xa5, bytes);
	return true;
}

/* A client may write where nothing is yet. */
static void
scribbled(void)
{
	make(PAGES * PAGE);
	for (uint64_t page = 1; page < 4; page++)
		CU_ASSERT_EQUAL(pwrite(segment.fd, "x", 1, (off_t)(page * PAGE + 64)), 1);
	CU_ASSERT_EQUAL_FATAL(alloc(3 * PAGE), PAGE);
	CU_ASSERT(is_new((uint8_t *)segment.shm + PAGE, 3 * PAGE));
	end();
}

static void
random_parts(void)
{
	struct {
		uint64_t offset, bytes;
	} parts[12];
	uint32_t count = 0;
	uint64_t sum = 0;

	make(PAGES * PAGE);
	srand(5);
	for (int i = 0; i < 2000; i++) {
		uint64_t bytes = PAGE * (1 + (uint64_t)rand() % 60);

		if (count < 12 && rand() % 2 == 0) {
			uint64_t offset = alloc(bytes);

			CU_ASSERT_FATAL(offset >= PAGE && offset + bytes <= PAGES * PAGE);
			CU_ASSERT_FATAL(is_new((uint8_t *)segment.shm + offset, bytes));
			parts[count].offset = offset;
			parts[count++].bytes = bytes;
			sum += bytes;
		} else if (count > 0) {
			uint32_t which = (uint32_t)rand() % count;

			rcd_segment_free(&segment, parts[which].offset, parts[which].bytes);
			sum -= parts[which].bytes;
			parts[which] = parts[--count];
		}
		CU_ASSERT_FATAL(charged() == sum);
	}
	while (count-- > 0)
		rcd_segment_free(&segment, parts[count].offset, parts[count].bytes);
	CU_ASSERT_EQUAL(segment.small_free.count, 1);
	CU_ASSERT_EQUAL(rcd_ranges_sum(&segment.small_free), (PAGES - 1) * PAGE);
	end();
}

/* A client that keeps the file learns that the engine left, and keeps none of its pages. */
static void
ends(void)
{
	struct rcd_shm_hdr hdr;
	struct stat about;
	int fd;

	make(PAGES * PAGE);
	fd = dup(segment.fd);
	CU_ASSERT(alloc(64 * PAGE) != UINT64_MAX);
	rcd_segment_end(&segment, false);
	CU_ASSERT_EQUAL(pread(fd, &hdr, sizeof(hdr), 0), (ssize_t)sizeof(hdr));
	CU_ASSERT_EQUAL(hdr.state, RCD_SHM_GONE);
	CU_ASSERT(fstat(fd, &about) == 0 && about.st_blocks > 0);
	close(fd);
	end();
	make(PAGES * PAGE);
	fd = dup(segment.fd);
	CU_ASSERT(alloc(64 * PAGE) != UINT64_MAX);
	rcd_segment_end(&segment, true);
	CU_ASSERT(fstat(fd, &about) == 0 && about.st_blocks == 0);
	close(fd);
	/* Of what is not there nothing ends. */
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(header),
		RCD_TEST(places),
		RCD_TEST(rounds),
		RCD_TEST(scribbled),
		RCD_TEST(random_parts),
		RCD_TEST(ends),
	};

	return rcd_tap_run("segment", tests, sizeof(tests) / sizeof(tests[0]));
}
