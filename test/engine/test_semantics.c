/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what programs rely on beyond the calls themselves: threads that share a queue pair and a
 * completion queue, completions in order when a queue pair fails, an overrun that is told, objects
 * that are in use and can't be destroyed, events that are waited for. Method: through the drop-in
 * library, on an embedded wire.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

#define THREADS 4
#define EACH    5000 /* work requests of a thread */

static struct rig rig;

/* Several threads post to one queue pair, and several poll its completion queue. */
struct hammer {
	struct side *from, *to;
	uint8_t seen[THREADS * EACH];
	uint32_t posted;
	uint32_t completed; /**< and polled: no more than fit the completion queue are under way */
	uint32_t wrong;
};

struct poster {
	struct hammer *hammer;
	uint32_t first;
};

static void *
post_many(void *arg)
{
	const struct poster *poster = arg;
	struct side *from = poster->hammer->from, *to = poster->hammer->to;

	for (uint32_t i = 0; i < EACH; i++) {
		struct ibv_sge sge = { (uintptr_t)from->memory, 8, from->mr->lkey };
		struct ibv_send_wr wr = { .wr_id = poster->first + i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)to->memory, to->mr->rkey } };
		struct ibv_send_wr *bad;
		uint32_t ticket = __atomic_fetch_add(&poster->hammer->posted, 1, __ATOMIC_RELAXED);
		int err;

		/* Signed: those of other threads may be done before this one's is posted. */
		while ((int32_t)(ticket -
			       __atomic_load_n(&poster->hammer->completed, __ATOMIC_RELAXED)) >=
			SIDE_DEPTH)
			sched_yield();
		while ((err = ibv_post_send(from->qp, &wr, &bad)) == ENOMEM)
			sched_yield();
		if (err != 0)
			__atomic_fetch_add(&poster->hammer->wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *
poll_many(void *arg)
{
	struct hammer *hammer = arg;
	uint64_t end = now_ms() + FOREVER_MS;

	while (__atomic_load_n(&hammer->completed, __ATOMIC_RELAXED) < THREADS * EACH &&
		now_ms() < end) {
		struct ibv_wc wc[8];
		int got = ibv_poll_cq(hammer->from->cq, 8, wc);

		if (got == 0)
			sched_yield();
		for (int i = 0; i < got; i++) {
			bool fine = wc[i].status == IBV_WC_SUCCESS &&
				wc[i].wr_id < THREADS * EACH &&
				__atomic_exchange_n(
					&hammer->seen[wc[i].wr_id], 1, __ATOMIC_RELAXED) == 0;

			if (!fine)
				__atomic_fetch_add(&hammer->wrong, 1, __ATOMIC_RELAXED);
			__atomic_fetch_add(&hammer->completed, 1, __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static void
threads_share_a_queue_pair(void)
{
	static struct hammer hammer;
	struct poster posters[THREADS];
	pthread_t threads[2 * THREADS];
	struct side a, b;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	memset(&hammer, 0, sizeof(hammer));
	hammer.from = &a;
	hammer.to = &b;
	for (uint32_t i = 0; i < THREADS; i++) {
		posters[i] = (struct poster){ &hammer, i * EACH };
		MUST(pthread_create(&threads[i], NULL, post_many, &posters[i]) == 0);
		MUST(pthread_create(&threads[THREADS + i], NULL, poll_many, &hammer) == 0);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(hammer.completed, THREADS * EACH);
	CU_ASSERT_EQUAL(hammer.wrong, 0);
	side_close(&a);
	side_close(&b);
}

/* A whole message lies in memory when its completion can be polled. */
static void
polled_data_is_there(void)
{
	struct side a, b;
	int wrong = 0;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	for (uint32_t round = 0; round < 2000; round++) {
		struct ibv_sge sge = { (uintptr_t)b.memory, SIDE_LEN, b.mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = round, .sg_list = &sge, .num_sge = 1 };
		struct ibv_recv_wr *bad;
		struct ibv_wc wc;

		fill(a.memory, SIDE_LEN, round);
		MUST(ibv_post_recv(b.qp, &wr, &bad) == 0);
		MUST(side_operate(a.qp, IBV_WR_SEND,
			     (struct ibv_sge){ (uintptr_t)a.memory, SIDE_LEN, a.mr->lkey }, 0,
			     0) == IBV_WC_SUCCESS);
		while (ibv_poll_cq(b.cq, 1, &wc) == 0)
			;
		wrong += wc.wr_id != round || wc.byte_len != SIDE_LEN ||
			!filled(b.memory, SIDE_LEN, round);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	side_close(&a);
	side_close(&b);
}

static void
flushed_in_order(void)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	uint64_t next[2] = { 0, 0 };
	struct side a, b;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	/* No receive on the other side: the sends wait. */
	for (uint64_t i = 0; i < 100; i++) {
		struct ibv_sge sge = { (uintptr_t)a.memory, 8, a.mr->lkey };
		struct ibv_recv_wr recv = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad_recv;
		struct ibv_send_wr send = { .wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = i % 2 ? IBV_SEND_SIGNALED : 0 };
		struct ibv_send_wr *bad;

		MUST(ibv_post_recv(a.qp, &recv, &bad_recv) == 0);
		MUST(ibv_post_send(a.qp, &send, &bad) == 0);
	}
	CU_ASSERT_EQUAL(ibv_modify_qp(a.qp, &error, IBV_QP_STATE), 0);
	for (uint64_t end = now_ms() + FOREVER_MS; next[0] + next[1] < 200 && now_ms() < end;) {
		struct ibv_wc wc;

		if (ibv_poll_cq(a.cq, 1, &wc) == 0)
			continue;
		/* The opcode is not valid with an error: numbers tell which queue it was. */
		CU_ASSERT_EQUAL(wc.status, IBV_WC_WR_FLUSH_ERR);
		if (wc.wr_id == next[0])
			next[0]++;
		else
			CU_ASSERT_EQUAL(wc.wr_id, next[1]++);
	}
	CU_ASSERT_EQUAL(next[0] + next[1], 200);
	side_close(&a);
	side_close(&b);
}

static void
overrun_is_told(void)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_PORT_ERR };
	struct pollfd ready = { .events = POLLIN };
	struct side a, b;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	ready.fd = a.context->async_fd;
	/* Nobody polls: in the end there is no room for another completion. */
	for (uint64_t end = now_ms() + FOREVER_MS; poll(&ready, 1, 0) == 0 && now_ms() < end;) {
		struct ibv_sge sge = { (uintptr_t)a.memory, 8, a.mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)b.memory, b.mr->rkey } };
		struct ibv_send_wr *bad;

		if (ibv_post_send(a.qp, &wr, &bad) != 0)
			sched_yield();
	}
	CU_ASSERT_EQUAL_FATAL(ready.revents, POLLIN);
	CU_ASSERT_EQUAL(ibv_get_async_event(a.context, &event), 0);
	CU_ASSERT_EQUAL(event.event_type, IBV_EVENT_CQ_ERR);
	CU_ASSERT_PTR_EQUAL(event.element.cq, a.cq);
	ibv_ack_async_event(&event);
	side_close(&a);
	side_close(&b);
}

static void
what_is_in_use_stays(void)
{
	struct side a;

	side_open(&a, "roce0");
	CU_ASSERT_EQUAL(ibv_dealloc_pd(a.pd), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_cq(a.cq), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(a.channel), EBUSY);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a.qp), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(a.pd), EBUSY); /* of the region */
	CU_ASSERT_EQUAL(ibv_destroy_cq(a.cq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(a.channel), 0);
	side_qp(&a);
	side_close(&a);
}

static void *
destroy(void *arg)
{
	struct side *side = arg;

	return (void *)(intptr_t)ibv_destroy_cq(side->cq);
}

/* A completion queue waits for the events that were taken of it. */
static void
events_are_waited_for(void)
{
	struct side a, b;
	struct ibv_cq *cq;
	pthread_t thread;
	void *context, *result;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	ibv_req_notify_cq(a.cq, 0);
	CU_ASSERT_EQUAL(side_operate(a.qp, IBV_WR_RDMA_WRITE,
				(struct ibv_sge){ (uintptr_t)a.memory, 8, a.mr->lkey },
				(uintptr_t)b.memory, b.mr->rkey),
		IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(ibv_get_cq_event(a.channel, &cq, &context), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a.qp), 0);
	MUST(pthread_create(&thread, NULL, destroy, &a) == 0);
	usleep(50000);
	CU_ASSERT_EQUAL(pthread_tryjoin_np(thread, &result), EBUSY);
	ibv_ack_cq_events(cq, 1);
	pthread_join(thread, &result);
	CU_ASSERT_PTR_NULL(result);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(a.channel), 0);
	side_qp(&a);
	side_close(&a);
	side_close(&b);
}

/* As a garbage collector may do it, which knows no order. */
static void
objects_outlive_a_closed_device(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_parent_domain_init_attr parent = { .comp_mask = 0 };
	struct ibv_td_init_attr td_attr = { .comp_mask = 0 };
	struct ibv_pd *domain;
	struct ibv_srq *srq;
	struct ibv_mr *null_mr;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct side a, b;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	ah = side_ah(&a, &b, 0);
	parent.pd = a.pd;
	parent.td = ibv_alloc_td(a.context, &td_attr);
	domain = ibv_alloc_parent_domain(a.context, &parent);
	srq = ibv_create_srq(domain, &srq_attr);
	null_mr = ibv_alloc_null_mr(a.pd);
	mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	MUST(ah != NULL && srq != NULL && null_mr != NULL && mw != NULL);
	CU_ASSERT_EQUAL(ibv_close_device(a.context), 0);
	CU_ASSERT_PTR_NULL(ibv_alloc_pd(a.context));
	CU_ASSERT_EQUAL(errno, EIO);
	CU_ASSERT_EQUAL(ibv_destroy_cq(a.cq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_comp_channel(a.channel), 0);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(null_mr), 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(a.mr), 0);
	CU_ASSERT_EQUAL(ibv_destroy_srq(srq), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(a.qp), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(domain), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_td(parent.td), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(a.pd), 0);
	munmap(a.memory, SIDE_LEN);
	side_close(&b);
}

static void
nothing_is_left(void)
{
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(threads_share_a_queue_pair),
		RCD_TEST(polled_data_is_there),
		RCD_TEST(flushed_in_order),
		RCD_TEST(overrun_is_told),
		RCD_TEST(what_is_in_use_stays),
		RCD_TEST(events_are_waited_for),
		RCD_TEST(objects_outlive_a_closed_device),
		RCD_TEST(nothing_is_left),
	};

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	return rcd_tap_run("semantics", tests, sizeof(tests) / sizeof(tests[0]));
}
