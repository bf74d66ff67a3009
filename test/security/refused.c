/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What EAL loads like a driver (-d): makes system calls that the daemon does not, as a driver of
 * somebody's could, until one is refused, and says so.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 10000000

static void *
call(void *arg)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };

	(void)arg;
	while (syscall(SYS_getpgid, 0) > 0)
		nanosleep(&nap, NULL);
	fprintf(stderr, "getpgid fails with %s\n", errno == ENOSYS ? "ENOSYS" : "something else");
	return NULL;
}

__attribute__((constructor)) static void
begin(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, call, NULL) == 0)
		pthread_detach(thread);
}
