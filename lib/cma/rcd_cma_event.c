/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Channels of CM events: what waits in them, and the bytes that tell of it.
 */
#include "rcd_cma_event.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rcd_bits.h"
#include "rcd_cma_client.h"
#include "rcd_thread.h"

#define AGAIN_NS    20000000u
#define AGAIN_TWICE 6  /**< the time between attempts grows so often */
#define BYTES_MAX   64 /**< at once: who reads them comes for more */

/*
 * Bytes that the client does not have yet, as many as there is room for. One that has a byte comes
 * and takes an event; for one that has none they are tried again.
 */
static void
cma_event_tell(struct rcd_cma_channel *channel)
{
	const struct rcd_cma *cma = channel->cma;

	for (int i = 0; i < BYTES_MAX && channel->untold > 0 &&
		cma->ops->stream_send(channel->sock, "", 1) == 0;
		i++) {
		channel->untold--;
		channel->in_vain = 0;
	}
	if (channel->untold == 0 || channel->untold < channel->count) {
		rcd_alarm_cancel(cma->alarms, &channel->again);
		channel->waits = false;
	} else if (!channel->waits) {
		rcd_alarm_set(cma->alarms, &channel->again,
			rcd_cma_now_ns(cma) + ((uint64_t)AGAIN_NS << channel->in_vain));
		channel->waits = true;
	}
}

static void
cma_event_again(struct rcd_alarm *alarm, uint64_t now_ns)
{
	struct rcd_cma_channel *channel = RCD_OWNER(alarm, struct rcd_cma_channel, again);

	(void)now_ns;
	channel->waits = false;
	if (channel->in_vain < AGAIN_TWICE)
		channel->in_vain++;
	cma_event_tell(channel);
}

int
rcd_cma_channel_create(struct rcd_cma_client *client, uint32_t *handle, int *fd)
{
	struct rcd_cma_channel *channel;
	int ends[2];
	int err;

	RCD_ON_CONTROL();
	channel = calloc(1, sizeof(*channel));
	if (channel == NULL)
		return -ENOMEM;
	err = client->cma->ops->stream(client->owner, ends);
	if (err != 0) {
		free(channel);
		return err;
	}
	if (rcd_table_add(&client->channels, channel, &channel->handle) != 0) {
		client->cma->ops->stream_close(client->owner, ends[1]);
		close(ends[0]);
		free(channel);
		return -ENOMEM;
	}
	TAILQ_INIT(&channel->events);
	channel->cma = client->cma;
	channel->again.fn = cma_event_again;
	channel->sock = ends[1];
	*handle = channel->handle;
	*fd = ends[0];
	return 0;
}

struct rcd_cma_channel *
rcd_cma_channel_get(const struct rcd_cma_client *client, uint32_t handle)
{
	RCD_ON_CONTROL();
	return rcd_table_get(&client->channels, handle);
}

static void
cma_event_channel_free(const struct rcd_cma_client *client, struct rcd_cma_channel *channel)
{
	rcd_alarm_cancel(client->cma->alarms, &channel->again);
	client->cma->ops->stream_close(client->owner, channel->sock);
	free(channel);
}

int
rcd_cma_channel_destroy(struct rcd_cma_client *client, uint32_t handle)
{
	struct rcd_cma_channel *channel = rcd_cma_channel_get(client, handle);

	RCD_ON_CONTROL();
	if (channel == NULL)
		return -ENOENT;
	if (channel->users > 0)
		return -EBUSY;
	rcd_table_del(&client->channels, handle);
	cma_event_channel_free(client, channel);
	return 0;
}

struct rcd_cma_event *
rcd_cma_event(struct rcd_cmid *id, enum rcd_cma_event_type type, int status)
{
	const struct rcd_cma *cma = id->client->cma;
	struct rcd_cma_event *event = NULL;

	RCD_ON_CONTROL();
	if (rcd_quota_charge(id->client->quota, RCD_RESOURCE_CM_EVENTS, 1) == 0) {
		event = calloc(1, sizeof(*event));
		if (event == NULL)
			rcd_quota_uncharge(id->client->quota, RCD_RESOURCE_CM_EVENTS, 1);
	}
	if (event == NULL) {
		cma->ops->count(cma->arg, RCD_CMA_NO_DEV, RCD_COUNTER_EVENTS_LOST, 1);
		return NULL;
	}
	event->of = id;
	event->rep.event = type;
	event->rep.status = status;
	event->rep.id = id->handle;
	event->rep.listen = RCD_CTRL_NO_HANDLE;
	event->rep.group = RCD_CTRL_NO_HANDLE;
	return event;
}

void
rcd_cma_event_free(struct rcd_cma_event *event)
{
	RCD_ON_CONTROL();
	rcd_quota_uncharge(event->of->client->quota, RCD_RESOURCE_CM_EVENTS, 1);
	free(event);
}

/* So many events are gone that the client did not take. @return bytes of theirs that it has */
static uint32_t
cma_event_told(struct rcd_cma_channel *channel, uint32_t count)
{
	uint32_t untold = channel->untold < count ? channel->untold : count;

	channel->untold -= untold;
	return count - untold;
}

/* Let an event wait, untold so far. */
static void
cma_event_enter(struct rcd_cma_channel *channel, struct rcd_cma_event *event)
{
	TAILQ_INSERT_TAIL(&channel->events, event, link);
	TAILQ_INSERT_TAIL(&event->of->events, event, of_link);
	channel->count++;
	channel->untold++;
}

void
rcd_cma_event_post(struct rcd_cma_event *event)
{
	struct rcd_cma_channel *channel = event->of->channel;

	RCD_ON_CONTROL();
	cma_event_enter(channel, event);
	cma_event_tell(channel);
}

void
rcd_cma_event_tell(struct rcd_cmid *id, enum rcd_cma_event_type type, int status)
{
	struct rcd_cma_event *event;

	RCD_ON_CONTROL();
	event = rcd_cma_event(id, type, status);
	if (event != NULL)
		rcd_cma_event_post(event);
}

/* Take an event out of a channel. */
static void
cma_event_leave(struct rcd_cma_channel *channel, struct rcd_cma_event *event)
{
	TAILQ_REMOVE(&channel->events, event, link);
	TAILQ_REMOVE(&event->of->events, event, of_link);
	channel->count--;
}

static void
cma_event_drop(struct rcd_cma_channel *channel, struct rcd_cma_event *event)
{
	cma_event_leave(channel, event);
	rcd_cma_event_free(event);
}

int
rcd_cma_event_take(struct rcd_cma_client *client, struct rcd_cma_channel *channel,
	struct rcd_ctrl_cm_event_rep *rep)
{
	struct rcd_cma_event *event = TAILQ_FIRST(&channel->events);

	RCD_ON_CONTROL();
	if (event == NULL)
		return -EAGAIN;
	*rep = event->rep;
	if (rep->listen != RCD_CTRL_NO_HANDLE) {
		struct rcd_cmid *child = rcd_table_get(&client->ids, rep->id);

		/* The client knows of it now: room for the next request. */
		event->of->waiting--;
		if (child != NULL && child->listener != NULL) {
			LIST_REMOVE(child, child_link);
			child->listener = NULL;
		}
	}
	cma_event_drop(channel, event);
	/* It takes more than it was told of: no byte has to tell of those. */
	if (channel->untold > channel->count)
		channel->untold = channel->count;
	/* It has read a byte: there is room for one. */
	cma_event_tell(channel);
	return 0;
}

uint32_t
rcd_cma_event_purge(struct rcd_cmid *id, const struct rcd_cma_group *group)
{
	struct rcd_cma_channel *channel = id->channel;
	struct rcd_cma_event *event, *next;
	uint32_t count = 0;

	RCD_ON_CONTROL();
	for (event = TAILQ_FIRST(&id->events); event != NULL; event = next) {
		next = TAILQ_NEXT(event, of_link);
		if (group != NULL && event->rep.group != group->handle)
			continue;
		cma_event_drop(channel, event);
		count++;
	}
	return cma_event_told(channel, count);
}

uint32_t
rcd_cma_event_migrate(struct rcd_cmid *id, struct rcd_cma_channel *channel)
{
	struct rcd_cma_channel *from = id->channel;
	struct rcd_cma_event *event, *last = TAILQ_LAST(&id->events, rcd_cma_event_list);
	struct rcd_cmid *child;
	uint32_t count = 0;

	RCD_ON_CONTROL();
	if (channel == from)
		return 0;
	id->channel = channel;
	from->users--;
	channel->users++;
	/* Each goes to the end, behind those that have moved before it. */
	while (last != NULL) {
		event = TAILQ_FIRST(&id->events);
		cma_event_leave(from, event);
		cma_event_enter(channel, event);
		count++;
		if (event == last)
			break;
	}
	cma_event_tell(channel);
	count = cma_event_told(from, count);
	/* Requests that nobody has seen go with the listener. */
	LIST_FOREACH(child, &id->children, child_link)
		count += rcd_cma_event_migrate(child, channel);
	return count;
}

void
rcd_cma_events_end(struct rcd_cma_client *client)
{
	struct rcd_table *channels = &client->channels;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < channels->capacity; i++) {
		struct rcd_cma_channel *channel = channels->slots[i];

		while (channel != NULL && !TAILQ_EMPTY(&channel->events))
			cma_event_drop(channel, TAILQ_FIRST(&channel->events));
	}
}

void
rcd_cma_channels_end(struct rcd_cma_client *client)
{
	struct rcd_table *channels = &client->channels;

	RCD_ON_CONTROL();
	for (uint32_t i = 0; i < channels->capacity; i++) {
		struct rcd_cma_channel *channel = channels->slots[i];

		if (channel != NULL)
			cma_event_channel_free(client, channel);
	}
}
