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
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
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

static bool ended; /* atomic */
static uint64_t beats[THREADS_MAX];
static uint32_t faults, interrupts, delivered; /* atomic */
static int called;
static uint8_t *memory;
static int zero, nothing[2];

static bool
goes_on(void)
{
	return !__atomic_load_n(&ended, __ATOMIC_RELAXED);
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
		CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL), -77);
		CU_ASSERT_EQUAL(called, 1);
		for (uint32_t t = 0; t < counts[i]; t++) {
			uint64_t before = __atomic_load_n(&beats[t], __ATOMIC_RELAXED);

			while (__atomic_load_n(&beats[t], __ATOMIC_RELAXED) == before)
				sched_yield();
		}
		ended = true;
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

/* A socket that has a time limit is not begun again by the kernel. */
static void *
wait_for_bytes(void *arg)
{
	const struct timeval time = { .tv_usec = 100000 };
	char byte;

	(void)arg;
	setsockopt(nothing[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
	while (goes_on())
		count_interrupt(recv(nothing[0], &byte, 1, 0));
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
		void *) = { wait_by_epoll, wait_for_signal, wait_for_bytes, sleep_on };
	pthread_t threads[4];

	ended = false;
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nothing), 0);
	for (uint32_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, waits[i], NULL), 0);
	usleep(20000);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL), -77);
		usleep(2000);
	}
	ended = true;
	for (uint32_t i = 0; i < 4; i++)
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
	uint32_t sent;
};

static void *
send_signals(void *arg)
{
	struct sender *sender = arg;
	const union sigval value = { .sival_int = 0 };

	while (goes_on()) {
		sender->sent += pthread_sigqueue(sender->to, SIGRTMIN, value) == 0;
	}
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
		CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL), -77);
	ended = true;
	pthread_join(sending, NULL);
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
		err = rcd_cl_stop_others(look, NULL);
		CU_ASSERT(called ? err == -77 : err == -EPERM || err == -ETIMEDOUT);
		stopped += called;
	}
	CU_ASSERT(stopped > 0);
	ended = true;
	pthread_join(thread, NULL);
}

static void *
wait_for_child(void *arg)
{
	pid_t child = vfork();

	if (child == 0) {
		usleep(500000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return arg;
}

static void
what_can_not_be(void)
{
	pthread_t thread;

	/* Nobody may trace it. */
	ended = false;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, beat, &beats[0]), 0);
	called = 0;
	prctl(PR_SET_DUMPABLE, 0);
	CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL), -EPERM);
	prctl(PR_SET_DUMPABLE, 1);
	CU_ASSERT_EQUAL(called, 0);
	ended = true;
	pthread_join(thread, NULL);
	/* A thread whose memory a child has until it runs something. */
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, wait_for_child, NULL), 0);
	usleep(100000);
	CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL), -ETIMEDOUT);
	CU_ASSERT_EQUAL(called, 0);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(rcd_cl_stop_others(look, NULL), -77);
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
		sched_yield();
	}
	return NULL;
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
		usleep(2000);
		CU_ASSERT_EQUAL_FATAL(
			rcd_cl_span_make((uintptr_t)memory, (uintptr_t)memory + BYTES, &span), 0);
		vma = span_vma(memory);
		CU_ASSERT(vma.shared);
		usleep(2000);
		ended = true;
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
		RCD_TEST(memory_that_is_written),
	};

	/* Who changes its user can't be traced, until it says so. */
	if (geteuid() == 0 &&
		(setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0 ||
			prctl(PR_SET_DUMPABLE, 1) != 0))
		return 1;
	return rcd_tap_run("stop", tests, sizeof(tests) / sizeof(tests[0]));
}
