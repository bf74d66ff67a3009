/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * FLUSH and ATOMIC WRITE between any two implementations: a queue pair for each case, what the
 * requester's completions say, and what the responder then finds in its memory.
 *
 *     placement DEVICE GID_INDEX            responder, on TCP port 18600
 *     placement DEVICE GID_INDEX ADDRESS    requester; prints a line for each case
 *
 * Against <infiniband/verbs.h> alone: it runs on any libibverbs. One whose provider knows no FLUSH
 * may still have a kernel below it that does, as rxe's of Debian 12: there an ATOMIC WRITE is made
 * one in the queue, which the kernel's rdma_user_rxe.h describes, before it is posted.
 */
#include "meeting.h"

#include <inttypes.h>
#include <rdma/rdma_user_rxe.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT   18600
#define MEMORY 65536
#define WORD   32768 /* offset of what an ATOMIC WRITE writes */
#define MANY   12    /* FLUSHes at once: no more than the responder agrees to */
#define LEN    5000

/* Numbers of rdma-core and the kernel, which older headers have no names for. */
enum {
	GLOBAL = 1 << 0,
	PERSISTENT = 1 << 1,
	RANGE = 0,
	REGION = 1,
	ACCESS_FLUSH_GLOBAL = 1 << 8,
	ACCESS_FLUSH_PERSISTENT = 1 << 9,
	WITH_FLUSH = 1 << 11,
	WR_FLUSH = 14,
	WR_ATOMIC_WRITE = 15,
};

enum what {
	LOG,   /* WRITE, FLUSH of it, ATOMIC WRITE: all in one chain */
	WHOLE, /* FLUSH of the region, whatever the range */
	MANY_AT_ONCE,
	FLUSH_KEY,    /* FLUSH with a key of nobody */
	FLUSH_RANGE,  /* FLUSH beyond the end */
	FLUSH_RIGHTS, /* FLUSH where there is no right to */
	FLUSH_KEPT,   /* FLUSH to memory that outlives a loss of power, which is none */
	WRITE_KEY,    /* ATOMIC WRITE with a key of nobody */
	WRITE_RIGHTS, /* ATOMIC WRITE where only READ is allowed */
};

static const struct {
	const char *name;
	enum what what;
} cases[] = {
	{ "log", LOG },
	{ "whole", WHOLE },
	{ "many", MANY_AT_ONCE },
	{ "flushkey", FLUSH_KEY },
	{ "flushrange", FLUSH_RANGE },
	{ "flushrights", FLUSH_RIGHTS },
	{ "persistent", FLUSH_KEPT },
	{ "writekey", WRITE_KEY },
	{ "writerights", WRITE_RIGHTS },
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* What one side tells the other. */
struct told {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t rkey;      /* all rights */
	uint32_t read_rkey; /* of the same memory, to be read only */
	uint32_t right;     /* what was to be there is */
	uint64_t addr;
};

/* As headers have it that know FLUSH: its function comes last. */
struct newer_qp_ex {
	struct ibv_qp base;
	uint64_t comp_mask;
	uint64_t wr_id;
	unsigned int wr_flags;
	void (*functions[21])(void);
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t va, size_t len,
		uint8_t placement, uint8_t selectivity);
};

/* As the kernel has it that knows FLUSH: in the place of the others' addresses. */
struct rxe_flush {
	uint64_t va;
	uint32_t len;
	uint32_t rkey;
	uint8_t placement;
	uint8_t selectivity;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr, *read_mr;
static struct ibv_qp *qp;
static struct ibv_qp_ex *qp_ex;
static bool has_flush;
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
	cq = ibv_create_cq(context, 256, NULL, NULL, 0);
	if (posix_memalign((void **)&memory, 4096, MEMORY) != 0)
		die("memory");
	mr = ibv_reg_mr(pd, memory, MEMORY,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			ACCESS_FLUSH_GLOBAL);
	read_mr = ibv_reg_mr(pd, memory, MEMORY, IBV_ACCESS_REMOTE_READ);
	if (cq == NULL || mr == NULL || read_mr == NULL ||
		ibv_query_gid(context, 1, gid_index, &me.gid) != 0)
		die("objects");
	me.rkey = mr->rkey;
	me.read_rkey = read_mr->rkey;
	me.addr = (uintptr_t)memory;
}

static void
create_qp(void)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 128,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags =
			IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_ATOMIC_WRITE | WITH_FLUSH };

	qp = ibv_create_qp_ex(context, &init);
	has_flush = qp != NULL;
	init.send_ops_flags &= ~(uint64_t)WITH_FLUSH;
	if (qp == NULL)
		qp = ibv_create_qp_ex(context, &init);
	if (qp == NULL)
		die("ibv_create_qp_ex");
	qp_ex = ibv_qp_to_qp_ex(qp);
}

static void
connect_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT };

	create_qp();
	if (ibv_modify_qp(qp, &attr,
		    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) != 0)
		die("INIT");
	me.qpn = qp->qp_num;
	meet();
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.max_dest_rd_atomic = 16,
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
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16 };
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

/* The request with this number in one of the queues that the kernel shares. */
static struct rxe_send_wqe *
find_in_queues(uint64_t wr_id)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct rxe_send_wqe *found = NULL;
	char line[512];

	while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
		uintptr_t start, end;

		if (strstr(line, "/dev/infiniband/uverbs") == NULL ||
			sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2)
			continue;
		for (; start + sizeof(*found) < end; start += 8) {
			struct rxe_send_wqe *wqe = (struct rxe_send_wqe *)start;

			if (wqe->wr.wr_id == wr_id && wqe->wr.opcode == WR_ATOMIC_WRITE)
				found = wqe;
		}
	}
	if (maps != NULL)
		fclose(maps);
	return found;
}

static void
post_flush(uint32_t rkey, uint64_t va, uint32_t len, uint8_t placement, uint8_t selectivity)
{
	static uint64_t number = UINT64_C(0x666c7573680000);
	struct rxe_flush flush = { va, len, rkey, placement, selectivity };
	struct rxe_send_wqe *wqe;
	uint64_t nothing = 0;

	qp_ex->wr_id = ++number;
	if (has_flush) {
		((struct newer_qp_ex *)(void *)qp_ex)
			->wr_flush(qp_ex, rkey, va, len, placement, selectivity);
		return;
	}
	ibv_wr_atomic_write(qp_ex, rkey, va, &nothing);
	wqe = find_in_queues(number);
	if (wqe == NULL)
		die("no ATOMIC WRITE in the queue");
	wqe->wr.opcode = WR_FLUSH;
	memcpy(&wqe->wr.wr, &flush, sizeof(flush));
	wqe->dma.length = wqe->dma.resid = len;
	wqe->dma.num_sge = 0;
}

static void
post_atomic_write(uint32_t rkey)
{
	uint64_t word;

	memset(&word, 'W', sizeof(word));
	ibv_wr_atomic_write(qp_ex, rkey, peer.addr + WORD, &word);
}

/* @return how many completions come */
static int
post(enum what what)
{
	int count = 1;

	ibv_wr_start(qp_ex);
	qp_ex->wr_flags = IBV_SEND_SIGNALED;
	switch (what) {
	case LOG:
		ibv_wr_rdma_write(qp_ex, peer.rkey, peer.addr);
		ibv_wr_set_sge(qp_ex, mr->lkey, (uintptr_t)memory, LEN);
		post_flush(peer.rkey, peer.addr, LEN, GLOBAL, RANGE);
		post_atomic_write(peer.rkey);
		count = 3;
		break;
	case WHOLE:
		post_flush(peer.rkey, 0, 0, GLOBAL, REGION);
		break;
	case MANY_AT_ONCE:
		for (count = 0; count < MANY; count++)
			post_flush(peer.rkey, peer.addr, LEN, GLOBAL, RANGE);
		break;
	case FLUSH_KEY:
		post_flush(peer.rkey ^ 0x5500, peer.addr, LEN, GLOBAL, RANGE);
		break;
	case FLUSH_RANGE:
		post_flush(peer.rkey, peer.addr + 1, MEMORY, GLOBAL, RANGE);
		break;
	case FLUSH_RIGHTS:
		post_flush(peer.read_rkey, peer.addr, LEN, GLOBAL, RANGE);
		break;
	case FLUSH_KEPT:
		post_flush(peer.rkey, peer.addr, LEN, PERSISTENT, RANGE);
		break;
	case WRITE_KEY:
		post_atomic_write(peer.rkey ^ 0x5500);
		break;
	case WRITE_RIGHTS:
		post_atomic_write(peer.read_rkey);
		break;
	}
	if (ibv_wr_complete(qp_ex) != 0)
		die("ibv_wr_complete");
	return count;
}

/* @return the first status that is not success within seconds, and the number of completions */
static const char *
completions(int count, int *got)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	*got = 0;
	for (long i = 0; i < 20 * 1000L && *got < count; i++) {
		if (ibv_poll_cq(cq, 1, &wc) <= 0) {
			usleep(1000);
			continue;
		}
		++*got;
		if (wc.status != IBV_WC_SUCCESS)
			return ibv_wc_status_str(wc.status);
	}
	return *got == count ? "success" : "nothing";
}

static void
request(const char *name, enum what what)
{
	const char *status;
	int got;

	connect_qp();
	memset(memory, 'D', LEN);
	meet();
	status = completions(post(what), &got);
	meet();
	meet();
	printf("case %s: %s, %d, responder's memory is %s%s\n", name, status, got,
		peer.right ? "right" : "wrong", has_flush ? "" : " (no FLUSH in this provider)");
	fflush(stdout);
	disconnect();
}

/* All but the first case leave the memory as it was. */
static bool
is_right(enum what what)
{
	bool right = true;

	for (uint32_t i = 0; i < MEMORY; i++) {
		uint8_t expected = what == LOG && i < LEN ? 'D' : 0;

		if (what == LOG && i >= WORD && i < WORD + 8)
			expected = 'W';
		right &= memory[i] == expected;
	}
	return right;
}

static void
respond(enum what what)
{
	connect_qp();
	memset(memory, 0, MEMORY);
	meet();
	meet();
	me.right = is_right(what);
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
			request(cases[i].name, cases[i].what);
		else
			respond(cases[i].what);
	}
	return 0;
}
