/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Waiting for many: rpoll() and rselect(), of sockets and of other files together.
 */
#include "rcd_ds.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SPIN_LOOKS 32 /**< at sockets before a thread sleeps, though once at each of them */

/** What is polled for one of the caller's entries. */
struct entry {
	struct rcd_rs *rs; /**< NULL: another file */
	struct rcd_rs_watch watch;
	bool watched;
};

/** A call. */
struct rs_poll {
	struct pollfd *fds; /**< the caller's */
	uint32_t count;
	struct entry *entries;
	struct pollfd *files; /**< two for each entry, and the bell */
	int bell;
	bool mixed; /**< other files are among them */
};

/* What poll() would say of a socket. Socket locked, and progress made. */
static short
rs_poll_revents(const struct rcd_rs *rs, short events)
{
	short got = 0;

	if (rs->ds != NULL)
		return rcd_ds_revents(rs, events);
	switch (rs->state) {
	case RCD_RS_NEW:
	case RCD_RS_BOUND:
		return POLLHUP | (events & POLLOUT);
	case RCD_RS_LISTENING:
		return rs->pending_count > 0 ? events & (POLLIN | POLLRDNORM) : 0;
	case RCD_RS_RESOLVING:
	case RCD_RS_ROUTING:
	case RCD_RS_CONNECTING:
	case RCD_RS_ACCEPTING:
		return 0;
	case RCD_RS_CONNECTED:
		break;
	case RCD_RS_DISCONNECTED:
		/* Who hangs up at once would lose what there is. */
		got = (rs->held == 0 ? POLLHUP : 0) | (events & (POLLOUT | POLLWRNORM));
		break;
	case RCD_RS_FAILED:
		got = POLLERR | POLLHUP | (events & (POLLOUT | POLLWRNORM));
		break;
	case RCD_RS_CLOSED:
		return POLLNVAL;
	}
	if (rs->held > 0 || !rs->readable)
		got |= events & (POLLIN | POLLRDNORM);
	if (!rs->readable)
		got |= events & POLLRDHUP;
	if (rcd_rs_can_send(rs) || !rs->writable)
		got |= events & (POLLOUT | POLLWRNORM);
	return got;
}

static void
rs_poll_fini(struct rs_poll *call)
{
	for (uint32_t i = 0; i < call->count && call->entries != NULL; i++)
		if (call->entries[i].rs != NULL)
			rcd_rs_put(call->entries[i].rs);
	free(call->entries);
	free(call->files);
	if (call->bell >= 0)
		close(call->bell);
}

static int
rs_poll_init(struct rs_poll *call)
{
	call->entries = calloc(call->count + 1u, sizeof(call->entries[0]));
	call->files = calloc(2u * call->count + 1, sizeof(call->files[0]));
	if (call->entries == NULL || call->files == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < call->count; i++) {
		struct rcd_rs *rs = rcd_rs_get(call->fds[i].fd);

		call->entries[i].rs = rs;
		call->files[2 * i + 1].fd = -1;
		if (rs == NULL) {
			call->files[2 * i] = call->fds[i];
			call->mixed = call->mixed || call->fds[i].fd >= 0;
		}
	}
	return 0;
}

/* Look at all sockets. @return how many are ready */
static uint32_t
rs_poll_look(struct rs_poll *call, bool watch)
{
	uint32_t ready = 0;

	for (uint32_t i = 0; i < call->count; i++) {
		struct entry *entry = &call->entries[i];
		struct rcd_rs *rs = entry->rs;

		call->fds[i].revents = 0;
		if (rs == NULL)
			continue;
		pthread_mutex_lock(&rs->lock);
		if (watch && !entry->watched) {
			entry->watch.bell = call->bell;
			LIST_INSERT_HEAD(&rs->watches, &entry->watch, link);
			entry->watched = true;
			rcd_rs_arm_all(rs);
		}
		rcd_rs_progress(rs, watch ? &entry->watch : NULL);
		call->fds[i].revents = rs_poll_revents(rs, call->fds[i].events);
		rcd_rs_files(rs, &call->files[2 * i]);
		pthread_mutex_unlock(&rs->lock);
		ready += call->fds[i].revents != 0;
	}
	return ready;
}

/* Nobody watches any more; what the engine told is taken. */
static void
rs_poll_unwatch(struct rs_poll *call)
{
	for (uint32_t i = 0; i < call->count; i++) {
		struct entry *entry = &call->entries[i];

		if (!entry->watched)
			continue;
		pthread_mutex_lock(&entry->rs->lock);
		LIST_REMOVE(&entry->watch, link);
		entry->watched = false;
		if (call->files[2 * i].revents)
			entry->rs->channel_told = true;
		if (call->files[2 * i + 1].revents)
			rcd_rs_disarm(entry->rs);
		pthread_mutex_unlock(&entry->rs->lock);
	}
}

/* Ask the kernel, of other files and for sleeping. @return other files that are ready; -errno */
static int
rs_poll_files(struct rs_poll *call, int timeout_ms)
{
	struct pollfd *bell = &call->files[2 * call->count];
	int ready = 0;
	int got;

	*bell = (struct pollfd){ .fd = call->bell, .events = POLLIN };
	got = poll(call->files, 2 * call->count + 1, timeout_ms);
	if (got < 0)
		return -errno;
	if (bell->revents) {
		eventfd_t rings;

		eventfd_read(call->bell, &rings);
	}
	for (uint32_t i = 0; i < call->count; i++)
		if (call->entries[i].rs == NULL) {
			call->fds[i].revents = call->files[2 * i].revents;
			ready += call->fds[i].revents != 0;
		}
	return ready;
}

/* One turn with sleep. @return entries that are ready; 0; -errno */
static int
rs_poll_sleep(struct rs_poll *call, int timeout_ms)
{
	uint32_t ready;
	int files;

	if (call->bell < 0)
		call->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ready = rs_poll_look(call, true);
	files = rs_poll_files(call, ready > 0 ? 0 : rcd_rs_nap_ms(call->bell, timeout_ms));
	rs_poll_unwatch(call);
	return files < 0 ? files : (int)ready + files;
}

static int
rs_poll_run(struct rs_poll *call, int timeout_ms)
{
	int64_t end_ms = rcd_rs_now_ms() + timeout_ms;
	int left_ms = timeout_ms;
	int ready;

	for (uint32_t looks = 0; looks < SPIN_LOOKS; looks += call->count + 1) {
		ready = (int)rs_poll_look(call, false);
		if (call->mixed && (ready > 0 || timeout_ms == 0)) {
			int files = rs_poll_files(call, 0);

			if (files < 0)
				return files;
			ready += files;
		}
		if (ready > 0 || timeout_ms == 0)
			return ready;
	}
	for (;;) {
		ready = rs_poll_sleep(call, left_ms);
		if (ready != 0 || left_ms == 0)
			return ready;
		if (timeout_ms > 0)
			left_ms = rcd_rs_left_ms(end_ms);
	}
}

int
rpoll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct rs_poll call = { .fds = fds, .count = (uint32_t)count, .bell = -1 };
	int kept = errno;
	int ret;

	if (count > INT_MAX / 4)
		return (int)rcd_rs_ret(-EINVAL);
	ret = rs_poll_init(&call);
	if (ret == 0)
		ret = rs_poll_run(&call, timeout_ms < 0 ? -1 : timeout_ms);
	rs_poll_fini(&call);
	errno = kept;
	return (int)rcd_rs_ret(ret);
}

static bool
rs_poll_has(int fd, const fd_set *set)
{
	return set != NULL && FD_ISSET(fd, set);
}

/* What the kernel's select() takes for readable, writable and exceptional. */
static const short select_reads = POLLIN | POLLHUP | POLLERR;
static const short select_writes = POLLOUT | POLLERR;
static const short select_excepts = POLLPRI;

/* @return how many bits are set */
static int
rs_poll_to_set(const struct pollfd *fd, short wanted, short events, fd_set *set)
{
	if (set == NULL || !(fd->events & wanted) || !(fd->revents & events))
		return 0;
	FD_SET(fd->fd, set);
	return 1;
}

int
rselect(int count, fd_set *reads, fd_set *writes, fd_set *excepts, struct timeval *timeout)
{
	int64_t timeout_ms = -1;
	struct pollfd *fds;
	uint32_t used = 0;
	int bits = 0;
	int ret;

	if (count < 0 || count > FD_SETSIZE ||
		(timeout != NULL && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return (int)rcd_rs_ret(-EINVAL);
	if (timeout != NULL)
		timeout_ms = timeout->tv_sec > INT_MAX / 1000 - 1
			? INT_MAX
			: (int64_t)timeout->tv_sec * 1000 + timeout->tv_usec / 1000 +
				(timeout->tv_usec % 1000 != 0);
	fds = calloc((size_t)count + 1, sizeof(fds[0]));
	if (fds == NULL)
		return (int)rcd_rs_ret(-ENOMEM);
	for (int fd = 0; fd < count; fd++) {
		short events = 0;

		events |= rs_poll_has(fd, reads) ? POLLIN : 0;
		events |= rs_poll_has(fd, writes) ? POLLOUT : 0;
		events |= rs_poll_has(fd, excepts) ? POLLPRI : 0;
		if (events != 0)
			fds[used++] = (struct pollfd){ .fd = fd, .events = events };
	}
	ret = rpoll(fds, used, timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms);
	for (uint32_t i = 0; i < used && ret > 0; i++)
		if (fds[i].revents & POLLNVAL) {
			errno = EBADF;
			ret = -1;
		}
	if (ret < 0) {
		free(fds);
		return -1;
	}
	if (reads != NULL)
		FD_ZERO(reads);
	if (writes != NULL)
		FD_ZERO(writes);
	if (excepts != NULL)
		FD_ZERO(excepts);
	for (uint32_t i = 0; i < used && ret > 0; i++) {
		bits += rs_poll_to_set(&fds[i], POLLIN, select_reads, reads);
		bits += rs_poll_to_set(&fds[i], POLLOUT, select_writes, writes);
		bits += rs_poll_to_set(&fds[i], POLLPRI, select_excepts, excepts);
	}
	free(fds);
	return bits;
}
