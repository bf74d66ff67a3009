/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * XRC domains: which file stands for which, and who is a member.
 */
#include "rcd_xrcd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rcd_closer.h"
#include "rcd_conn.h"
#include "rcd_context.h"
#include "rcd_contexts.h"
#include "rcd_host.h"
#include "rcd_hsrq.h"
#include "rcd_lcore_ctl.h"
#include "rcd_mr.h"
#include "rcd_near.h"
#include "rcd_queue.h"
#include "rcd_quota.h"
#include "rcd_table.h"
#include "rcd_thread.h"
#include "rcd_ucopied.h"
#include "rcd_ucopy.h"
#include "rcd_xqp.h"

/*
 * Which file it is. The file system may be the client's own program: it is not asked, what the
 * kernel knows is enough.
 */
static int
xrcd_identify(int fd, struct statx *file)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	/* It can be had without any right to the file. */
	if (flags & O_PATH)
		return -EBADF;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, file) != 0)
		return -errno;
	/* Numbers of pipes, sockets and the like say nothing of who has them. */
	return S_ISREG(file->stx_mode) || S_ISDIR(file->stx_mode) ? 0 : -EINVAL;
}

static uint64_t
xrcd_file_dev(const struct statx *file)
{
	return makedev(file->stx_dev_major, file->stx_dev_minor);
}

static struct rcd_xrcd *
xrcd_find(const struct rcd_context *context, uid_t uid, const struct statx *file)
{
	struct rcd_xrcd *xrcd;

	LIST_FOREACH(xrcd, &context->all->xrcds, link)
		if (xrcd->fd >= 0 && xrcd->dev == context->dev && xrcd->uid == uid &&
			xrcd->file_dev == xrcd_file_dev(file) && xrcd->file_ino == file->stx_ino)
			return xrcd;
	return NULL;
}

static struct rcd_xrcd *
xrcd_make(struct rcd_context *context, uid_t uid)
{
	static const struct rcd_ucopied nothing;
	struct rcd_xrcd *xrcd =
		rcd_near_zalloc(rcd_lcore_socket_id(context->client.lcore), sizeof(*xrcd));

	if (xrcd == NULL)
		return NULL;
	/* Without keys, and memory: targets have those of the members. */
	xrcd->client.mrs = rcd_mr_table_create(1, 0);
	if (xrcd->client.mrs == NULL) {
		free(xrcd);
		return NULL;
	}
	rcd_host_client_init(&xrcd->client);
	xrcd->client.copied = &nothing;
	rcd_ucopy_open(&xrcd->client);
	xrcd->dev = context->dev;
	xrcd->lcore = xrcd->client.lcore = context->client.lcore;
	xrcd->uid = uid;
	xrcd->fd = -1;
	LIST_INIT(&xrcd->targets);
	LIST_INSERT_HEAD(&context->all->xrcds, xrcd, link);
	return xrcd;
}

static int
xrcd_forget_on_lcore(struct rcd_lcore *lcore, void *arg)
{
	struct rcd_xrcd *xrcd = arg;

	rcd_host_client_del(lcore, &xrcd->client);
	return 0;
}

static void
xrcd_put(struct rcd_context *context, struct rcd_xrcd *xrcd)
{
	if (xrcd->members > 0)
		return;
	rcd_lcore_call(xrcd->lcore, xrcd_forget_on_lcore, xrcd);
	for (int i = 0; i < RCD_COUNTER_COUNT; i++)
		rcd_counter_add(context->all->conf.counters, (enum rcd_counter)i,
			rcd_counter_get(&xrcd->client.counters, (enum rcd_counter)i));
	if (xrcd->fd >= 0)
		rcd_closer_take(context->all->conf.closer, xrcd->fd, xrcd->uid);
	LIST_REMOVE(xrcd, link);
	rcd_mr_table_destroy(xrcd->client.mrs);
	free(xrcd);
}

static void
xrcd_uncharge(struct rcd_context *context, bool filed)
{
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_XRCDS, 1);
	rcd_quota_uncharge(&context->quota, RCD_RESOURCE_DESCRIPTORS, filed);
}

/* @param filed  for a descriptor as well */
static int
xrcd_charge(struct rcd_context *context, bool filed)
{
	int err = rcd_quota_charge(&context->quota, RCD_RESOURCE_XRCDS, 1);

	if (err != 0)
		return err;
	err = rcd_quota_charge(&context->quota, RCD_RESOURCE_DESCRIPTORS, filed);
	if (err != 0)
		rcd_quota_uncharge(&context->quota, RCD_RESOURCE_XRCDS, 1);
	return err;
}

static int
xrcd_join(struct rcd_context *context, struct rcd_xrcd *xrcd, bool filed, uint32_t *handle)
{
	struct rcd_xmember *member;
	int err = xrcd_charge(context, filed);

	if (err != 0)
		return err;
	member = calloc(1, sizeof(*member));
	if (member == NULL || rcd_table_add(&context->xrcds, member, handle) != 0) {
		xrcd_uncharge(context, filed);
		free(member);
		return -ENOMEM;
	}
	*member = (struct rcd_xmember){ .xrcd = xrcd, .handle = *handle, .filed = filed };
	xrcd->members++;
	if (context->client.ucopy != NULL)
		rcd_xqp_copy(xrcd);
	return 0;
}

int
rcd_xrcd_open(struct rcd_context *context, struct rcd_conn *conn,
	const struct rcd_ctrl_xrcd_req *in, int fd, bool *kept, uint32_t *handle)
{
	struct rcd_xrcd *xrcd;
	struct statx file;
	int err;

	RCD_ON_CONTROL();
	*kept = false;
	if ((in->flags & ~(RCD_CTRL_O_CREAT | RCD_CTRL_O_EXCL)) != 0 || in->reserved != 0)
		return -EINVAL;
	err = xrcd_identify(fd, &file);
	if (err != 0)
		return err;
	xrcd = xrcd_find(context, conn->uid, &file);
	if (xrcd == NULL && !(in->flags & RCD_CTRL_O_CREAT))
		return -EAGAIN;
	if (xrcd != NULL && (in->flags & RCD_CTRL_O_EXCL))
		return -EINVAL;
	if (xrcd != NULL && !rcd_context_bring(context, xrcd->lcore))
		return -EBUSY;
	if (xrcd == NULL) {
		xrcd = xrcd_make(context, conn->uid);
		if (xrcd == NULL)
			return -ENOMEM;
	}
	err = xrcd_join(context, xrcd, true, handle);
	if (err == 0 && xrcd->fd < 0) {
		xrcd->fd = fd;
		xrcd->file_dev = xrcd_file_dev(&file);
		xrcd->file_ino = file.stx_ino;
		*kept = true;
	}
	xrcd_put(context, xrcd);
	return err;
}

int
rcd_xrcd_create(struct rcd_context *context, const struct rcd_conn *conn, uint32_t *handle)
{
	struct rcd_xrcd *xrcd;
	int err;

	RCD_ON_CONTROL();
	xrcd = xrcd_make(context, conn->uid);
	if (xrcd == NULL)
		return -ENOMEM;
	err = xrcd_join(context, xrcd, false, handle);
	xrcd_put(context, xrcd);
	return err;
}

static void
xrcd_part(struct rcd_context *context, struct rcd_xmember *member)
{
	rcd_table_del(&context->xrcds, member->handle);
	xrcd_uncharge(context, member->filed);
	member->xrcd->members--;
	xrcd_put(context, member->xrcd);
	free(member);
}

int
rcd_xrcd_close(struct rcd_context *context, uint32_t handle)
{
	struct rcd_xmember *member = rcd_table_get(&context->xrcds, handle);

	RCD_ON_CONTROL();
	if (member == NULL)
		return -ENOENT;
	if (member->users > 0)
		return -EBUSY;
	xrcd_part(context, member);
	return 0;
}

void
rcd_xrcd_leave(struct rcd_context *context)
{
	RCD_ON_CONTROL();
	if (context->xrcds.used == 0)
		return;
	rcd_xqp_leave(context);
	rcd_hsrq_leave(context);
	for (uint32_t i = 0; i < context->xrcds.fresh; i++)
		if (context->xrcds.slots[i] != NULL)
			xrcd_part(context, context->xrcds.slots[i]);
}
