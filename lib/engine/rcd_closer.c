/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The threads that close, and what waits for them. One user's descriptors hang few of the threads.
 */
#include "rcd_closer.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS      8
#define USER_THREADS 2 /**< that one user may hang */
#define STACK        (256 << 10)
#define DRAIN        64 /**< messages of a socket that are looked at when it is closed */

struct item {
	uint64_t number; /**< a descriptor's may be used again before the item is gone */
	int fd;
	uid_t uid;
	bool busy; /**< a thread is closing it */
};

struct rcd_closer {
	pthread_mutex_t lock; /**< held for a look at the list, never for a call that waits */
	pthread_cond_t work;
	pthread_t threads[THREADS];
	int epoll_fd;
	uint32_t started;
	bool stop;
	uint64_t next_number;
	uint32_t count;
	uint32_t capacity;
	struct item items[]; /**< oldest first */
};

/* How many of a user there are. */
static uint32_t
count_of(const struct rcd_closer *closer, uid_t uid, bool busy)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < closer->count; i++)
		count += closer->items[i].uid == uid && (!busy || closer->items[i].busy);
	return count;
}

/* The oldest whose user has a thread to hang. @return its place, or count: there is none */
static uint32_t
next_of(const struct rcd_closer *closer)
{
	uid_t passed = (uid_t)-1;

	for (uint32_t i = 0; i < closer->count; i++) {
		const struct item *item = &closer->items[i];

		if (item->busy || item->uid == passed)
			continue;
		if (count_of(closer, item->uid, true) < USER_THREADS)
			return i;
		passed = item->uid;
	}
	return closer->count;
}

static void
remove_item(struct rcd_closer *closer, uint64_t number)
{
	uint32_t at = 0;

	while (closer->items[at].number != number)
		at++;
	closer->count--;
	for (; at < closer->count; at++)
		closer->items[at] = closer->items[at + 1];
}

static void *
run(void *arg)
{
	struct rcd_closer *closer = arg;

	pthread_mutex_lock(&closer->lock);
	while (!closer->stop) {
		uint32_t at = next_of(closer);
		uint64_t number;
		int fd;

		if (at == closer->count) {
			pthread_cond_wait(&closer->work, &closer->lock);
			continue;
		}
		closer->items[at].busy = true;
		number = closer->items[at].number;
		fd = closer->items[at].fd;
		pthread_mutex_unlock(&closer->lock);
		close(fd);
		pthread_mutex_lock(&closer->lock);
		remove_item(closer, number);
		/* Its user may have more, which another thread passed over. */
		pthread_cond_signal(&closer->work);
	}
	pthread_mutex_unlock(&closer->lock);
	return NULL;
}

struct rcd_closer *
rcd_closer_create(int epoll_fd, uint32_t clients)
{
	uint32_t capacity = RCD_CLOSER_FULL + 2 * RCD_CLOSER_MESSAGE + clients;
	struct rcd_closer *closer =
		calloc(1, sizeof(*closer) + capacity * sizeof(closer->items[0]));
	pthread_attr_t attr;

	if (closer == NULL)
		return NULL;
	closer->capacity = capacity;
	closer->epoll_fd = epoll_fd;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->work, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (closer->started < THREADS &&
		pthread_create(&closer->threads[closer->started], &attr, run, closer) == 0) {
		pthread_setname_np(closer->threads[closer->started], "rocade-closer");
		closer->started++;
	}
	pthread_attr_destroy(&attr);
	if (closer->started < THREADS) {
		rcd_closer_destroy(closer);
		return NULL;
	}
	return closer;
}

void
rcd_closer_destroy(struct rcd_closer *closer)
{
	bool hang;

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
	pthread_cond_destroy(&closer->work);
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

bool
rcd_closer_is_memory(int fd)
{
	/* The kernel answers for memory; for any other file it says so without asking it. */
	return fcntl(fd, F_GET_SEALS) >= 0;
}

static void
add(struct rcd_closer *closer, int fd, uid_t uid)
{
	bool full;

	pthread_mutex_lock(&closer->lock);
	full = closer->count == closer->capacity;
	if (!full)
		closer->items[closer->count++] =
			(struct item){ .number = closer->next_number++, .fd = fd, .uid = uid };
	pthread_cond_signal(&closer->work);
	pthread_mutex_unlock(&closer->lock);
	/* Above RCD_CLOSER_FULL come a message and the sockets of all clients at most: not so. */
	if (full)
		close(fd);
}

void
rcd_closer_take(struct rcd_closer *closer, int fd, uid_t uid)
{
	if (rcd_closer_is_memory(fd))
		close(fd);
	else
		add(closer, fd, uid);
}

/*
 * Take what is left in a socket to which nothing comes any more, up to the first message with
 * descriptors. Credentials tell a message of no bytes from the end.
 *
 * @return whether it is empty
 */
static bool
drain(int sock)
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
rcd_closer_take_sock(struct rcd_closer *closer, int sock, uid_t uid)
{
	epoll_ctl(closer->epoll_fd, EPOLL_CTL_DEL, sock, NULL);
	shutdown(sock, SHUT_RDWR);
	if (drain(sock))
		close(sock);
	else
		add(closer, sock, uid);
}

bool
rcd_closer_has_room(struct rcd_closer *closer, uid_t uid)
{
	bool room;

	pthread_mutex_lock(&closer->lock);
	room = closer->count < RCD_CLOSER_FULL && count_of(closer, uid, false) < RCD_CLOSER_USER;
	pthread_mutex_unlock(&closer->lock);
	return room;
}

bool
rcd_closer_may_accept(struct rcd_closer *closer)
{
	return rcd_closer_held(closer) < RCD_CLOSER_FULL;
}

uint32_t
rcd_closer_held(struct rcd_closer *closer)
{
	uint32_t count;

	pthread_mutex_lock(&closer->lock);
	count = closer->count;
	pthread_mutex_unlock(&closer->lock);
	return count;
}
