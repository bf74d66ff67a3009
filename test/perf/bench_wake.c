/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How long a message takes to an engine that may be asleep: from posting a SEND of 64 bytes at one
 * engine to its completion at the other, each after a pause. Prints the median and the 99th
 * percentile in microseconds; judges nothing.
 *
 *   bench_wake SOCKET_FROM DEVICE_FROM SOCKET_TO DEVICE_TO COUNT PAUSE_US
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

#define LEN     64
#define MESSAGE 4096

static double
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double
one_message(struct node *from, struct node *to, useconds_t pause_us)
{
	struct rcd_cq_slot slot;
	double begin, took;

	MUST(node_recv(to, 0, MESSAGE, 1) == 0);
	usleep(pause_us);
	begin = now_us();
	MUST(node_write(from, NULL, RCD_WR_SEND, 0, LEN, 1) == 0);
	MUST(node_wait(to, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	took = now_us() - begin;
	MUST(node_wait(from, &slot, FOREVER_MS) == RCD_WC_SUCCESS);
	return took;
}

int
main(int argc, char **argv)
{
	struct node from, to;
	double *took;
	long count;

	MUST(argc == 7);
	count = strtol(argv[5], NULL, 10);
	MUST(count > 0 && count < 1000000);
	took = calloc((size_t)count, sizeof(*took));
	MUST(took != NULL);
	node_open(&from, argv[1], argv[2], RCD_QP_RC);
	node_open(&to, argv[3], argv[4], RCD_QP_RC);
	node_memory(&from, MESSAGE);
	node_memory(&to, MESSAGE);
	node_join(&from, &to, RCD_QP_RC, 1);
	for (long i = 0; i < count; i++)
		took[i] = one_message(&from, &to, (useconds_t)strtol(argv[6], NULL, 10));
	qsort(took, (size_t)count, sizeof(*took), compare);
	printf("%.2f %.2f\n", took[count / 2], took[count * 99 / 100]);
	node_close(&from);
	node_close(&to);
	free(took);
	return 0;
}
