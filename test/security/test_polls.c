/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whatever a client asks for, one poll of an lcore does no more than its budget, and an
 * honest pair beside it goes on. Method: each attack against an engine of the test's own; the
 * engine says how many units of work its largest poll did. Nothing here is about time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

/**
 * Units of the largest poll with three clients: budgets of 32 for the doorbells, flushes and events
 * of each; packets of both ends of the wire, 64 each at most, and what they complete; 64 timers.
 */
#define WORK_MOST 640

static struct rig rig;

static void
check_bound(void)
{
	long long most = rig_engine(&rig, "longest_poll_work");

	CU_ASSERT(most > 0 && most <= WORK_MOST);
}

/* The bound holds, the budget of a client was reached, and an honest pair is served. */
static void
check_polls(struct honest honest)
{
	long long most = rig_engine(&rig, "longest_poll_work");

	CU_ASSERT_EQUAL(honest_end(honest), 0);
	printf("# largest poll so far: %lld units; budgets reached: %lld of a client, %lld of "
	       "all\n",
		most, rig_engine(&rig, "poll_budget_client"), rig_engine(&rig, "poll_budget_all"));
	check_bound();
	CU_ASSERT(rig_engine(&rig, "poll_budget_client") > 0);
}

static long long
polls_so_far(void)
{
	long long polls = rig_engine(&rig, "polls");

	MUST(polls >= 0); /* it is alive */
	return polls;
}

/* Lcores go on: so many polls at least. */
static void
let_it_poll(long long polls)
{
	long long until = polls_so_far() + polls;

	while (polls_so_far() < until)
		usleep(10000);
}

static struct rcd_ctrl_qp_req
small_qp(const struct node *node, uint32_t depth)
{
	return (struct rcd_ctrl_qp_req){ .pd = node->pd,
		.type = RCD_QP_UC,
		.send_cq = node->cq.handle,
		.recv_cq = node->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = depth,
		.rq_depth = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1 };
}

static void
to_error(struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_attr attr = { .state = RCD_QP_ERR };

	MUST(rcd_cl_qp_modify(qp, &attr, RCD_QP_ATTR_STATE) == 0);
}

/* Every doorbell that there is, again and again, of queue pairs and of none. */
static void
many_doorbells(void)
{
	enum {
		QPS = 3000
	};
	struct honest honest = honest_start(&rig);
	struct rcd_cl_qp qp;
	struct node a;
	long long until;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	for (int i = 0; i < QPS; i++) {
		struct rcd_ctrl_qp_req req = small_qp(&a, 1);

		MUST(rcd_cl_qp_create(&a.client, &req, &qp) == 0);
	}
	until = polls_so_far() + 3000;
	do {
		for (int round = 0; round < 1000; round++) {
			for (int word = 0; word < RCD_DB_WORDS; word++)
				__atomic_store_n(&a.client.shm->db_words[word], UINT64_MAX,
					__ATOMIC_SEQ_CST);
			__atomic_store_n(&a.client.shm->db_summary, UINT64_MAX, __ATOMIC_SEQ_CST);
		}
	} while (polls_so_far() < until);
	check_polls(honest);
	/* And its own queue pairs were not forgotten: the last one is answered. */
	to_error(&qp);
	MUST(rcd_cl_post_recv(&qp, &(struct rcd_recv_wr){ .wr_id = 7 }, true) == 0);
	{
		struct rcd_cq_slot slot;

		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(slot.wr_id, 7);
	}
	node_close(&a);
}

/* Every doorbell of many clients: together they have no more than the budget of all. */
static void
doorbells_of_many_clients(void)
{
	enum {
		CLIENTS = 24
	};
	long long before = rig_engine(&rig, "poll_budget_all");
	struct honest honest = honest_start(&rig);
	struct node nodes[CLIENTS];
	long long until;

	for (int i = 0; i < CLIENTS; i++)
		MUST(node_try_open(&nodes[i], rig.socket, "roce0") == 0);
	until = polls_so_far() + 3000;
	do {
		for (int i = 0; i < 100 * CLIENTS; i++) {
			struct rcd_shm_hdr *shm = nodes[i % CLIENTS].client.shm;

			for (int word = 0; word < RCD_DB_WORDS; word++)
				__atomic_store_n(
					&shm->db_words[word], UINT64_MAX, __ATOMIC_SEQ_CST);
			__atomic_store_n(&shm->db_summary, UINT64_MAX, __ATOMIC_SEQ_CST);
		}
	} while (polls_so_far() < until);
	check_polls(honest);
	CU_ASSERT(rig_engine(&rig, "poll_budget_all") > before);
	for (int i = 0; i < CLIENTS; i++)
		rcd_client_close(&nodes[i].client);
}

/* Queue pairs in ERR with long queues, full again as soon as they are empty. */
static void
long_flushes(void)
{
	enum {
		QPS = 50,
		DEPTH = 8192,
		ROUNDS = 20
	};
	struct honest honest = honest_start(&rig);
	struct rcd_cl_qp qps[QPS];
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	for (int i = 0; i < QPS; i++) {
		struct rcd_ctrl_qp_req req = small_qp(&a, DEPTH);

		MUST(rcd_cl_qp_create(&a.client, &req, &qps[i]) == 0);
		to_error(&qps[i]);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < QPS; i++) {
			rcd_shm_store(&qps[i].sq.shm->producer,
				rcd_shm_load(&qps[i].sq.shm->consumer) + DEPTH);
			rcd_db_ring(a.client.shm, qps[i].handle);
		}
		let_it_poll(100);
	}
	check_polls(honest);
	node_close(&a);
}

/* An error in the middle of traffic leaves a long queue: all of it completes, once and in order. */
static void
flush_is_whole(void)
{
	enum {
		DEPTH = 4096
	};
	struct rcd_ctrl_cq_req cq = { .depth = DEPTH, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_ctrl_qp_req req;
	struct rcd_cl_qp qp;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_cl_cq_create(&a.client, &cq, &a.cq) == 0);
	req = small_qp(&a, DEPTH);
	MUST(rcd_cl_qp_create(&a.client, &req, &qp) == 0);
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct rcd_send_wr wr = { .wr_id = i, .opcode = RCD_WR_SEND };

		MUST(rcd_cl_post_send(&qp, &wr) == 0);
	}
	rcd_cl_ring(&qp);
	to_error(&qp);
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct rcd_cq_slot slot;

		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(slot.wr_id, i);
	}
	check_bound();
	node_close(&a);
}

#define EVENT_CQS 3000

/* A completion queue with a cookie of its own, and a completion that raises an event. */
static void
raise_event(struct node *node, uint64_t cookie, uint32_t period_us)
{
	struct rcd_ctrl_cq_req cq = { .depth = 2, .channel = node->channel, .cookie = cookie };
	struct rcd_ctrl_cq_modify_req moderation = { .count = 2, .period_us = period_us };
	struct rcd_cl_cq made;
	struct rcd_ctrl_qp_req req;
	struct rcd_cl_qp qp;

	MUST(rcd_cl_cq_create(&node->client, &cq, &made) == 0);
	moderation.handle = made.handle;
	if (period_us > 0)
		MUST(rcd_client_call(&node->client, RCD_CTRL_CQ_MODIFY, &moderation, NULL, NULL,
			     NULL) == 0);
	rcd_cl_arm(&made, false);
	req = small_qp(node, 1);
	req.send_cq = req.recv_cq = made.handle;
	MUST(rcd_cl_qp_create(&node->client, &req, &qp) == 0);
	MUST(rcd_cl_post_recv(&qp, &(struct rcd_recv_wr){ .wr_id = 1 }, false) == 0);
	to_error(&qp);
}

/* Reads events until each of so many came; none may come twice. */
static void
take_events(struct node *node, uint64_t first, uint32_t count)
{
	uint8_t *seen = calloc(count, 1);

	for (uint32_t i = 0; i < count; i++) {
		struct pollfd wait = { .fd = node->channel_fd, .events = POLLIN };
		uint64_t cookie = 0;

		if (poll(&wait, 1, FOREVER_MS) != 1 ||
			read(node->channel_fd, &cookie, sizeof(cookie)) != sizeof(cookie) ||
			cookie - first >= count || seen[cookie - first]++ != 0) {
			printf("# event %u: cookie %llu\n", i, (unsigned long long)cookie);
			CU_FAIL("an event that is missing, foreign, or there twice");
			break;
		}
	}
	free(seen);
}

/* More events than a channel takes, and a client that does not read; then it does. */
static void
events_that_wait(void)
{
	struct honest honest = honest_start(&rig);
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	for (uint32_t i = 0; i < EVENT_CQS; i++)
		raise_event(&a, 1000 + i, 0);
	let_it_poll(3000);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	check_bound();
	take_events(&a, 1000, EVENT_CQS);
	node_close(&a);
}

/* Another channel of the same client goes on beside one that is full. */
static void
a_full_channel_is_alone(void)
{
	struct rcd_ctrl_handle channel;
	struct rcd_ctrl_fds fds;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	for (uint32_t i = 0; i < 1000; i++)
		raise_event(&a, 1000 + i, 0);
	MUST(rcd_client_call(&a.client, RCD_CTRL_CHANNEL_CREATE, NULL, &channel, NULL, &fds) == 0);
	{
		struct node other = a;

		other.channel = channel.handle;
		other.channel_fd = fds.fds[0];
		for (uint32_t i = 0; i < 20; i++) {
			raise_event(&other, 5000 + i, 0);
			take_events(&other, 5000 + i, 1);
		}
	}
	take_events(&a, 1000, 1000);
	close(fds.fds[0]);
	node_close(&a);
}

/* Events that wait for their time are looked at when it has come, and not by every poll. */
static void
moderated_events(void)
{
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	for (uint32_t i = 0; i < 500; i++)
		raise_event(&a, 1000 + i, 20000);
	take_events(&a, 1000, 500);
	check_bound();
	node_close(&a);
}

/* A long queue of completions moves to another size, and all of them are there. */
static void
resize_of_a_long_queue(void)
{
	enum {
		DEPTH = 1 << 16
	};
	struct rcd_ctrl_cq_req cq = { .depth = DEPTH, .channel = RCD_CTRL_NO_HANDLE };
	struct honest honest = honest_start(&rig);
	struct rcd_ctrl_qp_req req;
	struct rcd_cq_slot slot;
	struct rcd_cl_qp qp;
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	MUST(rcd_cl_cq_create(&a.client, &cq, &a.cq) == 0);
	req = small_qp(&a, DEPTH / 2);
	MUST(rcd_cl_qp_create(&a.client, &req, &qp) == 0);
	for (uint32_t i = 0; i < DEPTH / 2; i++) {
		struct rcd_send_wr wr = { .wr_id = i, .opcode = RCD_WR_SEND };

		MUST(rcd_cl_post_send(&qp, &wr) == 0);
	}
	to_error(&qp);
	rcd_cl_ring(&qp);
	/* The first three move while the others come. */
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
	CU_ASSERT_EQUAL(rcd_cl_cq_resize(&a.cq, 2 * DEPTH), 0);
	CU_ASSERT_EQUAL(rcd_cl_cq_resize(&a.cq, DEPTH), 0);
	for (uint32_t i = 1; i < DEPTH / 4; i++) {
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(slot.wr_id, i);
	}
	CU_ASSERT_EQUAL(rcd_cl_cq_resize(&a.cq, DEPTH / 2), 0);
	for (uint32_t i = DEPTH / 4; i < DEPTH / 2; i++) {
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(slot.wr_id, i);
	}
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	check_bound();
	node_close(&a);
}

/* A session with thousands of queue pairs ends in many small steps. */
static void
the_end_of_a_large_session(void)
{
	struct honest honest = honest_start(&rig);
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	for (uint32_t i = 0; i < 3000; i++) {
		struct rcd_ctrl_qp_req req = small_qp(&a, 1);
		struct rcd_cl_qp qp;

		MUST(rcd_cl_qp_create(&a.client, &req, &qp) == 0);
	}
	node_close(&a);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	check_bound();
}

struct fault {
	int fd;
	uint8_t *page;
};

/* Reads an event into a page that never comes. */
static void *
read_into_fault(void *arg)
{
	const struct fault *fault = arg;
	ssize_t got = read(fault->fd, fault->page, sizeof(uint64_t));

	return (void *)got;
}

/* Who reads may hold locks of the kernel while he waits for a page: no lcore waits for them. */
static void
a_reader_that_faults(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct fault fault;
	struct uffd_msg msg;
	struct honest honest;
	pthread_t thread;
	struct node a;
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) != 0) {
		rcd_tap_skip("no userfaultfd for faults in the kernel");
		return;
	}
	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	fault.fd = a.channel_fd;
	fault.page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(fault.page != MAP_FAILED);
	range.range.start = (uintptr_t)fault.page;
	range.range.len = 4096;
	MUST(ioctl(uffd, UFFDIO_REGISTER, &range) == 0);
	MUST(pthread_create(&thread, NULL, read_into_fault, &fault) == 0);
	raise_event(&a, 1000, 0);
	/* It is in the middle of the read now, and stays there. */
	MUST(read(uffd, &msg, sizeof(msg)) == sizeof(msg));
	honest = honest_start(&rig);
	/* Each wants to send an event to the same channel. */
	for (uint32_t i = 1; i < 20; i++)
		raise_event(&a, 1000 + i, 0);
	let_it_poll(1000);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	MUST(ioctl(uffd, UFFDIO_UNREGISTER, &range.range) == 0);
	pthread_join(thread, NULL);
	take_events(&a, 1001, 19);
	close(uffd);
	munmap(fault.page, 4096);
	node_close(&a);
}

/* An engine that sleeps. */
static void
start_sleeper(void)
{
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	rig_start_text(&rig, "[engine]\nidle = sleep\n", true);
}

/* A client keeps a copy of its session's bell; when that is gone, the number is another file's. */
static void
bell_of_a_session_that_is_gone(void)
{
	struct rcd_ctrl_handle channel;
	struct rcd_client other;
	struct rcd_ctrl_fds fds;
	struct node a, b;
	int bell;

	start_sleeper();
	MUST(node_try_open(&a, rig.socket, "roce0") == 0);
	bell = dup(a.client.wake_fd);
	rcd_client_close(&a.client);
	MUST(rig_contexts(&rig, 0, FOREVER_MS));
	/* So the next session's event stream gets the number. */
	MUST(rcd_client_connect(&other, rig.socket) == 0);
	MUST(rcd_client_call(&other, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &channel, NULL, &fds) == 0);
	MUST(node_try_open(&b, rig.socket, "roce0") == 0);
	for (int i = 0; i < 20; i++) {
		MUST(write(bell, &(uint64_t){ 1 }, sizeof(uint64_t)) == sizeof(uint64_t));
		usleep(5000);
	}
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	rcd_ctrl_fds_close(&fds);
	rcd_client_close(&b.client);
	rcd_client_close(&other);
	close(bell);
}

/* Whether a read of the bell blocks is up to the client as well: it shares the open file. */
static void
bell_that_blocks(void)
{
	struct honest honest;
	pid_t ringers[4];
	struct node a;

	MUST(node_try_open(&a, rig.socket, "roce0") == 0);
	MUST(fcntl(a.client.wake_fd, F_SETFL, 0) == 0);
	fflush(stdout);
	for (int i = 0; i < 4; i++) {
		ringers[i] = fork();
		while (ringers[i] == 0) {
			struct pollfd bell = { .fd = a.client.wake_fd, .events = POLLIN };
			uint64_t rings = 1;

			MUST(write(bell.fd, &rings, sizeof(rings)) == sizeof(rings));
			if (poll(&bell, 1, 0) == 1)
				MUST(read(bell.fd, &rings, sizeof(rings)) == sizeof(rings));
		}
	}
	let_it_poll(3000);
	honest = honest_start(&rig);
	let_it_poll(3000);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	for (int i = 0; i < 4; i++) {
		kill(ringers[i], SIGKILL);
		waitpid(ringers[i], NULL, 0);
	}
	rcd_client_close(&a.client);
}

static void
stop(void)
{
	CU_ASSERT_TRUE(rig_ends_well(&rig));
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "S8 doorbells of thousands of queue pairs", many_doorbells },
		{ "S8 doorbells of many clients", doorbells_of_many_clients },
		{ "S8 long queues that are flushed", long_flushes },
		{ "S8 a flush by many polls is whole", flush_is_whole },
		{ "S8 events that their channel does not take", events_that_wait },
		{ "S8 a full channel delays no other", a_full_channel_is_alone },
		{ "S8 events that wait for their time", moderated_events },
		{ "S8 a long completion queue is resized", resize_of_a_long_queue },
		{ "S8 a session of thousands of queue pairs ends", the_end_of_a_large_session },
		{ "S8 a reader of events that faults holds up nobody", a_reader_that_faults },
		{ "S9 the bell of a session that is gone", bell_of_a_session_that_is_gone },
		{ "S9 a bell that blocks who reads it", bell_that_blocks },
		{ "S8 the engine is as before", stop },
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("polls", tests, sizeof(tests) / sizeof(tests[0]));
}
