/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Mapping of dma-bufs and other files for as long as regions of them are there.
 */
#include "rcd_cl_dmabuf.h"

#include <errno.h>
#include <stdbool.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE UINT64_C(4096)

/** What no mapping is longer than, so that sums can't wrap. */
#define BYTES_MAX (UINT64_C(1) << 46)

/* Whether these bytes are there; of a dma-buf, mmap() says. @param page  set where it is larger */
static int
cl_dmabuf_check(int fd, uint64_t offset, uint64_t len, uint64_t *page)
{
	struct statfs fs;
	struct stat stat;

	if (fstat(fd, &stat) != 0 || fstatfs(fd, &fs) != 0)
		return -errno;
	if (len == 0 || len > BYTES_MAX || offset > BYTES_MAX)
		return -EINVAL;
	if (S_ISREG(stat.st_mode) && fs.f_type != DMA_BUF_MAGIC &&
		offset + len > (uint64_t)stat.st_size)
		return -EINVAL;
	if (fs.f_type == HUGETLBFS_MAGIC)
		*page = (uint64_t)fs.f_bsize;
	return 0;
}

/*
 * Whether the kernel copies from there: not from addresses that have no pages behind them. Where
 * that may not be asked, a copy fails later.
 */
static bool
cl_dmabuf_has_pages(const uint8_t *at)
{
	uint8_t byte;
	struct iovec here = { .iov_base = &byte, .iov_len = 1 };
	struct iovec there = { .iov_base = (void *)(uintptr_t)at, .iov_len = 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 || errno != EFAULT;
}

static int
cl_dmabuf_map(struct rcd_cl_dmabuf *buf, int fd, uint64_t start, uint64_t len, uint32_t access)
{
	int prot = PROT_READ | (access & RCD_ACCESS_WRITES ? PROT_WRITE : 0);
	void *at = mmap(NULL, len, prot, MAP_SHARED, fd, (off_t)start);

	/* What pipes, sockets and memory of a device say that no CPU sees. */
	if (at == MAP_FAILED)
		return errno == ENODEV || errno == ENXIO || errno == ENOTSUP ? -EOPNOTSUPP : -errno;
	buf->mapping = at;
	buf->mapping_len = len;
	/* It is no memory of a child's. */
	madvise(at, len, MADV_DONTFORK);
	return 0;
}

static void
cl_dmabuf_unmap(struct rcd_cl_dmabuf *buf)
{
	if (buf->mapping != NULL)
		munmap(buf->mapping, buf->mapping_len);
	buf->mapping = NULL;
}

int
rcd_cl_dmabuf_reg(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, int fd,
	uint64_t offset, struct rcd_cl_dmabuf *buf)
{
	struct rcd_cl_mr_attr mapped = *attr;
	uint64_t page = PAGE, start;
	uint8_t *at;
	int err = cl_dmabuf_check(fd, offset, attr->len, &page);

	buf->mapping = NULL;
	if (err != 0)
		return err;
	start = offset / page * page;
	err = cl_dmabuf_map(buf, fd, start, (offset + attr->len - start + page - 1) / page * page,
		attr->access);
	if (err != 0)
		return err;
	at = (uint8_t *)buf->mapping + (offset - start);
	mapped.addr = at;
	err = cl_dmabuf_has_pages(at) ? rcd_cl_mr_reg(client, &mapped, &buf->mr) : -EOPNOTSUPP;
	if (err != 0)
		cl_dmabuf_unmap(buf);
	return err;
}

int
rcd_cl_dmabuf_dereg(struct rcd_client *client, struct rcd_cl_dmabuf *buf)
{
	int err = rcd_cl_mr_dereg(client, &buf->mr);

	/* A forked child has something else there, if anything. */
	if (rcd_client_forked(client))
		buf->mapping = NULL;
	/* A copy that still waits would go to what comes to these addresses. */
	if (err == 0 || err == -EIO)
		cl_dmabuf_unmap(buf);
	return err;
}
