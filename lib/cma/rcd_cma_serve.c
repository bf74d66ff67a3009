/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of connection management: from messages of clients to identifiers and channels. Those
 * that are one call are rows of rcd_cma_serve.def.
 */
#include "rcd_cma_client.h"

#include <errno.h>
#include <stdlib.h>

#include "rcd_cma_event.h"
#include "rcd_thread.h"

struct request {
	struct rcd_cma_client *client;
	const void *asker;
	const union rcd_ctrl_body *in;
	union rcd_ctrl_body *out;
	int *fd;
};

static int
cma_serve_cm_channel_create(struct request *r)
{
	return rcd_cma_channel_create(r->client, &r->out->cm_channel_create_rep.handle, r->fd);
}

static int
cma_serve_cm_channel_destroy(struct request *r)
{
	return rcd_cma_channel_destroy(r->client, r->in->cm_channel_destroy_req.handle);
}

static int
cma_serve_cm_event(struct request *r)
{
	struct rcd_cma_channel *channel =
		rcd_cma_channel_get(r->client, r->in->cm_event_req.handle);

	if (channel == NULL)
		return -ENOENT;
	return rcd_cma_event_take(r->client, channel, &r->out->cm_event_rep);
}

static int
cma_serve_cm_create(struct request *r)
{
	return rcd_cmid_create(r->client, &r->in->cm_create_req, &r->out->cm_create_rep.handle);
}

static int
cma_serve_cm_destroy(struct request *r)
{
	struct rcd_cmid *id = rcd_cmid_get(r->client, r->in->cm_destroy_req.handle);

	if (id == NULL)
		return -ENOENT;
	r->out->cm_destroy_rep.count = rcd_cmid_destroy(id);
	return 0;
}

static int
cma_serve_cm_migrate(struct request *r)
{
	const struct rcd_ctrl_cm_pair *req = &r->in->cm_migrate_req;
	struct rcd_cma_channel *channel = rcd_cma_channel_get(r->client, req->second);
	struct rcd_cmid *id = rcd_cmid_get(r->client, req->id);

	if (id == NULL || channel == NULL)
		return -ENOENT;
	r->out->cm_migrate_rep.count = rcd_cma_event_migrate(id, channel);
	return 0;
}

static int
cma_serve_cm_query(struct request *r)
{
	const struct rcd_cmid *id = rcd_cmid_get(r->client, r->in->cm_query_req.handle);

	if (id == NULL)
		return -ENOENT;
	rcd_cmid_query(id, &r->out->cm_query_rep);
	return 0;
}

static bool
cma_serve_private_fits(uint32_t len)
{
	return len <= RCD_CTRL_CM_PRIVATE_MAX;
}

static int
cma_serve_cm_connect(struct request *r)
{
	struct rcd_cmid *id = rcd_cmid_get(r->client, r->in->cm_connect_req.id);

	if (!cma_serve_private_fits(r->in->cm_connect_req.param.private_len))
		return -EINVAL;
	return id == NULL ? -ENOENT : rcd_cmid_connect(id, r->asker, &r->in->cm_connect_req);
}

static int
cma_serve_cm_accept(struct request *r)
{
	struct rcd_cmid *id = rcd_cmid_get(r->client, r->in->cm_accept_req.id);

	if (!cma_serve_private_fits(r->in->cm_accept_req.param.private_len))
		return -EINVAL;
	return id == NULL ? -ENOENT : rcd_cmid_accept(id, r->asker, &r->in->cm_accept_req);
}

static int
cma_serve_cm_reject(struct request *r)
{
	struct rcd_cmid *id = rcd_cmid_get(r->client, r->in->cm_reject_req.id);

	if (!cma_serve_private_fits(r->in->cm_reject_req.private_len))
		return -EINVAL;
	return id == NULL ? -ENOENT : rcd_cmid_reject(id, &r->in->cm_reject_req);
}

#define RCD_CMA_SERVE(name, key, call)                                                             \
	static int cma_serve_##name(struct request *r)                                             \
	{                                                                                          \
		const __typeof__(r->in->name##_req) *in = &r->in->name##_req;                      \
		__typeof__(r->out->name##_rep) *out = &r->out->name##_rep;                         \
		struct rcd_cmid *id = rcd_cmid_get(r->client, in->key);                            \
                                                                                                   \
		(void)out;                                                                         \
		return id == NULL ? -ENOENT : call;                                                \
	}
#include "rcd_cma_serve.def"

static int (*const functions[RCD_CTRL_OP_COUNT])(struct request *r) = {
#define RCD_CTRL(symbol, name, request, reply, fds, stage, description)
#define RCD_CTRL_CM(symbol, name, request, reply, fds, stage, description)                         \
	[RCD_CTRL_##symbol] = cma_serve_##name,
#include "rcd_ctrl.def"
};

struct rcd_cma_client *
rcd_cma_client_create(struct rcd_cma *cma, void *owner, struct rcd_quota_entry *quota)
{
	struct rcd_cma_client *client = calloc(1, sizeof(*client));

	RCD_ON_CONTROL();
	if (client == NULL)
		return NULL;
	client->cma = cma;
	client->owner = owner;
	client->quota = quota;
	client->account = rcd_cma_account_open(quota);
	if (client->account == NULL || rcd_table_init(&client->ids, RCD_CMA_IDS_MAX) != 0 ||
		rcd_table_init(&client->channels, RCD_CMA_CHANNELS) != 0) {
		rcd_table_fini(&client->ids);
		rcd_table_fini(&client->channels);
		free(client->account);
		free(client);
		return NULL;
	}
	return client;
}

void
rcd_cma_client_hand(struct rcd_cma_client *client, void *owner, struct rcd_quota_entry *quota)
{
	RCD_ON_CONTROL();
	client->owner = owner;
	client->quota = quota;
	client->account->entry = quota;
}

int
rcd_cma_serve(struct rcd_cma_client *client, const void *asker, uint32_t op,
	const union rcd_ctrl_body *in, union rcd_ctrl_body *out, int *fd)
{
	struct request request = {
		.client = client, .asker = asker, .in = in, .out = out, .fd = fd
	};

	RCD_ON_CONTROL();
	return functions[op](&request);
}

void
rcd_cma_client_destroy(struct rcd_cma_client *client)
{
	RCD_ON_CONTROL();
	if (client == NULL)
		return;
	rcd_cma_events_end(client);
	for (uint32_t i = 0; i < client->ids.capacity; i++)
		if (client->ids.slots[i] != NULL)
			rcd_cmid_destroy(client->ids.slots[i]);
	rcd_cma_account_close(&client->cma->rests, client->account);
	rcd_cma_channels_end(client);
	rcd_table_fini(&client->ids);
	rcd_table_fini(&client->channels);
	free(client);
}
