/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of a process, for tests of its spans.
 */
#include "span_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_tap.h"

#define TRIES 600 /* of span_try() */

uint32_t span_forgotten;

void
span_forget(struct rcd_cl_span *span)
{
	CU_ASSERT(span->stale && span->refs == 0);
	span_forgotten++;
}

uint8_t *
span_map(void *at, size_t pages, int prot)
{
	void *map = mmap(at, pages * PAGE, prot,
		MAP_PRIVATE | MAP_ANONYMOUS | (at != NULL ? MAP_FIXED : 0), -1, 0);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(map, MAP_FAILED);
	return map;
}

void
span_mark(uint8_t *memory, size_t pages, uint8_t seed)
{
	for (size_t i = 0; i < pages; i++) {
		if (i % 3 == 2)
			continue;
		memory[i * PAGE] = seed;
		memory[i * PAGE + PAGE - 1] = (uint8_t)(seed + i);
	}
}

bool
span_marked(const uint8_t *memory, size_t pages, uint8_t seed)
{
	bool right = true;

	for (size_t i = 0; i < pages; i++) {
		bool none = i % 3 == 2;

		right = right && memory[i * PAGE] == (none ? 0 : seed) &&
			memory[i * PAGE + PAGE - 1] == (none ? 0 : (uint8_t)(seed + i));
	}
	return right;
}

int
span_try(uintptr_t start, uintptr_t end, struct rcd_cl_span **span)
{
	int err = rcd_cl_span_make(start, end, span);

	for (int i = 0; i < TRIES && (err == -ETIMEDOUT || err == -EAGAIN); i++) {
		usleep(100000);
		err = rcd_cl_span_make(start, end, span);
	}
	return err;
}

struct rcd_cl_span *
span_make(uint8_t *memory, size_t pages)
{
	struct rcd_cl_span *span = NULL;
	uintptr_t start = (uintptr_t)memory;

	CU_ASSERT_EQUAL_FATAL(span_try(start, start + pages * PAGE, &span), 0);
	CU_ASSERT_EQUAL(span->start, start);
	CU_ASSERT_EQUAL(span->end, start + pages * PAGE);
	CU_ASSERT_EQUAL(span->refs, 0);
	CU_ASSERT_FALSE(span->stale);
	return span;
}

struct rcd_cl_vma
span_vma(const uint8_t *page)
{
	struct rcd_cl_vma vma = { .start = 0 };
	struct rcd_cl_vma *vmas;
	int count = rcd_cl_vmas((uintptr_t)page, (uintptr_t)page + PAGE, &vmas);

	CU_ASSERT_EQUAL_FATAL(count, 1);
	vma = vmas[0];
	free(vmas);
	return vma;
}

static void
span_memory_count(struct rcd_cl_span *span, void *arg)
{
	CU_ASSERT(span->start < span->end);
	(*(uint32_t *)arg)++;
}

uint32_t
span_count(void)
{
	uint32_t count = 0;

	rcd_cl_span_each(span_memory_count, &count);
	return count;
}

void
span_end(uint8_t *memory, size_t pages)
{
	uint32_t before = span_count();

	munmap(memory, pages * PAGE);
	span_forgotten = 0;
	rcd_cl_span_sweep(span_forget);
	CU_ASSERT_EQUAL(span_count(), before - span_forgotten);
}
