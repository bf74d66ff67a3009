/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no sequence of control messages, and nothing that a client writes into its segment, takes
 * the engine down or leaves anything behind. Method: an engine in this process, polled by it; the
 * input is a list of steps, each a message made of its bytes, or a scribble into the segment; then
 * the client goes, and no session, queue pair or packet may be left.
 */
#include <fcntl.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_check.h"
#include "rcd_ctrl.h"
#include "rcd_engine.h"
#include "rcd_shm.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 64

/* What is reached from EAL's memory alone looks leaked to the sanitizer, which does not scan it. */
const char *
__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static struct rcd_engine *engine;

struct input {
	const uint8_t *data;
	size_t left;
};

/* The next bytes of the input, zeros behind its end. */
static void
take(struct input *input, void *dst, size_t len)
{
	size_t part = len < input->left ? len : input->left;

	memset(dst, 0, len);
	if (part == 0)
		return;
	memcpy(dst, input->data, part);
	input->data += part;
	input->left -= part;
}

static void
add_device(const char *name, const char *peer, const char *addr)
{
	struct rcd_dev_conf conf = { .attach = RCD_ATTACH_WIRE, .addr_count = 1 };
	char error[200];

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.target, sizeof(conf.target), "%s", peer);
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
	conf.quota = (struct rcd_quota){ .qps = 32,
		.cqs = 32,
		.mrs = 64,
		.srqs = 8,
		.pds = 8,
		.ahs = 16,
		.queue_bytes = 4 << 20 };
	engine = rcd_engine_create(&conf, error, sizeof(error));
	RCD_CHECK(engine != NULL);
}

static void
turn(void)
{
	rcd_engine_step(engine, 0);
	for (int i = 0; i < 3; i++)
		rcd_lcore_poll(rcd_engine_lcore(engine, 0), rcd_clock_ns(), 64);
}

/* A client: its socket, and its segment when it has one. */
struct client {
	int sock;
	uint8_t *segment;
	size_t segment_bytes;
	uint32_t device; /**< index of the first */
};

static void
receive(struct client *client)
{
	struct rcd_ctrl_msg msg;
	struct rcd_ctrl_fds fds;
	long len;

	while ((len = rcd_ctrl_recv(client->sock, &msg, sizeof(msg), &fds, MSG_DONTWAIT)) > 0) {
		if (msg.hdr.op == RCD_CTRL_OPEN && msg.hdr.status == 0 && fds.count == 3 &&
			client->segment == NULL) {
			client->segment_bytes = msg.body.open_rep.segment_bytes;
			client->segment = mmap(NULL, client->segment_bytes, PROT_READ | PROT_WRITE,
				MAP_SHARED, fds.fds[0], 0);
			RCD_CHECK(client->segment != MAP_FAILED);
		}
		if (msg.hdr.op == RCD_CTRL_DEVICE && msg.hdr.status == 0)
			client->device = msg.body.device_rep.index;
		rcd_ctrl_fds_close(&fds);
	}
}

static void
send_message(struct client *client, uint32_t op, size_t len, struct input *input, bool with_fd)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = op } };
	struct rcd_ctrl_fds fds = { .count = 0 };

	take(input, &msg.body, len > sizeof(msg.hdr) ? len - sizeof(msg.hdr) : 0);
	if (op == RCD_CTRL_HELLO)
		msg.body.hello_req = (struct rcd_ctrl_hello_req){
			.magic = RCD_CTRL_MAGIC, .version = RCD_CTRL_VERSION, .abi = RCD_SHM_ABI
		};
	/* EAL's own devices are not what is tried here. */
	if (op == RCD_CTRL_ADMIN &&
		(strstr(msg.body.admin_req.line, "port") != NULL ||
			strstr(msg.body.admin_req.line, "netdev") != NULL))
		return;
	if (with_fd) {
		fds.fds[0] = memfd_create("fuzz", MFD_CLOEXEC);
		fds.count = 1;
		RCD_CHECK(ftruncate(fds.fds[0], 65536) == 0);
	}
	rcd_ctrl_send(client->sock, &msg, len, &fds, MSG_DONTWAIT);
	rcd_ctrl_fds_close(&fds);
}

static void
step(struct client *client, struct input *input)
{
	uint8_t kind[2];
	uint32_t op;

	take(input, kind, sizeof(kind));
	op = kind[0] % (RCD_CTRL_OP_COUNT + 2);
	if (op >= RCD_CTRL_OP_COUNT) {
		uint32_t at;
		uint64_t val;

		/* Near the front: doorbells, and the first rings. */
		take(input, &at, op == RCD_CTRL_OP_COUNT ? 2 : 3);
		take(input, &val, kind[1] % 9);
		if (client->segment != NULL)
			memcpy(client->segment + at % (client->segment_bytes - 8), &val, 8);
	} else if (kind[1] & 0x80) {
		send_message(client, op, kind[1] & 0x7f, input, kind[1] & 1);
	} else {
		send_message(client, op, rcd_ctrl_req_len(op), input, op == RCD_CTRL_MEM_ADD);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	struct client client = { .segment = NULL };
	struct input nothing = { NULL, 0 };
	uint8_t how;
	int ends[2];

	if (engine == NULL)
		start();
	add_device("f0", "f1", "10.0.0.1/24");
	add_device("f1", "f0", "10.0.0.2/24");
	RCD_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	RCD_CHECK(rcd_engine_adopt(engine, ends[1]) == 0);
	client.sock = ends[0];
	take(&input, &how, 1);
	if (how != 0) {
		struct rcd_ctrl_index_req open = { .index = 0 };
		struct input device = { (const uint8_t *)&open, sizeof(open) };

		send_message(
			&client, RCD_CTRL_HELLO, rcd_ctrl_req_len(RCD_CTRL_HELLO), &nothing, false);
		send_message(&client, RCD_CTRL_DEVICE, rcd_ctrl_req_len(RCD_CTRL_DEVICE), &nothing,
			false);
		turn();
		receive(&client);
		open.index = client.device;
		send_message(
			&client, RCD_CTRL_OPEN, rcd_ctrl_req_len(RCD_CTRL_OPEN), &device, false);
		turn();
		receive(&client);
	}
	for (int i = 0; i < STEPS_MAX && input.left > 0; i++) {
		step(&client, &input);
		turn();
		receive(&client);
	}
	close(client.sock);
	if (client.segment != NULL)
		munmap(client.segment, client.segment_bytes);
	turn();
	turn();
	RCD_CHECK(rcd_engine_clients(engine) == 0);
	RCD_CHECK(rcd_engine_qps(engine) == 0);
	return 0;
}
