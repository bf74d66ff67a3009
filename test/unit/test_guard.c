/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a fault in the window replaces what is mapped there, all of it and nothing else, whatever
 * the process has used up. Method: files that shrink under their mappings, in child processes, one
 * of which has as many mappings as the kernel allows.
 */
#include "rcd_guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_tap.h"

#define PAGE ((size_t)4096)
#define HUGE ((size_t)2 << 20)

struct place {
	uint8_t *base;
	size_t len;
	int fd;
};

/* A file of this length at addresses of its own, filled. */
static struct place
map(size_t len, uint8_t byte)
{
	struct place place = { .len = len, .fd = memfd_create("t", 0) };

	place.base = rcd_guard_reserve(RCD_GUARD_SHARED, len);
	if (place.base == NULL || ftruncate(place.fd, (off_t)len) != 0)
		_exit(2);
	rcd_guard_cover(place.base, place.base, len);
	if (mmap(place.base, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, place.fd, 0) ==
		MAP_FAILED)
		_exit(3);
	memset(place.base, byte, len);
	return place;
}

static bool
all(const struct place *place, uint8_t byte)
{
	for (size_t i = 0; i < place->len; i += PAGE)
		if (place->base[i] != byte)
			return false;
	return true;
}

/* Use up all mappings: each page of a piece has other rights than its neighbours. */
static size_t
use_up(void)
{
	size_t pages = 1u << 18;
	size_t count = 0;
	uint8_t *piece = mmap(
		NULL, pages * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	while (count < pages / 2 && mprotect(piece + count * 2 * PAGE, PAGE, PROT_READ) == 0)
		count++;
	return count < pages / 2 ? count : 0;
}

static void
count_fault(void *arg)
{
	++*(uint32_t *)arg;
	errno = EIO;
}

/* Three files side by side; the middle one shrinks. @return 0, or what was wrong */
static int
shrink(bool full)
{
	struct place left, middle, right;
	volatile uint8_t *at;
	uintptr_t addr = 0;
	uint32_t told = 0;

	if (rcd_guard_init() != 0)
		return 10;
	rcd_guard_tell(count_fault, &told);
	left = map(2 * HUGE, 1);
	middle = map(2 * HUGE + 3 * PAGE, 2);
	right = map(HUGE, 3);
	if (full && use_up() == 0)
		return 77;
	if (ftruncate(middle.fd, 0) != 0)
		return 11;
	at = middle.base;
	errno = 0;
	at[HUGE + 5] = 9;
	/* What a handler does, no compiler sees. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	/* Somebody is told, and whoever had the fault does not notice. */
	if (told != 1 || errno != 0)
		return 17;
	if (at[HUGE + 5] != 9 || at[HUGE + 6] != 0)
		return 12;
	/* One fault was all: the rest of the file is gone with it. */
	at[middle.len - 1] = 7;
	at[0] = 7;
	if (!rcd_guard_fault(&addr) || addr != (uintptr_t)middle.base + HUGE + 5)
		return 13;
	if (rcd_guard_fault(&addr))
		return 14;
	if (!all(&left, 1) || !all(&right, 3))
		return 15;
	rcd_guard_discard(addr);
	if (at[HUGE + 5] != 0 || at[0] != 0)
		return 16;
	rcd_guard_release(middle.base, middle.len);
	return all(&left, 1) && all(&right, 3) ? 0 : 17;
}

/* A fault in memory that is given back before anybody asks. @return 0, or what was wrong */
static int
return_at_once(bool full)
{
	struct place left, lost;
	uintptr_t addr;

	(void)full;
	if (rcd_guard_init() != 0)
		return 10;
	left = map(2 * HUGE, 1);
	lost = map(HUGE + PAGE, 2);
	if (ftruncate(left.fd, 0) != 0 || ftruncate(lost.fd, 0) != 0)
		return 11;
	((volatile uint8_t *)lost.base)[HUGE] = 9;
	((volatile uint8_t *)left.base)[2 * HUGE - 1] = 9;
	if (!rcd_guard_release(lost.base, lost.len))
		return 12;
	/* The same addresses, somebody else's: nothing is known of them. */
	if (map(HUGE + PAGE, 3).base != lost.base)
		return 13;
	if (!rcd_guard_fault(&addr) || addr != (uintptr_t)left.base + 2 * HUGE - 1)
		return 14;
	if (rcd_guard_fault(&addr))
		return 15;
	return rcd_guard_release(lost.base, lost.len) ? 16 : 0;
}

static int
in_child(int (*run)(bool full), bool full)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(run(full));
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void
whole_mapping(void)
{
	int status = in_child(shrink, false);

	if (status != 0)
		printf("# %d\n", status);
	CU_ASSERT_EQUAL(status, 0);
}

static void
without_a_mapping_left(void)
{
	int status = in_child(shrink, true);

	/* A machine that lets a process have more than this test can make. */
	if (status == 77) {
		rcd_tap_skip("no end of mappings here");
		return;
	}
#ifdef __SANITIZE_ADDRESS__
	/* That of gcc 14 maps something of its own for each thread and signal, and ends without. */
	if (status == 128 + SIGABRT) {
		rcd_tap_skip("the sanitizer has no mapping left for itself");
		return;
	}
#endif
	if (status != 0)
		printf("# %d\n", status);
	CU_ASSERT_EQUAL(status, 0);
}

static void
returned_memory(void)
{
	int status = in_child(return_at_once, false);

	if (status != 0)
		printf("# %d\n", status);
	CU_ASSERT_EQUAL(status, 0);
}

static int
elsewhere(void)
{
	struct place lost;
	volatile uint8_t *outside;

	if (rcd_guard_init() != 0)
		return 10;
	lost = map(HUGE, 1);
	outside = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, lost.fd, 0);
	if (ftruncate(lost.fd, 0) != 0)
		return 11;
	outside[0] = 1;
	return 12;
}

/* What is not in the window goes on being fatal. */
static void
faults_elsewhere(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(elsewhere());
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFSIGNALED(status) || WEXITSTATUS(status) == 1);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S6 a fault replaces one mapping and not its neighbours", whole_mapping },
		{ "S6 a fault is mended without a mapping left", without_a_mapping_left },
		{ "H1 a fault is not told of addresses that were given back", returned_memory },
		RCD_TEST(faults_elsewhere),
	};

	return rcd_tap_run("guard", tests, sizeof(tests) / sizeof(tests[0]));
}
