/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine and its clients in one process.
 */
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <rte_eal.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_check.h"
#include "rcd_clock.h"
#include "rcd_poll.h"
#include "rcd_shm.h"

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

/** The longest wait for threads that close what clients sent: memory and sockets, at once. */
enum {
	CLOSE_MS = 10000
};

static struct rcd_engine *engine;

static const uint8_t fd_counts[RCD_CTRL_OP_COUNT] = {
#define RCD_CTRL(symbol, name, request, reply, fds, stage, description) [RCD_CTRL_##symbol] = fds,
#include "rcd_ctrl.def"
};

unsigned int
inside_fd_count(uint32_t op)
{
	return fd_counts[op];
}

static void
add_device(const char *name, const char *peer, const char *addr)
{
	struct rcd_dev_conf conf = { .attach = RCD_ATTACH_WIRE, .addr_count = 1 };
	char error[200];

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.target, sizeof(conf.target), "%s", peer);
	conf.raw = RCD_RAW_SNIFF;
	rcd_addr_parse(addr, &conf.addrs[0]);
	/* It may be there, or an input has removed it. */
	rcd_engine_dev_add(engine, &conf, error, sizeof(error));
}

static void
start(void)
{
	static char prefix[40];
	char *args[] = { (char *)(uintptr_t) "fuzz", (char *)(uintptr_t) "--no-huge",
		(char *)(uintptr_t) "-m", (char *)(uintptr_t) "128",
		(char *)(uintptr_t) "--no-shconf", (char *)(uintptr_t) "--no-telemetry",
		(char *)(uintptr_t) "-a", (char *)(uintptr_t) "0000:00:00.0",
		(char *)(uintptr_t) "--log-level=critical", (char *)(uintptr_t) "-l",
		(char *)(uintptr_t) "0", (char *)(uintptr_t) "--file-prefix", prefix };
	struct rcd_engine_conf conf;
	char error[200] = "";

	signal(SIGPIPE, SIG_IGN);
	snprintf(prefix, sizeof(prefix), "rcdfuzz%d", (int)getpid());
	RCD_CHECK(rte_eal_init(sizeof(args) / sizeof(args[0]), args) >= 0);
	rcd_engine_conf_init(&conf);
	conf.socket[0] = '\0';
	conf.mbufs = 2047;
	conf.quota.qps = 32;
	conf.quota.cqs = 32;
	conf.quota.mrs = 64;
	conf.quota.srqs = 8;
	conf.quota.xrcds = 4;
	conf.quota.pds = 8;
	conf.quota.ahs = 16;
	/* Room for a queue of copies of about 4 MiB, and for all else. */
	conf.quota.queue_bytes = 16 << 20;
	/* Queues are where an input expects them, however many hugepages the machine has. */
	conf.quota.hugepages = 0;
	engine = rcd_engine_create(&conf, error, sizeof(error));
	RCD_CHECK(engine != NULL);
}

struct rcd_engine *
inside_engine(void)
{
	if (engine == NULL)
		start();
	add_device("f0", "f1", "10.0.0.1/24");
	add_device("f1", "f0", "10.0.0.2/24");
	return engine;
}

void
inside_turn(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		rcd_engine_step(engine, 0);
		for (int k = 0; k < 3; k++)
			rcd_lcore_poll(rcd_engine_lcore(engine, 0), rcd_clock_ns(), 64);
	}
}

void
inside_pass(uint64_t ns, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		rcd_clock_advance(ns / rounds);
		inside_turn(1);
	}
}

void
inside_audit(void)
{
	char error[200];

	if (rcd_engine_audit(engine, error, sizeof(error)) == 0)
		return;
	fprintf(stderr, "audit: %s\n", error);
	abort();
}

unsigned int
inside_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	RCD_CHECK(dir != NULL);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

void
inside_check_left(const struct rcd_holdings *before, unsigned int fds_before)
{
	struct rcd_holdings left;

	inside_turn(4);
	inside_audit();
	rcd_engine_holdings(engine, &left);
	/* Real time: other threads close what came from clients; who left much waits for them. */
	for (int i = 0; i < CLOSE_MS && (left.closing > 0 || left.clients > before->clients); i++) {
		usleep(1000);
		inside_turn(1);
		rcd_engine_holdings(engine, &left);
	}
	/*
	 * A connection stays in timewait for as long as its peer said packets may live, and a
	 * neighbour that was asked for until it is forgotten.
	 */
	for (int i = 0; i < 40 &&
		(left.cm_connections > before->cm_connections || left.charged > before->charged);
		i++) {
		inside_pass(UINT64_C(3600000000000), 4);
		rcd_engine_holdings(engine, &left);
	}
	if (memcmp(before, &left, sizeof(left)) == 0 && inside_fds() == fds_before)
		return;
	fprintf(stderr,
		"left: %u clients, %u parked, %u queue pairs, %u identifiers, %u connections, "
		"%llu bytes of addresses, %llu charged, %u closing, %u descriptors (%u before)\n",
		left.clients, left.parked, left.qps, left.cm_ids, left.cm_connections,
		(unsigned long long)left.window_bytes, (unsigned long long)left.charged,
		left.closing, inside_fds(), fds_before);
	abort();
}

void
client_connect(struct client *client)
{
	int ends[2];

	memset(client, 0, sizeof(*client));
	client->sock = client->segment_fd = client->wake_fd = client->event_fd = -1;
	RCD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	client->sock = ends[0];
	/* Refused ones find out by themselves. */
	rcd_engine_adopt(engine, ends[1]);
}

void
client_send(
	struct client *client, struct rcd_ctrl_msg *msg, size_t len, const struct rcd_ctrl_fds *fds)
{
	if (msg->hdr.op == RCD_CTRL_HELLO) {
		msg->body.hello_req.magic = RCD_CTRL_MAGIC;
		msg->body.hello_req.version = RCD_CTRL_VERSION;
		msg->body.hello_req.abi = RCD_SHM_ABI;
	}
	rcd_ctrl_send(client->sock, msg, len, fds, MSG_DONTWAIT);
}

static void
take_segment(struct client *client, struct rcd_ctrl_fds *fds)
{
	client->segment_bytes = client->last.body.open_rep.segment_bytes;
	client->segment = mmap(
		NULL, client->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds->fds[0], 0);
	RCD_CHECK(client->segment != MAP_FAILED);
	client->segment_fd = fds->fds[0];
	client->wake_fd = fds->fds[1];
	client->event_fd = fds->fds[2];
	fds->count = 0;
}

void
client_receive(struct client *client)
{
	struct rcd_ctrl_msg *msg = &client->last;
	struct rcd_ctrl_fds fds;
	long len;

	while (client->sock >= 0 &&
		(len = rcd_ctrl_recv(client->sock, msg, sizeof(*msg), &fds, MSG_DONTWAIT)) > 0) {
		uint32_t op = msg->hdr.op;

		client->replies++;
		if (msg->hdr.status == 0 && op < RCD_CTRL_OP_COUNT &&
			len > (long)sizeof(msg->hdr)) {
			uint32_t first;

			memcpy(&first, &msg->body, sizeof(first));
			if (op == RCD_CTRL_CM_EVENT) {
				op = RCD_CTRL_CM_CREATE;
				first = msg->body.cm_event_rep.id;
			}
			if (op == RCD_CTRL_QP_CREATE)
				learn(&client->learnt, msg->body.qp_create_rep.qpn);
			client->made[op][client->made_count[op]++ % INSIDE_MADE] = first;
			learn(&client->learnt, first);
			if (op == RCD_CTRL_DEVICE)
				client->device = msg->body.device_rep.index;
			if ((op == RCD_CTRL_OPEN || op == RCD_CTRL_IMPORT) && fds.count == 3 &&
				client->segment == NULL)
				take_segment(client, &fds);
		}
		rcd_ctrl_fds_close(&fds);
	}
}

int
client_call(struct client *client, uint32_t op, const union rcd_ctrl_body *body,
	const struct rcd_ctrl_fds *fds)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = op } };
	uint32_t before = client->replies;

	if (body != NULL)
		msg.body = *body;
	client_send(client, &msg, rcd_ctrl_req_len(op), fds);
	inside_turn(1);
	client_receive(client);
	return client->replies == before ? -EAGAIN : client->last.hdr.status;
}

bool
client_open(struct client *client, uint32_t place)
{
	union rcd_ctrl_body body = { .device_req = { .index = place } };

	if (client_call(client, RCD_CTRL_HELLO, NULL, NULL) != 0 ||
		client_call(client, RCD_CTRL_DEVICE, &body, NULL) != 0)
		return false;
	body.open_req.index = client->device;
	return client_call(client, RCD_CTRL_OPEN, &body, NULL) == 0;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
client_close(struct client *client)
{
	close_fd(&client->sock);
	close_fd(&client->segment_fd);
	close_fd(&client->wake_fd);
	close_fd(&client->event_fd);
	if (client->segment != NULL)
		munmap(client->segment, client->segment_bytes);
	client->segment = NULL;
}

uint32_t
client_pick(const struct client *client, uint32_t op, uint32_t which)
{
	uint32_t count =
		client->made_count[op] < INSIDE_MADE ? client->made_count[op] : INSIDE_MADE;

	return count > 0 ? client->made[op][which % count] : 0;
}
