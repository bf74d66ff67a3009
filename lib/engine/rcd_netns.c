/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests to who makes sockets of other network namespaces, and its answers.
 */
#include "rcd_netns.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_away.h"
#include "rcd_clock.h"
#include "rcd_ctrl.h"
#include "rcd_thread.h"

#define PATIENCE_NS UINT64_C(30000000000)

bool
rcd_netns_is_one(int fd)
{
	static const char begin[] = "net:[";
	char path[64], name[sizeof(begin) - 1];

	/* The kernel's names of its own: those of files begin with a slash. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, name, sizeof(name)) == (ssize_t)sizeof(name) &&
		memcmp(name, begin, sizeof(name)) == 0;
}

int
rcd_netns_ask(int sock, uint32_t who, uint32_t number, uint32_t queues, const char *name, int fd)
{
	struct rcd_netns_req req = { .who = who, .number = number, .queues = queues };
	struct rcd_ctrl_fds fds = { .fds = { fd }, .count = name == NULL };

	RCD_ON_CONTROL();
	if (name != NULL)
		snprintf(req.name, sizeof(req.name), "%s", name);
	return rcd_ctrl_send(sock, &req, sizeof(req), &fds, MSG_DONTWAIT);
}

int
rcd_netns_take(int sock, struct rcd_netns_rep *rep, struct rcd_ctrl_fds *fds)
{
	long len;

	RCD_ON_CONTROL();
	len = rcd_ctrl_recv(sock, rep, sizeof(*rep), fds, MSG_DONTWAIT);
	if (len == -EAGAIN || len == -ENOMEM || len == -ENOBUFS)
		return -EAGAIN;
	if (len == 0 || (len < 0 && len != -EMSGSIZE))
		return -EPIPE;
	if (len != (long)sizeof(*rep))
		*rep = (struct rcd_netns_rep){ .err = -EPROTO };
	/* The kernel leaves out those that we have no room for. */
	else if (rep->err == 0 && fds->count != RCD_AWAY_FDS)
		rep->err = -EMFILE;
	if (rep->err != 0)
		rcd_ctrl_fds_close(fds);
	return 0;
}

/* @return 0; -ETIMEDOUT, or what rcd_netns_take() says */
static int
netns_wait(int sock, uint64_t end_ns, struct rcd_netns_rep *rep, struct rcd_ctrl_fds *fds)
{
	int err;

	while ((err = rcd_netns_take(sock, rep, fds)) == -EAGAIN) {
		struct pollfd event = { .fd = sock, .events = POLLIN };
		uint64_t now_ns = rcd_clock_ns();

		if (now_ns >= end_ns)
			return -ETIMEDOUT;
		poll(&event, 1, (int)((end_ns - now_ns) / 1000000u) + 1);
	}
	return err;
}

static int
netns_fetch(int sock, const char *name, uint32_t queues, struct rcd_away **away)
{
	uint64_t end_ns = rcd_clock_ns() + PATIENCE_NS;
	struct rcd_netns_rep rep = { .left = 1 };
	int err = rcd_netns_ask(sock, 0, 0, queues, name, -1);

	while (err == 0 && rep.left > 0) {
		struct rcd_ctrl_fds fds;

		err = netns_wait(sock, end_ns, &rep, &fds);
		if (err != 0)
			return err;
		if (rep.who != 0) {
			/* What is not for us goes: a client is told that time is up. */
			rep.left = 1;
		} else {
			err = rep.err != 0 ? rep.err : rcd_away_take(away, fds.fds);
			/* All are taken, or none. */
			if (err == 0)
				fds.count = 0;
		}
		rcd_ctrl_fds_close(&fds);
	}
	return err;
}

int
rcd_netns_fetch(int sock, const char *name, uint32_t queues, struct rcd_away **away, char *error,
	size_t error_len)
{
	int err;

	RCD_ON_CONTROL();
	*away = NULL;
	err = netns_fetch(sock, name, queues, away);
	if (err == 0)
		return 0;
	rcd_away_free(*away);
	*away = NULL;
	snprintf(error, error_len, "netns: %s: %s", name,
		err == -EPERM            ? "needs root, or the owner of its user namespace"
			: err == -EINVAL ? "no network namespace"
					 : strerror(-err));
	return err;
}
