/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A datagram socket and somebody who writes its headers by hand, those of UDP and those of the
 * queue pair: lengths, versions, addresses and numbers are wrong, one at a time. The socket must
 * take none of it, and go on; what is right, written by the same hand, it must take. Public headers
 * alone.
 *
 *   rs_forgers ADDRESS OTHER        IPv4, of an embedded wire, the second reached from the first
 *   rs_forgers ADDRESS OTHER local  the same, where the kernel has these addresses, too
 *
 * Exit status: 0; 1 at the first case that goes another way, which is named.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "rs_must.h"

#define PORT       7475
#define FORGERS    7476 /**< port */
#define TAG        0x55555555
#define DATA       0
#define CONTROL    7
#define STRANGERS  5000 /**< more than a socket remembers */
#define MESSAGES   300  /**< more than it keeps */
#define QKEY       0x01234567
#define BUFFER     2048
#define DATA_TEXT  "forged"
#define RIGHT_TEXT "right"

static struct sockaddr_in here, there; /**< the forger's address, and the socket's */
static int number;                     /**< the socket */
static int udp;                        /**< the forger's, where the kernel has its address */
static bool local;                     /**< that is the address itself */

/** Of 127.0.0.0/8: an address of the wire, as the kernel has it. */
static struct sockaddr_in
carrier(const struct sockaddr_in *addr)
{
	struct sockaddr_in to = *addr;

	to.sin_addr.s_addr = htonl(0x7f000000 | (ntohl(addr->sin_addr.s_addr) & 0xffffff));
	return to;
}

/* Nothing has come but what is right, which is said now. */
static void
nothing_but(void (*say)(void))
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char got[64];

	say();
	MUST(rrecvfrom(number, got, sizeof(got), 0, (struct sockaddr *)&from, &len) ==
		(ssize_t)strlen(RIGHT_TEXT));
	MUST(memcmp(got, RIGHT_TEXT, strlen(RIGHT_TEXT)) == 0);
	MUST(from.sin_addr.s_addr == here.sin_addr.s_addr && from.sin_port == htons(FORGERS));
	FAILS(rrecv(number, got, 1, MSG_DONTWAIT), EAGAIN);
}

/** A header of UDP; version 4 is 16 bytes long, version 6 is 28. */
struct udp_header {
	uint32_t tag;
	uint8_t version, op, length, reserved;
	uint32_t qpn;
	uint32_t addr[4];
};

static const struct forged_udp {
	const char *name;
	uint32_t tag;
	uint8_t version, op, length;
	uint32_t qpn;
	uint32_t addr; /**< 0: as it is */
	uint32_t cut;  /**< bytes of all; 0: as it is */
} udp_cases[] = {
	{ "no tag", 0x55555556, 4, DATA, 16, 99, 0, 0 },
	{ "version 5", TAG, 5, DATA, 16, 99, 0, 0 },
	{ "version 0", TAG, 0, DATA, 16, 99, 0, 0 },
	{ "version 6 with 16 bytes", TAG, 6, DATA, 16, 99, 0, 0 },
	{ "version 6 of a sender that has 4", TAG, 6, DATA, 28, 99, 0, 0 },
	{ "version 6 cut short", TAG, 6, DATA, 28, 99, 0, 20 },
	{ "version 4 with 28 bytes", TAG, 4, DATA, 28, 99, 0, 0 },
	{ "length 0", TAG, 4, DATA, 0, 99, 0, 0 },
	{ "length 15", TAG, 4, DATA, 15, 99, 0, 0 },
	{ "length 255", TAG, 4, DATA, 255, 99, 0, 0 },
	{ "says 1", TAG, 4, 1, 16, 99, 0, 0 },
	{ "says 255", TAG, 4, 255, 16, 99, 0, 0 },
	{ "queue pair 0", TAG, 4, DATA, 16, 0, 0, 0 },
	{ "queue pair 1", TAG, 4, DATA, 16, 1, 0, 0 },
	{ "queue pair of groups", TAG, 4, DATA, 16, 0xffffff, 0, 0 },
	{ "another's address", TAG, 4, DATA, 16, 99, 0x0a4d0063, 0 },
	{ "no address", TAG, 4, DATA, 16, 99, 0x00000001, 0 },
	{ "loopback", TAG, 4, DATA, 16, 99, 0x7f4d0001, 0 },
	{ "nothing", TAG, 4, DATA, 16, 99, 0, 1 },
	{ "half of it", TAG, 4, DATA, 16, 99, 0, 8 },
	{ "all but a byte", TAG, 4, DATA, 16, 99, 0, 15 },
	{ "an answer that nobody asked for", TAG, 4, CONTROL, 16, 99, 0, 0 },
	{ "more than there can be", TAG, 4, DATA, 16, 99, 0, 16 + BUFFER + 1 },
	{ "much more", TAG, 4, DATA, 16, 99, 0, 60000 },
};

static void
say_by_udp(int from, const struct forged_udp *forged, const char *text)
{
	static uint8_t bytes[65000];
	struct sockaddr_in to = local ? there : carrier(&there);
	struct udp_header header = { .tag = htobe32(forged->tag),
		.version = forged->version,
		.op = forged->op,
		.length = forged->length,
		.qpn = htobe32(forged->qpn),
		.addr = { forged->addr != 0 ? htonl(forged->addr) : here.sin_addr.s_addr } };
	size_t header_len = forged->version == 6 ? 28 : 16;
	size_t len = forged->cut != 0 ? forged->cut : header_len + strlen(text);

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + header_len, text, strlen(text));
	MUST(sendto(from, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)) == (ssize_t)len);
}

static void
say_right(void)
{
	static const struct forged_udp right = { "right", TAG, 4, DATA, 16, 99, 0, 0 };

	say_by_udp(udp, &right, RIGHT_TEXT);
}

/* What the socket answers: where its queue pair is. */
static uint32_t
heard_qpn(void)
{
	struct udp_header header;

	do
		MUST(recv(udp, &header, sizeof(header), 0) == 16);
	while (header.op != CONTROL);
	MUST(header.tag == htobe32(TAG) && header.version == 4 && header.length == 16);
	MUST(header.addr[0] == there.sin_addr.s_addr);
	return be32toh(header.qpn);
}

static void
forged_by_udp(void)
{
	for (size_t i = 0; i < sizeof(udp_cases) / sizeof(udp_cases[0]); i++) {
		doing = udp_cases[i].name;
		say_by_udp(udp, &udp_cases[i], DATA_TEXT);
		nothing_but(say_right);
	}
}

/* From as many addresses as there are: what the socket remembers of them is limited. */
static void
many_strangers(void)
{
	struct forged_udp forged = { "", TAG, 4, DATA, 16, 99, 0, 0 };
	char got[64];
	int kept = 0;

	doing = "many strangers";
	for (uint32_t i = 0; i < STRANGERS; i++) {
		struct sockaddr_in from = { .sin_family = AF_INET,
			.sin_addr.s_addr = htonl(0x7f000000 | (0x100000 + i)) };
		int stranger = socket(AF_INET, SOCK_DGRAM, 0);

		MUST(bind(stranger, (struct sockaddr *)&from, sizeof(from)) == 0);
		forged.addr = 0x0a000000 | (0x100000 + i);
		say_by_udp(stranger, &forged, DATA_TEXT);
		close(stranger);
	}
	/* They are kept up to a limit. */
	for (int i = 0; i < MESSAGES; i++)
		say_right();
	while (rrecv(number, got, sizeof(got), MSG_DONTWAIT) > 0)
		kept++;
	MUST(errno == EAGAIN && kept > 0 && kept < STRANGERS / 4);
}

/*
 * By an address that stands for one that the kernel does not have: any program may have that. It is
 * of another one that the engine alone has, or nobody's word.
 */
static void
forged_by_carrier(uint32_t addr)
{
	struct forged_udp forged = { "", TAG, 4, DATA, 16, 99, addr, 0 };
	struct sockaddr_in named = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(addr) };
	struct sockaddr_in own = carrier(&named);
	int stranger = socket(AF_INET, SOCK_DGRAM, 0);

	MUST(bind(stranger, (struct sockaddr *)&own, sizeof(own)) == 0);
	say_by_udp(stranger, &forged, DATA_TEXT);
	close(stranger);
	nothing_but(say_right);
}

/** What a UD SEND begins with; 8 bytes of version 4, 24 of version 6. */
static const struct forged_ud {
	const char *name;
	uint8_t version, length;
	uint16_t port;
	uint32_t addr; /**< 0: as it is */
	uint32_t cut;  /**< bytes of all, with the header; 0: as it is */
} ud_cases[] = {
	{ "version 5", 5, 8, FORGERS, 0, 0 },
	{ "length 0", 4, 0, FORGERS, 0, 0 },
	{ "length 7", 4, 7, FORGERS, 0, 0 },
	{ "length 255", 4, 255, FORGERS, 0, 0 },
	{ "version 4 with 24 bytes", 4, 24, FORGERS, 0, 0 },
	{ "version 6 with 8 bytes", 6, 8, FORGERS, 0, 0 },
	{ "version 6 cut short", 6, 24, FORGERS, 0, 23 },
	{ "all but a byte", 4, 8, FORGERS, 0, 7 },
	{ "a byte", 4, 8, FORGERS, 0, 1 },
	{ "another's address", 4, 8, FORGERS, 0x0a4d0063, 0 },
	{ "the socket's own address", 4, 8, FORGERS, 0x0a4d0002, 0 },
	{ "no port", 4, 8, 0, 0, 0 },
	{ "more than there can be", 4, 8, FORGERS, 0, BUFFER + 1 },
	{ "much more", 4, 8, FORGERS, 0, 4096 },
};

/** The forger's queue pair. */
static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static uint8_t memory[4096];
static struct ibv_ah *ah;
static uint32_t qpn;

static void
make_queue_pair(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = here.sin_addr };
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1, .grh.hop_limit = 64 };
	union ibv_gid gid;

	MUST(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) == 0);
	MUST(rdma_bind_addr(id, (struct sockaddr *)&own) == 0);
	MUST(rdma_create_qp(id, NULL, &attr) == 0);
	mr = rdma_reg_msgs(id, memory, sizeof(memory));
	MUST(mr != NULL);
	do
		MUST(ibv_query_gid(id->verbs, 1, ah_attr.grh.sgid_index++, &gid) == 0);
	while (memcmp(gid.raw + 12, &here.sin_addr, 4) != 0);
	ah_attr.grh.sgid_index--;
	memset(&ah_attr.grh.dgid, 0, sizeof(ah_attr.grh.dgid));
	ah_attr.grh.dgid.raw[10] = ah_attr.grh.dgid.raw[11] = 0xff;
	memcpy(ah_attr.grh.dgid.raw + 12, &there.sin_addr, 4);
	ah = ibv_create_ah(id->pd, &ah_attr);
	MUST(ah != NULL);
}

static void
say_by_ud(const struct forged_ud *forged, const char *text)
{
	uint32_t header_len = forged->version == 6 ? 24 : 8;
	uint16_t port = htons(forged->port);
	uint32_t addr = forged->addr != 0 ? htonl(forged->addr) : here.sin_addr.s_addr;
	struct ibv_sge sge = { .addr = (uintptr_t)memory,
		.length = forged->cut != 0 ? forged->cut : header_len + (uint32_t)strlen(text),
		.lkey = mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memset(memory, 0, sizeof(memory));
	memory[0] = forged->version;
	memory[1] = forged->length;
	memcpy(memory + 2, &port, 2);
	if (forged->version == 6) {
		memory[18] = memory[19] = 0xff;
		memcpy(memory + 20, &addr, 4);
	} else {
		memcpy(memory + 4, &addr, 4);
	}
	memcpy(memory + header_len, text, strlen(text));
	MUST(ibv_post_send(id->qp, &wr, &bad) == 0);
	MUST(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

static void
say_right_by_ud(void)
{
	static const struct forged_ud right = { "right", 6, 24, FORGERS, 0, 0 };

	say_by_ud(&right, RIGHT_TEXT);
}

static void
forged_by_ud(void)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr = here.sin_addr, .sin_port = htons(FORGERS)
	};

	doing = "the queue pair's number";
	nothing_but(say_right);
	qpn = heard_qpn();
	make_queue_pair();
	/* All buffers have had one of version 6: what is cut short must not take the rest of it. */
	for (int i = 0; i < MESSAGES; i++)
		nothing_but(say_right_by_ud);
	for (size_t i = 0; i < sizeof(ud_cases) / sizeof(ud_cases[0]); i++) {
		doing = ud_cases[i].name;
		say_by_ud(&ud_cases[i], DATA_TEXT);
		nothing_but(say_right_by_ud);
	}
	/* To a queue pair that is none, as the headers have told it: lost, and nothing else. */
	doing = "a queue pair that is none";
	for (int i = 0; i < 10; i++)
		MUST(rsendto(number, "lost", 4, 0, (struct sockaddr *)&to, sizeof(to)) == 4);
	nothing_but(say_right_by_ud);
	rdma_destroy_qp(id);
	MUST(ibv_destroy_ah(ah) == 0);
	rdma_dereg_mr(mr);
	rdma_destroy_id(id);
}

int
main(int argc, char **argv)
{
	struct sockaddr_in own;

	if (argc != 3 && argc != 4)
		return 2;
	local = argc == 4;
	here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(FORGERS) };
	there = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PORT) };
	MUST(inet_pton(AF_INET, argv[1], &here.sin_addr) == 1);
	MUST(inet_pton(AF_INET, argv[2], &there.sin_addr) == 1);
	own = local ? here : carrier(&here);
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	MUST(udp >= 0 && bind(udp, (struct sockaddr *)&own, sizeof(own)) == 0);
	number = rsocket(AF_INET, SOCK_DGRAM, 0);
	MUST(number >= 0 && rbind(number, (struct sockaddr *)&there, sizeof(there)) == 0);
	if (local) {
		doing = "a stranger, to an address of the kernel's";
		forged_by_carrier(0x0a100063);
	} else {
		forged_by_udp();
		forged_by_ud();
		doing = "a stranger who says to be one that the kernel has";
		forged_by_carrier(0x0a4d0063);
		many_strangers();
	}
	MUST(rclose(number) == 0);
	close(udp);
	return 0;
}
