/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that the peer may write into at offsets: riomap(), riounmap(), riowrite().
 */
#include "rcd_rs.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void
rs_iomap_free(struct rcd_rs_mapping *mapping)
{
	LIST_REMOVE(mapping, link);
	ibv_dereg_mr(mapping->mr);
	free(mapping);
}

/* A place in the peer's table. @return -ENOSPC: there is none */
static int64_t
rs_iomap_place(const struct rcd_rs *rs)
{
	const struct rcd_rs_mapping *mapping;

	for (uint32_t i = 0; i < rs->peer_table.len; i++) {
		LIST_FOREACH(mapping, &rs->mappings, link)
			if (mapping->index == i)
				break;
		if (mapping == NULL)
			return i;
	}
	return -ENOSPC;
}

static int64_t
rs_iomap_add(struct rcd_rs *rs, void *buf, size_t len, bool written, off_t offset)
{
	struct rcd_rs_mapping *mapping;
	int64_t index = written ? rs_iomap_place(rs) : UINT32_MAX;

	if (index < 0)
		return index;
	mapping = calloc(1, sizeof(*mapping));
	if (mapping == NULL)
		return -ENOMEM;
	mapping->mr = ibv_reg_mr(rs->id->pd, buf, len,
		IBV_ACCESS_LOCAL_WRITE | (written ? IBV_ACCESS_REMOTE_WRITE : 0));
	if (mapping->mr == NULL) {
		int err = -errno;

		free(mapping);
		return err;
	}
	mapping->index = (uint32_t)index;
	mapping->offset = offset == -1 ? (uintptr_t)buf : (uint64_t)offset;
	mapping->untold = written;
	LIST_INSERT_HEAD(&rs->mappings, mapping, link);
	return (int64_t)mapping->offset;
}

off_t
riomap(int number, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rcd_rs *rs = rcd_rs_get_stream(number);
	int64_t ret = 0;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	rcd_rs_progress(rs, NULL);
	if ((prot & ~(PROT_WRITE | PROT_NONE)) != 0 || flags != 0 || len == 0 || len > UINT32_MAX ||
		offset < -1)
		ret = -EINVAL;
	else if (rs->state != RCD_RS_ACCEPTING && rs->state != RCD_RS_CONNECTED)
		ret = -ENOTCONN;
	if (ret == 0)
		ret = rs_iomap_add(rs, buf, len, prot & PROT_WRITE, offset);
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (off_t)rcd_rs_ret(ret);
}

int
riounmap(int number, void *buf, size_t len)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	struct rcd_rs_mapping *mapping;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	LIST_FOREACH(mapping, &rs->mappings, link)
		if (mapping->mr->addr == buf && mapping->mr->length == len)
			break;
	if (mapping != NULL)
		rs_iomap_free(mapping);
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(mapping == NULL ? -EINVAL : 0);
}

/* The mapping of the peer's that has an offset. */
static const struct rcd_rs_iomap *
rs_iomap_find(const struct rcd_rs *rs, uint64_t offset)
{
	for (uint32_t i = 0; i < rs->sizes.iomaps; i++)
		if (offset >= rs->table[i].offset &&
			offset - rs->table[i].offset < rs->table[i].sge.len)
			return &rs->table[i];
	return NULL;
}

static bool
rs_iomap_can_write(const struct rcd_rs *rs)
{
	return rcd_rs_can_stage(rs) || rs->state != RCD_RS_CONNECTED || !rs->writable;
}

/* Write as much as goes at once. @return bytes; -ENXIO: nothing is mapped there; -errno */
static int64_t
rs_iomap_write_some(struct rcd_rs *rs, const uint8_t *buf, size_t len, uint64_t offset)
{
	const struct rcd_rs_iomap *to = rs_iomap_find(rs, offset);
	uint64_t into;
	uint32_t now;
	struct ibv_sge sges[2];
	int count;
	int err;

	if (to == NULL)
		return -ENXIO;
	into = offset - to->offset;
	now = rcd_rs_least(len, rcd_rs_least(rs->send_free, RCD_RS_TRANSFER_MAX));
	now = rcd_rs_least(now, to->sge.len - into);
	count = rcd_rs_stage(rs, sges, now);
	memcpy((void *)(uintptr_t)sges[0].addr, buf, sges[0].length);
	if (count > 1)
		memcpy((void *)(uintptr_t)sges[1].addr, buf + sges[0].length, sges[1].length);
	err = rcd_rs_post_staged(rs, sges, count, to->sge.addr + into, to->sge.key, UINT32_MAX);
	return err != 0 ? err : (int64_t)now;
}

static ssize_t
rs_iomap_write(struct rcd_rs *rs, const uint8_t *buf, size_t len, uint64_t offset, bool nonblock)
{
	size_t done = 0;
	int err = rcd_rs_wait_connected(rs, nonblock);

	if (err == 0)
		err = rcd_rs_tell_mappings(rs, nonblock);
	while (err == 0 && done < len) {
		int64_t now;

		/* With what the peer has said of its mappings by now. */
		err = rcd_rs_wait(rs, rs_iomap_can_write, nonblock ? 0 : -1);
		if (err == 0 && (rs->state != RCD_RS_CONNECTED || !rs->writable))
			err = rs->error != 0 ? -rs->error : -EPIPE;
		if (err != 0)
			break;
		now = rs_iomap_write_some(rs, buf + done, len - done, offset + done);
		if (now < 0)
			err = (int)now;
		else
			done += (size_t)now;
	}
	return rcd_rs_done(rs, done, err);
}

size_t
riowrite(int number, const void *buf, size_t len, off_t offset, int flags)
{
	struct rcd_rs *rs = rcd_rs_get_stream(number);
	bool nonblock;
	ssize_t ret;

	if (rs == NULL)
		return (size_t)-1;
	nonblock = rcd_rs_is_nonblock(rs, flags);
	ret = len > SSIZE_MAX || (flags & MSG_OOB) ? -EINVAL
						   : rcd_rs_take_side(rs, &rs->send_lock, nonblock);
	if (ret == 0) {
		ret = rs_iomap_write(rs, buf, len, (uint64_t)offset, nonblock);
		rcd_rs_give_side(rs, &rs->send_lock);
	}
	rcd_rs_put(rs);
	return (size_t)rcd_rs_ret(ret);
}
