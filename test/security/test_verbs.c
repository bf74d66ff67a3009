/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: what reviews found and a program meets through the verbs does not come back. Method: the
 * drop-in library on an embedded wire, the situation of each finding.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

#define ROUNDS  100
#define WINDOWS 300

static struct rig rig;
static struct side a, b;

/* Poll for so many completions that succeeded. */
static void
expect(struct ibv_cq *cq, int count)
{
	uint64_t end = now_ms() + FOREVER_MS;
	struct ibv_wc wc;
	int got = 0;

	while (got < count && now_ms() < end) {
		if (ibv_poll_cq(cq, 1, &wc) <= 0)
			continue;
		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		got++;
	}
	CU_ASSERT_EQUAL(got, count);
}

static void
receive(struct side *side, uint64_t offset, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)side->memory + offset, len, side->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	CU_ASSERT_EQUAL(ibv_post_recv(side->qp, &wr, &bad), 0);
}

/* One chain: SEND inline, a local operation, SEND inline. */
static void
inline_around_a_local_operation(void)
{
	char first[SIDE_INLINE / 2], second[SIDE_INLINE / 2];
	struct ibv_sge sges[2] = { { (uintptr_t)first, sizeof(first), 0 },
		{ (uintptr_t)second, sizeof(second), 0 } };
	struct ibv_mr *mr;
	int wrong = 0;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	mr = ibv_reg_mr(a.pd, a.memory, SIDE_LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	MUST(mr != NULL);
	memset(first, 'A', sizeof(first));
	memset(second, 'B', sizeof(second));
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_mw *mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
		struct ibv_send_wr wrs[3] = { { .next = &wrs[1],
						      .sg_list = &sges[0],
						      .num_sge = 1,
						      .opcode = IBV_WR_SEND,
						      .send_flags =
							      IBV_SEND_INLINE | IBV_SEND_SIGNALED },
			{ .next = &wrs[2],
				.opcode = IBV_WR_BIND_MW,
				.send_flags = IBV_SEND_SIGNALED },
			{ .sg_list = &sges[1],
				.num_sge = 1,
				.opcode = IBV_WR_SEND,
				.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED } };
		struct ibv_send_wr *bad;

		MUST(mw != NULL);
		wrs[1].bind_mw.mw = mw;
		wrs[1].bind_mw.rkey = ibv_inc_rkey(mw->rkey);
		wrs[1].bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)a.memory,
			SIDE_LEN, IBV_ACCESS_REMOTE_READ };
		memset(b.memory, 0, SIDE_LEN);
		receive(&b, 0, sizeof(first));
		receive(&b, sizeof(first), sizeof(second));
		CU_ASSERT_EQUAL(ibv_post_send(a.qp, wrs, &bad), 0);
		expect(a.cq, 3);
		expect(b.cq, 2);
		wrong += memcmp(b.memory, first, sizeof(first)) != 0;
		wrong += memcmp(b.memory + sizeof(first), second, sizeof(second)) != 0;
		CU_ASSERT_EQUAL(ibv_dealloc_mw(mw), 0);
	}
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	side_close(&a);
	side_close(&b);
}

/* Bind a new window of a's to the whole of a region. */
static struct ibv_mw *
bind_window(struct ibv_mr *mr)
{
	struct ibv_mw *mw = ibv_alloc_mw(a.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	MUST(mw != NULL);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){ mr, (uintptr_t)a.memory, SIDE_LEN,
		IBV_ACCESS_REMOTE_READ };
	CU_ASSERT_EQUAL(ibv_post_send(a.qp, &wr, &bad), 0);
	expect(a.cq, 1);
	return mw;
}

/* More windows than are unbound in one poll, and one that was freed before. */
static void
windows_go_with_their_queue_pair(void)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_mw *mws[WINDOWS];
	struct ibv_mr *mr;

	for (int destroy = 0; destroy < 2; destroy++) {
		side_open(&a, "roce0");
		side_open(&b, "roce1");
		side_join(&a, &b);
		mr = ibv_reg_mr(
			a.pd, a.memory, SIDE_LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		MUST(mr != NULL);
		for (int i = 0; i < WINDOWS; i++)
			mws[i] = bind_window(mr);
		CU_ASSERT_EQUAL(ibv_dealloc_mw(mws[WINDOWS / 2]), 0);
		mws[WINDOWS / 2] = NULL;
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), EBUSY);
		CU_ASSERT_EQUAL(
			destroy ? ibv_destroy_qp(a.qp) : ibv_modify_qp(a.qp, &reset, IBV_QP_STATE),
			0);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
		for (int i = 0; i < WINDOWS; i++)
			if (mws[i] != NULL)
				CU_ASSERT_EQUAL(ibv_dealloc_mw(mws[i]), 0);
		if (destroy) {
			CU_ASSERT_EQUAL(ibv_destroy_cq(a.cq), 0);
			CU_ASSERT_EQUAL(ibv_destroy_comp_channel(a.channel), 0);
			side_qp(&a);
		}
		side_close(&a);
		side_close(&b);
	}
}

/* Programs choose sizes and depths by it. */
static void
speed_of_the_port(void)
{
	struct ibv_port_attr attr;

	side_open(&a, "roce0");
	CU_ASSERT_EQUAL(ibv_query_port(a.context, 1, &attr), 0);
	CU_ASSERT_EQUAL(attr.active_width, 2);
	CU_ASSERT_EQUAL(attr.active_speed, 32);
	side_close(&a);
}

/* A SEND that nobody receives keeps the queue from draining. */
static void
draining_is_told(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_qp_init_attr init;
	struct ibv_send_wr *bad;
	uint64_t end = now_ms() + FOREVER_MS;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	sge = (struct ibv_sge){ (uintptr_t)a.memory, 8, a.mr->lkey };
	CU_ASSERT_EQUAL(ibv_post_send(a.qp, &wr, &bad), 0);
	usleep(20000);
	CU_ASSERT_EQUAL(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	CU_ASSERT_EQUAL(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	CU_ASSERT_EQUAL(attr.qp_state, IBV_QPS_SQD);
	CU_ASSERT_EQUAL(attr.sq_draining, 1);
	receive(&b, 0, 8);
	expect(a.cq, 1);
	do {
		CU_ASSERT_EQUAL(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	} while (attr.sq_draining && now_ms() < end);
	CU_ASSERT_EQUAL(attr.sq_draining, 0);
	side_close(&a);
	side_close(&b);
}

/* Over which IP a datagram came is told by both ways to poll. */
static void
network_header_is_told(void)
{
	struct ibv_cq_init_attr_ex with_sl = { .cqe = 16, .wc_flags = IBV_WC_EX_WITH_SL };
	struct ibv_poll_cq_attr no_attr = { .comp_mask = 0 };
	struct ibv_cq_ex *cq_ex;
	struct ibv_cq *plain_cq;
	struct ibv_qp *to[2], *from;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	plain_cq = b.cq;
	to[0] = side_new_qp(&b, IBV_QPT_UD, NULL);
	cq_ex = ibv_create_cq_ex(b.context, &with_sl);
	MUST(cq_ex != NULL);
	b.cq = ibv_cq_ex_to_cq(cq_ex);
	to[1] = side_new_qp(&b, IBV_QPT_UD, NULL);
	b.cq = plain_cq;
	from = side_new_qp(&a, IBV_QPT_UD, NULL);
	side_join_qps(&a, from, &b, to[0]);
	side_ready(to[1]);
	for (int i = 0; i < 4; i++) {
		int v6 = i % 2, ex = i / 2;
		struct ibv_ah *ah = side_ah(&a, &b, v6);
		struct ibv_sge sge = { (uintptr_t)a.memory, 8, a.mr->lkey };
		struct ibv_sge room = { (uintptr_t)b.memory, 100, b.mr->lkey };
		struct ibv_recv_wr recv = { .sg_list = &room, .num_sge = 1 }, *bad_recv;
		struct ibv_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { ah, to[ex]->qp_num, SIDE_QKEY } };
		struct ibv_send_wr *bad;
		uint64_t end = now_ms() + FOREVER_MS;
		struct ibv_wc wc = { .sl = 99 };

		CU_ASSERT_EQUAL(ibv_post_recv(to[ex], &recv, &bad_recv), 0);
		CU_ASSERT_EQUAL(ibv_post_send(from, &wr, &bad), 0);
		expect(a.cq, 1);
		if (ex) {
			int none;

			while ((none = ibv_start_poll(cq_ex, &no_attr)) != 0 && now_ms() < end)
				;
			CU_ASSERT_EQUAL_FATAL(none, 0);
			wc.status = cq_ex->status;
			wc.sl = ibv_wc_read_sl(cq_ex);
			ibv_end_poll(cq_ex);
		} else {
			while (ibv_poll_cq(b.cq, 1, &wc) == 0 && now_ms() < end)
				;
		}
		CU_ASSERT_EQUAL(wc.status, IBV_WC_SUCCESS);
		/* As adapters have it: 1 for IPv6, 2 for IPv4. */
		CU_ASSERT_EQUAL(wc.sl, v6 ? 1 : 2);
		CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	}
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ibv_destroy_qp(to[i]), 0);
	CU_ASSERT_EQUAL(ibv_destroy_qp(from), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(ibv_cq_ex_to_cq(cq_ex)), 0);
	side_close(&a);
	side_close(&b);
}

/* A datagram to a group. */
static void
to_group(struct ibv_qp *qp, struct ibv_ah *ah, uint8_t what)
{
	struct ibv_sge sge = { (uintptr_t)a.memory, 8, a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, 0xffffff, SIDE_QKEY } };
	struct ibv_send_wr *bad;

	memset(a.memory, what, 8);
	CU_ASSERT_EQUAL(ibv_post_send(qp, &wr, &bad), 0);
	expect(a.cq, 1);
}

/* Room for a datagram with its network header. */
static void
listen_at(struct ibv_qp *qp, int at)
{
	struct ibv_sge room = { (uintptr_t)a.memory + (uintptr_t)at, 100, a.mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &room, .num_sge = 1 }, *bad;

	CU_ASSERT_EQUAL(ibv_post_recv(qp, &recv, &bad), 0);
}

/* Two of a group, of one device, and a sender beside them: one of both does not hear itself. */
static void
no_way_back_from_groups(void)
{
	struct ibv_ah_attr to = { .is_global = 1,
		.port_num = 1,
		.grh = { .hop_limit = 1,
			.dgid.raw = { [10] = 0xff, 0xff, 239, 7, 7, 7 },
			.sgid_index = 1 } };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_UD,
		.cap = { 16, 16, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB };
	struct ibv_cq *sent, *heard;
	struct ibv_qp *qps[3]; /* it, the other one, the sender beside */
	struct ibv_ah *ah;

	side_open(&a, "roce0");
	sent = a.cq;
	heard = ibv_create_cq(a.context, 16, NULL, NULL, 0);
	MUST(heard != NULL);
	init.send_cq = sent;
	init.recv_cq = heard;
	init.pd = a.pd;
	qps[0] = ibv_create_qp_ex(a.context, &init);
	MUST(qps[0] != NULL);
	/* Of nothing else, and no other flag. */
	init.qp_type = IBV_QPT_RC;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(a.context, &init));
	CU_ASSERT_EQUAL(errno, EINVAL);
	init.qp_type = IBV_QPT_UD;
	init.create_flags |= IBV_QP_CREATE_SCATTER_FCS;
	CU_ASSERT_PTR_NULL(ibv_create_qp_ex(a.context, &init));
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	a.cq = heard;
	qps[1] = side_new_qp(&a, IBV_QPT_UD, NULL);
	a.cq = sent;
	qps[2] = side_new_qp(&a, IBV_QPT_UD, NULL);
	ah = ibv_create_ah(a.pd, &to);
	MUST(ah != NULL);
	for (int i = 0; i < 3; i++)
		side_ready(qps[i]);
	for (int i = 0; i < 2; i++)
		MUST(ibv_attach_mcast(qps[i], &to.grh.dgid, 0) == 0);
	listen_at(qps[0], 100);
	listen_at(qps[1], 200);
	listen_at(qps[1], 300);
	to_group(qps[0], ah, 1);
	to_group(qps[2], ah, 2);
	expect(heard, 3);
	CU_ASSERT_EQUAL(a.memory[140], 2);
	CU_ASSERT_EQUAL(a.memory[240], 1);
	CU_ASSERT_EQUAL(a.memory[340], 2);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL(ibv_detach_mcast(qps[i], &to.grh.dgid, 0), 0);
	CU_ASSERT_EQUAL(ibv_destroy_ah(ah), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(ibv_destroy_qp(qps[i]), 0);
	CU_ASSERT_EQUAL(ibv_destroy_cq(heard), 0);
	side_close(&a);
}

/* Pages of a file of the test, which both sides know by its descriptor alone. */
static void
buffers_by_descriptor(void)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int memory = memfd_create("buffer", MFD_CLOEXEC);
	char disk_name[] = "/var/tmp/rcd_verbs.XXXXXX";
	int disk = mkstemp(disk_name);
	int fds[] = { memory, disk };
	struct ibv_mr *mr;

	MUST(memory >= 0 && disk >= 0 && unlink(disk_name) == 0);
	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	memset(a.memory, 0x5a, SIDE_LEN);
	for (int i = 0; i < 2; i++) {
		struct ibv_sge sge = { (uintptr_t)a.memory, 4000, a.mr->lkey };
		uint8_t found[4200] = { 0 };
		int fd = dup(fds[i]);

		MUST(ftruncate(fd, 3 * SIDE_LEN) == 0);
		mr = ibv_reg_dmabuf_mr(b.pd, 4196, SIDE_LEN, 0x70000064, fd, all);
		CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
		/* The buffer is there for as long as the region. */
		close(fd);
		CU_ASSERT_EQUAL(
			side_operate(a.qp, IBV_WR_RDMA_WRITE, sge, 0x70000064 + 100, mr->rkey),
			IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(pread(fds[i], found, sizeof(found), 4196), sizeof(found));
		CU_ASSERT_EQUAL(found[99], 0);
		CU_ASSERT_EQUAL(memcmp(found + 100, a.memory, 4000), 0);
		CU_ASSERT_EQUAL(found[4100], 0);
		CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all),
			IBV_REREG_MR_ERR_INPUT);
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
		CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	}
	close(disk);
	close(memory);
	side_close(&a);
	side_close(&b);
}

static void
buffers_that_are_none(void)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	int memory = memfd_create("buffer", MFD_CLOEXEC);
	char path[64];
	int ends[2], readable;

	MUST(memory >= 0 && ftruncate(memory, SIDE_LEN) == 0 &&
		socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	readable = open(path, O_RDONLY);
	MUST(readable >= 0);
	const struct {
		uint64_t offset;
		size_t len;
		uint64_t iova;
		int fd;
		int err;
	} wrongs[] = {
		{ 0, SIDE_LEN + 1, 0, memory, EINVAL },
		{ SIDE_LEN, 1, 0, memory, EINVAL },
		{ UINT64_MAX - 4095, 8192, 0, memory, EINVAL },
		{ 4096, SIZE_MAX, 0, memory, EINVAL },
		{ 0, 0, 0, memory, EINVAL },
		{ 1, 8, 0, memory, EINVAL },
		{ 0, 8, 0, -1, EBADF },
		{ 0, 8, 0, 1000000, EBADF },
		{ 0, 8, 0, ends[0], EOPNOTSUPP },
		{ 0, 8, 0, readable, EACCES },
	};

	side_open(&a, "roce0");
	for (size_t i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		errno = 0;
		CU_ASSERT_PTR_NULL(ibv_reg_dmabuf_mr(
			a.pd, wrongs[i].offset, wrongs[i].len, wrongs[i].iova, wrongs[i].fd, all));
		if (errno != wrongs[i].err)
			printf("# case %zu: %s\n", i, strerror(errno));
		CU_ASSERT_EQUAL(errno, wrongs[i].err);
	}
	side_close(&a);
	close(ends[0]);
	close(ends[1]);
	close(readable);
	close(memory);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T1 inline payload around a local operation", inline_around_a_local_operation },
		{ "T9 windows go with their queue pair", windows_go_with_their_queue_pair },
		{ "T12 the speed of a port", speed_of_the_port },
		{ "T12 draining is told", draining_is_told },
		{ "T14 a datagram's network header is told", network_header_is_told },
		{ "no way back from groups", no_way_back_from_groups },
		{ "buffers by descriptor", buffers_by_descriptor },
		{ "buffers that are none", buffers_that_are_none },
	};
	int status;

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	status = rcd_tap_run("verbs", tests, sizeof(tests) / sizeof(tests[0]));
	return rig_stop(&rig, FOREVER_MS) != 0 ? 1 : status;
}
