/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Waiting for one socket. Threads that wait sleep on the descriptors that the engine writes to,
 * and on bells of their own: who takes an event that another one may be waiting for rings.
 */
#include "rcd_ds.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 10000 /**< what rdma-core's polling_time is, too */
#define NAP_MS  10    /**< between looks, of a process that has no descriptor left for a bell */

int64_t
rcd_rs_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int
rcd_rs_left_ms(int64_t end_ms)
{
	int64_t left_ms = end_ms - rcd_rs_now_ms();

	return left_ms > 0 ? (int)left_ms : 0;
}

int
rcd_rs_nap_ms(int bell, int timeout_ms)
{
	return bell < 0 && (timeout_ms < 0 || timeout_ms > NAP_MS) ? NAP_MS : timeout_ms;
}

static int64_t
rs_wait_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void
rcd_rs_progress(struct rcd_rs *rs, const struct rcd_rs_watch *self)
{
	bool changed = rs->ds != NULL ? rcd_ds_progress(rs) : rcd_rs_message_progress(rs);

	if (rcd_rs_cm_progress(rs)) {
		/* Newly connected, it may have what came with that. */
		rcd_rs_message_progress(rs);
		changed = true;
	}
	if (changed)
		rcd_rs_ring(rs, self);
}

void
rcd_rs_arm_all(struct rcd_rs *rs)
{
	if (rs->ds != NULL)
		rcd_ds_arm(rs);
	else
		rcd_rs_arm(rs);
}

void
rcd_rs_disarm(struct rcd_rs *rs)
{
	struct ibv_cq *cq;
	void *context;

	if (rs->ds != NULL)
		rcd_ds_disarm(rs);
	if (rs->comp == NULL || ibv_get_cq_event(rs->comp, &cq, &context) != 0)
		return;
	ibv_ack_cq_events(cq, 1);
	rs->armed = false;
	/* Who sleeps relied on what was armed. */
	rcd_rs_ring(rs, NULL);
}

struct pollfd *
rcd_rs_files(const struct rcd_rs *rs, struct pollfd files[2])
{
	int comp = rs->comp != NULL ? rs->comp->fd : -1;

	/* The UDP socket of datagrams is the service thread's. */
	files[0] = (struct pollfd){ .fd = rs->ds != NULL ? -1 : rs->number, .events = POLLIN };
	files[1] = (struct pollfd){ .fd = rs->ds != NULL ? rs->ds->epoll : comp, .events = POLLIN };
	return &files[1];
}

/* Sleep once. @return 0 or -errno */
static int
rs_wait_sleep(struct rcd_rs *rs, bool (*until)(const struct rcd_rs *), int timeout_ms, int bell)
{
	struct rcd_rs_watch watch = { .bell = bell };
	struct pollfd fds[3] = { { .fd = bell, .events = POLLIN } };
	const struct pollfd *comp = rcd_rs_files(rs, fds + 1);
	eventfd_t rings;
	int got = 0;
	int err = 0;

	LIST_INSERT_HEAD(&rs->watches, &watch, link);
	rcd_rs_arm_all(rs);
	rcd_rs_progress(rs, &watch);
	if (!until(rs)) {
		pthread_mutex_unlock(&rs->lock);
		got = poll(fds, 3, rcd_rs_nap_ms(bell, timeout_ms));
		err = got < 0 ? -errno : 0;
		pthread_mutex_lock(&rs->lock);
	}
	LIST_REMOVE(&watch, link);
	if (got > 0 && fds[0].revents)
		eventfd_read(bell, &rings);
	if (got > 0 && fds[1].revents)
		rs->channel_told = true;
	if (got > 0 && comp->revents)
		rcd_rs_disarm(rs);
	return err;
}

int
rcd_rs_wait(struct rcd_rs *rs, bool (*until)(const struct rcd_rs *), int timeout_ms)
{
	int64_t end_ms = timeout_ms > 0 ? rcd_rs_now_ms() + timeout_ms : 0;
	int64_t spin_end_ns = 0;
	int bell = -1;
	int err = 0;

	for (;;) {
		rcd_rs_progress(rs, NULL);
		if (until(rs)) {
			err = 0;
			break;
		}
		if (err == 0 && timeout_ms == 0)
			err = -EAGAIN;
		if (err != 0)
			break;
		if (spin_end_ns == 0)
			spin_end_ns = rs_wait_now_ns() + SPIN_NS;
		if (rs_wait_now_ns() < spin_end_ns) {
			pthread_mutex_unlock(&rs->lock);
			pthread_mutex_lock(&rs->lock);
			continue;
		}
		if (bell < 0)
			bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = rs_wait_sleep(rs, until, timeout_ms, bell);
		if (timeout_ms > 0)
			timeout_ms = rcd_rs_left_ms(end_ms);
	}
	if (bell >= 0)
		close(bell);
	return err;
}

static bool
rs_wait_is_decided(const struct rcd_rs *rs)
{
	return rs->state < RCD_RS_RESOLVING || rs->state > RCD_RS_ACCEPTING;
}

int
rcd_rs_wait_connected(struct rcd_rs *rs, bool nonblock)
{
	int err;

	if (rs->state >= RCD_RS_CONNECTED && rs->state != RCD_RS_CLOSED)
		return 0;
	if (rs->state < RCD_RS_RESOLVING)
		return -ENOTCONN;
	err = rcd_rs_wait(rs, rs_wait_is_decided, nonblock ? 0 : -1);
	if (err != 0)
		return err;
	if (rs->state == RCD_RS_CLOSED)
		return -EBADF;
	if (rs->state == RCD_RS_FAILED) {
		err = rs->error != 0 ? -rs->error : -ENOTCONN;
		rs->error = 0;
	}
	return err;
}
