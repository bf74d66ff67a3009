/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A first program with RDMA CM and verbs. The client announces a string; the server hands out a
 * buffer of its length; the client writes the string there, reads it back into another buffer, and
 * compares. The server's processor takes no part in either transfer.
 *
 *   rdma-copy [-a ADDRESS] [-p PORT]          serve one client
 *   rdma-copy -t TEXT -a ADDRESS [-p PORT]    be the client
 *
 * Exit status: 0 when the buffers are alike.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT       "20886"
#define TIMEOUT_MS 2000
#define LEN_MAX    (1u << 20)
#define DEPTH      8

/** What each side tells the other of a buffer of its own; big endian. */
struct buffer_info {
	uint64_t addr;
	uint32_t len;
	uint32_t rkey;
};

/** One side. */
struct side {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /**< of the server */
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct buffer_info ours, theirs;
	struct ibv_mr *ours_mr, *theirs_mr;
	char *source, *target; /**< of the server: target alone */
	struct ibv_mr *source_mr, *target_mr;
};

static int
fail(const char *what)
{
	fprintf(stderr, "rdma-copy: %s: %s\n", what, strerror(errno));
	return -1;
}

/* Wait for an event of this kind. @param id  set to whom it is about, unless NULL */
static int
expect(struct side *side, enum rdma_cm_event_type type, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	int err = 0;

	if (rdma_get_cm_event(side->channel, &event) != 0)
		return fail("rdma_get_cm_event");
	if (event->event != type || event->status != 0) {
		fprintf(stderr, "rdma-copy: %s, status %d, instead of %s\n",
			rdma_event_str(event->event), event->status, rdma_event_str(type));
		err = -1;
	} else if (id != NULL) {
		*id = event->id;
	}
	rdma_ack_cm_event(event);
	return err;
}

/* Queues, and a receive for what the other side tells first. */
static int
prepare(struct side *side)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1 },
	};
	struct ibv_sge sge = { .length = sizeof(side->theirs) };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	side->pd = ibv_alloc_pd(side->id->verbs);
	side->completions = ibv_create_comp_channel(side->id->verbs);
	if (side->pd == NULL || side->completions == NULL)
		return fail("protection domain and completion channel");
	side->cq = ibv_create_cq(side->id->verbs, 2 * DEPTH, NULL, side->completions, 0);
	if (side->cq == NULL || ibv_req_notify_cq(side->cq, 0) != 0)
		return fail("completion queue");
	attr.send_cq = attr.recv_cq = side->cq;
	if (rdma_create_qp(side->id, side->pd, &attr) != 0)
		return fail("rdma_create_qp");
	side->theirs_mr =
		ibv_reg_mr(side->pd, &side->theirs, sizeof(side->theirs), IBV_ACCESS_LOCAL_WRITE);
	side->ours_mr = ibv_reg_mr(side->pd, &side->ours, sizeof(side->ours), 0);
	if (side->theirs_mr == NULL || side->ours_mr == NULL)
		return fail("ibv_reg_mr");
	sge.addr = (uintptr_t)&side->theirs;
	sge.lkey = side->theirs_mr->lkey;
	errno = ibv_post_recv(side->id->qp, &wr, &bad);
	return errno != 0 ? fail("ibv_post_recv") : 0;
}

/* Wait for this many completions, all of them successes. */
static int
complete(struct side *side, int count)
{
	while (count > 0) {
		struct ibv_cq *cq;
		void *context;
		struct ibv_wc wc;
		int got = ibv_poll_cq(side->cq, 1, &wc);

		if (got < 0)
			return fail("ibv_poll_cq");
		if (got > 0 && wc.status != IBV_WC_SUCCESS) {
			fprintf(stderr, "rdma-copy: %s\n", ibv_wc_status_str(wc.status));
			return -1;
		}
		count -= got;
		if (got > 0)
			continue;
		/* Nothing: sleep until there is, and ask for the next event before looking. */
		if (ibv_get_cq_event(side->completions, &cq, &context) != 0)
			return fail("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0) != 0)
			return fail("ibv_req_notify_cq");
	}
	return 0;
}

/* Tell the other side of a buffer. */
static int
tell(struct side *side, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)&side->ours,
		.length = sizeof(side->ours),
		.lkey = side->ours_mr->lkey,
	};
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	side->ours.addr = htobe64((uintptr_t)mr->addr);
	side->ours.len = htobe32((uint32_t)mr->length);
	side->ours.rkey = htobe32(mr->rkey);
	errno = ibv_post_send(side->id->qp, &wr, &bad);
	return errno != 0 ? fail("ibv_post_send") : 0;
}

/* Transfer all of a buffer of ours to or from theirs. */
static int
transfer(struct side *side, enum ibv_wr_opcode opcode, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr, .length = (uint32_t)mr->length, .lkey = mr->lkey
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = be64toh(side->theirs.addr),
			.rkey = be32toh(side->theirs.rkey) },
	};
	struct ibv_send_wr *bad;

	errno = ibv_post_send(side->id->qp, &wr, &bad);
	if (errno != 0)
		return fail("ibv_post_send");
	return complete(side, 1);
}

static void
finish(struct side *side)
{
	struct ibv_mr *mrs[] = { side->ours_mr, side->theirs_mr, side->source_mr, side->target_mr };

	if (side->id != NULL && side->id->qp != NULL)
		rdma_destroy_qp(side->id);
	for (size_t i = 0; i < sizeof(mrs) / sizeof(mrs[0]); i++)
		if (mrs[i] != NULL)
			ibv_dereg_mr(mrs[i]);
	if (side->cq != NULL)
		ibv_destroy_cq(side->cq);
	if (side->completions != NULL)
		ibv_destroy_comp_channel(side->completions);
	if (side->pd != NULL)
		ibv_dealloc_pd(side->pd);
	if (side->id != NULL)
		rdma_destroy_id(side->id);
	if (side->listener != NULL)
		rdma_destroy_id(side->listener);
	if (side->channel != NULL)
		rdma_destroy_event_channel(side->channel);
	free(side->source);
	free(side->target);
}

/* The server hands out a buffer of the length that the client announces. */
static int
hand_out(struct side *side)
{
	uint32_t len;

	if (complete(side, 1) != 0)
		return -1;
	len = be32toh(side->theirs.len);
	if (len == 0 || len > LEN_MAX) {
		fprintf(stderr, "rdma-copy: the client announces %u bytes\n", len);
		return -1;
	}
	side->target = calloc(1, len);
	if (side->target == NULL)
		return fail("calloc");
	side->target_mr = ibv_reg_mr(side->pd, side->target, len,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	if (side->target_mr == NULL)
		return fail("ibv_reg_mr");
	if (tell(side, side->target_mr) != 0)
		return -1;
	return complete(side, 1);
}

static int
serve(struct side *side, struct sockaddr *addr)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7
	};

	if (rdma_create_id(side->channel, &side->listener, NULL, RDMA_PS_TCP) != 0 ||
		rdma_bind_addr(side->listener, addr) != 0 || rdma_listen(side->listener, 8) != 0)
		return fail("listen");
	printf("listening on port %u\n", be16toh(rdma_get_src_port(side->listener)));
	fflush(stdout);
	if (expect(side, RDMA_CM_EVENT_CONNECT_REQUEST, &side->id) != 0 || prepare(side) != 0)
		return -1;
	if (rdma_accept(side->id, &param) != 0)
		return fail("rdma_accept");
	if (expect(side, RDMA_CM_EVENT_ESTABLISHED, NULL) != 0 || hand_out(side) != 0)
		return -1;
	if (expect(side, RDMA_CM_EVENT_DISCONNECTED, NULL) != 0)
		return -1;
	rdma_disconnect(side->id);
	/* Written by the client, without a word to this program. */
	printf("received: %.*s\n", (int)be32toh(side->theirs.len), side->target);
	return 0;
}

static int
announce(struct side *side, const char *text)
{
	size_t len = strlen(text);

	side->source = strdup(text);
	side->target = calloc(1, len);
	if (side->source == NULL || side->target == NULL)
		return fail("malloc");
	side->source_mr = ibv_reg_mr(side->pd, side->source, len, IBV_ACCESS_LOCAL_WRITE);
	side->target_mr = ibv_reg_mr(side->pd, side->target, len, IBV_ACCESS_LOCAL_WRITE);
	if (side->source_mr == NULL || side->target_mr == NULL)
		return fail("ibv_reg_mr");
	if (tell(side, side->source_mr) != 0)
		return -1;
	/* Ours is sent, theirs has come. */
	return complete(side, 2);
}

static int
be_client(struct side *side, struct sockaddr *addr, const char *text)
{
	struct rdma_conn_param param = { .responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7 };

	if (rdma_create_id(side->channel, &side->id, NULL, RDMA_PS_TCP) != 0)
		return fail("rdma_create_id");
	if (rdma_resolve_addr(side->id, NULL, addr, TIMEOUT_MS) != 0)
		return fail("rdma_resolve_addr");
	if (expect(side, RDMA_CM_EVENT_ADDR_RESOLVED, NULL) != 0)
		return -1;
	if (rdma_resolve_route(side->id, TIMEOUT_MS) != 0)
		return fail("rdma_resolve_route");
	if (expect(side, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) != 0 || prepare(side) != 0)
		return -1;
	if (rdma_connect(side->id, &param) != 0)
		return fail("rdma_connect");
	if (expect(side, RDMA_CM_EVENT_ESTABLISHED, NULL) != 0 || announce(side, text) != 0)
		return -1;
	if (transfer(side, IBV_WR_RDMA_WRITE, side->source_mr) != 0 ||
		transfer(side, IBV_WR_RDMA_READ, side->target_mr) != 0)
		return -1;
	if (rdma_disconnect(side->id) != 0)
		return fail("rdma_disconnect");
	if (expect(side, RDMA_CM_EVENT_DISCONNECTED, NULL) != 0)
		return -1;
	if (memcmp(side->source, side->target, strlen(text)) != 0) {
		fprintf(stderr, "rdma-copy: the buffers differ\n");
		return -1;
	}
	printf("the buffers are alike\n");
	return 0;
}

static int
usage(void)
{
	fprintf(stderr, "usage: rdma-copy [-a ADDRESS] [-p PORT] [-t TEXT]\n");
	return 2;
}

int
main(int argc, char **argv)
{
	const char *address = NULL, *port = PORT, *text = NULL;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct side side = { .channel = NULL };
	struct addrinfo *res;
	int opt, err;

	while ((opt = getopt(argc, argv, "a:p:t:")) != -1) {
		if (opt == 'a')
			address = optarg;
		else if (opt == 'p')
			port = optarg;
		else if (opt == 't')
			text = optarg;
		else
			return usage();
	}
	if (optind < argc || (text != NULL && (address == NULL || text[0] == '\0')))
		return usage();
	/* Any address is one of IPv6, which takes IPv4 too. */
	if (address == NULL)
		hints.ai_family = AF_INET6;
	err = getaddrinfo(address, port, &hints, &res);
	if (err != 0) {
		fprintf(stderr, "rdma-copy: %s: %s\n", address, gai_strerror(err));
		return 1;
	}
	side.channel = rdma_create_event_channel();
	if (side.channel == NULL)
		err = fail("rdma_create_event_channel");
	else if (text != NULL)
		err = be_client(&side, res->ai_addr, text);
	else
		err = serve(&side, res->ai_addr);
	finish(&side);
	freeaddrinfo(res);
	return err == 0 ? 0 : 1;
}
