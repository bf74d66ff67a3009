/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: private memory becomes shared where it is, with all that was written to it before and
 * meanwhile; and what the application does to it afterwards is noticed. Method: spans of memory of
 * this process, looked at by /proc/self/maps, tables of what is done to them, and a thread that
 * writes while its memory is replaced.
 */
#include "rcd_cl_span.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "span_memory.h"

/* Before anything else: nothing is there yet. */
static void
nothing_to_begin_with(void)
{
	uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
	struct rcd_cl_vma vma = span_vma(memory);
	struct rlimit old, few;
	struct rcd_cl_span *span;

	CU_ASSERT_EQUAL(span_count(), 0);
	rcd_cl_span_check();
	rcd_cl_span_sweep(span_forget);
	rcd_cl_span_unshare();
	CU_ASSERT_PTR_NULL(rcd_cl_span_of(&vma));
	/* Without a file to share nothing is shared, and the next one may have more luck. */
	span_mark(memory, PAGES, PARENT);
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &few), 0);
	CU_ASSERT_EQUAL(
		rcd_cl_span_make((uintptr_t)memory, (uintptr_t)memory + PAGE, &span), -EMFILE);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
	CU_ASSERT(span_marked(memory, PAGES, PARENT));
	span_make(memory, PAGES);
	CU_ASSERT(span_marked(memory, PAGES, PARENT));
	span_end(memory, PAGES);
	CU_ASSERT_EQUAL(span_forgotten, 1);
}

/* What mappings are told of a range. */
static void
mappings_of_a_range(void)
{
	/* Pages 0-1 to be written, 2 to be read, 3 a file's, 4 without rights, 5 gone, 6 again. */
	static const struct {
		uint32_t from, to; /**< bytes */
		int count;
	} table[] = {
		{ 0, PAGE, 1 },
		{ 0, 2 * PAGE, 1 },
		{ PAGE + 1, 2 * PAGE, 1 },
		{ PAGE + 1, 2 * PAGE + 1, 2 },
		{ 0, 5 * PAGE, 4 },
		{ 3 * PAGE + 7, 3 * PAGE + 8, 1 },
		{ 4 * PAGE, 5 * PAGE + 1, -EFAULT },
		{ 5 * PAGE, 6 * PAGE, -EFAULT },
		{ 5 * PAGE, 7 * PAGE, -EFAULT },
		{ 0, 7 * PAGE, -EFAULT },
		{ 6 * PAGE, 7 * PAGE, 1 },
	};
	uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct rcd_cl_vma *vmas;
	struct stat stat;

	CU_ASSERT_EQUAL(ftruncate(fd, 2 * PAGE), 0);
	CU_ASSERT_EQUAL(fstat(fd, &stat), 0);
	mprotect(memory + 2 * PAGE, PAGE, PROT_READ);
	mmap(memory + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, PAGE);
	mprotect(memory + 4 * PAGE, PAGE, PROT_NONE);
	munmap(memory + 5 * PAGE, PAGE);
	munmap(memory + 7 * PAGE, PAGE);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int count = rcd_cl_vmas(
			(uintptr_t)memory + table[i].from, (uintptr_t)memory + table[i].to, &vmas);

		CU_ASSERT_EQUAL(count, table[i].count);
		CU_ASSERT_EQUAL(vmas == NULL, count < 0);
		free(vmas);
	}
	CU_ASSERT_EQUAL_FATAL(
		rcd_cl_vmas((uintptr_t)memory, (uintptr_t)memory + 5 * PAGE, &vmas), 4);
	CU_ASSERT(vmas[0].readable && vmas[0].writable && !vmas[0].shared && !vmas[0].special);
	CU_ASSERT_EQUAL(vmas[0].end, (uintptr_t)memory + 2 * PAGE);
	CU_ASSERT_EQUAL(vmas[0].inode, 0);
	CU_ASSERT(vmas[1].readable && !vmas[1].writable);
	CU_ASSERT(vmas[2].shared && vmas[2].offset == PAGE && vmas[2].inode == stat.st_ino);
	CU_ASSERT_STRING_EQUAL(vmas[2].path, "/memfd:test (deleted)");
	CU_ASSERT(!vmas[3].readable && !vmas[3].writable);
	free(vmas);
	/* The stack, and what the kernel has put there, is no application's own. */
	CU_ASSERT_EQUAL_FATAL(rcd_cl_vmas((uintptr_t)&vmas, (uintptr_t)&vmas + 1, &vmas), 1);
	CU_ASSERT(vmas[0].special || strcmp(vmas[0].path, "[stack]") != 0);
	free(vmas);
	close(fd);
	munmap(memory, PAGES * PAGE);
}

static void
bytes_stay_where_they_are(void)
{
	static const struct {
		uint32_t first, count; /**< pages that are replaced */
	} table[] = { { 0, PAGES }, { 0, 1 }, { 2, 1 }, { 1, 4 }, { PAGES - 1, 1 } };

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
		uint8_t *part = memory + table[i].first * PAGE;
		struct rcd_cl_span *span;
		struct rcd_cl_vma vma;
		uint8_t byte = 0;

		span_mark(memory, PAGES, PARENT);
		span = span_make(part, table[i].count);
		CU_ASSERT(span_marked(memory, PAGES, PARENT));
		vma = span_vma(part);
		CU_ASSERT(vma.shared && vma.writable);
		CU_ASSERT_PTR_EQUAL(rcd_cl_span_of(&vma), span);
		/* Both sides see one memory from now on. */
		part[5] = 77;
		CU_ASSERT_EQUAL(pread(rcd_cl_span_fd(), &byte, 1, (off_t)span->offset + 5), 1);
		CU_ASSERT_EQUAL(byte, 77);
		/* What was not taken is private as before. */
		if (table[i].first > 0) {
			vma = span_vma(memory);
			CU_ASSERT(!vma.shared);
			CU_ASSERT_PTR_NULL(rcd_cl_span_of(&vma));
		}
		span_end(memory, PAGES);
		CU_ASSERT_EQUAL(span_forgotten, 1);
	}
}

static off_t
bytes_of_the_file(void)
{
	struct stat stat;

	CU_ASSERT_EQUAL(fstat(rcd_cl_span_fd(), &stat), 0);
	return stat.st_blocks * 512;
}

/* Terabytes of which nobody has written a byte take none. */
static void
what_was_not_touched_takes_no_memory(void)
{
	size_t pages = (size_t)1 << 24;
	uint8_t *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	off_t before = bytes_of_the_file();

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(memory, MAP_FAILED);
	memory[0] = 1;
	memory[(pages - 1) * PAGE] = 2;
	span_make(memory, pages);
	CU_ASSERT(memory[0] == 1 && memory[(pages - 1) * PAGE] == 2);
	/* Two pages; the kernel may take larger ones. */
	CU_ASSERT(bytes_of_the_file() - before <= 8 << 20);
	span_end(memory, pages);
	CU_ASSERT_EQUAL(bytes_of_the_file(), before);
}

static void
what_cannot_be_replaced(void)
{
	uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
	/* Where calls from here go: no variable, as sanitizers have some elsewhere. */
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0) - PAGE;
	uintptr_t pages[] = { stack, (uintptr_t)pthread_self(), (uintptr_t)&errno };
	struct rcd_cl_span *span = NULL;
	struct rlimit old, few;
	uint32_t before = span_count();

	/* What this thread stands on would be waited for by nobody but itself. */
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		uintptr_t start = pages[i] / PAGE * PAGE;

		CU_ASSERT_EQUAL(rcd_cl_span_make(start, start + PAGE, &span), -EPERM);
	}
	/* More than the file has addresses. */
	CU_ASSERT_EQUAL(rcd_cl_span_make(PAGE, 2 * PAGE + (UINT64_C(1) << 45), &span), -ENOMEM);
	/* No descriptor to look into memory with. */
	span_make(memory, 1);
	span_mark(memory + PAGE, PAGES - 1, PARENT);
	getrlimit(RLIMIT_NOFILE, &old);
	few = (struct rlimit){ .rlim_cur = 0, .rlim_max = old.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	CU_ASSERT_EQUAL(
		rcd_cl_span_make((uintptr_t)memory + PAGE, (uintptr_t)memory + PAGES * PAGE, &span),
		-EPERM);
	setrlimit(RLIMIT_NOFILE, &old);
	CU_ASSERT(span_marked(memory + PAGE, PAGES - 1, PARENT));
	CU_ASSERT_FALSE(span_vma(memory + PAGE).shared);
	/* No byte of the file is lost by that. */
	CU_ASSERT_EQUAL(span_make(memory + PAGE, PAGES - 1)->offset, PAGE);
	span_end(memory, PAGES);
	CU_ASSERT_EQUAL(span_count(), before);
}

/* Neighbours in memory and in the file become one mapping to the kernel, and stay two spans. */
static void
neighbours(void)
{
	uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
	struct rcd_cl_span *first, *second;
	struct rcd_cl_vma vma;

	span_mark(memory, PAGES, PARENT);
	first = span_make(memory, 3);
	second = span_make(memory + 3 * PAGE, 5);
	CU_ASSERT_EQUAL(second->offset, first->offset + 3 * PAGE);
	vma = span_vma(memory);
	CU_ASSERT_EQUAL(vma.end, (uintptr_t)memory + PAGES * PAGE);
	CU_ASSERT_PTR_EQUAL(rcd_cl_span_of(&vma), first);
	/* The second one by the place where it begins, and from there on. */
	for (uint32_t page = 3; page < PAGES; page++) {
		struct rcd_cl_vma rest = vma;

		rest.start = vma.start + page * PAGE;
		rest.offset = vma.offset + page * PAGE;
		CU_ASSERT_PTR_EQUAL(rcd_cl_span_of(&rest), second);
	}
	/* Nor is a mapping ours that looks alike, of another file. */
	vma.inode++;
	CU_ASSERT_PTR_NULL(rcd_cl_span_of(&vma));
	vma.inode--;
	vma.minor++;
	CU_ASSERT_PTR_NULL(rcd_cl_span_of(&vma));
	vma.minor--;
	vma.shared = false;
	CU_ASSERT_PTR_NULL(rcd_cl_span_of(&vma));
	rcd_cl_span_check();
	CU_ASSERT(!first->stale && !second->stale);
	munmap(memory, 3 * PAGE);
	rcd_cl_span_check();
	CU_ASSERT(first->stale && !second->stale);
	vma = span_vma(memory + 3 * PAGE);
	CU_ASSERT_PTR_EQUAL(rcd_cl_span_of(&vma), second);
	span_end(memory, PAGES);
	CU_ASSERT_EQUAL(span_forgotten, 2);
}

/* What an application does to a span of four pages behind our back. */
enum deed {
	LEAVE,
	UNMAP,
	UNMAP_MIDDLE,
	UNMAP_LAST,
	REPLACE,
	REPLACE_FIRST,
	MOVE,
	MOVE_AND_REPLACE,
	READ_ONLY,
	SPLIT_RIGHTS,
	MAP_TWICE,
	SHIFT,
	MAP_BACK,
	DEEDS,
};

static uint8_t *
act(enum deed deed, uint8_t *memory, uint64_t offset)
{
	uint8_t *elsewhere = NULL;

	switch (deed) {
	case UNMAP:
		munmap(memory, 4 * PAGE);
		break;
	case UNMAP_MIDDLE:
		munmap(memory + PAGE, PAGE);
		break;
	case UNMAP_LAST:
		munmap(memory + 3 * PAGE, PAGE);
		break;
	case REPLACE:
		span_map(memory, 4, PROT_READ | PROT_WRITE);
		break;
	case REPLACE_FIRST:
		span_map(memory, 1, PROT_READ | PROT_WRITE);
		break;
	case MOVE:
	case MOVE_AND_REPLACE:
		elsewhere = span_map(NULL, 4, PROT_NONE);
		mremap(memory, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, elsewhere);
		if (deed == MOVE_AND_REPLACE)
			span_map(memory, 4, PROT_READ | PROT_WRITE);
		break;
	case READ_ONLY:
		mprotect(memory, 4 * PAGE, PROT_READ);
		break;
	case SPLIT_RIGHTS:
		mprotect(memory + PAGE, PAGE, PROT_READ);
		break;
	case MAP_TWICE:
		elsewhere = mmap(
			NULL, 4 * PAGE, PROT_READ, MAP_SHARED, rcd_cl_span_fd(), (off_t)offset);
		break;
	case SHIFT:
		/* The file's bytes, at addresses that they are not the bytes of. */
		mmap(memory, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, rcd_cl_span_fd(),
			(off_t)(offset + PAGE));
		break;
	case MAP_BACK:
		mmap(memory, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			rcd_cl_span_fd(), (off_t)offset);
		break;
	case LEAVE:
	case DEEDS:
		break;
	}
	return elsewhere;
}

static void
what_is_done_to_a_span(void)
{
	static const bool stale[DEEDS] = { [UNMAP] = true,
		[UNMAP_MIDDLE] = true,
		[UNMAP_LAST] = true,
		[REPLACE] = true,
		[REPLACE_FIRST] = true,
		[MOVE] = true,
		[MOVE_AND_REPLACE] = true,
		[SHIFT] = true };

	for (enum deed deed = 0; deed < DEEDS; deed++) {
		uint8_t *memory = span_map(NULL, 4, PROT_READ | PROT_WRITE);
		struct rcd_cl_span *span = span_make(memory, 4);
		struct rcd_cl_span *again;
		uint64_t offset = span->offset;
		uint8_t *elsewhere;

		rcd_cl_span_ref(span);
		elsewhere = act(deed, memory, offset);
		rcd_cl_span_check();
		CU_ASSERT_EQUAL(span->stale, stale[deed]);
		/* Once gone, it does not come back, whatever lies there. */
		act(UNMAP, memory, offset);
		rcd_cl_span_check();
		act(MAP_BACK, memory, offset);
		rcd_cl_span_check();
		CU_ASSERT(span->stale);
		/* A region that uses it keeps its bytes. */
		span_forgotten = 0;
		rcd_cl_span_sweep(span_forget);
		CU_ASSERT_EQUAL(span_forgotten, 0);
		span_map(memory, 4, PROT_READ | PROT_WRITE);
		again = span_make(memory, 4);
		CU_ASSERT(again->offset >= offset + 4 * PAGE || again->offset + 4 * PAGE <= offset);
		/* And then they are free for others. */
		rcd_cl_span_unref(span);
		rcd_cl_span_sweep(span_forget);
		CU_ASSERT_EQUAL(span_forgotten, 1);
		if (elsewhere != NULL)
			munmap(elsewhere, 4 * PAGE);
		span_end(memory, 4);
		CU_ASSERT_EQUAL(span_forgotten, 1);
		CU_ASSERT_EQUAL(span_count(), 0);
	}
}

#define WORDS 64

static struct {
	uint64_t *words; /**< one in each page */
	uint64_t rounds;
	int ready, stop;
} writer;

static void *
write_on(void *arg)
{
	(void)arg;
	__atomic_store_n(&writer.ready, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&writer.stop, __ATOMIC_RELAXED)) {
		for (uint32_t i = 0; i < WORDS; i++) {
			uint64_t *word = &writer.words[i * (PAGE / sizeof(uint64_t))];

			__atomic_store_n(word, *word + 1, __ATOMIC_RELAXED);
		}
		writer.rounds++;
	}
	return NULL;
}

/* A thread that writes is stopped for as long as its memory is copied, and goes on in the copy. */
static void
no_write_is_lost(void)
{
	uint64_t wrong = 0;
	bool seen = false;

	for (uint32_t round = 0; round < 400; round++) {
		uint8_t *memory = span_map(NULL, WORDS, PROT_READ | PROT_WRITE);
		struct rcd_cl_span *span;
		pthread_t thread;
		int err;

		writer.words = (uint64_t *)(void *)memory;
		writer.rounds = 0;
		writer.ready = writer.stop = 0;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, write_on, NULL), 0);
		while (!__atomic_load_n(&writer.ready, __ATOMIC_ACQUIRE))
			sched_yield();
		err = span_try((uintptr_t)memory, (uintptr_t)memory + WORDS * PAGE, &span);
		__atomic_store_n(&writer.stop, 1, __ATOMIC_RELAXED);
		pthread_join(thread, NULL);
		if (err == -EPERM && round == 0) {
			/* Then nothing was replaced: who registers it copies. */
			rcd_tap_skip("userfaultfd is not allowed here");
			munmap(memory, WORDS * PAGE);
			return;
		}
		CU_ASSERT_EQUAL_FATAL(err, 0);
		for (uint32_t i = 0; i < WORDS; i++)
			wrong += writer.words[i * (PAGE / sizeof(uint64_t))] != writer.rounds;
		seen = seen || writer.rounds > 0;
		span_end(memory, WORDS);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT(seen);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(nothing_to_begin_with),
		RCD_TEST(mappings_of_a_range),
		RCD_TEST(bytes_stay_where_they_are),
		RCD_TEST(what_was_not_touched_takes_no_memory),
		RCD_TEST(what_cannot_be_replaced),
		RCD_TEST(neighbours),
		RCD_TEST(what_is_done_to_a_span),
		RCD_TEST(no_write_is_lost),
	};

	return rcd_tap_run("span", tests, sizeof(tests) / sizeof(tests[0]));
}
