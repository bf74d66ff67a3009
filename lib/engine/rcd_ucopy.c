/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of clients that is reached by copies from and to their address spaces.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <poll.h>
#include <sys/uio.h>

#include "rcd_guard.h"

/* Whether the process that connected is still there, and not another one of its number. */
static bool
alive(const struct rcd_session *session)
{
	struct pollfd fd = { .fd = session->pidfd, .events = POLLIN };

	return session->pidfd >= 0 && poll(&fd, 1, 0) == 0;
}

static int
copy_remote(const struct rcd_session *session, uint8_t *local, uint64_t addr, size_t len, bool to)
{
	struct iovec here = { .iov_base = local, .iov_len = len };
	struct iovec there = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	ssize_t done;

	if (!alive(session))
		return -EFAULT;
	done = to ? process_vm_writev(session->pid, &here, 1, &there, 1, 0)
		  : process_vm_readv(session->pid, &here, 1, &there, 1, 0);
	return done == (ssize_t)len ? 0 : -EFAULT;
}

/* Between private memory and a region that has copied parts. */
static int
copy_region(struct rcd_session *session, uint8_t *local, uint8_t *base, size_t len, bool to)
{
	struct rcd_umr *umr;
	uint64_t at, end;

	LIST_FOREACH(umr, &session->copied, link)
	if ((uint64_t)(base - umr->base) < umr->len)
		break;
	if (umr == NULL)
		return -EFAULT;
	if (umr->null) {
		if (!to)
			memset(local, 0, len);
		return 0;
	}
	at = (uint64_t)(base - umr->base);
	end = at + len;
	for (uint32_t i = 0; at < end; i++) {
		const struct rcd_copy *copy = i < umr->copy_count ? &umr->copies[i] : NULL;
		uint64_t shared_end = copy == NULL || copy->start > end ? end : copy->start;

		if (copy != NULL && copy->start + copy->len <= at)
			continue;
		if (at < shared_end) {
			memcpy(to ? umr->base + at : local, to ? local : umr->base + at,
				shared_end - at);
			local += shared_end - at;
			at = shared_end;
		}
		if (at < end && copy != NULL) {
			uint64_t part = copy->start + copy->len - at;

			if (part > end - at)
				part = end - at;
			if (copy_remote(
				    session, local, copy->addr + (at - copy->start), part, to) != 0)
				return -EFAULT;
			local += part;
			at += part;
		}
	}
	return 0;
}

static int
read_copied(void *arg, uint8_t *dst, const uint8_t *base, size_t len)
{
	return copy_region(arg, dst, (uint8_t *)(uintptr_t)base, len, false);
}

static int
write_copied(void *arg, uint8_t *base, const uint8_t *src, size_t len)
{
	return copy_region(arg, (uint8_t *)(uintptr_t)src, base, len, true);
}

void
rcd_umem_open(struct rcd_session *session)
{
	struct rcd_mr_foreign foreign = {
		.arg = session, .read = read_copied, .write = write_copied
	};

	rcd_guard_window(RCD_GUARD_COPIED, &foreign.start, &foreign.len);
	rcd_mr_table_set_foreign(session->mrs, &foreign);
	for (uint32_t i = 0; i < RCD_UMR_BUCKETS; i++)
		LIST_INIT(&session->umrs[i]);
}
