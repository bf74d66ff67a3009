/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a signal ends the calls that wait for events, as it ends them with rdma-core: with EINTR,
 * and not when its handler asks for a restart; it harms no other call. Method: a thread waits,
 * another sends it signals until the call has returned or until it has had many.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

#define SIGNALS 40
#define CALLS   400

static struct rig rig;
static struct side side;
static struct rdma_event_channel *events;

static int caught;

static void
on_signal(int sig)
{
	(void)sig;
	__atomic_fetch_add(&caught, 1, __ATOMIC_RELAXED);
}

static void
catch_signal(int sig, int flags)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = flags };

	sigaction(sig, &action, NULL);
}

/* A call that waits, and something for it to wait for. */
struct waiting {
	int (*call)(void);
	void (*release)(void);
	int result, err;
	bool done;
};

static int
wait_completion(void)
{
	struct ibv_cq *cq;
	void *context;
	int result = ibv_get_cq_event(side.channel, &cq, &context);

	if (result == 0)
		ibv_ack_cq_events(cq, 1);
	return result;
}

/* A work request that fails at once. It is this that asks for the event: a thread that waits may
 * not have begun to. */
static void
complete(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_recv_wr wr = { .num_sge = 0 };
	struct ibv_recv_wr *bad;

	CU_ASSERT_EQUAL(ibv_req_notify_cq(side.cq, 0), 0);
	CU_ASSERT_EQUAL(ibv_modify_qp(side.qp, &attr, IBV_QP_STATE), 0);
	CU_ASSERT_EQUAL(ibv_post_recv(side.qp, &wr, &bad), 0);
}

static int
wait_async(void)
{
	struct ibv_async_event event;
	int result = ibv_get_async_event(side.context, &event);

	if (result == 0)
		ibv_ack_async_event(&event);
	return result;
}

static void
link_down(void)
{
	free(rig_admin(rig.socket, "link set roce0 up"));
	free(rig_admin(rig.socket, "link set roce0 down"));
}

static int
wait_cm(void)
{
	struct rdma_cm_event *event;
	int result = rdma_get_cm_event(events, &event);

	if (result == 0)
		rdma_ack_cm_event(event);
	return result;
}

static struct rdma_cm_id *id;

static void
resolve(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = { htobe32(0x0a4d0002) } };

	MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000) == 0);
}

static void *
wait_in_thread(void *arg)
{
	struct waiting *waiting = arg;

	waiting->result = waiting->call();
	waiting->err = errno;
	__atomic_store_n(&waiting->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool
returned(const struct waiting *waiting)
{
	return __atomic_load_n(&waiting->done, __ATOMIC_ACQUIRE);
}

static int
signals_caught(void)
{
	return __atomic_load_n(&caught, __ATOMIC_RELAXED);
}

/* Send signals to a thread that waits until it returns; in the end, give it what it waits for. */
static void
interrupt(struct waiting *waiting)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, wait_in_thread, waiting) == 0);
	for (int i = 0; i < SIGNALS && !returned(waiting); i++) {
		int before = signals_caught();

		usleep(5000);
		pthread_kill(thread, SIGUSR1);
		/* Two that come while the thread has no core are one. */
		for (int ms = 0;
			ms < FOREVER_MS && signals_caught() == before && !returned(waiting); ms++)
			usleep(1000);
	}
	if (!returned(waiting))
		waiting->release();
	pthread_join(thread, NULL);
}

static void
check(int (*call)(void), void (*release)(void))
{
	struct waiting interrupted = { .call = call, .release = release };
	struct waiting restarted = interrupted;

	catch_signal(SIGUSR1, 0);
	interrupt(&interrupted);
	CU_ASSERT_EQUAL(interrupted.result, -1);
	CU_ASSERT_EQUAL(interrupted.err, EINTR);
	catch_signal(SIGUSR1, SA_RESTART);
	caught = 0;
	interrupt(&restarted);
	CU_ASSERT_EQUAL(restarted.result, 0);
	CU_ASSERT(caught > SIGNALS / 2);
}

static void
completions(void)
{
	side_open(&side, "roce0");
	check(wait_completion, complete);
	side_close(&side);
}

static void
asynchronous_events(void)
{
	side_open(&side, "roce0");
	check(wait_async, link_down);
	side_close(&side);
	free(rig_admin(rig.socket, "link set roce0 up"));
}

static void
connection_events(void)
{
	events = rdma_create_event_channel();
	MUST(events != NULL && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
	check(wait_cm, resolve);
	CU_ASSERT_EQUAL(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(events);
}

/* Requests to the engine are finished, whatever comes meanwhile. */
static void
other_calls(void)
{
	struct itimerval storm = { { 0, 300 }, { 0, 300 } }, calm = { { 0, 0 }, { 0, 0 } };
	int failed = 0;

	side_open(&side, "roce0");
	catch_signal(SIGALRM, 0);
	caught = 0;
	setitimer(ITIMER_REAL, &storm, NULL);
	for (int i = 0; i < CALLS; i++) {
		struct ibv_mr *mr =
			ibv_reg_mr(side.pd, side.memory, SIDE_LEN, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_cq *cq = ibv_create_cq(side.context, 16, NULL, side.channel, 0);
		struct ibv_device_attr attr;

		failed += mr == NULL || ibv_dereg_mr(mr) != 0;
		failed += cq == NULL || ibv_destroy_cq(cq) != 0;
		failed += ibv_query_device(side.context, &attr) != 0;
	}
	setitimer(ITIMER_REAL, &calm, NULL);
	CU_ASSERT_EQUAL(failed, 0);
	CU_ASSERT(caught > 0);
	side_close(&side);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T13 a signal ends ibv_get_cq_event()", completions },
		{ "T13 a signal ends ibv_get_async_event()", asynchronous_events },
		{ "T13 a signal ends rdma_get_cm_event()", connection_events },
		{ "T13 requests to the engine are finished", other_calls },
	};
	int status;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	status = rcd_tap_run("signals", tests, sizeof(tests) / sizeof(tests[0]));
	return rig_stop(&rig, FOREVER_MS) != 0 ? 1 : status;
}
