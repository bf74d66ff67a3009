/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of a session to the engine, and how the engine's end is noticed.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_client.h"

void
rcd_client_lost(struct rcd_client *client)
{
	__atomic_store_n(&client->dead, 1, __ATOMIC_RELAXED);
}

/* @return status of the reply, or -EIO */
static int
cl_call_exchange(struct rcd_client *client, struct rcd_ctrl_msg *msg,
	const struct rcd_ctrl_fds *fds_in, struct rcd_ctrl_fds *fds_out)
{
	uint32_t op = msg->hdr.op;
	uint32_t number = msg->hdr.number;
	long len;

	if (rcd_ctrl_send(client->sock, msg, rcd_ctrl_req_len(op), fds_in, 0) != 0) {
		/* A refusal may have come before the connection was closed. */
		len = rcd_ctrl_recv(client->sock, msg, sizeof(*msg), NULL, MSG_DONTWAIT);
		rcd_client_lost(client);
		return len == (long)sizeof(msg->hdr) && msg->hdr.status != 0 ? msg->hdr.status
									     : -EIO;
	}
	len = rcd_ctrl_recv(client->sock, msg, sizeof(*msg), fds_out, 0);
	/* Closed with our request unread: that is told first, and then what was sent before. */
	if (len == -ECONNRESET)
		len = rcd_ctrl_recv(client->sock, msg, sizeof(*msg), fds_out, MSG_DONTWAIT);
	if (len < (long)sizeof(msg->hdr)) {
		rcd_client_lost(client);
		return -EIO;
	}
	if (msg->hdr.status == -EUSERS && op == RCD_CTRL_HELLO)
		return -EUSERS;
	if (msg->hdr.op != op || msg->hdr.number != number ||
		(msg->hdr.status == 0 && (size_t)len != rcd_ctrl_rep_len(op))) {
		rcd_client_lost(client);
		return -EPROTO;
	}
	return msg->hdr.status;
}

int
rcd_client_call(struct rcd_client *client, enum rcd_ctrl_op op, const void *req, void *rep,
	const struct rcd_ctrl_fds *fds_in, struct rcd_ctrl_fds *fds_out)
{
	struct rcd_ctrl_msg msg = { .hdr = { .op = op } };
	int err;

	if (fds_out != NULL)
		fds_out->count = 0;
	if (rcd_client_dead(client))
		return -EIO;
	if (req != NULL)
		memcpy(&msg.body, req, rcd_ctrl_req_len(op) - sizeof(msg.hdr));
	pthread_mutex_lock(&client->lock);
	msg.hdr.number = ++client->number;
	err = cl_call_exchange(client, &msg, fds_in, fds_out);
	pthread_mutex_unlock(&client->lock);
	if (rep != NULL && (err == 0 || (err == -EPROTONOSUPPORT && op == RCD_CTRL_HELLO)))
		memcpy(rep, &msg.body, rcd_ctrl_rep_len(op) - sizeof(msg.hdr));
	return err;
}

bool
rcd_client_check(struct rcd_client *client)
{
	char byte;
	ssize_t got;

	if (rcd_client_dead(client))
		return true;
	if (rcd_client_forked(client)) {
		rcd_client_lost(client);
		return true;
	}
	if (client->shm != NULL &&
		__atomic_load_n(&client->shm->state, __ATOMIC_RELAXED) == RCD_SHM_GONE) {
		rcd_client_lost(client);
		return true;
	}
	got = recv(client->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
		rcd_client_lost(client);
	return rcd_client_dead(client);
}

void
rcd_client_poison(struct rcd_client *client)
{
	rcd_client_lost(client);
	/* The segment is not mapped in a child, and no thread but one; the descriptors are the
	 * parent's session. */
	client->shm = NULL;
	client->copy = NULL;
	if (client->sock >= 0)
		close(client->sock);
	client->sock = -1;
}
