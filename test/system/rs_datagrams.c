/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Rsockets of datagrams, and what they promise: names, peers, sizes, waiting, ends. Public headers
 * alone.
 *
 *   rs_datagrams ADDRESS OTHER   of the engine's devices, the second reached from the first; IPv4
 *                                or IPv6
 *
 * Exit status: 0; 1 at the first rule that does not hold, which is named.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs_must.h"

#define PORT      7473
#define SIZE_MOST 2048 /**< header and data */
#define DESTS     1100 /**< more than a socket remembers */

union name {
	struct sockaddr sa;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
};

static int domain;
static socklen_t name_len;
static union name here, there;
static int end[2];

static union name
named(const char *text, uint16_t port)
{
	union name name;

	memset(&name, 0, sizeof(name));
	name.sa.sa_family = (sa_family_t)domain;
	if (domain == AF_INET) {
		name.sin.sin_port = htons(port);
		MUST(inet_pton(domain, text, &name.sin.sin_addr) == 1);
	} else {
		name.sin6.sin6_port = htons(port);
		MUST(inet_pton(domain, text, &name.sin6.sin6_addr) == 1);
	}
	return name;
}

static uint16_t
port_of(const union name *name)
{
	return domain == AF_INET ? name->sin.sin_port : name->sin6.sin6_port;
}

static void
wait_for(int number, short events)
{
	struct pollfd poll = { .fd = number, .events = events };

	MUST(rpoll(&poll, 1, -1) == 1 && poll.revents == events);
}

/* The first end has a name, or gets one; the second one is there. */
static void
begin(const char *why, const union name *first)
{
	doing = why;
	for (int i = 0; i < 2; i++) {
		end[i] = rsocket(domain, SOCK_DGRAM, 0);
		MUST(end[i] >= 0);
	}
	if (first != NULL)
		MUST(rbind(end[0], &first->sa, name_len) == 0);
	MUST(rbind(end[1], &there.sa, name_len) == 0);
}

static void
finish(void)
{
	for (int i = 0; i < 2; i++)
		MUST(rclose(end[i]) == 0);
	FAILS(rclose(end[1]), EBADF);
}

/* One that is sent arrives. @return who has sent it */
static union name
pass(int from, const union name *to, int by, const char *text)
{
	socklen_t len = sizeof(union name);
	union name sender;
	char got[64];
	ssize_t size;

	MUST(rsendto(from, text, strlen(text), 0, to != NULL ? &to->sa : NULL,
		     to != NULL ? name_len : 0) == (ssize_t)strlen(text));
	size = rrecvfrom(by, got, sizeof(got), 0, &sender.sa, &len);
	MUST(size == (ssize_t)strlen(text) && memcmp(got, text, (size_t)size) == 0);
	MUST(len == name_len && sender.sa.sa_family == domain);
	return sender;
}

static void
names(void)
{
	socklen_t len = sizeof(union name);
	union name own, sender;

	begin("names", &here);
	MUST(rgetsockname(end[1], &own.sa, &len) == 0 && len == name_len);
	MUST(memcmp(&own, &there, name_len) == 0);
	FAILS(rgetpeername(end[1], &own.sa, &len), ENOTCONN);
	MUST(rgetsockname(end[0], &own.sa, &len) == 0 && port_of(&own) != 0);
	/* By UDP the first time, and by the queue pairs as soon as they are known. */
	for (int i = 0; i < 20; i++) {
		sender = pass(end[0], &there, end[1], "there");
		MUST(memcmp(&sender, &own, name_len) == 0);
		sender = pass(end[1], &sender, end[0], "and back");
		MUST(memcmp(&sender, &there, name_len) == 0);
	}
	finish();
}

/* A socket that has not asked for an address gets one, and a server may have all. */
static void
any_address(void)
{
	union name any = named(domain == AF_INET ? "0.0.0.0" : "::", PORT + 1);
	int server = rsocket(domain, SOCK_DGRAM, 0);
	union name to = there, sender, own;
	socklen_t len = sizeof(own);

	begin("any address", NULL);
	MUST(rbind(server, &any.sa, name_len) == 0);
	if (domain == AF_INET)
		to.sin.sin_port = htons(PORT + 1);
	else
		to.sin6.sin6_port = htons(PORT + 1);
	for (int i = 0; i < 10; i++) {
		sender = pass(end[0], &to, server, "to any");
		MUST(memcmp(&sender, &to, sizeof(sa_family_t)) == 0 && port_of(&sender) != 0);
		sender = pass(server, &sender, end[0], "from any");
		MUST(memcmp(&sender, &to, name_len) == 0);
	}
	MUST(rgetsockname(end[0], &own.sa, &len) == 0 && port_of(&own) != 0);
	MUST(rclose(server) == 0);
	finish();
}

static void
peers(void)
{
	int stranger = rsocket(domain, SOCK_DGRAM, 0);
	union name peer, unspec = { .sa.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(peer);
	char got;

	begin("peers", &here);
	FAILS(rsend(end[0], "a", 1, 0), EDESTADDRREQ);
	MUST(rconnect(end[0], &there.sa, name_len) == 0);
	MUST(rgetpeername(end[0], &peer.sa, &len) == 0 && len == name_len);
	MUST(memcmp(&peer, &there, name_len) == 0);
	peer = pass(end[0], NULL, end[1], "to the peer");
	/* A stranger is not heard, neither by UDP nor else. */
	for (int i = 0; i < 3; i++)
		MUST(rsendto(stranger, "s", 1, 0, &peer.sa, name_len) == 1);
	pass(end[1], &peer, end[0], "from the peer");
	FAILS(rrecv(end[0], &got, 1, MSG_DONTWAIT), EAGAIN);
	MUST(rconnect(end[0], &unspec.sa, sizeof(unspec.sa)) == 0);
	FAILS(rsend(end[0], "a", 1, 0), EDESTADDRREQ);
	/* Those of before may come late. */
	MUST(rsendto(stranger, "t", 1, 0, &peer.sa, name_len) == 1);
	do
		MUST(rrecv(end[0], &got, 1, 0) == 1);
	while (got == 's');
	MUST(got == 't');
	MUST(rclose(stranger) == 0);
	finish();
}

static void
sizes(void)
{
	uint32_t most = SIZE_MOST - (domain == AF_INET ? 8 : 24);
	static uint8_t sent[SIZE_MOST], got[SIZE_MOST];
	struct iovec parts[2] = { { sent, 1000 }, { sent + 1000, most - 1000 } };
	struct iovec places[3] = { { got, 7 }, { NULL, 0 }, { got + 7, most - 8 } };
	union name from;
	struct msghdr msg = { .msg_iov = parts, .msg_iovlen = 2 };

	begin("sizes", &here);
	for (uint32_t i = 0; i < SIZE_MOST; i++)
		sent[i] = (uint8_t)(i * 7);
	MUST(rconnect(end[0], &there.sa, name_len) == 0);
	/* The first ones go by UDP, the last ones do not. */
	for (int i = 0; i < 20; i++) {
		FAILS(rsend(end[0], sent, most + 1, 0), EMSGSIZE);
		MUST(rsendmsg(end[0], &msg, 0) == (ssize_t)most);
		MUST(rrecv(end[1], got, 3, MSG_PEEK) == 3 && memcmp(got, sent, 3) == 0);
		MUST(rrecv(end[1], got, 3, MSG_PEEK | MSG_TRUNC) == (ssize_t)most);
		msg = (struct msghdr){ .msg_iov = places,
			.msg_iovlen = 3,
			.msg_name = &from,
			.msg_namelen = sizeof(from) };
		MUST(rrecvmsg(end[1], &msg, 0) == (ssize_t)most - 1);
		MUST(msg.msg_flags == MSG_TRUNC && msg.msg_namelen == name_len);
		MUST(memcmp(got, sent, most - 1) == 0);
		MUST(rsend(end[0], NULL, 0, 0) == 0);
		wait_for(end[1], POLLIN);
		MUST(rrecv(end[1], got, 1, 0) == 0);
		msg = (struct msghdr){ .msg_iov = parts, .msg_iovlen = 2 };
		pass(end[1], &from, end[0], "heard");
	}
	finish();
}

static void
polls(void)
{
	struct pollfd poll = { .events = POLLIN | POLLOUT };
	char got;

	begin("polls", &here);
	poll.fd = end[1];
	MUST(rpoll(&poll, 1, 0) == 1 && poll.revents == POLLOUT);
	FAILS(rrecv(end[1], &got, 1, MSG_DONTWAIT), EAGAIN);
	MUST(rfcntl(end[1], F_SETFL, O_NONBLOCK) == 0);
	FAILS(rrecv(end[1], &got, 1, 0), EAGAIN);
	for (int i = 0; i < 5; i++) {
		MUST(rsendto(end[0], "a", 1, 0, &there.sa, name_len) == 1);
		wait_for(end[1], POLLIN);
		MUST(rrecv(end[1], &got, 1, 0) == 1 && got == 'a');
	}
	finish();
}

static void
refusals(void)
{
	union name loopback = named(domain == AF_INET ? "127.0.0.1" : "::1", PORT + 2);
	union name foreign = named(domain == AF_INET ? "203.0.113.77" : "2001:db8::77", PORT + 2);
	socklen_t len = sizeof(int);
	int val = 1;

	begin("refusals", NULL);
	FAILS(rbind(end[0], &loopback.sa, name_len), EADDRNOTAVAIL);
	FAILS(rbind(end[0], &foreign.sa, name_len), EADDRNOTAVAIL);
	FAILS(rbind(end[0], &there.sa, 3), EINVAL);
	FAILS(rbind(end[1], &here.sa, name_len), EINVAL);
	FAILS(rsendto(end[0], "a", 1, 0, &loopback.sa, name_len), ENETUNREACH);
	FAILS(rconnect(end[0], &loopback.sa, name_len), ENETUNREACH);
	FAILS(rsendto(end[1], "a", 1, 0, &there.sa, 4), EINVAL);
	FAILS(rlisten(end[1], 1), EOPNOTSUPP);
	FAILS(raccept(end[1], NULL, NULL), EOPNOTSUPP);
	FAILS(riomap(end[1], &val, sizeof(val), 0, 0, -1), EOPNOTSUPP);
	FAILS(riounmap(end[1], &val, sizeof(val)), EINVAL);
	MUST(riowrite(end[1], &val, sizeof(val), 0, 0) == (size_t)-1 && errno == EOPNOTSUPP);
	FAILS(rshutdown(end[1], SHUT_RDWR), ENOTCONN);
	FAILS(rsetsockopt(end[1], SOL_SOCKET, SO_KEEPALIVE, &val, sizeof(val)), ENOPROTOOPT);
	MUST(rgetsockopt(end[1], SOL_SOCKET, SO_TYPE, &val, &len) == 0 && val == SOCK_DGRAM);
	MUST(rgetsockopt(end[1], SOL_SOCKET, SO_ERROR, &val, &len) == 0 && val == 0);
	FAILS(rsocket(domain, SOCK_DGRAM, IPPROTO_TCP), EPROTONOSUPPORT);
	finish();
}

/* More destinations than are remembered, none of which answers; and one that does. */
static void
many_destinations(void)
{
	union name to = there;

	begin("many destinations", &here);
	for (int turn = 0; turn < 3; turn++) {
		pass(end[0], &there, end[1], "before");
		for (uint16_t i = 0; i < DESTS; i++) {
			if (domain == AF_INET)
				to.sin.sin_port = htons(20000 + i);
			else
				to.sin6.sin6_port = htons(20000 + i);
			MUST(rsendto(end[0], "a", 1, 0, &to.sa, name_len) == 1);
		}
	}
	pass(end[0], &there, end[1], "after");
	finish();
}

/* More than there is room for: some are lost, nobody waits, and it goes on after that. */
static void
floods(void)
{
	union name sender;
	char got[16];

	begin("floods", &here);
	sender = pass(end[0], &there, end[1], "first");
	pass(end[1], &sender, end[0], "back");
	MUST(rconnect(end[0], &there.sa, name_len) == 0);
	for (int i = 0; i < 2000; i++)
		MUST(rsend(end[0], "flood", 5, 0) == 5);
	while (rrecv(end[1], got, sizeof(got), MSG_DONTWAIT) == 5)
		;
	MUST(errno == EAGAIN);
	pass(end[1], &sender, end[0], "after it");
	finish();
}

static void *
wait_for_nothing(void *arg)
{
	char got;
	ssize_t ret = rrecv(end[1], &got, 1, 0);

	*(int *)arg = ret < 0 ? errno : 0;
	return NULL;
}

/* Who waits is woken when it is closed. */
static void
closes(void)
{
	pthread_t thread;
	int error = -1;

	begin("closes", NULL);
	MUST(pthread_create(&thread, NULL, wait_for_nothing, &error) == 0);
	usleep(20000);
	MUST(rclose(end[1]) == 0);
	MUST(pthread_join(thread, NULL) == 0);
	MUST(error == EBADF);
	MUST(rclose(end[0]) == 0);
}

/* Each half ends by itself, and without a word to the peer. */
static void
halves(void)
{
	union name sender;
	char got;

	begin("halves", &here);
	MUST(rconnect(end[0], &there.sa, name_len) == 0);
	sender = pass(end[0], NULL, end[1], "before");
	FAILS(rshutdown(end[0], 17), EINVAL);
	MUST(rshutdown(end[0], SHUT_WR) == 0);
	FAILS(rsend(end[0], "a", 1, MSG_NOSIGNAL), EPIPE);
	pass(end[1], &sender, end[0], "still heard");
	MUST(rshutdown(end[0], SHUT_RD) == 0);
	wait_for(end[0], POLLIN);
	MUST(rrecv(end[0], &got, 1, 0) == 0);
	MUST(rsendto(end[1], "b", 1, 0, &sender.sa, name_len) == 1);
	finish();
}

static int
as_child(void)
{
	union name own_name = named(domain == AF_INET ? "0.0.0.0" : "::", 0);
	char got;
	int own;

	/* Nor their ports. */
	FAILS(fcntl(end[0], F_GETFD), EBADF);
	FAILS(fcntl(end[1], F_GETFD), EBADF);
	FAILS(rrecv(end[1], &got, 1, MSG_DONTWAIT), EBADF);
	FAILS(rsendto(end[0], "b", 1, 0, &there.sa, name_len), EBADF);
	own = rsocket(domain, SOCK_DGRAM, 0);
	MUST(own >= 0 && rbind(own, &own_name.sa, name_len) == 0);
	MUST(rsendto(own, "c", 1, 0, &there.sa, name_len) == 1);
	MUST(rclose(own) == 0);
	return 0;
}

/* A child has none of them, and may make its own. */
static void
forks(void)
{
	pid_t child;
	int status;
	char got;

	begin("forks", &here);
	pass(end[0], &there, end[1], "before");
	child = fork();
	if (child == 0)
		_exit(as_child());
	MUST(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	MUST(rrecv(end[1], &got, 1, 0) == 1 && got == 'c');
	pass(end[0], &there, end[1], "after");
	finish();
}

int
main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	domain = strchr(argv[1], ':') != NULL ? AF_INET6 : AF_INET;
	name_len = domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	here = named(argv[1], 0);
	there = named(argv[2], PORT);
	names();
	any_address();
	peers();
	sizes();
	polls();
	refusals();
	many_destinations();
	floods();
	closes();
	halves();
	forks();
	return 0;
}
