/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Engines and nodes for tests.
 */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rcd_qp.h"
#include "rcd_sequence.h"

#define ARGS_MAX 32
#define TOLD_MAX 16 /* lines of one program */

static pid_t running; /**< to be killed when a test ends early */

void
rig_die(const char *what, const char *file, int line)
{
	printf("Bail out! %s:%d: %s (errno %d)\n", file, line, what, errno);
	fflush(stdout);
	if (running > 0)
		kill(running, SIGKILL);
	_exit(1);
}

uint64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/*
 * Have an engine killed should this process end before it, however it ends: an engine polls for
 * ever. PR_SET_PDEATHSIG would be lost when the engine becomes another user; so a process that is
 * nobody's child waits for whichever of the two ends first.
 */
static void
leash(pid_t engine)
{
	struct pollfd ends[2] = { { .fd = 0, .events = POLLIN }, { .fd = 1, .events = POLLIN } };
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int other = (int)syscall(SYS_pidfd_open, engine, 0);
	pid_t pid;

	MUST(self > 1 && other > 1);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() != 0 || dup2(self, 0) != 0 || dup2(other, 1) != 1)
			_exit(0);
		for (int fd = 2; fd < 1024; fd++)
			close(fd);
		while (poll(ends, 2, -1) < 0)
			;
		if (ends[1].revents == 0)
			syscall(SYS_pidfd_send_signal, 1, SIGKILL, NULL, 0);
		_exit(0);
	}
	MUST(pid > 0 && waitpid(pid, NULL, 0) == pid);
	close(self);
	close(other);
}

void
rig_start(struct rig *rig, const char *const *args)
{
	static int number;
	const char *rocaded = getenv("ROCADED");
	const char *log = getenv("ROCADED_LOG");
	const char *lcores = getenv("ROCADED_LCORES");
	const char *user = getenv("ROCADED_CONFINED");
	char become[64];
	char prefix[64];
	const char *argv[ARGS_MAX] = { rocaded, "--file-prefix", prefix, "--no-huge", "-m", "256",
		"--no-telemetry", "--log-level=notice" };
	int count = 8;
	uint64_t deadline = now_ms() + FOREVER_MS;

	MUST(rocaded != NULL);
	snprintf(rig->prefix, sizeof(rig->prefix), "rcdtest%d-%d", (int)getpid(), number);
	snprintf(prefix, sizeof(prefix), "%s", rig->prefix);
	snprintf(rig->socket, sizeof(rig->socket), "/tmp/rcdtest-%d-%d.sock", (int)getpid(),
		number++);
	if (lcores != NULL) {
		argv[count++] = "--lcores";
		argv[count++] = lcores;
	}
	argv[count++] = "--";
	argv[count++] = "--socket";
	argv[count++] = rig->socket;
	if (user != NULL) {
		snprintf(become, sizeof(become), "--option=user=%s", user);
		argv[count++] = become;
		argv[count++] = "--option=seccomp=kill";
	}
	if (args == NULL)
		argv[count++] = "--embedded-wire";
	for (; args != NULL && *args != NULL && count < ARGS_MAX - 1; args++)
		argv[count++] = *args;
	rig->pid = fork();
	if (rig->pid == 0) {
		int out =
			open(log != NULL ? log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND, 0644);

		dup2(out, 1);
		dup2(out, 2);
		unsetenv("LD_LIBRARY_PATH"); /* DPDK's drivers want the system's libraries */
		execv(rocaded, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	MUST(rig->pid > 0);
	running = rig->pid;
	leash(rig->pid);
	for (;;) {
		struct rcd_client client;

		if (rcd_client_connect(&client, rig->socket) == 0) {
			rcd_client_close(&client);
			return;
		}
		MUST(waitpid(rig->pid, NULL, WNOHANG) == 0);
		MUST(now_ms() < deadline);
		usleep(20000);
	}
}

void
rig_start_text(struct rig *rig, const char *text, bool wire)
{
	char path[] = "/tmp/rcdtest-XXXXXX";
	const char *const args[] = { "--config", path, wire ? "--embedded-wire" : NULL, NULL };
	int fd = mkstemp(path);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	rig_start(rig, args);
	close(fd);
	unlink(path);
}

void
rig_halt(const struct rig *rig)
{
	int status;

	/* The parent is told when the last thread has stopped. */
	MUST(kill(rig->pid, SIGSTOP) == 0);
	MUST(waitpid(rig->pid, &status, WUNTRACED) == rig->pid && WIFSTOPPED(status));
}

int
rig_stop(struct rig *rig, int limit_ms)
{
	uint64_t deadline = now_ms() + (uint64_t)limit_ms;
	int status = 0;

	kill(rig->pid, SIGTERM);
	while (waitpid(rig->pid, &status, WNOHANG) == 0) {
		if (now_ms() > deadline) {
			rig_kill(rig);
			return -1;
		}
		usleep(2000);
	}
	running = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void
rig_kill(struct rig *rig)
{
	kill(rig->pid, SIGKILL);
	waitpid(rig->pid, NULL, 0);
	running = 0;
	unlink(rig->socket);
}

long long
rig_number(const char *answer, const char *key)
{
	char quoted[80];
	const char *at;

	snprintf(quoted, sizeof(quoted), "\"%s\":", key);
	at = answer != NULL ? strstr(answer, quoted) : NULL;
	return at != NULL ? strtoll(at + strlen(quoted), NULL, 10) : -1;
}

long long
rig_engine(const struct rig *rig, const char *key)
{
	char *answer = rig_admin(rig->socket, "engine");
	long long number = rig_number(answer, key);

	free(answer);
	return number;
}

int
rig_count(const char *answer, const char *text)
{
	int count = 0;

	for (; answer != NULL && (answer = strstr(answer, text)) != NULL; answer++)
		count++;
	return count;
}

bool
rig_ends_well(struct rig *rig)
{
	return honest_end(honest_start(rig)) == 0 && rig_stop(rig, FOREVER_MS) == 0;
}

struct rcd_ctrl_cm_addr
rig_addr(uint8_t last, uint16_t port)
{
	uint8_t ip[4] = { 10, 77, 0, last };
	struct rcd_gid gid = rcd_gid_from_ipv4(ip);
	struct rcd_ctrl_cm_addr addr = { .port = port, .family = 4 };

	memcpy(addr.addr, gid.raw, sizeof(addr.addr));
	return addr;
}

int
rig_cm_event(struct rcd_client *client, uint32_t channel, struct rcd_ctrl_cm_event_rep *event,
	int limit_ms)
{
	struct rcd_ctrl_handle handle = { .handle = channel };
	uint64_t deadline = now_ms() + (uint64_t)limit_ms;

	while (rcd_client_call(client, RCD_CTRL_CM_EVENT, &handle, event, NULL, NULL) != 0) {
		if (now_ms() > deadline)
			return -1;
		usleep(1000);
	}
	return (int)event->event;
}

int
node_try_open(struct node *node, const char *socket, const char *device)
{
	int err;

	memset(node, 0, sizeof(*node));
	node->channel = RCD_CTRL_NO_HANDLE;
	node->channel_fd = -1;
	err = rcd_client_connect(&node->client, socket);
	for (uint32_t i = 0; err == 0; i++) {
		struct rcd_ctrl_index_req req = { .index = i };

		err = rcd_client_call(
			&node->client, RCD_CTRL_DEVICE, &req, &node->device, NULL, NULL);
		if (err == 0 && strcmp(node->device.name, device) == 0)
			break;
	}
	if (err == 0)
		err = rcd_client_open(&node->client, node->device.index);
	if (err == 0) {
		struct rcd_ctrl_index_req req = { .index = 0 };

		err = rcd_client_call(&node->client, RCD_CTRL_GIDS, &req, &node->gids, NULL, NULL);
	}
	if (err != 0)
		rcd_client_close(&node->client);
	return err;
}

void
node_qp(struct node *node, uint32_t type, struct rcd_cl_qp *qp)
{
	struct rcd_ctrl_qp_req req = {
		.pd = node->pd,
		.type = type,
		.send_cq = node->cq.handle,
		.recv_cq = node->cq.handle,
		.srq = RCD_CTRL_NO_HANDLE,
		.sq_depth = NODE_DEPTH,
		.rq_depth = NODE_DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64,
	};

	MUST(rcd_cl_qp_create(&node->client, &req, qp) == 0);
}

void
node_open(struct node *node, const char *socket, const char *device, uint32_t type)
{
	struct rcd_ctrl_handle pd;
	struct rcd_ctrl_handle channel;
	struct rcd_ctrl_fds fds;
	struct rcd_ctrl_cq_req cq = { .depth = 4 * NODE_DEPTH, .cookie = 77 };

	MUST(node_try_open(node, socket, device) == 0);
	MUST(rcd_client_call(&node->client, RCD_CTRL_PD_CREATE, NULL, &pd, NULL, NULL) == 0);
	node->pd = pd.handle;
	MUST(rcd_client_call(&node->client, RCD_CTRL_CHANNEL_CREATE, NULL, &channel, NULL, &fds) ==
		0);
	MUST(fds.count == 1);
	node->channel = channel.handle;
	node->channel_fd = fds.fds[0];
	cq.channel = channel.handle;
	MUST(rcd_cl_cq_create(&node->client, &cq, &node->cq) == 0);
	node_qp(node, type, &node->qp);
}

void
node_close(struct node *node)
{
	if (node->memory != NULL) {
		rcd_cl_mr_dereg(&node->client, &node->mr);
		munmap(node->memory, node->memory_len);
	}
	if (node->channel_fd >= 0)
		close(node->channel_fd);
	rcd_client_close(&node->client);
	memset(node, 0, sizeof(*node));
}

void
node_memory(struct node *node, uint64_t len)
{
	struct rcd_cl_mr_attr attr = {
		.pd = node->pd, .access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE, .len = len
	};

	node->memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(node->memory != MAP_FAILED);
	node->memory_len = len;
	attr.addr = node->memory;
	attr.start = (uintptr_t)node->memory;
	MUST(rcd_cl_mr_reg(&node->client, &attr, &node->mr) == 0);
}

uint8_t
node_gid(const struct node *node, int v4)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	for (uint32_t i = 1; i < node->gids.count; i++) {
		const uint8_t *raw = node->gids.gids[i].raw;
		int is_v4 = memcmp(raw, mapped, sizeof(mapped)) == 0;

		if ((raw[0] | raw[10]) != 0 && is_v4 == v4)
			return (uint8_t)i;
	}
	return 0;
}

uint8_t node_timeout = NODE_TIMEOUT;

struct rcd_ctrl_qp_attr
node_attr(const struct node *node, const struct node *peer, int v4)
{
	struct rcd_ctrl_port_rep port, peer_port;
	struct rcd_ctrl_qp_attr attr = {
		.access = RCD_ACCESS_REMOTE,
		.qkey = 0x1234,
		.rq_psn = 1000,
		.sq_psn = 1000,
		.dest_qpn = peer->qp.qpn,
		.port = 1,
		.timeout = node_timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 8,
		.min_rnr_timer = 1,
		.max_dest_rd_atomic = 8,
		.av = { .sgid_index = node_gid(node, v4), .hop_limit = 64 },
	};

	MUST(rcd_client_call((struct rcd_client *)(uintptr_t)&node->client, RCD_CTRL_PORT, NULL,
		     &port, NULL, NULL) == 0);
	MUST(rcd_client_call((struct rcd_client *)(uintptr_t)&peer->client, RCD_CTRL_PORT, NULL,
		     &peer_port, NULL, NULL) == 0);
	attr.path_mtu_bytes = port.active_mtu_bytes < peer_port.active_mtu_bytes
		? port.active_mtu_bytes
		: peer_port.active_mtu_bytes;
	memcpy(attr.av.dgid, peer->gids.gids[node_gid(peer, v4)].raw, 16);
	return attr;
}

int
node_connect(struct rcd_cl_qp *qp, uint32_t type, struct rcd_ctrl_qp_attr attr)
{
	bool ud = type == RCD_CTRL_QP_UD;
	bool rc = type == RCD_CTRL_QP_RC;
	uint32_t init = RCD_QP_ATTR_STATE | RCD_QP_ATTR_PKEY_INDEX | RCD_QP_ATTR_PORT |
		(ud ? RCD_QP_ATTR_QKEY : RCD_QP_ATTR_ACCESS);
	uint32_t rtr = RCD_QP_ATTR_STATE;
	uint32_t rts = RCD_QP_ATTR_STATE | RCD_QP_ATTR_SQ_PSN;
	int err;

	if (!ud)
		rtr |= RCD_QP_ATTR_AV | RCD_QP_ATTR_PATH_MTU | RCD_QP_ATTR_DEST_QPN |
			RCD_QP_ATTR_RQ_PSN;
	if (rc) {
		rtr |= RCD_QP_ATTR_MAX_DEST_RD_ATOMIC | RCD_QP_ATTR_MIN_RNR_TIMER;
		rts |= RCD_QP_ATTR_TIMEOUT | RCD_QP_ATTR_RETRY_CNT | RCD_QP_ATTR_RNR_RETRY |
			RCD_QP_ATTR_MAX_RD_ATOMIC;
	}
	attr.state = RCD_QP_INIT;
	err = rcd_cl_qp_modify(qp, &attr, init);
	attr.state = RCD_QP_RTR;
	if (err == 0)
		err = rcd_cl_qp_modify(qp, &attr, rtr);
	attr.state = RCD_QP_RTS;
	if (err == 0)
		err = rcd_cl_qp_modify(qp, &attr, rts);
	return err;
}

void
node_join(struct node *a, struct node *b, uint32_t type, int v4)
{
	MUST(node_connect(&a->qp, type, node_attr(a, b, v4)) == 0);
	MUST(node_connect(&b->qp, type, node_attr(b, a, v4)) == 0);
}

int
node_write(struct node *from, struct node *to, uint8_t opcode, uint64_t offset, uint32_t len,
	uint64_t wr_id)
{
	struct rcd_sge sge = {
		.addr = (uintptr_t)from->memory + offset, .len = len, .lkey = { from->mr.key }
	};
	struct rcd_send_wr wr = {
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = RCD_SEND_SIGNALED,
		.sge_count = 1,
		.sges = &sge,
		.remote = { .va = to != NULL ? (uintptr_t)to->memory + offset : 0,
			.rkey = { to != NULL ? to->mr.key : 0 } },
	};
	int err = rcd_cl_post_send(&from->qp, &wr);

	if (err == 0)
		rcd_cl_ring(&from->qp);
	return err;
}

int
node_recv(struct node *node, uint64_t offset, uint32_t len, uint64_t wr_id)
{
	struct rcd_sge sge = {
		.addr = (uintptr_t)node->memory + offset, .len = len, .lkey = { node->mr.key }
	};
	struct rcd_recv_wr wr = { .wr_id = wr_id, .sge_count = 1, .sges = &sge };

	return rcd_cl_post_recv(&node->qp, &wr, false);
}

/* What a log needs to tell a fault from a machine that stood still; of many, the first. */
static void
rig_tell(const struct rcd_cq_slot *slot, uint64_t waited_ms)
{
	static uint32_t told;

	if (slot->status != RCD_WC_SUCCESS && told++ < TOLD_MAX)
		fprintf(stderr, "# completion %" PRIu64 ": status %u after %" PRIu64 " ms\n",
			slot->wr_id, slot->status, waited_ms);
}

int
node_wait(struct node *node, struct rcd_cq_slot *slot, int limit_ms)
{
	uint64_t begin = now_ms();

	for (uint32_t i = 1;; i++) {
		if (rcd_cl_poll(&node->cq, slot, 1) == 1) {
			rig_tell(slot, now_ms() - begin);
			return slot->status;
		}
		if (rcd_client_dead(&node->client))
			return -EIO;
		if (i % 256 != 0)
			continue;
		if (now_ms() - begin > (uint64_t)limit_ms)
			return -ETIMEDOUT;
		sched_yield();
	}
}

void
fill(uint8_t *memory, uint64_t len, uint32_t seed)
{
	struct rcd_sequence sequence = { seed };

	for (uint64_t i = 0; i < len; i++)
		memory[i] = (uint8_t)rcd_sequence_next(&sequence);
}

int
filled(const uint8_t *memory, uint64_t len, uint32_t seed)
{
	struct rcd_sequence sequence = { seed };

	for (uint64_t i = 0; i < len; i++)
		if (memory[i] != (uint8_t)rcd_sequence_next(&sequence))
			return 0;
	return 1;
}

#define HONEST_MEMORY (1u << 20)

static void
transfer(const struct rig *rig, int stop)
{
	struct node a, b;
	struct rcd_cq_slot slot;
	char byte;

	fcntl(stop, F_SETFL, O_NONBLOCK);
	node_open(&a, rig->socket, "roce0", RCD_CTRL_QP_RC);
	node_open(&b, rig->socket, "roce1", RCD_CTRL_QP_RC);
	node_memory(&a, HONEST_MEMORY);
	node_memory(&b, HONEST_MEMORY);
	node_join(&a, &b, RCD_CTRL_QP_RC, 1);
	for (uint32_t round = 1; read(stop, &byte, 1) < 0; round++) {
		fill(a.memory, 100000, round);
		if (node_write(&a, &b, RCD_WR_RDMA_WRITE, 0, 100000, round) != 0 ||
			node_wait(&a, &slot, FOREVER_MS) != RCD_WC_SUCCESS ||
			!filled(b.memory, 100000, round))
			_exit(1);
	}
	_exit(0);
}

struct honest
honest_start(const struct rig *rig)
{
	struct honest honest;
	int ends[2];

	MUST(pipe(ends) == 0);
	fflush(stdout);
	honest.pid = fork();
	if (honest.pid == 0)
		transfer(rig, ends[0]);
	close(ends[0]);
	honest.stop = ends[1];
	return honest;
}

int
honest_end(struct honest honest)
{
	int status = -1;

	MUST(write(honest.stop, "x", 1) == 1);
	waitpid(honest.pid, &status, 0);
	close(honest.stop);
	return status;
}

int
rig_contexts(const struct rig *rig, int wanted, int limit_ms)
{
	uint64_t deadline = now_ms() + (uint64_t)limit_ms;
	int count;

	do {
		char *answer = rig_admin(rig->socket, "resource ctx");

		count = rig_count(answer, "\"ctxn\"");
		free(answer);
	} while (count != wanted && now_ms() < deadline);
	return count == wanted;
}
