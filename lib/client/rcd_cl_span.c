/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Making private memory shared, under the feet of the threads that use it.
 */
#include "rcd_cl_span.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "rcd_cl_stop.h"
#include "rcd_cl_watch.h"
#include "rcd_ranges.h"

#define PAGE 4096u

/** Size of the memfd: sparse, so addresses in it are free. */
#define POOL_BYTES (INT64_C(1) << 45)

/* Of this thread: in /proc/self the memory is gone when the first thread has ended. */
#define MAPS    "/proc/thread-self/maps"
#define PAGEMAP "/proc/thread-self/pagemap"

#define STOP_PATIENCE_NS 100000000 /**< how long the first threads stand for the last ones */
#define STOP_PAUSE_NS    INT64_C(1000000000) /**< behind a failure; the next: twice ... */
#define STOP_PAUSES_LOG2 6                   /**< ... that, so many times */

#define POOL_HOLES 16 /**< in it that the list has room for at first */

#define PAGEMAP_THERE (UINT64_C(3) << 62) /**< present or swapped out */
#define PAGEMAP_CHUNK 512

static struct {
	int fd;
	dev_t dev;
	ino_t ino;
	struct rcd_ranges free; /**< of the memfd */
	struct rcd_cl_span **spans;
	size_t count;
	bool ready;
	bool dontfork;
} pool;

static int
cl_span_pool_open(void)
{
	struct stat stat;
	int err;

	if (pool.ready)
		return 0;
	pool.fd = memfd_create("rocade-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (pool.fd < 0)
		return -errno;
	if (ftruncate(pool.fd, POOL_BYTES) != 0 ||
		fcntl(pool.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
		fstat(pool.fd, &stat) != 0)
		err = -errno;
	else
		err = rcd_ranges_init(&pool.free, POOL_HOLES);
	if (err != 0) {
		close(pool.fd);
		return err;
	}
	rcd_ranges_give(&pool.free, 0, POOL_BYTES);
	pool.dev = stat.st_dev;
	pool.ino = stat.st_ino;
	pool.ready = true;
	return 0;
}

int
rcd_cl_span_fd(void)
{
	return pool.fd;
}

static bool
cl_span_pool_alloc(uint64_t len, uint64_t *offset)
{
	*offset = rcd_ranges_take(&pool.free, len);
	return *offset != RCD_RANGES_NONE;
}

static void
cl_span_pool_free(uint64_t offset, uint64_t len)
{
	fallocate(pool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len);
	/* Where there is no memory for the list, addresses of the memfd are lost. */
	rcd_ranges_give(&pool.free, offset, len);
}

static bool
cl_span_parse_vma(const char *line, struct rcd_cl_vma *vma)
{
	char perms[8];
	unsigned long long offset, inode;
	unsigned long start, end;
	int path = 0;

	memset(vma, 0, sizeof(*vma));
	if (sscanf(line, "%lx-%lx %7s %llx %x:%x %llu %n", &start, &end, perms, &offset,
		    &vma->major, &vma->minor, &inode, &path) < 7)
		return false;
	vma->start = start;
	vma->end = end;
	vma->offset = offset;
	vma->inode = inode;
	vma->readable = perms[0] == 'r';
	vma->writable = perms[1] == 'w';
	vma->shared = perms[3] == 's';
	snprintf(vma->path, sizeof(vma->path), "%s", line + path);
	vma->path[strcspn(vma->path, "\n")] = '\0';
	vma->special = vma->path[0] == '[' && strcmp(vma->path, "[heap]") != 0 &&
		strncmp(vma->path, "[anon", 5) != 0;
	return true;
}

int
rcd_cl_vmas(uintptr_t start, uintptr_t end, struct rcd_cl_vma **vmas)
{
	FILE *maps = fopen(MAPS, "re");
	uintptr_t covered = start;
	char line[512];
	int count = 0;

	*vmas = NULL;
	while (maps != NULL && covered < end && fgets(line, sizeof(line), maps) != NULL) {
		struct rcd_cl_vma vma;
		struct rcd_cl_vma *more;

		if (!cl_span_parse_vma(line, &vma) || vma.end <= start)
			continue;
		if (vma.start > covered)
			break;
		covered = vma.end;
		more = realloc(*vmas, (size_t)(count + 1) * sizeof(*more));
		if (more == NULL)
			break;
		*vmas = more;
		more[count++] = vma;
	}
	if (maps != NULL)
		fclose(maps);
	if (covered >= end)
		return count;
	free(*vmas);
	*vmas = NULL;
	return -EFAULT;
}

/*
 * From cl_span_stop_writers() to the end of cl_span_replace() this thread must not touch the memory
 * in question, or it would wait for itself. So there are no calls but system calls made by hand: no
 * wrapper that keeps state for its thread, no symbol that is bound at its first use.
 */

/* Copy the pages that are there into the memfd. Those that are not read as zeros on both sides. */
static int
cl_span_copy_pages(int pagemap, uintptr_t start, uintptr_t end, uint64_t offset)
{
	uint64_t entries[PAGEMAP_CHUNK];

	for (uintptr_t at = start; at < end;) {
		size_t pages = (end - at) / PAGE;
		size_t bytes;

		if (pages > PAGEMAP_CHUNK)
			pages = PAGEMAP_CHUNK;
		bytes = pages * sizeof(entries[0]);
		if (syscall(SYS_pread64, pagemap, entries, bytes, at / PAGE * sizeof(entries[0])) !=
			(long)bytes)
			return -EIO;
		for (size_t i = 0; i < pages;) {
			size_t run = 0;

			while (i + run < pages && (entries[i + run] & PAGEMAP_THERE))
				run++;
			if (run > 0 &&
				syscall(SYS_pwrite64, pool.fd, at + i * PAGE, run * PAGE,
					offset + (at - start) + i * PAGE) != (long)(run * PAGE))
				return -ENOMEM;
			i += run + 1;
		}
		at += pages * PAGE;
	}
	return 0;
}

/* Stop all writers of a range, and all who touch what is not there. */
static int
cl_span_stop_writers(int uffd, uintptr_t start, uintptr_t end)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };
	struct uffdio_register reg = { .range = { .start = start, .len = end - start },
		.mode = UFFDIO_REGISTER_MODE_WP | UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_writeprotect protect = { .range = reg.range,
		.mode = UFFDIO_WRITEPROTECT_MODE_WP };

	if (syscall(SYS_ioctl, uffd, UFFDIO_API, &api) != 0 ||
		syscall(SYS_ioctl, uffd, UFFDIO_REGISTER, &reg) != 0 ||
		syscall(SYS_ioctl, uffd, UFFDIO_WRITEPROTECT, &protect) != 0)
		return -errno;
	return 0;
}

static bool
cl_span_single_threaded(void)
{
	struct stat stat;

	/* A folder for each thread, "." and "..". */
	return lstat("/proc/self/task", &stat) == 0 && stat.st_nlink == 3;
}

/* @return descriptor; -1: not for this user */
static int
cl_span_open_uffd(void)
{
	int uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	int dev;

	if (uffd >= 0)
		return uffd;
	dev = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	if (dev >= 0) {
		uffd = ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
		close(dev);
	}
	return uffd;
}

/* A range, and what takes its place. */
struct exchange {
	uintptr_t start;
	uintptr_t end;
	uint64_t offset;
	void *mapping;
	int pagemap;
	int probe; /* -1: nothing to be asked */
	bool begun;
};

/* While nobody writes. */
static int
cl_span_exchange(void *arg)
{
	struct exchange *exchange = arg;
	size_t len = exchange->end - exchange->start;
	int err = 0;

	exchange->begun = true;
	if (exchange->probe >= 0)
		err = rcd_cl_watch_probe(exchange->probe, exchange->start, exchange->end);
	if (err == 0)
		err = cl_span_copy_pages(
			exchange->pagemap, exchange->start, exchange->end, exchange->offset);
	if (err == 0 &&
		syscall(SYS_mremap, exchange->mapping, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			exchange->start) == -1)
		err = -ENOMEM;
	return err;
}

static int64_t
cl_span_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Once for each reason: what the program notices is that it is slower. */
static void
cl_span_tell(int err)
{
	static int told;

	if (told == err || getenv("ROCADE_DEBUG") == NULL)
		return;
	told = err;
	fprintf(stderr, "rocade: memory is copied%s: other threads can't be stopped: %s\n",
		err == -ETIMEDOUT || err == -EAGAIN ? " for now" : "", strerror(-err));
}

/*
 * All other threads stand still. What will not change is not tried again; what may have been the
 * moment's is, the later the more often it failed in a row.
 */
static int
cl_span_exchange_stopped(struct exchange *exchange)
{
	static struct {
		int err; /* of the last attempt; 0: it went */
		uint32_t in_row;
		int64_t again_ns;
	} last;
	bool passes = last.err == -ETIMEDOUT || last.err == -EAGAIN;
	int err;

	if (last.err != 0 && (!passes || cl_span_now() < last.again_ns))
		return last.err;
	err = rcd_cl_stop_others(cl_span_exchange, exchange, STOP_PATIENCE_NS);
	last.err = exchange->begun ? 0 : err;
	if (last.err == 0) {
		last.in_row = 0;
		return err;
	}
	last.again_ns = cl_span_now() + (STOP_PAUSE_NS << last.in_row);
	last.in_row += last.in_row < STOP_PAUSES_LOG2;
	cl_span_tell(err);
	return err;
}

static int
cl_span_replace(uintptr_t start, uintptr_t end, uint64_t offset)
{
	size_t len = end - start;
	struct exchange exchange = { .start = start, .end = end, .offset = offset };
	int uffd = cl_span_open_uffd();
	sigset_t all, old;
	int err = 0;

	exchange.mapping = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		pool.fd, (off_t)offset);
	/* With the right, registering tells. */
	exchange.probe = uffd < 0 ? rcd_cl_watch_open() : -1;
	exchange.pagemap = open(PAGEMAP, O_RDONLY | O_CLOEXEC);
	if (exchange.mapping == MAP_FAILED || exchange.pagemap < 0)
		err = exchange.mapping == MAP_FAILED ? -ENOMEM : -EPERM;
	else if (uffd < 0 && exchange.probe < 0)
		err = rcd_cl_watch_read(start, end);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (err == 0 && uffd >= 0)
		err = cl_span_stop_writers(uffd, start, end);
	/* Without other threads nobody writes while we copy. */
	if (err == 0)
		err = uffd >= 0 || cl_span_single_threaded() ? cl_span_exchange(&exchange)
							     : cl_span_exchange_stopped(&exchange);
	/* Who waits goes on: at the new mapping, or at the old one as if nothing had been. */
	if (uffd >= 0)
		syscall(SYS_close, uffd);
	if (exchange.probe >= 0)
		syscall(SYS_close, exchange.probe);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (exchange.pagemap >= 0)
		close(exchange.pagemap);
	if (err != 0 && exchange.mapping != MAP_FAILED)
		munmap(exchange.mapping, len);
	return err;
}

static bool
cl_span_overlaps(uintptr_t start, uintptr_t end, uintptr_t at, uintptr_t below, uintptr_t above)
{
	return at + above > start && at - below < end;
}

/*
 * Whether this thread itself stands on the range: on what the calls from cl_span_stop_writers() on
 * touch. That is its stack below here, its descriptor with the stack guard, and errno; memory that
 * merely lies beside them, as mmap() likes to have it, is as good as any other.
 */
static bool
cl_span_stands_on(uintptr_t start, uintptr_t end)
{
	const uintptr_t frames = 32768; /* of all these calls together */
	const uintptr_t callers = 512;  /* this function's own, if it has one, and its caller's */
	const uintptr_t descriptor = 1024; /* its beginning: the rest is for creating and joining */

	return cl_span_overlaps(
		       start, end, (uintptr_t)__builtin_frame_address(0), frames, callers) ||
		cl_span_overlaps(start, end, (uintptr_t)pthread_self(), 0, descriptor) ||
		cl_span_overlaps(start, end, (uintptr_t)&errno, 0, sizeof(errno));
}

int
rcd_cl_span_make(uintptr_t start, uintptr_t end, struct rcd_cl_span **span)
{
	struct rcd_cl_span *made;
	struct rcd_cl_span **more;
	uint64_t offset;
	int err = cl_span_pool_open();

	if (err != 0)
		return err;
	if (cl_span_stands_on(start, end))
		return -EPERM;
	/* All memory of our own first: the heap may be what is stopped. */
	made = calloc(1, sizeof(*made));
	more = realloc(pool.spans, (pool.count + 1) * sizeof(*more));
	if (more != NULL)
		pool.spans = more;
	if (made == NULL || more == NULL || !cl_span_pool_alloc(end - start, &offset)) {
		free(made);
		return -ENOMEM;
	}
	err = cl_span_replace(start, end, offset);
	if (err != 0) {
		cl_span_pool_free(offset, end - start);
		free(made);
		return err;
	}
	*made = (struct rcd_cl_span){ .start = start, .end = end, .offset = offset };
	pool.spans[pool.count++] = made;
	*span = made;
	return 0;
}

static int
cl_span_set_inherited(const struct rcd_cl_span *span, bool inherited)
{
	/* Something else may be there by now. */
	if (span->stale)
		return 0;
	return madvise((void *)span->start, span->end - span->start,
		       inherited ? MADV_DOFORK : MADV_DONTFORK) == 0
		? 0
		: -errno;
}

void
rcd_cl_span_ref(struct rcd_cl_span *span)
{
	if (span->refs++ == 0 && pool.dontfork)
		cl_span_set_inherited(span, false);
}

void
rcd_cl_span_unref(struct rcd_cl_span *span)
{
	if (--span->refs > 0 || !pool.dontfork)
		return;
	rcd_cl_span_check();
	cl_span_set_inherited(span, true);
}

struct rcd_cl_span *
rcd_cl_span_of(const struct rcd_cl_vma *vma)
{
	if (!pool.ready || !vma->shared || vma->inode != pool.ino ||
		vma->major != major(pool.dev) || vma->minor != minor(pool.dev))
		return NULL;
	for (size_t i = 0; i < pool.count; i++) {
		struct rcd_cl_span *span = pool.spans[i];

		/* Neighbours in memory and in the file may have become one mapping. */
		if (!span->stale && span->offset >= vma->offset &&
			span->offset - vma->offset < vma->end - vma->start)
			return span;
		if (!span->stale && vma->offset >= span->offset &&
			vma->offset - span->offset < span->end - span->start)
			return span;
	}
	return NULL;
}

/* The bytes of a span that are still where they were put, by one mapping. */
static size_t
cl_span_in_place(const struct rcd_cl_span *span, const struct rcd_cl_vma *vma)
{
	uintptr_t start = vma->start > span->start ? vma->start : span->start;
	uintptr_t end = vma->end < span->end ? vma->end : span->end;

	if (start >= end || vma->offset - vma->start != span->offset - span->start)
		return 0;
	return end - start;
}

/*
 * Compare all spans with the kernel's view, in one pass over it: what the application has unmapped,
 * or replaced, is ours no more.
 */
void
rcd_cl_span_check(void)
{
	FILE *maps = pool.count > 0 ? fopen(MAPS, "re") : NULL;
	char line[512];

	if (maps == NULL)
		return;
	for (size_t i = 0; i < pool.count; i++)
		pool.spans[i]->seen = 0;
	while (fgets(line, sizeof(line), maps) != NULL) {
		struct rcd_cl_vma vma;

		if (strstr(line, "rocade-memory") == NULL || !cl_span_parse_vma(line, &vma) ||
			!vma.shared || vma.inode != pool.ino)
			continue;
		for (size_t i = 0; i < pool.count; i++)
			pool.spans[i]->seen += cl_span_in_place(pool.spans[i], &vma);
	}
	fclose(maps);
	for (size_t i = 0; i < pool.count; i++) {
		struct rcd_cl_span *span = pool.spans[i];

		span->stale = span->stale || span->seen != span->end - span->start;
	}
}

void
rcd_cl_span_sweep(void (*forget)(struct rcd_cl_span *span))
{
	size_t kept = 0;

	rcd_cl_span_check();
	for (size_t i = 0; i < pool.count; i++) {
		struct rcd_cl_span *span = pool.spans[i];

		if (!span->stale || span->refs > 0) {
			pool.spans[kept++] = span;
			continue;
		}
		forget(span);
		cl_span_pool_free(span->offset, span->end - span->start);
		free(span->known);
		free(span);
	}
	pool.count = kept;
}

void
rcd_cl_span_each(void (*fn)(struct rcd_cl_span *span, void *arg), void *arg)
{
	for (size_t i = 0; i < pool.count; i++)
		fn(pool.spans[i], arg);
}

/* Nothing but system calls: other threads may have held any lock at the fork. */
void
rcd_cl_span_unshare(void)
{
	for (size_t i = 0; i < pool.count; i++) {
		const struct rcd_cl_span *span = pool.spans[i];

		/* Something else may be there by now, or nothing. */
		if (span->stale || (pool.dontfork && span->refs > 0))
			continue;
		size_t len = span->end - span->start;
		uint8_t *copy = mmap(NULL, len, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (copy == MAP_FAILED)
			_exit(127); /* better than a child that writes into its parent */
		/* Holes stay holes: a read of the file finds what is there. */
		for (off_t at = (off_t)span->offset; at < (off_t)(span->offset + len);) {
			off_t data = lseek(pool.fd, at, SEEK_DATA);
			off_t end = data < 0 ? -1 : lseek(pool.fd, data, SEEK_HOLE);

			if (data < 0 || data >= (off_t)(span->offset + len))
				break;
			if (end > (off_t)(span->offset + len))
				end = (off_t)(span->offset + len);
			if (pread(pool.fd, copy + ((uint64_t)data - span->offset),
				    (size_t)(end - data), data) != end - data)
				_exit(127);
			at = end;
		}
		if (!span->stale &&
			mremap(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
				(void *)span->start) == MAP_FAILED)
			_exit(127);
	}
	/* The memfd is the parent's. What this process shares from now on has one of its own. */
	if (pool.ready)
		close(pool.fd);
	pool.ready = false;
	pool.count = 0;
	rcd_ranges_fini(&pool.free);
}

int
rcd_cl_span_dontfork(void)
{
	pool.dontfork = true;
	for (size_t i = 0; i < pool.count; i++) {
		int err = pool.spans[i]->refs > 0 ? cl_span_set_inherited(pool.spans[i], false) : 0;

		if (err != 0)
			return err;
	}
	return 0;
}
