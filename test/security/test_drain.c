/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what a client posts before it destroys its queue pair leaves, where it can; a client that
 * makes the engine wait for that makes nobody else wait, and the engine waits neither long nor for
 * the dead. Method: an engine of the test's own that is stopped while the requests and the end are
 * posted, so that it finds all of it at once, and a peer that counts.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frames.h"
#include "rcd_limits.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"
#include "rig.h"

enum {
	ROUNDS = 50,
	SENDS = 100, /**< several polls' bursts */
	LEN = 512,
	PLACE = LEN + 64, /**< with the header of a datagram */
	MEMORY = SENDS * PLACE,
	HUGE = 32 << 20, /**< so many times as much takes a second or more */
	ENDS = 40,
	RACES = 60,
	WAIT_MOST_MS = 5, /**< of an end, but for a machine that has other things to do */
	STORM_MS = 1500,
	WORK_MOST = 640, /**< as test_polls.c */
};

static struct rig rig;

static void *
go_on(void *arg)
{
	(void)arg;
	usleep(2000);
	MUST(kill(rig.pid, SIGCONT) == 0);
	return NULL;
}

/* A queue pair is destroyed, and the engine learns of that and of what was posted at once. */
static void
destroy_at_once(struct node *node)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, go_on, NULL) == 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&node->client, RCD_CTRL_QP_DESTROY, node->qp.handle), 0);
	MUST(pthread_join(thread, NULL) == 0);
}

/* Two nodes that can send and receive. @return address handle of UD */
static uint32_t
open_pair(struct node *from, struct node *to, uint32_t type)
{
	if (type == RCD_QP_RAW) {
		struct rcd_ctrl_flow_req req;

		frames_open(from, rig.socket, "roce0", MEMORY);
		frames_open(to, rig.socket, "roce1", MEMORY);
		req = frames_flow_of_type(&to->qp, FRAMES_TYPE);
		MUST(frames_flow_create(to, &req, NULL) == 0);
		frames_make(from->memory, LEN, FRAMES_TYPE, 1);
		return 0;
	}
	node_open(from, rig.socket, "roce0", type);
	node_open(to, rig.socket, "roce1", type);
	node_memory(from, MEMORY);
	node_memory(to, MEMORY);
	node_join(from, to, type, 1);
	return type == RCD_QP_UD ? node_ah(from, to, 1) : 0;
}

static int
post_one(struct node *from, struct node *to, uint32_t type, uint32_t ah)
{
	if (type == RCD_QP_RAW)
		return frames_post(from, LEN, 0);
	return type == RCD_QP_UD ? node_datagram(from, to, ah, LEN)
				 : node_write(from, to, RCD_WR_SEND, 0, LEN, 0);
}

/* @return how many of the sends of all rounds arrived */
static uint32_t
count_arrivals(uint32_t type)
{
	uint32_t arrived = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct node from, to;
		struct rcd_cq_slot slot;
		uint32_t ah = open_pair(&from, &to, type);
		uint32_t count = 0;

		for (uint32_t i = 0; i < SENDS; i++)
			MUST(node_recv(&to, (uint64_t)i * PLACE, PLACE, i) == 0);
		rig_halt(&rig);
		for (int i = 0; i < SENDS; i++)
			MUST(post_one(&from, &to, type, ah) == 0);
		destroy_at_once(&from);
		while (count < SENDS && node_wait(&to, &slot, 200) == RCD_WC_SUCCESS)
			count++;
		arrived += count;
		node_close(&from);
		node_close(&to);
	}
	return arrived;
}

static void
frames_leave(void)
{
	CU_ASSERT_EQUAL(count_arrivals(RCD_QP_RAW), ROUNDS * SENDS);
}

static void
datagrams_leave(void)
{
	CU_ASSERT_EQUAL(count_arrivals(RCD_QP_UD), ROUNDS * SENDS);
}

static void
messages_leave(void)
{
	CU_ASSERT_EQUAL(count_arrivals(RCD_QP_UC), ROUNDS * SENDS);
	CU_ASSERT_EQUAL(count_arrivals(RCD_QP_RC), ROUNDS * SENDS);
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Milliseconds that it takes to destroy a node's queue pair: the median of some. */
static uint64_t
median_end_ms(void (*post)(struct node *from, struct node *to), uint32_t type, uint32_t len)
{
	uint64_t ms[ENDS];

	for (int i = 0; i < ENDS; i++) {
		struct node from, to;

		node_open(&from, rig.socket, "roce0", type);
		node_open(&to, rig.socket, "roce1", type);
		node_memory(&from, len);
		node_memory(&to, len);
		node_join(&from, &to, type, 1);
		post(&from, &to);
		ms[i] = now_ms();
		CU_ASSERT_EQUAL(
			rcd_cl_destroy(&from.client, RCD_CTRL_QP_DESTROY, from.qp.handle), 0);
		ms[i] = now_ms() - ms[i];
		node_close(&from);
		node_close(&to);
	}
	qsort(ms, ENDS, sizeof(ms[0]), by_value);
	return ms[ENDS / 2];
}

static void
post_slowly(struct node *from, struct node *to)
{
	struct rcd_ctrl_qp_attr attr = { .rate_kbps = 1 };

	MUST(rcd_cl_qp_modify(&from->qp, &attr, RCD_QP_ATTR_RATE) == 0);
	for (int i = 0; i < SENDS; i++)
		MUST(node_write(from, to, RCD_WR_RDMA_WRITE, 0, LEN, 0) == 0);
}

static void
post_to_nobody(struct node *from, struct node *to)
{
	MUST(rcd_cl_destroy(&to->client, RCD_CTRL_QP_DESTROY, to->qp.handle) == 0);
	for (int i = 0; i < SENDS; i++)
		MUST(node_write(from, to, RCD_WR_RDMA_WRITE, 0, LEN, 0) == 0);
}

static void
post_hugely(struct node *from, struct node *to)
{
	for (int i = 0; i < SENDS; i++)
		MUST(node_write(from, to, RCD_WR_RDMA_WRITE, 0, HUGE, 0) == 0);
}

/* Neither for a rate nor for a peer, and for what the port takes not long. */
static void
nobody_waits_long(void)
{
	CU_ASSERT(median_end_ms(post_slowly, RCD_QP_UC, LEN) < WAIT_MOST_MS);
	CU_ASSERT(median_end_ms(post_slowly, RCD_QP_RC, LEN) < WAIT_MOST_MS);
	CU_ASSERT(median_end_ms(post_to_nobody, RCD_QP_RC, LEN) < WAIT_MOST_MS);
	CU_ASSERT(median_end_ms(post_hugely, RCD_QP_UC, HUGE) < 20 * WAIT_MOST_MS);
}

/* Who posts what can't be: its producer is anywhere, or its queue pair is in an error. */
static void
what_can_not_be_posted(void)
{
	static const uint32_t wrong[] = { NODE_DEPTH + 1, 1u << 20, 1u << 31, UINT32_MAX };

	for (size_t i = 0; i < 2 * RCD_ARRAY_COUNT(wrong); i++) {
		struct node from, to;

		open_pair(&from, &to, RCD_QP_UC);
		rig_halt(&rig);
		rcd_shm_store(&from.qp.sq.shm->producer, wrong[i / 2]);
		if (i % 2)
			rcd_cl_ring(&from.qp);
		destroy_at_once(&from);
		node_close(&from);
		node_close(&to);
	}
}

/* Posts, destroys, and makes anew, until it is killed. */
static pid_t
storm_start(uint32_t type)
{
	pid_t pid = fork();
	struct node from, to;

	if (pid != 0)
		return pid;
	open_pair(&from, &to, type);
	for (;;) {
		struct rcd_cl_qp *qp = &from.qp;

		for (int i = 0; i < NODE_DEPTH; i++)
			MUST(node_write(&from, &to, RCD_WR_RDMA_WRITE, 0, MEMORY, 0) == 0);
		MUST(rcd_cl_destroy(&from.client, RCD_CTRL_QP_DESTROY, qp->handle) == 0);
		node_qp(&from, type, qp);
		MUST(node_connect(qp, type, node_attr(&from, &to, 1)) == 0);
	}
}

/* Requests of an honest client, and one WRITE each, for a while. @return how many */
static uint32_t
honest_rounds(struct node *a, struct node *b)
{
	uint64_t until = now_ms() + STORM_MS;
	struct rcd_cq_slot slot;
	uint32_t count = 0;

	for (; now_ms() < until; count++) {
		struct rcd_cl_qp qp;

		node_qp(a, RCD_QP_RC, &qp);
		CU_ASSERT_EQUAL(rcd_cl_destroy(&a->client, RCD_CTRL_QP_DESTROY, qp.handle), 0);
		MUST(node_write(a, b, RCD_WR_RDMA_WRITE, 0, LEN, count) == 0);
		CU_ASSERT_EQUAL(node_wait(a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	}
	return count;
}

/* A client that does nothing but post and destroy has its share of polls, and no more. */
static void
storm_of_ends(void)
{
	struct honest honest = honest_start(&rig);
	uint32_t calm, stormy;
	struct node a, b;
	pid_t storms[3];

	open_pair(&a, &b, RCD_QP_RC);
	calm = honest_rounds(&a, &b);
	for (int i = 0; i < 3; i++)
		storms[i] = storm_start(i % 2 ? RCD_QP_RC : RCD_QP_UC);
	stormy = honest_rounds(&a, &b);
	for (int i = 0; i < 3; i++) {
		kill(storms[i], SIGKILL);
		waitpid(storms[i], NULL, 0);
	}
	printf("# rounds of an honest client: %u alone, %u beside a storm\n", calm, stormy);
	CU_ASSERT(stormy > 0);
	node_close(&a);
	node_close(&b);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(rig_engine(&rig, "longest_poll_work") < WORK_MOST);
}

/* Another connection of a session destroys the same queue pair, and makes a new one. */
struct other {
	struct rcd_client client;
	uint32_t handle;
	uint32_t begins;
	int err;
};

static void *
destroy_too(void *arg)
{
	struct other *other = arg;

	__atomic_store_n(&other->begins, 1, __ATOMIC_RELEASE);
	other->err = rcd_cl_destroy(&other->client, RCD_CTRL_QP_DESTROY, other->handle);
	return NULL;
}

/* Who waits for an end that another has brought about does not end what has the handle then. */
static void
a_handle_used_again(void)
{
	uint32_t again = 0;

	for (int i = 0; i < RACES; i++) {
		struct other other = { .begins = 0 };
		struct node from, to;
		struct rcd_cl_qp next;
		pthread_t thread;
		uint32_t index;
		int err;

		node_open(&from, rig.socket, "roce0", RCD_QP_UC);
		node_open(&to, rig.socket, "roce1", RCD_QP_UC);
		node_memory(&from, HUGE);
		node_memory(&to, HUGE);
		node_join(&from, &to, RCD_QP_UC, 1);
		MUST(rcd_client_connect(&other.client, rig.socket) == 0);
		MUST(rcd_client_import(&other.client, from.client.seg_fd, &index) == 0);
		other.handle = from.qp.handle;
		post_hugely(&from, &to);
		MUST(pthread_create(&thread, NULL, destroy_too, &other) == 0);
		while (!__atomic_load_n(&other.begins, __ATOMIC_ACQUIRE))
			usleep(10);
		/* The other's request waits then, and is not looked at again when this one is. */
		usleep(1000 + (useconds_t)(i % 10) * 100);
		err = rcd_cl_destroy(&from.client, RCD_CTRL_QP_DESTROY, from.qp.handle);
		node_qp(&from, RCD_QP_UC, &next);
		MUST(pthread_join(thread, NULL) == 0);
		again += next.handle == other.handle && err == 0 && other.err == -ENOENT;
		CU_ASSERT((err == 0) != (other.err == 0));
		CU_ASSERT_EQUAL(rcd_cl_destroy(&from.client, RCD_CTRL_QP_DESTROY, next.handle), 0);
		rcd_client_close(&other.client);
		node_close(&from);
		node_close(&to);
	}
	printf("# a handle was used again in %u of %d races\n", again, RACES);
	CU_ASSERT(again > 0);
}

static long long
sent_pkts(void)
{
	char *answer = rig_admin(rig.socket, "statistic roce0");
	long long count = rig_number(answer, "sent_pkts");

	free(answer);
	MUST(count >= 0);
	return count;
}

/* Who is killed while it waits for an end sends nothing more. */
static void
killed_meanwhile(void)
{
	for (int i = 0; i < 10; i++) {
		long long sent;
		int ready[2];
		pid_t pid;
		char c;

		MUST(pipe(ready) == 0);
		pid = fork();
		if (pid == 0) {
			struct node from, to;

			node_open(&from, rig.socket, "roce0", RCD_QP_UC);
			node_open(&to, rig.socket, "roce1", RCD_QP_UC);
			node_memory(&from, HUGE);
			node_memory(&to, HUGE);
			node_join(&from, &to, RCD_QP_UC, 1);
			post_hugely(&from, &to);
			MUST(write(ready[1], "x", 1) == 1);
			rcd_cl_destroy(&from.client, RCD_CTRL_QP_DESTROY, from.qp.handle);
			pause();
		}
		close(ready[1]);
		MUST(read(ready[0], &c, 1) == 1);
		usleep(1000 * (useconds_t)(i % 5));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		CU_ASSERT_TRUE(rig_contexts(&rig, 0, FOREVER_MS));
		sent = sent_pkts();
		usleep(20000);
		CU_ASSERT_EQUAL(sent_pkts(), sent);
		close(ready[0]);
	}
}

static void
the_engine_ends_well(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(frames_leave),
		RCD_TEST(datagrams_leave),
		RCD_TEST(messages_leave),
		RCD_TEST(nobody_waits_long),
		RCD_TEST(what_can_not_be_posted),
		RCD_TEST(storm_of_ends),
		RCD_TEST(a_handle_used_again),
		RCD_TEST(killed_meanwhile),
		RCD_TEST(the_engine_ends_well),
	};

	rig_start(&rig, NULL);
	frames_set(rig.socket, "raw on");
	return rcd_tap_run("drain", tests, sizeof(tests) / sizeof(tests[0]));
}
