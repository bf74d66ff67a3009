/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what lcores read while the control thread changes it is changed so that they may. Method:
 * an engine with live clients: while a pair transfers, others come, work and go, in ways that need
 * commands of every kind, and links and addresses change under all of them. Everywhere the pair's
 * data has to be right; under ThreadSanitizer (-Db_sanitize=thread) the engine ends with a status
 * of its own when it saw a race, and its log says which.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define ROUNDS 12
#define MEMORY 65536u

static struct rig rig;
static char netdevs; /**< whether there is a kernel's pair of them to attach */

static void
admin(const char *line)
{
	free(rig_admin(rig.socket, line));
}

/* Some transfers, while the other side may be gone: then they fail. */
static void
transfer(struct node *a, struct node *b, int count)
{
	static const uint8_t opcodes[] = { RCD_WR_RDMA_WRITE, RCD_WR_SEND, RCD_WR_RDMA_READ };

	for (int i = 0; i < count; i++) {
		struct rcd_cq_slot slot;
		uint8_t opcode = opcodes[i % 3];

		if (opcode == RCD_WR_SEND && node_recv(b, 0, MEMORY, 1) != 0)
			return;
		rcd_cl_arm(&a->cq, false);
		if (node_write(a, b, opcode, 0, 3000, (uint64_t)i) != 0 ||
			node_wait(a, &slot, 3000) != RCD_WC_SUCCESS)
			return;
		if (opcode == RCD_WR_SEND)
			node_wait(b, &slot, 3000);
	}
}

/* Datagrams: each finds its way anew, by the lcore. */
static void
send_datagrams(struct node *a, struct node *b, struct rcd_cl_qp *qp, int count)
{
	struct rcd_ctrl_qp_attr attr = node_attr(a, b, 1);
	struct rcd_ctrl_ah_req ah = { .pd = a->pd, .av = attr.av };
	struct rcd_sge sge = { .addr = (uintptr_t)a->memory, .len = 500, .lkey = { a->mr.key } };
	struct rcd_ctrl_handle made;
	struct rcd_cq_slot slot;

	if (rcd_client_call(&a->client, RCD_CTRL_AH_CREATE, &ah, &made, NULL, NULL) != 0 ||
		node_connect(qp, RCD_QP_UD, attr) != 0)
		return;
	for (int i = 0; i < count; i++) {
		struct rcd_send_wr wr = { .opcode = RCD_WR_SEND,
			.flags = RCD_SEND_SIGNALED,
			.sge_count = 1,
			.sges = &sge,
			.ud = { .ah = made.handle, .qpn = { b->qp.qpn }, .qkey = { 0x1234 } } };

		if (rcd_cl_post_send(qp, &wr) != 0)
			return;
		rcd_cl_ring(qp);
		if (node_wait(a, &slot, 3000) != RCD_WC_SUCCESS)
			return;
	}
}

/* What needs the lcore's help, or a neighbour's. */
static void
ask_for_all(struct node *node)
{
	struct rcd_ctrl_srq_req srq_req = { .pd = node->pd, .depth = 16, .max_sge = 1 };
	struct rcd_ctrl_ah_req ah = { .pd = node->pd, .av = { .sgid_index = node_gid(node, 1) } };
	struct rcd_ctrl_mw_req mw = { .pd = node->pd, .type = 2 };
	struct rcd_ctrl_cq_modify_req moderate = {
		.handle = node->cq.handle, .count = 3, .period_us = 50
	};
	struct rcd_ctrl_ah_handle handle = { .pd = node->pd };
	struct rcd_ctrl_handle made;
	struct rcd_ctrl_key key;
	struct rcd_cl_srq srq;

	rcd_cl_cq_resize(&node->cq, 8 * NODE_DEPTH);
	rcd_client_call(&node->client, RCD_CTRL_CQ_MODIFY, &moderate, NULL, NULL, NULL);
	if (rcd_cl_srq_create(&node->client, &srq_req, &srq) == 0)
		rcd_cl_destroy(&node->client, RCD_CTRL_SRQ_DESTROY, srq.handle);
	memcpy(ah.av.dgid, node->gids.gids[node_gid(node, 1)].raw, sizeof(ah.av.dgid));
	if (rcd_client_call(&node->client, RCD_CTRL_AH_CREATE, &ah, &made, NULL, NULL) == 0) {
		handle.handle = made.handle;
		rcd_client_call(&node->client, RCD_CTRL_AH_DESTROY, &handle, NULL, NULL, NULL);
	}
	if (rcd_client_call(&node->client, RCD_CTRL_MW_ALLOC, &mw, &key, NULL, NULL) == 0)
		rcd_client_call(&node->client, RCD_CTRL_MW_FREE, &key, NULL, NULL, NULL);
}

/* A pair that comes, works and goes. @return whether there was such a pair of devices */
static int
visit(const char *left, const char *right, int count)
{
	struct node a, b;
	struct rcd_cl_qp more;

	/* Asked for first: node_open() takes no refusal. */
	if (node_try_open(&a, rig.socket, left) != 0)
		return 0;
	node_close(&a);
	node_open(&a, rig.socket, left, RCD_QP_RC);
	node_open(&b, rig.socket, right, RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_qp(&a, RCD_QP_UD, &more);
	if (node_connect(&a.qp, RCD_QP_RC, node_attr(&a, &b, 1)) == 0 &&
		node_connect(&b.qp, RCD_QP_RC, node_attr(&b, &a, 1)) == 0)
		transfer(&a, &b, count);
	send_datagrams(&a, &b, &more, count);
	ask_for_all(&a);
	rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, more.handle);
	node_close(&b);
	node_close(&a);
	return 1;
}

/* Run something in a child. */
static pid_t
beside(const char *left, const char *right, int count)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0)
		return pid;
	for (int i = 0; i < ROUNDS; i++)
		visit(left, right, count);
	_exit(0);
}

static void
wait_for(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
}

static void
look(void)
{
	static const char *const lines[] = { "link", "dev", "engine", "resource", "resource qp",
		"resource mr", "resource cq", "resource ctx", "resource cm_id", "statistic roce0" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		admin(lines[i]);
}

static void
clients_come_and_go(void)
{
	struct honest honest = honest_start(&rig);
	pid_t others = beside("roce1", "roce0", 30);

	for (int i = 0; i < ROUNDS; i++)
		look();
	wait_for(others);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

static void
links_and_addresses_change(void)
{
	struct honest honest = honest_start(&rig);
	pid_t others = beside("roce0", "roce1", 30);

	for (int i = 0; i < ROUNDS; i++) {
		admin("addr add roce0 10.77.0.7/24");
		admin("addr add roce1 10.77.0.8/24 vlan 9");
		admin("link add w0 wire w1");
		admin("addr add w0 192.168.9.1/24");
		admin("addr add w1 192.168.9.2/24");
		CU_ASSERT_EQUAL(visit("w0", "w1", 6), 1);
		admin("link set w0 down");
		admin("link set w0 up");
		admin("addr del roce0 10.77.0.7");
		admin("addr del roce1 10.77.0.8");
		admin("link del w1");
	}
	wait_for(others);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

static int
sh(const char *line)
{
	return system(line);
}

/* What the kernel changes of a netdev that is in use. */
static void
netdevs_change(void)
{
	pid_t others;

	if (!netdevs) {
		rcd_tap_skip("no network namespace of one's own");
		return;
	}
	admin("link add k0 netdev rcdrace0 packet");
	admin("link add k1 netdev rcdrace1 packet");
	others = beside("k0", "k1", 10);
	for (int i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(sh("ip addr add 10.78.0.9/24 dev rcdrace0"), 0);
		CU_ASSERT_EQUAL(sh("ip link set rcdrace1 mtu 2000"), 0);
		CU_ASSERT_EQUAL(sh("ip link set rcdrace0 address 02:00:00:00:07:01"), 0);
		usleep(20000);
		CU_ASSERT_EQUAL(sh("ip link set rcdrace0 address 02:00:00:00:07:02"), 0);
		CU_ASSERT_EQUAL(sh("ip link set rcdrace1 mtu 1500"), 0);
		CU_ASSERT_EQUAL(sh("ip addr del 10.78.0.9/24 dev rcdrace0"), 0);
		usleep(20000);
	}
	wait_for(others);
	admin("link del k0");
	admin("link del k1");
}

/* Under ThreadSanitizer 66 says that there were races. */
static void
engine_saw_no_race(void)
{
	const char *name = getenv("ROCADED_LOG");
	FILE *log = name != NULL ? fopen(name, "r") : NULL;
	char line[256];
	int status = rig_stop(&rig, 20000);

	CU_ASSERT_EQUAL(status, 0);
	while (status != 0 && log != NULL && fgets(line, sizeof(line), log) != NULL)
		printf("# %s", line);
	if (log != NULL)
		fclose(log);
}

static int
make_netdevs(void)
{
	return geteuid() == 0 && unshare(CLONE_NEWNET) == 0 &&
		sh("ip link set lo up && ip link add rcdrace0 type veth peer name rcdrace1 && "
		   "ip addr add 10.78.0.1/24 dev rcdrace0 && ip addr add 10.78.0.2/24 dev rcdrace1 "
		   "&& ip link set rcdrace0 up && ip link set rcdrace1 up") == 0;
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(clients_come_and_go),
		RCD_TEST(links_and_addresses_change),
		RCD_TEST(netdevs_change),
		RCD_TEST(engine_saw_no_race),
	};

	static char log[] = "/tmp/rcdrace-XXXXXX";
	int fd = getenv("ROCADED_LOG") == NULL ? mkstemp(log) : -1;
	int failed;

	if (fd >= 0) {
		close(fd);
		setenv("ROCADED_LOG", log, 1);
	}
	netdevs = (char)make_netdevs();
	rig_start(&rig, NULL);
	failed = rcd_tap_run("race", tests, sizeof(tests) / sizeof(tests[0]));
	if (fd >= 0)
		unlink(log);
	return failed;
}
