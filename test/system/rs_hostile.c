/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An rsocket and a peer that breaks the rules, which is written by hand with librdmacm's
 * identifiers: what it says of itself, lengths, credits, entries and addresses are wrong, one at a
 * time. The socket must lose that connection with an error, and take the next. By the same hand:
 * what a socket that keeps its connection alive sends. Public headers alone.
 *
 *   rs_hostile ADDRESS OTHER   two addresses of the engine's devices, the second reached from the
 *                              first
 *
 * Exit status: 0; 1 at the first case that goes another way, which is named.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rs_must.h"

#define PORT 7471
#define SEND ((uint32_t)-1) /**< instead of a message: a SEND that has none */

struct sge {
	uint64_t addr;
	uint32_t key;
	uint32_t len;
};

struct hello {
	uint8_t version, flags;
	uint16_t credits;
	uint8_t reserved[3];
	uint8_t iomaps;
	struct sge list, half;
};

/** What the socket does once it is connected. */
enum victim {
	RECEIVES,
	SENDS,
	WRITES, /**< to a mapping */
};

/** Messages, in order, each with so many bytes into the list or the table; and the end of it. */
struct hostile {
	const char *name;
	enum victim victim;
	int error; /**< 0: all is well */
	struct {
		uint32_t message;
		uint32_t len;
		uint32_t at; /**< in the memory that has list and table */
	} says[3];
	struct sge entry; /**< what is written there */
	struct sge half;  /**< of the hello, where it matters; in host order */
};

#define HALF       (1u << 16) /**< of a ring as it is by default */
#define MESSAGE(k) ((uint32_t)(k) << 29)
#define DATA       MESSAGE(0)
#define CREDIT     MESSAGE(4)
#define IOMAP      MESSAGE(6)
#define CONTROL    MESSAGE(7)
#define TABLE      32
#define WILD                                                                                       \
	{                                                                                          \
		.addr = UINT64_MAX - 7, .key = 0x12345678, .len = UINT32_MAX                       \
	}

static const struct hostile cases[] = {
	{ "goes away", RECEIVES, 0, { { CONTROL } }, { 0 }, { 0 } },
	{ "announces too much", RECEIVES, EPROTO, { { DATA | (2 * HALF + 1) } }, { 0 }, { 0 } },
	{ "announces the most", RECEIVES, EPROTO, { { DATA | 0x1fffffff } }, { 0 }, { 0 } },
	{ "says 1", RECEIVES, EPROTO, { { MESSAGE(1) | 1 } }, { 0 }, { 0 } },
	{ "says 2", RECEIVES, EPROTO, { { MESSAGE(2) | 1 } }, { 0 }, { 0 } },
	{ "says 3", RECEIVES, EPROTO, { { MESSAGE(3) | 1 } }, { 0 }, { 0 } },
	{ "says 5", RECEIVES, EPROTO, { { MESSAGE(5) | 1 } }, { 0 }, { 0 } },
	{ "controls what is not", RECEIVES, EPROTO, { { CONTROL | 99 } }, { 0 }, { 0 } },
	{ "goes wrong after a byte", RECEIVES, EPROTO, { { DATA | 1 }, { MESSAGE(1) | 1 } }, { 0 },
		{ 0 } },
	{ "sends", RECEIVES, EPROTO, { { SEND } }, { 0 }, { 0 } },
	{ "takes back a half", RECEIVES, EPROTO, { { CREDIT | 9, 16, 16 }, { CREDIT | 9, 16, 0 } },
		WILD, { .len = 1 } },
	{ "maps outside", RECEIVES, EPROTO, { { IOMAP | 4, 24, TABLE } }, WILD, { 0 } },
	{ "maps far outside", RECEIVES, EPROTO, { { IOMAP | 0x1fffffff, 24, TABLE } }, WILD,
		{ 0 } },
	{ "writes elsewhere", RECEIVES, ECONNRESET, { { CREDIT, 16, 1u << 20 } }, WILD, { 0 } },
	{ "grants what is not", SENDS, ECONNRESET, { { CREDIT | 9 } }, WILD, WILD },
	{ "grants what is not, later", SENDS, ECONNRESET, { { CREDIT | 9, 16, 16 } }, WILD,
		{ .len = 1 } },
	{ "maps what is not", WRITES, ECONNRESET, { { IOMAP, 24, TABLE }, { DATA } }, WILD, { 0 } },
};

static struct sockaddr_in here, there;
static int listener;

/** Of the thread that has the socket. */
struct outcome {
	enum victim victim;
	int error;
};

/* Until the connection has ended. @return the error that it has ended with; 0 */
static int
end_of(int number, enum victim victim)
{
	static char bytes[1 << 20];
	struct pollfd poll = { .fd = number, .events = victim == RECEIVES ? POLLIN : 0 };
	bool mapped = false;

	/* Connected by then: an error comes after what was announced before it. */
	if (victim == RECEIVES)
		MUST(rpoll(&poll, 1, -1) == 1);

	for (;;) {
		ssize_t ret = 0;

		if (victim == SENDS)
			ret = rsend(number, bytes, sizeof(bytes), 0);
		else if (victim == RECEIVES)
			ret = rrecv(number, bytes, sizeof(bytes), MSG_WAITALL);
		if (victim == WRITES) {
			ret = (ssize_t)riowrite(number, bytes, sizeof(bytes), 0, 0);
			/* Not yet: its message is on the way. */
			if (ret < 0 && errno == ENXIO && !mapped)
				ret = rpoll(&poll, 1, 10) < 0 ? -1 : 1;
			else
				mapped = true;
		}
		if (ret <= 0)
			return ret == 0 ? 0 : errno;
	}
}

static void *
have_socket(void *arg)
{
	struct outcome *outcome = arg;
	int number = raccept(listener, NULL, NULL);

	MUST(number >= 0);
	outcome->error = end_of(number, outcome->victim);
	MUST(rclose(number) == 0);
	return NULL;
}

static struct rdma_cm_id *
resolved(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };
	struct rdma_cm_id *id;

	MUST(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
	MUST(rdma_resolve_addr(id, NULL, (struct sockaddr *)&there, 2000) == 0);
	MUST(rdma_resolve_route(id, 2000) == 0);
	MUST(rdma_create_qp(id, NULL, &attr) == 0);
	for (int i = 0; i < 16; i++)
		MUST(rdma_post_recvv(id, NULL, NULL, 0) == 0);
	return id;
}

/* Memory for what the socket grants: that is as it should be. */
static struct ibv_mr *
with_list(struct rdma_cm_id *id, struct hello *hello)
{
	static struct sge list[2];
	struct ibv_mr *mr = rdma_reg_write(id, list, sizeof(list));

	MUST(mr != NULL);
	hello->list.addr = htobe64((uintptr_t)list);
	hello->list.key = htobe32(mr->rkey);
	return mr;
}

static int
connect_as(struct rdma_cm_id *id, const void *hello, size_t len)
{
	struct rdma_conn_param param = { .private_data = hello,
		.private_data_len = (uint8_t)len,
		.retry_count = 7,
		.rnr_retry_count = 7 };

	return rdma_connect(id, &param);
}

/* Say one thing, and see that it has arrived, or was refused. */
static void
say(struct rdma_cm_id *id, const struct hello *peer, const struct hostile *hostile, int which,
	struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr, .length = hostile->says[which].len, .lkey = mr->lkey
	};
	uint32_t message = hostile->says[which].message;
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = sge.length > 0,
		.opcode = message == SEND ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(message),
		.wr.rdma = { .remote_addr = be64toh(peer->list.addr) + hostile->says[which].at,
			.rkey = be32toh(peer->list.key) },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	MUST(ibv_post_send(id->qp, &wr, &bad) == 0);
	MUST(rdma_get_send_comp(id, &wc) == 1);
}

static void
run(const struct hostile *hostile)
{
	struct outcome outcome = { .victim = hostile->victim };
	struct hello hello = { .version = 1,
		.flags = 2,
		.credits = htobe16(100),
		.list = { .len = htobe32(2) },
		.half = { .addr = htobe64(hostile->half.addr),
			.key = htobe32(hostile->half.key),
			.len = htobe32(hostile->half.len) } };
	uint64_t written[3] = { 0, 0, 0 };
	struct hello peer;
	pthread_t thread;
	struct rdma_cm_id *id;
	struct ibv_mr *mr, *list;

	doing = hostile->name;
	MUST(pthread_create(&thread, NULL, have_socket, &outcome) == 0);
	id = resolved();
	/* In the table an offset is before it. */
	memcpy(hostile->says[0].at == TABLE ? written + 1 : written, &hostile->entry,
		sizeof(hostile->entry));
	mr = rdma_reg_msgs(id, written, sizeof(written));
	MUST(mr != NULL);
	list = with_list(id, &hello);
	/* One byte is as it should be, too, so that the next grant is looked at. */
	if (hostile->half.len == 1) {
		hello.half.addr = hello.list.addr;
		hello.half.key = hello.list.key;
	}
	MUST(connect_as(id, &hello, sizeof(hello)) == 0);
	memcpy(&peer, id->event->param.conn.private_data, sizeof(peer));
	for (int i = 0; i < 3 && (hostile->says[i].message != 0 || hostile->says[i].len > 0); i++)
		say(id, &peer, hostile, i, mr);
	MUST(pthread_join(thread, NULL) == 0);
	errno = outcome.error;
	MUST(outcome.error == hostile->error);
	rdma_destroy_qp(id);
	rdma_dereg_mr(list);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

/* Words that make no sense: such a peer is refused, and the socket goes on to wait. */
static void
refused_hellos(void)
{
	struct hello good = { .version = 1, .list = { .len = htobe32(2) } };
	struct hello hellos[4] = { good, good, good, good };

	doing = "hellos";
	hellos[0].version = 2;
	hellos[1].list.len = 0;
	hellos[2].list.len = UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		struct outcome outcome = { .victim = RECEIVES };
		struct rdma_cm_id *id = resolved();
		struct ibv_mr *list;
		pthread_t thread;

		MUST(pthread_create(&thread, NULL, have_socket, &outcome) == 0);
		/* The last one is well, after one that says nothing of itself. */
		if (i == 3) {
			struct rdma_cm_id *silent = resolved();

			MUST(connect_as(silent, NULL, 0) == -1 && errno == ECONNREFUSED);
			rdma_destroy_ep(silent);
		} else {
			MUST(connect_as(id, &hellos[i], sizeof(good)) == -1 &&
				errno == ECONNREFUSED);
			rdma_destroy_ep(id);
			id = resolved();
		}
		list = with_list(id, &good);
		MUST(connect_as(id, &good, sizeof(good)) == 0);
		MUST(rdma_disconnect(id) == 0);
		MUST(pthread_join(thread, NULL) == 0);
		MUST(outcome.error == 0);
		rdma_destroy_qp(id);
		rdma_dereg_mr(list);
		rdma_destroy_ep(id);
	}
}

/* An idle socket says that it is there, as often as it was told; and when nobody takes that any
 * more, who waits for it knows. */
static void
keeps_alive(void)
{
	struct outcome outcome = { .victim = RECEIVES };
	struct hello hello = {
		.version = 1, .credits = htobe16(100), .list = { .len = htobe32(2) }
	};
	struct rdma_cm_id *id;
	struct ibv_mr *list;
	pthread_t thread;
	struct ibv_wc wc;
	int on = 1, idle_s = 1;

	doing = "keeps alive";
	MUST(rsetsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0);
	MUST(rsetsockopt(listener, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s)) == 0);
	MUST(pthread_create(&thread, NULL, have_socket, &outcome) == 0);
	id = resolved();
	list = with_list(id, &hello);
	MUST(connect_as(id, &hello, sizeof(hello)) == 0);
	/* Besides, it grants what there is to be granted. */
	for (int heard = 0; heard < 3;) {
		MUST(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
		if (be32toh(wc.imm_data) >> 29 == CREDIT >> 29)
			continue;
		MUST(wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.byte_len == 0);
		MUST(wc.imm_data == htobe32(CONTROL | 1));
		heard++;
	}
	/* Its queue pair goes, and says nothing. */
	rdma_destroy_qp(id);
	MUST(pthread_join(thread, NULL) == 0);
	errno = outcome.error;
	MUST(outcome.error == ECONNRESET);
	rdma_dereg_mr(list);
	rdma_destroy_ep(id);
	on = 0;
	MUST(rsetsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0);
}

int
main(int argc, char **argv)
{
	int iomaps = 4;

	if (argc != 3)
		return 2;
	here = (struct sockaddr_in){ .sin_family = AF_INET };
	there = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	MUST(inet_pton(AF_INET, argv[1], &here.sin_addr) == 1);
	MUST(inet_pton(AF_INET, argv[2], &there.sin_addr) == 1);
	listener = rsocket(AF_INET, SOCK_STREAM, 0);
	MUST(listener >= 0);
	MUST(rsetsockopt(listener, SOL_RDMA, RDMA_IOMAPSIZE, &iomaps, sizeof(iomaps)) == 0);
	MUST(rbind(listener, (struct sockaddr *)&there, sizeof(there)) == 0);
	MUST(rlisten(listener, 4) == 0);
	refused_hellos();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run(&cases[i]);
	keeps_alive();
	MUST(rclose(listener) == 0);
	return 0;
}
