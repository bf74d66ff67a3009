/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How an honest pair fares beside an attack: the median of its round trips while an attack goes on,
 * and in control runs, in turns. It is run by hand, on a machine that does nothing else: it prints
 * a table and judges nothing. doc/security.md has its figures.
 *
 *   beside [--rounds N] [--ms N] [ATTACK...]
 *   beside [--rounds N] [--ms N] --with COMMAND
 *
 * COMMAND runs again and again; ROCADE_SOCKET in its environment names the engine's socket.
 *
 * The control run is no empty machine: a process computes there for as much of the time as the
 * attack did. What an attacker's own processor time costs others is the scheduler's affair, and any
 * program costs the same; what is left of the ratio is what the engine does for the attacker.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attacks.h"
#include "rig.h"

#define SAMPLES_MAX 2000000
#define ROUNDS_MAX  99
#define SLICE_US    10000

static struct rig rig;
static struct node here, there;
static uint32_t *samples;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int
ascending_ns(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Round trips for so long. @return their median, us */
static double
measure(int ms, double *p99)
{
	uint64_t end = now_ns() + (uint64_t)ms * 1000000u;
	uint32_t count = 0;

	while (now_ns() < end && count < SAMPLES_MAX) {
		struct rcd_cq_slot slot;
		uint64_t began = now_ns();

		MUST(node_write(&here, &there, RCD_WR_RDMA_WRITE, 0, 64, 1) == 0);
		MUST(node_wait(&here, &slot, 60000) == RCD_WC_SUCCESS);
		samples[count++] = (uint32_t)(now_ns() - began);
	}
	qsort(samples, count, sizeof(samples[0]), ascending_ns);
	*p99 = samples[count / 100 * 99] / 1e3;
	return samples[count / 2] / 1e3;
}

/* Clock ticks of a process when it is in a group: its own, and of children that have ended. */
static unsigned long
ticks_of(const char *pid, pid_t group)
{
	unsigned long user, sys, child_user, child_sys;
	char path[300], line[1024] = "";
	const char *at;
	int pgrp;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	at = fgets(line, sizeof(line), file) != NULL ? strrchr(line, ')') : NULL;
	fclose(file);
	if (at == NULL ||
		sscanf(at, ") %*c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &pgrp,
			&user, &sys, &child_user, &child_sys) != 5 ||
		pgrp != group)
		return 0;
	return user + sys + child_user + child_sys;
}

static double
cpu_seconds(pid_t group)
{
	unsigned long ticks = 0;
	DIR *dir = opendir("/proc");
	const struct dirent *entry;

	MUST(dir != NULL);
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			ticks += ticks_of(entry->d_name, group);
	closedir(dir);
	return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Computes for a part of the time. */
static void
compute(double part)
{
	for (;;) {
		uint64_t began = now_ns();

		while (part > 0.95 || now_ns() - began < (uint64_t)(part * SLICE_US * 1e3)) {
		}
		usleep((useconds_t)((1 - part) * SLICE_US));
	}
}

/* A process group of its own, which ends with us. */
static pid_t
begin(const struct attack *attack, const char *command, double part)
{
	int ready[2];
	pid_t pid;
	char byte;

	MUST(pipe(ready) == 0);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (pid == 0) {
		close(ready[0]);
		setpgid(0, 0);
		if (attack == NULL && command == NULL)
			compute(part);
		if (command != NULL) {
			int null = open("/dev/null", O_RDWR);

			dup2(null, 1);
			dup2(null, 2);
			execl("/bin/sh", "sh", "-c", "while :; do eval \"$0\"; done", command,
				NULL);
			_exit(127);
		}
		if (getuid() == 0)
			MUST(setgid(65534) == 0 && setuid(65534) == 0);
		attack->run(rig.socket, ready[1]);
		_exit(0);
	}
	close(ready[1]);
	/* An attack says when it goes on; the others begin at once. */
	if (attack != NULL)
		MUST(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	return pid;
}

static void
end(pid_t pid)
{
	kill(-pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* What it had goes. */
	MUST(rig_contexts(&rig, 2, 60000));
}

struct run {
	double p50[ROUNDS_MAX];
	double p99[ROUNDS_MAX];
};

static double
median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(values[0]), ascending);
	return values[count / 2];
}

static void
compare(const struct attack *attack, const char *command, int rounds, int ms)
{
	static struct run control, beside;
	double part = 0;
	long long most;

	for (int i = 0; i < rounds; i++) {
		double cpu;
		pid_t pid = begin(attack, command, 0);

		cpu = cpu_seconds(pid);
		beside.p50[i] = measure(ms, &beside.p99[i]);
		cpu = cpu_seconds(pid) - cpu;
		end(pid);
		part = cpu > 0 ? cpu * 1000 / ms : 0;
		pid = begin(NULL, NULL, part < 1 ? part : 1);
		control.p50[i] = measure(ms, &control.p99[i]);
		end(pid);
	}
	most = rig_engine(&rig, "longest_poll_work");
	printf("%-10s %8.1f %8.1f %6.2f   %9.1f %9.1f   %3.0f %% %6lld\n",
		attack != NULL ? attack->name : "command", median(control.p50, rounds),
		median(beside.p50, rounds),
		median(beside.p50, rounds) / median(control.p50, rounds),
		median(control.p99, rounds), median(beside.p99, rounds), part * 100, most);
	fflush(stdout);
}

static void
start_engine(void)
{
	char path[] = "/tmp/rcdbeside-XXXXXX";
	const char *const args[] = { "--embedded-wire", "--config", path, NULL };
	const char *const text = "[engine]\nsocket_mode = 0666\n";
	int fd = mkstemp(path);

	MUST(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	rig_start(&rig, args);
	close(fd);
	unlink(path);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	node_open(&here, rig.socket, "roce0", RCD_CTRL_QP_RC);
	node_open(&there, rig.socket, "roce1", RCD_CTRL_QP_RC);
	node_memory(&here, 4096);
	node_memory(&there, 4096);
	node_join(&here, &there, RCD_CTRL_QP_RC, 1);
}

static bool
wanted(const char *name, int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		if (strcmp(argv[i], name) == 0)
			return true;
	return argc == 0;
}

int
main(int argc, char **argv)
{
	const char *command = NULL;
	int rounds = 5, ms = 1000;
	int at = 1;

	for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
		if (strcmp(argv[at], "--rounds") == 0)
			rounds = (int)strtol(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--ms") == 0)
			ms = (int)strtol(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--with") == 0)
			command = argv[at + 1];
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || ms < 1) {
		fprintf(stderr,
			"usage: beside [--rounds N] [--ms N] [--with COMMAND | ATTACK...]\n");
		return 2;
	}
	samples = calloc(SAMPLES_MAX, sizeof(samples[0]));
	MUST(samples != NULL);
	start_engine();
	printf("%-10s %8s %8s %6s   %9s %9s   %5s %6s\n", "attack", "control", "beside", "ratio",
		"p99", "p99", "CPU", "work");
	if (command != NULL)
		compare(NULL, command, rounds, ms);
	for (const struct attack *attack = attacks; command == NULL && attack->name != NULL;
		attack++)
		if (wanted(attack->name, argc - at, argv + at))
			compare(attack, NULL, rounds, ms);
	node_close(&here);
	node_close(&there);
	return rig_stop(&rig, 10000) == 0 ? 0 : 1;
}
