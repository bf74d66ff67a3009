/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the engine costs outside of transfers: an idle poll with few and with many clients, and
 * the registration of memory beside a memcpy of the same size. Prints figures; judges nothing.
 *
 *   ROCADED=path bench_engine
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "rcd_mr.h"
#include "rig.h"

#define CLIENTS 100
#define QPS     100
#define RUNS    9

static double
now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
median(double *values)
{
	qsort(values, RUNS, sizeof(values[0]), compare);
	return values[RUNS / 2];
}

/* Nanoseconds of a poll that finds nothing, from the engine's own count. */
static double
poll_ns(const struct rig *rig)
{
	double values[RUNS];

	for (int i = 0; i < RUNS; i++) {
		char *before = rig_admin(rig->socket, "engine");
		char *after;

		usleep(200000);
		after = rig_admin(rig->socket, "engine");
		values[i] =
			(double)(rig_number(after, "uptime_ns") - rig_number(before, "uptime_ns")) /
			(double)(rig_number(after, "polls") - rig_number(before, "polls"));
		free(before);
		free(after);
	}
	return median(values);
}

static void
idle_polls(const struct rig *rig)
{
	static struct node nodes[CLIENTS];
	struct rcd_cl_qp qp;
	double few, many;

	node_open(&nodes[0], rig->socket, "roce0", RCD_QP_RC);
	few = poll_ns(rig);
	for (int i = 1; i < CLIENTS; i++)
		node_open(&nodes[i], rig->socket, i % 2 ? "roce0" : "roce1", RCD_QP_RC);
	for (int i = 0; i < CLIENTS; i++)
		for (int k = 1; k < QPS; k++)
			node_qp(&nodes[i], RCD_QP_RC, &qp);
	many = poll_ns(rig);
	printf("idle poll, 1 client with 1 QP:             %7.1f ns\n", few);
	printf("idle poll, %d clients with %d QPs each:  %7.1f ns, %.2f times that\n", CLIENTS, QPS,
		many, many / few);
	for (int i = 0; i < CLIENTS; i++)
		node_close(&nodes[i]);
}

static void
registration(const struct rig *rig, uint64_t len)
{
	double reg[RUNS], again[RUNS], copy[RUNS];
	uint8_t *to = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct node node;

	MUST(to != MAP_FAILED);
	memset(to, 1, len);
	node_open(&node, rig->socket, "roce0", RCD_QP_RC);
	for (int i = 0; i < RUNS; i++) {
		uint8_t *from =
			mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct rcd_cl_mr_attr attr = { .pd = node.pd,
			.access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_REMOTE,
			.addr = from,
			.len = len,
			.start = (uintptr_t)from };
		struct rcd_cl_mr mr;
		double begin;

		MUST(from != MAP_FAILED);
		memset(from, i, len);
		begin = now_s();
		memcpy(to, from, len);
		copy[i] = now_s() - begin;
		begin = now_s();
		MUST(rcd_cl_mr_reg(&node.client, &attr, &mr) == 0);
		reg[i] = now_s() - begin;
		MUST(rcd_cl_mr_dereg(&node.client, &mr) == 0);
		begin = now_s();
		MUST(rcd_cl_mr_reg(&node.client, &attr, &mr) == 0);
		again[i] = now_s() - begin;
		MUST(rcd_cl_mr_dereg(&node.client, &mr) == 0);
		munmap(from, len);
	}
	munmap(to, len);
	node_close(&node);
	printf("register %8.2f MiB: %9.3f ms; again %7.3f ms; memcpy %9.3f ms\n",
		(double)len / (1 << 20), median(reg) * 1e3, median(again) * 1e3,
		median(copy) * 1e3);
}

int
main(void)
{
	char path[] = "/tmp/rcdbenchXXXXXX";
	const char *args[] = { "--embedded-wire", "--config", path, NULL };
	struct rig rig;
	int fd = mkstemp(path);

	MUST(fd >= 0 && write(fd, "[engine]\nidle = poll\n", 21) == 21);
	close(fd);
	rig_start(&rig, args);
	unlink(path);
	idle_polls(&rig);
	registration(&rig, 256 << 10);
	registration(&rig, 64 << 20);
	registration(&rig, 1 << 30);
	return rig_stop(&rig, 5000);
}
