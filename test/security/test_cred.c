/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: the engine takes no process for another, and gives none a right that it got after it
 * connected. Method: the engine's own functions; a process that gains rights at the moment which is
 * the worst, between two looks at it.
 */
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_cred.h"
#include "rcd_engine_priv.h"

#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_tap.h"

#define NOBODY     65534
#define GROUPS_MAX 65536

/** A user's process that can gain a right, as by executing a file that has some. */
static struct {
	pid_t pid;
	int gain; /**< writing end */
	int done; /**< reading end: it did as it was told */
} program;

static bool at_stat; /**< it gains the right when somebody has looked whose it is */

static void
tell_program(void)
{
	char byte = 0;

	if (write(program.gain, &byte, 1) != 1 || read(program.done, &byte, 1) != 1)
		_exit(2);
}

/* Both names of one function, as the compiler may call it. */
int
__real_stat(const char *path, struct stat *stat);
int
__real_stat64(const char *path, struct stat *stat);
int
__wrap_stat(const char *path, struct stat *stat);
int
__wrap_stat64(const char *path, struct stat *stat);

static void
looked_at(const char *path)
{
	char its[64];

	snprintf(its, sizeof(its), "/proc/%d/status", (int)program.pid);
	if (!at_stat || strcmp(path, its) != 0)
		return;
	at_stat = false;
	tell_program();
}

int
__wrap_stat(const char *path, struct stat *stat)
{
	int err = __real_stat(path, stat);

	looked_at(path);
	return err;
}

int
__wrap_stat64(const char *path, struct stat *stat)
{
	int err = __real_stat64(path, stat);

	looked_at(path);
	return err;
}

/* Have one right, in effect or only to be taken. */
static void
hold(uint32_t permitted, uint32_t effective)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .permitted = permitted,
		.effective = effective } };

	if (syscall(SYS_capset, &header, data) != 0)
		_exit(3);
}

/* The kernel lets nobody look into a program that gained rights: its files in /proc are root's. */
static void
be_program(int gain, int done)
{
	char byte;

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
		_exit(4);
	hold(1u << RCD_CAP_NET_RAW, 0);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (read(gain, &byte, 1) != 1 || write(done, &byte, 1) != 1 || read(gain, &byte, 1) != 1)
		_exit(5);
	hold(1u << RCD_CAP_NET_RAW, 1u << RCD_CAP_NET_RAW);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (write(done, &byte, 1) != 1)
		_exit(6);
	pause();
}

static void
start_program(void)
{
	int gain[2], done[2];

	CU_ASSERT_EQUAL_FATAL(pipe(gain), 0);
	CU_ASSERT_EQUAL_FATAL(pipe(done), 0);
	program.gain = gain[1];
	program.done = done[0];
	fflush(stdout);
	program.pid = fork();
	if (program.pid == 0) {
		close(gain[1]);
		close(done[0]);
		be_program(gain[0], done[1]);
		_exit(0);
	}
	close(gain[0]);
	close(done[1]);
	/* It is a user's from here on. */
	tell_program();
}

static void
end_program(void)
{
	kill(program.pid, SIGKILL);
	waitpid(program.pid, NULL, 0);
	close(program.gain);
	close(program.done);
}

/* What the engine says that a process may. */
static uint64_t
rights_of(pid_t pid, uid_t uid)
{
	struct rcd_conn conn = { .pid = pid, .uid = uid };

	rcd_cred_read(&conn);
	return conn.caps;
}

static void
rights_gained_between_looks(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct own[2] = { { .effective = 0 } };

	if (getuid() != 0) {
		rcd_tap_skip("needs root, to become another user");
		return;
	}
	CU_ASSERT_EQUAL(syscall(SYS_capget, &header, own), 0);
	CU_ASSERT_EQUAL((uint32_t)rights_of(getpid(), 0), own[0].effective);
	start_program();
	CU_ASSERT_EQUAL(rights_of(program.pid, NOBODY), 0);
	at_stat = true;
	CU_ASSERT_EQUAL(rights_of(program.pid, NOBODY), 0);
	CU_ASSERT_FALSE(at_stat);
	/* Nor later. */
	CU_ASSERT_EQUAL(rights_of(program.pid, NOBODY), 0);
	CU_ASSERT_EQUAL(rights_of(program.pid, 0), 0);
	end_program();
}

/* Of root's, who has any: the lines behind that of its groups have to be found. */
static void
rights_behind_many_groups(void)
{
	static gid_t before[GROUPS_MAX], many[GROUPS_MAX];
	int count = getgroups(GROUPS_MAX, before);
	uint64_t rights = rights_of(getpid(), 0);

	for (size_t i = 0; i < GROUPS_MAX; i++)
		many[i] = (gid_t)(4000000000u + i);
	if (getuid() != 0 || count < 0 || setgroups(1, many) != 0) {
		rcd_tap_skip("needs root, to be in many groups");
		return;
	}
	CU_ASSERT_NOT_EQUAL(rights, 0);
	/* Pages end in all places of the lines that follow. */
	for (size_t i = 2; i < 800; i++) {
		CU_ASSERT_EQUAL_FATAL(setgroups(i, many), 0);
		CU_ASSERT_EQUAL_FATAL(rights_of(getpid(), 0), rights);
	}
	CU_ASSERT_EQUAL_FATAL(setgroups(GROUPS_MAX, many), 0);
	CU_ASSERT_EQUAL(rights_of(getpid(), 0), rights);
	CU_ASSERT_EQUAL(setgroups((size_t)count, before), 0);
}

static void
processes_without_a_number(void)
{
	static struct rcd_conn asks = { .serial = 1, .uid = 1000 };
	static struct rcd_conn first = { .serial = 2, .uid = 1000 };
	static struct rcd_conn other = { .serial = 3, .uid = 1000 };
	static struct rcd_context context;

	LIST_INSERT_HEAD(&context.conns, &first, context_link);
	LIST_INSERT_AFTER(&first, &other, context_link);
	first.context = other.context = &context;
	asks.pid = first.pid = 77;
	CU_ASSERT_TRUE(rcd_cred_same_process(&asks, &context));
	first.uid = 1001;
	CU_ASSERT_FALSE(rcd_cred_same_process(&asks, &context));
	other.pid = 77;
	CU_ASSERT_TRUE(rcd_cred_same_process(&asks, &context));
	other.pid = 0;
	first.uid = 1000;
	/* The number of all that the engine's PID namespace does not see. */
	asks.pid = first.pid = 0;
	CU_ASSERT_FALSE(rcd_cred_same_process(&asks, &context));
	first.pid = 77;
	CU_ASSERT_FALSE(rcd_cred_same_process(&asks, &context));
	/* The context's own connections need none. */
	CU_ASSERT_TRUE(rcd_cred_same_process(&other, &context));
	asks.context = &context;
	CU_ASSERT_TRUE(rcd_cred_same_process(&asks, &context));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "H8 rights that come between two looks do not count",
			rights_gained_between_looks },
		{ "H9 processes without a number are not one", processes_without_a_number },
		{ "H11 rights behind many groups are found whole", rights_behind_many_groups },
	};

	return rcd_tap_run("cred", tests, sizeof(tests) / sizeof(tests[0]));
}
