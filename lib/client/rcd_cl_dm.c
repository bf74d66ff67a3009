/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device memory: allocated by a request, copied to and from where it is mapped.
 */
#include "rcd_cl_dm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
cl_dm_take(struct rcd_client *client, const struct rcd_ctrl_dm_rep *rep, struct rcd_cl_dm *dm)
{
	*dm = (struct rcd_cl_dm){ .client = client,
		.at = (uint8_t *)client->shm + rep->offset,
		.len = rep->len,
		.handle = rep->handle };
}

static int
cl_dm_alloc_of(struct rcd_client *client, uint64_t len, struct rcd_cl_dm *dm)
{
	struct rcd_ctrl_dm_req req = { .len = len };
	struct rcd_ctrl_dm_rep rep;
	int err = rcd_client_call(client, RCD_CTRL_DM_ALLOC, &req, &rep, NULL, NULL);

	if (err == 0)
		cl_dm_take(client, &rep, dm);
	return err;
}

/* In a forked child: by a session beside the parent's, found by the descriptor of its segment. */
static int
cl_dm_alloc_beside(const struct rcd_client *parent, uint64_t len, struct rcd_cl_dm *dm)
{
	struct rcd_client *own = malloc(sizeof(*own));
	uint32_t index;
	int err;

	if (own == NULL)
		return -ENOMEM;
	err = rcd_client_connect(own, NULL);
	if (err != 0) {
		free(own);
		return -EIO;
	}
	err = rcd_client_import(own, parent->seg_fd, &index);
	if (err == 0)
		err = cl_dm_alloc_of(own, len, dm);
	else
		err = -EIO;
	if (err != 0) {
		rcd_client_close(own);
		free(own);
		return err;
	}
	dm->own = own;
	return 0;
}

int
rcd_cl_dm_alloc(struct rcd_client *client, uint64_t len, struct rcd_cl_dm *dm)
{
	return rcd_client_forked(client) ? cl_dm_alloc_beside(client, len, dm)
					 : cl_dm_alloc_of(client, len, dm);
}

int
rcd_cl_dm_import(struct rcd_client *client, uint32_t handle, struct rcd_cl_dm *dm)
{
	struct rcd_ctrl_handle req = { .handle = handle };
	struct rcd_ctrl_dm_rep rep;
	int err = rcd_client_forked(client)
		? -EIO
		: rcd_client_call(client, RCD_CTRL_DM_QUERY, &req, &rep, NULL, NULL);

	if (err == 0)
		cl_dm_take(client, &rep, dm);
	return err;
}

void
rcd_cl_dm_forget(struct rcd_cl_dm *dm)
{
	/* One that a child of the child inherited is closed there, and stays open here. */
	if (dm->own != NULL) {
		rcd_client_close(dm->own);
		free(dm->own);
	}
	dm->own = NULL;
}

int
rcd_cl_dm_free(struct rcd_cl_dm *dm)
{
	int err = -EIO;

	if (!rcd_client_forked(dm->client))
		err = rcd_cl_destroy(dm->client, RCD_CTRL_DM_FREE, dm->handle);
	if (err == 0 || err == -EIO)
		rcd_cl_dm_forget(dm);
	return err;
}

static int
cl_dm_check(const struct rcd_cl_dm *dm, uint64_t offset, uint64_t len)
{
	if (offset % RCD_CL_DM_UNIT != 0 || len % RCD_CL_DM_UNIT != 0 || offset > dm->len ||
		len > dm->len - offset)
		return -EINVAL;
	return rcd_client_forked(dm->client) || rcd_client_dead(dm->client) ? -EIO : 0;
}

int
rcd_cl_dm_write(struct rcd_cl_dm *dm, uint64_t offset, const void *from, uint64_t len)
{
	int err = cl_dm_check(dm, offset, len);

	if (err == 0)
		memcpy(dm->at + offset, from, len);
	return err;
}

int
rcd_cl_dm_read(struct rcd_cl_dm *dm, uint64_t offset, void *to, uint64_t len)
{
	int err = cl_dm_check(dm, offset, len);

	if (err == 0)
		memcpy(to, dm->at + offset, len);
	return err;
}

int
rcd_cl_dm_reg(struct rcd_client *client, const struct rcd_ctrl_dm_mr_req *req, uint32_t *key)
{
	struct rcd_ctrl_mr_rep rep;
	int err;

	if (rcd_client_forked(client))
		return -EIO;
	err = rcd_client_call(client, RCD_CTRL_DM_REG, req, &rep, NULL, NULL);
	if (err == 0)
		*key = rep.key;
	return err;
}
