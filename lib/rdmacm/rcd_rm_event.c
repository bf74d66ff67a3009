/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the engine's events mean for identifiers and their queue pairs.
 */
#include "rcd_rm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PACE_STEP_NS 50000
#define PACE_STEPS   2000 /**< 100 ms and more: on a busy machine 10 were too few for rping */
#define PACE_IN_VAIN 3

/* The engine's events are handed on as they are. */
#define RCD_CM_EVENT(symbol, number)                                                               \
	static_assert((number) == (uint32_t)RDMA_CM_EVENT_##symbol, "RDMA_CM_EVENT_" #symbol);
#include "rcd_number.def"

/* The application is given an event of an identifier, or has done with it. */
static void
rm_event_count(struct rcd_rm_id *id, uint32_t *counter)
{
	pthread_mutex_lock(&id->lock);
	(*counter)++;
	pthread_cond_broadcast(&id->acked);
	pthread_mutex_unlock(&id->lock);
}

/*
 * Take the oldest event, for which a byte was taken. From here on its identifier waits for it, when
 * it is destroyed: that is counted with the channel locked, as the identifier is forgotten.
 *
 * @param id  set to whom it is given at; NULL: it was destroyed
 * @return 0; -EAGAIN: it is gone, its identifier went or has moved; -errno
 */
static int
rm_event_take(
	struct rcd_rm_channel *channel, struct rcd_ctrl_cm_event_rep *rep, struct rcd_rm_id **id)
{
	struct rcd_ctrl_handle req = { .handle = channel->handle };
	int err;

	pthread_mutex_lock(&channel->lock);
	err = rcd_client_call(&channel->session->client, RCD_CTRL_CM_EVENT, &req, rep, NULL, NULL);
	*id = err != 0 ? NULL
		       : rcd_rm_session_find(channel->session,
				 rep->listen != RCD_CTRL_NO_HANDLE ? rep->listen : rep->id);
	if (*id != NULL)
		rm_event_count(*id, &(*id)->events_given);
	pthread_mutex_unlock(&channel->lock);
	return err;
}

static void
rm_event_conn_param(struct rcd_rm_event *event, const struct rcd_ctrl_cm_event_rep *rep)
{
	struct rdma_conn_param *conn = &event->base.param.conn;

	conn->private_data = rep->param.private_len > 0 ? event->private_data : NULL;
	conn->private_data_len = rep->param.private_len;
	conn->responder_resources = rep->param.responder_resources;
	conn->initiator_depth = rep->param.initiator_depth;
	conn->flow_control = rep->param.flow_control;
	conn->retry_count = rep->param.retry_count;
	conn->rnr_retry_count = rep->param.rnr_retry_count;
	conn->srq = rep->param.srq;
	conn->qp_num = rep->qpn;
}

/* What the peer said of itself in a REQ or REP. */
static void
rm_event_take_agreed(struct rcd_rm_id *id, const struct rcd_ctrl_cm_event_rep *rep)
{
	id->responder_resources = rep->param.responder_resources;
	id->initiator_depth = rep->param.initiator_depth;
	id->remote_ece = (struct ibv_ece){ .vendor_id = rep->param.ece_vendor_id,
		.options = rep->param.ece_options };
}

static void
rm_event_ud_param(struct rcd_rm_event *event, const struct rcd_ctrl_cm_event_rep *rep)
{
	struct rdma_ud_param *ud = &event->base.param.ud;

	ud->private_data = rep->param.private_len > 0 ? event->private_data : NULL;
	ud->private_data_len = rep->param.private_len;
	rcd_ctrl_av_to_verbs(&rep->av, &ud->ah_attr);
	ud->qp_num = rep->qpn;
	ud->qkey = rep->qkey;
}

static void
rm_event_any_param(struct rcd_rm_event *event, const struct rcd_rm_id *id,
	const struct rcd_ctrl_cm_event_rep *rep)
{
	if (id->base.qp_type == IBV_QPT_UD)
		rm_event_ud_param(event, rep);
	else
		rm_event_conn_param(event, rep);
}

/* Whether the application has done something with the last request, or it is there no more. */
static bool
rm_event_last_looked_at(struct rcd_rm_id *listener)
{
	struct rcd_rm_session *session = listener->session;
	const struct rcd_rm_id *last;
	bool looked;

	pthread_mutex_lock(&session->lock);
	last = listener->last_request < session->id_room ? session->ids[listener->last_request]
							 : NULL;
	looked = last == NULL || __atomic_load_n(&last->state, __ATOMIC_RELAXED) != RCD_RM_UNSEEN;
	pthread_mutex_unlock(&session->lock);
	return looked;
}

/*
 * There are servers whose event thread leaves each request in one variable for another thread, and
 * rping is one: requests that come closer together than that thread wakes up are mixed up. With
 * the kernel they seldom do. So a request waits for the one before to be looked at, for a moment;
 * a server that collects requests is found out, and not kept waiting any more.
 */
static void
rm_event_pace(const struct rcd_rm_channel *channel, struct rcd_rm_id *listener)
{
	const struct timespec step = { .tv_nsec = PACE_STEP_NS };
	int flags = fcntl(channel->base.fd, F_GETFL);

	if (listener->in_vain == PACE_IN_VAIN || (flags & O_NONBLOCK))
		return;
	for (uint32_t i = 0; i < PACE_STEPS; i++) {
		if (rm_event_last_looked_at(listener)) {
			listener->in_vain = 0;
			return;
		}
		nanosleep(&step, NULL);
	}
	listener->in_vain++;
}

/* The engine has made an identifier: make ours. @return 0, or -errno: it was refused */
static int
rm_event_new_request(struct rcd_rm_event *event, struct rcd_rm_id *listener,
	const struct rcd_ctrl_cm_event_rep *rep)
{
	struct rcd_ctrl_handle refused = { .handle = rep->id };
	struct rcd_rm_id *id;
	int err;

	rm_event_pace(rcd_rm_channel(listener->base.channel), listener);
	id = rcd_rm_id_make(listener->session, listener->base.channel, listener->base.context,
		listener->base.ps, listener->base.qp_type);
	err = id == NULL ? -ENOMEM : 0;
	if (err == 0) {
		rcd_rm_step(id,
			id->base.qp_type == IBV_QPT_UD ? RCD_CM_STEP_SIDR_REQ_CAME
						       : RCD_CM_STEP_REQ_CAME);
		id->handle = rep->id;
		err = rcd_rm_session_add(listener->session, id);
	}
	if (err == 0)
		err = rcd_rm_id_query(id);
	if (err == 0 && listener->sync)
		err = rdma_migrate_id(&id->base, NULL) != 0 ? -errno : 0;
	if (err != 0) {
		if (id != NULL)
			rcd_rm_id_free(id);
		rcd_client_call(&listener->session->client, RCD_CTRL_CM_DESTROY, &refused, NULL,
			NULL, NULL);
		return err;
	}
	listener->last_request = id->handle;
	rm_event_take_agreed(id, rep);
	event->base.listen_id = &listener->base;
	event->base.id = &id->base;
	rm_event_any_param(event, id, rep);
	return 0;
}

static void
rm_event_on_response(
	struct rcd_rm_event *event, struct rcd_rm_id *id, const struct rcd_ctrl_cm_event_rep *rep)
{
	int err;

	rm_event_conn_param(event, rep);
	rm_event_take_agreed(id, rep);
	/* Without a queue pair of its own the application confirms: rdma_establish(). */
	if (id->base.qp == NULL)
		return;
	err = rcd_rm_confirm(id);
	event->base.event = err == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR;
	event->base.status = err;
	if (err != 0)
		rcd_rm_step(id, RCD_CM_STEP_CONFIRM_FAILED);
}

/* @return false: it is of a group that was left */
static bool
rm_event_on_join(
	struct rcd_rm_event *event, struct rcd_rm_id *id, const struct rcd_ctrl_cm_event_rep *rep)
{
	struct rcd_rm_group *group;
	int err = 0;

	pthread_mutex_lock(&id->lock);
	group = rcd_rm_group_find(id, rep->group);
	if (group != NULL) {
		rm_event_ud_param(event, rep);
		event->base.param.ud.private_data = group->context;
		err = rcd_rm_group_attach(id, group);
	}
	pthread_mutex_unlock(&id->lock);
	if (err != 0) {
		event->base.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		event->base.status = err;
	}
	return group != NULL;
}

/* What an event means. @return false: nothing for the application */
static bool
rm_event_handle(
	struct rcd_rm_event *event, struct rcd_rm_id *id, const struct rcd_ctrl_cm_event_rep *rep)
{
	int err = 0;

	switch (event->base.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rcd_rm_id_query(id);
		if (err != 0)
			event->base.event = RDMA_CM_EVENT_ADDR_ERROR;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = rcd_rm_id_query(id);
		if (err != 0)
			event->base.event = RDMA_CM_EVENT_ROUTE_ERROR;
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return rm_event_new_request(event, id, rep) == 0;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		rm_event_on_response(event, id, rep);
		return true;
	case RDMA_CM_EVENT_REJECTED:
		if (!rcd_rm_step(id, RCD_CM_STEP_REJ_CAME))
			return false;
		rm_event_any_param(event, id, rep);
		rcd_rm_qp_error(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!rcd_rm_step(id, RCD_CM_STEP_DREP_CAME))
			return false;
		rm_event_any_param(event, id, rep);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		return rm_event_on_join(event, id, rep);
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		rm_event_any_param(event, id, rep);
		break;
	}
	if (err != 0)
		event->base.status = err;
	return true;
}

/*
 * Take a byte from the channel: there is an event for it. A signal ends a read() as it ends the
 * wait in one of the kernel's channels: not when its handler has SA_RESTART.
 *
 * @return 0 or -errno; -EAGAIN: it shall not wait; -EIO: the engine is gone
 */
static int
rm_event_wait_channel(const struct rcd_rm_channel *channel)
{
	char byte;
	ssize_t got = read(channel->base.fd, &byte, 1);

	return got == 1 ? 0 : got == 0 ? -EIO : -errno;
}

/* Take an event, waiting as the channel does. @return 0 or -errno */
static int
rm_event_next(
	struct rcd_rm_channel *channel, struct rcd_ctrl_cm_event_rep *rep, struct rcd_rm_id **id)
{
	int err;

	do {
		err = rm_event_wait_channel(channel);
		if (err == -EIO)
			rcd_rm_channel_ended(channel);
		if (err != 0)
			return err;
		err = rm_event_take(channel, rep, id);
	} while (err == -EAGAIN || (err == 0 && *id == NULL));
	return err;
}

int
rdma_get_cm_event(struct rdma_event_channel *base, struct rdma_cm_event **given)
{
	struct rcd_rm_event *event = given != NULL ? calloc(1, sizeof(*event)) : NULL;
	struct rcd_ctrl_cm_event_rep rep;

	if (event == NULL)
		return rcd_rm_ret(given != NULL ? -ENOMEM : -EINVAL);
	for (;;) {
		struct rcd_rm_id *id;
		int err = rm_event_next(rcd_rm_channel(base), &rep, &id);

		if (err != 0) {
			free(event);
			return rcd_rm_ret(err);
		}
		memset(event, 0, sizeof(*event));
		event->base.event = (enum rdma_cm_event_type)rep.event;
		event->base.status = rep.status;
		event->base.id = &id->base;
		event->counted = id;
		memcpy(event->private_data, rep.param.private_data, sizeof(rep.param.private_data));
		if (rm_event_handle(event, id, &rep)) {
			*given = &event->base;
			return 0;
		}
		rm_event_count(id, &id->events_acked);
	}
}

int
rdma_ack_cm_event(struct rdma_cm_event *base)
{
	struct rcd_rm_event *event = (struct rcd_rm_event *)(void *)base;

	if (base == NULL)
		return rcd_rm_ret(-EINVAL);
	rm_event_count(event->counted, &event->counted->events_acked);
	free(event);
	return 0;
}

int
rcd_rm_complete(struct rcd_rm_id *id)
{
	const struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	if (id->base.event != NULL) {
		rdma_ack_cm_event(id->base.event);
		id->base.event = NULL;
	}
	if (rdma_get_cm_event(id->base.channel, &id->base.event) != 0)
		return -1;
	event = id->base.event;
	if (event->status == 0)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return rcd_rm_ret(-ECONNREFUSED);
	return rcd_rm_ret(event->status < 0 ? event->status : -event->status);
}
