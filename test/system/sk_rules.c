/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A program that was made for TCP, and what it relies on: accept4(), ioctl(), sendfile(), ppoll(),
 * and epoll with all that it promises of levels, edges and one shot, of sockets and other files
 * together. It knows nothing of RDMA: the same holds over the kernel's TCP.
 *
 *   sk_rules ADDRESS   of this machine
 *
 * Exit status: 0; 1 at the first rule that does not hold, which is named.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rs_must.h"

#define FAILS(call, error) MUST((call) == -1 && errno == (error))
#define PORT               7473
#define FILE_BYTES         300001

static struct sockaddr_in there;
static int listener;
static int end[2];
static int epoll;

static void
watch(int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	MUST(epoll_ctl(epoll, op, fd, &event) == 0);
}

/* What is told next, of that file. */
static uint32_t
told(int fd)
{
	struct epoll_event event;

	MUST(epoll_wait(epoll, &event, 1, -1) == 1 && event.data.fd == fd);
	return event.events;
}

/* Nothing is, though what there is has come. */
static void
untold(void)
{
	struct epoll_event event;

	MUST(epoll_wait(epoll, &event, 1, 0) == 0);
}

static void
come(int fd)
{
	struct pollfd poll = { .fd = fd, .events = POLLIN };

	MUST(ppoll(&poll, 1, NULL, NULL) == 1 && poll.revents & POLLIN);
}

/* A thread that connects, and one that accepts. */
static void *
connects(void *arg)
{
	(void)arg;
	MUST(connect(end[0], (struct sockaddr *)&there, sizeof(there)) == 0);
	return NULL;
}

static void
join(const char *why)
{
	pthread_t thread;

	doing = why;
	end[0] = socket(AF_INET, SOCK_STREAM, 0);
	MUST(end[0] >= 0 && pthread_create(&thread, NULL, connects, NULL) == 0);
	end[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	MUST(end[1] >= 0 && pthread_join(thread, NULL) == 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	MUST(epoll >= 0);
}

static void
part(void)
{
	MUST(close(end[0]) == 0 && close(end[1]) == 0 && close(epoll) == 0);
}

static void
calls(void)
{
	const struct timespec soon = { .tv_nsec = 1 };
	struct pollfd poll = { .events = POLLIN };
	int val = 1;
	char got[8];

	join("calls");
	MUST(fcntl(end[1], F_GETFL) & O_NONBLOCK && fcntl(end[1], F_GETFD) == FD_CLOEXEC);
	FAILS(read(end[1], got, 1), EAGAIN);
	MUST(ioctl(end[1], FIONREAD, &val) == 0 && val == 0);
	poll.fd = end[1];
	MUST(ppoll(&poll, 1, &soon, NULL) == 0);
	val = 1;
	MUST(ioctl(end[0], FIONBIO, &val) == 0 && fcntl(end[0], F_GETFL) & O_NONBLOCK);
	val = 0;
	MUST(ioctl(end[0], FIONBIO, &val) == 0 && !(fcntl(end[0], F_GETFL) & O_NONBLOCK));
	MUST(write(end[0], "abc", 3) == 3);
	come(end[1]);
	MUST(ioctl(end[1], FIONREAD, &val) == 0 && val == 3);
	MUST(read(end[1], got, sizeof(got)) == 3);
	part();
}

static void *
reads_file(void *arg)
{
	uint8_t *got = arg;
	size_t done = 0;

	while (done < FILE_BYTES) {
		ssize_t now;

		come(end[1]);
		now = read(end[1], got + done, FILE_BYTES - done);
		MUST(now > 0);
		done += (size_t)now;
	}
	return NULL;
}

static void
files(void)
{
	uint8_t *data = malloc(2 * FILE_BYTES);
	FILE *file = tmpfile();
	off_t at = 1;
	size_t left = FILE_BYTES - 1;
	pthread_t thread;

	join("files");
	MUST(data != NULL && file != NULL);
	for (uint32_t i = 0; i < FILE_BYTES; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	MUST(write(fileno(file), data, FILE_BYTES) == FILE_BYTES);
	MUST(lseek(fileno(file), 0, SEEK_SET) == 0);
	MUST(pthread_create(&thread, NULL, reads_file, data + FILE_BYTES) == 0);
	/* By its own place, then by one that is named. */
	MUST(sendfile(end[0], fileno(file), NULL, 1) == 1);
	MUST(lseek(fileno(file), 0, SEEK_CUR) == 1);
	while (left > 0) {
		ssize_t now = sendfile(end[0], fileno(file), &at, left);

		MUST(now > 0);
		left -= (size_t)now;
		MUST(at == (off_t)(FILE_BYTES - left));
	}
	MUST(lseek(fileno(file), 0, SEEK_CUR) == 1);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(memcmp(data, data + FILE_BYTES, FILE_BYTES) == 0);
	fclose(file);
	free(data);
	part();
}

static void
levels(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	char got;

	join("levels");
	FAILS(epoll_wait(epoll, &event, 0, 0), EINVAL);
	FAILS(epoll_ctl(epoll, EPOLL_CTL_MOD, end[1], &event), ENOENT);
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN);
	FAILS(epoll_ctl(epoll, EPOLL_CTL_ADD, end[1], &event), EEXIST);
	untold();
	MUST(write(end[0], "ab", 2) == 2);
	MUST(told(end[1]) == EPOLLIN && told(end[1]) == EPOLLIN);
	MUST(read(end[1], &got, 1) == 1 && told(end[1]) == EPOLLIN);
	MUST(read(end[1], &got, 1) == 1);
	untold();
	watch(EPOLL_CTL_MOD, end[1], EPOLLOUT);
	MUST(told(end[1]) == EPOLLOUT && told(end[1]) == EPOLLOUT);
	MUST(epoll_ctl(epoll, EPOLL_CTL_DEL, end[1], NULL) == 0);
	untold();
	FAILS(epoll_ctl(epoll, EPOLL_CTL_DEL, end[1], NULL), ENOENT);
	part();
}

static void
edges(void)
{
	char bytes[4096] = "";
	ssize_t now;

	join("edges");
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	MUST(told(end[1]) == EPOLLOUT);
	untold();
	MUST(write(end[0], "ab", 2) == 2);
	MUST(told(end[1]) & EPOLLIN);
	untold();
	MUST(read(end[1], bytes, sizeof(bytes)) == 2);
	FAILS(read(end[1], bytes, sizeof(bytes)), EAGAIN);
	untold();
	/* As long as all was taken, there is no edge. */
	MUST(write(end[1], "c", 1) == 1);
	untold();
	do
		now = write(end[1], bytes, sizeof(bytes));
	while (now == sizeof(bytes));
	MUST(now >= 0 || errno == EAGAIN);
	/* Room comes when the other side reads. */
	MUST(fcntl(end[0], F_SETFL, O_NONBLOCK) == 0);
	for (struct epoll_event event; epoll_wait(epoll, &event, 1, 0) == 0;)
		while (read(end[0], bytes, sizeof(bytes)) > 0)
			;
	untold();
	MUST(shutdown(end[0], SHUT_WR) == 0);
	MUST((told(end[1]) & (EPOLLIN | EPOLLRDHUP)) == (EPOLLIN | EPOLLRDHUP));
	untold();
	part();
}

static void
one_shot(void)
{
	join("one shot");
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN | EPOLLONESHOT);
	MUST(write(end[0], "a", 1) == 1);
	MUST(told(end[1]) == EPOLLIN);
	untold();
	watch(EPOLL_CTL_MOD, end[1], EPOLLIN | EPOLLONESHOT);
	MUST(told(end[1]) == EPOLLIN);
	untold();
	part();
}

/* A pipe and a socket, each of which always has something: both have their turn. */
static void
together(void)
{
	struct epoll_event events[4];
	uint32_t seen = 0;
	int ends[2];

	join("together");
	MUST(pipe(ends) == 0 && write(ends[1], "a", 1) == 1 && write(end[0], "a", 1) == 1);
	come(end[1]);
	watch(EPOLL_CTL_ADD, ends[0], EPOLLIN);
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN);
	while (seen != 3) {
		MUST(epoll_wait(epoll, events, 1, -1) == 1);
		seen |= events[0].data.fd == ends[0] ? 1 : 2;
	}
	MUST(epoll_wait(epoll, events, 4, -1) == 2);
	/* What is closed is no longer there. */
	MUST(close(end[1]) == 0);
	MUST(epoll_wait(epoll, events, 4, -1) == 1 && events[0].data.fd == ends[0]);
	MUST(close(ends[0]) == 0 && close(ends[1]) == 0);
	untold();
	end[1] = dup(0);
	part();
}

static int ends_of_pipe[2];
static _Atomic int times_told;

static void *
waits_for_one(void *arg)
{
	struct epoll_event event;

	(void)arg;
	MUST(epoll_wait(epoll, &event, 1, -1) == 1);
	times_told += event.data.fd == end[1];
	return NULL;
}

/* Of threads that wait for an edge one hears of it; the others are woken by something else. */
static void
edge_for_one(void)
{
	pthread_t threads[4];

	for (int turn = 0; turn < 20; turn++) {
		join("edge for one");
		times_told = 0;
		MUST(pipe(ends_of_pipe) == 0);
		watch(EPOLL_CTL_ADD, end[1], EPOLLIN | EPOLLET);
		for (int i = 0; i < 4; i++)
			MUST(pthread_create(&threads[i], NULL, waits_for_one, NULL) == 0);
		MUST(write(end[0], "a", 1) == 1);
		while (times_told == 0)
			sched_yield();
		watch(EPOLL_CTL_ADD, ends_of_pipe[0], EPOLLIN);
		MUST(write(ends_of_pipe[1], "a", 1) == 1);
		for (int i = 0; i < 4; i++)
			MUST(pthread_join(threads[i], NULL) == 0);
		MUST(times_told == 1);
		MUST(close(ends_of_pipe[0]) == 0 && close(ends_of_pipe[1]) == 0);
		part();
	}
}

static void *
waits(void *arg)
{
	(void)arg;
	MUST(told(end[1]) == EPOLLIN);
	return NULL;
}

/* Who waits already hears of what is put in. */
static void
put_in(void)
{
	pthread_t thread;

	join("put in");
	MUST(write(end[0], "a", 1) == 1);
	MUST(pthread_create(&thread, NULL, waits, NULL) == 0);
	usleep(1000);
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN);
	MUST(pthread_join(thread, NULL) == 0);
	part();
}

/* Programs have several descriptors of one instance: what is put in by one is told by another. */
static void
by_another_name(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int other;

	join("by another name");
	other = dup(epoll);
	event.data.fd = end[1];
	MUST(other >= 0 && write(end[0], "a", 1) == 1);
	MUST(epoll_ctl(other, EPOLL_CTL_ADD, end[1], &event) == 0);
	MUST(told(end[1]) == EPOLLIN);
	FAILS(epoll_ctl(epoll, EPOLL_CTL_ADD, end[1], &event), EEXIST);
	MUST(close(other) == 0 && told(end[1]) == EPOLLIN);
	MUST(epoll_ctl(epoll, EPOLL_CTL_DEL, end[1], NULL) == 0);
	untold();
	part();
}

/* The number of a file that was closed is that of another one. */
static void
numbers(void)
{
	bool there_before[256];
	int ends[2];

	join("numbers");
	for (int fd = 0; fd < 256; fd++)
		there_before[fd] = fcntl(fd, F_GETFD) >= 0;
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN);
	/* Programs close what is not theirs when they begin: here, what epoll has. */
	for (int fd = 0; fd < 256; fd++)
		if (!there_before[fd])
			close(fd);
	MUST(pipe(ends) == 0 && close(epoll) == 0);
	MUST(fcntl(ends[0], F_GETFD) >= 0 && fcntl(ends[1], F_GETFD) >= 0);
	MUST(close(ends[0]) == 0 && close(ends[1]) == 0);
	epoll = epoll_create1(0);
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN);
	MUST(write(end[0], "a", 1) == 1 && told(end[1]) == EPOLLIN);
	/* And in the place of the instance, another one. */
	MUST(dup2(0, epoll) == epoll && close(epoll) == 0);
	MUST(epoll_create1(0) == epoll);
	untold();
	part();
}

static volatile sig_atomic_t signals;

static void
on_signal(int signo)
{
	(void)signo;
	signals++;
}

/* One that waits to be let through ends what would wait for ever. */
static void
masks(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct pollfd poll = { .events = POLLIN };
	struct epoll_event event;
	sigset_t all;
	sigset_t none;

	join("masks");
	poll.fd = end[1];
	watch(EPOLL_CTL_ADD, end[1], EPOLLIN);
	sigemptyset(&none);
	sigemptyset(&all);
	sigaddset(&all, SIGUSR1);
	MUST(sigaction(SIGUSR1, &action, NULL) == 0 && sigprocmask(SIG_BLOCK, &all, NULL) == 0);
	MUST(raise(SIGUSR1) == 0 && signals == 0);
	FAILS(ppoll(&poll, 1, NULL, &none), EINTR);
	MUST(raise(SIGUSR1) == 0 && signals == 1);
	FAILS(epoll_pwait(epoll, &event, 1, -1, &none), EINTR);
	MUST(signals == 2);
	part();
}

int
main(int argc, char **argv)
{
	int on = 1;

	if (argc < 2 || inet_pton(AF_INET, argv[1], &there.sin_addr) != 1)
		return 2;
	there.sin_family = AF_INET;
	there.sin_port = htons(PORT);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(bind(listener, (struct sockaddr *)&there, sizeof(there)) == 0);
	MUST(listen(listener, 8) == 0);
	calls();
	files();
	levels();
	edges();
	edge_for_one();
	one_shot();
	together();
	put_in();
	by_another_name();
	numbers();
	masks();
	MUST(close(listener) == 0);
	return 0;
}
