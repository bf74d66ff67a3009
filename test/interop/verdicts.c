/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Errors of reliable connections, between any two implementations: a queue pair for each case, what
 * the requester's completions say, and in what state the responder's queue pair is afterwards.
 *
 *     verdicts DEVICE GID_INDEX            responder, on TCP port 18600
 *     verdicts DEVICE GID_INDEX ADDRESS    requester; prints a line for each case
 *
 * Against <infiniband/verbs.h> alone: it runs on any libibverbs.
 */
#include "meeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT   18600
#define MEMORY 65536
#define FEW    3 /* receives that case few begins with */

/* A case: what is wrong, by name. */
enum wrong {
	WRONG_KEY,    /* WRITE with a key of nobody */
	WRONG_RANGE,  /* READ beyond the end of the region */
	WRONG_RIGHTS, /* WRITE where only READ is allowed */
	TOO_LONG,     /* SEND longer than the receive */
	NO_RECEIVE,   /* SEND without one, and one retry */
	LATE_RECEIVE, /* SEND before it */
	FEW_RECEIVES, /* more SENDs than receives, which come one by one */
	GONE,         /* the responder's queue pair is reset */
};

static const struct {
	const char *name;
	enum wrong wrong;
} cases[] = {
	{ "badkey", WRONG_KEY },
	{ "badrange", WRONG_RANGE },
	{ "norights", WRONG_RIGHTS },
	{ "toolong", TOO_LONG },
	{ "rnr", NO_RECEIVE },
	{ "late", LATE_RECEIVE },
	{ "few", FEW_RECEIVES },
	{ "gone", GONE },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* What one side tells the other. */
struct told {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t rkey;      /* all rights */
	uint32_t read_rkey; /* of the same memory, to be read only */
	uint32_t state;     /* at the end of a case */
	uint64_t addr;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr, *read_mr;
static struct ibv_qp *qp;
static uint8_t *memory;
static int tcp, gid_index;
static struct told me, peer;

static void
meet(void)
{
	meeting_tell(tcp, &me, &peer, sizeof(me));
}

static void
open_device(const char *name)
{
	context = meeting_device(name);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	if (posix_memalign((void **)&memory, 4096, MEMORY) != 0)
		die("memory");
	mr = ibv_reg_mr(pd, memory, MEMORY,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	read_mr = ibv_reg_mr(pd, memory, MEMORY, IBV_ACCESS_REMOTE_READ);
	if (cq == NULL || mr == NULL || read_mr == NULL ||
		ibv_query_gid(context, 1, gid_index, &me.gid) != 0)
		die("objects");
	me.rkey = mr->rkey;
	me.read_rkey = read_mr->rkey;
	me.addr = (uintptr_t)memory;
}

static void
post_recv(uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)memory, len, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad) != 0)
		die("ibv_post_recv");
}

static void
connect_qp(enum wrong wrong)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

	qp = ibv_create_qp(pd, &init);
	if (qp == NULL ||
		ibv_modify_qp(qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
		die("INIT");
	me.qpn = qp->qp_num;
	meet();
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 14,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = peer.gid,
				.sgid_index = (uint8_t)gid_index,
				.hop_limit = 64 } } };
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0)
		die("RTR");
	/* 3 and 67 ms: who is gone is given up soon. The kernel's rxe takes 7 for without end. */
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 3,
		.rnr_retry = wrong == NO_RECEIVE ? 1 : 7,
		.max_rd_atomic = 1 };
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) != 0)
		die("RTS");
}

static void
disconnect(void)
{
	struct ibv_wc wc;

	ibv_destroy_qp(qp);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		;
}

static const char *
status_name(int status)
{
	switch (status) {
	case -1:
		return "nothing";
	case IBV_WC_SUCCESS:
		return "SUCCESS";
	case IBV_WC_WR_FLUSH_ERR:
		return "WR_FLUSH_ERR";
	case IBV_WC_REM_INV_REQ_ERR:
		return "REM_INV_REQ_ERR";
	case IBV_WC_REM_ACCESS_ERR:
		return "REM_ACCESS_ERR";
	case IBV_WC_REM_OP_ERR:
		return "REM_OP_ERR";
	case IBV_WC_RETRY_EXC_ERR:
		return "RETRY_EXC_ERR";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "RNR_RETRY_EXC_ERR";
	default:
		return ibv_wc_status_str((enum ibv_wc_status)status);
	}
}

static const char *
state_name(uint32_t state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < 7 ? names[state] : "?";
}

static void
post(enum wrong wrong)
{
	struct ibv_sge sge = { (uintptr_t)memory, 2000, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = peer.addr, .rkey = peer.rkey } };
	struct ibv_send_wr *bad;

	if (wrong == WRONG_KEY || wrong == WRONG_RIGHTS)
		wr.opcode = IBV_WR_RDMA_WRITE;
	if (wrong == WRONG_KEY)
		wr.wr.rdma.rkey ^= 0x5500;
	if (wrong == WRONG_RIGHTS)
		wr.wr.rdma.rkey = peer.read_rkey;
	if (wrong == WRONG_RANGE) {
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr += MEMORY - 100;
	}
	if (ibv_post_send(qp, &wr, &bad) != 0)
		die("ibv_post_send");
}

/* @return status of a completion within seconds; -1: there was none */
static int
completion(int seconds)
{
	struct ibv_wc wc;

	for (long i = 0; i < seconds * 1000L; i++) {
		if (ibv_poll_cq(cq, 1, &wc) > 0)
			return (int)wc.status;
		usleep(1000);
	}
	return -1;
}

static void
request(const char *name, enum wrong wrong)
{
	int count = wrong == FEW_RECEIVES ? 2 * FEW : 1;
	int status = IBV_WC_SUCCESS, next = -1;

	connect_qp(wrong);
	meet();
	for (int i = 0; i < count; i++)
		post(wrong);
	for (int i = 0; i < count && status == IBV_WC_SUCCESS; i++)
		status = completion(20);
	/* What is posted to a queue pair in ERR comes back. */
	if (status != IBV_WC_SUCCESS) {
		post(wrong);
		next = completion(5);
	}
	meet();
	meet();
	printf("case %s: requester %s then %s, responder %s\n", name, status_name(status),
		status_name(next), state_name(peer.state));
	fflush(stdout);
	disconnect();
}

static void
respond(enum wrong wrong)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_init_attr init;

	connect_qp(wrong);
	if (wrong == TOO_LONG)
		post_recv(1000);
	for (int i = 0; wrong == FEW_RECEIVES && i < FEW; i++)
		post_recv(4096);
	if (wrong == GONE && ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0)
		die("RESET");
	meet();
	for (int i = 0; i < (wrong == FEW_RECEIVES ? FEW : wrong == LATE_RECEIVE ? 1 : 0); i++) {
		usleep(50000);
		post_recv(4096);
	}
	meet();
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		die("ibv_query_qp");
	me.state = attr.qp_state;
	meet();
	disconnect();
}

int
main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	gid_index = (int)strtol(argv[2], NULL, 10);
	open_device(argv[1]);
	tcp = meeting_open(argc > 3 ? argv[3] : NULL, PORT);
	for (size_t i = 0; i < CASES; i++) {
		if (argc > 3)
			request(cases[i].name, cases[i].wrong);
		else
			respond(cases[i].wrong);
	}
	return 0;
}
