/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory registration: which piece of a range is reached in which way, and telling the engine.
 */
#include "rcd_cl_mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rcd_bits.h"
#include "rcd_cl_copy.h"
#include "rcd_cl_span.h"
#include "rcd_number.h"

#define PAGE 4096u

enum mode {
	MODE_AUTO,
	MODE_SHARE,
	MODE_COPY,
};

/* One lock for the process: registrations of all threads and sessions take turns. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool fork_inited;
static bool handlers_set;
static struct rcd_client **clients; /**< those with memory, to be poisoned in a child */
static size_t client_count;

/* A registration on its way: the request, and what it holds. */
struct plan {
	struct rcd_client *client;
	struct rcd_ctrl_mr_req req;
	uint32_t span_count;
	struct rcd_cl_span *spans[RCD_CTRL_EXTENTS_MAX];
	uint32_t mem_count; /**< descriptors passed for this registration alone */
	uint32_t mems[RCD_CTRL_EXTENTS_MAX];
	bool waited; /**< for a copy, which goes on waiting for its page */
};

static void
cl_mem_before_fork(void)
{
	pthread_mutex_lock(&lock);
	rcd_cl_span_check();
}

static void
cl_mem_after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
cl_mem_after_fork_child(void)
{
	rcd_cl_span_unshare();
	for (size_t i = 0; i < client_count; i++)
		rcd_client_poison(clients[i]);
	client_count = 0;
	pthread_mutex_unlock(&lock);
}

static enum mode
cl_mem_mode_now(void)
{
	const char *text = getenv("ROCADE_MR");

	if (text != NULL && strcmp(text, "share") == 0)
		return MODE_SHARE;
	if (text != NULL && strcmp(text, "copy") == 0)
		return MODE_COPY;
	return MODE_AUTO;
}

static int
cl_mem_remember_client(struct rcd_client *client)
{
	struct rcd_client **more;

	if (!handlers_set) {
		if (pthread_atfork(cl_mem_before_fork, cl_mem_after_fork_parent,
			    cl_mem_after_fork_child) != 0)
			return -ENOMEM;
		handlers_set = true;
	}
	for (size_t i = 0; i < client_count; i++)
		if (clients[i] == client)
			return 0;
	more = realloc(clients, (client_count + 1) * sizeof(*more));
	if (more == NULL)
		return -ENOMEM;
	clients = more;
	clients[client_count++] = client;
	return 0;
}

static int
cl_mem_add(struct rcd_client *client, int fd, uint64_t offset, uint64_t len, bool writable,
	uint32_t *handle)
{
	struct rcd_ctrl_mem_req req = { .offset = offset, .len = len, .writable = writable };
	struct rcd_ctrl_fds fds = { .fds = { fd }, .count = 1 };
	struct rcd_ctrl_handle rep;
	int err = rcd_client_call(client, RCD_CTRL_MEM_ADD, &req, &rep, &fds, NULL);

	*handle = rep.handle;
	return err;
}

/* The session's handle of a span; it gets one the first time. */
static int
cl_mem_span_handle(struct rcd_client *client, struct rcd_cl_span *span, uint32_t *handle)
{
	void *more;
	int err;

	for (uint32_t i = 0; i < span->known_count; i++) {
		if (span->known[i].client == client) {
			*handle = span->known[i].handle;
			return 0;
		}
	}
	more = realloc(span->known, (span->known_count + 1) * sizeof(span->known[0]));
	if (more == NULL)
		return -ENOMEM;
	span->known = more;
	err = cl_mem_add(
		client, rcd_cl_span_fd(), span->offset, span->end - span->start, true, handle);
	if (err == 0) {
		span->known[span->known_count].client = client;
		span->known[span->known_count++].handle = *handle;
	}
	return err;
}

static void
cl_mem_forget_span(struct rcd_cl_span *span)
{
	for (uint32_t i = 0; i < span->known_count; i++)
		rcd_cl_destroy(span->known[i].client, RCD_CTRL_MEM_DEL, span->known[i].handle);
}

static int
cl_mem_add_extent(struct plan *plan, uint32_t mem, uint64_t offset, uint64_t len)
{
	struct rcd_ctrl_mr_req *req = &plan->req;
	struct rcd_ctrl_extent *last = &req->extents[req->extent_count - 1];

	if (req->extent_count > 0 && last->mem == mem && last->offset + last->len == offset) {
		last->len += len;
		return 0;
	}
	if (req->extent_count == RCD_CTRL_EXTENTS_MAX)
		return -ENOMEM;
	req->extents[req->extent_count++] =
		(struct rcd_ctrl_extent){ .offset = offset, .len = len, .mem = mem };
	return 0;
}

static int
cl_mem_add_span(struct plan *plan, struct rcd_cl_span *span, uintptr_t from, uintptr_t to)
{
	uint32_t handle;
	int err = cl_mem_span_handle(plan->client, span, &handle);

	if (err == 0)
		err = cl_mem_add_extent(plan, handle, from - span->start, to - from);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < plan->span_count; i++)
		if (plan->spans[i] == span)
			return 0;
	if (plan->span_count == RCD_CTRL_EXTENTS_MAX)
		return -ENOMEM;
	plan->spans[plan->span_count++] = span;
	rcd_cl_span_ref(span);
	return 0;
}

static bool
cl_mem_same_file(int fd, const struct rcd_cl_vma *vma)
{
	struct stat stat;

	return fstat(fd, &stat) == 0 && stat.st_ino == vma->inode &&
		major(stat.st_dev) == vma->major && minor(stat.st_dev) == vma->minor;
}

static int
cl_mem_try_open(const char *path, const struct rcd_cl_vma *vma)
{
	int fd = open(path, (vma->writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);

	if (fd >= 0 && !cl_mem_same_file(fd, vma)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A descriptor of the file behind a shared mapping: an open one, or by name. @return -1: none */
static int
cl_mem_find_fd(const struct rcd_cl_vma *vma)
{
	DIR *dir = opendir("/proc/thread-self/fd");
	struct dirent *entry;
	char path[64];
	int found = -1;

	while (dir != NULL && found < 0 && (entry = readdir(dir)) != NULL) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.' || fd == dirfd(dir) || !cl_mem_same_file(fd, vma))
			continue;
		/* One that was opened to read won't do for memory that is written. */
		if (!vma->writable || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR)
			found = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	}
	if (dir != NULL)
		closedir(dir);
	if (found >= 0)
		return found;
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)vma->start,
		(unsigned long)vma->end);
	found = cl_mem_try_open(path, vma);
	return found >= 0 || vma->path[0] != '/' ? found : cl_mem_try_open(vma->path, vma);
}

/* Part of a file that is memory, by its descriptor. @return 0; 1: it is not; -errno */
static int
cl_mem_add_file(struct plan *plan, const struct rcd_cl_vma *vma, uintptr_t from, uintptr_t to)
{
	uint64_t page = PAGE;
	struct statfs fs;
	uint64_t first, last;
	uint32_t handle;
	int fd = cl_mem_find_fd(vma);
	int err;

	if (fd < 0)
		return 1;
	if (fstatfs(fd, &fs) != 0 || (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC)) {
		close(fd);
		return 1;
	}
	if (fs.f_type == HUGETLBFS_MAGIC)
		page = (uint64_t)fs.f_bsize;
	first = (vma->offset + (from - vma->start)) / page * page;
	last = (vma->offset + (to - vma->start) + page - 1) / page * page;
	err = cl_mem_add(plan->client, fd, first, last - first, vma->writable, &handle);
	close(fd);
	if (err != 0)
		return err;
	plan->mems[plan->mem_count++] = handle;
	return cl_mem_add_extent(
		plan, handle, vma->offset + (from - vma->start) - first, to - from);
}

/* Private anonymous memory of the heap, the .bss, or of mmap(). */
static bool
cl_mem_is_private(const struct rcd_cl_vma *vma)
{
	return !vma->shared && !vma->special && vma->inode == 0 && vma->readable && vma->writable;
}

/*
 * Replace private memory. Copies may be on their way to it, of a region that follows what is
 * mapped: the kernel would write them into pages that it has looked up before.
 *
 * @return as rcd_cl_span_make(); -EBUSY: a copy waits for a page, and this registration has waited
 *         for it long enough
 */
static int
cl_mem_make_span(struct plan *plan, uintptr_t start, uintptr_t end, struct rcd_cl_span **span)
{
	size_t paused = 0;
	int err = plan->waited ? -EBUSY : 0;

	while (paused < client_count && err == 0) {
		if (rcd_cl_copy_pause(clients[paused]))
			paused++;
		else
			err = -EBUSY;
	}
	plan->waited = err != 0;
	if (err == 0)
		err = rcd_cl_span_make(start, end, span);
	while (paused > 0)
		rcd_cl_copy_go_on(clients[--paused]);
	return err;
}

/*
 * One piece of a range within one mapping. [from, to) are the bytes, which may lie inside pages.
 *
 * @return 0 or -errno
 */
static int
cl_mem_add_piece(struct plan *plan, const struct rcd_cl_vma *vma, uintptr_t from, uintptr_t to,
	enum mode mode)
{
	int err = 1;

	if (mode != MODE_COPY && vma->shared) {
		struct rcd_cl_span *span = rcd_cl_span_of(vma);

		/* A mapping may hold several spans side by side. */
		while (span != NULL && from < to) {
			struct rcd_cl_vma rest = *vma;
			uintptr_t end = span->end < to ? span->end : to;

			if (from < span->start || from >= span->end) {
				rest.start = from / PAGE * PAGE;
				rest.offset += rest.start - vma->start;
				rest.end = rest.start + PAGE;
				span = rcd_cl_span_of(&rest);
				if (span == NULL || from < span->start || from >= span->end)
					return -EFAULT;
				continue;
			}
			err = cl_mem_add_span(plan, span, from, end);
			if (err != 0)
				return err;
			from = end;
		}
		if (from == to)
			return 0;
		err = cl_mem_add_file(plan, vma, from, to);
	} else if (mode != MODE_COPY && cl_mem_is_private(vma)) {
		uintptr_t start = from / PAGE * PAGE;
		uintptr_t end = rcd_align_up(to, PAGE);
		struct rcd_cl_span *span;

		err = cl_mem_make_span(plan, start, end, &span);
		if (err == 0)
			return cl_mem_add_span(plan, span, from, to);
		err = err == -ENOMEM ? err : 1;
	}
	if (err <= 0)
		return err;
	if (mode == MODE_SHARE)
		return -EOPNOTSUPP;
	return cl_mem_add_extent(plan, RCD_CTRL_MEM_COPIED, from, to - from);
}

/* What is mapped there is looked at when it is reached. */
static int
cl_mem_plan_on_demand(const struct rcd_cl_mr_attr *attr, struct plan *plan)
{
	if (cl_mem_mode_now() == MODE_SHARE)
		return -EOPNOTSUPP;
	return attr->len > 0
		? cl_mem_add_extent(plan, RCD_CTRL_MEM_COPIED, (uintptr_t)attr->addr, attr->len)
		: 0;
}

static int
cl_mem_make_plan(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, struct plan *plan)
{
	uintptr_t start = (uintptr_t)attr->addr;
	uintptr_t end = start + attr->len;
	struct rcd_cl_vma *vmas;
	int count, err = 0;

	memset(plan, 0, sizeof(*plan));
	plan->client = client;
	plan->req.pd = attr->pd;
	plan->req.access = attr->access;
	plan->req.start = attr->start;
	plan->req.len = attr->len;
	plan->req.addr = start;
	if (attr->on_demand)
		return cl_mem_plan_on_demand(attr, plan);
	if (end < start || attr->len > UINT64_C(1) << 46)
		return -EFAULT;
	if (attr->len == 0)
		return 0;
	count = rcd_cl_vmas(start, end, &vmas);
	if (count < 0)
		return count;
	for (int i = 0; i < count && err == 0; i++)
		if (!vmas[i].readable || ((attr->access & RCD_ACCESS_WRITES) && !vmas[i].writable))
			err = -EFAULT;
	for (int i = 0; i < count && err == 0; i++)
		err = cl_mem_add_piece(plan, &vmas[i],
			vmas[i].start > start ? vmas[i].start : start,
			vmas[i].end < end ? vmas[i].end : end, cl_mem_mode_now());
	free(vmas);
	return err;
}

/* What was passed for this registration alone is held by the region from now on. */
static void
cl_mem_end_plan(struct plan *plan, bool keep_spans)
{
	for (uint32_t i = 0; i < plan->mem_count; i++)
		rcd_cl_destroy(plan->client, RCD_CTRL_MEM_DEL, plan->mems[i]);
	for (uint32_t i = 0; i < plan->span_count && !keep_spans; i++)
		rcd_cl_span_unref(plan->spans[i]);
}

static void
cl_mem_drop_spans(struct rcd_cl_mr *mr)
{
	for (uint32_t i = 0; i < mr->span_count; i++)
		rcd_cl_span_unref(mr->spans[i]);
	free(mr->spans);
	mr->spans = NULL;
	mr->span_count = 0;
}

static int
cl_mem_submit(struct rcd_client *client, enum rcd_ctrl_op op, const struct rcd_cl_mr_attr *attr,
	struct rcd_cl_mr *mr)
{
	struct plan *plan = malloc(sizeof(*plan));
	struct rcd_cl_span **spans = NULL;
	struct rcd_ctrl_mr_rep rep;
	int err;

	if (plan == NULL)
		return -ENOMEM;
	rcd_cl_span_sweep(cl_mem_forget_span);
	err = cl_mem_remember_client(client);
	plan->mem_count = plan->span_count = 0;
	if (err == 0)
		err = cl_mem_make_plan(client, attr, plan);
	for (uint32_t i = 0; err == 0 && i < plan->req.extent_count; i++)
		if (plan->req.extents[i].mem == RCD_CTRL_MEM_COPIED)
			err = rcd_cl_copy_start(client);
	if (err == 0) {
		spans = malloc((plan->span_count + 1) * sizeof(spans[0]));
		err = spans == NULL ? -ENOMEM : 0;
	}
	if (err == 0) {
		plan->req.key = mr->key;
		err = rcd_client_call(client, op, &plan->req, &rep, NULL, NULL);
	}
	cl_mem_end_plan(plan, err == 0);
	if (err == 0) {
		cl_mem_drop_spans(mr);
		memcpy(spans, plan->spans, plan->span_count * sizeof(spans[0]));
		mr->spans = spans;
		mr->span_count = plan->span_count;
		mr->key = rep.key;
		mr->pd = attr->pd;
	} else {
		free(spans);
	}
	free(plan);
	return err;
}

int
rcd_cl_mr_reg(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, struct rcd_cl_mr *mr)
{
	int err;

	memset(mr, 0, sizeof(*mr));
	pthread_mutex_lock(&lock);
	err = cl_mem_submit(client, RCD_CTRL_MR_REG, attr, mr);
	pthread_mutex_unlock(&lock);
	return err;
}

int
rcd_cl_mr_rereg(struct rcd_client *client, const struct rcd_cl_mr_attr *attr, struct rcd_cl_mr *mr)
{
	int err;

	pthread_mutex_lock(&lock);
	err = cl_mem_submit(client, RCD_CTRL_MR_REREG, attr, mr);
	pthread_mutex_unlock(&lock);
	return err == 0 ? rcd_cl_copy_drain(client) : err;
}

int
rcd_cl_mr_dereg(struct rcd_client *client, struct rcd_cl_mr *mr)
{
	struct rcd_ctrl_key req = { .key = mr->key };
	int err = 0;

	if (!mr->removed)
		err = rcd_client_call(client, RCD_CTRL_MR_DEREG, &req, NULL, NULL, NULL);
	/* Without an engine there is nothing that could still use the memory... */
	if (err != 0 && err != -EIO)
		return err;
	mr->removed = true;
	/* ...but for a copy that it asked for before. */
	if (rcd_cl_copy_forget(client, mr->key) != 0)
		return -ETIMEDOUT;
	pthread_mutex_lock(&lock);
	cl_mem_drop_spans(mr);
	pthread_mutex_unlock(&lock);
	return err;
}

int
rcd_cl_mem_fork_init(void)
{
	int err;

	pthread_mutex_lock(&lock);
	err = rcd_cl_span_dontfork();
	fork_inited = err == 0;
	pthread_mutex_unlock(&lock);
	return err;
}

bool
rcd_cl_mem_fork_inited(void)
{
	return fork_inited;
}

static void
cl_mem_forget_client(struct rcd_cl_span *span, void *client)
{
	for (uint32_t i = 0; i < span->known_count; i++)
		if (span->known[i].client == client)
			span->known[i--] = span->known[--span->known_count];
}

void
rcd_cl_mem_client_gone(struct rcd_client *client)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < client_count; i++)
		if (clients[i] == client)
			clients[i--] = clients[--client_count];
	rcd_cl_span_each(cl_mem_forget_client, client);
	pthread_mutex_unlock(&lock);
}
