/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Channels: streams by which the engine says that there are events.
 */
#include "rcd_rm.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, rcd_rm_channel) channels = LIST_HEAD_INITIALIZER(channels);

struct rdma_event_channel *
rcd_rm_channel_make(struct rcd_rm_session *session)
{
	struct rcd_rm_channel *channel = calloc(1, sizeof(*channel));
	struct rcd_ctrl_handle req, rep;
	struct rcd_ctrl_fds fds;
	int err;

	if (channel == NULL) {
		rcd_rm_session_put(session);
		return NULL;
	}
	err = rcd_client_call(&session->client, RCD_CTRL_CM_CHANNEL_CREATE, NULL, &rep, NULL, &fds);
	if (err == 0 && fds.count != 1) {
		rcd_ctrl_fds_close(&fds);
		/* It was sent, and there was no room for it here. */
		req.handle = rep.handle;
		rcd_client_call(
			&session->client, RCD_CTRL_CM_CHANNEL_DESTROY, &req, NULL, NULL, NULL);
		err = -EMFILE;
	}
	if (err != 0) {
		rcd_rm_session_put(session);
		free(channel);
		errno = -err;
		return NULL;
	}
	channel->session = session;
	channel->handle = rep.handle;
	channel->base.fd = fds.fds[0];
	pthread_mutex_init(&channel->lock, NULL);
	pthread_mutex_lock(&channels_lock);
	LIST_INSERT_HEAD(&channels, channel, link);
	pthread_mutex_unlock(&channels_lock);
	return &channel->base;
}

struct rdma_event_channel *
rdma_create_event_channel(void)
{
	struct rcd_rm_session *session = rcd_rm_session_get();

	return session != NULL ? rcd_rm_channel_make(session) : NULL;
}

void
rdma_destroy_event_channel(struct rdma_event_channel *base)
{
	struct rcd_rm_channel *channel = rcd_rm_channel(base);
	struct rcd_ctrl_handle req = { .handle = channel->handle };

	pthread_mutex_lock(&channels_lock);
	LIST_REMOVE(channel, link);
	pthread_mutex_unlock(&channels_lock);
	rcd_client_call(
		&channel->session->client, RCD_CTRL_CM_CHANNEL_DESTROY, &req, NULL, NULL, NULL);
	close(base->fd);
	pthread_mutex_destroy(&channel->lock);
	rcd_rm_session_put(channel->session);
	free(channel);
}

void
rcd_rm_channel_drain(struct rcd_rm_channel *channel, uint32_t count)
{
	char byte;

	/*
	 * A read that never waits, however the application reads the channel: another thread may
	 * take the bytes first. One that has, finds no event for its own, and waits again.
	 */
	for (uint32_t i = 0; i < count; i++)
		if (recv(channel->base.fd, &byte, 1, MSG_DONTWAIT) != 1)
			return;
}

void
rcd_rm_channel_ended(const struct rcd_rm_channel *channel)
{
	const struct rcd_rm_channel *known;

	pthread_mutex_lock(&channels_lock);
	LIST_FOREACH(known, &channels, link)
		if (known == channel)
			break;
	pthread_mutex_unlock(&channels_lock);
	while (known == NULL)
		pause();
}
