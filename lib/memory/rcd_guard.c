/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The window of client memory and its SIGBUS handler.
 */
#include "rcd_guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rcd_bits.h"
#include "rcd_limits.h"
#include "rcd_ranges.h"
#include "rcd_thread.h"

#define ALIGN ((size_t)2 << 20)
#ifdef __SANITIZE_THREAD__
#define WINDOW_LOG2 39 /**< of what ThreadSanitizer leaves a program */
#else
#define WINDOW_LOG2 43 /**< 8 TiB of addresses: a sixteenth of what a process has */
#endif
#define GRANULES (((size_t)1 << WINDOW_LOG2) / ALIGN)
#define PAGE     ((size_t)4096)
#define FAULTS   64 /**< reports kept; more at once are one offence anyway */

#define RANGES 64 /**< free ones at the beginning; more as more is mapped */

/* A part of the window. */
struct pool {
	uintptr_t start;
	size_t len;
	struct rcd_ranges free;
};

/* What a fault replaces. */
struct cover {
	uintptr_t start;
	size_t len;
};

static struct {
	uintptr_t start;
	size_t len;
	/* By granule of 2 MiB; written before anything is mapped there, read by the handler. */
	uint64_t *marks; /**< bits of granules in which a cover's reservation begins */
	struct cover *covers;
	struct pool pools[2];
	void *nowhere;
	struct sigaction old;
	/* Filled by the handler in any thread, emptied by the control thread. 0: no report. */
	uintptr_t faults[FAULTS];
	uint32_t fault_count; /**< reports so far: the next one's place */
	void (*tell)(void *arg);
	void *tell_arg;
} guard;

static size_t
guard_round_up(size_t len)
{
	return rcd_align_up(len, ALIGN);
}

static size_t
guard_granule(uintptr_t addr)
{
	return addr / ALIGN - guard.start / ALIGN;
}

/*
 * What is mapped around an address. Looks back to the beginning of a reservation, 64 granules at a
 * time: 8192 steps for the longest region.
 */
static const struct cover *
guard_cover_of(uintptr_t addr)
{
	size_t at = guard_granule(addr);
	size_t word = at / 64;
	uint64_t bits = __atomic_load_n(&guard.marks[word], __ATOMIC_ACQUIRE) &
		(UINT64_MAX >> (63 - at % 64));
	const struct cover *cover;

	while (bits == 0 && word > 0)
		bits = __atomic_load_n(&guard.marks[--word], __ATOMIC_ACQUIRE);
	if (bits == 0)
		return NULL;
	cover = &guard.covers[word * 64 + 63 - (size_t)__builtin_clzll(bits)];
	return addr - cover->start < cover->len ? cover : NULL;
}

static bool
guard_patch(uintptr_t addr)
{
	static const size_t sizes[] = { PAGE, (size_t)2 << 20, (size_t)1 << 30 };
	const struct cover *cover = guard_cover_of(addr);
	const int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (cover == NULL)
		return false;
	if (mmap((void *)cover->start, cover->len, PROT_READ | PROT_WRITE, flags, -1, 0) !=
		MAP_FAILED)
		return true;
	/* A kernel that counts all memory beforehand: the page, from the engine's reserve. */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uintptr_t page = addr / sizes[i] * sizes[i];

		if (page >= cover->start && sizes[i] <= cover->len - (page - cover->start) &&
			mmap((void *)page, sizes[i], PROT_READ | PROT_WRITE, flags, -1, 0) !=
				MAP_FAILED)
			return true;
	}
	return false;
}

/* Whoever had the fault knows nothing of it, errno included. */
static void
guard_tell(void)
{
	int before = errno;

	if (guard.tell != NULL)
		guard.tell(guard.tell_arg);
	errno = before;
}

static void
guard_on_sigbus(int signo, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;

	if (addr - guard.start < guard.len && guard_patch(addr)) {
		uint32_t slot = __atomic_fetch_add(&guard.fault_count, 1, __ATOMIC_RELAXED);

		__atomic_store_n(&guard.faults[slot % FAULTS], addr, __ATOMIC_RELEASE);
		guard_tell();
		return;
	}
	/* Not ours: as if this handler were not there. */
	if (guard.old.sa_flags & SA_SIGINFO) {
		guard.old.sa_sigaction(signo, info, context);
	} else {
		sigaction(SIGBUS, &guard.old, NULL);
		raise(SIGBUS);
	}
}

static void
guard_give_back(void)
{
	munmap((void *)guard.start, guard.len);
	munmap(guard.covers, (GRANULES + 1) * sizeof(struct cover));
	free(guard.marks);
	rcd_ranges_fini(&guard.pools[0].free);
	rcd_ranges_fini(&guard.pools[1].free);
	memset(&guard, 0, sizeof(guard));
}

int
rcd_guard_init(void)
{
	struct sigaction action = { .sa_sigaction = guard_on_sigbus,
		.sa_flags = SA_SIGINFO | SA_NODEFER };
	void *window;

	RCD_ON_CONTROL();
	if (guard.len != 0)
		return -EBUSY;
	window = mmap(NULL, (size_t)1 << WINDOW_LOG2, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (window == MAP_FAILED)
		return -ENOMEM;
	/* Addresses; memory is taken where something is covered. */
	guard.covers = mmap(NULL, (GRANULES + 1) * sizeof(struct cover), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	guard.marks = calloc(GRANULES / 64 + 1, sizeof(guard.marks[0]));
	if (guard.covers == MAP_FAILED || guard.marks == NULL) {
		munmap(window, (size_t)1 << WINDOW_LOG2);
		if (guard.covers != MAP_FAILED)
			munmap(guard.covers, (GRANULES + 1) * sizeof(struct cover));
		free(guard.marks);
		memset(&guard, 0, sizeof(guard));
		return -ENOMEM;
	}
	guard.start = (uintptr_t)window;
	guard.len = (size_t)1 << WINDOW_LOG2;
	for (int i = 0; i < 2; i++) {
		struct pool *pool = &guard.pools[i];

		pool->start = guard_round_up(guard.start + (size_t)i * (guard.len / 2));
		pool->len = guard.len / 2 - ALIGN;
		if (rcd_ranges_init(&pool->free, RANGES) != 0) {
			guard_give_back();
			return -ENOMEM;
		}
		rcd_ranges_give(&pool->free, pool->start, pool->len);
	}
	guard.nowhere = rcd_guard_reserve(RCD_GUARD_COPIED, RCD_MSG_MAX_BYTES);
	sigemptyset(&action.sa_mask);
	sigaction(SIGBUS, &action, &guard.old);
	return 0;
}

void
rcd_guard_fini(void)
{
	RCD_ON_CONTROL();
	if (guard.len == 0)
		return;
	sigaction(SIGBUS, &guard.old, NULL);
	guard_give_back();
}

void *
rcd_guard_reserve(enum rcd_guard_part part, size_t len)
{
	struct pool *pool = &guard.pools[part];
	uint64_t start;

	RCD_ON_CONTROL();
	if (len == 0 || len > pool->len)
		return NULL;
	start = rcd_ranges_take(&pool->free, guard_round_up(len));
	return start != RCD_RANGES_NONE ? (void *)(uintptr_t)start : NULL;
}

void
rcd_guard_cover(const void *reserved, void *start, size_t len)
{
	size_t at = guard_granule((uintptr_t)reserved);

	RCD_ON_CONTROL();
	guard.covers[at] = (struct cover){ (uintptr_t)start, len };
	__atomic_fetch_or(&guard.marks[at / 64], UINT64_C(1) << (at % 64), __ATOMIC_RELEASE);
}

void
rcd_guard_discard(uintptr_t addr)
{
	const struct cover *cover = guard_cover_of(addr);

	RCD_ON_CONTROL();
	if (cover != NULL)
		madvise((void *)cover->start, cover->len, MADV_DONTNEED);
}

/*
 * Reports of addresses that are nobody's any more are void: nothing faults there by now, and what
 * comes next to these addresses has done nothing. @return whether there were some
 */
static bool
guard_void_reports(uintptr_t start, size_t len)
{
	bool some = false;

	for (size_t i = 0; i < FAULTS; i++) {
		uintptr_t addr = __atomic_load_n(&guard.faults[i], __ATOMIC_ACQUIRE);

		/* A report of others that takes this place meanwhile stays. */
		if (addr != 0 && addr - start < len)
			some |= __atomic_compare_exchange_n(&guard.faults[i], &addr, 0, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
	return some;
}

bool
rcd_guard_release(void *start, size_t len)
{
	uintptr_t at = (uintptr_t)start;
	bool lost;

	RCD_ON_CONTROL();
	len = guard_round_up(len);
	lost = guard_void_reports(at, len);
	if (mmap(start, len, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		    0) == MAP_FAILED)
		return lost; /* the addresses stay taken, which harms nobody */
	__atomic_fetch_and(&guard.marks[guard_granule(at) / 64],
		~(UINT64_C(1) << (guard_granule(at) % 64)), __ATOMIC_RELEASE);
	/* Without memory for the list the addresses stay taken, which harms nobody. */
	rcd_ranges_give(&guard.pools[at >= guard.pools[1].start].free, at, len);
	return lost;
}

void *
rcd_guard_nowhere(void)
{
	RCD_ON_CONTROL();
	return guard.nowhere;
}

void
rcd_guard_window(enum rcd_guard_part part, uintptr_t *start, size_t *len)
{
	RCD_ON_CONTROL();
	*start = guard.pools[part].start;
	*len = guard.pools[part].len;
}

size_t
rcd_guard_used(void)
{
	size_t used = 0;

	RCD_ON_CONTROL();
	for (int i = 0; i < 2; i++) {
		const struct pool *pool = &guard.pools[i];

		used += pool->len - rcd_ranges_sum(&pool->free);
	}
	return used;
}

void
rcd_guard_tell(void (*fn)(void *arg), void *arg)
{
	RCD_ON_CONTROL();
	guard.tell_arg = arg;
	guard.tell = fn;
}

bool
rcd_guard_fault(uintptr_t *addr)
{
	RCD_ON_CONTROL();
	for (size_t i = 0; i < FAULTS; i++) {
		if (__atomic_load_n(&guard.faults[i], __ATOMIC_RELAXED) == 0)
			continue;
		*addr = __atomic_exchange_n(&guard.faults[i], 0, __ATOMIC_ACQUIRE);
		return true;
	}
	return false;
}
