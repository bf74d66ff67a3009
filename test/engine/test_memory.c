/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: any memory of an application can be registered, is reached at its own addresses, and loses
 * no byte, whoever writes to it meanwhile. Method: each kind of memory is registered, written and
 * read by a peer within one device, in each mode that applies; writers run during registrations.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_tap.h"
#include "rig.h"

#define PEER_MEMORY (4u << 20)
#define ALL         (RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE)

static struct rig rig;
static struct node a, b;
static uint8_t static_zero[100000];
static uint8_t static_data[100000] = { 1 };

static void
setup(void)
{
	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, PEER_MEMORY);
	node_join(&a, &b, RCD_QP_RC, 1);
}

static int
reg(uint8_t *at, uint64_t len, uint32_t access, struct rcd_cl_mr *mr)
{
	struct rcd_cl_mr_attr attr = {
		.pd = b.pd, .access = access, .addr = at, .len = len, .start = (uintptr_t)at
	};

	return rcd_cl_mr_reg(&b.client, &attr, mr);
}

/* One operation of a on memory of b. */
static int
operate(uint8_t opcode, const uint8_t *at, uint32_t len, uint32_t key)
{
	struct rcd_sge sge = { (uintptr_t)a.memory, len, { a.mr.key } };
	struct rcd_send_wr wr = { .opcode = opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = (uintptr_t)at, .rkey = { key }, .compare_or_add = 5 } };
	struct rcd_cq_slot slot;

	MUST(rcd_cl_post_send(&a.qp, &wr) == 0);
	rcd_cl_ring(&a.qp);
	return node_wait(&a, &slot, FOREVER_MS);
}

/* Contents survive registration; the peer writes, reads and counts in it. */
static void
use(uint8_t *at, uint64_t len)
{
	struct rcd_cl_mr mr;
	uint32_t part = len > 70000 ? 70000 : (uint32_t)len;
	uint64_t *count = (uint64_t *)(void *)(((uintptr_t)at + 7) & ~(uintptr_t)7);

	fill(at, part, 1);
	fill(at + len - part, part, 2);
	CU_ASSERT_EQUAL_FATAL(reg(at, len, ALL, &mr), 0);
	CU_ASSERT(len < 2 * (uint64_t)part || filled(at, part, 1));
	CU_ASSERT(filled(at + len - part, part, 2));
	fill(a.memory, part, 3);
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_WRITE, at, part, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(at, part, 3));
	fill(at + len - part, part, 4);
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_READ, at + len - part, part, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(a.memory, part, 4));
	*count = 100;
	CU_ASSERT_EQUAL(operate(RCD_WR_FETCH_ADD, (uint8_t *)count, 8, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(*count, 105);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	/* Still there for the application, and not for the peer. */
	CU_ASSERT_EQUAL(*count, 105);
}

static void
each_kind(void)
{
	uint8_t stack[50000];
	uint8_t *heap = malloc(300001);
	uint8_t *small = malloc(100);
	uint8_t *map =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *shared =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("test", MFD_CLOEXEC);
	uint8_t *file;

	MUST(ftruncate(fd, 1 << 20) == 0);
	file = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	use(map, 1 << 20);
	use(map + 5000, 10001); /* again, and a part of it */
	use(heap, 300001);
	use(small, 100);
	use(static_zero, sizeof(static_zero));
	use(static_data, sizeof(static_data));
	use(stack, sizeof(stack));
	use(shared, 1 << 20);
	use(file, 1 << 20);
	close(fd);
	use(file + 8192, 100000);
	munmap(map, 1 << 20);
	munmap(shared, 1 << 20);
	munmap(file, 1 << 20);
	free(heap);
	free(small);
}

static void
shared_by_default(void)
{
	each_kind();
}

static void
copied_when_asked(void)
{
	setenv("ROCADE_MR", "copy", 1);
	each_kind();
	unsetenv("ROCADE_MR");
}

static void
hugepages(void)
{
	uint8_t *map = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (map == MAP_FAILED) {
		rcd_tap_skip("no hugepages are free");
		return;
	}
	use(map, 4 << 20);
	use(map + 4097, 3000001);
	munmap(map, 4 << 20);
}

#define BESIDE_STACK (UINT64_C(1) << 20)
#define BESIDE_LEN   (UINT64_C(128) << 10)

static void *
share_beside(void *arg)
{
	struct rcd_cl_mr mr;

	/* The thread's descriptor is at the top of its stack: right below this memory. */
	CU_ASSERT_EQUAL(reg((uint8_t *)arg + BESIDE_STACK, BESIDE_LEN, ALL, &mr), 0);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	return NULL;
}

static void
shared_beside_the_thread(void)
{
	uint8_t *map = mmap(NULL, BESIDE_STACK + BESIDE_LEN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	setenv("ROCADE_MR", "share", 1);
	pthread_attr_init(&attr);
	MUST(pthread_attr_setstack(&attr, map, BESIDE_STACK) == 0);
	MUST(pthread_create(&thread, &attr, share_beside, map) == 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	unsetenv("ROCADE_MR");
	munmap(map, BESIDE_STACK + BESIDE_LEN);
}

static void
mixed_range(void)
{
	/* Private, a file's, and private memory side by side: one region of three pieces. */
	uint8_t *map =
		mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("test", MFD_CLOEXEC);

	MUST(ftruncate(fd, 1 << 20) == 0);
	MUST(mmap(map + (1 << 20), 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		     0) != MAP_FAILED);
	use(map + (1 << 20) - 40000, (1 << 20) + 80000);
	use(map + (1 << 20) - 30000, 60000);
	use(map, 3 << 20);
	munmap(map, 3 << 20);
	close(fd);
}

static void
read_only_memory(void)
{
	uint8_t *map =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rcd_cl_mr mr;

	fill(map, 65536, 9);
	mprotect(map, 65536, PROT_READ);
	CU_ASSERT_EQUAL(reg(map, 65536, ALL, &mr), -EFAULT);
	CU_ASSERT_EQUAL_FATAL(reg(map, 65536, RCD_ACCESS_REMOTE_READ, &mr), 0);
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_READ, map, 65536, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(a.memory, 65536, 9));
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	munmap(map, 65536);
}

static void
odd_lengths(void)
{
	struct rcd_cl_mr mr;
	uint8_t *map =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_EQUAL(reg(map, 0, ALL, &mr), 0);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	munmap(map, 65536);
	CU_ASSERT_EQUAL(reg(map, 65536, ALL, &mr), -EFAULT);
	CU_ASSERT_EQUAL(reg((uint8_t *)UINTPTR_MAX - 100, 4096, ALL, &mr), -EFAULT);
	CU_ASSERT_EQUAL(reg(map, 100, RCD_ACCESS_REMOTE_WRITE, &mr), -EFAULT);
}

static void
huge_and_sparse(void)
{
	uint64_t len = UINT64_C(8) << 30;
	uint8_t *map = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(map, MAP_FAILED);
	use(map, len);
	munmap(map, len);
}

/* Memory for the writer: of each kind. */
enum kind {
	KIND_PRIVATE,
	KIND_HEAP,
	KIND_BSS,
	KIND_DATA,
	KIND_STACK,
	KIND_SHARED,
	KIND_MEMFD,
	KIND_HUGE,
	KINDS,
};

static const char *const kind_names[KINDS] = { "private", "heap", "bss", "data", "stack", "shared",
	"memfd", "hugetlbfs" };

#define WORDS       64
#define WRITER_STEP 512 /* words from one to the next: a page */
#define WRITER_LEN  ((uint64_t)WORDS * WRITER_STEP * 8)

static uint8_t writer_zero[WRITER_LEN];
static uint8_t writer_data[WRITER_LEN] = { 1 };

/* @return memory, or NULL where there is none of the kind (and for the stack, which comes with its
 * thread) */
static uint8_t *
kind_get(enum kind kind)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	int fd = -1;
	void *map;

	switch (kind) {
	case KIND_BSS:
		return writer_zero;
	case KIND_DATA:
		return writer_data;
	case KIND_HEAP:
		return calloc(1, WRITER_LEN);
	case KIND_SHARED:
		flags = MAP_SHARED | MAP_ANONYMOUS;
		break;
	case KIND_HUGE:
		flags = MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB;
		break;
	case KIND_MEMFD:
		flags = MAP_SHARED;
		fd = memfd_create("test", MFD_CLOEXEC);
		MUST(ftruncate(fd, WRITER_LEN) == 0);
		break;
	case KIND_PRIVATE:
	case KIND_STACK:
	case KINDS:
		break;
	}
	map = mmap(NULL, kind == KIND_HUGE ? 2 << 20 : WRITER_LEN, PROT_READ | PROT_WRITE, flags,
		fd, 0);
	if (fd >= 0)
		close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static void
kind_put(enum kind kind, uint8_t *memory)
{
	if (kind == KIND_HEAP)
		free(memory);
	else if (kind != KIND_BSS && kind != KIND_DATA)
		munmap(memory, kind == KIND_HUGE ? 2 << 20 : WRITER_LEN);
}

struct writer {
	uint64_t *words; /**< NULL: takes its stack */
	uint64_t step;   /**< words from one to the next */
	int ready;
	int stop;
	int seen; /**< by the other thread: the stack may go */
	uint64_t rounds;
	uint64_t start[WORDS];
};

static void
write_in(struct writer *writer, uint64_t *words)
{
	for (uint64_t i = 0; i < WORDS; i++)
		writer->start[i] = words[i * writer->step];
	__atomic_store_n(&writer->words, words, __ATOMIC_RELAXED);
	__atomic_store_n(&writer->ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->stop, __ATOMIC_RELAXED)) {
		for (uint64_t i = 0; i < WORDS; i++)
			__atomic_store_n(&words[i * writer->step], words[i * writer->step] + 1,
				__ATOMIC_RELAXED);
		writer->rounds++;
	}
}

static void *
write_on(void *arg)
{
	struct writer *writer = arg;
	uint64_t stack[WRITER_LEN / 8];

	if (writer->words != NULL) {
		write_in(writer, writer->words);
		return NULL;
	}
	memset(stack, 0, sizeof(stack));
	write_in(writer, stack);
	__atomic_store_n(&writer->ready, 2, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer->seen, __ATOMIC_ACQUIRE))
		sched_yield();
	return NULL;
}

/* @return words that are not what the writer made them */
static int
write_through(enum kind kind, int round)
{
	/* Within one page, or one in each. */
	struct writer writer = { .step = round % 2 ? 1 : WRITER_STEP };
	uint8_t *memory = kind_get(kind);
	struct rcd_cl_mr mr;
	pthread_t thread;
	int wrong = 0;

	writer.words = kind == KIND_STACK ? NULL : (uint64_t *)(void *)memory;
	MUST(pthread_create(&thread, NULL, write_on, &writer) == 0);
	while (__atomic_load_n(&writer.ready, __ATOMIC_ACQUIRE) == 0)
		sched_yield();
	MUST(reg((uint8_t *)writer.words, WRITER_LEN, ALL, &mr) == 0);
	if (round % 5 == 0)
		MUST(operate(RCD_WR_RDMA_READ, (uint8_t *)writer.words, 65536, mr.key) ==
			RCD_WC_SUCCESS);
	__atomic_store_n(&writer.stop, 1, __ATOMIC_RELAXED);
	while (kind == KIND_STACK && __atomic_load_n(&writer.ready, __ATOMIC_ACQUIRE) != 2)
		sched_yield();
	if (kind != KIND_STACK)
		pthread_join(thread, NULL);
	for (uint64_t i = 0; i < WORDS; i++)
		wrong += writer.words[i * writer.step] != writer.start[i] + writer.rounds;
	/* The engine's copy is the same one: the last page comes over as it is now. */
	MUST(operate(RCD_WR_RDMA_READ, (uint8_t *)writer.words, WRITER_LEN, mr.key) ==
		RCD_WC_SUCCESS);
	wrong += memcmp(a.memory, writer.words, WRITER_LEN) != 0;
	MUST(rcd_cl_mr_dereg(&b.client, &mr) == 0);
	if (kind == KIND_STACK) {
		__atomic_store_n(&writer.seen, 1, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
	kind_put(kind, memory);
	return wrong;
}

static void
writer_on_each_kind(int rounds)
{
	for (int kind = 0; kind < KINDS; kind++) {
		uint8_t *memory = kind_get(kind);
		int wrong = 0;

		if (memory == NULL) {
			printf("# no %s memory here\n", kind_names[kind]);
			continue;
		}
		kind_put(kind, memory);
		for (int round = 0; round < rounds; round++)
			wrong += write_through(kind, round);
		if (wrong != 0)
			printf("# %d words lost in %s memory\n", wrong, kind_names[kind]);
		CU_ASSERT_EQUAL(wrong, 0);
	}
}

static void
no_write_is_lost(void)
{
	/* More often without an engine: test/unit/test_span.c. */
	writer_on_each_kind(150);
}

static void
no_write_is_lost_in_copies(void)
{
	setenv("ROCADE_MR", "copy", 1);
	writer_on_each_kind(100);
	unsetenv("ROCADE_MR");
}

static void
unmapped_while_registered(void)
{
	uint8_t *map =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *again;
	struct rcd_cl_mr mr, other;

	fill(map, 65536, 5);
	CU_ASSERT_EQUAL_FATAL(reg(map, 65536, ALL, &mr), 0);
	munmap(map, 65536);
	/* As pinned pages would: the region still has the bytes that it had. */
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_READ, map, 65536, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(a.memory, 65536, 5));
	again = mmap(map, 65536, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CU_ASSERT_PTR_EQUAL_FATAL(again, map);
	fill(again, 65536, 6);
	CU_ASSERT_EQUAL_FATAL(reg(again, 65536, ALL, &other), 0);
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_READ, map, 65536, other.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(a.memory, 65536, 6));
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_READ, map, 65536, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(a.memory, 65536, 5));
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &other), 0);
	munmap(again, 65536);
}

/* A child has its own bytes, and no session. */
static void
fork_gives_copies(void)
{
	uint8_t *map =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rcd_cl_mr mr;
	pid_t child;
	int status;

	fill(map, 65536, 5);
	CU_ASSERT_EQUAL_FATAL(reg(map, 65536, ALL, &mr), 0);
	child = fork();
	if (child == 0) {
		struct rcd_cl_mr none;
		int right = filled(map, 65536, 5);

		fill(map, 65536, 6);
		right = right && filled(map, 65536, 6);
		right = right && reg(map, 65536, ALL, &none) == -EIO;
		_exit(right ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT(filled(map, 65536, 5));
	CU_ASSERT_EQUAL(operate(RCD_WR_RDMA_READ, map, 65536, mr.key), RCD_WC_SUCCESS);
	CU_ASSERT(filled(a.memory, 65536, 5));
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	munmap(map, 65536);
}

/* Addresses that were shared once and hold something else now are left alone in a child. */
static void
fork_after_reuse(void)
{
	uint8_t *map =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rcd_cl_mr mr;
	pid_t child;
	int status;

	fill(map, 65536, 5);
	CU_ASSERT_EQUAL_FATAL(reg(map, 65536, ALL, &mr), 0);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
	munmap(map, 65536);
	CU_ASSERT_PTR_EQUAL_FATAL(mmap(map, 65536, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		map);
	fill(map, 65536, 6);
	child = fork();
	if (child == 0)
		_exit(filled(map, 65536, 6) ? 0 : 1);
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	munmap(map, 65536);
}

static void
deregistered_under_traffic(void)
{
	for (int round = 0; round < 20; round++) {
		uint8_t *map = mmap(
			NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct rcd_cl_mr mr;
		struct rcd_cq_slot slot;
		int status = RCD_WC_SUCCESS;
		uint64_t posted = 0, done = 0;

		CU_ASSERT_EQUAL_FATAL(reg(map, 1 << 20, ALL, &mr), 0);
		for (; posted < 60; posted++) {
			struct rcd_sge sge = { (uintptr_t)a.memory, 1 << 20, { a.mr.key } };
			struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
				.flags = RCD_SEND_SIGNALED,
				.sge_count = 1,
				.sges = &sge,
				.remote = { .va = (uintptr_t)map, .rkey = { mr.key } } };

			MUST(rcd_cl_post_send(&a.qp, &wr) == 0);
		}
		rcd_cl_ring(&a.qp);
		CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
		munmap(map, 1 << 20);
		while (done < posted) {
			int got = node_wait(&a, &slot, FOREVER_MS);

			CU_ASSERT_FATAL(got >= 0);
			status = status == RCD_WC_SUCCESS ? got : status;
			done++;
		}
		CU_ASSERT_EQUAL(status, RCD_WC_REM_ACCESS_ERR);
		node_close(&a);
		node_close(&b);
		setup();
	}
}

static void
nothing_is_left(void)
{
	char *answer;

	node_close(&a);
	node_close(&b);
	answer = rig_admin(rig.socket, "resource mr");
	CU_ASSERT_STRING_EQUAL(answer, "[]");
	free(answer);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(shared_by_default),
		RCD_TEST(copied_when_asked),
		RCD_TEST(hugepages),
		RCD_TEST(shared_beside_the_thread),
		RCD_TEST(mixed_range),
		RCD_TEST(read_only_memory),
		RCD_TEST(odd_lengths),
		RCD_TEST(huge_and_sparse),
		RCD_TEST(no_write_is_lost),
		RCD_TEST(no_write_is_lost_in_copies),
		RCD_TEST(unmapped_while_registered),
		RCD_TEST(fork_gives_copies),
		RCD_TEST(fork_after_reuse),
		RCD_TEST(deregistered_under_traffic),
		RCD_TEST(nothing_is_left),
	};

	rig_start(&rig, NULL);
	setup();
	return rcd_tap_run("memory", tests, sizeof(tests) / sizeof(tests[0]));
}
