/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The thread that does for sockets what their application does not call for: it reads the UDP
 * sockets of datagrams, and sends what keeps idle connections alive. It is there as long as there
 * are such sockets.
 */
#include "rcd_ds.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define STACK_BYTES (256 << 10)
#define NAP_MS      10 /**< where there is no memory to see what there is to do */

/** The thread. */
struct runner {
	pthread_t thread;
	int bell;
	bool stop; /**< of service_lock */
};

/* Inner to a socket's lock. busy is the one whose turn it is, and idle says that it is over. */
static pthread_mutex_t service_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(, rcd_rs) members = LIST_HEAD_INITIALIZER(members);
static uint32_t member_count;
static const struct rcd_rs *busy;
static struct runner *current;

/** What the thread sleeps on: its bell, and a file of each member. */
struct turn {
	struct pollfd *files;
	uint32_t room, count;
	int timeout_ms;
};

/* With service_lock. @return false: no memory */
static bool
rs_service_plan(struct turn *turn, const struct runner *runner)
{
	int64_t now_ms = rcd_rs_now_ms();
	struct rcd_rs *rs;
	uint32_t at = 1;

	if (turn->room < member_count + 1) {
		uint32_t room = 2 * (member_count + 1);
		struct pollfd *files = realloc(turn->files, room * sizeof(files[0]));

		if (files == NULL)
			return false;
		turn->files = files;
		turn->room = room;
	}
	turn->timeout_ms = -1;
	turn->files[0] = (struct pollfd){ .fd = runner->bell, .events = POLLIN };
	LIST_FOREACH(rs, &members, service) {
		rs->service_at = at;
		turn->files[at++] =
			(struct pollfd){ .fd = rs->ds != NULL ? rs->number : -1, .events = POLLIN };
		if (rs->alive_ms != 0) {
			int64_t left_ms = rs->alive_ms > now_ms ? rs->alive_ms - now_ms : 0;

			if (turn->timeout_ms < 0 || left_ms < turn->timeout_ms)
				turn->timeout_ms = (int)rcd_rs_least((uint64_t)left_ms, INT32_MAX);
		}
	}
	turn->count = at;
	return true;
}

/* The next one that has something to do. With service_lock. */
static struct rcd_rs *
rs_service_next(const struct turn *turn)
{
	int64_t now_ms = rcd_rs_now_ms();
	struct rcd_rs *rs;

	LIST_FOREACH(rs, &members, service)
		if ((rs->alive_ms != 0 && rs->alive_ms <= now_ms) ||
			(rs->service_at > 0 && turn->files[rs->service_at].revents != 0))
			break;
	return rs;
}

/* Say that one is there, and see whether the other one is. */
static void
rs_service_keep_alive(struct rcd_rs *rs)
{
	pthread_mutex_lock(&rs->lock);
	rcd_rs_progress(rs, NULL);
	if (rs->state == RCD_RS_CONNECTED)
		rcd_rs_post_control(rs, RCD_RS_KEEPALIVE);
	pthread_mutex_unlock(&rs->lock);
}

/* With service_lock, which is given back meanwhile. */
static void
rs_service_work(struct turn *turn, const struct runner *runner)
{
	struct rcd_rs *rs;

	while (!runner->stop && (rs = rs_service_next(turn)) != NULL) {
		busy = rs;
		if (rs->service_at > 0)
			turn->files[rs->service_at].revents = 0;
		if (rs->alive_ms != 0)
			rs->alive_ms = rcd_rs_now_ms() + rs->alive_every_ms;
		pthread_mutex_unlock(&service_lock);
		if (rs->ds != NULL)
			rcd_ds_udp_take(rs);
		else
			rs_service_keep_alive(rs);
		pthread_mutex_lock(&service_lock);
		busy = NULL;
		pthread_cond_broadcast(&idle);
	}
}

static void *
rs_service_run(void *arg)
{
	struct runner *runner = arg;
	struct turn turn = { .files = NULL };
	eventfd_t rings;

	pthread_mutex_lock(&service_lock);
	while (!runner->stop) {
		bool planned = rs_service_plan(&turn, runner);

		pthread_mutex_unlock(&service_lock);
		if (planned)
			poll(turn.files, turn.count, turn.timeout_ms);
		else
			usleep(NAP_MS * 1000);
		if (planned && turn.files[0].revents)
			eventfd_read(runner->bell, &rings);
		pthread_mutex_lock(&service_lock);
		if (planned)
			rs_service_work(&turn, runner);
	}
	pthread_mutex_unlock(&service_lock);
	free(turn.files);
	return NULL;
}

/* With service_lock. @return 0 or -errno */
static int
rs_service_start(void)
{
	struct runner *runner = calloc(1, sizeof(*runner));
	pthread_attr_t attr;
	sigset_t all, before;
	int err;

	if (runner == NULL)
		return -ENOMEM;
	runner->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (runner->bell < 0) {
		err = errno;
		free(runner);
		return -err;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* Signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&runner->thread, &attr, rs_service_run, runner);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (err != 0) {
		close(runner->bell);
		free(runner);
		return -err;
	}
	pthread_setname_np(runner->thread, "rocade-rsocket");
	current = runner;
	return 0;
}

int
rcd_rs_service_add(struct rcd_rs *rs, int64_t alive_every_ms)
{
	int err = 0;

	pthread_mutex_lock(&service_lock);
	if (!rs->served && current == NULL)
		err = rs_service_start();
	if (!rs->served && err == 0) {
		rs->served = true;
		rs->service_at = 0;
		LIST_INSERT_HEAD(&members, rs, service);
		member_count++;
	}
	rs->alive_every_ms = alive_every_ms;
	rs->alive_ms = alive_every_ms > 0 ? rcd_rs_now_ms() + alive_every_ms : 0;
	if (err == 0)
		eventfd_write(current->bell, 1);
	pthread_mutex_unlock(&service_lock);
	return err;
}

void
rcd_rs_service_remove(struct rcd_rs *rs)
{
	struct runner *last = NULL;

	pthread_mutex_lock(&service_lock);
	if (rs->served) {
		LIST_REMOVE(rs, service);
		rs->served = false;
		member_count--;
		while (busy == rs)
			pthread_cond_wait(&idle, &service_lock);
		if (member_count == 0 && current != NULL) {
			last = current;
			current = NULL;
			last->stop = true;
		}
	}
	pthread_mutex_unlock(&service_lock);
	if (last == NULL)
		return;
	eventfd_write(last->bell, 1);
	pthread_join(last->thread, NULL);
	close(last->bell);
	free(last);
}

void
rcd_rs_service_forget(void)
{
	pthread_mutex_init(&service_lock, NULL);
	pthread_cond_init(&idle, NULL);
	LIST_INIT(&members);
	member_count = 0;
	busy = NULL;
	current = NULL;
}
