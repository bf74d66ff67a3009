/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The segment of a session, which its client maps too: its making, and parts of it for queues.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <numa.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rcd_guard.h"

#define PAGE      4096u
#define HUGE_PAGE ((uint64_t)2 << 20)

/* Take from a list the first place of so many bytes. @return its offset, or UINT64_MAX */
static uint64_t
take(struct rcd_extents *extents, uint64_t bytes)
{
	for (uint32_t i = 0; i < extents->count; i++) {
		struct rcd_extent *extent = &extents->list[i];
		uint64_t start = extent->start;

		if (extent->len < bytes)
			continue;
		extent->start += bytes;
		extent->len -= bytes;
		if (extent->len == 0)
			memmove(extent, extent + 1, (--extents->count - i) * sizeof(*extent));
		return start;
	}
	return UINT64_MAX;
}

static void
give(struct rcd_extents *extents, uint64_t offset, uint64_t bytes)
{
	struct rcd_extent *list = extents->list;
	uint32_t i = 0;

	while (i < extents->count && list[i].start < offset)
		i++;
	if (i > 0 && list[i - 1].start + list[i - 1].len == offset) {
		list[i - 1].len += bytes;
		if (i < extents->count && offset + bytes == list[i].start) {
			list[i - 1].len += list[i].len;
			memmove(&list[i], &list[i + 1], (--extents->count - i) * sizeof(list[0]));
		}
		return;
	}
	if (i < extents->count && offset + bytes == list[i].start) {
		list[i].start = offset;
		list[i].len += bytes;
		return;
	}
	/* There is room for one hole behind each object that the quotas allow. */
	memmove(&list[i + 1], &list[i], (extents->count++ - i) * sizeof(list[0]));
	list[i] = (struct rcd_extent){ offset, bytes };
}

/* Queues come into hugepages, or leave: the last one takes the page along. */
static void
use_hugepages(struct rcd_session *session, uint64_t offset, uint64_t bytes, int by)
{
	uint64_t first = (offset - session->seg_bytes) / HUGE_PAGE;
	uint64_t last = (offset - session->seg_bytes + bytes - 1) / HUGE_PAGE;

	for (uint64_t i = first; i <= last; i++) {
		session->huge_users[i] += (uint32_t)by;
		if (session->huge_users[i] == 0)
			fallocate(session->huge_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)(i * HUGE_PAGE), (off_t)HUGE_PAGE);
	}
}

/*
 * A part for a queue: in hugepages if that may be, else in ordinary ones. Pages are taken as it is
 * cleared.
 */
static int
take_extent(struct rcd_session *session, uint64_t bytes, bool huge, uint64_t *offset)
{
	int err = rcd_quota_charge(&session->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);

	if (err != 0)
		return err;
	*offset = huge ? take(&session->huge_free, bytes) : UINT64_MAX;
	if (*offset != UINT64_MAX)
		use_hugepages(session, *offset, bytes, 1);
	else
		*offset = take(&session->small_free, bytes);
	if (*offset == UINT64_MAX) {
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);
		return -ENOMEM;
	}
	session->queue_bytes += bytes;
	return 0;
}

/* Memory that is not there is found out here, not by a fault on an lcore. */
static int
back(const struct rcd_session *session, uint64_t at, uint64_t bytes)
{
	uint64_t first = (at - session->seg_bytes) / HUGE_PAGE;
	uint64_t last = (at - session->seg_bytes + bytes - 1) / HUGE_PAGE;

	if (at < session->seg_bytes)
		return fallocate(session->seg_fd, 0, (off_t)at, (off_t)bytes);
	return fallocate(session->huge_fd, 0, (off_t)(first * HUGE_PAGE),
		(off_t)((last - first + 1) * HUGE_PAGE));
}

/* @return 0; -EINPROGRESS: there is more; -ENOMEM */
static int
clear_some(struct rcd_session *session, struct rcd_clearing *clearing)
{
	uint64_t at = clearing->offset + clearing->done;
	uint64_t bytes = clearing->bytes - clearing->done;

	if (bytes > RCD_ROUND_SLICE * PAGE)
		bytes = RCD_ROUND_SLICE * PAGE;
	if (back(session, at, bytes) != 0)
		return -ENOMEM;
	memset((uint8_t *)session->shm + at, 0, bytes);
	session->engine->work += (uint32_t)(bytes / PAGE);
	clearing->done += bytes;
	return clearing->done < clearing->bytes ? -EINPROGRESS : 0;
}

static int
begin(struct rcd_session *session, uint64_t bytes, bool huge)
{
	struct rcd_clearing *clearing = &session->clearing;
	int err = take_extent(session, bytes, huge, &clearing->offset);

	if (err != 0)
		return err;
	clearing->bytes = bytes;
	clearing->done = 0;
	clearing->via = session->via;
	return 0;
}

int
rcd_segment_alloc(struct rcd_session *session, uint64_t bytes, uint64_t *offset)
{
	struct rcd_clearing *clearing = &session->clearing;
	int err = 0;

	bytes = (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	/* One at a time: another connection's comes first. */
	if (clearing->bytes != 0 && clearing->via != session->via)
		return -EINPROGRESS;
	if (clearing->bytes != bytes) {
		rcd_segment_settle(session, session->via);
		err = begin(session, bytes, true);
		if (err != 0)
			return err;
	}
	err = clear_some(session, clearing);
	if (err == -ENOMEM && clearing->offset >= session->seg_bytes) {
		/* Others have the hugepages by now: then it lies in ordinary ones. */
		rcd_segment_settle(session, session->via);
		err = begin(session, bytes, false);
		if (err != 0)
			return err;
		err = clear_some(session, clearing);
	}
	if (err == 0) {
		*offset = clearing->offset;
		clearing->bytes = 0;
	} else if (err != -EINPROGRESS) {
		rcd_segment_settle(session, session->via);
	}
	return err;
}

void
rcd_segment_settle(struct rcd_session *session, uint32_t via)
{
	struct rcd_clearing *clearing = &session->clearing;

	if (clearing->bytes == 0 || clearing->via != via)
		return;
	rcd_segment_free(session, clearing->offset, clearing->bytes);
	clearing->bytes = 0;
}

void
rcd_segment_free(struct rcd_session *session, uint64_t offset, uint64_t bytes)
{
	bytes = (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	session->queue_bytes -= bytes;
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);
	if (offset >= session->seg_bytes) {
		use_hugepages(session, offset, bytes, -1);
		give(&session->huge_free, offset, bytes);
		return;
	}
	fallocate(session->seg_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		(off_t)bytes);
	give(&session->small_free, offset, bytes);
}

/* A sealed memfd of this kind. @return descriptor or -errno */
static int
make_memfd(uint64_t bytes, unsigned int flags)
{
	int fd = memfd_create("rocade-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	int err;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes) == 0 &&
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		return fd;
	err = -errno;
	close(fd);
	return err;
}

static void
give_up_hugepages(struct rcd_session *session, uint64_t pages)
{
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_HUGEPAGES, pages);
	if (session->huge_fd >= 0)
		close(session->huge_fd);
	free(session->huge_users);
	session->huge_fd = -1;
	session->huge_users = NULL;
}

/*
 * Hugepages of a session are counted when it opens, all that its file has room for: a client with
 * its descriptor could take them without asking. They are taken one by one, as its queues grow.
 */
static uint64_t
charge_hugepages(struct rcd_session *session)
{
	uint64_t pages = session->engine->conf.quota.hugepages;

	/* Without them it has ordinary ones: nothing is refused. */
	if (pages == 0 || !rcd_quota_fits(&session->quota, RCD_RESOURCE_HUGEPAGES, pages) ||
		rcd_quota_charge(&session->quota, RCD_RESOURCE_HUGEPAGES, pages) != 0)
		return 0;
	session->huge_fd = make_memfd(pages * HUGE_PAGE, MFD_HUGETLB | MFD_HUGE_2MB);
	session->huge_users = calloc(pages, sizeof(session->huge_users[0]));
	if (session->huge_fd >= 0 && session->huge_users != NULL)
		return pages * HUGE_PAGE;
	give_up_hugepages(session, pages);
	return 0;
}

/* Map the file of small pages, and that of hugepages behind it. @return 0 or -errno */
static int
map_segment(struct rcd_session *session, uint8_t *addr)
{
	const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;

	session->seg_fd = make_memfd(session->seg_bytes, 0);
	if (session->seg_fd < 0)
		return session->seg_fd;
	if (mmap(addr, session->seg_bytes, PROT_READ | PROT_WRITE, flags, session->seg_fd, 0) ==
		MAP_FAILED)
		return -errno;
	madvise(addr, session->seg_bytes, MADV_HUGEPAGE);
	if (session->huge_bytes > 0 &&
		mmap(addr + session->seg_bytes, session->huge_bytes, PROT_READ | PROT_WRITE, flags,
			session->huge_fd, 0) == MAP_FAILED)
		return -errno;
	if (numa_available() >= 0 && numa_max_node() > 0)
		numa_tonode_memory(
			addr, session->seg_bytes + session->huge_bytes, session->lcore->socket_id);
	return 0;
}

/* Lists of what is free, with room for a hole behind each object. @return 0 or -ENOMEM */
static int
make_lists(struct rcd_session *session)
{
	const struct rcd_quota *quota = &session->engine->conf.quota;
	size_t room = 2 + quota->qps + quota->cqs + quota->srqs;

	session->small_free.list = malloc(room * sizeof(struct rcd_extent));
	session->huge_free.list = malloc(room * sizeof(struct rcd_extent));
	if (session->small_free.list == NULL || session->huge_free.list == NULL)
		return -ENOMEM;
	give(&session->small_free, PAGE, session->seg_bytes - PAGE);
	if (session->huge_bytes > 0)
		give(&session->huge_free, session->seg_bytes, session->huge_bytes);
	return 0;
}

int
rcd_segment_make(struct rcd_session *session)
{
	uint64_t bytes =
		(session->engine->conf.quota.queue_bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	uint64_t huge = charge_hugepages(session);
	int err = rcd_quota_charge(&session->quota, RCD_RESOURCE_WINDOW, bytes + huge);
	void *addr = NULL;

	if (err == 0)
		addr = rcd_guard_reserve(RCD_GUARD_SHARED, bytes + huge);
	if (addr == NULL) {
		if (err == 0)
			rcd_quota_uncharge(&session->quota, RCD_RESOURCE_WINDOW, bytes + huge);
		give_up_hugepages(session, huge / HUGE_PAGE);
		return err != 0 ? err : -ENOMEM;
	}
	rcd_guard_cover(addr, addr, bytes + huge);
	session->shm = addr;
	session->seg_bytes = bytes;
	session->huge_bytes = huge;
	err = map_segment(session, addr);
	if (err == 0)
		err = make_lists(session);
	if (err != 0)
		return err;
	if (fallocate(session->seg_fd, 0, 0, PAGE) != 0)
		return -ENOMEM;
	memset(session->shm, 0, sizeof(*session->shm));
	session->shm->magic = RCD_SHM_MAGIC;
	session->shm->abi = RCD_SHM_ABI;
	session->shm->size = bytes;
	session->shm->generation = session->engine->generation;
	session->shm->state = RCD_SHM_LIVE;
	session->segment_made = true;
	return 0;
}

/*
 * Pages that nobody is charged for any more are freed, so many bytes from the start: a client that
 * has kept the descriptor would keep them. What it writes there from now on is its own.
 */
static void
close_file(int fd, uint64_t bytes)
{
	if (fd < 0)
		return;
	if (bytes > 0)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
	close(fd);
}

void
rcd_segment_end(struct rcd_session *session)
{
	if (session->shm != NULL) {
		if (session->segment_made)
			__atomic_store_n(&session->shm->state, RCD_SHM_GONE, __ATOMIC_RELAXED);
		rcd_guard_release(session->shm, session->seg_bytes + session->huge_bytes);
	}
	free(session->small_free.list);
	free(session->huge_free.list);
	free(session->huge_users);
	close_file(session->seg_fd, session->pages_go ? session->seg_bytes : 0);
	close_file(session->huge_fd, session->pages_go ? session->huge_bytes : 0);
	memset(&session->small_free, 0, sizeof(session->small_free));
	memset(&session->huge_free, 0, sizeof(session->huge_free));
	session->seg_fd = session->huge_fd = -1;
	session->huge_users = NULL;
	session->shm = NULL;
	session->segment_made = false;
}
