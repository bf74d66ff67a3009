/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no client can hurt the engine or another client. Method: an engine of the test's own; one
 * pair of nodes transfers and compares data all the while, in a process of its own, as others
 * scribble over their segments, send nonsense, take memory away, and flood.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"
#include "rcd_tap.h"
#include "rig.h"

#define MEMORY (1u << 20)

static struct rig rig;

static long long
offences(const char *counter)
{
	char *answer = rig_admin(rig.socket, "engine");
	long long count = rig_number(answer, counter);

	free(answer);
	return count < 0 ? 0 : count;
}

/* Every word of the segment and of its hugepages: header, doorbells, all queues, what is unused. */
static void
scribble(struct rcd_client *client, uint64_t seed)
{
	struct rcd_sequence sequence = { seed };
	uint64_t *words = (uint64_t *)(void *)client->shm;

	for (uint64_t i = 0; i < (client->shm_bytes + client->huge_bytes) / 8; i++)
		words[i] = rcd_sequence_next(&sequence);
}

/* An engine whose segments are small enough to write all of them many times. */
static void
scribbled_segment(void)
{
	struct honest honest;

	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	rig_start_text(&rig, "[quota]\nqueue_bytes = 8M\n", true);
	honest = honest_start(&rig);
	for (uint64_t round = 1; round <= 30; round++) {
		struct node a, b;

		node_open(&a, rig.socket, "roce0", RCD_QP_RC);
		node_open(&b, rig.socket, "roce1", RCD_QP_RC);
		node_memory(&a, MEMORY);
		node_memory(&b, MEMORY);
		node_join(&a, &b, RCD_QP_RC, 1);
		CU_ASSERT_EQUAL(a.client.shm_bytes, 8 << 20);
		for (int i = 0; i < 50; i++) {
			node_recv(&b, 0, 4096, 1);
			node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 65536, 1);
		}
		for (uint64_t pass = 0; pass < 10; pass++)
			scribble(round % 2 ? &a.client : &b.client, round << 8 | pass);
		node_close(&a);
		node_close(&b);
	}
	CU_ASSERT(offences("client_bad_index") > 0);
	CU_ASSERT(offences("client_bad_doorbell") > 0);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	rig_start(&rig, NULL);
}

static int
raw_connect(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", rig.socket);
	MUST(sock >= 0 && connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	return sock;
}

static void
wrong_versions(void)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_HELLO, .number = 3 } };
	struct rcd_ctrl_msg reply;
	int sock = raw_connect();

	msg.body.hello_req = (struct rcd_ctrl_hello_req){
		.magic = RCD_CTRL_MAGIC, .version = RCD_CTRL_VERSION + 1, .abi = RCD_SHM_ABI
	};
	CU_ASSERT_EQUAL(rcd_ctrl_send(sock, &msg, rcd_ctrl_req_len(RCD_CTRL_HELLO), NULL, 0), 0);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(sock, &reply, sizeof(reply), NULL, 0),
		(long)rcd_ctrl_rep_len(RCD_CTRL_HELLO));
	CU_ASSERT_EQUAL(reply.hdr.status, -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(reply.body.hello_rep.version, RCD_CTRL_VERSION);
	CU_ASSERT_EQUAL(reply.body.hello_rep.abi, RCD_SHM_ABI);
	/* Not greeted: nothing else is served. */
	msg.hdr.op = RCD_CTRL_PD_CREATE;
	CU_ASSERT_EQUAL(
		rcd_ctrl_send(sock, &msg, rcd_ctrl_req_len(RCD_CTRL_PD_CREATE), NULL, 0), 0);
	rcd_ctrl_recv(sock, &reply, sizeof(reply), NULL, 0);
	CU_ASSERT_EQUAL(reply.hdr.status, -EPROTO);
	close(sock);
}

static void
malformed_messages(void)
{
	struct honest honest = honest_start(&rig);
	long long before = offences("client_bad_message");
	uint8_t junk[RCD_CTRL_MSG_MAX * 4];
	struct rcd_ctrl_msg reply;
	int sent = 0;

	for (uint32_t round = 0; round < 200; round++) {
		int sock = raw_connect();

		for (int i = 0; i < 10; i++) {
			size_t len = 1 + (size_t)rand() % sizeof(junk);

			fill(junk, len, round * 10 + (uint32_t)i);
			if (i % 2 == 0 && len >= 4)
				memcpy(junk, &(uint32_t){ (uint32_t)i }, 4);
			if (rcd_ctrl_send(sock, junk, len, NULL, 0) != 0)
				break;
			sent++;
			if (rcd_ctrl_recv(sock, &reply, sizeof(reply), NULL, 0) <= 0)
				break;
			CU_ASSERT(reply.hdr.status < 0);
		}
		close(sock);
	}
	CU_ASSERT(sent > 1000);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(offences("client_bad_message") > before);
}

static int
mem_add(struct node *node, int fd, uint64_t offset, uint64_t len)
{
	struct rcd_ctrl_mem_req req = { .offset = offset, .len = len, .writable = 1 };
	struct rcd_ctrl_fds fds = { .fds = { fd }, .count = 1 };
	struct rcd_ctrl_handle rep;

	return rcd_client_call(&node->client, RCD_CTRL_MEM_ADD, &req, &rep, &fds, NULL);
}

static void
wrong_descriptors(void)
{
	struct node a;
	int pipes[2];
	int disk = open("/etc/hostname", O_RDWR);
	int reader = open("/proc/self/maps", O_RDONLY);
	int fd = memfd_create("t", 0);

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	MUST(pipe(pipes) == 0 && ftruncate(fd, 8192) == 0);
	CU_ASSERT_EQUAL(mem_add(&a, pipes[0], 0, 4096), -EBADF);
	CU_ASSERT_EQUAL(mem_add(&a, a.client.sock, 0, 4096), -EBADF);
	CU_ASSERT_EQUAL(mem_add(&a, reader, 0, 4096), -EBADF);
	CU_ASSERT_EQUAL(mem_add(&a, disk, 0, 4096), -EBADF);
	CU_ASSERT_EQUAL(mem_add(&a, fd, 1, 4096), -EINVAL);
	CU_ASSERT_EQUAL(mem_add(&a, fd, 0, 100), -EINVAL);
	CU_ASSERT_EQUAL(mem_add(&a, fd, 0, 0), -EINVAL);
	CU_ASSERT_EQUAL(mem_add(&a, fd, UINT64_MAX - 4095, 8192), -EINVAL);
	CU_ASSERT_EQUAL(mem_add(&a, fd, 0, UINT64_C(1) << 62), -ENOMEM);
	CU_ASSERT_EQUAL(mem_add(&a, fd, 0, 8192), 0);
	node_close(&a);
	close(fd);
	close(disk);
	close(reader);
}

/* The file behind registered memory shrinks: the engine's copy faults, and only its owner pays. */
static void
truncated_memory(void)
{
	struct honest honest = honest_start(&rig);

	for (int round = 0; round < 10; round++) {
		struct node a, b;
		struct rcd_cl_mr_attr attr;
		struct rcd_cq_slot slot;
		struct rcd_cl_mr mr;
		int fd = memfd_create("t", 0);
		uint8_t *map;
		uint64_t deadline;
		long long before = offences("client_bad_memory");

		node_open(&a, rig.socket, "roce0", RCD_QP_RC);
		node_open(&b, rig.socket, "roce1", RCD_QP_RC);
		node_memory(&a, MEMORY);
		MUST(ftruncate(fd, MEMORY) == 0);
		map = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		attr = (struct rcd_cl_mr_attr){ .pd = b.pd,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.addr = map,
			.len = MEMORY,
			.start = (uintptr_t)map };
		MUST(rcd_cl_mr_reg(&b.client, &attr, &mr) == 0);
		b.memory = map;
		b.mr.key = mr.key;
		node_join(&a, &b, RCD_QP_RC, 1);
		MUST(ftruncate(fd, 4096) == 0);
		node_write(&a, &b, RCD_WR_RDMA_WRITE, 65536, 65536, 1);
		node_wait(&a, &slot, FOREVER_MS);
		deadline = now_ms() + FOREVER_MS;
		while (offences("client_bad_memory") == before && now_ms() < deadline)
			usleep(1000);
		CU_ASSERT(offences("client_bad_memory") > before);
		CU_ASSERT_EQUAL(rcd_cl_mr_dereg(&b.client, &mr), 0);
		b.memory = NULL;
		munmap(map, MEMORY);
		close(fd);
		node_close(&a);
		node_close(&b);
	}
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

/* Descriptors that the engine has open. */
static int
open_files(void)
{
	char path[64];
	DIR *dir;
	int count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)rig.pid);
	dir = opendir(path);
	while (dir != NULL && readdir(dir) != NULL)
		count++;
	if (dir != NULL)
		closedir(dir);
	return count;
}

/* One write of c to d with these keys, at the addresses of somebody else. @return status */
static int
steal(struct node *c, struct node *d, const struct node *victim, uint32_t lkey, uint32_t rkey)
{
	struct rcd_ctrl_qp_attr attr = node_attr(c, d, 1);
	struct rcd_sge sge = { (uintptr_t)victim->memory, 64, { lkey } };
	struct rcd_send_wr wr = { .opcode = RCD_WR_RDMA_WRITE,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = (uintptr_t)victim->memory, .rkey = { rkey } } };
	struct rcd_ctrl_qp_attr reset = { .state = 0 };
	struct rcd_cq_slot slot;

	MUST(rcd_cl_qp_modify(&c->qp, &reset, RCD_QP_ATTR_STATE) == 0);
	MUST(rcd_cl_qp_modify(&d->qp, &reset, RCD_QP_ATTR_STATE) == 0);
	rcd_cl_cq_clean(&c->cq, c->qp.qpn);
	MUST(node_connect(&c->qp, RCD_QP_RC, attr) == 0);
	MUST(node_connect(&d->qp, RCD_QP_RC, node_attr(d, c, 1)) == 0);
	MUST(rcd_cl_post_send(&c->qp, &wr) == 0);
	rcd_cl_ring(&c->qp);
	return node_wait(c, &slot, FOREVER_MS);
}

/* Addresses and keys of another client are worth nothing, known or guessed. */
static void
stolen_keys(void)
{
	struct node a, b, c, d;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_open(&c, rig.socket, "roce0", RCD_QP_RC);
	node_open(&d, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_memory(&c, MEMORY);
	node_memory(&d, MEMORY);
	node_join(&a, &b, RCD_QP_RC, 1);
	fill(a.memory, MEMORY, 1);
	fill(b.memory, MEMORY, 2);
	/* The victim's own keys do it no harm in other hands... */
	CU_ASSERT_EQUAL(steal(&c, &d, &a, a.mr.key, d.mr.key), RCD_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(steal(&c, &d, &b, b.mr.key, b.mr.key), RCD_WC_LOC_PROT_ERR);
	CU_ASSERT_EQUAL(steal(&c, &d, &c, c.mr.key, b.mr.key), RCD_WC_REM_ACCESS_ERR);
	/* ...and guesses find nothing. */
	srand(3);
	for (int i = 0; i < 300; i++) {
		uint32_t lkey = (uint32_t)rand() << 16 ^ (uint32_t)rand();
		uint32_t rkey = (uint32_t)rand() << 16 ^ (uint32_t)rand();

		CU_ASSERT_EQUAL(steal(&c, &d, i % 2 ? &a : &b, lkey, rkey), RCD_WC_LOC_PROT_ERR);
		CU_ASSERT_EQUAL(steal(&c, &d, &c, c.mr.key, rkey), RCD_WC_REM_ACCESS_ERR);
	}
	CU_ASSERT(filled(a.memory, MEMORY, 1));
	CU_ASSERT(filled(b.memory, MEMORY, 2));
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, MEMORY, 1), 0);
	{
		struct rcd_cq_slot slot;

		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	}
	CU_ASSERT(filled(b.memory, MEMORY, 1));
	node_close(&a);
	node_close(&b);
	node_close(&c);
	node_close(&d);
}

static void
ten_thousand_connections(void)
{
	struct honest honest = honest_start(&rig);
	int before = open_files();

	for (int i = 0; i < RIG_TIMES(10000); i++) {
		struct rcd_client client;

		MUST(rcd_client_connect(&client, rig.socket) == 0);
		if (i % 10 == 0)
			MUST(rcd_client_open(&client, 1) == 0);
		rcd_client_close(&client);
	}
	CU_ASSERT_EQUAL(honest_end(honest), 0);
	CU_ASSERT(rig_contexts(&rig, 0, FOREVER_MS));
	/* The honest pair had some open before; the connection that just asked is closed soon. */
	for (uint64_t end = now_ms() + FOREVER_MS; open_files() > before && now_ms() < end;)
		usleep(1000);
	CU_ASSERT(open_files() <= before);
}

static void
flood(void)
{
	struct honest honest = honest_start(&rig);
	struct rcd_ctrl_msg msg = { .hdr = { .op = RCD_CTRL_HELLO } };
	int socks[8];

	/* Requests without ever reading a reply: the session goes, and nothing else happens. */
	msg.body.hello_req = (struct rcd_ctrl_hello_req){
		.magic = RCD_CTRL_MAGIC, .version = RCD_CTRL_VERSION, .abi = RCD_SHM_ABI
	};
	for (int i = 0; i < 8; i++)
		socks[i] = raw_connect();
	for (int round = 0; round < RIG_TIMES(20000); round++)
		for (int i = 0; i < 8; i++)
			rcd_ctrl_send(socks[i], &msg, rcd_ctrl_req_len(RCD_CTRL_HELLO), NULL,
				MSG_DONTWAIT);
	for (int i = 0; i < 8; i++)
		close(socks[i]);
	CU_ASSERT_EQUAL(honest_end(honest), 0);
}

static void
quotas(void)
{
	struct node a;
	struct rcd_ctrl_handle pd;
	struct rcd_ctrl_cq_req cq = { .depth = 1u << 22, .channel = RCD_CTRL_NO_HANDLE };
	struct rcd_cl_cq made;
	uint32_t count = 0;
	int err;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	while ((err = rcd_client_call(&a.client, RCD_CTRL_PD_CREATE, NULL, &pd, NULL, NULL)) == 0)
		count++;
	CU_ASSERT_EQUAL(err, -ENOMEM);
	CU_ASSERT_EQUAL(count, a.device.max_pd - 1);
	/* Queue memory runs out, is given back, and is there again. */
	for (count = 0; (err = rcd_cl_cq_create(&a.client, &cq, &made)) == 0; count++) {
		CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_CQ_DESTROY, made.handle), 0);
		if (count == 3)
			break;
	}
	cq.depth = 1u << 23;
	CU_ASSERT_EQUAL(rcd_cl_cq_create(&a.client, &cq, &made), -EINVAL);
	node_close(&a);
}

static void
busy_objects(void)
{
	struct node a;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_PD_DESTROY, a.pd), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_CQ_DESTROY, a.cq.handle), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_CHANNEL_DESTROY, a.channel), -EBUSY);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, 4000), -ENOENT);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_QP_DESTROY, a.qp.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_CQ_DESTROY, a.cq.handle), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_CHANNEL_DESTROY, a.channel), 0);
	CU_ASSERT_EQUAL(rcd_cl_destroy(&a.client, RCD_CTRL_PD_DESTROY, a.pd), 0);
	node_close(&a);
}

static void
still_right(void)
{
	CU_ASSERT_EQUAL(honest_end(honest_start(&rig)), 0);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(scribbled_segment),
		RCD_TEST(wrong_versions),
		RCD_TEST(malformed_messages),
		RCD_TEST(wrong_descriptors),
		RCD_TEST(truncated_memory),
		RCD_TEST(stolen_keys),
		RCD_TEST(ten_thousand_connections),
		RCD_TEST(flood),
		RCD_TEST(quotas),
		RCD_TEST(busy_objects),
		RCD_TEST(still_right),
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("hostile", tests, sizeof(tests) / sizeof(tests[0]));
}
