/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connections of XRC by librdmacm, several of them to one shared receive queue. Public headers
 * alone.
 *
 *   cm_xrc serve ADDRESS     listen there
 *   cm_xrc connect ADDRESS   send, write and read, by each connection
 *
 * Exit status: 0; 1 at the first thing that is not as it should be, which is named.
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition,                 \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CONNECTIONS      3
#define LEN              5000
#define PORT             "7474"
#define REASON_TRANSPORT 9

/** What a server tells of its queue, and of its memory behind what is received. */
struct told {
	uint32_t srqn;
	uint32_t rkey;
	uint64_t at;
};

static uint8_t *memory;

static void
fill(uint8_t *at, uint8_t seed)
{
	for (uint32_t i = 0; i < LEN; i++)
		at[i] = (uint8_t)(seed + i * 7);
}

static int
is_filled(const uint8_t *at, uint8_t seed)
{
	for (uint32_t i = 0; i < LEN; i++)
		if (at[i] != (uint8_t)(seed + i * 7))
			return 0;
	return 1;
}

static struct rdma_cm_id *
endpoint(const char *address, int flags, int type, uint32_t sends)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags | RAI_NUMERICHOST, .ai_port_space = RDMA_PS_IB, .ai_qp_type = type
	};
	struct ibv_qp_init_attr attr = { .cap = { .max_send_wr = sends, .max_send_sge = 1 },
		.sq_sig_all = 1 };
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	MUST(rdma_getaddrinfo(address, PORT, &hints, &res) == 0);
	MUST(rdma_create_ep(&id, res, NULL, &attr) == 0);
	rdma_freeaddrinfo(res);
	return id;
}

static struct ibv_mr *
register_all(struct rdma_cm_id *id)
{
	struct ibv_mr *mr = ibv_reg_mr(id->pd, memory, (size_t)(CONNECTIONS + 1) * LEN,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

	MUST(mr != NULL);
	return mr;
}

static void
serve(const char *address)
{
	struct rdma_cm_id *listener = endpoint(address, RAI_PASSIVE, IBV_QPT_XRC_RECV, 0);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = CONNECTIONS, .max_sge = 1 } };
	struct rdma_conn_param param = { .responder_resources = 1,
		.private_data_len = sizeof(struct told) };
	struct rdma_cm_id *ids[CONNECTIONS];
	struct ibv_mr *mr = NULL;
	struct told told;
	struct ibv_wc wc;

	MUST(rdma_listen(listener, 0) == 0);
	for (uintptr_t i = 0; i < CONNECTIONS; i++) {
		MUST(rdma_get_request(listener, &ids[i]) == 0);
		MUST(ids[i]->qp != NULL && ids[i]->qp->qp_type == IBV_QPT_XRC_RECV);
		if (i == 0) {
			MUST(rdma_create_srq(ids[0], NULL, &init) == 0);
			MUST(ibv_get_srq_num(ids[0]->srq, &told.srqn) == 0);
			mr = register_all(ids[0]);
			told.rkey = mr->rkey;
			told.at = (uintptr_t)memory + (uint64_t)CONNECTIONS * LEN;
			param.private_data = &told;
		}
		MUST(rdma_post_recv(ids[0], (void *)i, memory + i * LEN, LEN, mr) == 0);
		MUST(rdma_accept(ids[i], &param) == 0);
		MUST(rdma_get_recv_comp(ids[0], &wc) == 1);
		MUST(wc.status == IBV_WC_SUCCESS && wc.wr_id == i && wc.byte_len == LEN);
		MUST(wc.qp_num == ids[i]->qp->qp_num);
		MUST(is_filled(memory + i * LEN, (uint8_t)i));
	}
	for (int i = 0; i < CONNECTIONS; i++)
		MUST(rdma_disconnect(ids[i]) == 0);
	MUST(ibv_dereg_mr(mr) == 0);
	/* The one that has the queue goes first: the others are targets, which have none. */
	for (int i = 0; i < CONNECTIONS; i++)
		rdma_destroy_ep(ids[i]);
	rdma_destroy_ep(listener);
}

static void
operate(struct rdma_cm_id *id, const struct ibv_mr *mr, const struct told *told,
	enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)memory, LEN, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = told->at, .rkey = told->rkey },
		.qp_type.xrc.remote_srqn = told->srqn };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	MUST(ibv_post_send(id->qp, &wr, &bad) == 0);
	MUST(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

static void
connect_to(const char *address)
{
	struct rdma_cm_id *ids[CONNECTIONS];
	struct rdma_cm_id *other = endpoint(address, 0, IBV_QPT_RC, 1);
	struct told told;

	/* Who listens for XRC connects nobody else. */
	MUST(rdma_connect(other, NULL) == -1 && errno == ECONNREFUSED);
	MUST(other->event->status == REASON_TRANSPORT);
	rdma_destroy_ep(other);
	for (int i = 0; i < CONNECTIONS; i++) {
		struct ibv_mr *mr;

		ids[i] = endpoint(address, 0, IBV_QPT_XRC_SEND, 2);
		mr = register_all(ids[i]);
		MUST(rdma_connect(ids[i], NULL) == 0);
		MUST(ids[i]->event->param.conn.private_data_len >= sizeof(told));
		memcpy(&told, ids[i]->event->param.conn.private_data, sizeof(told));
		fill(memory, (uint8_t)(100 + i));
		operate(ids[i], mr, &told, IBV_WR_RDMA_WRITE);
		memset(memory, 0, LEN);
		operate(ids[i], mr, &told, IBV_WR_RDMA_READ);
		MUST(is_filled(memory, (uint8_t)(100 + i)));
		fill(memory, (uint8_t)i);
		operate(ids[i], mr, &told, IBV_WR_SEND);
		MUST(ibv_dereg_mr(mr) == 0);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		MUST(rdma_disconnect(ids[i]) == 0);
		rdma_destroy_ep(ids[i]);
	}
}

int
main(int argc, char **argv)
{
	memory = calloc(CONNECTIONS + 1, LEN);
	MUST(memory != NULL);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(argv[2]);
	else if (argc == 3 && strcmp(argv[1], "connect") == 0)
		connect_to(argv[2]);
	else
		return 2;
	free(memory);
	return 0;
}
