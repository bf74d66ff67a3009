/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The connection to the engine that all identifiers of a process share, and the devices that the
 * engine names.
 */
#include "rcd_rm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static LIST_HEAD(, rcd_rm_session) sessions = LIST_HEAD_INITIALIZER(sessions);
static struct rcd_rm_session *current;

static void
rm_session_before_fork(void)
{
	pthread_mutex_lock(&sessions_lock);
}

static void
rm_session_after_fork_parent(void)
{
	pthread_mutex_unlock(&sessions_lock);
}

/* The identifiers are the parent's; the child begins with a connection of its own. */
static void
rm_session_after_fork_child(void)
{
	struct rcd_rm_session *session;

	LIST_FOREACH(session, &sessions, link)
		rcd_client_poison(&session->client);
	current = NULL;
	pthread_mutex_unlock(&sessions_lock);
}

static void
rm_session_watch_forks(void)
{
	pthread_atfork(
		rm_session_before_fork, rm_session_after_fork_parent, rm_session_after_fork_child);
}

static void
rm_session_free(struct rcd_rm_session *session)
{
	struct rcd_rm_device *device;

	while ((device = LIST_FIRST(&session->devices)) != NULL) {
		LIST_REMOVE(device, link);
		if (device->xrcd != NULL)
			ibv_close_xrcd(device->xrcd);
		if (device->pd != NULL)
			ibv_dealloc_pd(device->pd);
		ibv_close_device(device->verbs);
		free(device);
	}
	rcd_client_close(&session->client);
	pthread_mutex_destroy(&session->lock);
	free(session->ids);
	free(session);
}

/* With sessions_lock held. */
static void
rm_session_put_locked(struct rcd_rm_session *session)
{
	if (--session->refs > 0)
		return;
	LIST_REMOVE(session, link);
	rm_session_free(session);
}

void
rcd_rm_session_put(struct rcd_rm_session *session)
{
	pthread_mutex_lock(&sessions_lock);
	rm_session_put_locked(session);
	pthread_mutex_unlock(&sessions_lock);
}

void
rcd_rm_session_hold(struct rcd_rm_session *session)
{
	pthread_mutex_lock(&sessions_lock);
	session->refs++;
	pthread_mutex_unlock(&sessions_lock);
}

static struct rcd_rm_session *
rm_session_connect_locked(void)
{
	struct rcd_rm_session *session = calloc(1, sizeof(*session));
	int err;

	if (session == NULL)
		return NULL;
	err = rcd_client_connect(&session->client, NULL);
	if (err != 0) {
		free(session);
		/* What librdmacm says where there is no kernel support. */
		errno = err == -ENOENT || err == -ECONNREFUSED ? ENODEV : -err;
		return NULL;
	}
	pthread_mutex_init(&session->lock, NULL);
	LIST_INIT(&session->devices);
	LIST_INSERT_HEAD(&sessions, session, link);
	session->refs = 1;
	return session;
}

struct rcd_rm_session *
rcd_rm_session_get(void)
{
	struct rcd_rm_session *session;

	pthread_once(&fork_once, rm_session_watch_forks);
	pthread_mutex_lock(&sessions_lock);
	if (current != NULL && rcd_client_check(&current->client)) {
		rm_session_put_locked(current);
		current = NULL;
	}
	if (current == NULL)
		current = rm_session_connect_locked();
	session = current;
	if (session != NULL)
		session->refs++;
	pthread_mutex_unlock(&sessions_lock);
	return session;
}

/* The engine's devices by the number that it gave them. @return NULL and errno */
static struct ibv_context *
rm_session_open_device(uint32_t index)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = NULL;

	if (list == NULL)
		return NULL;
	errno = ENODEV;
	for (uint32_t i = 0; list[i] != NULL; i++)
		if (ibv_get_device_index(list[i]) == (int)index) {
			verbs = ibv_open_device(list[i]);
			break;
		}
	ibv_free_device_list(list);
	return verbs;
}

static struct rcd_rm_device *
rm_session_add_device(struct rcd_rm_session *session, uint32_t index)
{
	struct rcd_rm_device *device = calloc(1, sizeof(*device));
	struct ibv_device_attr attr;

	if (device == NULL)
		return NULL;
	device->verbs = rm_session_open_device(index);
	if (device->verbs == NULL) {
		free(device);
		return NULL;
	}
	device->index = index;
	if (ibv_query_device(device->verbs, &attr) == 0)
		device->max_rd_atomic =
			attr.max_qp_rd_atom < UINT8_MAX ? (uint8_t)attr.max_qp_rd_atom : UINT8_MAX;
	LIST_INSERT_HEAD(&session->devices, device, link);
	return device;
}

struct rcd_rm_device *
rcd_rm_device_get(struct rcd_rm_session *session, uint32_t index)
{
	struct rcd_rm_device *device;

	pthread_mutex_lock(&session->lock);
	LIST_FOREACH(device, &session->devices, link)
		if (device->index == index)
			break;
	if (device == NULL)
		device = rm_session_add_device(session, index);
	if (device != NULL && device->pd == NULL)
		device->pd = ibv_alloc_pd(device->verbs);
	if (device != NULL && device->pd == NULL)
		device = NULL;
	if (device != NULL)
		device->refs++;
	pthread_mutex_unlock(&session->lock);
	return device;
}

struct ibv_xrcd *
rcd_rm_device_xrcd(struct rcd_rm_session *session, struct rcd_rm_device *device)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	pthread_mutex_lock(&session->lock);
	if (device->xrcd == NULL)
		device->xrcd = ibv_open_xrcd(device->verbs, &attr);
	xrcd = device->xrcd;
	pthread_mutex_unlock(&session->lock);
	return xrcd;
}

void
rcd_rm_device_put(struct rcd_rm_session *session, struct rcd_rm_device *device)
{
	pthread_mutex_lock(&session->lock);
	/* An application may have left objects in them: then they stay for the next. */
	if (--device->refs == 0) {
		if (device->xrcd != NULL && ibv_close_xrcd(device->xrcd) == 0)
			device->xrcd = NULL;
		if (ibv_dealloc_pd(device->pd) == 0)
			device->pd = NULL;
	}
	pthread_mutex_unlock(&session->lock);
}

int
rcd_rm_session_add(struct rcd_rm_session *session, struct rcd_rm_id *id)
{
	int err = 0;

	pthread_mutex_lock(&session->lock);
	if (id->handle >= session->id_room) {
		uint32_t room = id->handle < 32 ? 64 : 2 * id->handle;
		struct rcd_rm_id **ids = realloc(session->ids, room * sizeof(ids[0]));

		if (ids != NULL) {
			memset(ids + session->id_room, 0,
				(room - session->id_room) * sizeof(ids[0]));
			session->ids = ids;
			session->id_room = room;
		} else {
			err = -ENOMEM;
		}
	}
	if (err == 0)
		session->ids[id->handle] = id;
	pthread_mutex_unlock(&session->lock);
	return err;
}

void
rcd_rm_session_del(struct rcd_rm_session *session, const struct rcd_rm_id *id)
{
	pthread_mutex_lock(&session->lock);
	if (id->handle < session->id_room && session->ids[id->handle] == id)
		session->ids[id->handle] = NULL;
	pthread_mutex_unlock(&session->lock);
}

struct rcd_rm_id *
rcd_rm_session_find(struct rcd_rm_session *session, uint32_t handle)
{
	struct rcd_rm_id *id;

	pthread_mutex_lock(&session->lock);
	id = handle < session->id_room ? session->ids[handle] : NULL;
	pthread_mutex_unlock(&session->lock);
	return id;
}

int
rcd_rm_call(struct rcd_rm_id *id, enum rcd_ctrl_op op, const void *req, void *rep)
{
	return rcd_client_call(&id->session->client, op, req, rep, NULL, NULL);
}

int
rcd_rm_call_handle(struct rcd_rm_id *id, enum rcd_ctrl_op op, void *rep)
{
	struct rcd_ctrl_handle req = { .handle = id->handle };

	return rcd_rm_call(id, op, &req, rep);
}

struct ibv_context **
rdma_get_devices(int *count)
{
	struct rcd_rm_session *session = rcd_rm_session_get();
	struct ibv_device **list = session != NULL ? ibv_get_device_list(NULL) : NULL;
	struct ibv_context **contexts = NULL;
	uint32_t found = 0;
	uint32_t devices = 0;

	while (list != NULL && list[devices] != NULL)
		devices++;
	if (list != NULL)
		contexts = calloc(devices + 1, sizeof(contexts[0]));
	for (uint32_t i = 0; contexts != NULL && i < devices; i++) {
		struct rcd_rm_device *device =
			rcd_rm_device_get(session, (uint32_t)ibv_get_device_index(list[i]));

		if (device == NULL)
			continue;
		contexts[found++] = device->verbs;
		rcd_rm_device_put(session, device);
	}
	if (list != NULL)
		ibv_free_device_list(list);
	if (contexts != NULL && found == 0) {
		free(contexts);
		contexts = NULL;
		errno = ENODEV;
	}
	/* The session stays, as the current one: it has the contexts. */
	if (session != NULL)
		rcd_rm_session_put(session);
	if (count != NULL)
		*count = (int)found;
	return contexts;
}

void
rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
