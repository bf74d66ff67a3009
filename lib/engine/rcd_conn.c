/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections: accepted or refused, found, told of events, ended. Who one is says rcd_cred.c, and
 * what it asks for is read by rcd_inbox.c.
 */
#include "rcd_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_check.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_counter.h"
#include "rcd_cred.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_neigh.h"
#include "rcd_quota.h"
#include "rcd_thread.h"

/*
 * Clients choose, by coming and going, which serials they hold; they don't know which of them are
 * found together, and so can't make a list long that others are in.
 */
static uint32_t
conn_bucket(const struct rcd_engine *engine, uint32_t serial)
{
	uint64_t mixed = serial * (engine->secret[1] | 1);

	return (uint32_t)(mixed >> 32) % RCD_CONN_BUCKETS;
}

static void
conn_refuse(struct rcd_engine *engine, int sock)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	struct rcd_ctrl_hdr refusal = { .op = RCD_CTRL_HELLO, .status = -EUSERS };

	rcd_ctrl_send(sock, &refusal, sizeof(refusal), NULL, MSG_DONTWAIT);
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &(socklen_t){ sizeof(cred) });
	rcd_closer_take_sock(engine->closer, sock, cred.uid);
}

/* A connection of this user is counted. @return 0, or -errno when it is one too many */
static int
conn_charge(struct rcd_engine *engine, struct rcd_conn *conn, uid_t uid)
{
	int err = rcd_quota_join(&engine->book, &conn->quota, uid);

	/* Who leaves too much to be closed gets no more connections to leave it in. */
	if (err == 0 && !rcd_closer_may_stay(engine->closer, uid))
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

int
rcd_engine_adopt(struct rcd_engine *engine, int sock)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	struct ucred cred;
	socklen_t cred_len = sizeof(cred);
	struct rcd_conn *conn =
		engine->client_count < engine->conf.clients ? calloc(1, sizeof(*conn)) : NULL;

	RCD_ON_CONTROL();
	rcd_closer_expect(engine->closer);
	if (conn != NULL)
		conn->events = -1;
	if (conn == NULL || getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) != 0 ||
		conn_charge(engine, conn, cred.uid) != 0) {
		free(conn);
		conn_refuse(engine, sock);
		return -EUSERS;
	}
	conn->engine = engine;
	conn->sock = sock;
	conn->serial = engine->next_serial++;
	conn->pid = cred.pid;
	conn->uid = cred.uid;
	conn->gid = cred.gid;
	conn->cm = (struct rcd_cm_user){ .engine = engine, .quota = &conn->quota, .conn = conn };
	rcd_cred_read(conn);
	event.data.u64 = conn->serial;
	/* Whom nobody hears would wait for ever, and keep its place. */
	if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, sock, &event) != 0) {
		rcd_quota_leave(&conn->quota);
		free(conn);
		conn_refuse(engine, sock);
		return -EUSERS;
	}
	LIST_INSERT_HEAD(&engine->conns, conn, link);
	LIST_INSERT_HEAD(
		&engine->conns_by_serial[conn_bucket(engine, conn->serial)], conn, serial_link);
	engine->client_count++;
	return 0;
}

/* One that is refused would have to be closed, with the descriptors that it may have brought. */
static bool
conn_may_accept(const struct rcd_engine *engine)
{
	return rcd_closer_is_ready(engine->closer) &&
		(engine->guarded || rcd_closer_may_accept(engine->closer));
}

/* Leave new connections alone for a while, or no longer. */
static void
conn_accept_later(struct rcd_engine *engine, bool later)
{
	struct epoll_event event = { .events = later ? 0 : EPOLLIN,
		.data.u64 = (uint64_t)RCD_SOURCE_LISTEN << 32 };

	engine->accept_later = later;
	epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, engine->listen_fd, &event);
}

void
rcd_conn_accept_again(struct rcd_engine *engine)
{
	RCD_ON_CONTROL();
	if (engine->accept_later && conn_may_accept(engine))
		conn_accept_later(engine, false);
}

void
rcd_conn_accept(struct rcd_engine *engine)
{
	int sock;

	RCD_ON_CONTROL();
	if (!conn_may_accept(engine)) {
		conn_accept_later(engine, true);
		return;
	}
	/* It could not be opened again last time. */
	if (engine->spare_fd < 0)
		engine->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sock = accept4(engine->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	/*
	 * Quotas keep clients from this; whatever did it, who waits is told, and the listening
	 * socket does not stay ready for ever.
	 */
	if (sock < 0 && (errno == EMFILE || errno == ENFILE) && engine->spare_fd >= 0) {
		close(engine->spare_fd);
		sock = accept4(engine->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0) {
			rcd_closer_expect(engine->closer);
			conn_refuse(engine, sock);
		} else {
			conn_accept_later(engine, true);
		}
		engine->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return;
	}
	if (sock >= 0)
		rcd_engine_adopt(engine, sock);
	else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		conn_accept_later(engine, true);
}

struct rcd_conn *
rcd_conn_find(const struct rcd_engine *engine, uint32_t serial)
{
	struct rcd_conn *conn;

	RCD_ON_CONTROL();
	LIST_FOREACH(conn, &engine->conns_by_serial[conn_bucket(engine, serial)], serial_link)
		if (conn->serial == serial)
			return conn;
	return NULL;
}

int
rcd_conn_events_open(struct rcd_conn *conn, int *theirs)
{
	int ends[2];
	int err;

	RCD_ON_CONTROL();
	err = rcd_quota_charge(&conn->quota, RCD_RESOURCE_DESCRIPTORS, 1);
	if (err != 0)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
		err = -errno;
		rcd_quota_uncharge(&conn->quota, RCD_RESOURCE_DESCRIPTORS, 1);
		return err;
	}
	/* The client sends nothing: descriptors would be closed with our end. */
	shutdown(ends[0], SHUT_RD);
	conn->events = ends[0];
	*theirs = ends[1];
	return 0;
}

void
rcd_conn_events_close(struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	if (conn->events < 0)
		return;
	close(conn->events);
	conn->events = -1;
	rcd_quota_uncharge(&conn->quota, RCD_RESOURCE_DESCRIPTORS, 1);
}

void
rcd_conn_event(struct rcd_conn *conn, uint32_t type, uint32_t of, uint64_t cookie)
{
	struct rcd_ctrl_event event = { .type = type, .of = of, .cookie = cookie };

	RCD_ON_CONTROL();
	if (conn->events >= 0 &&
		rcd_ctrl_send(conn->events, &event, sizeof(event), NULL, MSG_DONTWAIT) != 0)
		rcd_counter_add(&conn->engine->counters, RCD_COUNTER_EVENTS_LOST, 1);
}

void
rcd_conn_end(struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	rcd_conn_events_close(conn);
	conn->ended = true;
	shutdown(conn->sock, SHUT_RDWR);
}

void
rcd_conn_free(struct rcd_conn *conn)
{
	struct rcd_engine *engine = conn->engine;

	RCD_ON_CONTROL();
	RCD_CHECK(conn->context == NULL && !conn->parked);
	rcd_conn_events_close(conn);
	rcd_cm_host_end(&conn->cm);
	rcd_neigh_leave(engine->ports.neighs, &conn->quota);
	LIST_REMOVE(conn, link);
	LIST_REMOVE(conn, serial_link);
	engine->client_count--;
	rcd_quota_leave(&conn->quota);
	rcd_closer_take_sock(engine->closer, conn->sock, conn->uid);
	free(conn);
}
