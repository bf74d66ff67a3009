/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * epoll with rsockets. An instance is the kernel's, and has all other files; rsockets that are put
 * into it are kept here, and polled together with it. That takes as long as there are rsockets in
 * it: for thousands, a program that has a thread for each hundred is the better one.
 *
 * Of an rsocket an edge (EPOLLET) is told once, and again after the program has read from it, or
 * has written less to it than it wanted to. So it may hear of bytes once more than from the kernel,
 * and never less often, if it reads when it hears of them.
 */
#include "rcd_sk.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ON_STACK 64 /**< entries of one poll() that need no memory */
#define READS    (EPOLLIN | EPOLLRDNORM | EPOLLRDHUP)
#define WRITES   (EPOLLOUT | EPOLLWRNORM)
#define ENDS     (EPOLLERR | EPOLLHUP)
#define NAMES    8 /**< descriptors of one instance that are known */

/** An rsocket in an instance. */
struct member {
	int fd;
	bool spent; /**< EPOLLONESHOT, told */
	struct epoll_event asked;
};

/** An instance that has, or had, rsockets. */
struct instance {
	LIST_ENTRY(instance) link;
	int names[NAMES]; /**< its descriptors: programs make more by dup() */
	uint32_t name_count;
	int bell; /**< in the kernel's instance: its members have changed; -1: closed by others */
	bool kernel_first;
	uint32_t count, room;
	uint32_t first; /**< looked at first, so that all have their turn */
	struct member *members;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(instance_list, instance) instances = LIST_HEAD_INITIALIZER(instances);
static _Atomic uint32_t instance_count;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void
sk_epoll_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void
sk_epoll_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* Another thread may close something while one forks. */
static void
sk_epoll_watch_forks(void)
{
	pthread_atfork(sk_epoll_before_fork, sk_epoll_after_fork, sk_epoll_after_fork);
}

/* With the lock. @return NULL: it has no rsockets */
static struct instance *
sk_epoll_find(int fd)
{
	struct instance *instance;

	LIST_FOREACH(instance, &instances, link)
		for (uint32_t i = 0; i < instance->name_count; i++)
			if (instance->names[i] == fd)
				return instance;
	return NULL;
}

/* With the lock. */
static void
sk_epoll_name(struct instance *instance, int fd)
{
	if (sk_epoll_find(fd) == NULL && instance->name_count < NAMES)
		instance->names[instance->name_count++] = fd;
}

/* @param guess  where it may be */
static struct member *
sk_epoll_member(const struct instance *instance, int fd, uint32_t guess)
{
	if (guess < instance->count && instance->members[guess].fd == fd)
		return &instance->members[guess];
	for (uint32_t i = 0; i < instance->count; i++)
		if (instance->members[i].fd == fd)
			return &instance->members[i];
	return NULL;
}

static void
sk_epoll_drop(struct instance *instance, struct member *member)
{
	*member = instance->members[--instance->count];
}

/* The kernel's calls: librspreload.so may have some of these names, too. */
static int
sk_epoll_kernel_ctl(int fd, int op, int file, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, fd, op, file, event);
}

static int
sk_epoll_kernel_wait(
	int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *mask)
{
	return (int)syscall(SYS_epoll_pwait, fd, events, most, timeout_ms, mask, (size_t)_NSIG / 8);
}

/* With the lock. By any of its descriptors. @return NULL: it has no rsockets */
static struct instance *
sk_epoll_find_any(int fd)
{
	struct instance *instance = sk_epoll_find(fd);

	if (instance != NULL)
		return instance;
	/* The kernel's has the bell of one only, under whatever name. */
	LIST_FOREACH(instance, &instances, link) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = instance };

		if (sk_epoll_kernel_ctl(fd, EPOLL_CTL_MOD, instance->bell, &event) == 0)
			break;
	}
	if (instance != NULL)
		sk_epoll_name(instance, fd);
	return instance;
}

/* @return NULL and errno */
static struct instance *
sk_epoll_make(int fd)
{
	struct instance *instance = calloc(1, sizeof(*instance));
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = instance };

	if (instance == NULL)
		return NULL;
	instance->names[instance->name_count++] = fd;
	instance->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (instance->bell < 0 ||
		sk_epoll_kernel_ctl(fd, EPOLL_CTL_ADD, instance->bell, &event) != 0) {
		int kept = errno;

		if (instance->bell >= 0)
			rcd_sk_next()->close(instance->bell);
		free(instance);
		errno = kept;
		return NULL;
	}
	pthread_once(&forks_once, sk_epoll_watch_forks);
	LIST_INSERT_HEAD(&instances, instance, link);
	atomic_fetch_add(&instance_count, 1);
	return instance;
}

/* @return 0; -1 and errno */
static int
sk_epoll_add(struct instance *instance, int fd, const struct epoll_event *event)
{
	if (instance->count == instance->room) {
		uint32_t room = instance->room == 0 ? 16 : 2 * instance->room;
		struct member *more = realloc(instance->members, room * sizeof(more[0]));

		if (more == NULL)
			return -1;
		instance->members = more;
		instance->room = room;
	}
	instance->members[instance->count++] = (struct member){ .fd = fd, .asked = *event };
	return 0;
}

/* With the lock, of an rsocket. @return 0; -1 and errno */
static int
sk_epoll_change(int fd, int op, int file, const struct epoll_event *event)
{
	struct instance *instance = sk_epoll_find_any(fd);
	struct member *member =
		instance != NULL ? sk_epoll_member(instance, file, UINT32_MAX) : NULL;
	int err = 0;

	if (event == NULL && op != EPOLL_CTL_DEL)
		err = EFAULT;
	else if (member == NULL && op != EPOLL_CTL_ADD)
		err = ENOENT;
	else if (member != NULL && op == EPOLL_CTL_ADD)
		err = EEXIST;
	if (err != 0) {
		errno = err;
		return -1;
	}
	rcd_sk_untell(file, RCD_SK_TOLD_IN | RCD_SK_TOLD_OUT | RCD_SK_TOLD_END);
	if (op == EPOLL_CTL_DEL) {
		sk_epoll_drop(instance, member);
		return 0;
	}
	if (member != NULL) {
		*member = (struct member){ .fd = file, .asked = *event };
	} else {
		if (instance == NULL)
			instance = sk_epoll_make(fd);
		if (instance == NULL || sk_epoll_add(instance, file, event) != 0)
			return -1;
	}
	eventfd_write(instance->bell, 1);
	return 0;
}

int
rcd_sk_epoll_ctl(int fd, int op, int file, struct epoll_event *event)
{
	/* Without the lock: the library of rsockets closes files with locks of its own. */
	bool is_rsocket = rcd_sk_is_rsocket(file);
	char byte;
	int ret;

	if (!is_rsocket) {
		ret = sk_epoll_kernel_ctl(fd, op, file, event);
		if (ret == 0 || errno != EPERM || op != EPOLL_CTL_ADD)
			return ret;
		/* With RDMAV_FORK_SAFE one becomes an rsocket when it is first read or written. */
		rcd_sk_next()->recv(file, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
		if (!rcd_sk_is_rsocket(file)) {
			errno = EPERM;
			return -1;
		}
	}
	pthread_mutex_lock(&lock);
	ret = sk_epoll_change(fd, op, file, event);
	pthread_mutex_unlock(&lock);
	return ret;
}

static bool
sk_epoll_lies_in(int fd, unsigned int first, unsigned int last)
{
	return fd >= 0 && (unsigned int)fd >= first && (unsigned int)fd <= last;
}

/* With the lock. @return whether the instance has no descriptor any more */
static bool
sk_epoll_lose(struct instance *instance, unsigned int first, unsigned int last)
{
	uint32_t kept = 0;

	for (uint32_t i = instance->count; i-- > 0;) {
		struct member *member = &instance->members[i];

		if (!sk_epoll_lies_in(member->fd, first, last))
			continue;
		rcd_sk_untell(member->fd, RCD_SK_TOLD_IN | RCD_SK_TOLD_OUT | RCD_SK_TOLD_END);
		sk_epoll_drop(instance, member);
	}
	/* Who closes all that there may be closes this: the number is another one. */
	if (sk_epoll_lies_in(instance->bell, first, last))
		instance->bell = -1;
	for (uint32_t i = 0; i < instance->name_count; i++)
		if (!sk_epoll_lies_in(instance->names[i], first, last))
			instance->names[kept++] = instance->names[i];
	instance->name_count = kept;
	return kept == 0;
}

void
rcd_sk_epoll_forget(unsigned int first, unsigned int last)
{
	struct instance_list ended = LIST_HEAD_INITIALIZER(ended);
	struct instance *instance;
	struct instance *next;

	if (atomic_load(&instance_count) == 0)
		return;
	pthread_mutex_lock(&lock);
	for (instance = LIST_FIRST(&instances); instance != NULL; instance = next) {
		next = LIST_NEXT(instance, link);
		if (!sk_epoll_lose(instance, first, last))
			continue;
		LIST_REMOVE(instance, link);
		LIST_INSERT_HEAD(&ended, instance, link);
		atomic_fetch_sub(&instance_count, 1);
	}
	pthread_mutex_unlock(&lock);
	while ((instance = LIST_FIRST(&ended)) != NULL) {
		LIST_REMOVE(instance, link);
		if (instance->bell >= 0)
			rcd_sk_next()->close(instance->bell);
		free(instance->members);
		free(instance);
	}
}

/* What to poll of a member. */
static struct pollfd
sk_epoll_ask(const struct member *member)
{
	struct pollfd fd = { .fd = member->fd };
	uint32_t events = member->asked.events;
	uint8_t told = 0;

	if (events & EPOLLET && member->fd < RCD_SK_EDGES)
		told = atomic_load_explicit(&rcd_sk_told[member->fd], memory_order_relaxed);
	/* There are no bytes out of band: who waits for them would never sleep behind an end. */
	events &= READS | WRITES;
	if (told & RCD_SK_TOLD_IN)
		events &= ~(uint32_t)READS;
	if (told & RCD_SK_TOLD_OUT)
		events &= ~(uint32_t)WRITES;
	fd.events = (short)events;
	/* An end is told unasked. */
	if (member->spent || (told & RCD_SK_TOLD_END && events == 0))
		fd.fd = -1;
	return fd;
}

/* What poll() has said of a member. @return whether there is something to tell */
static bool
sk_epoll_tell(struct member *member, short revents, struct epoll_event *event)
{
	/* Of several threads that wait, another one may have been told meanwhile. */
	struct pollfd left = sk_epoll_ask(member);
	uint32_t wanted = (uint32_t)(unsigned short)left.events | ENDS;
	uint32_t got = (uint32_t)(unsigned short)revents & wanted;

	if (got == 0 || left.fd < 0)
		return false;
	*event = member->asked;
	event->events = got;
	member->spent = member->asked.events & EPOLLONESHOT;
	if (member->asked.events & EPOLLET)
		rcd_sk_tell(member->fd,
			(uint8_t)((got & READS ? RCD_SK_TOLD_IN : 0) |
				(got & WRITES ? RCD_SK_TOLD_OUT : 0) |
				(got & ENDS ? RCD_SK_TOLD_END : 0)));
	return true;
}

/* With the lock. @param fds  the kernel's instance, and the members @return events */
static int
sk_epoll_collect(struct instance *instance, const struct pollfd *fds, uint32_t count,
	struct epoll_event *events, int most)
{
	int got = 0;

	/* The members take turns, and leave room for the kernel's. */
	instance->kernel_first = !instance->kernel_first;
	if (fds[0].revents && (most > 1 || instance->kernel_first))
		most--;
	for (uint32_t i = 0; i < count && got < most; i++) {
		uint32_t at = (instance->first + i) % count;
		const struct pollfd *fd = &fds[1 + at];
		struct member *member;

		if (fd->fd < 0 || fd->revents == 0)
			continue;
		member = sk_epoll_member(instance, fd->fd, at);
		if (member == NULL)
			continue;
		/* Closed by another way than close(). */
		if (fd->revents & POLLNVAL)
			sk_epoll_drop(instance, member);
		else
			got += sk_epoll_tell(member, fd->revents, &events[got]);
	}
	instance->first = count > 0 ? (instance->first + 1) % count : 0;
	return got;
}

/* Without bells, which are nobody's event. @return events that are left */
static int
sk_epoll_take_bell(int fd, struct epoll_event *events, int count)
{
	struct instance *instance;
	int kept = 0;

	if (atomic_load(&instance_count) == 0)
		return count;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < count; i++) {
		eventfd_t rings;

		LIST_FOREACH(instance, &instances, link)
			if (events[i].data.ptr == instance)
				break;
		if (instance == NULL) {
			events[kept++] = events[i];
			continue;
		}
		eventfd_read(instance->bell, &rings);
		/* Put in by another descriptor of the same instance. */
		sk_epoll_name(instance, fd);
	}
	pthread_mutex_unlock(&lock);
	return kept;
}

/* @param fds  room for ON_STACK @return all that is to be polled; NULL: the kernel has all */
static struct pollfd *
sk_epoll_prepare(int fd, struct pollfd *fds, uint32_t *count)
{
	struct instance *instance;

	*count = 0;
	if (atomic_load(&instance_count) == 0)
		return NULL;
	pthread_mutex_lock(&lock);
	instance = sk_epoll_find(fd);
	if (instance != NULL && instance->count > 0) {
		*count = instance->count;
		if (*count >= ON_STACK)
			fds = malloc((1u + *count) * sizeof(fds[0]));
		for (uint32_t i = 0; i < *count && fds != NULL; i++)
			fds[1 + i] = sk_epoll_ask(&instance->members[i]);
	}
	pthread_mutex_unlock(&lock);
	return *count > 0 ? fds : NULL;
}

/* Once. @return events; 0: none of the program's, perhaps; -1 and errno */
static int
sk_epoll_turn(int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *mask)
{
	struct pollfd on_stack[ON_STACK];
	struct instance *instance;
	uint32_t count;
	struct pollfd *fds = sk_epoll_prepare(fd, on_stack, &count);
	bool signaled;
	int got;

	if (fds == NULL) {
		if (count > 0)
			return -1;
		got = sk_epoll_kernel_wait(fd, events, most, timeout_ms, mask);
		return got > 0 ? sk_epoll_take_bell(fd, events, got) : got;
	}
	fds[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	got = rcd_sk_poll(fds, 1u + count, timeout_ms, mask, &signaled);
	if (got > 0) {
		pthread_mutex_lock(&lock);
		instance = sk_epoll_find(fd);
		got = instance != NULL ? sk_epoll_collect(instance, fds, count, events, most) : 0;
		pthread_mutex_unlock(&lock);
		if (fds[0].revents && got < most) {
			int more = sk_epoll_kernel_wait(fd, events + got, most - got, 0, NULL);

			if (more > 0)
				got += sk_epoll_take_bell(fd, events + got, more);
		}
	}
	if (fds != on_stack)
		free(fds);
	if (got != 0 || !signaled)
		return got;
	errno = EINTR;
	return -1;
}

static int64_t
sk_epoll_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int
rcd_sk_epoll_pwait(
	int fd, struct epoll_event *events, int most, int timeout_ms, const sigset_t *mask)
{
	int64_t end_ms = sk_epoll_now_ms() + timeout_ms;
	int left_ms = timeout_ms;

	if (most <= 0) {
		errno = EINVAL;
		return -1;
	}
	for (;;) {
		int got = sk_epoll_turn(fd, events, most, left_ms, mask);

		if (got != 0 || left_ms == 0)
			return got;
		if (timeout_ms > 0) {
			int64_t left = end_ms - sk_epoll_now_ms();

			left_ms = left > 0 ? (int)left : 0;
		}
	}
}

int
rcd_sk_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
{
	return rcd_sk_epoll_pwait(fd, events, most, timeout_ms, NULL);
}

int
rcd_sk_epoll_create1(int flags)
{
	return (int)syscall(SYS_epoll_create1, flags);
}

int
rcd_sk_epoll_create(int size)
{
	if (size <= 0) {
		errno = EINVAL;
		return -1;
	}
	return rcd_sk_epoll_create1(0);
}
