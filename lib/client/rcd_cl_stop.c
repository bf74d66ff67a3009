/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Stopping threads by ptrace, from a process that shares their memory.
 */
#include "rcd_cl_stop.h"

#include <errno.h>

#ifdef __x86_64__

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 4096
#define STACK_BYTES (64u << 10)
#define LIST_BYTES  4096
#define STAT_BYTES  256 /**< of a thread's line: its number, its name, its state */
#define NAME_BYTES  16

/* The kernel's own: begin the call again, unless a handler runs (include/linux/errno.h). */
#define ERESTARTNOHAND 514

#define NT_REGISTERS 1 /* NT_PRSTATUS */

/* In a mapping of its own, which no thread has registered. */
struct stop {
	int (*fn)(void *arg);
	void *arg;
	int tasks; /**< folder of threads */
	int caller;
	int result;
	uint32_t count;
	int64_t patience_ns;
	int64_t deadline_ns;
	int threads[THREADS_MAX];
	char list[LIST_BYTES];
	char stack[STACK_BYTES] __attribute__((aligned(16)));
};

struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* From here to cl_stop_run(): in the child, with system calls by hand alone. */

static int64_t
cl_stop_now(void)
{
	struct timespec now;

	syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* With a part done they tell of that part; sockets without a time limit restart by themselves. */
static bool
cl_stop_restarts(uint64_t call)
{
	switch (call) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_uring_enter:
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
		return true;
	}
	return false;
}

/* Calls that have done nothing and would say EINTR although no signal is there. */
static void
cl_stop_begin_again(int thread)
{
	struct user_regs_struct regs;
	struct iovec io = { .iov_base = &regs, .iov_len = sizeof(regs) };

	if (syscall(SYS_ptrace, PTRACE_GETREGSET, thread, NT_REGISTERS, &io) != 0 ||
		(int64_t)regs.orig_rax < 0 || (int64_t)regs.rax != -EINTR ||
		!cl_stop_restarts(regs.orig_rax))
		return;
	regs.rax = (uint64_t)-ERESTARTNOHAND;
	syscall(SYS_ptrace, PTRACE_SETREGSET, thread, NT_REGISTERS, &io);
}

/* @return 0; 1: it has ended; -ETIMEDOUT */
static int
cl_stop_wait(const struct stop *stop, int thread)
{
	const struct timespec moment = { .tv_nsec = 20000 };

	for (;;) {
		int status = 0;
		long found = syscall(SYS_wait4, thread, &status, __WALL | WNOHANG, NULL);

		if (found < 0 || (found > 0 && !WIFSTOPPED(status)))
			return 1;
		if (found > 0 && status >> 16 == PTRACE_EVENT_STOP) {
			cl_stop_begin_again(thread);
			return 0;
		}
		/* A signal that came first is its own. */
		if (found > 0)
			syscall(SYS_ptrace, PTRACE_CONT, thread, 0, (long)WSTOPSIG(status));
		else if (cl_stop_now() > stop->deadline_ns)
			return -ETIMEDOUT;
		else
			syscall(SYS_nanosleep, &moment, NULL);
	}
}

/*
 * A thread that can't be traced. A first thread that has ended is listed for as long as the others
 * live. @return 0: it has ended, and touches no memory any more; 1: it is not there; -EPERM
 */
static int
cl_stop_refused(const struct stop *stop, const char *name)
{
	char text[STAT_BYTES] = "";
	long at = 0, bytes;
	int file;

	while (name[at] != '\0' && at < NAME_BYTES) {
		text[at] = name[at];
		at++;
	}
	for (const char *end = "/stat"; *end != '\0'; end++)
		text[at++] = *end;
	file = (int)syscall(SYS_openat, stop->tasks, text, O_RDONLY);
	bytes = file < 0 ? -1 : syscall(SYS_read, file, text, sizeof(text));
	if (bytes < 0)
		return errno == ENOENT || errno == ESRCH ? 1 : -EPERM;
	syscall(SYS_close, file);
	/* Before the state is its name, which may have any brackets. */
	for (at = bytes - 3; at >= 0; at--)
		if (text[at] == ')')
			return text[at + 2] == 'Z' || text[at + 2] == 'X' ? 0 : -EPERM;
	return -EPERM;
}

/* @return 0; 1: it was not known; -errno */
static int
cl_stop_thread(struct stop *stop, int thread, const char *name)
{
	int err;

	for (uint32_t i = 0; i < stop->count; i++)
		if (stop->threads[i] == thread)
			return 0;
	if (stop->count == THREADS_MAX)
		return -E2BIG;
	if (syscall(SYS_ptrace, PTRACE_SEIZE, thread, 0, 0) != 0)
		return errno == ESRCH ? 1 : cl_stop_refused(stop, name);
	syscall(SYS_ptrace, PTRACE_INTERRUPT, thread, 0, 0);
	err = cl_stop_wait(stop, thread);
	if (err == 0)
		stop->threads[stop->count++] = thread;
	return err < 0 ? err : 1;
}

/* All that are listed. @return 0: all stood still before; 1: there were others; -errno */
static int
cl_stop_pass(struct stop *stop)
{
	int others = 0;
	long bytes;

	if (syscall(SYS_lseek, stop->tasks, 0, SEEK_SET) != 0)
		return -EPERM;
	while ((bytes = syscall(SYS_getdents64, stop->tasks, stop->list, sizeof(stop->list))) > 0) {
		for (long at = 0; at < bytes;) {
			const struct entry *entry = (const void *)(stop->list + at);
			int thread = 0;
			int err;

			at += entry->size;
			for (const char *digit = entry->name; *digit >= '0' && *digit <= '9';
				digit++)
				thread = thread * 10 + (*digit - '0');
			if (thread == 0 || thread == stop->caller)
				continue;
			err = cl_stop_thread(stop, thread, entry->name);
			if (err < 0)
				return err;
			others |= err;
		}
	}
	return bytes < 0 ? -EPERM : others;
}

/* A process of its own: its end lets all go on. */
static int
cl_stop_child(void *arg)
{
	struct stop *stop = arg;
	int err;

	stop->deadline_ns = cl_stop_now() + stop->patience_ns;
	do
		err = cl_stop_pass(stop);
	while (err > 0 && cl_stop_now() < stop->deadline_ns);
	if (err > 0)
		err = -ETIMEDOUT;
	stop->result = err == 0 ? stop->fn(stop->arg) : err;
	syscall(SYS_exit, 0);
	return 0;
}

static int
cl_stop_run(struct stop *stop)
{
	pid_t child;

	stop->count = 0;
	stop->result = -EPERM;
	/*
	 * This thread waits for its end, of which no signal tells; no debugger follows it. Who
	 * makes another process of it that shares nothing, as valgrind does, hears of no result.
	 */
	child = clone(cl_stop_child, stop->stack + sizeof(stop->stack),
		CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, stop);
	if (child < 0)
		return -EAGAIN;
	while (syscall(SYS_wait4, child, NULL, __WALL, NULL) < 0 && errno == EINTR)
		;
	return stop->result;
}

/* Else /proc is of another PID namespace, where our threads' numbers are other processes'. */
static bool
cl_stop_proc_is_ours(int caller)
{
	char link[64] = "";
	const char *number;

	if (readlink("/proc/thread-self", link, sizeof(link) - 1) < 0)
		return false;
	number = strrchr(link, '/');
	return number != NULL && strtol(number + 1, NULL, 10) == caller;
}

int
rcd_cl_stop_others(int (*fn)(void *arg), void *arg, int64_t patience_ns)
{
	struct stop *stop;
	sigset_t all, old;
	int err;

	if (!cl_stop_proc_is_ours((int)syscall(SYS_gettid)))
		return -EPERM;
	stop = mmap(
		NULL, sizeof(*stop), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stop == MAP_FAILED)
		return -EAGAIN;
	stop->fn = fn;
	stop->arg = arg;
	stop->patience_ns = patience_ns;
	stop->caller = (int)syscall(SYS_gettid);
	stop->tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sigfillset(&all);
	/* The child has our signals' mask, and would run our handlers. */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = stop->tasks < 0 ? -EAGAIN : cl_stop_run(stop);
	/* Yama lets only ancestors trace, and whom the process names, with their children. */
	if (err == -EPERM && prctl(PR_SET_PTRACER, getpid(), 0, 0, 0) == 0) {
		err = cl_stop_run(stop);
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (stop->tasks >= 0)
		close(stop->tasks);
	munmap(stop, sizeof(*stop));
	return err;
}

#else

int
rcd_cl_stop_others(int (*fn)(void *arg), void *arg, int64_t patience_ns)
{
	(void)fn;
	(void)arg;
	(void)patience_ns;
	return -ENOSYS;
}

#endif
