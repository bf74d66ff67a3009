/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The lists of system calls. They name what engine, DPDK and C library were seen to do in all
 * suites (strace), and what stands beside it. Names that this machine's kernel or libseccomp does
 * not know are passed over.
 *
 * A thread that begins later gives up what rights are left (capset).
 *
 * Left out on purpose: running programs, tracing and reading other processes, mounts, namespaces,
 * users, modules, keys, io_uring, userfaultfd, and memory that can be executed.
 */
#include "filter.h"

#include <errno.h>
#include <execinfo.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucontext.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

/** What an lcore does: wait, tell, and send and receive on what is open. */
static const char *const lcore_calls[] = { "clock_getres", "clock_gettime", "clock_nanosleep",
	"close", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "exit", "exit_group",
	"fstat", "futex", "getcpu", "getpid", "getrandom", "getsockopt", "gettid", "gettimeofday",
	"madvise", "munmap", "nanosleep", "poll", "ppoll", "pread64", "pwrite64", "read", "readv",
	"recvfrom", "recvmmsg", "recvmsg", "restart_syscall", "rseq", "rt_sigaction",
	"rt_sigprocmask", "rt_sigreturn", "sched_yield", "sendmmsg", "sendmsg", "sendto",
	"set_robust_list", "sigaltstack", "tgkill", "time", "write", "writev" };

/** What the other threads do besides. */
static const char *const control_calls[] = { "accept", "accept4", "access", "bind", "bpf", "brk",
	"capset", "chmod", "close_range", "connect", "dup", "dup2", "dup3", "epoll_create",
	"epoll_create1", "eventfd2", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchmod",
	"fchmodat", "fcntl", "fdatasync", "flock", "fstatfs", "fsync", "ftruncate", "get_mempolicy",
	"getcwd", "getdents64", "getegid", "geteuid", "getgid", "getgroups", "getpeername",
	"getppid", "getpriority", "getrlimit", "getrusage", "getsockname", "getsockopt", "getuid",
	"ioctl", "kcmp", "listen", "lseek", "lstat", "mbind", "membarrier", "memfd_create",
	"mincore", "mkdir", "mkdirat", "mlock", "mlock2", "move_pages", "mremap", "msync",
	"munlock", "newfstatat", "open", "openat", "pipe", "pipe2", "preadv", "prlimit64",
	"pselect6", "pwritev", "readlink", "readlinkat", "rmdir", "rt_sigtimedwait",
	"sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity", "sched_getparam",
	"sched_getscheduler", "sched_setaffinity", "sched_setscheduler", "seccomp", "select",
	"set_mempolicy", "set_tid_address", "setrlimit", "setsockopt", "shutdown", "signalfd4",
	"socketpair", "stat", "statfs", "statx", "sysinfo", "timerfd_create", "timerfd_gettime",
	"timerfd_settime", "umask", "uname", "unlink", "unlinkat" };

/** What sanitizers and their reports do besides. */
static const char *const sanitizer_calls[] = { "arch_prctl", "clone", "execve", "fork", "getdents",
	"kill", "personality", "prctl", "ptrace", "setpgid", "vfork", "wait4", "waitid" };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/** More than there are. */
#define NUMBERS 1024

/** A bit for each number: calls that were refused, and those that were told of. */
static _Atomic uint64_t refused[NUMBERS / 64];
static uint64_t told[NUMBERS / 64];

static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_XDP };

static int
filter_allow(scmp_filter_ctx ctx, const char *const *names, size_t count)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < count; i++) {
		int number = seccomp_syscall_resolve_name(names[i]);

		if (number != __NR_SCMP_ERROR)
			err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
		/* A name that only other machines know. */
		if (err == -EINVAL || err == -EDOM)
			err = 0;
	}
	return err;
}

/* Calls of which only some uses are allowed. Both lists have them. */
static int
filter_allow_memory(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	int err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, &no_exec);

	if (err == 0)
		err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, &no_exec);
	return err;
}

static int
filter_allow_some(scmp_filter_ctx ctx)
{
	static const int prctls[] = { PR_SET_NAME, PR_GET_NAME, PR_SET_NO_NEW_PRIVS,
		PR_GET_DUMPABLE };
	const struct scmp_arg_cmp thread =
		SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | CLONE_NEWUSER, CLONE_THREAD);
	int err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, &thread);

	/* Its flags lie in memory, where no filter looks: the C library then uses the other. */
	if (err == 0)
		err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	for (size_t i = 0; err == 0 && i < sizeof(prctls) / sizeof(prctls[0]); i++) {
		const struct scmp_arg_cmp which = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)prctls[i]);

		err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, &which);
	}
	for (size_t i = 0; err == 0 && i < sizeof(families) / sizeof(families[0]); i++) {
		const struct scmp_arg_cmp family = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]);

		err = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, &family);
	}
	return err;
}

/*
 * Runs in a thread whose call was refused, in place of the call. Here it fails, as on a kernel that
 * does not have it, and who it was is left for filter_tell(): an lcore must not write.
 */
static void
filter_on_refused(int signo, siginfo_t *info, void *context)
{
	ucontext_t *thread = context;
	unsigned int number = (unsigned int)info->si_syscall % NUMBERS;

	(void)signo;
	if (info->si_code != SYS_SECCOMP)
		return;
	atomic_fetch_or(&refused[number / 64], 1ull << (number % 64));
#if defined(__x86_64__)
	thread->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
#elif defined(__aarch64__)
	thread->uc_mcontext.regs[0] = (uint64_t)-ENOSYS;
#endif
}

/* What becomes of a call of FILTER_ON. Where its result can't be set, nothing is told of it. */
static uint32_t
filter_refuse(void)
{
#if defined(__x86_64__) || defined(__aarch64__)
	struct sigaction action = { .sa_sigaction = filter_on_refused,
		.sa_flags = SA_SIGINFO | SA_RESTART };

	if (sigaction(SIGSYS, &action, NULL) == 0)
		return SCMP_ACT_TRAP;
#endif
	return SCMP_ACT_ERRNO(ENOSYS);
}

void
filter_tell(void)
{
	for (unsigned int i = 0; i < NUMBERS / 64; i++) {
		uint64_t fresh = atomic_exchange(&refused[i], 0) & ~told[i];

		told[i] |= fresh;
		for (unsigned int bit = 0; fresh >> bit != 0 && bit < 64; bit++) {
			int number = (int)(i * 64 + bit);
			char *name;

			if ((fresh >> bit & 1) == 0)
				continue;
			name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
			fprintf(stderr,
				"rocaded: the system call %s (%d) failed with ENOSYS: it is not on "
				"the daemon's list, at least not so; with \"seccomp = log\" it is "
				"made, and please tell us of it\n",
				name != NULL ? name : "of a newer kernel", number);
			free(name);
		}
	}
}

/* @return the filter without rules, or NULL */
static scmp_filter_ctx
filter_begin(enum filter_mode mode)
{
	/* ENOSYS: a C library that is newer than the lists does without what is not there. */
	uint32_t action = mode == FILTER_KILL ? SCMP_ACT_KILL_PROCESS
		: mode == FILTER_LOG          ? SCMP_ACT_LOG
					      : filter_refuse();
	scmp_filter_ctx ctx = seccomp_init(action);

	if (ctx == NULL)
		return NULL;
	/* Older libraries and kernels don't have these: a line is lost, or a little time. */
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
	seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return ctx;
}

static int
filter_load(scmp_filter_ctx ctx, int err)
{
	if (err == 0 && SANITIZED)
		err = filter_allow(
			ctx, sanitizer_calls, sizeof(sanitizer_calls) / sizeof(sanitizer_calls[0]));
	if (err == 0)
		err = seccomp_load(ctx);
	seccomp_release(ctx);
	return err;
}

int
filter_all(enum filter_mode mode)
{
	scmp_filter_ctx ctx;
	void *frame;
	int err;

	if (mode == FILTER_OFF)
		return 0;
	/* Threads that are cancelled are unwound by a library that is loaded when it is needed. */
	backtrace(&frame, 1);
	ctx = filter_begin(mode);
	if (ctx == NULL)
		return -ENOMEM;
	err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (err == 0)
		err = filter_allow(ctx, lcore_calls, sizeof(lcore_calls) / sizeof(lcore_calls[0]));
	if (err == 0)
		err = filter_allow(
			ctx, control_calls, sizeof(control_calls) / sizeof(control_calls[0]));
	if (err == 0)
		err = filter_allow_memory(ctx);
	if (err == 0)
		err = filter_allow_some(ctx);
	return filter_load(ctx, err);
}

int
filter_lcore(enum filter_mode mode)
{
	scmp_filter_ctx ctx;
	int err;

	if (mode == FILTER_OFF)
		return 0;
	ctx = filter_begin(mode);
	if (ctx == NULL)
		return -ENOMEM;
	err = filter_allow(ctx, lcore_calls, sizeof(lcore_calls) / sizeof(lcore_calls[0]));
	if (err == 0)
		err = filter_allow_memory(ctx);
	return filter_load(ctx, err);
}
