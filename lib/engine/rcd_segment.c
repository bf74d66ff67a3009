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

/* The first free part that is large enough. */
static int
take_extent(struct rcd_session *session, uint64_t bytes, uint64_t *offset)
{
	int err = rcd_quota_charge(&session->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);

	if (err != 0)
		return err;
	for (uint32_t i = 0; i < session->extent_count; i++) {
		struct rcd_extent *extent = &session->extents[i];

		if (extent->len < bytes)
			continue;
		*offset = extent->start;
		extent->start += bytes;
		extent->len -= bytes;
		if (extent->len == 0)
			memmove(extent, extent + 1,
				(--session->extent_count - i) * sizeof(*extent));
		session->queue_bytes += bytes;
		return 0;
	}
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);
	return -ENOMEM;
}

/* @return 0; -EINPROGRESS: there is more; -ENOMEM */
static int
clear_some(struct rcd_session *session, struct rcd_clearing *clearing)
{
	uint64_t at = clearing->offset + clearing->done;
	uint64_t bytes = clearing->bytes - clearing->done;

	if (bytes > RCD_ROUND_SLICE * PAGE)
		bytes = RCD_ROUND_SLICE * PAGE;
	/* Memory that is not there is found out here, not by a fault on an lcore. */
	if (fallocate(session->seg_fd, 0, (off_t)at, (off_t)bytes) != 0)
		return -ENOMEM;
	memset((uint8_t *)session->shm + at, 0, bytes);
	session->engine->work += (uint32_t)(bytes / PAGE);
	clearing->done += bytes;
	return clearing->done < clearing->bytes ? -EINPROGRESS : 0;
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
		err = take_extent(session, bytes, &clearing->offset);
		if (err != 0)
			return err;
		clearing->bytes = bytes;
		clearing->done = 0;
		clearing->via = session->via;
	}
	err = clear_some(session, clearing);
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
	struct rcd_extent *extents = session->extents;
	uint32_t i = 0;

	bytes = (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	session->queue_bytes -= bytes;
	rcd_quota_uncharge(&session->quota, RCD_RESOURCE_QUEUE_BYTES, bytes);
	if (!session->huge)
		fallocate(session->seg_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)offset, (off_t)bytes);
	while (i < session->extent_count && extents[i].start < offset)
		i++;
	if (i > 0 && extents[i - 1].start + extents[i - 1].len == offset) {
		extents[i - 1].len += bytes;
		if (i < session->extent_count && offset + bytes == extents[i].start) {
			extents[i - 1].len += extents[i].len;
			memmove(&extents[i], &extents[i + 1],
				(--session->extent_count - i) * sizeof(extents[0]));
		}
		return;
	}
	if (i < session->extent_count && offset + bytes == extents[i].start) {
		extents[i].start = offset;
		extents[i].len += bytes;
		return;
	}
	/* There is room for one hole behind each object that the quotas allow. */
	memmove(&extents[i + 1], &extents[i], (session->extent_count++ - i) * sizeof(extents[0]));
	extents[i] = (struct rcd_extent){ offset, bytes };
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

int
rcd_segment_make(struct rcd_session *session)
{
	const struct rcd_quota *quota = &session->engine->conf.quota;
	uint64_t bytes = (quota->queue_bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	int err = rcd_quota_charge(&session->quota, RCD_RESOURCE_WINDOW, bytes);
	void *addr;

	if (err != 0)
		return err;
	addr = rcd_guard_reserve(RCD_GUARD_SHARED, bytes);
	if (addr == NULL)
		return -ENOMEM;
	rcd_guard_cover(addr, addr, bytes);
	session->shm = addr;
	session->seg_bytes = bytes;
	/* Hugepages are reserved by the mapping, all of them, or there are none. */
	session->huge = true;
	session->seg_fd = make_memfd(bytes, MFD_HUGETLB | MFD_HUGE_2MB);
	if (session->seg_fd >= 0 &&
		mmap(addr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, session->seg_fd,
			0) == MAP_FAILED) {
		close(session->seg_fd);
		session->seg_fd = -1;
	}
	if (session->seg_fd < 0) {
		session->huge = false;
		session->seg_fd = make_memfd(bytes, 0);
		if (session->seg_fd < 0)
			return session->seg_fd;
		if (mmap(addr, bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, session->seg_fd,
			    0) == MAP_FAILED)
			return -errno;
	}
	if (!session->huge)
		madvise(addr, bytes, MADV_HUGEPAGE);
	if (numa_available() >= 0 && numa_max_node() > 0)
		numa_tonode_memory(addr, bytes, session->lcore->socket_id);
	session->extent_room = (uint32_t)(2 + quota->qps + quota->cqs + quota->srqs);
	session->extents = malloc(session->extent_room * sizeof(session->extents[0]));
	if (session->extents == NULL)
		return -ENOMEM;
	if (fallocate(session->seg_fd, 0, 0, PAGE) != 0)
		return -ENOMEM;
	session->extents[0] = (struct rcd_extent){ PAGE, bytes - PAGE };
	session->extent_count = 1;
	memset(session->shm, 0, sizeof(*session->shm));
	session->shm->magic = RCD_SHM_MAGIC;
	session->shm->abi = RCD_SHM_ABI;
	session->shm->size = bytes;
	session->shm->generation = session->engine->generation;
	session->shm->state = RCD_SHM_LIVE;
	return 0;
}
