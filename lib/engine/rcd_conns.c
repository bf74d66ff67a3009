/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections: listened for, accepted or refused, found. Who one is says rcd_cred.c.
 */
#include "rcd_conns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rcd_away.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_counter.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_quota.h"
#include "rcd_thread.h"

void
rcd_conns_clear(struct rcd_conns *conns)
{
	RCD_ON_CONTROL();
	*conns = (struct rcd_conns){ .listen_fd = -1, .spare_fd = -1, .next_serial = 1 };
	TAILQ_INIT(&conns->inbox.unfinished);
}

void
rcd_conns_init(struct rcd_conns *conns, const struct rcd_conns_conf *conf)
{
	RCD_ON_CONTROL();
	conns->conf = *conf;
	conns->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void
rcd_conns_unlisten(struct rcd_conns *conns)
{
	RCD_ON_CONTROL();
	if (conns->listen_fd < 0)
		return;
	unlink(conns->conf.limits->socket);
	close(conns->listen_fd);
	conns->listen_fd = -1;
}

void
rcd_conns_fini(struct rcd_conns *conns)
{
	RCD_ON_CONTROL();
	if (conns->spare_fd >= 0)
		close(conns->spare_fd);
	conns->spare_fd = -1;
}

/* Whether somebody is to be taken when he comes. @param op  of epoll_ctl() */
static int
conns_watch(const struct rcd_conns *conns, int op, bool later)
{
	struct epoll_event event = { .events = later ? 0 : EPOLLIN,
		.data.u64 = (uint64_t)RCD_SOURCE_LISTEN << 32 };

	return epoll_ctl(conns->conf.epoll_fd, op, conns->listen_fd, &event) == 0 ? 0 : -errno;
}

/* Whether an engine answers at this address. */
static bool
conns_in_use(const struct sockaddr_un *addr)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool used = sock >= 0 && connect(sock, (const struct sockaddr *)addr, sizeof(*addr)) == 0;

	if (sock >= 0)
		close(sock);
	return used;
}

int
rcd_conns_listen(struct rcd_conns *conns, char *error, size_t error_len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = conns->conf.limits->socket;
	mode_t mask;
	int err = 0;

	RCD_ON_CONTROL();
	if (path[0] == '\0')
		return 0;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (conns_in_use(&addr)) {
		snprintf(error, error_len, "another engine answers on %s", path);
		return -EADDRINUSE;
	}
	/* What a killed engine left behind. */
	unlink(path);
	conns->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0777 & ~conns->conf.limits->socket_mode);
	if (conns->listen_fd < 0 ||
		bind(conns->listen_fd, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
		listen(conns->listen_fd, 1024) != 0)
		err = -errno;
	/* Who has not greeted sends no descriptors; its connection can be closed at once. */
	conns->guarded = rcd_closer_open_to_fds(conns->listen_fd, false);
	umask(mask);
	if (err == 0 && conns->conf.limits->socket_gid >= 0 &&
		chown(path, (uid_t)-1, (gid_t)conns->conf.limits->socket_gid) != 0)
		err = -errno;
	if (err == 0)
		err = conns_watch(conns, EPOLL_CTL_ADD, false);
	if (err != 0)
		snprintf(error, error_len, "can't listen on %s: %s", path, strerror(-err));
	return err;
}

/*
 * Clients choose, by coming and going, which serials they hold; they don't know which of them are
 * found together, and so can't make a list long that others are in.
 */
static uint32_t
conns_bucket(const struct rcd_conns *conns, uint32_t serial)
{
	uint64_t mixed = serial * (conns->conf.secret | 1);

	return (uint32_t)(mixed >> 32) % RCD_CONN_BUCKETS;
}

static void
conns_refuse(struct rcd_conns *conns, int sock)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	struct rcd_ctrl_hdr refusal = { .op = RCD_CTRL_HELLO, .status = -EUSERS };

	rcd_ctrl_send(sock, &refusal, sizeof(refusal), NULL, MSG_DONTWAIT);
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &(socklen_t){ sizeof(cred) });
	rcd_closer_take_sock(conns->conf.closer, sock, cred.uid);
}

/* A connection of this user is counted. @return 0, or -errno when it is one too many */
static int
conns_charge(struct rcd_conns *conns, struct rcd_conn *conn, uid_t uid)
{
	int err = rcd_quota_join(conns->conf.book, &conn->quota, uid);

	/* Who leaves too much to be closed gets no more connections to leave it in. */
	if (err == 0 && !rcd_closer_may_stay(conns->conf.closer, uid))
		err = -EUSERS;
	if (err == 0)
		err = rcd_quota_charge(&conn->quota, RCD_RESOURCE_CLIENTS, 1);
	if (err == 0)
		err = rcd_quota_charge(
			&conn->quota, RCD_RESOURCE_DESCRIPTORS, rcd_conn_descriptors(conn));
	if (err != 0)
		rcd_quota_leave(&conn->quota);
	return err;
}

/* Of no connection that is open: numbers come round, and events are told by them. */
static uint32_t
conns_new_serial(struct rcd_conns *conns)
{
	uint32_t serial;

	do
		serial = conns->next_serial++;
	while (serial == 0 || rcd_conns_find(conns, serial) != NULL);
	return serial;
}

/* It has a number and a name, and identifiers of CM are its own. */
static void
conns_introduce(struct rcd_conns *conns, struct rcd_conn *conn)
{
	conn->all = conns;
	conn->serial = conns_new_serial(conns);
	conn->cm = (struct rcd_cm_user){
		.host = conns->conf.cm, .quota = &conn->quota, .conn = conn, .netns = conn->netns
	};
	rcd_cred_read(conn);
}

static void
conns_enter(struct rcd_conns *conns, struct rcd_conn *conn)
{
	LIST_INSERT_HEAD(&conns->list, conn, link);
	LIST_INSERT_HEAD(&conns->by_serial[conns_bucket(conns, conn->serial)], conn, serial_link);
	conns->count++;
}

int
rcd_conns_own(struct rcd_conns *conns, const struct rcd_conn_owner *owner, void *arg,
	struct rcd_conn **made)
{
	struct rcd_conn *conn;
	int err;

	RCD_ON_CONTROL();
	if (conns->count >= conns->conf.limits->clients)
		return -EUSERS;
	conn = calloc(1, sizeof(*conn));
	if (conn == NULL)
		return -ENOMEM;
	conn->sock = conn->events = -1;
	conn->owner = owner;
	conn->owner_arg = arg;
	conn->pid = getpid();
	conn->uid = geteuid();
	conn->gid = getegid();
	conn->greeted = true;
	err = conns_charge(conns, conn, conn->uid);
	if (err != 0) {
		free(conn);
		return err;
	}
	conns_introduce(conns, conn);
	conns_enter(conns, conn);
	*made = conn;
	return 0;
}

int
rcd_conns_adopt(struct rcd_conns *conns, int sock)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	struct rcd_conn *conn =
		conns->count < conns->conf.limits->clients ? calloc(1, sizeof(*conn)) : NULL;

	RCD_ON_CONTROL();
	rcd_closer_expect(conns->conf.closer);
	if (conn != NULL)
		conn->events = -1;
	if (conn == NULL || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 ||
		conns_charge(conns, conn, cred.uid) != 0) {
		free(conn);
		conns_refuse(conns, sock);
		return -EUSERS;
	}
	conn->sock = sock;
	conn->pid = cred.pid;
	conn->uid = cred.uid;
	conn->gid = cred.gid;
	conn->netns = rcd_away_netns(sock);
	conns_introduce(conns, conn);
	event.data.u64 = conn->serial;
	/* Whom nobody hears would wait for ever, and keep its place. */
	if (epoll_ctl(conns->conf.epoll_fd, EPOLL_CTL_ADD, sock, &event) != 0) {
		rcd_quota_leave(&conn->quota);
		free(conn);
		conns_refuse(conns, sock);
		return -EUSERS;
	}
	conns_enter(conns, conn);
	return 0;
}

/* One that is refused would have to be closed, with the descriptors that it may have brought. */
static bool
conns_may_accept(const struct rcd_conns *conns)
{
	return rcd_closer_is_ready(conns->conf.closer) &&
		(conns->guarded || rcd_closer_may_accept(conns->conf.closer));
}

/* Leave new connections alone for a while, or no longer. */
static void
conns_accept_later(struct rcd_conns *conns, bool later)
{
	conns->accept_later = later;
	conns_watch(conns, EPOLL_CTL_MOD, later);
}

void
rcd_conns_accept_again(struct rcd_conns *conns)
{
	RCD_ON_CONTROL();
	if (conns->accept_later && conns_may_accept(conns))
		conns_accept_later(conns, false);
}

void
rcd_conns_accept(struct rcd_conns *conns)
{
	int sock;

	RCD_ON_CONTROL();
	if (!conns_may_accept(conns)) {
		conns_accept_later(conns, true);
		return;
	}
	/* It could not be opened again last time. */
	if (conns->spare_fd < 0)
		conns->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sock = accept4(conns->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	/*
	 * Quotas keep clients from this; whatever did it, who waits is told, and the listening
	 * socket does not stay ready for ever.
	 */
	if (sock < 0 && (errno == EMFILE || errno == ENFILE) && conns->spare_fd >= 0) {
		close(conns->spare_fd);
		sock = accept4(conns->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			rcd_closer_expect(conns->conf.closer);
			conns_refuse(conns, sock);
		} else {
			conns_accept_later(conns, true);
		}
		conns->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return;
	}
	if (sock >= 0)
		rcd_conns_adopt(conns, sock);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		conns_accept_later(conns, true);
}

struct rcd_conn *
rcd_conns_find(const struct rcd_conns *conns, uint32_t serial)
{
	struct rcd_conn *conn;

	RCD_ON_CONTROL();
	LIST_FOREACH(conn, &conns->by_serial[conns_bucket(conns, serial)], serial_link)
		if (conn->serial == serial)
			return conn;
	return NULL;
}
