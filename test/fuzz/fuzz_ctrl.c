/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: whatever several clients say, in any order, at once, with any descriptors, listening or
 * not, leaving in any way, the engine lives, nobody reaches what is another's, and nothing stays
 * behind. Method: an engine in this process, polled by it; the input is a list of steps of up to
 * four connections, each a request that makes sense with a few bytes of it changed, or a message
 * that makes none, or a way to go, or time that passes. After each step the engine is audited;
 * at the end all go, and what the engine holds has to be what it held before.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handed.h"
#include "inside.h"
#include "rcd_check.h"
#include "requests.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 64
#define CLIENTS   4

enum kind {
	KIND_REQUEST = 12, /**< and all below it: most steps are requests */
	KIND_MALFORMED,
	KIND_CONNECT,
	KIND_CLOSE,
	KIND_SHUTDOWN,
	KIND_PASS,
	KIND_SCRIBBLE,
	KIND_MEMORY,
	KIND_DEAF,
	KIND_COUNT,
};

static struct client clients[CLIENTS];
static int memory; /**< that was shared last; -1: none */

/* Bits of a step that choose beside its `how`: those of a poke that is not used. */
static uint32_t
aux(const struct step *step)
{
	const struct poke *last = &step->pokes[STEP_POKES - 1];

	return last->how & POKE_USED ? 0 : last->val;
}

static int
shared_memory(uint32_t kind)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[64];
	int copy = fd;

	RCD_CHECK(fd >= 0 && ftruncate(fd, 65536) == 0);
	if (kind == 1)
		RCD_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
	if (kind == 2) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		copy = open(path, O_RDONLY | O_CLOEXEC);
		close(fd);
	}
	if (memory >= 0)
		close(memory);
	memory = dup(copy);
	return copy;
}

/* A descriptor of a good kind for most numbers. */
static int
make_fd(const struct client *client, uint32_t op, uint32_t kind)
{
	int ends[2];

	if (op == RCD_CTRL_IMPORT && (kind & 0xf8) == 0)
		return dup(clients[kind % CLIENTS].segment_fd);
	if (op == RCD_CTRL_HELLO && (kind & 0xf8) == 0)
		return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	switch (kind % 16) {
	case 9:
		return eventfd(0, EFD_CLOEXEC);
	case 10:
		RCD_CHECK(pipe(ends) == 0);
		close(ends[1]);
		return ends[0];
	case 11:
		return open("/dev/zero", O_RDWR | O_CLOEXEC);
	case 12:
		return dup(client->sock);
	case 13:
		return dup(clients[kind >> 4 & 3].segment_fd);
	case 14:
		return open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	case 15:
		return dup(client->wake_fd);
	default:
		return shared_memory(kind % 16);
	}
}

static void
add_fds(const struct client *client, uint32_t op, uint32_t kind, unsigned int count,
	struct rcd_ctrl_fds *fds)
{
	while (fds->count < count && fds->count < RCD_CTRL_FDS_MAX) {
		int fd = make_fd(client, op, kind);

		fds->fds[fds->count++] = fd >= 0 ? fd : shared_memory(0);
	}
}

/* EAL's own devices are not what is tried here. */
static bool
allowed(const struct rcd_ctrl_msg *msg)
{
	const char *json = msg->body.admin_req.json;

	return msg->hdr.op != RCD_CTRL_ADMIN ||
		(strstr(json, "port") == NULL && strstr(json, "netdev") == NULL &&
			strchr(json, '\\') == NULL);
}

static void
request(struct client *client, const struct step *step)
{
	uint32_t op = step->op % RCD_CTRL_OP_COUNT;
	struct rcd_ctrl_msg msg = { .hdr = { .op = op } };
	struct rcd_ctrl_fds fds = { .count = 0 };
	size_t len = rcd_ctrl_req_len(op);

	if (op == RCD_CTRL_SOCKETS) {
		handed_step(client, step);
		return;
	}
	request_fill(client, op, step->how, &msg.body);
	poke_all(step, &client->learnt, (uint8_t *)&msg.body, len - sizeof(msg.hdr));
	if (step->who & 0x80)
		request_mend(op, &msg.body);
	if (op == RCD_CTRL_ADMIN)
		msg.body.admin_req.json[sizeof(msg.body.admin_req.json) - 1] = '\0';
	if (!allowed(&msg))
		return;
	add_fds(client, op, aux(step), inside_fd_count(op), &fds);
	client_send(client, &msg, len, &fds);
	rcd_ctrl_fds_close(&fds);
}

/* Any bytes of any length, up to more than a message may have, with any number of descriptors. */
static void
malformed(struct client *client, const struct step *step)
{
	static uint8_t bytes[2 * RCD_CTRL_MSG_MAX];
	struct rcd_ctrl_msg *msg = (struct rcd_ctrl_msg *)(void *)bytes;
	struct rcd_ctrl_fds fds = { .count = 0 };
	size_t len = (size_t)step->how * 33 % sizeof(bytes);

	memset(bytes, 0, sizeof(bytes));
	msg->hdr.op = step->op;
	if (step->op < RCD_CTRL_OP_COUNT)
		request_fill(client, step->op, step->how, &msg->body);
	poke_all(step, &client->learnt, bytes, len);
	if (!allowed(msg))
		return;
	add_fds(client, step->op, aux(step), step->who >> 4 & 7, &fds);
	rcd_ctrl_send(client->sock, bytes, len, &fds, MSG_DONTWAIT);
	rcd_ctrl_fds_close(&fds);
}

/* Shrunk, grown, or holed while the engine has it mapped. */
static void
change_memory(const struct step *step)
{
	if (memory < 0)
		return;
	if (step->how & 1)
		fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			4096 * (step->op % 16), 4096);
	else if (ftruncate(memory, 4096 * (step->op % 17)) != 0)
		return; /* sealed */
}

static void
pass(const struct step *step)
{
	static const uint64_t spans_ns[] = { 0, 1000000, 20000000, 100000000, 1000000000,
		3100000000, 60000000000 };

	inside_pass(spans_ns[step->op % 7], 1 + step->how % 32);
}

/* Half of them copy: what they register besides may be reached so. */
static void
open_context(struct client *client, uint8_t how)
{
	if (client_open(client, how >> 1 & 1) && (how & 4))
		client_call(client, RCD_CTRL_COPY_OPEN, NULL, NULL);
}

static void
step_of(struct client *client, const struct step *step)
{
	uint32_t kind = step->kind % KIND_COUNT;

	if (client->sock < 0 && kind != KIND_PASS && kind != KIND_MEMORY) {
		client_connect(client);
		if (kind != KIND_CONNECT || !(step->how & 1))
			open_context(client, step->how);
		else if (step->how & 2)
			client_call(client, RCD_CTRL_HELLO, NULL, NULL);
		if (kind == KIND_CONNECT)
			return;
	}
	switch (kind) {
	case KIND_MALFORMED:
		malformed(client, step);
		break;
	case KIND_CONNECT:
	case KIND_CLOSE:
		client_close(client);
		break;
	case KIND_SHUTDOWN:
		shutdown(client->sock, step->how % 3);
		break;
	case KIND_PASS:
		pass(step);
		break;
	case KIND_SCRIBBLE:
		if (client->segment != NULL)
			poke_all(step, &client->learnt,
				client->segment + (size_t)step->how % 64 * 1024, 1024);
		break;
	case KIND_MEMORY:
		change_memory(step);
		break;
	case KIND_DEAF:
		client->deaf = !client->deaf;
		break;
	default:
		request(client, step);
		break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rcd_engine *engine;
	struct rcd_holdings before;
	unsigned int fds;

	handed_begin();
	engine = inside_engine();
	fds = inside_fds();
	rcd_engine_holdings(engine, &before);
	memory = -1;
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = (struct client){
			.sock = -1, .segment_fd = -1, .wake_fd = -1, .event_fd = -1
		};
	for (size_t i = 0; i < STEPS_MAX && size >= sizeof(struct step); i++) {
		struct step step;
		struct client *client;

		memcpy(&step, data, sizeof(step));
		data += sizeof(step);
		size -= sizeof(step);
		client = &clients[step.who % CLIENTS];
		step_of(client, &step);
		/* Some messages are served together with the next step's. */
		if (!(step.who & 0x40))
			inside_turn(1);
		if (!client->deaf)
			client_receive(client);
		inside_audit();
	}
	for (int i = 0; i < CLIENTS; i++)
		client_close(&clients[i]);
	if (memory >= 0)
		close(memory);
	handed_forget();
	inside_check_left(&before, fds);
	return 0;
}
