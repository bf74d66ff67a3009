/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Two rsockets that are joined, and what sockets promise: MSG_PEEK, MSG_WAITALL, directions that
 * end one at a time, rselect(), errors that are told once, several threads on one socket, one that
 * is closed as it is accepted, a process without descriptors, and forks. Public headers alone.
 *
 *   rs_rules ADDRESS [RULE]   of one of the engine's devices; all rules, or one
 *
 * Exit status: 0; 1 at the first rule that does not hold, which is named.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs_must.h"

#define PORT       7472
#define FILES_MOST 64

static struct sockaddr_in there;
static int listener;
static int end[2];

static void
wait_for(int number, short events)
{
	struct pollfd poll = { .fd = number, .events = events };

	MUST(rpoll(&poll, 1, -1) == 1 && (poll.revents & events) != 0);
}

static int
told_error(int number)
{
	socklen_t len = sizeof(int);
	int error;

	MUST(rgetsockopt(number, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && len == sizeof(error));
	return error;
}

/* Two ends; by a connection that nobody waits for, since one thread has both. */
static void
join(const char *why)
{
	doing = why;
	end[0] = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(end[0], (struct sockaddr *)&there, sizeof(there)), EINPROGRESS);
	/* What is on the way goes on while somebody looks. */
	for (struct pollfd poll[2] = { { .fd = end[0] }, { .fd = listener, .events = POLLIN } };
		poll[1].revents == 0;)
		MUST(rpoll(poll, 2, -1) > 0);
	end[1] = raccept(listener, NULL, NULL);
	MUST(end[1] >= 0);
	wait_for(end[0], POLLOUT);
	wait_for(end[1], POLLOUT);
	MUST(told_error(end[0]) == 0);
	MUST(rfcntl(end[0], F_SETFL, 0) == 0);
}

static void
part(void)
{
	MUST(rclose(end[0]) == 0);
	MUST(rclose(end[1]) == 0);
	FAILS(rclose(end[1]), EBADF);
}

static void *
send_more(void *arg)
{
	MUST(rsend(end[0], arg, strlen(arg), 0) == (ssize_t)strlen(arg));
	return NULL;
}

static void
peeks_and_waits(void)
{
	static char more[] = "defg";
	char got[8] = "";
	pthread_t thread;

	join("peeks and waits");
	FAILS(rrecv(end[1], got, 1, MSG_DONTWAIT), EAGAIN);
	MUST(rsend(end[0], "abc", 3, 0) == 3);
	MUST(rrecv(end[1], got, 2, MSG_PEEK) == 2 && memcmp(got, "ab", 2) == 0);
	MUST(rrecv(end[1], got, 8, MSG_PEEK) == 3 && memcmp(got, "abc", 3) == 0);
	MUST(pthread_create(&thread, NULL, send_more, more) == 0);
	MUST(rrecv(end[1], got, 7, MSG_WAITALL) == 7 && memcmp(got, "abcdefg", 7) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	/* The end comes before all there could be. */
	MUST(rsend(end[0], "h", 1, 0) == 1);
	MUST(rshutdown(end[0], SHUT_WR) == 0);
	MUST(rrecv(end[1], got, 8, MSG_WAITALL) == 1 && got[0] == 'h');
	part();
}

static void
directions(void)
{
	struct pollfd poll = { .events = POLLIN | POLLOUT | POLLRDHUP };
	char got[8];

	join("directions");
	MUST(rshutdown(end[0], SHUT_WR) == 0);
	FAILS(rsend(end[0], "a", 1, 0), EPIPE);
	MUST(rrecv(end[1], got, 8, 0) == 0);
	poll.fd = end[1];
	MUST(rpoll(&poll, 1, 0) == 1 && poll.revents == (POLLIN | POLLOUT | POLLRDHUP));
	/* The other one goes on. */
	MUST(rsend(end[1], "bc", 2, 0) == 2);
	MUST(rrecv(end[0], got, 8, MSG_WAITALL | MSG_PEEK) == 2);
	MUST(rshutdown(end[1], SHUT_WR) == 0);
	MUST(rrecv(end[0], got, 8, MSG_WAITALL) == 2 && memcmp(got, "bc", 2) == 0);
	MUST(rrecv(end[0], got, 8, 0) == 0);
	part();
}

static void
selects(void)
{
	struct timeval none = { 0, 0 };
	fd_set reads, writes;
	int file[2];

	join("selects");
	MUST(pipe(file) == 0);
	FD_ZERO(&reads);
	FD_ZERO(&writes);
	FD_SET(end[1], &reads);
	FD_SET(file[0], &reads);
	MUST(rselect(FD_SETSIZE, &reads, NULL, NULL, &none) == 0);
	MUST(!FD_ISSET(end[1], &reads) && !FD_ISSET(file[0], &reads));
	MUST(write(file[1], "a", 1) == 1);
	MUST(rsend(end[0], "a", 1, 0) == 1);
	wait_for(end[1], POLLIN);
	FD_SET(end[1], &reads);
	FD_SET(file[0], &reads);
	FD_SET(end[1], &writes);
	MUST(rselect(FD_SETSIZE, &reads, &writes, NULL, NULL) == 3);
	MUST(FD_ISSET(end[1], &reads) && FD_ISSET(file[0], &reads) && FD_ISSET(end[1], &writes));
	FAILS(rselect(FD_SETSIZE + 1, &reads, NULL, NULL, &none), EINVAL);
	FAILS(rselect(-1, &reads, NULL, NULL, &none), EINVAL);
	close(file[1]);
	close(file[0]);
	/* None that is open has this number now. */
	FAILS(rselect(FD_SETSIZE, &reads, NULL, NULL, &none), EBADF);
	part();
}

/* One whose request is refused: its listener is closed while that waits. */
static int
refused(void)
{
	struct sockaddr_in nobody = there;
	int closing = rsocket(AF_INET, SOCK_STREAM, 0);
	int number = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct pollfd poll[2] = { { .fd = number }, { .fd = closing, .events = POLLIN } };

	nobody.sin_port = htons(PORT + 1);
	MUST(rbind(closing, (struct sockaddr *)&nobody, sizeof(nobody)) == 0);
	MUST(rlisten(closing, 1) == 0);
	FAILS(rconnect(number, (struct sockaddr *)&nobody, sizeof(nobody)), EINPROGRESS);
	while (poll[1].revents == 0)
		MUST(rpoll(poll, 2, -1) > 0);
	FAILS(rconnect(number, (struct sockaddr *)&nobody, sizeof(nobody)), EALREADY);
	MUST(rclose(closing) == 0);
	poll[0].events = POLLOUT;
	MUST(rpoll(poll, 1, -1) == 1 && poll[0].revents == (POLLOUT | POLLERR | POLLHUP));
	return number;
}

/* Whoever asks first is told, and nobody after that. */
static void
errors(void)
{
	char got;
	int number;

	doing = "errors";
	number = refused();
	MUST(told_error(number) == ECONNREFUSED && told_error(number) == 0);
	MUST(rclose(number) == 0);
	number = refused();
	FAILS(rrecv(number, &got, 1, 0), ECONNREFUSED);
	MUST(told_error(number) == 0);
	MUST(rclose(number) == 0);
	number = refused();
	FAILS(rsend(number, "a", 1, 0), ECONNREFUSED);
	MUST(told_error(number) == 0);
	FAILS(rsend(number, "a", 1, 0), EPIPE);
	MUST(rclose(number) == 0);
}

static char *page;

/* What keeps connections alive: kept, and looked at. */
static void
keeps(void)
{
	const struct {
		int level, option, val;
	} all[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 77 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 78 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 79 },
		{ SOL_SOCKET, SO_KEEPALIVE, 0 },
	};
	const int bad[] = { 0, -1, 1 << 20 };

	join("keeps");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		socklen_t len = sizeof(int);
		int got = -1;

		for (int j = 0; j < 3 && all[i].level == IPPROTO_TCP; j++)
			FAILS(rsetsockopt(
				      end[0], all[i].level, all[i].option, &bad[j], sizeof(int)),
				EINVAL);
		MUST(rsetsockopt(end[0], all[i].level, all[i].option, &all[i].val, sizeof(int)) ==
			0);
		MUST(rgetsockopt(end[0], all[i].level, all[i].option, &got, &len) == 0);
		MUST(got == all[i].val);
	}
	part();
}

/* While a receiver copies, more comes, and another thread's call takes notice of it. */
static void
while_copying(int signal)
{
	struct pollfd poll = { .fd = end[1], .events = POLLIN };

	(void)signal;
	MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
	MUST(rsend(end[0], "defghi", 6, 0) == 6);
	MUST(rshutdown(end[0], SHUT_WR) == 0);
	MUST(rpoll(&poll, 1, 0) == 1);
}

static void
vectors_have_no_holes(void)
{
	struct sigaction action = { .sa_handler = while_copying };
	char rest[8] = "";
	struct iovec iov[2] = { { .iov_len = 6 }, { .iov_base = rest, .iov_len = 8 } };
	ssize_t got, more;

	join("vectors have no holes");
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0);
	iov[0].iov_base = page;
	MUST(rsend(end[0], "abc", 3, 0) == 3);
	wait_for(end[1], POLLIN);
	got = rreadv(end[1], iov, 2);
	action.sa_handler = SIG_DFL;
	MUST(sigaction(SIGSEGV, &action, NULL) == 0);
	MUST(got >= 3 && memcmp(page, "abcdef", got < 6 ? (size_t)got : 6) == 0);
	more = rrecv(end[1], page + got, 16, MSG_WAITALL);
	MUST(got == 3 && more == 6 && memcmp(page, "abcdefghi", 9) == 0);
	MUST(munmap(page, 4096) == 0);
	part();
}

static int taken;

/* It has its number already: another thread may guess it. */
static void
while_accepting(int signal)
{
	(void)signal;
	MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
	for (int number = 0; number < FILES_MOST; number++)
		if (number != listener && number != end[0] && rclose(number) == 0)
			taken = number;
}

/* Closed before raccept() has returned, it is there as long as that needs it. */
static void
closed_while_accepted(void)
{
	struct sigaction action = { .sa_handler = while_accepting };
	struct pollfd poll[2] = { { 0 }, { .fd = listener, .events = POLLIN } };
	socklen_t len = sizeof(there);

	doing = "closed while accepted";
	taken = -1;
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0);
	end[0] = poll[0].fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(end[0], (struct sockaddr *)&there, sizeof(there)), EINPROGRESS);
	while (poll[1].revents == 0)
		MUST(rpoll(poll, 2, -1) > 0);
	end[1] = raccept(listener, (struct sockaddr *)page, &len);
	action.sa_handler = SIG_DFL;
	MUST(sigaction(SIGSEGV, &action, NULL) == 0);
	MUST(taken >= 0 && end[1] == taken);
	FAILS(rclose(end[1]), EBADF);
	MUST(rclose(end[0]) == 0);
	MUST(munmap(page, 4096) == 0);
}

static void *
wait_for_two(void *arg)
{
	char got[2];

	(void)arg;
	MUST(rrecv(end[1], got, 2, MSG_WAITALL) == 2);
	return NULL;
}

/* Who may not block does not, beside somebody who does. */
static void
readers(void)
{
	struct pollfd poll = { .events = POLLIN };
	pthread_t thread;
	char got;

	join("readers");
	poll.fd = end[1];
	MUST(rsend(end[0], "a", 1, 0) == 1);
	wait_for(end[1], POLLIN);
	MUST(pthread_create(&thread, NULL, wait_for_two, NULL) == 0);
	/* It has the first byte, and so waits for the second. */
	while (rpoll(&poll, 1, 0) != 0)
		;
	FAILS(rrecv(end[1], &got, 1, MSG_DONTWAIT), EAGAIN);
	MUST(rsend(end[0], "b", 1, 0) == 1);
	MUST(pthread_join(thread, NULL) == 0);
	part();
}

/* Of dup()'s numbers in order there may be others between. */
static int
is_ours(int file, int late)
{
	return file == end[0] || file == end[1] || file == late || file == listener;
}

static void
without_descriptors(void)
{
	struct pollfd poll = { .events = POLLIN };
	struct pollfd late[2] = { { 0 }, { .fd = listener, .events = POLLIN } };
	struct rlimit limit, few;
	int file, first = -1, last = -1;

	join("without descriptors");
	poll.fd = end[1];
	late[0].fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(late[0].fd, (struct sockaddr *)&there, sizeof(there)), EINPROGRESS);
	while (late[1].revents == 0)
		MUST(rpoll(late, 2, -1) > 0);
	MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	few = limit;
	few.rlim_cur = FILES_MOST;
	MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while ((file = dup(0)) >= 0) {
		first = first < 0 ? file : first;
		last = file;
	}
	MUST(errno == EMFILE && first >= 0);
	FAILS(rsocket(AF_INET, SOCK_STREAM, 0), EMFILE);
	FAILS(raccept(listener, NULL, NULL), EMFILE);
	MUST(rpoll(&poll, 1, 30) == 0);
	MUST(rsend(end[0], "a", 1, 0) == 1);
	wait_for(end[1], POLLIN);
	for (file = first; file <= last; file++)
		if (!is_ours(file, late[0].fd))
			close(file);
	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	part();
	/* The request is there all the same. */
	end[0] = late[0].fd;
	end[1] = raccept(listener, NULL, NULL);
	MUST(end[1] >= 0);
	wait_for(end[0], POLLOUT);
	part();
}

static int
as_child(void)
{
	struct pollfd poll = { .fd = end[1], .events = POLLIN };
	char got;
	int own;

	FAILS(rrecv(end[1], &got, 1, MSG_DONTWAIT), EBADF);
	FAILS(rsend(end[0], "b", 1, 0), EBADF);
	FAILS(raccept(listener, NULL, NULL), EBADF);
	MUST(rpoll(&poll, 1, 0) >= 0);
	FAILS(rclose(end[1]), EBADF);
	own = rsocket(AF_INET, SOCK_STREAM, 0);
	MUST(own >= 0 && rclose(own) == 0);
	return 0;
}

static void
forks(void)
{
	char got;
	pid_t child;
	int status;

	join("forks");
	MUST(rsend(end[0], "a", 1, 0) == 1);
	child = fork();
	if (child == 0)
		_exit(as_child());
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	MUST(status == 0);
	MUST(rrecv(end[1], &got, 1, 0) == 1 && got == 'a');
	part();
}

/* What asks again how a connection has ended hears of it once; sizes of names without names. */
static void
connects_again(void)
{
	socklen_t len = 0;

	join("connects again");
	MUST(rconnect(end[0], (struct sockaddr *)&there, sizeof(there)) == 0);
	FAILS(rconnect(end[0], (struct sockaddr *)&there, sizeof(there)), EISCONN);
	MUST(rgetsockname(end[0], NULL, &len) == 0 && len == sizeof(struct sockaddr_in));
	FAILS(rgetsockname(end[0], NULL, &len), EFAULT);
	len = 0;
	MUST(rgetpeername(end[0], NULL, &len) == 0 && len == sizeof(struct sockaddr_in));
	part();
}

static const struct {
	const char *name;
	void (*check)(void);
} rules[] = {
	{ "connects_again", connects_again },
	{ "peeks_and_waits", peeks_and_waits },
	{ "directions", directions },
	{ "selects", selects },
	{ "errors", errors },
	{ "keeps", keeps },
	{ "vectors_have_no_holes", vectors_have_no_holes },
	{ "closed_while_accepted", closed_while_accepted },
	{ "readers", readers },
	{ "without_descriptors", without_descriptors },
	{ "forks", forks },
};

int
main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		return 2;
	there = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	MUST(inet_pton(AF_INET, argv[1], &there.sin_addr) == 1);
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	MUST(listener >= 0);
	MUST(rbind(listener, (struct sockaddr *)&there, sizeof(there)) == 0);
	MUST(rlisten(listener, 4) == 0);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (argc == 2 || strcmp(argv[2], rules[i].name) == 0)
			rules[i].check();
	MUST(rclose(listener) == 0);
	return 0;
}
