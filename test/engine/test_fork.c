/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: after the call behind ibv_fork_init(), registered memory is not inherited, and the parent
 * goes on. Method: a program of its own, since the call is for the life of a process.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_tap.h"
#include "rig.h"

static void
registered_memory_stays_with_the_parent(void)
{
	struct rig rig;
	struct node a, b;
	struct rcd_cq_slot slot;
	pid_t child;
	int status;

	rig_start(&rig, NULL);
	CU_ASSERT_EQUAL(rcd_cl_mem_fork_init(), 0);
	CU_ASSERT(rcd_cl_mem_fork_inited());
	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, 65536);
	node_memory(&b, 65536);
	node_join(&a, &b, RCD_QP_RC, 1);
	fill(a.memory, 65536, 1);
	child = fork();
	if (child == 0) {
		unsigned char resident;

		_exit(mincore(a.memory, 4096, &resident) == -1 && errno == ENOMEM ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 65536, 1), 0);
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT(filled(b.memory, 65536, 1));
	node_close(&a);
	node_close(&b);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* An allocator's memory outlives what was registered in it. */
static void
what_was_registered_once_is_inherited(void)
{
	struct rig rig;
	struct node a;
	pid_t child;
	int status;

	rig_start(&rig, NULL);
	CU_ASSERT_EQUAL(rcd_cl_mem_fork_init(), 0);
	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_memory(&a, 65536);
	fill(a.memory, 65536, 1);
	CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&a.client, &a.mr), 0);
	child = fork();
	if (child == 0) {
		bool right = filled(a.memory, 65536, 1);

		fill(a.memory, 65536, 2);
		_exit(right ? 0 : 1);
	}
	waitpid(child, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
	CU_ASSERT(filled(a.memory, 65536, 1));
	node_close(&a);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(registered_memory_stays_with_the_parent),
		RCD_TEST(what_was_registered_once_is_inherited),
	};

	return rcd_tap_run("fork", tests, sizeof(tests) / sizeof(tests[0]));
}
