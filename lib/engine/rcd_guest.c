/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Contexts that several connections share: who has the descriptor of a segment may join. A host is
 * the connection that opened the device; guests joined. All of them see the same objects.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_closer.h"

int
rcd_guest_join(struct rcd_session *guest, int fd)
{
	struct rcd_session *session;
	struct stat given, segment;

	if (guest->host != NULL || guest->dev != NULL || guest->shm != NULL)
		return -EINVAL;
	/* Identifiers know their session: they could not follow it into the host's place. */
	if (guest->cma != NULL)
		return -EINVAL;
	if (!rcd_ufile_is_memory(fd) || fstat(fd, &given) != 0)
		return -EBADF;
	LIST_FOREACH(session, &guest->engine->sessions, link) {
		if (session->dev == NULL || fstat(session->segment.fd, &segment) != 0 ||
			segment.st_dev != given.st_dev || segment.st_ino != given.st_ino)
			continue;
		guest->host = session;
		LIST_INSERT_HEAD(&session->guests, guest, guest_link);
		return 0;
	}
	return -EBADF;
}

/* Its process is gone, and so is memory that is reached by copies. */
static void
drop_connection(struct rcd_session *session)
{
	rcd_closer_take_sock(session->engine->closer, session->sock, session->uid);
	if (session->events >= 0)
		close(session->events);
	session->events = -1;
	rcd_session_mem_break(session);
	rcd_session_park(session, false);
}

/* A guest's connection in the place of the host's. */
static void
take_place(struct rcd_session *host, struct rcd_session *guest)
{
	rcd_neigh_disown(guest);
	/* What the context has is the new one's from now on; short of memory, the old one's. */
	if (host->uid != guest->uid)
		rcd_quota_move(&host->quota, guest->uid);
	rcd_quota_leave(&guest->quota);
	drop_connection(host);
	host->sock = guest->sock;
	host->events = guest->events;
	host->serial = guest->serial;
	host->pid = guest->pid;
	host->uid = guest->uid;
	host->gid = guest->gid;
	host->caps = guest->caps;
	memcpy(host->comm, guest->comm, sizeof(host->comm));
	if (guest->parked) {
		host->parked_until_ns = guest->parked_until_ns;
		host->parked_msg = guest->parked_msg;
		rcd_session_park(guest, false);
		rcd_session_park(host, true);
	}
	for (int i = 0; i < RCD_COUNTER_COUNT; i++)
		rcd_counter_add(&host->counters, (enum rcd_counter)i,
			rcd_counter_get(&guest->counters, (enum rcd_counter)i));
	LIST_REMOVE(guest, guest_link);
	LIST_REMOVE(guest, link);
	host->engine->client_count--;
	free(guest);
}

bool
rcd_guest_leave(struct rcd_session *session)
{
	if (session->host != NULL) {
		LIST_REMOVE(session, guest_link);
		session->host = NULL;
		return false;
	}
	if (session->ended || LIST_EMPTY(&session->guests))
		return false;
	take_place(session, LIST_FIRST(&session->guests));
	return true;
}

void
rcd_guest_end_all(struct rcd_session *host)
{
	struct rcd_session *guest;

	while ((guest = LIST_FIRST(&host->guests)) != NULL) {
		LIST_REMOVE(guest, guest_link);
		guest->host = NULL;
		guest->ended = true;
		shutdown(guest->sock, SHUT_RDWR);
	}
}

void
rcd_guest_event(struct rcd_session *host, uint32_t type, uint32_t of, uint64_t cookie)
{
	struct rcd_session *guest;

	rcd_session_event(host, type, of, cookie);
	LIST_FOREACH(guest, &host->guests, guest_link)
		rcd_session_event(guest, type, of, cookie);
}
