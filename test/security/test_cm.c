/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a client says nothing in the name of others, and has no right that its process has not.
 * Method: an engine of the test's own that everybody may talk to; attackers are children that
 * became nobody. The tests of what nobody may are skipped for who is not root.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_cm.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define NOBODY 65534

static struct rig rig;

/* A connection with a channel. */
struct talker {
	struct rcd_client client;
	uint32_t channel;
};

static void
talk(struct talker *talker)
{
	struct rcd_ctrl_handle rep;
	struct rcd_ctrl_fds fds;

	MUST(rcd_client_connect(&talker->client, rig.socket) == 0);
	MUST(rcd_client_call(&talker->client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &rep, NULL, &fds) ==
		0);
	/* The engine's end has to have a reader. */
	talker->channel = rep.handle;
}

static uint32_t
new_id(struct talker *talker)
{
	struct rcd_ctrl_cm_create_req req = {
		.channel = talker->channel, .space = RCD_CMA_SPACE_TCP, .qp_type = RCD_QP_RC
	};
	struct rcd_ctrl_handle rep;

	MUST(rcd_client_call(&talker->client, RCD_CTRL_CM_CREATE, &req, &rep, NULL, NULL) == 0);
	return rep.handle;
}

static int
next_event(struct talker *talker, struct rcd_ctrl_cm_event_rep *event, int limit_ms)
{
	return rig_cm_event(&talker->client, talker->channel, event, limit_ms);
}

/* Not that an earlier connection's identifiers are free again, which comes in the middle when the
 * machine is slow. */
static int
next_news(struct talker *talker, struct rcd_ctrl_cm_event_rep *event, int limit_ms)
{
	int number;

	do
		number = next_event(talker, event, limit_ms);
	while (number == 15);
	return number;
}

static void
listen_on(struct talker *talker, uint16_t port)
{
	struct rcd_ctrl_cm_addr_req bind = { .id = new_id(talker), .addr = rig_addr(2, port) };
	struct rcd_ctrl_cm_pair listen = { .id = bind.id, .second = 1000 };

	MUST(rcd_client_call(&talker->client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL) == 0);
	MUST(rcd_client_call(&talker->client, RCD_CTRL_CM_LISTEN, &listen, NULL, NULL, NULL) == 0);
}

/* Ask for a connection of a queue pair. @param id set to the identifier @return 0 or -errno */
static int
ask_for(struct talker *talker, uint16_t port, uint32_t qpn, uint32_t *id)
{
	struct rcd_ctrl_cm_resolve_req resolve = {
		.id = new_id(talker), .timeout_ms = 1000, .dst = rig_addr(2, port)
	};
	struct rcd_ctrl_handle handle = { .handle = resolve.id };
	struct rcd_ctrl_cm_param_req param = { .id = resolve.id, .qpn = qpn };
	struct rcd_ctrl_cm_event_rep event;

	*id = resolve.id;
	MUST(rcd_client_call(
		     &talker->client, RCD_CTRL_CM_RESOLVE_ADDR, &resolve, NULL, NULL, NULL) == 0);
	MUST(next_event(talker, &event, FOREVER_MS) == 0);
	MUST(rcd_client_call(
		     &talker->client, RCD_CTRL_CM_RESOLVE_ROUTE, &handle, NULL, NULL, NULL) == 0);
	MUST(next_event(talker, &event, FOREVER_MS) == 2);
	return rcd_client_call(&talker->client, RCD_CTRL_CM_CONNECT, &param, NULL, NULL, NULL);
}

/* Run something as nobody, in a child. @return what it returns; -1: it died */
static int
as_nobody(int (*what)(uint32_t arg), uint32_t arg)
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		MUST(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
		_exit(what(arg));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int
name_others_qp(uint32_t qpn)
{
	struct talker talker;
	uint32_t id;

	talk(&talker);
	/* Nobody listens on 9: the peer need not agree to take the other connection for dead. */
	return -ask_for(&talker, 9, qpn, &id);
}

static int
accept_by_others_qp(uint32_t qpn)
{
	struct rcd_ctrl_cm_event_rep event;
	struct rcd_ctrl_cm_param_req param = { .qpn = qpn };
	struct talker talker;
	struct node own;
	uint32_t id;

	talk(&talker);
	listen_on(&talker, 7473);
	node_open(&own, rig.socket, "roce0", RCD_QP_RC);
	MUST(ask_for(&talker, 7473, own.qp.qpn, &id) == 0);
	MUST(next_event(&talker, &event, FOREVER_MS) == 4);
	param.id = event.id;
	return -rcd_client_call(&talker.client, RCD_CTRL_CM_ACCEPT, &param, NULL, NULL, NULL);
}

static void
queue_pairs_of_others(void)
{
	struct rcd_ctrl_cm_event_rep event;
	struct rcd_ctrl_cm_param_req param = { .id = 0 };
	struct rcd_ctrl_handle handle = { .handle = 0 };
	struct talker server, client;
	struct node a, b;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	talk(&server);
	talk(&client);
	listen_on(&server, 7471);
	/* Queue pairs of the same process, by another connection: as librdmacm does. */
	CU_ASSERT_EQUAL_FATAL(ask_for(&client, 7471, a.qp.qpn, &handle.handle), 0);
	CU_ASSERT_EQUAL_FATAL(next_event(&server, &event, FOREVER_MS), 4);
	param.id = event.id;
	param.qpn = b.qp.qpn ^ 0x10000;
	CU_ASSERT_EQUAL(
		rcd_client_call(&server.client, RCD_CTRL_CM_ACCEPT, &param, NULL, NULL, NULL),
		-EINVAL);
	param.qpn = b.qp.qpn;
	CU_ASSERT_EQUAL(
		rcd_client_call(&server.client, RCD_CTRL_CM_ACCEPT, &param, NULL, NULL, NULL), 0);
	CU_ASSERT_EQUAL(next_event(&client, &event, FOREVER_MS), 5);
	CU_ASSERT_EQUAL(
		rcd_client_call(&client.client, RCD_CTRL_CM_ESTABLISH, &handle, NULL, NULL, NULL),
		0);
	CU_ASSERT_EQUAL(next_event(&server, &event, FOREVER_MS), 9);
	CU_ASSERT_EQUAL(as_nobody(name_others_qp, a.qp.qpn), EINVAL);
	CU_ASSERT_EQUAL(as_nobody(accept_by_others_qp, a.qp.qpn), EINVAL);
	/* Nobody was told that it has ended. */
	CU_ASSERT_EQUAL(next_event(&server, &event, 500), -1);
	CU_ASSERT_EQUAL(next_event(&client, &event, 0), -1);
	rcd_client_close(&server.client);
	rcd_client_close(&client.client);
	node_close(&a);
	node_close(&b);
}

static void
numbers_of_queue_pairs(void)
{
	struct node node;
	struct rcd_cl_qp qp;
	uint32_t before, near = 0;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	before = node.qp.qpn;
	for (int i = 0; i < 32; i++) {
		uint32_t apart;

		node_qp(&node, RCD_QP_RC, &qp);
		apart = (qp.qpn - before) & 0xffffff;
		near += apart < 256 || apart > 0xffff00;
		before = qp.qpn;
	}
	/* One of 32,768 by chance. */
	CU_ASSERT(near < 3);
	node_close(&node);
}

/* The shortest linear recurrence over bits that makes a sequence (Berlekamp and Massey). */
static uint32_t
complexity(const uint8_t *bits, uint32_t count)
{
	uint8_t c[256] = { 1 }, b[256] = { 1 }, t[256];
	uint32_t length = 0, shift = 1;

	for (uint32_t n = 0; n < count; n++) {
		uint8_t wrong = bits[n];

		for (uint32_t i = 1; i <= length; i++)
			wrong ^= c[i] & bits[n - i];
		if (wrong) {
			memcpy(t, c, sizeof(t));
			for (uint32_t i = 0; i + shift < sizeof(c); i++)
				c[i + shift] ^= b[i];
			if (2 * length <= n) {
				length = n + 1 - length;
				memcpy(b, t, sizeof(b));
				shift = 0;
			}
		}
		shift++;
	}
	return length;
}

#define PSNS 200

static void
starting_psns(void)
{
	struct talker server, client;
	struct rcd_ctrl_cm_event_rep event;
	struct rcd_ctrl_cm_attr_rep attr;
	uint8_t bits[PSNS];
	struct node node;
	uint32_t id;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	talk(&server);
	talk(&client);
	listen_on(&server, 7474);
	for (uint32_t i = 0; i < PSNS; i++) {
		struct rcd_ctrl_cm_pair asked = { .second = 3 };
		struct rcd_ctrl_handle destroyed;
		struct rcd_ctrl_cm_count gone;

		CU_ASSERT_EQUAL_FATAL(ask_for(&client, 7474, node.qp.qpn, &id), 0);
		CU_ASSERT_EQUAL_FATAL(next_news(&server, &event, FOREVER_MS), 4);
		asked.id = event.id;
		CU_ASSERT_EQUAL_FATAL(rcd_client_call(&server.client, RCD_CTRL_CM_QP_ATTR, &asked,
					      &attr, NULL, NULL),
			0);
		/* At which the peer says that we are to begin. */
		bits[i] = attr.attr.sq_psn & 1;
		destroyed = (struct rcd_ctrl_handle){ .handle = id };
		CU_ASSERT_EQUAL(rcd_client_call(&client.client, RCD_CTRL_CM_DESTROY, &destroyed,
					&gone, NULL, NULL),
			0);
		/* Rejected: so that the next one comes when this one's messages are through. */
		CU_ASSERT_EQUAL(next_news(&server, &event, FOREVER_MS), 8);
	}
	/* A generator of 64 bits of state that is linear can't do more than 64; chance does 100. */
	CU_ASSERT(complexity(bits, PSNS) > 80);
	rcd_client_close(&server.client);
	rcd_client_close(&client.client);
	node_close(&node);
}

/* Set the Q_Key of managers. @return 0 or -errno; the queue pair is in INIT then */
static int
set_gsi_key(struct node *node)
{
	struct rcd_ctrl_qp_attr attr = { .port = 1, .qkey = RCD_QKEY_GSI, .state = RCD_QP_INIT };

	return rcd_cl_qp_modify(&node->qp, &attr,
		RCD_QP_ATTR_STATE | RCD_QP_ATTR_PORT | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_QKEY);
}

static int
take_gsi_key(uint32_t arg)
{
	struct node node;
	int err;

	(void)arg;
	node_open(&node, rig.socket, "roce0", RCD_QP_UD);
	err = set_gsi_key(&node);
	node_close(&node);
	return -err;
}

/* Covers: IBTA 10.2.5 rcd_hqp_modify_it() */
static void
key_of_managers(void)
{
	CU_ASSERT_EQUAL(as_nobody(take_gsi_key, 0), EPERM);
	/* Who may. */
	CU_ASSERT_EQUAL(take_gsi_key(0), 0);
}

static long long
statistic(const char *link, const char *name)
{
	char line[64];
	char *answer;
	long long val;

	snprintf(line, sizeof(line), "statistic %s", link);
	answer = rig_admin(rig.socket, line);
	val = rig_number(answer, name);
	free(answer);
	return val;
}

/* A DREQ from a queue pair that is not the manager's. */
static void
management_from_elsewhere(void)
{
	struct rcd_ctrl_ah_req ah = { .pd = 0 };
	struct rcd_ctrl_handle handle;
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_RTR };
	struct rcd_send_wr wr = {
		.opcode = RCD_WR_SEND, .flags = RCD_SEND_SIGNALED, .sge_count = 1
	};
	struct rcd_cq_slot slot;
	struct rcd_sge sge;
	struct node node;
	uint64_t deadline = now_ms() + FOREVER_MS;
	long long before = statistic("roce1", "cm_rx_dreq");

	node_open(&node, rig.socket, "roce0", RCD_QP_UD);
	node_memory(&node, 4096);
	CU_ASSERT_EQUAL_FATAL(set_gsi_key(&node), 0);
	MUST(rcd_cl_qp_modify(&node.qp, &attr, RCD_QP_ATTR_STATE) == 0);
	attr.state = RCD_QP_RTS;
	MUST(rcd_cl_qp_modify(&node.qp, &attr, RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN) == 0);
	ah.pd = node.pd;
	ah.av.sgid_index = node_gid(&node, 1);
	memcpy(ah.av.dgid, rig_addr(2, 0).addr, 16);
	MUST(rcd_client_call(&node.client, RCD_CTRL_AH_CREATE, &ah, &handle, NULL, NULL) == 0);
	memcpy(node.memory, "\1\7\2\3", 4);
	node.memory[17] = RCD_CM_DREQ;
	sge = (struct rcd_sge){ (uintptr_t)node.memory, RCD_MAD_LEN, { node.mr.key } };
	wr.sges = &sge;
	wr.ud.ah = handle.handle;
	wr.ud.qpn.val = RCD_QPN_GSI;
	wr.ud.qkey.val = RCD_QKEY_GSI;
	MUST(rcd_cl_post_send(&node.qp, &wr) == 0);
	rcd_cl_ring(&node.qp);
	CU_ASSERT_EQUAL(node_wait(&node, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	while (statistic("roce1", "cm_rx_drop_source") < 1 && now_ms() < deadline)
		usleep(10000);
	CU_ASSERT_EQUAL(statistic("roce1", "cm_rx_drop_source"), 1);
	CU_ASSERT_EQUAL(statistic("roce1", "cm_rx_dreq"), before);
	node_close(&node);
}

/* @return errno of binding to a port of the system; 77: no user namespaces here */
static int
bind_low(uint32_t in_namespace)
{
	struct rcd_ctrl_cm_addr_req bind = { .addr = rig_addr(2, 111) };
	struct talker talker;

	/* As any program that was just started. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (in_namespace && unshare(CLONE_NEWUSER) != 0)
		return 77;
	talk(&talker);
	bind.id = new_id(&talker);
	return -rcd_client_call(&talker.client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL);
}

static void
low_ports(void)
{
	int in_namespace;

	CU_ASSERT_EQUAL(as_nobody(bind_low, 0), EACCES);
	in_namespace = as_nobody(bind_low, 1);
	if (in_namespace == 77)
		rcd_tap_skip("no user namespaces for users here");
	else
		CU_ASSERT_EQUAL(in_namespace, EACCES);
	CU_ASSERT_EQUAL(bind_low(0), 0);
}

static int
with_a_name(const char *name)
{
	struct node node;
	int ends[2], status = -1, listed;
	char *answer, byte = 0;
	pid_t pid;

	MUST(pipe(ends) == 0);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		prctl(PR_SET_NAME, name, 0, 0, 0);
		node_open(&node, rig.socket, "roce0", RCD_QP_RC);
		MUST(write(ends[1], &byte, 1) == 1);
		pause();
	}
	close(ends[1]);
	MUST(read(ends[0], &byte, 1) == 1);
	close(ends[0]);
	answer = rig_admin(rig.socket, "resource ctx");
	listed = rig_count(answer, "\"ctxn\"") == 1 && strstr(answer, "u001b") == NULL;
	free(answer);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
	return listed;
}

static void
names(void)
{
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_TRUE(with_a_name("honest"));
	CU_ASSERT_TRUE(with_a_name("\xff\xfe"));
	CU_ASSERT_TRUE(with_a_name("\033[31mred"));
	CU_ASSERT_TRUE(with_a_name("\xc3\x28 \n"));
}

/* Bind to it, listen there, and resolve an address from it. */
static void
bind_loopback(struct talker *talker, struct rcd_ctrl_cm_addr addr)
{
	struct rcd_ctrl_cm_addr_req bind = { .id = new_id(talker), .addr = addr };
	struct rcd_ctrl_cm_pair listen = { .id = bind.id, .second = 1 };
	struct rcd_ctrl_cm_resolve_req resolve = { .timeout_ms = 1000, .dst = rig_addr(2, 9) };
	struct rcd_ctrl_handle handle = { .handle = bind.id };
	struct rcd_ctrl_cm_query_rep query;

	CU_ASSERT_EQUAL(
		rcd_client_call(&talker->client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL), 0);
	CU_ASSERT_EQUAL(
		rcd_client_call(&talker->client, RCD_CTRL_CM_QUERY, &handle, &query, NULL, NULL),
		0);
	CU_ASSERT_EQUAL(memcmp(query.src.addr, addr.addr, 16), 0);
	CU_ASSERT_NOT_EQUAL(query.src.port, 0);
	CU_ASSERT_NOT_EQUAL(query.device, RCD_CTRL_NO_HANDLE);
	CU_ASSERT_EQUAL(
		rcd_client_call(&talker->client, RCD_CTRL_CM_LISTEN, &listen, NULL, NULL, NULL), 0);
	if (addr.family == 6)
		return;
	bind.id = resolve.id = new_id(talker);
	CU_ASSERT_EQUAL(
		rcd_client_call(&talker->client, RCD_CTRL_CM_BIND, &bind, NULL, NULL, NULL), 0);
	CU_ASSERT_EQUAL(rcd_client_call(&talker->client, RCD_CTRL_CM_RESOLVE_ADDR, &resolve, NULL,
				NULL, NULL),
		-ENETUNREACH);
}

static void
loopback_addresses(void)
{
	struct rcd_ctrl_cm_addr six = { .addr = { [15] = 1 }, .family = 6 };
	struct rcd_ctrl_cm_addr four = rig_addr(1, 0);
	struct talker talker;

	talk(&talker);
	four.addr[12] = 127;
	four.addr[13] = 0;
	bind_loopback(&talker, four);
	bind_loopback(&talker, six);
	rcd_client_close(&talker.client);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S11 queue pairs of others can't be named", queue_pairs_of_others },
		{ "S11 numbers of queue pairs are random", numbers_of_queue_pairs },
		{ "S12 the Q_Key of managers takes privilege", key_of_managers },
		{ "S12 T3 QP1 hears QP1 alone", management_from_elsewhere },
		{ "S13 starting PSNs follow no recurrence", starting_psns },
		{ "low 1 a port below 1024 by a user namespace", low_ports },
		{ "low 2 no name hides a client or reaches a terminal", names },
		{ "T15 loopback addresses can be bound to", loopback_addresses },
	};
	int status;

	if (getuid() != 0) {
		printf("1..0 # SKIP needs root, to become another user\n");
		return 0;
	}
	rig_start_text(&rig, "[engine]\nsocket_mode = 0666\n", true);
	status = rcd_tap_run("cm", tests, sizeof(tests) / sizeof(tests[0]));
	/* The engine has ended well, too. */
	return rig_stop(&rig, FOREVER_MS) != 0 ? 1 : status;
}
