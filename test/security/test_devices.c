/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a device that goes takes nothing with it but what is on it. Method: two ports of one
 * engine, which take everything and have no other side, connected queue pairs on both, and
 * one of the two taken away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define MEMORY (1u << 20)
#define DEVICE(number)                                                                             \
	"[device m" #number "]\ntype = port\ndevargs = net_null" #number                           \
	",no-rx=1\naddress = 10.7.0." #number "/24\n"

static struct rig rig;

static void
command(const char *line)
{
	free(rig_admin(rig.socket, line));
}

static long long
looped(void)
{
	char *answer = rig_admin(rig.socket, "statistic m1");
	long long count = rig_number(answer, "tx_loopback");

	free(answer);
	return count;
}

/* Connected to a queue pair on a device that is gone, and on another that has its place. */
static void
the_peers_device_goes(void)
{
	struct rcd_cq_slot slot;
	struct node a, b;
	long long before;

	node_open(&a, rig.socket, "m1", RCD_QP_RC);
	node_open(&b, rig.socket, "m2", RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_timeout = NODE_TIMEOUT_SHORT; /* its tries are waited for */
	node_join(&a, &b, RCD_QP_RC, 1);
	node_timeout = NODE_TIMEOUT;
	fill(a.memory, MEMORY, 1);
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, MEMORY, 1), 0);
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT(filled(b.memory, MEMORY, 1));
	before = looped();
	CU_ASSERT(before > 0);
	command("link del m2");
	for (int i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 4096, 2), 0);
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(looped(), before);
	node_close(&a);
	node_close(&b);
}

/* The engine is in order, and another device may have the place. */
static void
another_takes_its_place(void)
{
	struct rcd_cq_slot slot;
	struct node a, b;

	command("link add m3 port net_null3,no-rx=1");
	command("link del m3");
	node_open(&a, rig.socket, "m1", RCD_QP_RC);
	node_open(&b, rig.socket, "m1", RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_RC, 1);
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, MEMORY, 1), 0);
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	node_close(&a);
	node_close(&b);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T2 the device of a peer goes", the_peers_device_goes },
		{ "T2 the engine goes on", another_takes_its_place },
	};

	rig_start_text(&rig, DEVICE(1) DEVICE(2), false);
	return rcd_tap_run("devices", tests, sizeof(tests) / sizeof(tests[0]));
}
