/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who a client is, and what it may: its name for listings, and its capabilities. No more counts
 * than what it had when it connected: later its process may be another program, or its number
 * another process's.
 */
#include "rcd_cred.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_thread.h"

/** A user namespace maps 340 ranges at most, each a line of 33 bytes. */
#define MAP_BYTES 16384

/* A file of a process, or of ourselves. @return bytes read, with a zero behind; 0: can't be read */
static size_t
cred_read_file(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	size_t len = 0;
	ssize_t got;
	int fd;

	text[0] = '\0';
	if (pid == 0)
		snprintf(path, sizeof(path), "/proc/self/%s", name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* The kernel hands out a page at a time. */
	while ((got = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)got;
	close(fd);
	text[len] = '\0';
	return len;
}

/*
 * Whether its user namespace is ours: capabilities of another are none here. Where we may not see
 * which it is, the mapping of its users tells: nobody without privilege makes one like ours.
 */
static bool
cred_same_user_namespace(pid_t pid)
{
	char path[64], ours_map[MAP_BYTES], theirs_map[MAP_BYTES];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (stat("/proc/self/ns/user", &ours) != 0)
		return false;
	if (stat(path, &theirs) == 0)
		return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	return cred_read_file(0, "uid_map", ours_map, sizeof(ours_map)) > 0 &&
		cred_read_file(pid, "uid_map", theirs_map, sizeof(theirs_map)) > 0 &&
		strcmp(ours_map, theirs_map) == 0;
}

/*
 * What /proc/PID/status says: the four user numbers, and the capabilities in effect. The line of
 * groups before these may be of any length, up to 65536 numbers.
 */
static bool
cred_read_status(pid_t pid, unsigned long uids[4], uint64_t *caps)
{
	bool begins = true, has_uids = false, has_caps = false;
	char path[64], part[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (fgets(part, sizeof(part), file) != NULL) {
		bool ends = strchr(part, '\n') != NULL;

		/* No line that matters is longer than a part. */
		if (begins && ends && strncmp(part, "Uid:", 4) == 0) {
			has_uids = sscanf(part + 4, "%lu %lu %lu %lu", &uids[0], &uids[1], &uids[2],
					   &uids[3]) == 4;
		} else if (begins && ends && strncmp(part, "CapEff:", 7) == 0) {
			*caps = strtoull(part + 7, NULL, 16);
			has_caps = true;
		}
		begins = ends;
	}
	fclose(file);
	return has_uids && has_caps;
}

/*
 * What the process may. It may have run another program since it connected, one with more rights
 * than the user: that one's user differs from the one who connected, or the files of its /proc are
 * root's, since the kernel lets nobody look into it (its folder stays the user's, as everybody may
 * read that). In all such doubt it has no rights.
 */
static uint64_t
cred_read_caps(pid_t pid, uid_t uid)
{
	unsigned long ids[4];
	struct stat stat_of;
	char path[64];
	uint64_t caps = 0;

	/* First what it may, then whose it is: one that gained rights in between is root's. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (pid <= 0 || !cred_read_status(pid, ids, &caps) || stat(path, &stat_of) != 0 ||
		stat_of.st_uid != uid || !cred_same_user_namespace(pid))
		return 0;
	for (int i = 0; i < 4; i++)
		if (ids[i] != uid)
			return 0;
	return caps;
}

/* Its name is its own choice: for listings and terminals it is made of printable ASCII. */
static void
cred_read_comm(struct rcd_conn *conn)
{
	size_t len = cred_read_file(conn->pid, "comm", conn->comm, sizeof(conn->comm));

	if (conn->pid <= 0)
		len = 0;
	for (size_t i = 0; i < len; i++)
		if (!isascii(conn->comm[i]) || !isprint(conn->comm[i]))
			conn->comm[i] = '?';
	/* The line ends with a newline. */
	conn->comm[len > 0 ? len - 1 : 0] = '\0';
}

void
rcd_cred_read(struct rcd_conn *conn)
{
	RCD_ON_CONTROL();
	cred_read_comm(conn);
	conn->caps = cred_read_caps(conn->pid, conn->uid);
}

bool
rcd_cred_may(const struct rcd_conn *conn, enum rcd_cap cap)
{
	RCD_ON_CONTROL();
	/* What it has given up since, it has not. */
	return conn->caps >> cap & 1 && cred_read_caps(conn->pid, conn->uid) >> cap & 1;
}

bool
rcd_cred_same_process(const struct rcd_conn *conn, const struct rcd_context *context)
{
	const struct rcd_conn *user;

	RCD_ON_CONTROL();
	if (conn->context == context)
		return true;
	/* All processes that this one's PID namespace can't see have the number 0. */
	if (conn->pid <= 0)
		return false;
	LIST_FOREACH(user, &context->conns, context_link)
		if (conn->uid == user->uid && conn->pid == user->pid)
			return true;
	return false;
}
