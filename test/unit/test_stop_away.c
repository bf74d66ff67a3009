/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: where /proc tells of another PID namespace nobody is stopped, as the numbers of our threads
 * there are those of other processes here. Method: a process with a thread in a PID namespace of
 * its own that still sees its parent's /proc.
 */
#include "rcd_cl_stop.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_tap.h"

#define PATIENCE_NS 100000000

/* Its search for leaks makes a process, which is not of our PID namespace then. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static int called;

static int
count_call(void *arg)
{
	(void)arg;
	called++;
	return -77;
}

static void *
wait_for_ever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* @return what stopping says; 0: it was not tried as it should be */
static int
stop_there(void)
{
	pthread_t thread;
	int err;

	if (pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
		return 0;
	err = rcd_cl_stop_others(count_call, NULL, PATIENCE_NS);
	return called == (err == -77) ? -err : 0;
}

static void
proc_of_another_namespace(void)
{
	int status;
	pid_t child;

	if (unshare(CLONE_NEWPID) != 0) {
		rcd_tap_skip("no PID namespace for this user");
		return;
	}
	child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0)
		_exit(stop_there());
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), EPERM);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(proc_of_another_namespace),
	};

	return rcd_tap_run("stop_away", tests, sizeof(tests) / sizeof(tests[0]));
}
