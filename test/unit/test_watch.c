/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: memory whose faults a program answers by its own userfaultfd stays where it is, with those
 * answers, whichever way memory is replaced. Method: a userfaultfd for two pages of many, ranges
 * that meet them and that do not, and answers to it afterwards; with the right to stop writers by
 * one and as an ordinary user, with other threads and without.
 */
#include "rcd_cl_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rcd_cl_span.h"
#include "rcd_tap.h"
#include "span_memory.h"

#define USER 64322

/* Pages 2 and 3 are the program's. */
static const struct {
	uint32_t from, to;
	int err;
} table[] = {
	{ 0, PAGES, -EBUSY },
	{ 2, 3, -EBUSY },
	{ 3, PAGES, -EBUSY },
	{ 1, 3, -EBUSY },
	{ 0, 2, 0 },
	{ 4, PAGES, 0 },
};

/* @return whether a fault there is still the program's to be answered, and is answered */
static bool
answers(int uffd, uint8_t *page)
{
	uint8_t answer[PAGE];
	struct uffdio_copy copy = { .dst = (uintptr_t)page, .src = (uintptr_t)answer, .len = PAGE };

	memset(answer, 7, PAGE);
	return ioctl(uffd, UFFDIO_COPY, &copy) == 0 && *page == 7;
}

static void
try_all(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0) {
		rcd_tap_skip("no userfaultfd for this user");
		return;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint8_t *pages = span_map(NULL, PAGES, PROT_READ | PROT_WRITE);
		struct uffdio_register reg = { .range = { .start = (uintptr_t)pages + 2 * PAGE,
						       .len = 2 * PAGE },
			.mode = UFFDIO_REGISTER_MODE_MISSING };
		uintptr_t start = (uintptr_t)pages + table[i].from * PAGE;
		uintptr_t end = (uintptr_t)pages + table[i].to * PAGE;
		struct rcd_cl_span *span;

		CU_ASSERT_EQUAL_FATAL(ioctl(uffd, UFFDIO_REGISTER, &reg), 0);
		CU_ASSERT_EQUAL(rcd_cl_watch_read(start, end), table[i].err);
		CU_ASSERT_EQUAL(span_try(start, end, &span), table[i].err);
		CU_ASSERT(answers(uffd, pages + 2 * PAGE));
		CU_ASSERT(answers(uffd, pages + 3 * PAGE));
		span_end(pages, PAGES);
	}
	close(uffd);
}

static void *
wait_for_end(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) == 0 ? arg : NULL;
}

static void
try_beside_a_thread(void)
{
	pthread_t thread;
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_end, &ends[0]), 0);
	try_all();
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
}

static void
with_the_right(void)
{
	try_all();
	try_beside_a_thread();
}

/* From here on for good. Who changes its user can't be traced, until it says so. */
static void
without_it(void)
{
	if (geteuid() == 0)
		CU_ASSERT_FATAL(setresgid(USER, USER, USER) == 0 &&
			setresuid(USER, USER, USER) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0);
	try_all();
	try_beside_a_thread();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(with_the_right),
		RCD_TEST(without_it),
	};

	return rcd_tap_run("watch", tests, sizeof(tests) / sizeof(tests[0]));
}
