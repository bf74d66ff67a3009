/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Ends of connections, of one direction or both.
 */
#include "rcd_ds.h"

#define LINGER_MS 10000 /**< for a peer that takes nothing any more */

static bool
rs_shutdown_can_say(const struct rcd_rs *rs)
{
	return rs->state != RCD_RS_CONNECTED || rs->control_room > 0;
}

static bool
rs_shutdown_is_sent(const struct rcd_rs *rs)
{
	return rs->state != RCD_RS_CONNECTED ||
		(rs->control_room == RCD_RS_CONTROLS &&
			rs->send_room == (uint32_t)rs->sizes.send_queue - RCD_RS_CONTROLS);
}

/* Until all has arrived: who destroys a queue pair takes away what it has not sent. */
static void
rs_shutdown_say(struct rcd_rs *rs, enum rcd_rs_control control)
{
	int64_t end_ms = rcd_rs_now_ms() + LINGER_MS;
	int err;

	do
		err = rcd_rs_wait(rs, rs_shutdown_can_say, rcd_rs_left_ms(end_ms));
	while (err == -EINTR && rcd_rs_now_ms() < end_ms);
	if (err != 0 || rs->state != RCD_RS_CONNECTED || rcd_rs_post_control(rs, control) != 0)
		return;
	do
		err = rcd_rs_wait(rs, rs_shutdown_is_sent, rcd_rs_left_ms(end_ms));
	while (err == -EINTR && rcd_rs_now_ms() < end_ms);
}

/* Whether it has a peer, or had one. */
static bool
rs_shutdown_may(const struct rcd_rs *rs)
{
	if (rs->ds != NULL)
		return rs->ds->peer.port != 0;
	return rs->state >= RCD_RS_CONNECTED && rs->state < RCD_RS_FAILED;
}

/* As the application asks, after what was sent has arrived. @return 0 or -ENOTCONN */
static int
rs_shutdown_begin(struct rcd_rs *rs, int how)
{
	bool could_write = rs->writable;

	if (!rs_shutdown_may(rs))
		return -ENOTCONN;
	if (how != SHUT_WR)
		rs->readable = false;
	if (how != SHUT_RD)
		rs->writable = false;
	/* Now: below it may take as long as the peer likes. */
	rcd_rs_ring(rs, NULL);
	/* To a peer of datagrams there is no word of it. */
	if (rs->ds != NULL)
		return 0;
	if (rs->state == RCD_RS_CONNECTED && !(how == SHUT_RD && rs->writable) &&
		!(how == SHUT_WR && !could_write))
		rs_shutdown_say(rs, rs->readable ? RCD_RS_SHUTDOWN : RCD_RS_DISCONNECT);
	if (!rs->readable && !rs->writable) {
		/* Both directions have ended: the queue pair with them. */
		rcd_rs_disconnected(rs);
		rdma_disconnect(rs->id);
	}
	rcd_rs_ring(rs, NULL);
	return 0;
}

int
rshutdown(int number, int how)
{
	struct rcd_rs *rs = rcd_rs_get(number);
	int err;

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	rcd_rs_progress(rs, NULL);
	err = how == SHUT_RD || how == SHUT_WR || how == SHUT_RDWR ? rs_shutdown_begin(rs, how)
								   : -EINVAL;
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_put(rs);
	return (int)rcd_rs_ret(err);
}

int
rclose(int number)
{
	struct rcd_rs *rs = rcd_rs_leave(number);

	if (rs == NULL)
		return -1;
	pthread_mutex_lock(&rs->lock);
	if (rs->ds != NULL)
		rcd_ds_close(rs);
	else
		rs_shutdown_begin(rs, SHUT_RDWR);
	rs->state = RCD_RS_CLOSED;
	rs->readable = rs->writable = false;
	rcd_rs_ring(rs, NULL);
	pthread_mutex_unlock(&rs->lock);
	rcd_rs_service_remove(rs);
	rcd_rs_put(rs);
	return 0;
}
