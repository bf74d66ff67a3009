/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Messages of an unreliable service through a network that loses packets, between any two
 * implementations: how many arrive, and whether any of them is not what was sent.
 *
 *     losses DEVICE GID_INDEX uc|ud COUNT            receives, on TCP port 18601
 *     losses DEVICE GID_INDEX uc|ud COUNT ADDRESS    sends
 *
 * A message is its number, and bytes that follow from that. Of UC every fourth has three packets:
 * all of it arrives or nothing. Against <infiniband/verbs.h> alone: it runs on any libibverbs.
 */
#include "meeting.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT     18601
#define MESSAGES 2000
#define SLOT     4096
#define GRH      40
#define SHORT    1000
#define LONG     3000
#define WINDOW   16
#define QKEY     0x11111111

/* What one side tells the other. */
struct told {
	union ibv_gid gid;
	uint32_t qpn;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct ibv_ah *ah;
static uint8_t *memory;
static uint8_t seen[MESSAGES];
static struct told me, peer;
static int tcp, gid_index;
static bool datagrams;
static uint32_t count;

static void
meet(void)
{
	meeting_tell(tcp, &me, &peer, sizeof(me));
}

static uint32_t
length(uint32_t number)
{
	return !datagrams && number % 4 == 3 ? LONG : SHORT;
}

static uint8_t
content(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7);
}

static void
make(const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_UC,
		.cap = { .max_send_wr = WINDOW,
			.max_recv_wr = MESSAGES,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	context = meeting_device(device);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, MESSAGES + WINDOW, NULL, NULL, 0);
	if (posix_memalign((void **)&memory, 4096, (size_t)MESSAGES * SLOT) != 0)
		die("memory");
	mr = ibv_reg_mr(pd, memory, (size_t)MESSAGES * SLOT, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = cq;
	if (mr != NULL && cq != NULL)
		qp = ibv_create_qp(pd, &init);
	if (qp == NULL || ibv_query_gid(context, 1, gid_index, &me.gid) != 0)
		die("objects");
	if (ibv_modify_qp(qp, &attr,
		    (int)(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT) |
			    (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)) != 0)
		die("INIT");
	me.qpn = qp->qp_num;
}

static void
connect_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = peer.gid,
				.sgid_index = (uint8_t)gid_index,
				.hop_limit = 64 } } };
	int mask = datagrams ? IBV_QP_STATE
			     : (int)(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN);

	if (ibv_modify_qp(qp, &attr, mask) != 0)
		die("RTR");
	if (datagrams) {
		ah = ibv_create_ah(pd, &attr.ah_attr);
		if (ah == NULL)
			die("ibv_create_ah");
	}
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0)
		die("RTS");
}

static void
post_recv(uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)memory + (uint64_t)slot * SLOT, SLOT, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(qp, &wr, &bad) != 0)
		die("ibv_post_recv");
}

static void
post_send(uint32_t number)
{
	uint8_t *at = memory + (size_t)(number % WINDOW) * SLOT;
	struct ibv_sge sge = { (uintptr_t)at, length(number), mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (datagrams) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	}
	memcpy(at, &number, sizeof(number));
	for (uint32_t i = sizeof(number); i < sge.length; i++)
		at[i] = content(number, i);
	if (ibv_post_send(qp, &wr, &bad) != 0)
		die("ibv_post_send");
}

/* @return whether a completion came in time */
static bool
completion(struct ibv_wc *wc, int seconds)
{
	for (int i = 0; i < seconds * 2000; i++) {
		if (ibv_poll_cq(cq, 1, wc) > 0) {
			if (wc->status != IBV_WC_SUCCESS)
				die(ibv_wc_status_str(wc->status));
			return true;
		}
		usleep(500);
	}
	return false;
}

static void
send_all(void)
{
	struct ibv_wc wc;
	uint32_t done = 0;

	for (uint32_t number = 0; done < count;) {
		while (number < count && number - done < WINDOW)
			post_send(number++);
		if (!completion(&wc, 30))
			die("a send does not complete");
		/* A receiver that is emulated loses none of its own. */
		if (++done % 4 == 0)
			usleep(5000);
	}
	printf("sent %u\n", done);
}

/* @return whether a message is as it was sent */
static bool
whole(const uint8_t *at, uint32_t len, uint32_t *number)
{
	if (len < sizeof(*number))
		return false;
	memcpy(number, at, sizeof(*number));
	if (*number >= count || len != length(*number))
		return false;
	for (uint32_t i = sizeof(*number); i < len; i++)
		if (at[i] != content(*number, i))
			return false;
	return true;
}

/* What is there when all was sent, and nothing came for a while. */
static void
receive_all(void)
{
	uint32_t received = 0, damaged = 0, twice = 0, long_ones = 0, number;
	uint32_t grh = datagrams ? GRH : 0;
	struct ibv_wc wc;

	while (completion(&wc, 3)) {
		received++;
		if (!whole(memory + wc.wr_id * SLOT + grh, wc.byte_len - grh, &number)) {
			damaged++;
			continue;
		}
		twice += seen[number];
		seen[number] = 1;
		long_ones += length(number) == LONG;
	}
	printf("received %u damaged %u twice %u long %u\n", received, damaged, twice, long_ones);
}

int
main(int argc, char **argv)
{
	if (argc < 5)
		return 2;
	gid_index = (int)strtol(argv[2], NULL, 10);
	datagrams = strcmp(argv[3], "ud") == 0;
	count = (uint32_t)strtoul(argv[4], NULL, 10);
	if (count > MESSAGES)
		return 2;
	make(argv[1]);
	tcp = meeting_open(argc > 5 ? argv[5] : NULL, PORT);
	meet();
	connect_qp();
	if (argc > 5) {
		meet();
		send_all();
		meet();
	} else {
		for (uint32_t i = 0; i < count; i++)
			post_recv(i);
		meet();
		meet();
		receive_all();
	}
	return 0;
}
