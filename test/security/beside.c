/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How an honest pair fares beside an attack: the median of its round trips while an attack goes on,
 * and in control runs, in turns. It is run by hand, on a machine that does nothing else: it prints
 * a table and judges nothing. doc/security.md has its figures.
 *
 *   beside [--rounds N] [--ms N] [--key LINE] [ATTACK...]
 *   beside [--rounds N] [--ms N] [--key LINE] --with COMMAND
 *
 * COMMAND runs again and again; ROCADE_SOCKET in its environment names the engine's socket. LINE is
 * of the engine's configuration, as "idle = sleep".
 *
 * The control run is no empty machine: a process computes there for as much of the time as the
 * attack and the control thread wanted to, in turns as long. What their processor time costs others
 * is the scheduler's affair, and any program costs the same; what is left of the ratio is what the
 * engine does for the attacker.
 *
 * Where the three run matters more than anything else, and a scheduler changes its mind. So each
 * way in which they lie on two cores is a row of its own: "apart" has the pair on the lcore's core
 * and the attacker on another, "near" the attacker on the lcore's core and the pair on another, and
 * "both" the two of them on a core without the lcore.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
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

/* Who shares the core of the lcore. */
static const struct place {
	const char *name;
	bool pair;
	bool attacker;
} places[] = { { "apart", true, false }, { "near", false, true }, { "both", false, false } };

#define PLACES (sizeof(places) / sizeof(places[0]))

static struct rig rig;
static int lcore_cpu = -1;
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
		MUST(node_wait(&here, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
		samples[count++] = (uint32_t)(now_ns() - began);
	}
	qsort(samples, count, sizeof(samples[0]), ascending_ns);
	*p99 = samples[(uint64_t)count * 99 / 100] / 1e3;
	return samples[count / 2] / 1e3;
}

/** What processes had of their cores. */
struct use {
	uint64_t busy_ns; /**< for how long they ran, or wanted to */
	uint64_t turns;
};

/* Adds a process, if it is of a group. */
static void
add_use(const char *pid, pid_t group, struct use *use)
{
	unsigned long long ran, waited, turns;
	char path[300];
	FILE *file;

	/* The control thread works for who attacks, and its time is as any program's. */
	if (strtol(pid, NULL, 10) != rig.pid && getpgid((pid_t)strtol(pid, NULL, 10)) != group)
		return;
	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	file = fopen(path, "r");
	if (file == NULL)
		return;
	if (fscanf(file, "%llu %llu %llu", &ran, &waited, &turns) == 3) {
		use->busy_ns += ran + waited;
		use->turns += turns;
	}
	fclose(file);
}

static struct use
use_of(pid_t group)
{
	struct use use = { .turns = 0 };
	DIR *dir = opendir("/proc");
	const struct dirent *entry;

	MUST(dir != NULL);
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			add_use(entry->d_name, group, &use);
	closedir(dir);
	return use;
}

/* The core that the engine's lcore is bound to. */
static int
find_lcore(void)
{
	char path[300], name[64] = "";
	const struct dirent *entry;
	int cpu = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)rig.pid);
	dir = opendir(path);
	MUST(dir != NULL);
	while (cpu < 0 && (entry = readdir(dir)) != NULL) {
		cpu_set_t set;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)rig.pid, entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL &&
			/* rte-worker- before DPDK 23.11, dpdk-worker since. */
			strstr(name, "-worker") != NULL &&
			sched_getaffinity(
				(pid_t)strtol(entry->d_name, NULL, 10), sizeof(set), &set) == 0 &&
			CPU_COUNT(&set) == 1)
			for (cpu = 0; !CPU_ISSET((size_t)cpu, &set);)
				cpu++;
		fclose(file);
	}
	closedir(dir);
	return cpu;
}

/* To the core of the lcore, or to the next one. */
static void
go_to(bool lcores)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)(lcores ? lcore_cpu : (lcore_cpu + 1) % cpus), &set);
	MUST(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/* Computes for a part of the time, in turns of so many us. */
static void
compute(double part, double turn_us)
{
	for (;;) {
		uint64_t began = now_ns();

		while (part > 0.9 || now_ns() - began < (uint64_t)(turn_us * 1e3)) {
		}
		usleep((useconds_t)(turn_us * (1 - part) / (part > 0.01 ? part : 0.01)));
	}
}

/* A process group of its own, which ends with us. */
static pid_t
begin(const struct attack *attack, const char *command, double part, double turn_us,
	const struct place *place)
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
		go_to(place->attacker);
		if (attack == NULL && command == NULL)
			compute(part, turn_us);
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
	MUST(rig_contexts(&rig, 2, FOREVER_MS));
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
compare(const struct attack *attack, const char *command, const struct place *place, int rounds,
	int ms)
{
	static struct run control, beside;
	double part = 0;
	long long most;

	go_to(place->pair);
	for (int i = 0; i < rounds; i++) {
		pid_t pid = begin(attack, command, 0, 0, place);
		struct use before = use_of(pid), after;
		double turn_us = 1000;

		beside.p50[i] = measure(ms, &beside.p99[i]);
		after = use_of(pid);
		end(pid);
		/* Processes that have ended are in neither. */
		part = 0;
		if (after.busy_ns > before.busy_ns && after.turns > before.turns) {
			part = (double)(after.busy_ns - before.busy_ns) / 1e6 / ms;
			turn_us = (double)(after.busy_ns - before.busy_ns) / 1e3 /
				(double)(after.turns - before.turns);
		} else if (after.busy_ns > before.busy_ns) {
			part = 1;
		}
		pid = begin(NULL, NULL, part < 1 ? part : 1, turn_us, place);
		control.p50[i] = measure(ms, &control.p99[i]);
		end(pid);
	}
	most = rig_engine(&rig, "longest_poll_work");
	printf("%-10s %-5s %8.1f %8.1f %6.2f   %9.1f %9.1f   %3.0f %% %6lld\n",
		attack != NULL ? attack->name : "command", place->name, median(control.p50, rounds),
		median(beside.p50, rounds),
		median(beside.p50, rounds) / median(control.p50, rounds),
		median(control.p99, rounds), median(beside.p99, rounds), part * 100, most);
	fflush(stdout);
}

static void
start_engine(const char *key)
{
	char path[] = "/tmp/rcdbeside-XXXXXX";
	const char *const args[] = { "--embedded-wire", "--config", path, NULL };
	int fd = mkstemp(path);

	MUST(dprintf(fd, "[engine]\nsocket_mode = 0666\n%s\n", key) > 0);
	rig_start(&rig, args);
	close(fd);
	unlink(path);
	lcore_cpu = find_lcore();
	MUST(lcore_cpu >= 0);
	setenv("ROCADE_SOCKET", rig.socket, 1);
	node_open(&here, rig.socket, "roce0", RCD_QP_RC);
	node_open(&there, rig.socket, "roce1", RCD_QP_RC);
	node_memory(&here, 4096);
	node_memory(&there, 4096);
	node_join(&here, &there, RCD_QP_RC, 1);
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
	const char *key = "";
	int rounds = 5, ms = 1000;
	int at = 1;

	for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
		if (strcmp(argv[at], "--rounds") == 0)
			rounds = (int)strtol(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--ms") == 0)
			ms = (int)strtol(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--with") == 0)
			command = argv[at + 1];
		else if (strcmp(argv[at], "--key") == 0)
			key = argv[at + 1];
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || ms < 1) {
		fprintf(stderr,
			"usage: beside [--rounds N] [--ms N] [--key LINE]"
			" [--with COMMAND | ATTACK...]\n");
		return 2;
	}
	samples = calloc(SAMPLES_MAX, sizeof(samples[0]));
	MUST(samples != NULL);
	start_engine(key);
	printf("%-10s %-5s %8s %8s %6s   %9s %9s   %5s %6s\n", "attack", "place", "control",
		"beside", "ratio", "p99", "p99", "busy", "work");
	for (size_t i = 0; command != NULL && i < PLACES; i++)
		compare(NULL, command, &places[i], rounds, ms);
	for (const struct attack *attack = attacks; command == NULL && attack->name != NULL;
		attack++)
		for (size_t i = 0; i < PLACES && wanted(attack->name, argc - at, argv + at); i++)
			compare(attack, NULL, &places[i], rounds, ms);
	node_close(&here);
	node_close(&there);
	return rig_stop(&rig, FOREVER_MS) == 0 ? 0 : 1;
}
