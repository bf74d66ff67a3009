/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a region on demand follows what its program maps: data is where the program finds it, and
 * where nothing is mapped, or not for this, there is one clear error and nothing else. Method: the
 * drop-in library on an embedded wire; one side's memory is mapped, moved and taken away between
 * the other's operations, and bytes are compared.
 */
#include "demand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* From this side's memory. @return the status of the completion */
static int
sends(const uint8_t *from, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)from, 100, lkey };

	return side_operate(
		here.qp, IBV_WR_RDMA_WRITE, sge, (uintptr_t)there.memory, there.mr->rkey);
}

static void
follows_what_is_mapped(void)
{
	static const uint8_t zeros[PAGE];
	uint8_t *away;

	setup();
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at, mr->rkey);
	CU_ASSERT_EQUAL(sends(at, mr->lkey), IBV_WC_LOC_PROT_ERR);
	begin_anew();
	map(at + PAGE, LEN - PAGE, PROT_READ | PROT_WRITE);
	is_written(at + PAGE, at + PAGE, 5000, mr->rkey);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at + PAGE - 4, mr->rkey);
	MUST(madvise(at + PAGE, LEN - PAGE, MADV_DONTNEED) == 0);
	is_read(at + PAGE, zeros, PAGE, mr->rkey);
	is_written(at + PAGE, at + PAGE, 100, mr->rkey);
	CU_ASSERT_EQUAL(sends(at + PAGE, mr->lkey), IBV_WC_SUCCESS);
	/* It moves away, and something else comes. */
	away = map(NULL, PAGE, PROT_NONE);
	MUST(mremap(at + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, away) == away);
	map(at + PAGE, PAGE, PROT_READ | PROT_WRITE);
	is_read(at + PAGE, zeros, 100, mr->rkey);
	MUST(mremap(away, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + PAGE) == at + PAGE);
	is_read(at + PAGE, at + PAGE, 100, mr->rkey);
	CU_ASSERT(memcmp(at + PAGE, zeros, 100) != 0);
	/* Nothing is written that the program could not write. */
	MUST(mprotect(at + PAGE, PAGE, PROT_READ) == 0);
	is_read(at + PAGE, at + PAGE, 100, mr->rkey);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at + PAGE, mr->rkey);
	map(at + PAGE, PAGE, PROT_NONE);
	is_refused(IBV_WR_RDMA_READ, (uintptr_t)at + PAGE, mr->rkey);
	teardown();
}

/* Files: shared ones are written, and behind their end is nothing. */
static void
follows_files(void)
{
	int fd = memfd_create("t", MFD_CLOEXEC);
	uint8_t found[100];

	setup();
	MUST(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0);
	MUST(mmap(at, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at);
	is_written(at + PAGE, at + PAGE, sizeof(found), mr->rkey);
	CU_ASSERT_EQUAL(pread(fd, found, sizeof(found), PAGE), sizeof(found));
	CU_ASSERT(memcmp(found, there.memory, sizeof(found)) == 0);
	MUST(ftruncate(fd, PAGE) == 0);
	is_refused(IBV_WR_RDMA_READ, (uintptr_t)at + PAGE, mr->rkey);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at + PAGE, mr->rkey);
	is_written(at, at, sizeof(found), mr->rkey);
	close(fd);
	teardown();
}

/* A child has what was there when it was made; what comes is its parent's. */
static void
stays_with_the_parent(void)
{
	int go[2], status = -1;
	char byte = 0;
	pid_t pid;

	setup();
	map(at, LEN, PROT_READ | PROT_WRITE);
	is_written(at, at, 100, mr->rkey);
	MUST(pipe(go) == 0);
	memcpy(here.memory, at, 100);
	pid = fork();
	if (pid == 0) {
		bool same = read(go[0], &byte, 1) == 1 && memcmp(at, here.memory, 100) == 0;

		_exit(same ? 0 : 1);
	}
	MUST(pid > 0);
	is_written(at, at, 100, mr->rkey);
	MUST(write(go[1], &byte, 1) == 1 && waitpid(pid, &status, 0) == pid);
	CU_ASSERT_EQUAL(status, 0);
	is_written(at, at, 100, mr->rkey);
	close(go[0]);
	close(go[1]);
	teardown();
}

static const char constant[] = "nobody writes here";

/* All addresses of the process, wherever they end, and no others. */
static void
all_addresses(void)
{
	static const uint64_t nowhere[] = { 0, PAGE, (UINT64_C(1) << 47) - PAGE,
		(UINT64_C(1) << 56) - 8, (UINT64_C(1) << 56) - 4, UINT64_C(1) << 56,
		(UINT64_C(3) << 56) + PAGE, UINT64_C(1) << 63, UINT64_MAX - 8, UINT64_MAX };
	struct ibv_mr *all;
	uint8_t stack[100];
	uint32_t key;

	setup();
	all = ibv_reg_mr(here.pd, NULL, SIZE_MAX, ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	CU_ASSERT_EQUAL(all->length, SIZE_MAX);
	map(at, LEN, PROT_READ | PROT_WRITE);
	is_written(at + 100, at + 100, 8000, all->rkey);
	is_written(stack, stack, sizeof(stack), all->rkey);
	is_read((const uint8_t *)constant, (const uint8_t *)constant, sizeof(constant), all->rkey);
	CU_ASSERT_EQUAL(sends(stack, all->lkey), IBV_WC_SUCCESS);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)constant, all->rkey);
	CU_ASSERT_STRING_EQUAL(constant, "nobody writes here");
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		is_refused(IBV_WR_RDMA_WRITE, nowhere[i], all->rkey);
		is_refused(IBV_WR_RDMA_READ, nowhere[i], all->rkey);
		CU_ASSERT_EQUAL(sends((const uint8_t *)(uintptr_t)nowhere[i], all->lkey),
			IBV_WC_LOC_PROT_ERR);
		begin_anew();
	}
	key = all->rkey;
	CU_ASSERT_EQUAL(ibv_dereg_mr(all), 0);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at, key);
	teardown();
}

/* Of regions by the ways there are, those that are none. */
static void
no_such_regions(void)
{
	static const struct {
		void *addr;
		size_t len;
		int access, err;
	} table[] = {
		{ NULL, SIZE_MAX, ALL & ~IBV_ACCESS_ON_DEMAND, EFAULT },
		{ NULL, SIZE_MAX - 1, ALL, EINVAL },
		{ (void *)1, SIZE_MAX, ALL, EINVAL },
		{ NULL, (size_t)1 << 56, ALL, EINVAL },
		{ NULL, ((size_t)1 << 40) + 1, ALL, EINVAL },
		{ (void *)(UINTPTR_MAX - 10), 12, ALL, EINVAL },
		{ NULL, SIZE_MAX, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND, EINVAL },
	};
	struct ibv_mr *many[255];
	int count = 0;

	setup();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		errno = 0;
		CU_ASSERT_PTR_NULL(
			ibv_reg_mr(here.pd, table[i].addr, table[i].len, table[i].access));
		CU_ASSERT_EQUAL(errno, table[i].err);
	}
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_reg_mr_iova2(here.pd, NULL, SIZE_MAX, 8, ALL));
	CU_ASSERT_EQUAL(errno, EINVAL);
	setenv("ROCADE_MR", "share", 1);
	CU_ASSERT_PTR_NULL(ibv_reg_mr(here.pd, at, LEN, ALL));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	unsetenv("ROCADE_MR");
	while (count < 255 && (many[count] = ibv_reg_mr(here.pd, NULL, SIZE_MAX, ALL)) != NULL)
		count++;
	CU_ASSERT_EQUAL(count, 254);
	CU_ASSERT_EQUAL(errno, ENOMEM);
	map(at, LEN, PROT_READ | PROT_WRITE);
	is_written(at, at, 100, many[0]->rkey);
	is_written(at, at, 100, many[253]->rkey);
	while (count > 0)
		CU_ASSERT_EQUAL(ibv_dereg_mr(many[--count]), 0);
	teardown();
}

/* Which is there for good. */
static void
device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = PAGE };
	unsigned int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
	struct ibv_dm *dm;
	struct ibv_mr *fixed;

	setup();
	dm = ibv_alloc_dm(here.context, &attr);
	MUST(dm != NULL);
	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_reg_dm_mr(here.pd, dm, 0, PAGE, access | IBV_ACCESS_ON_DEMAND));
	CU_ASSERT_EQUAL(errno, EINVAL);
	fixed = ibv_reg_dm_mr(here.pd, dm, 0, PAGE, access);
	MUST(fixed != NULL);
	CU_ASSERT_EQUAL(ibv_dereg_mr(fixed), 0);
	CU_ASSERT_EQUAL(ibv_free_dm(dm), 0);
	teardown();
}

/* One that peers name by another address is named so until it gets another place. */
static void
keeps_its_name(void)
{
	struct ibv_mr *other = ibv_reg_mr_iova(here.pd, at, LEN, PAGE, ALL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	is_written((uint8_t *)(uintptr_t)PAGE, at, 100, other->rkey);
	CU_ASSERT_EQUAL(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				ALL & ~IBV_ACCESS_ON_DEMAND),
		0);
	is_written((uint8_t *)(uintptr_t)PAGE, at, 100, other->rkey);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at, other->rkey);
	CU_ASSERT_EQUAL(ibv_rereg_mr(other, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at, LEN, 0), 0);
	is_written(at, at, 100, other->rkey);
	CU_ASSERT_EQUAL(ibv_dereg_mr(other), 0);
}

/* A region changes from one kind to the other, and keeps its key. */
static void
changes(void)
{
	struct ibv_mr *all;

	setup();
	map(at, LEN, PROT_READ | PROT_WRITE);
	is_written(at, at, 100, mr->rkey);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				ALL & ~IBV_ACCESS_ON_DEMAND),
		0);
	is_written(at, at, 100, mr->rkey);
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL), 0);
	map(at, LEN, PROT_READ | PROT_WRITE);
	is_written(at, at, 100, mr->rkey);
	CU_ASSERT_EQUAL(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, at + PAGE, PAGE, 0), 0);
	is_written(at + PAGE, at + PAGE, PAGE, mr->rkey);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at, mr->rkey);
	keeps_its_name();
	all = ibv_reg_mr(here.pd, NULL, SIZE_MAX, ALL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	CU_ASSERT_EQUAL(ibv_rereg_mr(all, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND),
		0);
	is_read(at, at, 100, all->rkey);
	is_refused(IBV_WR_RDMA_WRITE, (uintptr_t)at, all->rkey);
	CU_ASSERT_EQUAL(ibv_rereg_mr(all, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				IBV_ACCESS_REMOTE_READ),
		IBV_REREG_MR_ERR_CMD);
	is_read(at, at, 100, all->rkey);
	CU_ASSERT_EQUAL(ibv_dereg_mr(all), 0);
	teardown();
}

static bool
is_there(const uint8_t *page)
{
	unsigned char vec = 0;

	MUST(mincore((void *)(uintptr_t)page, PAGE, &vec) == 0);
	return vec & 1;
}

static int
advise(enum ibv_advise_mr_advice advice, uint32_t flags, uint64_t addr, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = { addr, len, lkey };

	return ibv_advise_mr(here.pd, advice, flags, &sge, 1);
}

static void
advice(void)
{
	const enum ibv_advise_mr_advice reads = IBV_ADVISE_MR_ADVICE_PREFETCH,
					writes = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					looks = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	const uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	struct ibv_mr *all, *other, *only_read;
	uint64_t addr;
	struct ibv_pd *pd;
	struct ibv_sge two[2];
	uint32_t key;

	setup();
	addr = (uintptr_t)at;
	pd = ibv_alloc_pd(here.context);
	MUST(pd != NULL);
	map(at, LEN - PAGE, PROT_READ | PROT_WRITE);
	other = ibv_reg_mr(pd, at, LEN, ALL);
	only_read = ibv_reg_mr(here.pd, at, LEN, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	all = ibv_reg_mr(here.pd, NULL, SIZE_MAX, ALL);
	MUST(other != NULL && only_read != NULL && all != NULL);
	CU_ASSERT_EQUAL(advise(looks, flush, addr, PAGE, mr->lkey), 0);
	CU_ASSERT_EQUAL(advise(writes, 0, addr, PAGE, mr->lkey), 0);
	CU_ASSERT(!is_there(at));
	CU_ASSERT_EQUAL(advise(writes, flush, addr + 100, PAGE, mr->lkey), 0);
	CU_ASSERT(is_there(at) && is_there(at + PAGE) && !is_there(at + 2 * PAGE));
	CU_ASSERT_EQUAL(advise(reads, flush, addr + 3 * PAGE, 1, all->lkey), 0);
	CU_ASSERT(is_there(at + 3 * PAGE) && !is_there(at + 4 * PAGE));
	CU_ASSERT_EQUAL(advise(writes, flush, addr, 0, mr->lkey), 0);
	/* Not all of it is mapped: only who waits for it hears that. */
	CU_ASSERT_EQUAL(advise(reads, flush, addr, LEN, mr->lkey), EFAULT);
	CU_ASSERT_EQUAL(advise(reads, 0, addr, LEN, mr->lkey), 0);
	CU_ASSERT_EQUAL(advise(reads, flush, (UINT64_C(1) << 56) - PAGE, PAGE, all->lkey), EFAULT);
	/* Ranges, keys, domains and rights. */
	CU_ASSERT_EQUAL(advise(looks, 0, addr, LEN + 1, mr->lkey), EFAULT);
	CU_ASSERT_EQUAL(advise(looks, 0, addr - 1, 1, mr->lkey), EFAULT);
	CU_ASSERT_EQUAL(advise(looks, 0, UINT64_MAX, UINT32_MAX, all->lkey), EFAULT);
	CU_ASSERT_EQUAL(advise(looks, 0, addr, PAGE, mr->lkey ^ 0x100), ENOENT);
	CU_ASSERT_EQUAL(advise(looks, 0, addr, PAGE, there.mr->lkey), ENOENT);
	CU_ASSERT_EQUAL(advise(looks, 0, (uintptr_t)here.memory, 1, here.mr->lkey), ENOENT);
	CU_ASSERT_EQUAL(advise(looks, 0, addr, PAGE, other->lkey), EPERM);
	CU_ASSERT_EQUAL(advise(writes, 0, addr, PAGE, only_read->lkey), EPERM);
	CU_ASSERT_EQUAL(advise(reads, flush, addr, PAGE, only_read->lkey), 0);
	CU_ASSERT_EQUAL(advise(reads, flush << 1, addr, PAGE, mr->lkey), EINVAL);
	CU_ASSERT_EQUAL(
		advise((enum ibv_advise_mr_advice)77, flush, addr, PAGE, mr->lkey), ENOTSUP);
	CU_ASSERT_EQUAL(ibv_advise_mr(here.pd, reads, 0, NULL, 0), EINVAL);
	/* All of them, or nothing is fetched. */
	MUST(madvise(at, LEN - PAGE, MADV_DONTNEED) == 0);
	two[0] = (struct ibv_sge){ addr + 6 * PAGE, PAGE, mr->lkey };
	two[1] = (struct ibv_sge){ addr, LEN + 1, mr->lkey };
	CU_ASSERT_EQUAL(ibv_advise_mr(here.pd, writes, flush, two, 2), EFAULT);
	CU_ASSERT(!is_there(at + 6 * PAGE));
	key = all->lkey;
	CU_ASSERT_EQUAL(ibv_dereg_mr(all), 0);
	CU_ASSERT_EQUAL(advise(looks, 0, addr, PAGE, key), ENOENT);
	CU_ASSERT_EQUAL(ibv_dereg_mr(other), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(only_read), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), 0);
	teardown();
}

/* A window over memory that comes later. */
static void
windows(void)
{
	struct ibv_mr *all;
	struct ibv_mw *mw;
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	setup();
	all = ibv_reg_mr(here.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB);
	mw = ibv_alloc_mw(here.pd, IBV_MW_TYPE_1);
	MUST(all != NULL && mw != NULL);
	bind.bind_info = (struct ibv_mw_bind_info){ .mr = all,
		.addr = (uintptr_t)at + PAGE,
		.length = PAGE,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	CU_ASSERT_EQUAL(ibv_bind_mw(here.qp, mw, &bind), 0);
	for (uint64_t end = now_ms() + FOREVER_MS; now_ms() < end;)
		if (ibv_poll_cq(here.cq, 1, &wc) == 1)
			break;
	CU_ASSERT_EQUAL_FATAL(wc.status, IBV_WC_SUCCESS);
	map(at, LEN, PROT_READ | PROT_WRITE);
	is_written(at + PAGE, at + PAGE, PAGE, mw->rkey);
	CU_ASSERT_EQUAL(
		reach(IBV_WR_RDMA_WRITE, (uintptr_t)at, 8, mw->rkey), IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(all), 0);
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "a region follows what is mapped", follows_what_is_mapped },
		{ "a region follows files", follows_files },
		{ "a region stays with the parent", stays_with_the_parent },
		{ "all addresses of a process and no others", all_addresses },
		{ "regions that can't be", no_such_regions },
		{ "no region of device memory", device_memory },
		{ "a region changes its kind", changes },
		{ "advice fetches what it may", advice },
		{ "a window over memory that comes later", windows },
	};

	return demand_run("demand", tests, sizeof(tests) / sizeof(tests[0]));
}
