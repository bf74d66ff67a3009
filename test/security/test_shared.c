/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a context lives as long as a connection uses it, whichever opened it, and whatever one of
 * them had begun when it went. Method: an engine in this process, polled by the test, so that each
 * connection goes at the moment that is meant; the audit looks at the engine after each step, and
 * nothing may be left in the end.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../fuzz/inside.h"
#include "rcd_audit.h"
#include "rcd_context.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_engine_priv.h"
#include "rcd_lcore.h"
#include "rcd_note.h"
#include "rcd_queue.h"
#include "rcd_quota.h"
#include "rcd_table.h"
#include "rcd_tap.h"
#include "rcd_wr.h"

#define NOBODY 65534
#define LARGE  65536 /**< completions: a queue of 4 MiB is cleared by several rounds */

#define NOBODY_NS UINT64_C(5000000000) /**< in which it is known that a neighbour does not answer */

static struct rcd_engine *engine;
static struct rcd_holdings before;
static unsigned int fds_before;

static void
begin(void)
{
	engine = inside_engine();
	inside_turn(4);
	rcd_engine_holdings(engine, &before);
	fds_before = inside_fds();
}

/* @param uid  of the process that connects, as the engine sees it */
static void
open_as(struct client *client, uid_t uid)
{
	if (uid != 0)
		CU_ASSERT_EQUAL_FATAL(seteuid(uid), 0);
	client_connect(client);
	if (uid != 0)
		CU_ASSERT_EQUAL_FATAL(seteuid(0), 0);
	CU_ASSERT_EQUAL_FATAL(client_call(client, RCD_CTRL_HELLO, NULL, NULL), 0);
}

static void
open_device(struct client *client)
{
	client_connect(client);
	CU_ASSERT_TRUE_FATAL(client_open(client, 0));
}

static int
import(struct client *client, const struct client *from)
{
	struct rcd_ctrl_fds fds = { .fds = { from->segment_fd }, .count = 1 };

	return client_call(client, RCD_CTRL_IMPORT, NULL, &fds);
}

static void
join_as(struct client *client, const struct client *from, uid_t uid)
{
	open_as(client, uid);
	CU_ASSERT_EQUAL_FATAL(import(client, from), 0);
	inside_audit();
}

/* A connection goes, as when its process is killed. */
static void
leave(struct client *client)
{
	client_close(client);
	inside_turn(2);
	inside_audit();
}

static void
end(void)
{
	inside_check_left(&before, fds_before);
	CU_ASSERT_TRUE(LIST_EMPTY(&engine->contexts.list));
	CU_ASSERT_TRUE(LIST_EMPTY(&engine->book.users));
}

static uint32_t
make(struct client *client, uint32_t op, const union rcd_ctrl_body *body)
{
	CU_ASSERT_EQUAL_FATAL(client_call(client, op, body, NULL), 0);
	return client->last.body.pd_create_rep.handle;
}

static uint32_t
make_cq(struct client *client, uint32_t depth)
{
	union rcd_ctrl_body body = { .cq_create_req = {
					     .depth = depth, .channel = RCD_CTRL_NO_HANDLE } };

	return make(client, RCD_CTRL_CQ_CREATE, &body);
}

/* Send a request, and let the engine begin with it. */
static void
begin_request(struct client *client, uint32_t op, const union rcd_ctrl_body *body)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = op }, .body = *body };

	client->replies = 0;
	client_send(client, &msg, rcd_ctrl_req_len(op), NULL);
	inside_turn(1);
	client_receive(client);
	CU_ASSERT_EQUAL(client->replies, 0);
	inside_audit();
}

/* Its reply, which comes. @return the status */
static int
reply_of(struct client *client)
{
	for (int i = 0; i < 1000 && client->replies == 0; i++) {
		inside_turn(1);
		client_receive(client);
	}
	CU_ASSERT_EQUAL(client->replies, 1);
	inside_audit();
	return client->last.hdr.status;
}

/* Ask for an address of the link that nobody has. */
static void
park(struct client *client, uint32_t pd)
{
	union rcd_ctrl_body body = { .gids_req = { .index = 0 } };
	uint8_t nobody[16] = { [10] = 0xff, 0xff, 10, 0, 0, 77 };
	uint8_t sgid_index = 0;

	CU_ASSERT_EQUAL_FATAL(client_call(client, RCD_CTRL_GIDS, &body, NULL), 0);
	for (uint32_t i = 0; i < client->last.body.gids_rep.count; i++)
		if (memcmp(client->last.body.gids_rep.gids[i].raw, nobody, 12) == 0)
			sgid_index = (uint8_t)i;
	memset(&body, 0, sizeof(body));
	body.ah_create_req.pd = pd;
	body.ah_create_req.av.sgid_index = sgid_index;
	memcpy(body.ah_create_req.av.dgid, nobody, 16);
	begin_request(client, RCD_CTRL_AH_CREATE, &body);
	CU_ASSERT_EQUAL(engine->conns.inbox.parked, 1);
}

/* @return the kind of the next asynchronous event; -1: there is none */
static int
event_of(const struct client *client, uint64_t *cookie)
{
	struct rcd_ctrl_event event;

	if (recv(client->event_fd, &event, sizeof(event), MSG_DONTWAIT) != sizeof(event))
		return -1;
	if (cookie != NULL)
		*cookie = event.cookie;
	return (int)event.type;
}

static bool
is_cut(const struct client *client)
{
	struct pollfd look = { .fd = client->sock, .events = POLLRDHUP };

	return poll(&look, 1, 0) == 1 && (look.revents & POLLRDHUP) != 0;
}

static void
opener_goes_importer_waits(void)
{
	struct client a, b;
	uint32_t pd;

	begin();
	open_device(&a);
	pd = make(&a, RCD_CTRL_PD_CREATE, NULL);
	join_as(&b, &a, 0);
	park(&b, pd);
	leave(&a);
	CU_ASSERT_EQUAL(engine->conns.inbox.parked, 1);
	inside_pass(NOBODY_NS, 200);
	CU_ASSERT_EQUAL(reply_of(&b), -ETIMEDOUT);
	CU_ASSERT_EQUAL(client_call(&b, RCD_CTRL_PD_DESTROY,
				&(union rcd_ctrl_body){ .pd_destroy_req = { .handle = pd } }, NULL),
		0);
	/* And with one that waits all is over. */
	pd = make(&b, RCD_CTRL_PD_CREATE, NULL);
	park(&b, pd);
	leave(&b);
	CU_ASSERT_EQUAL(engine->conns.inbox.parked, 0);
	end();
}

static void
importer_goes_first(void)
{
	struct client a, b, c;
	uint32_t pd;

	begin();
	open_device(&a);
	join_as(&b, &a, 0);
	join_as(&c, &a, 0);
	pd = make(&b, RCD_CTRL_PD_CREATE, NULL);
	park(&b, pd);
	leave(&b);
	CU_ASSERT_EQUAL(engine->conns.inbox.parked, 0);
	CU_ASSERT_EQUAL(engine->conns.count, before.clients + 2);
	CU_ASSERT_FALSE(is_cut(&a) || is_cut(&c));
	/* What it made is there for the others. */
	CU_ASSERT_EQUAL(client_call(&c, RCD_CTRL_PD_DESTROY,
				&(union rcd_ctrl_body){ .pd_destroy_req = { .handle = pd } }, NULL),
		0);
	leave(&c);
	make(&a, RCD_CTRL_PD_CREATE, NULL);
	leave(&a);
	end();
}

/* One connection resizes a queue, by several rounds, and another goes meanwhile, or it does. */
static void
goes_while_resizing(void)
{
	union rcd_ctrl_body resize = { .cq_resize_req = { .depth = LARGE } };

	for (int who = 0; who < 4; who++) {
		struct client a, b;
		struct client *asks = who & 1 ? &b : &a, *goes = who & 2 ? &b : &a;
		struct client *stays = who & 2 ? &a : &b;

		begin();
		open_device(&a);
		join_as(&b, &a, 0);
		resize.cq_resize_req.handle = make_cq(&a, 16);
		begin_request(asks, RCD_CTRL_CQ_RESIZE, &resize);
		CU_ASSERT_FALSE(TAILQ_EMPTY(&engine->conns.inbox.unfinished));
		leave(goes);
		if (asks == stays)
			CU_ASSERT_EQUAL(reply_of(stays), 0);
		CU_ASSERT_TRUE(TAILQ_EMPTY(&engine->conns.inbox.unfinished));
		/* Nothing of it is in the way of the next. */
		stays->replies = 0;
		if (client_call(stays, RCD_CTRL_CQ_RESIZE, &resize, NULL) == -EAGAIN)
			CU_ASSERT_EQUAL(reply_of(stays), 0);
		CU_ASSERT_EQUAL(stays->last.hdr.status, 0);
		leave(stays);
		end();
	}
}

/* What was opened by root is a user's when that one is left. */
static void
another_user_is_left(void)
{
	struct client a, b, c;
	const struct rcd_context *context;
	uint64_t root_pds;

	if (geteuid() != 0) {
		rcd_tap_skip("needs root, to be another user");
		return;
	}
	begin();
	open_device(&a);
	make(&a, RCD_CTRL_PD_CREATE, NULL);
	make_cq(&a, 64);
	join_as(&b, &a, NOBODY);
	join_as(&c, &a, 0);
	context = LIST_FIRST(&engine->contexts.list);
	CU_ASSERT_EQUAL(context->quota.user->uid, 0);
	/* What an importer makes is the context's, and so its first connection's user's. */
	make(&b, RCD_CTRL_PD_CREATE, NULL);
	root_pds = context->quota.user->used[RCD_RESOURCE_PDS];
	CU_ASSERT_EQUAL(root_pds, 2);
	leave(&c);
	park(&b, 0);
	leave(&a);
	CU_ASSERT_EQUAL(context->quota.user->uid, NOBODY);
	CU_ASSERT_EQUAL(context->quota.user->used[RCD_RESOURCE_PDS], 2);
	CU_ASSERT_EQUAL(context->quota.user->used[RCD_RESOURCE_CLIENTS], 1);
	CU_ASSERT_EQUAL(context->quota.user->clients, 1);
	CU_ASSERT_PTR_NULL(LIST_NEXT(LIST_FIRST(&engine->book.users), link));
	inside_pass(NOBODY_NS, 200);
	CU_ASSERT_EQUAL(reply_of(&b), -ETIMEDOUT);
	make(&b, RCD_CTRL_PD_CREATE, NULL);
	CU_ASSERT_EQUAL(context->quota.user->used[RCD_RESOURCE_PDS], 3);
	/* Back to root, who joins and is left. */
	open_as(&a, 0);
	CU_ASSERT_EQUAL(import(&a, &b), 0);
	leave(&b);
	CU_ASSERT_EQUAL(context->quota.user->uid, 0);
	leave(&a);
	end();
}

static int
tell_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	rcd_note_send(lcore, arg);
	return 0;
}

/* An asynchronous event of an object, as an lcore tells it. */
static void
tell(uint32_t whom, uint64_t cookie)
{
	struct rcd_note note = { .kind = RCD_NOTE_EVENT,
		.whom = whom,
		.cookie = cookie,
		.type = RCD_EVENT_CQ_ERR,
		.of = RCD_CTRL_EVENT_CQ };

	rcd_lcore_call(rcd_engine_lcore(engine, 0), tell_on_lcore, &note);
	inside_turn(1);
}

/* Who made an object is told of its events, and nobody when that one has gone. */
static void
events_go_to_the_maker(void)
{
	const struct rcd_context *context;
	struct client a, b, c;
	uint64_t cookie = 0;
	uint32_t whom[2];

	begin();
	open_device(&a);
	join_as(&b, &a, 0);
	make_cq(&a, 16);
	make_cq(&b, 16);
	context = LIST_FIRST(&engine->contexts.list);
	for (uint32_t i = 0; i < 2; i++)
		whom[i] = ((const struct rcd_hcq *)rcd_table_get(&context->cqs, i))->conn_serial;
	tell(whom[0], 1);
	CU_ASSERT_EQUAL(event_of(&a, &cookie), RCD_EVENT_CQ_ERR);
	CU_ASSERT_EQUAL(cookie, 1);
	tell(whom[1], 2);
	CU_ASSERT_EQUAL(event_of(&b, &cookie), RCD_EVENT_CQ_ERR);
	CU_ASSERT_EQUAL(cookie, 2);
	leave(&a);
	/* Whoever comes next is not taken for it. */
	join_as(&c, &b, 0);
	tell(whom[0], 3);
	CU_ASSERT_EQUAL(event_of(&b, NULL), -1);
	CU_ASSERT_EQUAL(event_of(&c, NULL), -1);
	tell(whom[1], 4);
	CU_ASSERT_EQUAL(event_of(&b, &cookie), RCD_EVENT_CQ_ERR);
	CU_ASSERT_EQUAL(event_of(&c, NULL), -1);
	leave(&b);
	leave(&c);
	end();
}

static void
device_goes(void)
{
	struct client clients[3];
	uint64_t charged;
	uint32_t pd;

	begin();
	open_device(&clients[0]);
	pd = make(&clients[0], RCD_CTRL_PD_CREATE, NULL);
	make_cq(&clients[0], 64);
	join_as(&clients[1], &clients[0], 0);
	join_as(&clients[2], &clients[0], geteuid() == 0 ? NOBODY : 0);
	park(&clients[1], pd);
	CU_ASSERT_EQUAL(rcd_engine_dev_del(engine, "f0"), 0);
	inside_audit();
	/* What was made is given back at once; the connections see that they are cut, and go. */
	CU_ASSERT_TRUE(LIST_EMPTY(&engine->contexts.list));
	charged = engine->book.used[RCD_RESOURCE_PDS] + engine->book.used[RCD_RESOURCE_CQS] +
		engine->book.used[RCD_RESOURCE_MAPPINGS];
	CU_ASSERT_EQUAL(charged, 0);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(event_of(&clients[i], NULL), RCD_EVENT_DEVICE_FATAL);
		CU_ASSERT_TRUE(is_cut(&clients[i]));
	}
	inside_turn(4);
	inside_audit();
	for (int i = 0; i < 3; i++)
		leave(&clients[i]);
	inside_engine();
	end();
}

/* The request that ends a context came by one of its connections. */
static void
device_goes_by_request(void)
{
	union rcd_ctrl_body body = { .admin_req = {
					     .json = "{\"op\":\"link_del\",\"name\":\"f0\"}" } };
	struct client a, b;

	begin();
	open_device(&a);
	join_as(&b, &a, 0);
	client_call(&b, RCD_CTRL_ADMIN, &body, NULL);
	inside_audit();
	CU_ASSERT_TRUE(LIST_EMPTY(&engine->contexts.list));
	CU_ASSERT_TRUE(is_cut(&a));
	CU_ASSERT_TRUE(is_cut(&b));
	leave(&a);
	leave(&b);
	inside_engine();
	end();
}

/* Copies are made by the process of the first connection, and end with it. */
static void
copies_of_the_first(void)
{
	struct client a, b, c;

	begin();
	open_device(&a);
	join_as(&b, &a, 0);
	CU_ASSERT_EQUAL(client_call(&b, RCD_CTRL_COPY_OPEN, NULL, NULL), -EOPNOTSUPP);
	a.replies = 0;
	if (client_call(&a, RCD_CTRL_COPY_OPEN, NULL, NULL) == -EAGAIN)
		CU_ASSERT_EQUAL(reply_of(&a), 0);
	CU_ASSERT_EQUAL(client_call(&a, RCD_CTRL_COPY_OPEN, NULL, NULL), -EBUSY);
	CU_ASSERT_EQUAL(client_call(&b, RCD_CTRL_COPY_OPEN, NULL, NULL), -EOPNOTSUPP);
	/* One that was not the first goes: nothing changes. */
	join_as(&c, &a, 0);
	leave(&c);
	CU_ASSERT_EQUAL(client_call(&a, RCD_CTRL_COPY_OPEN, NULL, NULL), -EBUSY);
	leave(&a);
	CU_ASSERT_EQUAL(client_call(&b, RCD_CTRL_COPY_OPEN, NULL, NULL), -EPERM);
	leave(&b);
	end();
}

/* Identifiers are a connection's until it opens a device, and then the context's. */
static void
identifiers_go_along(void)
{
	union rcd_ctrl_body body = { .cm_create_req = { .space = 0x0106, .qp_type = RCD_QP_RC } };
	const struct rcd_context *context;
	struct client a, b;
	uint32_t id;

	begin();
	open_as(&a, 0);
	body.cm_create_req.channel = make(&a, RCD_CTRL_CM_CHANNEL_CREATE, NULL);
	id = make(&a, RCD_CTRL_CM_CREATE, &body);
	memset(&body, 0, sizeof(body));
	body.cm_bind_req = (struct rcd_ctrl_cm_addr_req){ .id = id,
		.addr = { .addr = { [10] = 0xff, 0xff, 10, 0, 0, 1 }, .port = 7471, .family = 4 } };
	CU_ASSERT_EQUAL(client_call(&a, RCD_CTRL_CM_BIND, &body, NULL), 0);
	inside_audit();
	CU_ASSERT_TRUE_FATAL(client_open(&a, 0));
	inside_audit();
	context = LIST_FIRST(&engine->contexts.list);
	CU_ASSERT_EQUAL(context->quota.used[RCD_RESOURCE_CM_IDS], 1);
	CU_ASSERT_EQUAL(context->quota.used[RCD_RESOURCE_CM_PORTS], 1);
	CU_ASSERT_EQUAL(rcd_context_first(context)->quota.used[RCD_RESOURCE_CM_IDS], 0);
	/* All connections have them, and who is left. */
	join_as(&b, &a, 0);
	leave(&a);
	memset(&body, 0, sizeof(body));
	body.cm_query_req.handle = id;
	CU_ASSERT_EQUAL(client_call(&b, RCD_CTRL_CM_QUERY, &body, NULL), 0);
	CU_ASSERT_EQUAL(b.last.body.cm_query_rep.src.port, 7471);
	body.cm_destroy_req.handle = id;
	CU_ASSERT_EQUAL(client_call(&b, RCD_CTRL_CM_DESTROY, &body, NULL), 0);
	inside_audit();
	leave(&b);
	end();
}

/* A connection has one context: no second one, by whichever way. */
static void
one_context_each(void)
{
	struct client a, b, c;

	begin();
	open_device(&a);
	open_device(&b);
	CU_ASSERT_EQUAL(import(&a, &b), -EINVAL);
	CU_ASSERT_EQUAL(import(&a, &a), -EINVAL);
	join_as(&c, &a, 0);
	CU_ASSERT_EQUAL(import(&c, &b), -EINVAL);
	CU_ASSERT_FALSE(client_open(&c, 0));
	inside_audit();
	leave(&a);
	leave(&b);
	leave(&c);
	end();
}

/* Many come and go in any order; each is found, as the audit asks, and none of the others. */
static void
many_connections(void)
{
	enum {
		MANY = 300
	};
	static struct client clients[MANY];
	uint32_t random = 1;

	begin();
	for (int i = 0; i < MANY; i++)
		client_connect(&clients[i]);
	inside_audit();
	CU_ASSERT_EQUAL(engine->conns.count, before.clients + MANY);
	for (int round = 0; round < 2000; round++) {
		struct client *client;

		random = random * 1664525u + 1013904223u;
		client = &clients[(random >> 8) % MANY];
		client_close(client);
		client_connect(client);
		if (round % 50 == 0) {
			inside_turn(8);
			inside_audit();
		}
	}
	for (int i = 0; i < MANY; i++)
		client_close(&clients[i]);
	inside_turn(MANY / 32 + 1);
	end();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S4 an opener goes while an importer's request waits",
			opener_goes_importer_waits },
		{ "S4 an importer goes first", importer_goes_first },
		{ "S4 who goes while a queue is being resized", goes_while_resizing },
		{ "S17 a context is charged to the user who is left", another_user_is_left },
		RCD_TEST(events_go_to_the_maker),
		{ "a device goes that several connections use", device_goes },
		{ "a device goes by request of one that uses it", device_goes_by_request },
		RCD_TEST(copies_of_the_first),
		{ "S3 identifiers go along with the context", identifiers_go_along },
		RCD_TEST(one_context_each),
		RCD_TEST(many_connections),
	};

	return rcd_tap_run("shared", tests, sizeof(tests) / sizeof(tests[0]));
}
