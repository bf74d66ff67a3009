/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Engines and nodes for tests.
 */
#include "rig.h"

#include <dirent.h>
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

/* One file of a thread, as a comment of the test's. */
static void
rig_tell_file(const char *task, const char *name)
{
	char path[512], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", task, name);
	file = fopen(path, "r");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL)
		printf("# %s: %.*s\n", name, (int)strcspn(line, "\n"), line);
	if (file != NULL)
		fclose(file);
}

/*
 * What the threads of an engine that does not end wait for. Between the two looks at schedstat
 * (time on a core, time in which it waited for one) one sees who waits for a core.
 */
static void
rig_tell_stalled(const struct rig *rig)
{
	static const char *const files[] = { "comm", "wchan", "syscall", "stack", "schedstat" };
	char path[64], task[sizeof(path) + 256 + 1];
	const struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)rig->pid);
	for (int look = 0; look < 2; look++, sleep(1)) {
		dir = opendir(path);
		while (dir != NULL && (entry = readdir(dir)) != NULL) {
			if (entry->d_name[0] == '.')
				continue;
			snprintf(task, sizeof(task), "%s/%s", path, entry->d_name);
			printf("# look %d at thread %s\n", look, entry->d_name);
			for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
				rig_tell_file(task, files[i]);
		}
		if (dir != NULL)
			closedir(dir);
	}
	fflush(stdout);
}

int
rig_stop(struct rig *rig, int limit_ms)
{
	uint64_t deadline = now_ms() + (uint64_t)limit_ms;
	int status = 0;

	kill(rig->pid, SIGTERM);
	while (waitpid(rig->pid, &status, WNOHANG) == 0) {
		if (now_ms() > deadline) {
			rig_tell_stalled(rig);
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

#define HONEST_MEMORY (1u << 20)

static void
transfer(const struct rig *rig, int stop)
{
	struct node a, b;
	struct rcd_cq_slot slot;
	char byte;

	fcntl(stop, F_SETFL, O_NONBLOCK);
	node_open(&a, rig->socket, "roce0", RCD_QP_RC);
	node_open(&b, rig->socket, "roce1", RCD_QP_RC);
	node_memory(&a, HONEST_MEMORY);
	node_memory(&b, HONEST_MEMORY);
	node_join(&a, &b, RCD_QP_RC, 1);
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
