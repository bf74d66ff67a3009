/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A connection: told of events, ended. What it asks for is read by rcd_inbox.c.
 */
#include "rcd_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_away.h"
#include "rcd_check.h"
#include "rcd_closer.h"
#include "rcd_cm_host.h"
#include "rcd_conns.h"
#include "rcd_counter.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_neigh.h"
#include "rcd_ports.h"
#include "rcd_quota.h"
#include "rcd_stream.h"
#include "rcd_thread.h"
#include "rcd_waiter.h"

int
rcd_conn_events_open(struct rcd_conn *conn, int *theirs)
{
	int ends[2];
	int err;

	RCD_ON_CONTROL();
	err = rcd_stream_open(&conn->quota, SOCK_SEQPACKET, ends);
	if (err != 0)
		return err;
	conn->events = ends[1];
	*theirs = ends[0];
	return 0;
}

void
rcd_conn_events_close(struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	if (conn->events < 0)
		return;
	rcd_stream_close(&conn->quota, conn->events);
	conn->events = -1;
}

void
rcd_conn_event(struct rcd_conn *conn, uint32_t type, uint32_t of, uint64_t cookie)
{
	struct rcd_ctrl_event event = { .type = type, .of = of, .cookie = cookie };
	bool told = true;

	RCD_ON_CONTROL();
	if (conn->owner != NULL)
		told = conn->owner->event(conn->owner_arg, &event);
	else if (conn->events >= 0)
		told = rcd_ctrl_send(conn->events, &event, sizeof(event), NULL, MSG_DONTWAIT) == 0;
	if (!told)
		rcd_counter_add(conn->all->conf.counters, RCD_COUNTER_EVENTS_LOST, 1);
}

bool
rcd_conn_sees(const struct rcd_conn *conn, const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	return dev->lport.netns == rcd_ports_netns(conn->all->conf.ports, conn->netns);
}

int
rcd_conn_away_take(struct rcd_conn *conn, int fds[RCD_AWAY_FDS])
{
	int err;

	RCD_ON_CONTROL();
	err = rcd_quota_charge(&conn->quota, RCD_RESOURCE_DESCRIPTORS, RCD_AWAY_FDS);
	if (err != 0)
		return err;
	err = rcd_away_take(&conn->away, fds);
	if (err != 0)
		rcd_quota_uncharge(&conn->quota, RCD_RESOURCE_DESCRIPTORS, RCD_AWAY_FDS);
	else
		conn->away_fds += RCD_AWAY_FDS;
	return err;
}

struct rcd_away *
rcd_conn_away_give(struct rcd_conn *conn)
{
	struct rcd_away *away = conn->away;

	RCD_ON_CONTROL();
	rcd_quota_uncharge(&conn->quota, RCD_RESOURCE_DESCRIPTORS, conn->away_fds);
	conn->away_fds = 0;
	conn->away = NULL;
	return away;
}

void
rcd_conn_end(struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	rcd_conn_events_close(conn);
	conn->ended = true;
	if (conn->sock >= 0)
		shutdown(conn->sock, SHUT_RDWR);
}

void
rcd_conn_free(struct rcd_conn *conn)
{
	struct rcd_conns *all = conn->all;

	RCD_ON_CONTROL();
	RCD_CHECK(conn->context == NULL && !conn->parked);
	rcd_conn_events_close(conn);
	rcd_away_free(rcd_conn_away_give(conn));
	rcd_cm_host_end(&conn->cm);
	rcd_neigh_leave(all->conf.ports->neighs, &conn->quota);
	LIST_REMOVE(conn, link);
	LIST_REMOVE(conn, serial_link);
	all->count--;
	rcd_quota_leave(&conn->quota);
	rcd_waiter_cancel(&conn->waiter);
	if (conn->owner != NULL)
		conn->owner->gone(conn->owner_arg);
	else
		rcd_closer_take_sock(all->conf.closer, conn->sock, conn->uid);
	free(conn);
}
