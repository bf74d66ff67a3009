/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The order in which engines are looked for.
 */
#include "rcd_cl_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rcd_ctrl.h"

#define NAME_MAX_BYTES sizeof(((struct sockaddr_un *)NULL)->sun_path)

/* Whether a folder is this user's, with none of the rights in mask for others. */
static int
cl_place_check(const char *folder, mode_t mask)
{
	struct stat about;

	if (stat(folder, &about) != 0)
		return -errno;
	if (!S_ISDIR(about.st_mode))
		return -ENOTDIR;
	return about.st_uid == geteuid() && (about.st_mode & mask) == 0 ? 0 : -EACCES;
}

int
rcd_cl_place_own(char *path, size_t size)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char usual[32];
	size_t len;
	int err;

	if (getauxval(AT_SECURE) != 0)
		return -EACCES;
	if (runtime == NULL || runtime[0] == '\0') {
		snprintf(usual, sizeof(usual), "/run/user/%u", (unsigned int)geteuid());
		runtime = usual;
	}
	if (runtime[0] != '/')
		return -ENOENT;
	if (snprintf(path, size, "%s/" RCD_CTRL_SOCKET_OWN, runtime) >= (int)size)
		return -ENAMETOOLONG;
	/* Both folders, without what follows them. */
	len = strlen(runtime);
	path[len] = '\0';
	err = cl_place_check(path, S_IWGRP | S_IWOTH);
	path[len] = '/';
	if (err != 0)
		return err;
	*strrchr(path, '/') = '\0';
	err = cl_place_check(path, S_IRWXG | S_IRWXO);
	path[strlen(path)] = '/';
	return err;
}

static int
cl_place_try(int sock, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	do
		err = connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : -errno;
	while (err == -EINTR);
	return err;
}

/* Whether a connection leads to this user's engine or to root's: names lead elsewhere by now. */
static bool
cl_place_is_ours(int sock)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
		(peer.uid == geteuid() || peer.uid == 0);
}

/* On a socket of its own, as one that has met a stranger meets nobody else any more. */
static int
cl_place_try_own(int sock, const char *path)
{
	int fresh = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fresh < 0)
		return -errno;
	err = cl_place_try(fresh, path);
	if (err == 0 && !cl_place_is_ours(fresh))
		err = -EACCES;
	if (err == 0 && dup3(fresh, sock, O_CLOEXEC) < 0)
		err = -errno;
	close(fresh);
	return err;
}

int
rcd_cl_place_connect(int sock, const char *path)
{
	char own[NAME_MAX_BYTES];

	if (path == NULL)
		path = secure_getenv(RCD_CTRL_SOCKET_ENV);
	if (path != NULL && path[0] != '\0')
		return cl_place_try(sock, path);
	if (rcd_cl_place_own(own, sizeof(own)) == 0 && cl_place_try_own(sock, own) == 0)
		return 0;
	return cl_place_try(sock, RCD_CTRL_SOCKET);
}
