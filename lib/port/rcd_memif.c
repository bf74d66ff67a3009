/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Care of memif's driver: sockets that it forgets.
 */
#include "rcd_memif.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_alarm.h>
#include <rte_common.h>
#include <rte_kvargs.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rcd_thread.h"

#define DRIVER         "net_memif"
#define SOCKET_DEFAULT "/run/memif.sock"
#define FENCE_SECONDS  2 /* that the interrupt thread may take for one round */

/* What a forgotten listening socket becomes: nobody writes to it. Once made it stays. */
static int never_fd = -1;

/* Value of a key; what the driver has without it. */
static const char *
memif_value(const struct rte_kvargs *args, const char *key, const char *without)
{
	const char *value = rte_kvargs_get(args, key);

	return value != NULL ? value : without;
}

/* As the driver reads it; master is its old name for a server. */
static bool
memif_listens(const struct rte_kvargs *args)
{
	const char *role = memif_value(args, "role", "client");

	return strstr(role, "server") != NULL || strstr(role, "master") != NULL;
}

int
rcd_memif_socket(const char *devargs, char *path, size_t *len)
{
	const char *rest = strchr(devargs, ',');
	bool abstract, listens;
	struct rte_kvargs *args;
	size_t count = SIZE_MAX;

	RCD_ON_CONTROL();
	if (strncmp(devargs, DRIVER, strlen(DRIVER)) != 0 || rest == NULL)
		return -ENOENT;
	args = rte_kvargs_parse(rest + 1, NULL);
	if (args == NULL)
		return -EINVAL;
	listens = memif_listens(args);
	abstract = strstr(memif_value(args, "socket-abstract", "yes"), "yes") != NULL;
	if (listens) {
		const char *name = memif_value(args, "socket", SOCKET_DEFAULT);

		count = strlen(name) + abstract;
		if (count < *len) {
			path[0] = '\0';
			memcpy(path + abstract, name, count - abstract + 1);
		}
	}
	rte_kvargs_free(args);
	if (!listens)
		return -ENOENT;
	if (count >= *len)
		return -EINVAL;
	*len = count;
	return 0;
}

/* Whether a descriptor is a socket of this name: it listens there, or somebody connected to it. */
static bool
memif_fd_is_at(int fd, const char *path, size_t len, bool *listens)
{
	struct sockaddr_un addr;
	socklen_t addr_len = sizeof(addr);
	int value = 0;
	socklen_t value_len = sizeof(value);

	memset(&addr, 0, sizeof(addr));
	if (getsockname(fd, (struct sockaddr *)&addr, &addr_len) != 0 ||
		addr.sun_family != AF_UNIX || len > sizeof(addr.sun_path) ||
		memcmp(addr.sun_path, path, len) != 0 ||
		(len < sizeof(addr.sun_path) && addr.sun_path[len] != '\0'))
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &value_len) != 0)
		return false;
	*listens = value != 0;
	return true;
}

static void
memif_passed(void *arg)
{
	sem_post(arg);
}

/* Wait until the interrupt thread has come to an end with all that it had begun. */
static void
memif_fence(void)
{
	struct timespec until;
	sem_t passed;

	sem_init(&passed, 0, 0);
	/* Alarms are its events like any others. One may come before another of its round. */
	for (int i = 0; i < 2; i++) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += FENCE_SECONDS;
		if (rte_eal_alarm_set(1, memif_passed, &passed) != 0)
			break;
		while (sem_timedwait(&passed, &until) != 0 && errno == EINTR) {
			/* A signal. */
		}
	}
	/* It waits for one that runs. */
	rte_eal_alarm_cancel(memif_passed, &passed);
	sem_destroy(&passed);
}

/* A descriptor of the process, if it is one of the socket's. */
static void
memif_deafen_fd(int fd, const char *path, size_t len)
{
	bool listens;

	if (!memif_fd_is_at(fd, path, len, &listens))
		return;
	/* The driver ends a channel that it can't read from. */
	if (!listens || dup3(never_fd, fd, O_CLOEXEC) < 0)
		shutdown(fd, SHUT_RDWR);
}

void
rcd_memif_deafen(const char *path, size_t len)
{
	RCD_ON_CONTROL();
	/* Nobody can connect any more, and who has connected before the first round is found. */
	for (int round = 0; round < 2; round++) {
		DIR *dir = opendir("/proc/self/fd");
		const struct dirent *entry;

		while (dir != NULL && (entry = readdir(dir)) != NULL)
			if (entry->d_name[0] != '.')
				memif_deafen_fd((int)strtol(entry->d_name, NULL, 10), path, len);
		if (dir != NULL)
			closedir(dir);
		memif_fence();
	}
}

void
rcd_memif_prepare(const char *path, size_t len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat status;
	int sock;

	RCD_ON_CONTROL();
	if (never_fd < 0)
		never_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (len == 0 || path[0] == '\0' || len >= sizeof(addr.sun_path) ||
		lstat(path, &status) != 0 || !S_ISSOCK(status.st_mode))
		return;
	memcpy(addr.sun_path, path, len);
	/*
	 * Not of the listener's type: where somebody listens the answer is EPROTOTYPE, and nobody
	 * is disturbed. The driver ends its process for a client that connects and is gone again.
	 */
	sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return;
	if (connect(sock, (const struct sockaddr *)&addr, sizeof(addr)) != 0 &&
		errno == ECONNREFUSED)
		unlink(path);
	close(sock);
}
