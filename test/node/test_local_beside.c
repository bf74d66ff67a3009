/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: clients of other processes use the engine of a program at the same time as the program
 * itself, each reaching the other's memory.
 * Method: a child, made before EAL is, attaches by the socket. Its queue pair and one of the
 * program's are connected: either writes into the other's memory, the program from mbufs; then the
 * child dies, and the program goes on.
 */
#include <errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local_rig.h"
#include "rcd_number.h"
#include "rcd_tap.h"
#include "rcd_wr.h"
#include "rig.h"

#define LEN   1500
#define COUNT 100 /**< of WRITEs from mbufs */
#define LONG  200000

/* What the two tell each other. */
struct hello {
	uint8_t gid[16];
	uint64_t va;
	uint32_t qpn;
	uint32_t rkey;
};

static char path[100];
static pid_t child;
static int line; /**< to the other one */
static struct side a, b;

static void
child_tell(const void *what, size_t len)
{
	MUST(write(line, what, len) == (ssize_t)len);
}

static void
child_hear(void *what, size_t len)
{
	MUST(read(line, what, len) == (ssize_t)len);
}

/* A client like any other, until it is killed. */
static void
child_main(void)
{
	struct hello theirs, ours = { .qpn = 0 };
	struct rcd_ctrl_qp_attr attr;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	struct node node;
	char byte;

	child_hear(&theirs, sizeof(theirs));
	node_open(&node, path, "w0", RCD_QP_RC);
	node_memory(&node, LONG);
	memcpy(ours.gid, node.gids.gids[node_gid(&node, 1)].raw, sizeof(ours.gid));
	ours.va = (uintptr_t)node.memory;
	ours.qpn = node.qp.qpn;
	ours.rkey = node.mr.key;
	attr = node_attr(&node, &node, 1);
	memcpy(attr.av.dgid, theirs.gid, sizeof(theirs.gid));
	attr.dest_qpn = theirs.qpn;
	attr.path_mtu_bytes = 1024;
	MUST(node_connect(&node.qp, RCD_QP_RC, attr) == 0);
	child_tell(&ours, sizeof(ours));
	child_hear(&byte, 1);
	fill(node.memory, LONG, 21);
	sge = (struct rcd_sge){ (uintptr_t)node.memory, LONG, { node.mr.key } };
	wr = (struct rcd_send_wr){ .opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = theirs.va, .rkey = { theirs.rkey } } };
	MUST(rcd_cl_post_send(&node.qp, &wr) == 0);
	rcd_cl_ring(&node.qp);
	MUST(node_wait(&node, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	child_tell(&byte, 1);
	/* What the program writes, in its turn. */
	child_hear(&byte, 1);
	byte = 1;
	for (uint32_t i = 0; i < COUNT; i++)
		byte &= filled(node.memory + i * LEN, LEN, i) != 0;
	child_tell(&byte, 1);
	/* The program kills it, or has ended before. */
	_exit(read(line, &byte, 1) == 0);
}

/* Of the child, while the engine goes on. */
static void
hear(void *what, size_t len)
{
	ssize_t got = -1;

	LOCAL_UNTIL((got = recv(line, what, len, MSG_DONTWAIT)) >= 0);
	CU_ASSERT_EQUAL_FATAL(got, (ssize_t)len);
}

static void
tell(const void *what, size_t len)
{
	CU_ASSERT_EQUAL_FATAL(write(line, what, len), (ssize_t)len);
}

static void
listens(struct rcd_engine_conf *conf)
{
	snprintf(conf->socket, sizeof(conf->socket), "%s", path);
}

static void
post_mbufs(const struct hello *theirs, struct rte_mempool *pool)
{
	struct rcd_local_pool *regions;
	struct rcd_cq_slot slot;

	CU_ASSERT_EQUAL_FATAL(rcd_local_pool_reg(b.local, b.pd, pool, 0, &regions), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
		struct rcd_sge sge;
		struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
			.flags = RCD_SEND_SIGNALED,
			.sge_count = 1,
			.sges = &sge,
			.remote = { .va = theirs->va + i * LEN, .rkey = { theirs->rkey } } };

		CU_ASSERT_PTR_NOT_NULL_FATAL(mbuf);
		bytes_fill((uint8_t *)rte_pktmbuf_append(mbuf, LEN), LEN, i);
		CU_ASSERT_EQUAL(rcd_local_pool_sges(regions, mbuf, &sge, 1), 1);
		LOCAL_UNTIL(rcd_local_qp_sends(b.qp) < SIDE_DEPTH);
		CU_ASSERT_EQUAL(rcd_local_post_send(b.qp, &wr, mbuf), 0);
		rcd_local_ring(b.qp);
	}
	for (uint32_t i = 0; i < COUNT; i++)
		CU_ASSERT_EQUAL(side_wait(&b, &slot), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(rte_mempool_in_use_count(pool), 0);
	rcd_local_pool_dereg(regions);
}

/* Two of the program's own, on the same devices. */
static void
own_pair_transfers(uint32_t seed)
{
	struct side c, d;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;

	side_pair(&c, &d, RCD_QP_RC);
	bytes_fill(c.memory, LONG, seed);
	wr = side_wr(&c, &d, RCD_WR_RDMA_WRITE, &sge, 0, LONG);
	CU_ASSERT_EQUAL(rcd_local_post_send(c.qp, &wr, NULL), 0);
	rcd_local_ring(c.qp);
	CU_ASSERT_EQUAL(side_wait(&c, &slot), RCD_WC_SUCCESS);
	CU_ASSERT(bytes_filled(d.memory, LONG, seed));
	side_close(&c);
	side_close(&d);
}

static void
beside_a_client(void)
{
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("program", 255, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	struct hello ours = { .qpn = 0 }, theirs;
	struct rcd_cq_slot slot;
	struct rcd_send_wr wr;
	struct rcd_sge sge;
	char byte = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(pool);
	local_begin(listens);
	side_open(&a, "w0", RCD_QP_RC);
	side_open(&b, "w1", RCD_QP_RC);
	memcpy(ours.gid, b.gids.gids[b.gid].raw, sizeof(ours.gid));
	ours.va = (uintptr_t)b.memory;
	ours.qpn = rcd_local_qp_num(b.qp);
	ours.rkey = b.key.val;
	tell(&ours, sizeof(ours));
	hear(&theirs, sizeof(theirs));
	{
		struct rcd_ctrl_qp_attr attr = side_attr(&b, theirs.gid, theirs.qpn);

		/* PSNs as the child has them. */
		attr.rq_psn = attr.sq_psn = 1000;
		CU_ASSERT_EQUAL_FATAL(side_connect(b.qp, attr), 0);
	}
	tell(&byte, 1);
	own_pair_transfers(31);
	hear(&byte, 1);
	CU_ASSERT(bytes_filled(b.memory, LONG, 21));
	post_mbufs(&theirs, pool);
	tell(&byte, 1);
	own_pair_transfers(32);
	hear(&byte, 1);
	CU_ASSERT_EQUAL(byte, 1);
	local_audit();
	/* The client goes; who wrote to it is told, and nobody else notices. */
	CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
	CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
	for (int i = 0; i < 50; i++)
		local_turn();
	wr = side_wr(&b, &b, RCD_WR_RDMA_WRITE, &sge, 0, LEN);
	CU_ASSERT_EQUAL(rcd_local_post_send(b.qp, &wr, NULL), 0);
	rcd_local_ring(b.qp);
	CU_ASSERT_EQUAL(side_wait(&b, &slot), RCD_WC_RETRY_EXC_ERR);
	own_pair_transfers(33);
	side_close(&a);
	side_close(&b);
	local_end();
}

static const struct rcd_test tests[] = {
	RCD_TEST(beside_a_client),
};

int
main(void)
{
	int ends[2];

	snprintf(path, sizeof(path), "/tmp/rcdlocal-%d.sock", (int)getpid());
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return 1;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		line = ends[1];
		close(ends[0]);
		child_main();
	}
	line = ends[0];
	close(ends[1]);
	local_eal("0");
	return rcd_tap_run("local_beside", tests, sizeof(tests) / sizeof(tests[0]));
}
