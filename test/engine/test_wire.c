/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: clients exchange messages through the engine over the embedded wire, and within one
 * device, and get what hardware would give them. Method: an engine of the test's own with roce0
 * and roce1; two sessions in this process; all operations with data compared.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_tap.h"
#include "rig.h"

#define MEMORY    (4u << 20)
#define LONG_ONES RIG_TIMES(64)

static struct rig rig;

/* Every kind of operation between two nodes. */
static void
exchange(struct node *a, struct node *b)
{
	struct rcd_cq_slot slot;
	static const uint32_t sizes[] = { 0, 1, 4096, 65536, 1000003 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint32_t len = sizes[i];

		/* SEND */
		fill(a->memory, len, (uint32_t)i);
		memset(b->memory, 0, len);
		CU_ASSERT_EQUAL(node_recv(b, 0, MEMORY, 7), 0);
		CU_ASSERT_EQUAL(node_write(a, NULL, RCD_WR_SEND, 0, len, 8), 0);
		CU_ASSERT_EQUAL(node_wait(b, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.wr_id, 7);
		CU_ASSERT_EQUAL(slot.opcode, RCD_WC_RECV);
		CU_ASSERT_EQUAL(slot.byte_len, len);
		CU_ASSERT(filled(b->memory, len, (uint32_t)i));
		CU_ASSERT_EQUAL(node_wait(a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.wr_id, 8);
		/* WRITE */
		fill(a->memory, len, (uint32_t)i + 100);
		CU_ASSERT_EQUAL(node_write(a, b, RCD_WR_RDMA_WRITE, 0, len, 9), 0);
		CU_ASSERT_EQUAL(node_wait(a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT(filled(b->memory, len, (uint32_t)i + 100));
		/* READ */
		fill(b->memory, len, (uint32_t)i + 200);
		CU_ASSERT_EQUAL(node_write(a, b, RCD_WR_RDMA_READ, 0, len, 10), 0);
		CU_ASSERT_EQUAL(node_wait(a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(slot.opcode, RCD_WC_RDMA_READ);
		CU_ASSERT(filled(a->memory, len, (uint32_t)i + 200));
	}
}

static void
between(const char *one, const char *other, int v4)
{
	struct node a, b;

	node_open(&a, rig.socket, one, RCD_QP_RC);
	node_open(&b, rig.socket, other, RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_RC, v4);
	exchange(&a, &b);
	node_close(&a);
	node_close(&b);
}

static void
rc_over_the_wire(void)
{
	between("roce0", "roce1", 1);
	between("roce0", "roce1", 0);
}

static void
rc_within_one_device(void)
{
	char *before = rig_admin(rig.socket, "statistic roce0");
	char *after;

	between("roce0", "roce0", 1);
	after = rig_admin(rig.socket, "statistic roce0");
	/* No packet has left the engine. */
	CU_ASSERT_EQUAL(rig_number(before, "tx_packets"), rig_number(after, "tx_packets"));
	CU_ASSERT(rig_number(after, "tx_loopback") > rig_number(before, "tx_loopback"));
	free(before);
	free(after);
}

static void
uc_messages(void)
{
	struct node a, b;
	struct rcd_cq_slot slot;

	node_open(&a, rig.socket, "roce0", RCD_QP_UC);
	node_open(&b, rig.socket, "roce1", RCD_QP_UC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_UC, 1);
	fill(a.memory, 100000, 3);
	CU_ASSERT_EQUAL(node_recv(&b, 0, MEMORY, 1), 0);
	CU_ASSERT_EQUAL(node_write(&a, NULL, RCD_WR_SEND, 0, 100000, 2), 0);
	CU_ASSERT_EQUAL(node_wait(&b, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.byte_len, 100000);
	CU_ASSERT(filled(b.memory, 100000, 3));
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	node_close(&a);
	node_close(&b);
}

static void
ud_datagrams(void)
{
	struct node a, b;
	struct rcd_cq_slot slot;

	node_open(&a, rig.socket, "roce0", RCD_QP_UD);
	node_open(&b, rig.socket, "roce1", RCD_QP_UD);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_UD, 1);
	fill(a.memory, 2000, 4);
	CU_ASSERT_EQUAL(node_recv(&b, 0, 4096, 1), 0);
	CU_ASSERT_EQUAL(node_datagram(&a, &b, node_ah(&a, &b, 1), 2000), 0);
	CU_ASSERT_EQUAL(node_wait(&b, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	CU_ASSERT_EQUAL(slot.byte_len, 2040);
	CU_ASSERT_EQUAL(slot.src_qpn, a.qp.qpn);
	CU_ASSERT(filled(b.memory + 40, 2000, 4));
	node_close(&a);
	node_close(&b);
}

static void
completion_events(void)
{
	struct node a, b;
	struct rcd_cq_slot slot;
	uint64_t cookie = 0;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_RC, 1);
	for (int i = 0; i < 100; i++) {
		struct pollfd fd = { .fd = b.channel_fd, .events = POLLIN };

		CU_ASSERT_EQUAL(node_recv(&b, 0, 4096, 1), 0);
		rcd_cl_arm(&b.cq, false);
		CU_ASSERT_EQUAL(poll(&fd, 1, 0), 0);
		CU_ASSERT_EQUAL(node_write(&a, NULL, RCD_WR_SEND, 0, 10, 2), 0);
		CU_ASSERT_EQUAL(poll(&fd, 1, FOREVER_MS), 1);
		CU_ASSERT_EQUAL(read(b.channel_fd, &cookie, sizeof(cookie)), 8);
		CU_ASSERT_EQUAL(cookie, 77);
		CU_ASSERT_EQUAL(node_wait(&b, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	}
	node_close(&a);
	node_close(&b);
}

static void
remote_access_error(void)
{
	struct node a, b;
	struct rcd_cq_slot slot;
	struct rcd_ctrl_event event;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	node_join(&a, &b, RCD_QP_RC, 1);
	b.mr.key ^= 0x100;
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 64, 1), 0);
	b.mr.key ^= 0x100;
	CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_REM_ACCESS_ERR);
	/* IBV_EVENT_QP_ACCESS_ERR at the responder */
	CU_ASSERT_EQUAL(
		rcd_ctrl_recv(b.client.events_fd, &event, sizeof(event), NULL, 0), sizeof(event));
	CU_ASSERT_EQUAL(event.type, RCD_EVENT_QP_ACCESS_ERR);
	/* Both are in ERR, and what is posted comes back. */
	for (uint64_t i = 0; i < 100; i++) {
		CU_ASSERT_EQUAL(node_recv(&b, 0, 64, i), 0);
		CU_ASSERT_EQUAL(node_wait(&b, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
		CU_ASSERT_EQUAL(slot.wr_id, i);
		CU_ASSERT_EQUAL(node_write(&a, NULL, RCD_WR_SEND, 0, 64, i), 0);
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_WR_FLUSH_ERR);
	}
	node_close(&a);
	node_close(&b);
}

static void
overrun_is_an_event(void)
{
	struct node a, b;
	struct rcd_ctrl_event event;
	struct rcd_ctrl_cq_req small = { .depth = 4, .channel = RCD_CTRL_NO_HANDLE, .cookie = 5 };
	struct rcd_cl_cq cq;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, MEMORY);
	node_memory(&b, MEMORY);
	CU_ASSERT_EQUAL(rcd_cl_cq_create(&a.client, &small, &cq), 0);
	{
		struct rcd_ctrl_qp_req req = { .pd = a.pd,
			.send_cq = cq.handle,
			.recv_cq = cq.handle,
			.srq = RCD_CTRL_NO_HANDLE,
			.sq_depth = 64,
			.rq_depth = 1,
			.max_send_sge = 1 };

		CU_ASSERT_EQUAL(rcd_cl_qp_create(&a.client, &req, &a.qp), 0);
	}
	node_join(&a, &b, RCD_QP_RC, 1);
	for (int i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 8, 1), 0);
	CU_ASSERT_EQUAL(
		rcd_ctrl_recv(a.client.events_fd, &event, sizeof(event), NULL, 0), sizeof(event));
	CU_ASSERT_EQUAL(event.type, RCD_EVENT_CQ_ERR);
	CU_ASSERT_EQUAL(event.cookie, 5);
	node_close(&a);
	node_close(&b);
}

static long long
bad_indices(void)
{
	char *answer = rig_admin(rig.socket, "engine");
	long long count = rig_number(answer, "client_bad_index");

	free(answer);
	return count;
}

/* An index that leaves its ring costs the queue pair, and is counted, for each queue. */
static void
index_beyond_the_ring(void)
{
	for (int recv = 0; recv < 2; recv++) {
		long long before = bad_indices();
		struct rcd_ctrl_event event = { .type = UINT32_MAX };
		struct pollfd fd = { .events = POLLIN };
		struct node a, b;

		node_open(&a, rig.socket, "roce0", RCD_QP_RC);
		node_open(&b, rig.socket, "roce1", RCD_QP_RC);
		node_memory(&a, MEMORY);
		node_memory(&b, MEMORY);
		node_join(&a, &b, RCD_QP_RC, 1);
		if (recv) {
			rcd_shm_store(&a.qp.rq.shm->producer, a.qp.rq.mask + 2);
			CU_ASSERT_EQUAL(node_write(&b, NULL, RCD_WR_SEND, 0, 8, 1), 0);
		} else {
			a.qp.sq.producer = a.qp.sq.mask + 2;
			rcd_cl_ring(&a.qp);
		}
		fd.fd = a.client.events_fd;
		if (poll(&fd, 1, FOREVER_MS) == 1)
			rcd_ctrl_recv(fd.fd, &event, sizeof(event), NULL, 0);
		CU_ASSERT_EQUAL(event.type, RCD_EVENT_QP_FATAL);
		CU_ASSERT(bad_indices() > before);
		node_close(&a);
		node_close(&b);
	}
}

static void
unreachable_address(void)
{
	struct node a;
	struct rcd_ctrl_qp_attr attr;
	uint64_t begin;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	attr = node_attr(&a, &a, 1);
	/* On the subnet, and nobody there. */
	attr.av.dgid[15] = 99;
	begin = now_ms();
	CU_ASSERT_EQUAL(node_connect(&a.qp, RCD_QP_RC, attr), -ETIMEDOUT);
	CU_ASSERT(now_ms() - begin < FOREVER_MS);
	/* Not on it, and no gateway. */
	attr.av.dgid[12] = 11;
	attr.state = 2;
	CU_ASSERT_EQUAL(rcd_cl_qp_modify(&a.qp, &attr,
				RCD_QP_ATTR_STATE | RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU |
					RCD_QP_ATTR_DEST_QPN | RCD_QP_ATTR_RQ_PSN |
					RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER),
		-ENETUNREACH);
	node_close(&a);
}

static void
link_down_and_up(void)
{
	struct node a;
	struct rcd_ctrl_event event;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	free(rig_admin(rig.socket, "link set roce1 down"));
	CU_ASSERT_EQUAL(
		rcd_ctrl_recv(a.client.events_fd, &event, sizeof(event), NULL, 0), sizeof(event));
	CU_ASSERT_EQUAL(event.type, RCD_EVENT_PORT_ERR);
	free(rig_admin(rig.socket, "link set roce1 up"));
	CU_ASSERT_EQUAL(
		rcd_ctrl_recv(a.client.events_fd, &event, sizeof(event), NULL, 0), sizeof(event));
	CU_ASSERT_EQUAL(event.type, RCD_EVENT_PORT_ACTIVE);
	node_close(&a);
}

static void
wires_come_and_go(void)
{
	for (int i = 0; i < 3; i++) {
		char *answer = rig_admin(rig.socket, "link add x0 wire x1");

		CU_ASSERT_STRING_EQUAL(answer, "{}");
		free(answer);
		answer = rig_admin(rig.socket, "addr add x0 192.168.9.1/24");
		CU_ASSERT_STRING_EQUAL(answer, "{}");
		free(answer);
		free(rig_admin(rig.socket, "addr add x1 192.168.9.2/24"));
		between("x0", "x1", 1);
		answer = rig_admin(rig.socket, "link del x1");
		CU_ASSERT_STRING_EQUAL(answer, "{}");
		free(answer);
		answer = rig_admin(rig.socket, "link");
		CU_ASSERT_EQUAL(rig_count(answer, "\"ifname\""), 2);
		free(answer);
	}
}

/* Addresses with a VLAN tag reach each other, and not those without. */
static void
tagged_addresses(void)
{
	char *answer;

	free(rig_admin(rig.socket, "link add v0 wire v1"));
	free(rig_admin(rig.socket, "addr add v0 192.168.8.1/24 vlan 7"));
	answer = rig_admin(rig.socket, "addr add v1 192.168.8.2/24 vlan 7");
	CU_ASSERT_STRING_EQUAL(answer, "{}");
	free(answer);
	between("v0", "v1", 1);
	free(rig_admin(rig.socket, "link del v0"));
}

/* A short message does not wait for long ones of another queue pair. */
static void
short_beside_long(void)
{
	struct node a, b;
	struct rcd_cl_qp long_qp, peer_qp;
	struct rcd_ctrl_qp_attr attr;
	struct rcd_cq_slot slot;
	const uint32_t big = 64u << 20;
	uint32_t before = 0;

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	node_open(&b, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&a, big);
	node_memory(&b, big);
	node_join(&a, &b, RCD_QP_RC, 1);
	node_qp(&a, RCD_QP_RC, &long_qp);
	node_qp(&b, RCD_QP_RC, &peer_qp);
	attr = node_attr(&a, &b, 1);
	attr.dest_qpn = peer_qp.qpn;
	CU_ASSERT_EQUAL(node_connect(&long_qp, RCD_QP_RC, attr), 0);
	attr = node_attr(&b, &a, 1);
	attr.dest_qpn = long_qp.qpn;
	CU_ASSERT_EQUAL(node_connect(&peer_qp, RCD_QP_RC, attr), 0);
	for (int i = 0; i < LONG_ONES; i++) {
		struct rcd_sge sge = { (uintptr_t)a.memory, big, { a.mr.key } };
		struct rcd_send_wr wr = { .wr_id = 1,
			.opcode = RCD_WR_RDMA_WRITE,
			.flags = RCD_SEND_SIGNALED,
			.sge_count = 1,
			.sges = &sge,
			.remote = { .va = (uintptr_t)b.memory, .rkey = { b.mr.key } } };

		CU_ASSERT_EQUAL(rcd_cl_post_send(&long_qp, &wr), 0);
	}
	rcd_cl_ring(&long_qp);
	CU_ASSERT_EQUAL(node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 8, 2), 0);
	do {
		CU_ASSERT_EQUAL_FATAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
		before += slot.wr_id == 1;
	} while (slot.wr_id == 1);
	/* In order of posting it would have been the last. */
	CU_ASSERT(before < LONG_ONES / 2);
	while (before++ < LONG_ONES)
		CU_ASSERT_EQUAL(node_wait(&a, &slot, FOREVER_MS), RCD_WC_SUCCESS);
	node_close(&a);
	node_close(&b);
}

static void
stops_soon(void)
{
	struct node a;
	struct rcd_ctrl_event event;
	uint64_t begin = now_ms();

	node_open(&a, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	/* A second where nobody else has the cores: nothing that it waits for takes as long. */
	CU_ASSERT(now_ms() - begin < FOREVER_MS / 2);
	CU_ASSERT_EQUAL(
		rcd_ctrl_recv(a.client.events_fd, &event, sizeof(event), NULL, 0), sizeof(event));
	CU_ASSERT_EQUAL(event.type, RCD_EVENT_DEVICE_FATAL);
	CU_ASSERT(rcd_client_check(&a.client));
	CU_ASSERT_EQUAL(access(rig.socket, F_OK), -1);
	node_close(&a);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(rc_over_the_wire),
		RCD_TEST(rc_within_one_device),
		RCD_TEST(uc_messages),
		RCD_TEST(ud_datagrams),
		RCD_TEST(completion_events),
		RCD_TEST(remote_access_error),
		RCD_TEST(overrun_is_an_event),
		RCD_TEST(index_beyond_the_ring),
		RCD_TEST(unreachable_address),
		RCD_TEST(link_down_and_up),
		RCD_TEST(wires_come_and_go),
		RCD_TEST(tagged_addresses),
		RCD_TEST(short_beside_long),
		RCD_TEST(stops_soon),
	};

	rig_start(&rig, NULL);
	return rcd_tap_run("wire", tests, sizeof(tests) / sizeof(tests[0]));
}
