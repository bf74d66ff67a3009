/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a function that a wrong thread calls ends the process and tells whose it is and who called
 * it; the right one may. Method: functions of the libraries, called in processes of their own by
 * threads of each kind. Release builds check nothing.
 */
#include "rcd_thread.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_guard.h"
#include "rcd_tap.h"
#include "rcd_ucopied.h"

#ifdef RCD_DEBUG

static const struct lcore {
	uint32_t index;
} lcores[2] = { { 0 }, { 1 } };

/* Threads, of which there are others or not. */

static void
is_nobody(void (*fn)(void))
{
	fn();
}

static void
is_control(void (*fn)(void))
{
	rcd_thread_be_control();
	fn();
}

static void
is_lcore(void (*fn)(void))
{
	struct rcd_thread_place place = rcd_thread_enter(&lcores[1], lcores[1].index);

	fn();
	rcd_thread_leave(place);
}

static void
is_control_on_lcore(void (*fn)(void))
{
	rcd_thread_be_control();
	is_lcore(fn);
}

static void
is_control_behind_lcore(void (*fn)(void))
{
	rcd_thread_be_control();
	rcd_thread_leave(rcd_thread_enter(&lcores[1], lcores[1].index));
	fn();
}

static void *
run_as_stranger(void *arg)
{
	void (*fn)(void);

	memcpy(&fn, arg, sizeof(fn));
	pthread_setname_np(pthread_self(), "stranger");
	fn();
	return NULL;
}

static void
is_stranger(void (*fn)(void))
{
	pthread_t thread;

	rcd_thread_be_control();
	if (pthread_create(&thread, NULL, run_as_stranger, &fn) == 0)
		pthread_join(thread, NULL);
}

static void
is_stranger_behind(void (*fn)(void))
{
	rcd_thread_be_control();
	rcd_thread_end_control();
	fn();
}

/* Functions. */

static void
calls_control(void)
{
	rcd_guard_used();
}

static void
calls_lcores(void)
{
	struct rcd_ucopied copied = { .count = 0 };

	rcd_ucopied_swap(&copied);
}

static void
works_on(const struct lcore *lcore)
{
	RCD_ON_LCORE(lcore);
}

static void
calls_lcore(void)
{
	works_on(&lcores[1]);
}

static void
calls_other_lcore(void)
{
	works_on(&lcores[0]);
}

/* What it says on stderr. @return whether it ended by SIGABRT */
static bool
aborts(void (*as)(void (*fn)(void)), void (*fn)(void), char *said, size_t size)
{
	const struct rlimit no_core = { 0 };
	int ends[2], status = 0;
	ssize_t len;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		dup2(ends[1], STDERR_FILENO);
		as(fn);
		_exit(0);
	}
	close(ends[1]);
	len = read(ends[0], said, size - 1);
	said[len > 0 ? len : 0] = '\0';
	close(ends[0]);
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#define CONTROL "rcd_guard_used() belongs to the control thread, and is called "
#define LCORES  "rcd_ucopied_swap() belongs to lcores, and is called "
#define FIRST   "works_on() belongs to lcore 0, and is called "
#define SECOND  "works_on() belongs to lcore 1, and is called "

static void
wrong_threads_are_told(void)
{
	static const struct {
		void (*as)(void (*fn)(void));
		void (*fn)(void);
		const char *said; /**< NULL: nothing, and it goes on */
	} rows[] = {
		{ is_nobody, calls_control, NULL },
		{ is_nobody, calls_lcores, NULL },
		{ is_nobody, calls_lcore, NULL },
		{ is_control, calls_control, NULL },
		{ is_control, calls_lcores, LCORES "in the control thread" },
		{ is_control, calls_lcore, SECOND "in the control thread" },
		{ is_lcore, calls_control, CONTROL "on lcore 1" },
		{ is_lcore, calls_lcores, NULL },
		{ is_lcore, calls_lcore, NULL },
		{ is_lcore, calls_other_lcore, FIRST "on lcore 1" },
		{ is_control_on_lcore, calls_control, CONTROL "on lcore 1" },
		{ is_control_on_lcore, calls_lcore, NULL },
		{ is_control_on_lcore, calls_other_lcore, FIRST "on lcore 1" },
		{ is_control_behind_lcore, calls_control, NULL },
		{ is_control_behind_lcore, calls_lcore, SECOND "in the control thread" },
		{ is_stranger, calls_control, CONTROL "in another one, stranger" },
		{ is_stranger, calls_lcores, LCORES "in another one, stranger" },
		{ is_stranger, calls_lcore, SECOND "in another one, stranger" },
		{ is_stranger_behind, calls_control, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char said[1000];
		bool aborted = aborts(rows[i].as, rows[i].fn, said, sizeof(said));

		CU_ASSERT_EQUAL(aborted, rows[i].said != NULL);
		CU_ASSERT(rows[i].said != NULL ? strstr(said, rows[i].said) != NULL
					       : said[0] == '\0');
		if (aborted != (rows[i].said != NULL) ||
			(aborted && strstr(said, rows[i].said) == NULL))
			printf("# row %zu: %s\n", i, said);
	}
}

#else

static void
wrong_threads_are_told(void)
{
	rcd_tap_skip("a release build: threads are not checked");
}

#endif

int
main(void)
{
	static const struct rcd_test tests[] = { RCD_TEST(wrong_threads_are_told) };

	return rcd_tap_run("thread", tests, sizeof(tests) / sizeof(tests[0]));
}
