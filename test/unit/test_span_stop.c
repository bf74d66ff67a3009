/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: where other threads can't be stopped, memory is not shared, and that is tried again for as
 * long as it may go, ever less often. Method: an ordinary user's process with two threads; what
 * stops them, and the clock, are the test's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rcd_cl_span.h"
#include "rcd_cl_stop.h"
#include "rcd_tap.h"
#include "span_memory.h"

#define USER   64322
#define SECOND INT64_C(1000000000)

static int64_t now_ns;
static uint32_t attempts;
static int answer; /* 0: they stand still */

int
__wrap_rcd_cl_stop_others(int (*fn)(void *arg), void *arg, int64_t patience_ns);
int
__wrap_clock_gettime(clockid_t clock, struct timespec *time);

int
__wrap_rcd_cl_stop_others(int (*fn)(void *arg), void *arg, int64_t patience_ns)
{
	(void)patience_ns;
	attempts++;
	return answer == 0 ? fn(arg) : answer;
}

int
__wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){ .tv_sec = now_ns / SECOND, .tv_nsec = now_ns % SECOND };
	return 0;
}

static void *
stay(void *arg)
{
	pause();
	return arg;
}

/* @return what sharing a page says, when the threads say so */
static int
try(int said)
{
	uint8_t *page = span_map(NULL, 1, PROT_READ | PROT_WRITE);
	struct rcd_cl_span *span = NULL;

	answer = said;
	attempts = 0;
	return rcd_cl_span_make((uintptr_t)page, (uintptr_t)page + PAGE, &span);
}

/* A function in a process of its own, which nothing has happened to. */
static void
apart(bool (*fn)(int said), int said)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		pthread_t thread;

		now_ns = 1000 * SECOND;
		_exit(pthread_create(&thread, NULL, stay, NULL) == 0 && fn(said) ? 0 : 1);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

static bool
once(int said)
{
	bool right = try(0) == 0 && attempts == 1 && try(said) == said && attempts == 1;

	now_ns += 1000000 * SECOND;
	return right && try(0) == said && attempts == 0;
}

static void
what_will_not_change(void)
{
	apart(once, -EPERM);
	apart(once, -ENOSYS);
	apart(once, -E2BIG);
}

static bool
again(int said)
{
	bool right = true;

	for (uint32_t i = 0; i < 10; i++) {
		int64_t pause_ns = SECOND << (i < 6 ? i : 6);

		right = right && try(said) == said && attempts == 1;
		now_ns += pause_ns - 1;
		right = right && try(0) == said && attempts == 0;
		now_ns++;
	}
	/* One success, and the next failure is the first one. */
	right = right && try(0) == 0 && attempts == 1 && try(said) == said;
	now_ns += SECOND;
	return right && try(0) == 0 && attempts == 1;
}

static void
what_may_pass(void)
{
	apart(again, -ETIMEDOUT);
	apart(again, -EAGAIN);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_will_not_change),
		RCD_TEST(what_may_pass),
	};

	/* Nobody who may use userfaultfd. */
	if (geteuid() == 0 &&
		(setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0 ||
			prctl(PR_SET_DUMPABLE, 1) != 0))
		return 1;
	return rcd_tap_run("span_stop", tests, sizeof(tests) / sizeof(tests[0]));
}
