/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a context, its protection domains and regions can be used by another process that was given
 * the context's descriptor, also after the first one is gone. Method: through the drop-in library;
 * the second process is forked before anything is opened and gets the descriptor over a socket.
 * Also the verbs that come with it: the null region, and moderated events.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "rig.h"
#include "side.h"

#define PERIOD_MS 60 /* of moderated events: 65 are the most */

static struct rig rig;

/* What the second process is told. */
struct told {
	uint32_t pd, mr;
	uint64_t addr;
	uint32_t qpn;
};

static void
send_told(int sock, const struct told *told, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { (void *)(uintptr_t)told, sizeof(*told) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	MUST(sendmsg(sock, &msg, 0) == (ssize_t)sizeof(*told));
}

static int
recv_told(int sock, struct told *told)
{
	char room[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { told, sizeof(*told) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = sizeof(room) };
	int fd = -1;

	if (recvmsg(sock, &msg, 0) != (ssize_t)sizeof(*told) || CMSG_FIRSTHDR(&msg) == NULL)
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* The second process: works on the first one's memory by the imported region, with its own queue
 * pair and one more of its own on another device. @return 0, or the step that failed */
static int
second(int sock)
{
	struct told told;
	struct side mine = { .context = NULL }, other;
	char byte = 1;
	int fd = recv_told(sock, &told);

	if (fd < 0)
		return 1;
	mine.context = ibv_import_device(fd);
	if (mine.context == NULL || mine.context->cmd_fd != fd)
		return 2;
	mine.pd = ibv_import_pd(mine.context, told.pd);
	if (mine.pd == NULL || ibv_import_pd(mine.context, 77) != NULL || errno != ENOENT)
		return 3;
	mine.mr = ibv_import_mr(mine.pd, told.mr);
	if (mine.mr == NULL || mine.mr->addr != NULL || ibv_import_mr(mine.pd, 77) != NULL ||
		errno != ENOENT)
		return 4;
	side_qp(&mine);
	side_open(&other, "roce1");
	side_join(&mine, &other);
	fill(other.memory, SIDE_LEN, 7);
	/* Bytes from the other device into the first process's memory... */
	if (side_operate(mine.qp, IBV_WR_RDMA_READ,
		    (struct ibv_sge){ told.addr, SIDE_LEN, mine.mr->lkey }, (uintptr_t)other.memory,
		    other.mr->rkey) != IBV_WC_SUCCESS)
		return 5;
	/* ...which looks at them, and ends. */
	if (write(sock, &byte, 1) != 1 || read(sock, &byte, 1) != 0)
		return 6;
	/* All of it is ours now, that memory too. */
	memset(other.memory, 0, SIDE_LEN);
	if (side_operate(mine.qp, IBV_WR_RDMA_WRITE,
		    (struct ibv_sge){ told.addr, SIDE_LEN, mine.mr->lkey }, (uintptr_t)other.memory,
		    other.mr->rkey) != IBV_WC_SUCCESS ||
		!filled(other.memory, SIDE_LEN, 7))
		return 7;
	if (ibv_destroy_qp(mine.qp) != 0 || ibv_destroy_cq(mine.cq) != 0 ||
		ibv_destroy_comp_channel(mine.channel) != 0)
		return 8;
	ibv_unimport_mr(mine.mr);
	ibv_unimport_pd(mine.pd);
	if (ibv_close_device(mine.context) != 0 || fcntl(fd, F_GETFD) >= 0)
		return 9;
	side_close(&other);
	return 0;
}

/* The first: opens, hands over, looks, and ends without a word to the engine. */
static void
first(int sock)
{
	struct told told;
	struct side mine;
	char byte;

	side_open(&mine, "roce0");
	told = (struct told){ .pd = mine.pd->handle,
		.mr = mine.mr->handle,
		.addr = (uintptr_t)mine.memory,
		.qpn = mine.qp->qp_num };
	send_told(sock, &told, mine.context->cmd_fd);
	if (read(sock, &byte, 1) != 1)
		_exit(1);
	_exit(filled(mine.memory, SIDE_LEN, 7) ? 0 : 2);
}

static void
another_process_takes_over(void)
{
	for (int round = 0; round < 3; round++) {
		int ends[2], status = -1;
		pid_t pids[2];

		MUST(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
		fflush(stdout);
		pids[0] = fork();
		if (pids[0] == 0) {
			close(ends[1]);
			first(ends[0]);
		}
		pids[1] = fork();
		if (pids[1] == 0) {
			close(ends[0]);
			_exit(second(ends[1]));
		}
		close(ends[0]);
		close(ends[1]);
		waitpid(pids[0], &status, 0);
		CU_ASSERT_EQUAL(status, 0);
		waitpid(pids[1], &status, 0);
		CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
		CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	}
}

static void
within_one_process(void)
{
	struct ibv_context *twice;
	struct side a;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int fd;

	side_open(&a, "roce0");
	fd = dup(a.context->cmd_fd);
	twice = ibv_import_device(fd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(twice);
	pd = ibv_import_pd(twice, a.pd->handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pd);
	mr = ibv_import_mr(pd, a.mr->handle);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(mr->lkey, a.mr->lkey);
	/* Where its memory is is known to who registered it alone. */
	CU_ASSERT_EQUAL(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	CU_ASSERT_EQUAL(errno, EOPNOTSUPP);
	ibv_unimport_mr(mr);
	/* What is imported can be destroyed for good, too. */
	mr = ibv_reg_mr(pd, a.memory, SIDE_LEN, IBV_ACCESS_LOCAL_WRITE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(mr);
	CU_ASSERT_EQUAL(ibv_dereg_mr(mr), 0);
	CU_ASSERT_EQUAL(ibv_dealloc_pd(pd), EBUSY);
	ibv_unimport_pd(pd);
	CU_ASSERT_EQUAL(ibv_close_device(twice), 0);
	side_close(&a);
}

static void
what_is_no_context(void)
{
	int fd = memfd_create("none", 0);

	errno = 0;
	CU_ASSERT_PTR_NULL(ibv_import_device(fd));
	CU_ASSERT_EQUAL(errno, EBADF);
	CU_ASSERT(fcntl(fd, F_GETFD) >= 0);
	close(fd);
	CU_ASSERT_PTR_NULL(ibv_import_device(-1));
}

static void
null_region(void)
{
	struct ibv_mr *null;
	struct side a, b;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	null = ibv_alloc_null_mr(a.pd);
	CU_ASSERT_PTR_NOT_NULL_FATAL(null);
	fill(b.memory, SIDE_LEN, 1);
	/* Read into nothing, at any address... */
	CU_ASSERT_EQUAL(side_operate(a.qp, IBV_WR_RDMA_READ,
				(struct ibv_sge){ 0xdead0000beef, SIDE_LEN, null->lkey },
				(uintptr_t)b.memory, b.mr->rkey),
		IBV_WC_SUCCESS);
	/* ...and write zeros from there. */
	CU_ASSERT_EQUAL(
		side_operate(a.qp, IBV_WR_RDMA_WRITE, (struct ibv_sge){ 0, SIDE_LEN, null->lkey },
			(uintptr_t)b.memory, b.mr->rkey),
		IBV_WC_SUCCESS);
	for (int i = 0; i < SIDE_LEN; i++)
		CU_ASSERT_FATAL(b.memory[i] == 0);
	/* Others have no right to it. */
	CU_ASSERT_EQUAL(
		side_operate(b.qp, IBV_WR_RDMA_WRITE,
			(struct ibv_sge){ (uintptr_t)b.memory, 8, b.mr->lkey }, 0, null->lkey),
		IBV_WC_REM_ACCESS_ERR);
	CU_ASSERT_EQUAL(ibv_dereg_mr(null), 0);
	side_close(&a);
	side_close(&b);
}

/* Wait for an event. @return milliseconds, or -1 */
static int
event_within(struct side *side, int limit_ms)
{
	struct pollfd fd = { .fd = side->channel->fd, .events = POLLIN };
	uint64_t begin = now_ms();
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, limit_ms) != 1 || ibv_get_cq_event(side->channel, &cq, &context) != 0)
		return -1;
	ibv_ack_cq_events(cq, 1);
	return (int)(now_ms() - begin);
}

static void
write_some(struct side *a, struct side *b, int count)
{
	for (int i = 0; i < count; i++)
		CU_ASSERT_EQUAL(side_operate(a->qp, IBV_WR_RDMA_WRITE,
					(struct ibv_sge){ (uintptr_t)a->memory, 8, a->mr->lkey },
					(uintptr_t)b->memory, b->mr->rkey),
			IBV_WC_SUCCESS);
}

static void
moderated_events(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { .cq_count = 10, .cq_period = PERIOD_MS * 1000 } };
	uint64_t begin;
	int late = 0;
	struct side a, b;

	side_open(&a, "roce0");
	side_open(&b, "roce1");
	side_join(&a, &b);
	/* At once, as ever. */
	ibv_req_notify_cq(a.cq, 0);
	write_some(&a, &b, 1);
	CU_ASSERT(event_within(&a, FOREVER_MS) >= 0);
	/* With the tenth, though the time is not up. A busy machine may let it go by. */
	CU_ASSERT_EQUAL(ibv_modify_cq(a.cq, &attr), 0);
	do {
		begin = now_ms();
		ibv_req_notify_cq(a.cq, 0);
		write_some(&a, &b, 10);
		CU_ASSERT_FATAL(event_within(&a, FOREVER_MS) >= 0);
	} while (now_ms() - begin >= PERIOD_MS && ++late < 50);
	CU_ASSERT(late < 50);
	/* One comes with the time, and not before. */
	begin = now_ms();
	ibv_req_notify_cq(a.cq, 0);
	write_some(&a, &b, 1);
	CU_ASSERT_FATAL(event_within(&a, FOREVER_MS) >= 0);
	CU_ASSERT(now_ms() - begin >= PERIOD_MS - 1);
	/* Off again. */
	attr.moderate.cq_count = attr.moderate.cq_period = 0;
	CU_ASSERT_EQUAL(ibv_modify_cq(a.cq, &attr), 0);
	ibv_req_notify_cq(a.cq, 0);
	write_some(&a, &b, 1);
	CU_ASSERT(event_within(&a, FOREVER_MS) >= 0);
	attr.attr_mask = 2;
	CU_ASSERT_EQUAL(ibv_modify_cq(a.cq, &attr), EINVAL);
	side_close(&a);
	side_close(&b);
}

static void
nothing_is_left(void)
{
	char *answer;

	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	answer = rig_admin(rig.socket, "resource mr");
	CU_ASSERT_STRING_EQUAL(answer, "[]");
	free(answer);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(within_one_process),
		RCD_TEST(another_process_takes_over),
		RCD_TEST(what_is_no_context),
		RCD_TEST(null_region),
		RCD_TEST(moderated_events),
		RCD_TEST(nothing_is_left),
	};

	rig_start(&rig, NULL);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	return rcd_tap_run("import", tests, sizeof(tests) / sizeof(tests[0]));
}
