/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets with all that is told by the kernel beside a datagram: whom it was sent to, TOS, hop
 * limit, options, fragments. What it must know is asked for; what only some kernels know is looked
 * at when it comes.
 *
 * They are not connected: then the kernel numbers what it sends without fragments from 0 on, in
 * each call (ip_select_ident_segs() of Linux).
 */
#include "udp_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <rte_common.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

struct option {
	int level, name, val;
	bool must;          /**< there is no doing without it */
	const char *reason; /**< of what must be */
};

static const struct option options4[] = {
	/* Anybody may say by ICMP what a path takes; RoCE can't be shorter, and need not hear. */
	{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, true, "no fragments" },
	{ IPPROTO_IP, IP_PKTINFO, 1, true, "destinations of datagrams" },
	{ IPPROTO_IP, IP_RECVTOS, 1, true, "TOS of datagrams" },
	{ IPPROTO_IP, IP_RECVTTL, 1, true, "TTL of datagrams" },
	{ IPPROTO_IP, IP_RECVOPTS, 1, false, NULL },
	{ IPPROTO_IP, IP_RECVFRAGSIZE, 1, false, NULL },
	{ IPPROTO_IP, IP_RECVERR, 1, false, NULL },
	/* Who sends to groups has its own members served. */
	{ IPPROTO_IP, IP_MULTICAST_LOOP, 0, false, NULL },
};

static const struct option options6[] = {
	{ IPPROTO_IPV6, IPV6_V6ONLY, 1, true, "a socket of IPv6 alone" },
	{ IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE, true, "no fragments" },
	{ IPPROTO_IPV6, IPV6_RECVPKTINFO, 1, true, "destinations of datagrams" },
	{ IPPROTO_IPV6, IPV6_RECVTCLASS, 1, true, "traffic classes of datagrams" },
	{ IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, true, "hop limits of datagrams" },
	{ IPPROTO_IPV6, IPV6_DONTFRAG, 1, false, NULL },
	{ IPPROTO_IPV6, IPV6_RECVFRAGSIZE, 1, false, NULL },
	{ IPPROTO_IPV6, IPV6_RECVERR, 1, false, NULL },
	{ IPPROTO_IPV6, IPV6_RECVHOPOPTS, 1, false, NULL },
	{ IPPROTO_IPV6, IPV6_RECVDSTOPTS, 1, false, NULL },
	{ IPPROTO_IPV6, IPV6_RECVRTHDR, 1, false, NULL },
	{ IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0, false, NULL },
	/* RoCE has no sum of UDP's, over IPv6 either (RFC 6936). */
	{ IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, true, "datagrams without a checksum" },
};

static int
udp_socket_set(int fd, int level, int name, int val)
{
	return setsockopt(fd, level, name, &val, sizeof(val)) == 0 ? 0 : -errno;
}

static int
udp_socket_fail(char *error, size_t error_len, int err, const char *what)
{
	snprintf(error, error_len, "%s: %s", what, strerror(-err));
	return err;
}

/*
 * The forced one is for who may; else the kernel's limits hold. Who gave a socket may have been
 * one who may.
 */
static void
udp_socket_buffers(int fd, uint32_t bytes, bool given)
{
	if (bytes == 0)
		return;
	if (udp_socket_set(fd, SOL_SOCKET, SO_RCVBUFFORCE, (int)bytes) != 0 && !given)
		udp_socket_set(fd, SOL_SOCKET, SO_RCVBUF, (int)bytes);
	if (udp_socket_set(fd, SOL_SOCKET, SO_SNDBUFFORCE, (int)bytes) != 0 && !given)
		udp_socket_set(fd, SOL_SOCKET, SO_SNDBUF, (int)bytes);
}

static int
udp_socket_options(
	int fd, const struct option *options, size_t count, char *error, size_t error_len)
{
	for (size_t i = 0; i < count; i++) {
		int err = udp_socket_set(fd, options[i].level, options[i].name, options[i].val);

		if (err != 0 && options[i].must)
			return udp_socket_fail(error, error_len, err, options[i].reason);
	}
	return 0;
}

static int
udp_socket_bind(int fd, enum udp_family family, const struct udp_args *args, uint16_t port,
	char *error, size_t error_len)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr *any = family == UDP_V4
		? (const struct sockaddr *)(const void *)&any4
		: (const struct sockaddr *)(const void *)&any6;
	socklen_t len = family == UDP_V4 ? sizeof(any4) : sizeof(any6);

	if (args->iface[0] != '\0' &&
		setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, args->iface,
			(socklen_t)strlen(args->iface)) != 0)
		return udp_socket_fail(error, error_len, -errno, args->iface);
	if (bind(fd, any, len) == 0)
		return 0;
	return udp_socket_fail(error, error_len, -errno,
		errno == EADDRINUSE ? "the UDP port is taken" : "the UDP port");
}

/* @param fd  set to the socket; to -1: there is no such version here */
static int
udp_socket_make(enum udp_family family, int *fd, char *error, size_t error_len)
{
	*fd = socket(family == UDP_V4 ? AF_INET : AF_INET6,
		SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*fd >= 0 || errno == EAFNOSUPPORT)
		return 0;
	return udp_socket_fail(error, error_len, -errno, "a socket");
}

int
udp_socket_claim(const struct udp_args *args, char *error, size_t error_len)
{
	int err = 0;

	for (int i = 0; err == 0 && i < UDP_FAMILIES; i++) {
		int fd;

		err = udp_socket_make((enum udp_family)i, &fd, error, error_len);
		if (fd < 0)
			continue;
		if (i == UDP_V6)
			udp_socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		err = udp_socket_bind(fd, (enum udp_family)i, args, args->port, error, error_len);
		if (err == -EADDRNOTAVAIL)
			err = 0;
		close(fd);
	}
	return err;
}

static int
udp_socket_prepare(int fd, int index, const struct udp_args *args, uint16_t queue, bool shared,
	char *error, size_t error_len)
{
	static const char several[] = "a port for several queues";
	enum udp_family family = (enum udp_family)(index % UDP_FAMILIES);
	bool strangers = index >= UDP_STRANGERS;
	bool given = args->given_count > 0;
	/* The first that was given takes the port as its own, and is joined then (the claim). */
	bool joined = shared && !strangers, claims = joined && given && queue == 0;
	int err = family == UDP_V4
		? udp_socket_options(fd, options4, RTE_DIM(options4), error, error_len)
		: udp_socket_options(fd, options6, RTE_DIM(options6), error, error_len);

	if (err != 0)
		return err;
	if (joined && !claims)
		err = udp_socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (err != 0)
		return udp_socket_fail(error, error_len, err, several);
	/* What comes to a group goes to all sockets of a port: once is enough. */
	if (queue > 0 && family == UDP_V4)
		udp_socket_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	if (queue > 0 && family == UDP_V6)
		udp_socket_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
	udp_socket_buffers(fd, args->buffer_bytes, given);
	/* Nobody answers to the port of a request: what comes there is not read. */
	if (strangers)
		udp_socket_set(fd, SOL_SOCKET, SO_RCVBUF, 0);
	err = udp_socket_bind(fd, family, args, strangers ? 0 : args->port, error, error_len);
	if (err != 0 || !claims)
		return err;
	err = udp_socket_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	return err == 0 ? 0 : udp_socket_fail(error, error_len, err, several);
}

static int
udp_socket_watch(const struct udp_sockets *sockets, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(sockets->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static uint16_t
udp_socket_port(int fd)
{
	struct sockaddr_in6 addr = { .sin6_port = 0 };
	socklen_t len = sizeof(addr);

	/* It is at the same place in an address of IPv4. */
	return getsockname(fd, (struct sockaddr *)&addr, &len) == 0 ? ntohs(addr.sin6_port) : 0;
}

/* One of them; none, where this machine does not have its version of IP. */
static int
udp_socket_open_one(struct udp_sockets *sockets, int index, const struct udp_args *args,
	uint16_t queue, bool shared, char *error, size_t error_len)
{
	int fd = sockets->fds[index];
	int err = sockets->given
		? 0
		: udp_socket_make((enum udp_family)(index % UDP_FAMILIES), &fd, error, error_len);

	if (fd < 0)
		return err;
	/* One that stayed has its port. */
	if (!sockets->given || sockets->ports[index] == 0)
		err = udp_socket_prepare(fd, index, args, queue, shared, error, error_len);
	if (err == 0 && index < UDP_STRANGERS) {
		err = udp_socket_watch(sockets, fd);
		if (err != 0)
			udp_socket_fail(error, error_len, err, "epoll");
	}
	/* One that was given can't be made again: who tries another time is to have it still. */
	if (err != 0 && (!sockets->given || err == -EADDRNOTAVAIL)) {
		close(fd);
		sockets->fds[index] = -1;
	}
	/* A kernel may have IPv6 and be told not to use it. */
	if (err != 0)
		return err == -EADDRNOTAVAIL ? 0 : err;
	sockets->fds[index] = fd;
	sockets->ports[index] = udp_socket_port(fd);
	sockets->runs &= udp_socket_set(fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
	if (index < UDP_STRANGERS)
		sockets->gro &= args->gro && udp_socket_set(fd, IPPROTO_UDP, UDP_GRO, 1) == 0;
	return 0;
}

int
udp_socket_open(struct udp_sockets *sockets, const struct udp_args *args, uint16_t queue,
	bool shared, char *error, size_t error_len)
{
	int err = 0;

	if (!sockets->given)
		*sockets = UDP_SOCKETS_NONE;
	sockets->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (sockets->epoll < 0)
		return udp_socket_fail(error, error_len, -errno, "epoll");
	sockets->runs = sockets->gro = true;
	for (int i = 0; err == 0 && i < UDP_SOCKETS; i++)
		err = udp_socket_open_one(sockets, i, args, queue, shared, error, error_len);
	if (err == 0 && sockets->fds[UDP_V4] < 0 && sockets->fds[UDP_V6] < 0)
		err = udp_socket_fail(error, error_len, -EAFNOSUPPORT, "neither IPv4 nor IPv6");
	if (err != 0)
		udp_socket_stop(sockets);
	return err;
}

int
udp_socket_take(struct udp_sockets *sockets, const int *fds, char *error, size_t error_len)
{
	*sockets = UDP_SOCKETS_NONE;
	sockets->given = true;
	for (int i = 0; i < UDP_SOCKETS; i++) {
		int domain = 0;
		socklen_t len = sizeof(domain);

		if (getsockopt(fds[i], SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
			domain != (i % UDP_FAMILIES == UDP_V4 ? AF_INET : AF_INET6))
			continue;
		sockets->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (sockets->fds[i] < 0) {
			int err = udp_socket_fail(error, error_len, -errno, "a given socket");

			udp_socket_close(sockets);
			return err;
		}
	}
	return 0;
}

uint64_t
udp_socket_missed(const struct udp_sockets *sockets)
{
	uint64_t sum = 0;

	for (int i = 0; i < UDP_FAMILIES; i++) {
		uint32_t info[SK_MEMINFO_VARS] = { 0 };
		socklen_t len = sizeof(info);

		if (sockets->fds[i] >= 0 &&
			getsockopt(sockets->fds[i], SOL_SOCKET, SO_MEMINFO, info, &len) == 0)
			sum += info[SK_MEMINFO_DROPS];
	}
	return sum;
}

void
udp_socket_close(struct udp_sockets *sockets)
{
	for (int i = 0; i < UDP_SOCKETS; i++)
		if (sockets->fds[i] >= 0)
			close(sockets->fds[i]);
	if (sockets->epoll >= 0)
		close(sockets->epoll);
	*sockets = UDP_SOCKETS_NONE;
}

void
udp_socket_stop(struct udp_sockets *sockets)
{
	if (!sockets->given) {
		udp_socket_close(sockets);
		return;
	}
	if (sockets->epoll >= 0)
		close(sockets->epoll);
	sockets->epoll = -1;
}
