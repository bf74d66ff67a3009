/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of clients: files that they share, mapped into the guarded window; the tables of regions
 * and windows. What a region is made of is rcd_uregion.c's, what clients take away rcd_ulost.c's.
 */
#include "rcd_engine_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "rcd_closer.h"
#include "rcd_guard.h"
#include "rcd_ulost.h"

#define PAGE         4096u
#define MEM_MAPPINGS 2

/*
 * Only files that are memory: a fault on any other could wait for a disk or for a server of the
 * client's choice, and an lcore never waits.
 */
static int
check_file(int fd, uint64_t *page)
{
	struct statfs fs;

	if (!rcd_closer_is_memory(fd) || fstatfs(fd, &fs) != 0)
		return -EBADF;
	if (fs.f_type == TMPFS_MAGIC)
		*page = PAGE;
	else if (fs.f_type == HUGETLBFS_MAGIC)
		*page = (uint64_t)fs.f_bsize;
	else
		return -EBADF;
	return 0;
}

/* Enter pages that follow one another. */
static void
enter_pages(const struct rcd_mem *mem, uint32_t from, uint32_t to)
{
	madvise(mem->base + mem->filled + (uint64_t)from * PAGE, (size_t)(to - from) * PAGE,
		mem->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/*
 * Enter what is there into the page table now, so that lcores meet no fault on it: a part of it.
 * Holes stay holes: a sparse region takes no memory. Where the kernel doesn't tell what is there,
 * as of files that their owner keeps from us, all of it comes to be, which is charged for.
 *
 * The kernel is asked for this part and nothing beyond: where data or a hole ends it would look at
 * each page of a file up to there, of which a client may have shared a few.
 *
 * @return 0; -EINPROGRESS: there is more
 */
static int
populate(struct rcd_session *session, struct rcd_mem *mem)
{
	unsigned char there[RCD_ROUND_SLICE];
	uint32_t count = RCD_ROUND_SLICE, from = 0;
	struct stat about;

	if (mem->page != PAGE)
		return 0;
	/* Addresses that are kept for later: there may be a terabyte of them. */
	if (mem->filled == 0 && fstat(mem->fd, &about) == 0 && about.st_blocks == 0)
		return 0;
	if (mem->len - mem->filled < (uint64_t)count * PAGE)
		count = (uint32_t)((mem->len - mem->filled) / PAGE);
	if (mincore(mem->base + mem->filled, (size_t)count * PAGE, there) != 0)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		if (there[i] & 1)
			continue;
		if (i > from)
			enter_pages(mem, from, i);
		from = i + 1;
	}
	if (count > from)
		enter_pages(mem, from, count);
	mem->filled += (uint64_t)count * PAGE;
	session->engine->work += count;
	return mem->filled < mem->len ? -EINPROGRESS : 0;
}

/* One at a time in a session: the memory of another connection is entered by use. */
static int
fill(struct rcd_session *session, struct rcd_mem *mem, uint32_t *handle)
{
	int err = 0;

	*handle = mem->handle;
	if (session->filling == NULL || session->filling == mem)
		err = populate(session, mem);
	session->filling_via = err != 0 ? session->via : session->filling_via;
	if (err != 0)
		session->filling = mem;
	else if (session->filling == mem)
		session->filling = NULL;
	return err;
}

void
rcd_umem_settle(struct rcd_session *session, uint32_t via)
{
	if (session->filling != NULL && session->filling_via == via)
		rcd_umem_del(session, session->filling->handle);
}

/* Its addresses, and what may come to be there. */
static int
charge_bytes(struct rcd_session *session, struct rcd_mem *mem)
{
	int err = rcd_quota_charge(&session->quota, RCD_RESOURCE_WINDOW, mem->len);

	if (err != 0 || mem->page != PAGE)
		return err;
	err = rcd_ufile_get(session, mem->fd, mem->offset, mem->len, &mem->file);
	if (err != 0)
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_WINDOW, mem->len);
	return err;
}

/* Its descriptor, its mapping with the gap behind it, and its bytes. */
static int
charge_mem(struct rcd_session *session, struct rcd_mem *mem)
{
	struct rcd_quota_entry *quota = &session->quota;
	int err = rcd_quota_charge(quota, RCD_RESOURCE_DESCRIPTORS, 1);

	if (err != 0)
		return err;
	err = rcd_quota_charge(quota, RCD_RESOURCE_MAPPINGS, MEM_MAPPINGS);
	if (err == 0) {
		err = charge_bytes(session, mem);
		if (err == 0)
			return 0;
		rcd_quota_uncharge(quota, RCD_RESOURCE_MAPPINGS, MEM_MAPPINGS);
	}
	rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
	return err;
}

static void
uncharge_mem(struct rcd_session *session, const struct rcd_mem *mem)
{
	struct rcd_quota_entry *quota = &session->quota;

	rcd_quota_uncharge(quota, RCD_RESOURCE_DESCRIPTORS, 1);
	rcd_quota_uncharge(quota, RCD_RESOURCE_MAPPINGS, MEM_MAPPINGS);
	rcd_quota_uncharge(quota, RCD_RESOURCE_WINDOW, mem->len);
	if (mem->file != NULL)
		rcd_ufile_put(session, mem->file, mem->offset, mem->len);
}

int
rcd_umem_add(
	struct rcd_session *session, const struct rcd_ctrl_mem_req *req, int fd, uint32_t *handle)
{
	int prot = PROT_READ | (req->writable ? PROT_WRITE : 0);
	struct rcd_mem *mem;
	uint64_t page;
	int err;

	/* The same request again, which has its descriptor no more. */
	if (session->filling != NULL && session->filling_via == session->via)
		return fill(session, session->filling, handle);
	err = check_file(fd, &page);
	if (err != 0)
		return err;
	if (req->len == 0 || req->len % page != 0 || req->offset % page != 0 ||
		req->offset > INT64_MAX || req->len > INT64_MAX - req->offset)
		return -EINVAL;
	mem = calloc(1, sizeof(*mem));
	if (mem == NULL)
		return -ENOMEM;
	*mem = (struct rcd_mem){ .fd = fd,
		.offset = req->offset,
		.len = req->len,
		.page = page,
		.writable = req->writable != 0,
		.refs = 1 };
	err = charge_mem(session, mem);
	if (err != 0) {
		free(mem);
		return err;
	}
	mem->base = rcd_guard_reserve(RCD_GUARD_SHARED, req->len);
	if (mem->base == NULL || rcd_table_add(&session->mems, mem, &mem->handle) != 0) {
		if (mem->base != NULL)
			rcd_guard_release(mem->base, req->len);
		uncharge_mem(session, mem);
		free(mem);
		return -ENOMEM;
	}
	rcd_guard_cover(mem->base, mem->base, req->len);
	if (mmap(mem->base, req->len, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		    (off_t)req->offset) == MAP_FAILED) {
		err = -errno;
		rcd_table_del(&session->mems, mem->handle);
		rcd_guard_release(mem->base, req->len);
		uncharge_mem(session, mem);
		free(mem);
		return err;
	}
	return fill(session, mem, handle);
}

void
rcd_umem_put(struct rcd_session *session, struct rcd_mem *mem)
{
	if (--mem->refs > 0)
		return;
	uncharge_mem(session, mem);
	rcd_ulost_release(session, mem->base, mem->len);
	close(mem->fd);
	free(mem);
}

int
rcd_umem_del(struct rcd_session *session, uint32_t handle)
{
	struct rcd_mem *mem = rcd_table_get(&session->mems, handle);

	if (mem == NULL)
		return -ENOENT;
	if (session->filling == mem)
		session->filling = NULL;
	rcd_table_del(&session->mems, handle);
	rcd_umem_put(session, mem);
	return 0;
}

static struct rcd_umr_list *
bucket(struct rcd_session *session, uint32_t key)
{
	return &session->umrs[(key >> 8) % RCD_UMR_BUCKETS];
}

static struct rcd_umr *
find_umr(struct rcd_session *session, uint32_t key)
{
	struct rcd_umr *umr;

	LIST_FOREACH(umr, bucket(session, key), hash_link)
	if (umr->key.val == key)
		return umr;
	return NULL;
}

struct change {
	struct rcd_session *session;
	struct rcd_umr *umr;
	struct rcd_umr *old;
	struct rcd_key key;
	enum rcd_mr_kind kind;
	uint32_t pd;
	bool foreign; /**< the list of those that are reached by copies changes */
	int err;
};

/* Whether it is reached by rcd_ucopy.c. */
static bool
is_foreign(const struct rcd_umr *umr)
{
	return umr->copies != NULL || umr->null;
}

static struct rcd_mr_attr
attr_of(const struct rcd_umr *umr)
{
	/* A region of no bytes has no memory; no access ever gets that far. */
	static uint8_t nothing[1];

	return (struct rcd_mr_attr){ .pd = umr->pd,
		.access = umr->access,
		.start = umr->start,
		.len = umr->null ? UINT64_MAX : umr->len,
		.base = umr->base != NULL ? umr->base : nothing };
}

static void
reg_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct change *change = arg;
	struct rcd_mr_attr attr = attr_of(change->umr);

	(void)lcore;
	if (change->old != NULL)
		change->err = rcd_mr_reregister(change->session->mrs, &attr, change->key);
	else
		change->err = rcd_mr_register(change->session->mrs, &attr, &change->key);
	if (change->err != 0)
		return;
	change->umr->key = change->key;
	if (change->foreign)
		rcd_ucopied_swap(change->session);
}

/* A region leaves the tables of the control thread. */
static void
leave(struct rcd_session *session, struct rcd_umr *umr)
{
	struct rcd_pd *pd = rcd_table_get(&session->pds, umr->pd);

	pd->users--;
	LIST_REMOVE(umr, hash_link);
	session->umr_count--;
	rcd_uregion_free(session, umr);
}

/* A region that was made enters the tables, perhaps for another one; it is freed when it can't. */
static int
enter(struct rcd_session *session, struct rcd_umr *umr, struct rcd_umr *old, uint32_t *key)
{
	struct change change = { .session = session, .umr = umr, .old = old };
	struct rcd_pd *pd = rcd_table_get(&session->pds, umr->pd);

	if (old != NULL)
		change.key = old->key;
	change.foreign = is_foreign(umr) || (old != NULL && is_foreign(old));
	if (change.foreign)
		change.err = rcd_ucopied_prepare(session,
			old != NULL && is_foreign(old) ? old : NULL, is_foreign(umr) ? umr : NULL);
	if (change.err == 0)
		rcd_lcore_call(session->lcore, reg_on_lcore, &change);
	if (change.err != 0) {
		rcd_uregion_free(session, umr);
		return change.err;
	}
	if (old != NULL)
		leave(session, old);
	umr->key = change.key;
	LIST_INSERT_HEAD(bucket(session, change.key.val), umr, hash_link);
	session->umr_count++;
	pd->users++;
	*key = change.key.val;
	return 0;
}

static int
charge_key(struct rcd_session *session, uint32_t pd)
{
	if (rcd_table_get(&session->pds, pd) == NULL)
		return -ENOENT;
	return rcd_quota_charge(&session->quota, RCD_RESOURCE_MRS, 1);
}

/* What was charged for goes on, or is given back. */
static int
charged(struct rcd_session *session, int err)
{
	if (err != 0)
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_MRS, 1);
	return err;
}

int
rcd_umem_reg(struct rcd_session *session, const struct rcd_ctrl_mr_req *req, uint32_t *key)
{
	struct rcd_umr *umr;
	int err;

	if (req->access & RCD_ACCESS_NULL)
		return -EINVAL;
	err = charge_key(session, req->pd);
	if (err != 0)
		return err;
	err = rcd_uregion_make(session, req, &umr);
	return charged(session, err == 0 ? enter(session, umr, NULL, key) : err);
}

int
rcd_umem_null(struct rcd_session *session, uint32_t pd, uint32_t *key)
{
	int err = charge_key(session, pd);
	struct rcd_umr *umr;

	if (err != 0)
		return err;
	umr = calloc(1, sizeof(*umr));
	if (umr == NULL)
		return charged(session, -ENOMEM);
	/* Addresses for the longest message with nothing behind them, the same for everybody. */
	umr->base = rcd_guard_nowhere();
	umr->pd = pd;
	umr->len = RCD_MSG_MAX_BYTES;
	umr->access = RCD_ACCESS_LOCAL_WRITE | RCD_ACCESS_NULL;
	umr->null = true;
	return charged(session, enter(session, umr, NULL, key));
}

int
rcd_umem_query(struct rcd_session *session, uint32_t handle, struct rcd_ctrl_mr_query_rep *rep)
{
	const struct rcd_umr *umr;

	LIST_FOREACH(umr, bucket(session, handle << 8), hash_link)
	{
		if (umr->key.val >> 8 != handle)
			continue;
		rep->len = umr->len;
		rep->pd = umr->pd;
		rep->key = umr->key.val;
		rep->access = umr->access;
		return 0;
	}
	return -ENOENT;
}

int
rcd_umem_rereg(struct rcd_session *session, const struct rcd_ctrl_mr_req *req, uint32_t *key)
{
	struct rcd_umr *old = find_umr(session, req->key);
	struct rcd_umr *umr;
	int err;

	if (rcd_table_get(&session->pds, req->pd) == NULL || old == NULL)
		return -ENOENT;
	if (old->null || (req->access & RCD_ACCESS_NULL))
		return -EINVAL;
	err = rcd_uregion_make(session, req, &umr);
	return err == 0 ? enter(session, umr, old, key) : err;
}

static void
dereg_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct change *change = arg;

	(void)lcore;
	change->err = rcd_mr_deregister(change->session->mrs, change->key);
	if (change->err == 0 && change->foreign)
		rcd_ucopied_swap(change->session);
}

int
rcd_umem_dereg(struct rcd_session *session, uint32_t key)
{
	struct change change = {
		.session = session, .umr = find_umr(session, key), .key = { key }
	};

	if (change.umr == NULL)
		return -ENOENT;
	change.foreign = is_foreign(change.umr);
	if (change.foreign)
		change.err = rcd_ucopied_prepare(session, change.umr, NULL);
	if (change.err == 0)
		rcd_lcore_call(session->lcore, dereg_on_lcore, &change);
	if (change.err == 0) {
		leave(session, change.umr);
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_MRS, 1);
	}
	return change.err;
}

static void
mw_alloc_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct change *change = arg;

	(void)lcore;
	change->err = rcd_mw_alloc(change->session->mrs, change->kind, change->pd, &change->key);
}

/* A window keeps its protection domain busy, and is counted by it, until the session ends. */
int
rcd_umem_mw_alloc(struct rcd_session *session, const struct rcd_ctrl_mw_req *req, uint32_t *key)
{
	struct change change = { .session = session,
		.kind = req->type == 1 ? RCD_MR_WINDOW_1 : RCD_MR_WINDOW_2,
		.pd = req->pd };
	int err;

	if (req->type != 1 && req->type != 2)
		return -EINVAL;
	err = charge_key(session, req->pd);
	if (err != 0)
		return err;
	rcd_lcore_call(session->lcore, mw_alloc_on_lcore, &change);
	if (change.err == 0) {
		session->mw_count++;
		*key = change.key.val;
	}
	return charged(session, change.err);
}

static void
mw_free_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct change *change = arg;

	(void)lcore;
	change->err = rcd_mw_free(change->session->mrs, change->key);
}

int
rcd_umem_mw_free(struct rcd_session *session, uint32_t key)
{
	struct change change = { .session = session, .key = { key } };

	rcd_lcore_call(session->lcore, mw_free_on_lcore, &change);
	if (change.err == 0) {
		session->mw_count--;
		rcd_quota_uncharge(&session->quota, RCD_RESOURCE_MRS, 1);
	}
	return change.err;
}

void
rcd_umem_close(struct rcd_session *session)
{
	for (uint32_t i = 0; i < RCD_UMR_BUCKETS; i++) {
		struct rcd_umr *umr;

		while ((umr = LIST_FIRST(&session->umrs[i])) != NULL) {
			LIST_REMOVE(umr, hash_link);
			rcd_uregion_free(session, umr);
		}
	}
	for (uint32_t i = 0; i < session->mems.fresh; i++)
		if (session->mems.slots[i] != NULL)
			rcd_umem_del(session, i);
	rcd_ulost_settle(session);
}
