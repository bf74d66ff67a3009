/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Sockets of other network namespaces. Each request has a process of its own, as who entered a user
 * namespace can't leave it.
 */
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_away.h"
#include "rcd_ctrl.h"
#include "rcd_lcores.h"
#include "rcd_netns.h"

#define ROOM         (8 << 20) /**< of a socket and direction, as the driver wants it */
#define CHILDREN_MAX 32        /**< requests at once */
#define SEND_S       10        /**< an engine that takes no answer for so long gets none */

static pid_t netns_pid; /**< of who makes sockets */

/** A message that is no request. */
static const char SETTLE[] = "settle";

/* To enter namespaces, and for large buffers; no more of what there is. @return false: all stay */
static bool
netns_keep_few(void)
{
	static const unsigned int keep[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN };
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 }, few[2] = { 0 };

	if (syscall(SYS_capget, &header, data) != 0)
		return false;
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
		few[0].permitted |= data[0].permitted & 1u << keep[i];
	few[0].effective = few[0].permitted;
	return syscall(SYS_capset, &header, few) == 0;
}

/* As the command line takes it: of a process, a path, or as "ip netns" has it. */
static int
netns_open(const char *name)
{
	bool number = name[strspn(name, "0123456789")] == '\0';
	char path[RCD_NETNS_LEN + 32];

	if (number)
		snprintf(path, sizeof(path), "/proc/%s/ns/net", name);
	else
		snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/run/netns/", name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/*
 * Who has rights in a namespace can make rules there, which each packet goes through, and that in
 * the lcore that sends it. So of clients' namespaces none will do but those of our own user
 * namespace, where nobody has rights but by the operator, or of one that who started us has made.
 *
 * @return 0; -EACCES; or -errno
 */
static int
netns_check_owner(int fd)
{
	int user = ioctl(fd, NS_GET_USERNS);
	uid_t owner = 0;
	struct stat own, its;
	bool fine;

	/* It is told of our own user namespace, and what is in that. */
	if (user < 0)
		return errno == EPERM ? -EACCES : -errno;
	fine = stat("/proc/self/ns/user", &own) == 0 && fstat(user, &its) == 0 &&
		own.st_dev == its.st_dev && own.st_ino == its.st_ino;
	if (!fine && geteuid() != 0 && ioctl(user, NS_GET_OWNER_UID, &owner) == 0)
		fine = owner == geteuid();
	close(user);
	return fine ? 0 : -EACCES;
}

/* By way of its user namespace if need be. @return 0 or -errno */
static int
netns_enter(int fd)
{
	int user;

	if (setns(fd, CLONE_NEWNET) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	user = ioctl(fd, NS_GET_USERNS);
	if (user < 0)
		return -errno;
	/* In our own we are, and without the right. */
	if (setns(user, CLONE_NEWUSER) != 0)
		return errno == EINVAL ? -EPERM : -errno;
	return setns(fd, CLONE_NEWNET) == 0 ? 0 : -errno;
}

/* @return it, or -errno */
static int
netns_socket(int family, int type, int protocol)
{
	int sock = socket(family, type | SOCK_CLOEXEC, protocol);

	return sock < 0 ? -errno : sock;
}

/* Of the other version of IP where the machine lacks this one. @return it, or -errno */
static int
netns_udp(int family)
{
	const int room = ROOM;
	int sock = netns_socket(family, SOCK_DGRAM, 0);

	if (sock == -EAFNOSUPPORT)
		sock = netns_socket(family == AF_INET ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	if (sock < 0)
		return sock;
	/* Without the right it is as much as anybody may have: the driver asks for that. */
	setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	return sock;
}

/* Four of them. @return 0 or -errno */
static int
netns_four(bool first, struct rcd_ctrl_fds *fds)
{
	for (fds->count = 0; fds->count < RCD_AWAY_FDS; fds->count++) {
		int *sock = &fds->fds[fds->count];

		if (first && fds->count < 2)
			*sock = netns_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
		else
			*sock = netns_udp(fds->count % 2 == 0 ? AF_INET : AF_INET6);
		if (*sock < 0)
			return *sock;
	}
	return 0;
}

/* All that is asked for. @return 0, when the last has been sent, or -errno */
static int
netns_make(int out, const struct rcd_netns_req *req, int fd)
{
	struct rcd_netns_rep rep = { .who = req->who, .number = req->number };
	bool named = fd < 0;
	int err = 0;

	if (named)
		fd = netns_open(req->name);
	if (fd < 0)
		return -errno;
	/* One that a client sent has been looked at. */
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWNET)
		return -EINVAL;
	if (!named)
		err = netns_check_owner(fd);
	if (err == 0)
		err = netns_enter(fd);
	for (uint32_t i = 0; err == 0 && i <= req->queues; i++) {
		struct rcd_ctrl_fds fds;

		err = netns_four(i == 0, &fds);
		rep.left = req->queues - i;
		if (err == 0)
			err = rcd_ctrl_send(out, &rep, sizeof(rep), &fds, 0);
		rcd_ctrl_fds_close(&fds);
	}
	return err;
}

static void
netns_answer(int out, const struct rcd_netns_req *req, int err)
{
	struct rcd_netns_rep rep = { .who = req->who, .number = req->number, .err = err };

	if (err != 0)
		rcd_ctrl_send(out, &rep, sizeof(rep), NULL, 0);
}

/* Requests that are carried out, of which those that are done go. */
static unsigned int
netns_count_children(unsigned int count)
{
	while (count > 0 && waitpid(-1, NULL, WNOHANG) > 0)
		count--;
	return count;
}

/* What there is to say against a request at once. @return 0 or -errno */
static int
netns_check(const struct rcd_netns_req *req, bool has_fd, bool settled)
{
	if (req->queues > RCD_LCORES_MAX)
		return -EINVAL;
	/* A descriptor that we have no room for is left out. */
	if (!has_fd && req->name[0] == '\0')
		return -EMFILE;
	return !has_fd && settled ? -EPERM : 0;
}

static void
netns_run(int sock)
{
	unsigned int children = 0;
	bool settled = false;

	for (;;) {
		struct rcd_netns_req req;
		struct rcd_ctrl_fds fds;
		long len = rcd_ctrl_recv(sock, &req, sizeof(req), &fds, 0);
		bool has_fd = len > 0 && fds.count > 0;
		pid_t child = -1;
		int err;

		if (len <= 0 && len != -EMSGSIZE)
			return;
		if (len == sizeof(SETTLE)) {
			if (!netns_keep_few())
				return;
			settled = true;
		}
		if (len != (long)sizeof(req)) {
			rcd_ctrl_fds_close(&fds);
			continue;
		}
		req.name[sizeof(req.name) - 1] = '\0';
		children = netns_count_children(children);
		err = netns_check(&req, has_fd, settled);
		if (err == 0 && children == CHILDREN_MAX)
			err = -EAGAIN;
		if (err == 0)
			child = fork();
		if (child == 0) {
			netns_answer(sock, &req, netns_make(sock, &req, has_fd ? fds.fds[0] : -1));
			_exit(0);
		}
		if (child > 0)
			children++;
		else
			netns_answer(sock, &req, err != 0 ? err : -errno);
		rcd_ctrl_fds_close(&fds);
	}
}

void
netns_settle(int sock)
{
	rcd_ctrl_send(sock, SETTLE, sizeof(SETTLE), NULL, 0);
}

void
netns_end(int sock)
{
	shutdown(sock, SHUT_RDWR);
	while (waitpid(netns_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int
netns_begin(void)
{
	const struct timeval send_time = { .tv_sec = SEND_S };
	int ends[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -errno;
	fflush(NULL);
	child = fork();
	if (child < 0) {
		int err = -errno;

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	close(ends[child == 0 ? 0 : 1]);
	netns_pid = child;
	if (child > 0)
		return ends[0];
	setsockopt(ends[1], SOL_SOCKET, SO_SNDTIMEO, &send_time, sizeof(send_time));
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_NAME, "rocaded-netns", 0, 0, 0);
	/* Who has rights in a user namespace could trace it there, and take what it has. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	netns_run(ends[1]);
	_exit(0);
}
