/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a region is made of exactly what its client shared and may write, or not at all, and all
 * that was charged for it goes back. Method: the memory of a context by itself, with the test as
 * its lcore: tables of requests against the error that each gets, and accounts that are compared
 * before and after.
 */
#include "rcd_umem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_budget.h"
#include "rcd_guard.h"
#include "rcd_limits.h"
#include "rcd_tap.h"
#include "rcd_ulost.h"
#include "rcd_ushare.h"

#define PAGE UINT64_C(4096)
#define NONE UINT32_MAX
#define VIA  7

#define READ  RCD_ACCESS_REMOTE_READ
#define WRITE RCD_ACCESS_LOCAL_WRITE

static struct rcd_quota_book book;
static struct rcd_quota_entry entry;
static struct rcd_table pds;
static struct rcd_pd pd;
static struct rcd_mr_table *mrs;
static struct rcd_umem umem;
static uint32_t work;
static uint32_t calls; /**< of the lcore */

static struct rcd_quota quota = { .mrs = 16,
	.shared_bytes = 64 << 20,
	.window_bytes = 256 << 20,
	.mappings = 256,
	.descriptors = 8 };

static int
on_lcore(void *owner, int (*fn)(void *arg), void *arg)
{
	CU_ASSERT_PTR_EQUAL(owner, &umem);
	calls++;
	return fn(arg);
}

/* @param keys_log2  regions that the lcore has keys for */
static void
make(unsigned int keys_log2)
{
	static const struct rcd_umem_ops ops = { .on_lcore = on_lcore };
	static const struct rcd_quota none;
	const struct rcd_umem_conf conf = { .ops = &ops,
		.owner = &umem,
		.mrs = mrs = rcd_mr_table_create(keys_log2, 1),
		.quota = &entry,
		.pds = &pds,
		.work = &work,
		.mems_max = 16 };

	CU_ASSERT_EQUAL_FATAL(rcd_guard_init(), 0);
	rcd_quota_open(&book, &quota, &none, &none);
	CU_ASSERT_EQUAL_FATAL(rcd_quota_join(&book, &entry, 1000), 0);
	pd = (struct rcd_pd){ .users = 0 };
	CU_ASSERT_EQUAL_FATAL(rcd_table_init(&pds, 4), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_table_add(&pds, &pd, &pd.handle), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_umem_init(&umem, &conf), 0);
	work = calls = 0;
}

/* Nothing is charged, mapped or referred to any more. */
static void
end(void)
{
	rcd_umem_close(&umem);
	for (int i = 0; i < RCD_RESOURCE_COUNT; i++)
		if (i != RCD_RESOURCE_MRS)
			CU_ASSERT_EQUAL(entry.used[i], 0);
	CU_ASSERT_EQUAL(rcd_ufile_charged(&umem.files), 0);
	CU_ASSERT_EQUAL(rcd_guard_used(), RCD_MSG_MAX_BYTES);
	rcd_umem_fini(&umem);
	rcd_table_fini(&pds);
	rcd_mr_table_destroy(mrs);
	rcd_quota_leave(&entry);
	rcd_guard_fini();
}

/* A file of so many pages, each filled with its number, shared whole. @return handle */
static uint32_t
share(uint64_t pages, bool writable, int *copy)
{
	const struct rcd_ctrl_mem_req req = { .len = pages * PAGE, .writable = writable };
	int fd = memfd_create("t", 0);
	uint32_t handle = NONE;
	int err;

	for (uint64_t i = 0; i < pages; i++) {
		uint8_t page[4096];

		memset(page, (int)i, sizeof(page));
		CU_ASSERT_EQUAL_FATAL(pwrite(fd, page, sizeof(page), (off_t)(i * PAGE)), 4096);
	}
	if (copy != NULL)
		*copy = dup(fd);
	do
		err = rcd_ushare_add(&umem, VIA, &req, fd, &handle);
	while (err == -EINPROGRESS);
	CU_ASSERT_EQUAL_FATAL(err, 0);
	return handle;
}

/* A request for a region of these pieces of memory. */
static struct rcd_ctrl_mr_req
region(uint32_t access, uint32_t count, const struct rcd_ctrl_extent *extents)
{
	struct rcd_ctrl_mr_req req = { .access = access, .extent_count = count, .start = 1 << 20 };

	for (uint32_t i = 0; i < count; i++) {
		req.extents[i] = extents[i];
		req.len += extents[i].len;
	}
	return req;
}

static uint8_t *
translate(uint32_t key, uint64_t addr, uint64_t len)
{
	const struct rcd_mr_use use = { .pd = pd.handle };

	return rcd_mr_translate(mrs, (struct rcd_key){ key }, addr, len, &use);
}

/* What can't be a region is none, and costs nothing. */
static void
refused(void)
{
	static const struct {
		int err;
		int copies; /**< what is said of bytes that are reached by copies */
		uint32_t access;
		uint32_t pd;
		int64_t len; /**< added to the length, as if the sum were wrong */
		uint32_t count;
		struct rcd_ctrl_extent extents[2];
	} table[] = {
		{ -ENOENT, 0, READ, 3, 0, 1, { { 0, PAGE, 0, 0 } } },
		{ -ENOENT, 0, READ, UINT32_MAX, 0, 1, { { 0, PAGE, 0, 0 } } },
		{ -ENOENT, 0, READ, 0, 0, 1, { { 0, PAGE, 2, 0 } } },
		{ -EINVAL, 0, READ, 0, 1, 1, { { 0, PAGE, 0, 0 } } },
		{ -EINVAL, 0, READ, 0, 0, 1, { { 0, 0, 0, 0 } } },
		{ -EINVAL, 0, READ, 0, 0, 1, { { 1, 2 * PAGE, 0, 0 } } },
		{ -EINVAL, 0, READ, 0, 0, 1, { { UINT64_MAX, 2, 0, 0 } } },
		{ -EINVAL, 0, READ, 0, 0, 1, { { 0, RCD_MR_MAX_BYTES + 1, 0, 0 } } },
		{ -EINVAL, 0, READ | RCD_ACCESS_NULL, 0, 0, 1, { { 0, PAGE, 0, 0 } } },
		/* Not writable: the second of the two. */
		{ -EACCES, 0, WRITE, 0, 0, 1, { { 0, PAGE, 1, 0 } } },
		{ -EACCES, 0, WRITE, 0, 0, 2, { { 0, PAGE, 0, 0 }, { 0, PAGE, 1, 0 } } },
		/* Pieces that do not lie in their pages as the addresses do. */
		{ -EINVAL, 0, READ, 0, 0, 2, { { 0, 100, 0, 0 }, { 0, PAGE, 1, 0 } } },
		/* By copies: as its owner says, and no address beyond the last. */
		{ -EPERM, -EPERM, READ, 0, 0, 1, { { 0, PAGE, RCD_CTRL_MEM_COPIED, 0 } } },
		{ -EOPNOTSUPP, -EOPNOTSUPP, READ, 0, 0, 2,
			{ { 0, PAGE, 0, 0 }, { 0, PAGE, RCD_CTRL_MEM_COPIED, 0 } } },
		{ -EINVAL, 0, READ, 0, 0, 1, { { UINT64_MAX, PAGE, RCD_CTRL_MEM_COPIED, 0 } } },
		/* More addresses than a session may have. */
		{ -ENOMEM, 0, READ, 0, 0, 1, { { 0, 1 << 30, RCD_CTRL_MEM_COPIED, 0 } } },
	};
	uint64_t used[RCD_RESOURCE_COUNT];
	size_t window;

	make(4);
	share(2, true, NULL);
	share(2, false, NULL);
	memcpy(used, entry.used, sizeof(used));
	window = rcd_guard_used();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct rcd_ctrl_mr_req req =
			region(table[i].access, table[i].count, table[i].extents);
		uint32_t key = NONE;

		req.pd = table[i].pd;
		req.len += (uint64_t)table[i].len;
		CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, table[i].copies, &key), table[i].err);
		CU_ASSERT_EQUAL(key, NONE);
		CU_ASSERT_EQUAL(memcmp(used, entry.used, sizeof(used)), 0);
		CU_ASSERT_EQUAL(rcd_guard_used(), window);
	}
	CU_ASSERT_EQUAL(pd.users, 0);
	CU_ASSERT_EQUAL(umem.umr_count, 0);
	CU_ASSERT_EQUAL(calls, 0);
	end();
}

/* Files that are no memory, or no whole pages of one. */
static void
files_refused(void)
{
	static const struct {
		int err;
		uint64_t offset, len;
	} table[] = {
		{ -EINVAL, 0, 0 },
		{ -EINVAL, 0, PAGE + 1 },
		{ -EINVAL, 1, PAGE },
		{ -EINVAL, 0, UINT64_MAX - PAGE + 1 },
		{ -EINVAL, (uint64_t)INT64_MAX + 1, PAGE },
		{ -EINVAL, (uint64_t)INT64_MAX + 1 - PAGE, 2 * PAGE },
		{ -ENOMEM, 0, 512 << 20 },
	};
	struct rcd_ctrl_mem_req req = { .len = PAGE };
	uint32_t handle;
	int ends[2];
	int fd = memfd_create("t", 0);

	make(4);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		req.offset = table[i].offset;
		req.len = table[i].len;
		CU_ASSERT_EQUAL(rcd_ushare_add(&umem, VIA, &req, fd, &handle), table[i].err);
	}
	close(fd);
	CU_ASSERT_EQUAL(pipe(ends), 0);
	req = (struct rcd_ctrl_mem_req){ .len = PAGE };
	CU_ASSERT_EQUAL(rcd_ushare_add(&umem, VIA, &req, ends[0], &handle), -EBADF);
	CU_ASSERT_EQUAL(rcd_ushare_add(&umem, VIA, &req, -1, &handle), -EBADF);
	close(ends[0]);
	close(ends[1]);
	CU_ASSERT_EQUAL(umem.mems.used, 0);
	end();
}

/* Pieces of two files at consecutive addresses, which stay when the handles go. */
static void
pieces(void)
{
	struct rcd_ctrl_extent extents[] = { { PAGE, PAGE, 0, 0 }, { 0, 2 * PAGE, 1, 0 } };
	struct rcd_ctrl_mr_req req = region(WRITE | READ, 2, extents);
	struct rcd_ctrl_mr_query_rep rep;
	const uint8_t *at;
	uint32_t key, same;

	make(4);
	share(2, true, NULL);
	share(2, true, NULL);
	CU_ASSERT_EQUAL_FATAL(rcd_umem_reg(&umem, &req, 0, &key), 0);
	CU_ASSERT_EQUAL(pd.users, 1);
	at = translate(key, 1 << 20, 3 * PAGE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	CU_ASSERT(at[0] == 1 && at[PAGE - 1] == 1 && at[PAGE] == 0 && at[2 * PAGE] == 1);
	CU_ASSERT_PTR_NULL(translate(key, (1 << 20) - 1, 1));
	CU_ASSERT_PTR_NULL(translate(key, 1 << 20, 3 * PAGE + 1));
	CU_ASSERT_EQUAL(rcd_umem_query(&umem, key >> 8, &rep), 0);
	CU_ASSERT(rep.len == 3 * PAGE && rep.key == key && rep.access == (WRITE | READ));
	CU_ASSERT_EQUAL(rcd_ushare_del(&umem, 0), 0);
	CU_ASSERT_EQUAL(rcd_ushare_del(&umem, 0), -ENOENT);
	CU_ASSERT_EQUAL(translate(key, 1 << 20, 1)[0], 1);
	/* Another region in its place; one that can't be leaves it as it is. */
	req = region(READ, 1, &extents[0]);
	req.key = key;
	CU_ASSERT_EQUAL(rcd_umem_rereg(&umem, &req, 0, &same), -ENOENT);
	CU_ASSERT_EQUAL(translate(key, 1 << 20, 3 * PAGE)[PAGE], 0);
	req = region(READ, 1, &extents[1]);
	req.key = key;
	CU_ASSERT_EQUAL(rcd_umem_rereg(&umem, &req, 0, &same), 0);
	CU_ASSERT_EQUAL(same, key);
	CU_ASSERT_PTR_NULL(translate(key, 1 << 20, 3 * PAGE));
	CU_ASSERT_EQUAL(translate(key, 1 << 20, 2 * PAGE)[PAGE], 1);
	CU_ASSERT(umem.umr_count == 1 && pd.users == 1 && entry.used[RCD_RESOURCE_MRS] == 1);
	CU_ASSERT_EQUAL(rcd_umem_dereg(&umem, key), 0);
	CU_ASSERT_EQUAL(rcd_umem_dereg(&umem, key), -ENOENT);
	CU_ASSERT_EQUAL(rcd_umem_query(&umem, key >> 8, &rep), -ENOENT);
	CU_ASSERT(umem.umr_count == 0 && pd.users == 0 && entry.used[RCD_RESOURCE_MRS] == 0);
	end();
}

/* An lcore without a free key: the region that was made goes, and so does its charge. */
static void
keys_run_out(void)
{
	struct rcd_ctrl_extent extent = { 0, PAGE, 0, 0 };
	struct rcd_ctrl_mr_req req = region(READ, 1, &extent);
	const struct rcd_ctrl_mw_req window = { .type = 2 };
	const struct rcd_ctrl_mw_req unknown = { .type = 3 };
	uint32_t keys[2], key;

	make(1);
	share(1, true, NULL);
	CU_ASSERT_EQUAL(rcd_umem_mw_alloc(&umem, &unknown, &key), -EINVAL);
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, 0, &keys[0]), 0);
	CU_ASSERT_EQUAL(rcd_umem_mw_alloc(&umem, &window, &keys[1]), 0);
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, 0, &key), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_umem_null(&umem, 0, &key), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_umem_mw_alloc(&umem, &window, &key), -ENOMEM);
	CU_ASSERT_EQUAL(entry.used[RCD_RESOURCE_MRS], 2);
	CU_ASSERT(pd.users == 1 && umem.umr_count == 1 && umem.mw_count == 1);
	CU_ASSERT_EQUAL(rcd_umem_mw_free(&umem, keys[0]), -ENOENT);
	CU_ASSERT_EQUAL(rcd_umem_mw_free(&umem, keys[1]), 0);
	CU_ASSERT_EQUAL(entry.used[RCD_RESOURCE_MRS], 1);
	CU_ASSERT_EQUAL(rcd_umem_null(&umem, 0, &key), 0);
	CU_ASSERT_EQUAL(umem.copied.count, 1);
	CU_ASSERT_EQUAL(rcd_umem_dereg(&umem, key), 0);
	CU_ASSERT_EQUAL(umem.copied.count, 0);
	end();
}

/* The list that an lcore searches is sorted by address, with those that are reached by copies. */
static void
copied_list(void)
{
	struct rcd_ctrl_extent extents[] = { { 0, PAGE, 0, 0 },
		{ 1 << 30, PAGE, RCD_CTRL_MEM_COPIED, 0 } };
	struct rcd_ctrl_mr_req req = region(READ, 2, extents);
	uint32_t keys[12];

	make(4);
	share(1, true, NULL);
	for (uint32_t i = 0; i < 12; i++)
		CU_ASSERT_EQUAL_FATAL(rcd_umem_reg(&umem, &req, 0, &keys[i]), 0);
	for (uint32_t i = 0; i < 12; i += 3)
		CU_ASSERT_EQUAL(rcd_umem_dereg(&umem, keys[i]), 0);
	CU_ASSERT_EQUAL_FATAL(umem.copied.count, 8);
	for (uint32_t i = 0; i < 8; i++) {
		uintptr_t base = (uintptr_t)umem.copied.umrs[i]->base;

		CU_ASSERT(i == 0 || base > (uintptr_t)umem.copied.umrs[i - 1]->base);
		CU_ASSERT_EQUAL(rcd_ucopied_place(&umem.copied, base), i + 1);
		CU_ASSERT_EQUAL(rcd_ucopied_place(&umem.copied, base - 1), i);
		CU_ASSERT_EQUAL(umem.copied.umrs[i]->copies[0].addr, 1 << 30);
		CU_ASSERT_EQUAL(umem.copied.umrs[i]->copies[0].start, PAGE);
	}
	end();
}

/* A region of all addresses takes none of the engine's, and there are 254 at a time. */
static void
all_addresses(void)
{
	const struct rcd_ctrl_extent extent = { 0, RCD_MR_ALL_BYTES, RCD_CTRL_MEM_COPIED, 0 };
	struct rcd_ctrl_mr_req req = region(READ, 1, &extent);
	uint64_t last = RCD_MR_ALL_BYTES - 1;
	uint32_t keys[RCD_MR_ALL_MAX], key = NONE;
	size_t window;

	quota.mrs = 2 * RCD_MR_ALL_MAX;
	make(9);
	window = rcd_guard_used();
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, 0, &key), -EINVAL);
	req.start = 0;
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, -EPERM, &key), -EPERM);
	for (uint32_t i = 0; i < RCD_MR_ALL_MAX; i++) {
		CU_ASSERT_EQUAL_FATAL(rcd_umem_reg(&umem, &req, 0, &keys[i]), 0);
		CU_ASSERT(rcd_mr_is_foreign(mrs, translate(keys[i], 0, 1)));
		CU_ASSERT(rcd_mr_is_foreign(mrs, translate(keys[i], last, 1)));
		CU_ASSERT_PTR_NULL(translate(keys[i], last, 2));
		CU_ASSERT_PTR_NULL(translate(keys[i], UINT64_MAX, 1));
	}
	for (uint32_t i = 0; i < RCD_MR_ALL_MAX; i++) {
		uintptr_t base = (uintptr_t)translate(keys[i], last, 1);

		/* None of them is an address, and each is found again by it. */
		CU_ASSERT(base > RCD_MR_ALL_BYTES && base < (uintptr_t)0 - RCD_MR_ALL_BYTES);
		CU_ASSERT_EQUAL(
			umem.copied.umrs[rcd_ucopied_place(&umem.copied, base) - 1]->key.val,
			keys[i]);
	}
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, 0, &key), -ENOMEM);
	CU_ASSERT_EQUAL(rcd_guard_used(), window);
	CU_ASSERT_EQUAL(entry.used[RCD_RESOURCE_WINDOW] + entry.used[RCD_RESOURCE_MAPPINGS], 0);
	CU_ASSERT_EQUAL(rcd_umem_dereg(&umem, keys[100]), 0);
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, 0, &keys[100]), 0);
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &req, 0, &key), -ENOMEM);
	quota.mrs = 16;
	end();
}

/* Pages are entered a share in each round; a request that ends has nothing of it. */
static void
entered_in_rounds(void)
{
	const uint64_t pages = 2 * RCD_ROUND_SLICE + 1;
	const struct rcd_ctrl_mem_req req = { .len = pages * PAGE };
	uint32_t handle;

	make(4);
	for (int again = 0; again < 2; again++) {
		int fd = memfd_create("t", 0);

		CU_ASSERT_EQUAL(ftruncate(fd, (off_t)(pages * PAGE)), 0);
		CU_ASSERT_EQUAL(pwrite(fd, "x", 1, 0), 1);
		work = 0;
		CU_ASSERT_EQUAL(rcd_ushare_add(&umem, VIA, &req, fd, &handle), -EINPROGRESS);
		CU_ASSERT_EQUAL(work, RCD_ROUND_SLICE);
		rcd_ushare_settle(&umem, VIA + 1);
		CU_ASSERT_EQUAL(rcd_ushare_add(&umem, VIA, &req, -1, &handle), -EINPROGRESS);
		if (again == 0) {
			CU_ASSERT_EQUAL(rcd_ushare_add(&umem, VIA, &req, -1, &handle), 0);
			CU_ASSERT_EQUAL(work, pages);
			CU_ASSERT_EQUAL(rcd_ushare_del(&umem, handle), 0);
		} else {
			rcd_ushare_settle(&umem, VIA);
		}
		CU_ASSERT_EQUAL(umem.mems.used, 0);
		CU_ASSERT_EQUAL(entry.used[RCD_RESOURCE_DESCRIPTORS], 0);
	}
	end();
}

/* What its client takes away ends, and nothing beside it. */
static void
taken_away(void)
{
	struct rcd_ctrl_extent extents[] = { { 0, PAGE, 0, 0 }, { 0, PAGE, 1, 0 } };
	struct rcd_ctrl_mr_req first = region(READ, 1, &extents[0]);
	struct rcd_ctrl_mr_req second = region(READ, 1, &extents[1]);
	struct rcd_ctrl_mr_req both = region(READ, 2, extents);
	uint32_t keys[3], key;
	uintptr_t addr;
	int fd;

	make(4);
	share(1, true, &fd);
	share(1, true, NULL);
	CU_ASSERT_EQUAL_FATAL(rcd_umem_reg(&umem, &first, 0, &keys[0]), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_umem_reg(&umem, &second, 0, &keys[1]), 0);
	CU_ASSERT_EQUAL_FATAL(rcd_umem_reg(&umem, &both, 0, &keys[2]), 0);
	CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
	close(fd);
	CU_ASSERT_EQUAL(*(volatile uint8_t *)translate(keys[0], 1 << 20, 1), 0);
	CU_ASSERT_FATAL(rcd_guard_fault(&addr));
	calls = 0;
	CU_ASSERT(rcd_ulost_cut(&umem, addr));
	CU_ASSERT_EQUAL(calls, 1);
	CU_ASSERT_PTR_NULL(translate(keys[0], 1 << 20, 1));
	CU_ASSERT_PTR_NULL(translate(keys[2], 1 << 20, 1));
	CU_ASSERT_PTR_NOT_NULL(translate(keys[1], 1 << 20, 1));
	CU_ASSERT_EQUAL(rcd_umem_reg(&umem, &first, 0, &key), -EFAULT);
	/* An address that is nobody's, and one that was given back before anybody looked. */
	CU_ASSERT_FALSE(rcd_ulost_cut(&umem, (uintptr_t)&umem));
	CU_ASSERT_FALSE(umem.lost);
	share(1, true, &fd);
	CU_ASSERT_EQUAL(ftruncate(fd, 0), 0);
	close(fd);
	CU_ASSERT_EQUAL(*(volatile uint8_t *)((struct rcd_mem *)umem.mems.slots[2])->base, 0);
	CU_ASSERT_EQUAL(rcd_ushare_del(&umem, 2), 0);
	CU_ASSERT(umem.lost);
	CU_ASSERT_FALSE(rcd_guard_fault(&addr));
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(refused),
		RCD_TEST(files_refused),
		RCD_TEST(pieces),
		RCD_TEST(keys_run_out),
		RCD_TEST(copied_list),
		RCD_TEST(all_addresses),
		RCD_TEST(entered_in_rounds),
		RCD_TEST(taken_away),
	};

	return rcd_tap_run("umem", tests, sizeof(tests) / sizeof(tests[0]));
}
