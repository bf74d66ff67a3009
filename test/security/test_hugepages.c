/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: hugepages are taken as queues grow, by nobody more than a share, and queues lie in ordinary
 * pages where there are none. Method: an engine on a machine that has some, or gets some for as
 * long as this runs; the kernel's count of free ones tells.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "takers.h"

#define FOLDER "/sys/kernel/mm/hugepages/hugepages-2048kB/"

/** Below what EAL wants for itself. */
#define WANTED 64

/** How long the machine has to be as it was: ten seconds. */
#define AGAIN_TIMES 1000
#define AGAIN_US    10000

static struct rig rig;

static long
read_number(const char *name)
{
	char path[128];
	FILE *file;
	long number = -1;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	file = fopen(path, "r");
	if (file != NULL && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file != NULL)
		fclose(file);
	return number;
}

static bool
write_number(const char *name, long number)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), FOLDER "%s", name);
	file = fopen(path, "w");
	if (file == NULL)
		return false;
	fprintf(file, "%ld\n", number);
	return fclose(file) == 0;
}

static long
free_pages(void)
{
	return read_number("free_hugepages") - read_number("resv_hugepages");
}

/* Whether as many are free again, soon: others of the machine may have some for a moment. */
static bool
free_again(long before)
{
	for (int i = 0; free_pages() != before; i++) {
		if (i == AGAIN_TIMES)
			return false;
		usleep(AGAIN_US);
	}
	return true;
}

static void
start(void)
{
	rig_start_text(&rig, "[engine]\nsocket_mode = 0666\n[quota]\nqueue_bytes = 16M\n", true);
}

static uint32_t
grow(struct node *node, uint32_t count)
{
	struct rcd_ctrl_srq_req req = { .pd = node->pd, .depth = 1u << 15, .max_sge = 1 };
	struct rcd_ctrl_srq_rep rep;
	uint32_t made = 0;

	/* A megabyte each. */
	while (made < count &&
		rcd_client_call(&node->client, RCD_CTRL_SRQ_CREATE, &req, &rep, NULL, NULL) == 0)
		made++;
	return made;
}

static void
pages_by_need(void)
{
	long before = free_pages();
	struct node node;

	start();
	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT(node.client.huge_bytes > 0);
	CU_ASSERT_EQUAL(free_pages(), before - 1);
	CU_ASSERT(grow(&node, 4) == 4);
	CU_ASSERT(free_pages() < before - 2 && free_pages() >= before - 6);
	node_close(&node);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT(free_again(before));
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* A client that leaves and keeps the file. */
static void
none_is_kept(void)
{
	long before = free_pages();
	struct keeper keeper;

	start();
	keeper_open(&keeper, rig.socket);
	CU_ASSERT(keeper.files[1] >= 0);
	CU_ASSERT(free_pages() < before);
	rcd_client_close(&keeper.client);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(keeper_bytes(&keeper), 0);
	CU_ASSERT(free_again(before));
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* Clients that want all, and touch what they were not given, besides. */
static void
a_share_is_left(void)
{
	long before = free_pages();
	struct node nodes[10];

	start();
	for (size_t i = 0; i < RCD_ARRAY_COUNT(nodes); i++) {
		struct node *node = &nodes[i];

		node_open(node, rig.socket, "roce0", RCD_QP_RC);
		grow(node, 12);
		for (uint64_t at = 0; at < node->client.huge_bytes; at += HUGE)
			((volatile uint8_t *)node->client.shm)[node->client.shm_bytes + at] = 0;
	}
	CU_ASSERT(free_pages() >= before / 2);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	for (size_t i = 0; i < RCD_ARRAY_COUNT(nodes); i++)
		node_close(&nodes[i]);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT(free_again(before));
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

/* Somebody else takes all of them while a client has room for more. */
static void
none_left(void)
{
	struct node node;
	long count;
	void *all;

	start();
	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT(node.client.huge_bytes > 0);
	count = free_pages();
	all = mmap(NULL, (size_t)count * HUGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	MUST(all != MAP_FAILED);
	CU_ASSERT_EQUAL(free_pages(), 0);
	/* Ordinary pages go on where hugepages end. */
	CU_ASSERT_EQUAL(grow(&node, 8), 8);
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	munmap(all, (size_t)count * HUGE);
	node_close(&node);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S19 hugepages are taken as queues grow", pages_by_need },
		{ "S19 clients leave a share of the hugepages", a_share_is_left },
		{ "S19 queues do without hugepages", none_left },
		{ "H3 no hugepages of a segment outlive its session", none_is_kept },
	};
	long total = read_number("nr_hugepages");
	bool added = free_pages() >= 0 && free_pages() < WANTED;
	int status = 0;
	pid_t pid;

	if (added)
		write_number("nr_hugepages", total + WANTED);
	if (free_pages() < WANTED) {
		printf("1..0 # SKIP takes %d hugepages of 2 MiB\n", WANTED);
	} else {
		/* However it ends, the machine has what it had. */
		pid = fork();
		if (pid == 0)
			return rcd_tap_run("hugepages", tests, RCD_ARRAY_COUNT(tests));
		MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	}
	if (added)
		write_number("nr_hugepages", total);
	return status != 0;
}
