/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The threads that close, and what waits for them. One user's descriptors hang few of the threads.
 */
#include "rcd_closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_check.h"
#include "rcd_quota.h"
#include "rcd_thread.h"
#include "rcd_ufile.h"

#define THREADS      8
#define USER_THREADS 2 /**< that one user may hang */
#define STACK        (256 << 10)
#define DRAIN        64 /**< messages of a socket that are looked at when it is closed */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct item {
	STAILQ_ENTRY(item) link; /**< of those that wait, or are closed, or are spare */
	int fd;
	struct user *user;            /**< for a user who has no entry yet */
	struct rcd_quota_entry quota; /**< the control thread's alone */
};

STAILQ_HEAD(items, item);

/* A user with descriptors that are not closed, or were not when the control thread last looked. */
struct user {
	TAILQ_ENTRY(user) link;
	uid_t uid;
	uint32_t count; /**< not closed yet */
	uint32_t busy;  /**< that threads are closing */
	struct items waiting;
};

struct rcd_closer {
	pthread_mutex_t lock; /**< held for a look at the lists, never for a call that waits */
	pthread_cond_t work;
	pthread_t threads[THREADS];
	int epoll_fd;
	struct rcd_quota_book *book;
	uint32_t started;
	bool stop;
	uint32_t count; /**< not closed yet */
	uint64_t owed;  /**< items that somebody is charged for; the control thread's alone */
	struct items closed;
	struct items spare; /**< the control thread's alone: for all that may have to be closed */
	uint32_t spares;
	uint32_t sockets;         /**< of clients, which are closed one day */
	TAILQ_HEAD(, user) users; /**< who is to have a turn first */
};

static struct user *
closer_user_of(const struct rcd_closer *closer, uid_t uid)
{
	struct user *user;

	TAILQ_FOREACH(user, &closer->users, link)
		if (user->uid == uid)
			break;
	return user;
}

/* Whose turn it is, of users who have threads left to hang. @return NULL: nobody's */
static struct user *
closer_next_user(struct rcd_closer *closer)
{
	struct user *user;

	TAILQ_FOREACH(user, &closer->users, link)
		if (!STAILQ_EMPTY(&user->waiting) && user->busy < USER_THREADS)
			break;
	return user;
}

static void
closer_close_one(struct rcd_closer *closer, struct user *user)
{
	struct item *item = STAILQ_FIRST(&user->waiting);

	STAILQ_REMOVE_HEAD(&user->waiting, link);
	TAILQ_REMOVE(&closer->users, user, link);
	TAILQ_INSERT_TAIL(&closer->users, user, link);
	user->busy++;
	pthread_mutex_unlock(&closer->lock);
	close(item->fd);
	pthread_mutex_lock(&closer->lock);
	user->busy--;
	user->count--;
	closer->count--;
	STAILQ_INSERT_TAIL(&closer->closed, item, link);
}

static void *
closer_run(void *arg)
{
	struct rcd_closer *closer = arg;

	pthread_mutex_lock(&closer->lock);
	while (!closer->stop) {
		struct user *user = closer_next_user(closer);

		if (user == NULL) {
			pthread_cond_wait(&closer->work, &closer->lock);
			continue;
		}
		closer_close_one(closer, user);
		/* Its user may have more, which another thread passed over. */
		pthread_cond_signal(&closer->work);
	}
	pthread_mutex_unlock(&closer->lock);
	return NULL;
}

/* Whoever has no item can't close: there are some before there are descriptors. */
static bool
closer_have_spares(struct rcd_closer *closer, uint32_t count)
{
	while (closer->spares < count) {
		struct item *item = calloc(1, sizeof(*item));

		if (item != NULL)
			item->user = calloc(1, sizeof(*item->user));
		if (item == NULL || item->user == NULL) {
			free(item);
			return false;
		}
		STAILQ_INSERT_HEAD(&closer->spare, item, link);
		closer->spares++;
	}
	return true;
}

bool
rcd_closer_is_ready(struct rcd_closer *closer)
{
	RCD_ON_CONTROL();
	return closer_have_spares(closer, closer->sockets + RCD_CLOSER_MESSAGE + 1);
}

struct rcd_closer *
rcd_closer_create(int epoll_fd, struct rcd_quota_book *book)
{
	struct rcd_closer *closer = calloc(1, sizeof(*closer));
	pthread_attr_t attr;

	RCD_ON_CONTROL();
	if (closer == NULL)
		return NULL;
	closer->epoll_fd = epoll_fd;
	closer->book = book;
	STAILQ_INIT(&closer->closed);
	STAILQ_INIT(&closer->spare);
	TAILQ_INIT(&closer->users);
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->work, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (closer->started < THREADS &&
		pthread_create(&closer->threads[closer->started], &attr, closer_run, closer) == 0) {
		pthread_setname_np(closer->threads[closer->started], "rocade-closer");
		closer->started++;
	}
	pthread_attr_destroy(&attr);
	if (closer->started < THREADS || !rcd_closer_is_ready(closer)) {
		rcd_closer_destroy(closer);
		return NULL;
	}
	return closer;
}

void
rcd_closer_reap(struct rcd_closer *closer)
{
	struct user *user, *next;
	struct items closed = STAILQ_HEAD_INITIALIZER(closed);
	struct item *item;

	RCD_ON_CONTROL();
	pthread_mutex_lock(&closer->lock);
	STAILQ_CONCAT(&closed, &closer->closed);
	for (user = TAILQ_FIRST(&closer->users); user != NULL; user = next) {
		next = TAILQ_NEXT(user, link);
		if (user->count > 0)
			continue;
		TAILQ_REMOVE(&closer->users, user, link);
		free(user);
	}
	pthread_mutex_unlock(&closer->lock);
	while ((item = STAILQ_FIRST(&closed)) != NULL) {
		STAILQ_REMOVE_HEAD(&closed, link);
		closer->owed -= item->quota.used[RCD_RESOURCE_DESCRIPTORS];
		rcd_quota_leave(&item->quota);
		free(item->user);
		free(item);
	}
}

void
rcd_closer_destroy(struct rcd_closer *closer)
{
	struct item *item;
	bool hang;

	RCD_ON_CONTROL();
	if (closer == NULL)
		return;
	pthread_mutex_lock(&closer->lock);
	closer->stop = true;
	hang = closer->count > 0;
	pthread_cond_broadcast(&closer->work);
	pthread_mutex_unlock(&closer->lock);
	for (uint32_t i = 0; i < closer->started; i++) {
		if (hang)
			pthread_detach(closer->threads[i]);
		else
			pthread_join(closer->threads[i], NULL);
	}
	if (hang)
		return;
	rcd_closer_reap(closer);
	while ((item = STAILQ_FIRST(&closer->spare)) != NULL) {
		STAILQ_REMOVE_HEAD(&closer->spare, link);
		free(item->user);
		free(item);
	}
	pthread_cond_destroy(&closer->work);
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

bool
rcd_closer_open_to_fds(int sock, bool open)
{
	int val = open;

	RCD_ON_CONTROL();
	return setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &val, sizeof(val)) == 0;
}

/* The user's entry, which the item brings if there is none. */
static struct user *
closer_get_user(struct rcd_closer *closer, uid_t uid, struct item *item)
{
	struct user *user = closer_user_of(closer, uid);

	if (user != NULL)
		return user;
	user = item->user;
	item->user = NULL;
	user->uid = uid;
	STAILQ_INIT(&user->waiting);
	TAILQ_INSERT_TAIL(&closer->users, user, link);
	return user;
}

/* Without memory nobody is charged, but it is closed. */
static void
closer_add(struct rcd_closer *closer, int fd, uid_t uid)
{
	struct item *item = STAILQ_FIRST(&closer->spare);
	struct user *user;

	RCD_CHECK(item != NULL);
	STAILQ_REMOVE_HEAD(&closer->spare, link);
	closer->spares--;
	item->fd = fd;
	rcd_closer_reap(closer);
	rcd_quota_owe(closer->book, &item->quota, uid, RCD_RESOURCE_DESCRIPTORS, 1);
	closer->owed += item->quota.used[RCD_RESOURCE_DESCRIPTORS];
	pthread_mutex_lock(&closer->lock);
	user = closer_get_user(closer, uid, item);
	STAILQ_INSERT_TAIL(&user->waiting, item, link);
	user->count++;
	closer->count++;
	pthread_cond_signal(&closer->work);
	pthread_mutex_unlock(&closer->lock);
}

void
rcd_closer_take(struct rcd_closer *closer, int fd, uid_t uid)
{
	RCD_ON_CONTROL();
	if (rcd_ufile_is_memory(fd))
		close(fd);
	else
		closer_add(closer, fd, uid);
}

/*
 * Take what is left in a socket to which nothing comes any more, up to the first message with
 * descriptors. Credentials tell a message of no bytes from the end.
 *
 * @return whether it is empty
 */
static bool
closer_drain(int sock)
{
	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &(int){ 1 }, sizeof(int)) != 0)
		return false;
	for (int i = 0; i < DRAIN; i++) {
		union {
			char bytes[CMSG_SPACE(sizeof(struct ucred))];
			struct cmsghdr align;
		} control;
		char byte;
		struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
		struct msghdr hdr = { .msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes) };

		if (recvmsg(sock, &hdr, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0 ||
			(hdr.msg_flags & MSG_CTRUNC))
			return false;
		if (hdr.msg_controllen == 0)
			return true;
		if (recv(sock, &byte, 1, MSG_DONTWAIT) < 0)
			return false;
	}
	return false;
}

void
rcd_closer_expect(struct rcd_closer *closer)
{
	RCD_ON_CONTROL();
	closer->sockets++;
}

void
rcd_closer_take_sock(struct rcd_closer *closer, int sock, uid_t uid)
{
	RCD_ON_CONTROL();
	RCD_CHECK(closer->sockets > 0);
	closer->sockets--;
	epoll_ctl(closer->epoll_fd, EPOLL_CTL_DEL, sock, NULL);
	shutdown(sock, SHUT_RDWR);
	if (closer_drain(sock))
		close(sock);
	else
		closer_add(closer, sock, uid);
}

/* How many of a user wait. */
static uint32_t
closer_count_of(struct rcd_closer *closer, uid_t uid)
{
	const struct user *user;
	uint32_t count;

	rcd_closer_reap(closer);
	pthread_mutex_lock(&closer->lock);
	user = closer_user_of(closer, uid);
	count = user != NULL ? user->count : 0;
	pthread_mutex_unlock(&closer->lock);
	return count;
}

uint64_t
rcd_closer_owed(const struct rcd_closer *closer)
{
	RCD_ON_CONTROL();
	return closer->owed;
}

/*
 * Whether a message with descriptors may be received from this user: there is room to close each.
 * A descriptor without a place is closed on the way, by who receives.
 *
 * @return 0; -EMFILE: what waits is the user's, or there is no memory; -EBUSY: it is others'
 */
static int
closer_find_room(struct rcd_closer *closer, uid_t uid)
{
	bool room;

	if (closer_count_of(closer, uid) >= RCD_CLOSER_USER || !rcd_closer_is_ready(closer))
		return -EMFILE;
	if (uid == 0)
		room = rcd_quota_over(closer->book, RCD_RESOURCE_DESCRIPTORS) <= RCD_CLOSER_OVER;
	else
		room = rcd_quota_may_owe(closer->book, RCD_RESOURCE_DESCRIPTORS, closer->owed);
	return room ? 0 : -EBUSY;
}

int
rcd_closer_admit(struct rcd_closer *closer, int sock, uid_t uid)
{
	struct msghdr hdr = { .msg_iovlen = 0 };
	int err;

	RCD_ON_CONTROL();
	err = closer_find_room(closer, uid);
	if (err == 0)
		return 0;
	/* A look: the descriptors stay where they are. */
	if (recvmsg(sock, &hdr, MSG_PEEK | MSG_DONTWAIT) < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return hdr.msg_flags & MSG_CTRUNC ? err : 0;
}

bool
rcd_closer_may_stay(struct rcd_closer *closer, uid_t uid)
{
	RCD_ON_CONTROL();
	return closer_count_of(closer, uid) < RCD_CLOSER_USER;
}

bool
rcd_closer_may_accept(struct rcd_closer *closer)
{
	RCD_ON_CONTROL();
	return rcd_closer_held(closer) < RCD_CLOSER_FULL &&
		rcd_quota_over(closer->book, RCD_RESOURCE_DESCRIPTORS) <= RCD_CLOSER_OVER;
}

uint32_t
rcd_closer_held(struct rcd_closer *closer)
{
	uint32_t count;

	RCD_ON_CONTROL();
	rcd_closer_reap(closer);
	pthread_mutex_lock(&closer->lock);
	count = closer->count;
	pthread_mutex_unlock(&closer->lock);
	return count;
}
