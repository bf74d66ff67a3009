/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a process without any right has its other threads stand still while memory of theirs is
 * replaced; none of them notices, and where it does not go, nothing happens. Method: an ordinary
 * user's process with threads that write, wait, take signals, come and go.
 */
#include "rcd_cl_stop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rcd_cl_span.h"
#include "rcd_tap.h"
#include "span_memory.h"

#define USER        64322
#define THREADS_MAX 40
#define ROUNDS      20
#define BYTES       (4u << 20)
#define WRITTEN     512 /* pages */

/* All that stand still in the end do within this, on a machine where any of them stalls. */
#define PATIENCE_NS INT64_C(60000000000)
#define MOMENT_NS   100000000 /* for what never does */

static bool ended; /* atomic */
static uint64_t beats[THREADS_MAX];
static uint32_t faults, interrupts, delivered, writes, reads; /* atomic */
static int called;
static uint8_t *memory;
static int zero, nothing[2];

static bool
goes_on(void)
{
	return !__atomic_load_n(&ended, __ATOMIC_RELAXED);
}

static int
stop_others(int (*fn)(void *arg))
{
	return rcd_cl_stop_others(fn, NULL, PATIENCE_NS);
}

static void *
beat(void *arg)
{
	uint64_t *mine = arg;

	while (goes_on()) {
		__atomic_add_fetch(mine, 1, __ATOMIC_RELAXED);
		if (__atomic_load_n(mine, __ATOMIC_RELAXED) % 1024 == 0)
			usleep(100);
	}
	return NULL;
}

/* Whether anybody moves for a while. */
static int
look(void *arg)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	uint64_t before[THREADS_MAX];
	int moved = 0;

	(void)arg;
	called++;
	for (uint32_t i = 0; i < THREADS_MAX; i++)
		before[i] = __atomic_load_n(&beats[i], __ATOMIC_RELAXED);
	syscall(SYS_nanosleep, &moment, NULL);
	for (uint32_t i = 0; i < THREADS_MAX; i++)
		moved += before[i] != __atomic_load_n(&beats[i], __ATOMIC_RELAXED);
	return moved > 0 ? moved : -77;
}

static void
all_stand_still(void)
{
	static const uint32_t counts[] = { 0, 1, 5, THREADS_MAX };
	pthread_t threads[THREADS_MAX];

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		ended = false;
		for (uint32_t t = 0; t < counts[i]; t++)
			CU_ASSERT_EQUAL_FATAL(
				pthread_create(&threads[t], NULL, beat, &beats[t]), 0);
		called = 0;
		CU_ASSERT_EQUAL(stop_others(look), -77);
		CU_ASSERT_EQUAL(called, 1);
		for (uint32_t t = 0; t < counts[i]; t++) {
			uint64_t before = __atomic_load_n(&beats[t], __ATOMIC_RELAXED);

			while (__atomic_load_n(&beats[t], __ATOMIC_RELAXED) == before)
				sched_yield();
		}
		__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
		for (uint32_t t = 0; t < counts[i]; t++)
			pthread_join(threads[t], NULL);
	}
}

static void
count_interrupt(long result)
{
	if (result < 0 && errno == EINTR)
		__atomic_add_fetch(&interrupts, 1, __ATOMIC_RELAXED);
}

static void *
wait_by_epoll(void *arg)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event event;

	(void)arg;
	while (goes_on())
		count_interrupt(epoll_wait(epoll, &event, 1, 100));
	close(epoll);
	return NULL;
}

static void *
wait_for_signal(void *arg)
{
	const struct timespec time = { .tv_nsec = 100000000 };
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	while (goes_on())
		count_interrupt(sigtimedwait(&set, NULL, &time));
	return NULL;
}

/* A socket that has a time limit is not begun again by the kernel. Nothing comes, all is full. */
static long
call_socket(const uint32_t *which)
{
	static char bytes[4096];
	struct iovec io = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &io, .msg_iovlen = 1 } };

	switch (*which) {
	case 0:
		return recv(nothing[0], bytes, 1, 0);
	case 1:
		return recvmsg(nothing[0], &message.msg_hdr, 0);
	case 2:
		return recvmmsg(nothing[0], &message, 1, 0, NULL);
	case 3:
		return read(nothing[0], bytes, 1);
	case 4:
		return readv(nothing[0], &io, 1);
	case 5:
		return send(nothing[0], bytes, sizeof(bytes), 0);
	case 6:
		return sendmsg(nothing[0], &message.msg_hdr, 0);
	case 7:
		return sendmmsg(nothing[0], &message, 1, 0);
	case 8:
		return write(nothing[0], bytes, sizeof(bytes));
	}
	return writev(nothing[0], &io, 1);
}

static void *
wait_for_socket(void *arg)
{
	while (goes_on())
		count_interrupt(call_socket(arg));
	return NULL;
}

static void *
wait_for_ring(void *arg)
{
	struct io_uring_params params = { .features = 0 };
	int ring = (int)syscall(SYS_io_uring_setup, 2, &params);
	const struct __kernel_timespec time = { .tv_nsec = 100000000 };
	const struct io_uring_getevents_arg until = { .ts = (uint64_t)(uintptr_t)&time };

	(void)arg;
	/* Where it is forbidden nobody waits so. */
	while (ring >= 0 && goes_on())
		count_interrupt(syscall(SYS_io_uring_enter, ring, 0, 1,
			IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &until, sizeof(until)));
	if (ring >= 0)
		close(ring);
	return NULL;
}

static void *
sleep_on(void *arg)
{
	const struct timespec time = { .tv_nsec = 100000000 };

	(void)arg;
	while (goes_on())
		count_interrupt(nanosleep(&time, NULL));
	return NULL;
}

static void
waits_go_on(void)
{
	void *(*const waits[])(
		void *) = { wait_by_epoll, wait_for_signal, wait_for_ring, sleep_on };
	const struct timeval time = { .tv_usec = 100000 };
	uint32_t which[14];
	pthread_t threads[14];

	ended = false;
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nothing), 0);
	setsockopt(nothing[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	setsockopt(nothing[0], SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	for (uint32_t i = 0; i < 14; i++) {
		which[i] = i;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL,
					      i < 10 ? wait_for_socket : waits[i - 10], &which[i]),
			0);
	}
	usleep(50000);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(stop_others(look), -77);
		usleep(2000);
	}
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < 14; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(interrupts, 0);
	close(nothing[0]);
	close(nothing[1]);
}

static void
deliver(int signo)
{
	(void)signo;
	__atomic_add_fetch(&delivered, 1, __ATOMIC_RELAXED);
}

struct sender {
	pthread_t to;
	bool ended;    /* atomic */
	uint32_t sent; /* of the sender, until it has ended */
};

static void *
send_signals(void *arg)
{
	struct sender *sender = arg;
	const union sigval value = { .sival_int = 0 };

	while (!__atomic_load_n(&sender->ended, __ATOMIC_RELAXED))
		sender->sent += pthread_sigqueue(sender->to, SIGRTMIN, value) == 0;
	return NULL;
}

static void
no_signal_is_lost(void)
{
	const struct sigaction action = { .sa_handler = deliver };
	struct sender sender = { .sent = 0 };
	pthread_t busy, sending;

	sigaction(SIGRTMIN, &action, NULL);
	ended = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&busy, NULL, beat, &beats[0]), 0);
	sender.to = busy;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sending, NULL, send_signals, &sender), 0);
	for (uint32_t i = 0; i < ROUNDS; i++)
		CU_ASSERT_EQUAL(stop_others(look), -77);
	__atomic_store_n(&sender.ended, true, __ATOMIC_RELAXED);
	pthread_join(sending, NULL);
	/* What was sent is there; who got it may not have had a core since. */
	for (uint32_t i = 0;
		i < 60000 && __atomic_load_n(&delivered, __ATOMIC_RELAXED) < sender.sent; i++)
		usleep(1000);
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(busy, NULL);
	CU_ASSERT(sender.sent > ROUNDS);
	CU_ASSERT_EQUAL(delivered, sender.sent);
}

static void *
be_gone(void *arg)
{
	return arg;
}

static void *
come_and_go(void *arg)
{
	pthread_t thread;

	while (goes_on())
		if (pthread_create(&thread, NULL, be_gone, arg) == 0)
			pthread_join(thread, NULL);
	return NULL;
}

/* It may give up on threads that come faster than it looks; then nobody was to stand still. */
static void
threads_that_come(void)
{
	pthread_t thread;
	int stopped = 0;

	ended = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, come_and_go, NULL), 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		int err;

		called = 0;
		err = stop_others(look);
		CU_ASSERT(called ? err == -77 : err == -ETIMEDOUT);
		stopped += called;
	}
	CU_ASSERT(stopped > 0);
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static void *
wait_for_child(void *arg)
{
	const int *told = arg;
	pid_t child = vfork();
	char byte = 0;

	if (child == 0)
		_exit(write(told[1], &byte, 1) == 1 && read(told[2], &byte, 1) == 1 ? 0 : 1);
	waitpid(child, NULL, 0);
	return NULL;
}

static void
what_can_not_be(void)
{
	pthread_t thread;
	int told[4]; /* by the child, and to it */
	char byte = 0;

	/* Nobody may trace it. */
	ended = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, beat, &beats[0]), 0);
	called = 0;
	prctl(PR_SET_DUMPABLE, 0);
	CU_ASSERT_EQUAL(stop_others(look), -EPERM);
	prctl(PR_SET_DUMPABLE, 1);
	CU_ASSERT_EQUAL(called, 0);
	__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	/* A thread whose memory a child has until it runs something. */
	CU_ASSERT_EQUAL_FATAL(pipe2(told, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pipe2(told + 2, O_CLOEXEC), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_child, told), 0);
	CU_ASSERT_EQUAL(read(told[0], &byte, 1), 1);
	CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL, MOMENT_NS), -ETIMEDOUT);
	CU_ASSERT_EQUAL(called, 0);
	CU_ASSERT_EQUAL(write(told[3], &byte, 1), 1);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < 4; i++)
		close(told[i]);
	CU_ASSERT_EQUAL(stop_others(look), -77);
}

static int
share(struct rcd_cl_span **span)
{
	return span_try((uintptr_t)memory, (uintptr_t)memory + BYTES, span);
}

/* Whether the first thread of this process has ended, but for its place in the list. */
static bool
first_has_ended(void)
{
	char text[256] = "";
	FILE *file = fopen("/proc/self/stat", "re");

	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		return false;
	fclose(file);
	return strstr(text, ") Z ") != NULL;
}

/* The process ends with 0, or the number of what did not go. */
static void *
outlive_first(void *arg)
{
	struct rcd_cl_span *span;

	(void)arg;
	while (!first_has_ended())
		usleep(1000);
	if (stop_others(look) != -77)
		_exit(1);
	_exit(share(&span) == 0 && span_vma(memory).shared && memory[0] == 3 ? 0 : 2);
}

static void
a_first_thread_that_leaves(void)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		pthread_t last, busy;

		ended = false;
		memory = span_map(NULL, BYTES / PAGE, PROT_READ | PROT_WRITE);
		memset(memory, 3, BYTES);
		if (pthread_create(&busy, NULL, beat, &beats[0]) != 0 ||
			pthread_create(&last, NULL, outlive_first, NULL) != 0)
			_exit(8);
		/* As pthread_exit() does for the first thread of a process. */
		syscall(SYS_exit, 0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
}

/* A sandbox that allows all but ptrace, which it answers so. */
static bool
forbid_ptrace(uint32_t answer)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, answer),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { .len = 4, .filter = rows };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* The program goes on, and nothing was called. */
static void
sandboxes(void)
{
	static const uint32_t answers[] = { SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ERRNO | ENOSYS,
		SECCOMP_RET_TRAP, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS };

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		pid_t child = fork();
		int status = -1;

		if (child == 0) {
			pthread_t busy;

			ended = false;
			called = 0;
			setrlimit(RLIMIT_CORE, &(struct rlimit){ .rlim_cur = 0 });
			if (pthread_create(&busy, NULL, beat, &beats[0]) != 0 ||
				!forbid_ptrace(answers[i]))
				_exit(8);
			if (stop_others(look) != -EPERM || called != 0)
				_exit(1);
			ended = true;
			_exit(pthread_join(busy, NULL) == 0 ? 0 : 2);
		}
		CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
		CU_ASSERT_EQUAL(status, 0);
	}
}

/* A write that was lost is an older number in one of many pages. */
static void *
write_on(void *arg)
{
	uint8_t *pages = arg;

	for (uint64_t round = 0; goes_on(); round++) {
		for (uint32_t i = 0; i < WRITTEN; i++) {
			uint64_t *word = (uint64_t *)(void *)(pages + (uint64_t)i * PAGE);

			if (__atomic_load_n(word, __ATOMIC_RELAXED) != round)
				__atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
			__atomic_store_n(word, round + 1, __ATOMIC_RELAXED);
		}
		__atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* The kernel writes for it, and says EFAULT where it may not wait. */
static void *
read_on(void *arg)
{
	(void)arg;
	while (goes_on()) {
		if (read(zero, memory + BYTES / 2, 64) != 64)
			__atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&reads, 1, __ATOMIC_RELAXED);
		sched_yield();
	}
	return NULL;
}

static void
wait_for_both(void)
{
	uint32_t before[] = { __atomic_load_n(&writes, __ATOMIC_RELAXED),
		__atomic_load_n(&reads, __ATOMIC_RELAXED) };

	while (__atomic_load_n(&writes, __ATOMIC_RELAXED) - before[0] < 2 ||
		__atomic_load_n(&reads, __ATOMIC_RELAXED) - before[1] < 2)
		usleep(500);
}

static void
memory_that_is_written(void)
{
	pthread_t writer, reader;

	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct rcd_cl_span *span = NULL;
		struct rcd_cl_vma vma;
		uint64_t seen;

		memory = span_map(NULL, BYTES / PAGE, PROT_READ | PROT_WRITE);
		memset(memory, 3, BYTES);
		for (uint32_t page = 0; page < WRITTEN; page++)
			memset(memory + (uint64_t)page * PAGE, 0, sizeof(uint64_t));
		ended = false;
		CU_ASSERT_EQUAL_FATAL(pthread_create(&writer, NULL, write_on, memory), 0);
		CU_ASSERT_EQUAL_FATAL(pthread_create(&reader, NULL, read_on, NULL), 0);
		wait_for_both();
		CU_ASSERT_EQUAL_FATAL(share(&span), 0);
		vma = span_vma(memory);
		CU_ASSERT(vma.shared);
		wait_for_both();
		__atomic_store_n(&ended, true, __ATOMIC_RELAXED);
		pthread_join(writer, NULL);
		pthread_join(reader, NULL);
		CU_ASSERT_EQUAL(memory[BYTES - 1], 3);
		CU_ASSERT_EQUAL(memory[BYTES / 2], 0);
		CU_ASSERT_EQUAL(pread(rcd_cl_span_fd(), &seen, sizeof(seen), (off_t)span->offset),
			sizeof(seen));
		CU_ASSERT_EQUAL(memcmp(&seen, memory, sizeof(seen)), 0);
		munmap(memory, BYTES);
		rcd_cl_span_sweep(span_forget);
	}
	CU_ASSERT_EQUAL(faults, 0);
	close(zero);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(all_stand_still),
		RCD_TEST(waits_go_on),
		RCD_TEST(no_signal_is_lost),
		RCD_TEST(threads_that_come),
		RCD_TEST(what_can_not_be),
		RCD_TEST(a_first_thread_that_leaves),
		RCD_TEST(sandboxes),
		RCD_TEST(memory_that_is_written),
	};

	/* Who changes its user can't be traced, until it says so. */
	if (geteuid() == 0 &&
		(setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0 ||
			prctl(PR_SET_DUMPABLE, 1) != 0))
		return 1;
	return rcd_tap_run("stop", tests, sizeof(tests) / sizeof(tests[0]));
}
