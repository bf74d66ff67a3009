/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The way of a request in and of its reply out. A connection has one request at a time; one that
 * waits is served again, and whatever was begun for it ends with it.
 */
#include "rcd_inbox.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_alarm.h"
#include "rcd_bits.h"
#include "rcd_budget.h"
#include "rcd_clock.h"
#include "rcd_closer.h"
#include "rcd_conn.h"
#include "rcd_conns.h"
#include "rcd_context.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_request.h"
#include "rcd_thread.h"
#include "rcd_waiter.h"

#define PARKED_NS        3000000000ull /**< how long a request waits for a neighbour */
#define MESSAGES_AT_ONCE 16            /**< of one connection before the next has its turn */
#define AGAIN_NS         20000000u     /**< between attempts at what waits for an lcore's work */
#define DRAINED_NS       1000000u      /**< likewise: for packets to leave */

/* @return false when the client takes no replies: it is to go */
static bool
inbox_reply(
	struct rcd_conn *conn, const struct rcd_ctrl_msg *req, int status, struct rcd_answer *rep)
{
	size_t len = sizeof(rep->msg.hdr);
	int err;

	rep->msg.hdr = (struct rcd_ctrl_hdr){
		.op = req->hdr.op, .number = req->hdr.number, .status = status
	};
	/* A refused greeting carries the versions. */
	if (status == 0 || (status == -EPROTONOSUPPORT && req->hdr.op == RCD_CTRL_HELLO))
		len = rcd_ctrl_rep_len(req->hdr.op);
	err = rcd_ctrl_send(
		conn->sock, &rep->msg, len, status == 0 ? &rep->fds : NULL, MSG_DONTWAIT);
	for (unsigned int i = 0; i < rep->fds.count; i++)
		if (!(rep->keep & (1u << i)))
			close(rep->fds.fds[i]);
	return err == 0;
}

static void
inbox_watch(struct rcd_conn *conn, uint32_t events)
{
	struct epoll_event event = { .events = events | EPOLLRDHUP, .data.u64 = conn->serial };

	epoll_ctl(conn->all->conf.epoll_fd, EPOLL_CTL_MOD, conn->sock, &event);
}

/* Leave the messages of a connection unread for a while, or no longer. */
static void
inbox_read_later(struct rcd_conn *conn, bool later)
{
	conn->all->inbox.read_later |= later;
	conn->read_later = later;
	inbox_watch(conn, later ? 0 : EPOLLIN);
}

void
rcd_inbox_read_again(struct rcd_conns *conns)
{
	struct rcd_conn *conn;

	RCD_ON_CONTROL();
	conns->inbox.read_later = false;
	LIST_FOREACH(conn, &conns->list, link)
		if (conn->read_later)
			inbox_read_later(conn, false);
}

/* When a request that waits for no waiter is tried again. */
static uint64_t
inbox_again_ns(const struct rcd_conn *conn)
{
	bool drains = conn->parked_msg.hdr.op == RCD_CTRL_QP_DESTROY;

	return rcd_clock_ns() + (drains ? DRAINED_NS : AGAIN_NS);
}

static void
inbox_park(struct rcd_conn *conn, bool parked)
{
	struct rcd_inbox *inbox = &conn->all->inbox;
	struct rcd_alarms *alarms = conn->all->conf.alarms;

	if (conn->parked == parked)
		return;
	conn->parked = parked;
	if (parked) {
		inbox->parked++;
		if (conn->unfinished)
			TAILQ_INSERT_TAIL(&inbox->unfinished, conn, unfinished_link);
		else
			rcd_alarm_set(alarms, &conn->patience,
				rcd_waiter_waits(&conn->waiter) ? conn->parked_until_ns
								: inbox_again_ns(conn));
	} else {
		rcd_waiter_cancel(&conn->waiter);
		rcd_alarm_cancel(alarms, &conn->patience);
		inbox->parked--;
		if (conn->unfinished)
			TAILQ_REMOVE(&inbox->unfinished, conn, unfinished_link);
		conn->unfinished = false;
	}
}

/* A request is over, however it ended: what was begun for it and not taken goes. */
static void
inbox_settle(struct rcd_conn *conn)
{
	if (conn->context != NULL)
		rcd_context_settle(conn->context, conn);
}

void
rcd_inbox_close(struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	inbox_settle(conn);
	inbox_park(conn, false);
	if (conn->context != NULL)
		rcd_context_leave(conn->context, conn);
	rcd_conn_free(conn);
}

/* Serve a parked request again. */
static void
inbox_retry(struct rcd_conn *conn)
{
	struct rcd_ctrl_fds none = { .fds = { -1, -1, -1, -1 }, .count = 0 };
	struct rcd_answer rep = { .keep = 0 };
	bool waits;
	int status;

	inbox_park(conn, false);
	(*conn->all->conf.work)++;
	conn->again = true;
	status = rcd_serve(conn, &conn->parked_msg, &none, &rep);
	conn->again = false;
	waits = status == RCD_REQUEST_WAITS;
	if (status == -EINPROGRESS || (waits && rcd_clock_ns() < conn->parked_until_ns)) {
		conn->unfinished = status == -EINPROGRESS;
		inbox_park(conn, true);
		return;
	}
	rcd_waiter_cancel(&conn->waiter);
	inbox_settle(conn);
	if (inbox_reply(conn, &conn->parked_msg, waits ? -ETIMEDOUT : status, &rep))
		inbox_watch(conn, EPOLLIN);
	else
		rcd_inbox_close(conn);
}

static void
inbox_told(struct rcd_waiter *waiter)
{
	inbox_retry(RCD_OWNER(waiter, struct rcd_conn, waiter));
}

static void
inbox_impatient(struct rcd_alarm *alarm, uint64_t now_ns)
{
	(void)now_ns;
	inbox_retry(RCD_OWNER(alarm, struct rcd_conn, patience));
}

/* @return false when the connection is to go */
static bool
inbox_serve(struct rcd_conn *conn, const struct rcd_ctrl_msg *msg, struct rcd_ctrl_fds *fds)
{
	struct rcd_answer rep = { .keep = 0 };
	int status;

	conn->waiter.fn = inbox_told;
	conn->patience.fn = inbox_impatient;
	status = rcd_serve(conn, msg, fds, &rep);

	(*conn->all->conf.work)++;
	if (status != RCD_REQUEST_WAITS && status != -EINPROGRESS) {
		inbox_settle(conn);
		return inbox_reply(conn, msg, status, &rep);
	}
	conn->parked_until_ns = rcd_clock_ns() + PARKED_NS;
	conn->parked_msg = *msg;
	conn->unfinished = status == -EINPROGRESS;
	inbox_park(conn, true);
	inbox_watch(conn, 0);
	return true;
}

static void
inbox_drop_fd(void *arg, int fd)
{
	struct rcd_conn *conn = arg;

	rcd_closer_take(conn->all->conf.closer, fd, conn->uid);
}

void
rcd_inbox_ready(struct rcd_conn *conn)
{
	const uint32_t *work = conn->all->conf.work;
	uint32_t end = *work + RCD_ROUND_SLICE;
	struct rcd_ctrl_drop drop = { .fn = inbox_drop_fd, .arg = conn };

	RCD_ON_CONTROL();
	for (int i = 0; i < MESSAGES_AT_ONCE && !conn->parked && *work < end; i++) {
		struct rcd_ctrl_msg msg;
		struct rcd_ctrl_fds fds;
		long len;
		bool stay;
		int err = rcd_closer_admit(conn->all->conf.closer, conn->sock, conn->uid);

		if (err == -EBUSY)
			inbox_read_later(conn, true);
		if (err == -EAGAIN || err == -EBUSY)
			return;
		/* Who leaves more to be closed than is closed is to go, its messages unread. */
		if (err != 0) {
			rcd_inbox_close(conn);
			return;
		}
		len = rcd_ctrl_recv_drop(conn->sock, &msg, sizeof(msg), &fds, &drop);

		if (len == -EAGAIN)
			return;
		if (len <= 0 && len != -EMSGSIZE) {
			rcd_inbox_close(conn);
			return;
		}
		if (len < 0 || rcd_ctrl_req_check(&msg, (size_t)len, fds.count) != 0) {
			struct rcd_answer rep = { .keep = 0 };

			if (len < (long)sizeof(msg.hdr))
				memset(&msg.hdr, 0, sizeof(msg.hdr));
			rcd_counter_add(
				conn->all->conf.counters, RCD_COUNTER_CLIENT_BAD_MESSAGE, 1);
			stay = inbox_reply(conn, &msg, -EPROTO, &rep);
		} else {
			stay = inbox_serve(conn, &msg, &fds);
		}
		for (unsigned int k = 0; k < fds.count; k++)
			if (fds.fds[k] >= 0)
				inbox_drop_fd(conn, fds.fds[k]);
		if (!stay) {
			rcd_inbox_close(conn);
			return;
		}
	}
}

void
rcd_inbox_go_on(struct rcd_conns *conns)
{
	struct rcd_unfinished_queue *queue = &conns->inbox.unfinished;
	const struct rcd_conn *last = TAILQ_LAST(queue, rcd_unfinished_queue);
	bool was_last = false;

	RCD_ON_CONTROL();
	/* Each once, so many at most. Who is not finished then is behind them; it may have gone. */
	for (uint32_t i = 0; i < RCD_ROUND_SLICES && !was_last && !TAILQ_EMPTY(queue); i++) {
		struct rcd_conn *conn = TAILQ_FIRST(queue);

		was_last = conn == last;
		inbox_retry(conn);
	}
}
