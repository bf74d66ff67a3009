/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Who a client is, and what it may: its name for listings, and its capabilities. No more counts
 * than what it had when it connected: later its process may be another program, or its number
 * another process's.
 */
#include "rcd_engine_priv.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of a process, or of ourselves. @return bytes read, with a zero behind; 0: can't be read */
static size_t
read_file(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t len;
	int fd;

	if (pid == 0)
		snprintf(path, sizeof(path), "/proc/self/%s", name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, text, size - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	return len > 0 ? (size_t)len : 0;
}

/*
 * Whether its user namespace is ours: capabilities of another are none here. Where we may not see
 * which it is, the mapping of its users tells: nobody without privilege makes one like ours.
 */
static bool
same_user_namespace(pid_t pid)
{
	char path[64], ours_map[1024], theirs_map[1024];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (stat("/proc/self/ns/user", &ours) != 0)
		return false;
	if (stat(path, &theirs) == 0)
		return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
	return read_file(0, "uid_map", ours_map, sizeof(ours_map)) > 0 &&
		read_file(pid, "uid_map", theirs_map, sizeof(theirs_map)) > 0 &&
		strcmp(ours_map, theirs_map) == 0;
}

/* A line of /proc/PID/status. @return what is behind its name; NULL */
static const char *
line_of(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at != NULL && at[-1] == '\n' ? at + strlen(name) : NULL;
}

/*
 * What the process may. It may have run another program since it connected, one with more rights
 * than the user: that one's user differs from the one who connected, or the files of its /proc are
 * root's, since the kernel lets nobody look into it (its folder stays the user's, as everybody may
 * read that). In all such doubt it has no rights.
 */
static uint64_t
read_caps(pid_t pid, uid_t uid)
{
	char path[64], status[4096];
	const char *uids, *caps;
	unsigned long ids[4];
	struct stat stat_of;

	/* First what it may, then whose it is: one that gained rights in between is root's. */
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (pid <= 0 || read_file(pid, "status", status, sizeof(status)) == 0 ||
		stat(path, &stat_of) != 0 || stat_of.st_uid != uid || !same_user_namespace(pid))
		return 0;
	uids = line_of(status, "Uid:");
	caps = line_of(status, "CapEff:");
	if (uids == NULL || caps == NULL ||
		sscanf(uids, "%lu %lu %lu %lu", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return 0;
	for (int i = 0; i < 4; i++)
		if (ids[i] != uid)
			return 0;
	return strtoull(caps, NULL, 16);
}

/* Its name is its own choice: for listings and terminals it is made of printable ASCII. */
static void
read_comm(struct rcd_session *session)
{
	size_t len = read_file(session->pid, "comm", session->comm, sizeof(session->comm));

	if (session->pid <= 0)
		len = 0;
	for (size_t i = 0; i < len; i++)
		if (!isascii(session->comm[i]) || !isprint(session->comm[i]))
			session->comm[i] = '?';
	/* The line ends with a newline. */
	session->comm[len > 0 ? len - 1 : 0] = '\0';
}

void
rcd_cred_read(struct rcd_session *session)
{
	read_comm(session);
	session->caps = read_caps(session->pid, session->uid);
}

static const struct rcd_session *
via(const struct rcd_session *session)
{
	const struct rcd_session *connection = rcd_session_find(session->engine, session->via);

	return connection != NULL ? connection : session;
}

bool
rcd_cred_may(const struct rcd_session *session, enum rcd_cap cap)
{
	const struct rcd_session *asks = via(session);

	/* What it has given up since, it has not. */
	return asks->caps >> cap & 1 && read_caps(asks->pid, asks->uid) >> cap & 1;
}

bool
rcd_cred_same_process(const struct rcd_session *session, const struct rcd_session *context)
{
	const struct rcd_session *asks = via(session);
	const struct rcd_session *guest;

	if (asks == context || asks->host == context)
		return true;
	/* All processes that this one's PID namespace can't see have the number 0. */
	if (asks->pid <= 0)
		return false;
	if (asks->uid == context->uid && asks->pid == context->pid)
		return true;
	LIST_FOREACH(guest, &context->guests, guest_link)
	if (asks->uid == guest->uid && asks->pid == guest->pid)
		return true;
	return false;
}
