/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a child has bytes of its own where its parent shares memory with an engine, or none where
 * it is to have none. Method: children that look at their memory, change it, and share it again.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "span_memory.h"

/* @return whether a child's function returned true */
static bool
in_child(bool (*func)(uint8_t *memory), uint8_t *memory)
{
	int status = 1;
	pid_t child;

	rcd_cl_span_check();
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(func(memory) ? 0 : 1);
	CU_ASSERT_FATAL(child > 0);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return status == 0;
}

/* Pages 0-2 and 3-5 are spans, 6 was one and is something else now, 7 never was. */
static bool
has_its_own(uint8_t *memory)
{
	struct rcd_cl_span *span = NULL;
	bool right;

	rcd_cl_span_unshare();
	right = span_marked(memory, 6, PARENT) && memory[6 * PAGE] == 66 && memory[7 * PAGE] == 77;
	memset(memory, CHILD, PAGES * PAGE);
	/* And it may share on its own. */
	right = right && span_count() == 0 &&
		rcd_cl_span_make((uintptr_t)memory, (uintptr_t)memory + 4 * PAGE, &span) == 0 &&
		memory[0] == CHILD && memory[4 * PAGE - 1] == CHILD && span_count() == 1;
	return right;
}

static void
a_child_has_its_own(void)
{
	uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
	struct rcd_cl_span *gone;

	span_mark(memory, 6, PARENT);
	span_make(memory, 3);
	span_make(memory + 3 * PAGE, 3);
	gone = span_make(memory + 6 * PAGE, 1);
	span_map(memory + 6 * PAGE, 1, PROT_READ | PROT_WRITE);
	memory[6 * PAGE] = 66;
	memory[7 * PAGE] = 77;
	CU_ASSERT(in_child(has_its_own, memory));
	CU_ASSERT(gone->stale);
	CU_ASSERT(span_marked(memory, 6, PARENT));
	CU_ASSERT(memory[6 * PAGE] == 66 && memory[7 * PAGE] == 77);
	CU_ASSERT_EQUAL(span_count(), 3);
	span_end(memory, PAGES);
	CU_ASSERT_EQUAL(span_forgotten, 3);
}

static bool
mapped(uint8_t *page)
{
	unsigned char vec;

	return mincore(page, PAGE, &vec) == 0;
}

/* Of four spans of two pages: used before, used later, used no longer, never used. */
static bool
inherits_what_is_free(uint8_t *memory)
{
	rcd_cl_span_unshare();
	return !mapped(memory) && !mapped(memory + 2 * PAGE) && mapped(memory + 4 * PAGE) &&
		mapped(memory + 6 * PAGE) && memory[4 * PAGE] == PARENT + 2 &&
		memory[6 * PAGE] == PARENT + 3;
}

/* The last one: what is asked for here holds for the rest of a process. */
static void
kept_from_children(void)
{
	uint8_t *memory = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
	struct rcd_cl_span *spans[4];

	for (uint32_t i = 0; i < 4; i++) {
		spans[i] = span_make(memory + (size_t)2 * i * PAGE, 2);
		memory[(size_t)2 * i * PAGE] = (uint8_t)(PARENT + i);
	}
	rcd_cl_span_ref(spans[0]);
	rcd_cl_span_ref(spans[2]);
	CU_ASSERT_EQUAL(rcd_cl_span_dontfork(), 0);
	rcd_cl_span_ref(spans[1]);
	rcd_cl_span_unref(spans[2]);
	/* Twice used is used until the second end. */
	rcd_cl_span_ref(spans[1]);
	rcd_cl_span_unref(spans[1]);
	CU_ASSERT(in_child(inherits_what_is_free, memory));
	CU_ASSERT_EQUAL(memory[0], PARENT);
	/* What is somewhere else by now is nobody's to forbid. */
	span_map(memory, 2, PROT_READ | PROT_WRITE);
	rcd_cl_span_unref(spans[0]);
	rcd_cl_span_unref(spans[1]);
	span_end(memory, PAGES);
	CU_ASSERT_EQUAL(span_forgotten, 4);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(a_child_has_its_own),
		RCD_TEST(kept_from_children),
	};

	return rcd_tap_run("span_child", tests, sizeof(tests) / sizeof(tests[0]));
}
