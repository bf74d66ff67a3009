/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The program's own connections: requests are served in the thread that has them, as if they had
 * come by a socket. What waits for a neighbour is not kept: the program asks again.
 */
#include "rcd_own.h"

#include <errno.h>
#include <string.h>

#include "rcd_conns.h"
#include "rcd_context.h"
#include "rcd_dev.h"
#include "rcd_engine_priv.h"
#include "rcd_inbox.h"
#include "rcd_lcore_ctl.h"
#include "rcd_lcores.h"
#include "rcd_request.h"
#include "rcd_thread.h"
#include "rcd_waiter.h"

/* The neighbour has answered, or has not: the program asks again. */
static void
own_told(struct rcd_waiter *waiter)
{
	(void)waiter;
}

static int
own_open(struct rcd_engine *engine, const struct rcd_own_conf *conf, struct rcd_conn **made)
{
	struct rcd_dev *dev = rcd_dev_find(&engine->ports, conf->device);
	struct rcd_lcore *lcore = NULL;
	int err;

	if (dev == NULL)
		return -ENODEV;
	if (conf->lcore >= 0) {
		/* Of the others it sends by none either. */
		if ((uint32_t)conf->lcore >= engine->lcores.count ||
			conf->lcore >= dev->lport.queues)
			return -EINVAL;
		lcore = engine->lcores.lcore[conf->lcore];
	}
	err = rcd_conns_own(&engine->conns, conf->owner, conf->arg, made);
	if (err != 0)
		return err;
	(*made)->waiter.fn = own_told;
	err = rcd_context_open(&engine->contexts, *made, dev, lcore);
	if (err != 0)
		rcd_inbox_close(*made);
	return err;
}

int
rcd_own_open(struct rcd_engine *engine, const struct rcd_own_conf *conf, struct rcd_conn **made,
	uint32_t *lcore)
{
	int err;

	rcd_engine_take_over();
	err = own_open(engine, conf, made);
	if (err == 0)
		*lcore = rcd_lcore_index(rcd_own_lcore(*made));
	rcd_engine_let_go(engine);
	return err;
}

void
rcd_own_close(struct rcd_conn *conn)
{
	struct rcd_engine *engine = conn->all->conf.engine;

	rcd_engine_take_over();
	rcd_inbox_close(conn);
	rcd_engine_let_go(engine);
}

int
rcd_own_begin(struct rcd_conn *conn)
{
	struct rcd_engine *engine = conn->all->conf.engine;

	rcd_engine_take_over();
	if (conn->context != NULL)
		return 0;
	rcd_engine_let_go(engine);
	return -ENODEV;
}

void
rcd_own_end(struct rcd_conn *conn)
{
	struct rcd_engine *engine = conn->all->conf.engine;

	RCD_ON_CONTROL();
	rcd_engine_let_go(engine);
	/* It looks again when it has to do something next. */
	rcd_engine_wake(engine);
}

int
rcd_own_serve(struct rcd_conn *conn, enum rcd_ctrl_op op, const void *in, void *out)
{
	struct rcd_ctrl_msg req = { .hdr = { .op = op } };
	struct rcd_ctrl_fds none = { .fds = { -1, -1, -1, -1 }, .count = 0 };
	struct rcd_answer answer = { .keep = 0 };
	int err;

	RCD_ON_CONTROL();
	rcd_waiter_cancel(&conn->waiter);
	if (in != NULL)
		memcpy(&req.body, in, rcd_ctrl_req_len(op) - sizeof(req.hdr));
	do
		err = rcd_serve(conn, &req, &none, &answer);
	while (err == -EINPROGRESS);
	if (conn->context != NULL)
		rcd_context_settle(conn->context, conn);
	if (err == 0 && out != NULL)
		memcpy(out, &answer.msg.body, rcd_ctrl_rep_len(op) - sizeof(answer.msg.hdr));
	return err == RCD_REQUEST_WAITS ? -EINPROGRESS : err;
}

struct rcd_lcore *
rcd_own_lcore(const struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	return conn->context->client.lcore;
}
