/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: without memory the control thread closes nothing by itself, as a close may wait. Method:
 * no memory for this thread, and what it closes then is counted. Other threads close it: pipes
 * tell, whose other end sees that.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_closer.h"
#include "rcd_quota.h"
#include "rcd_tap.h"

#define UID     1000
#define WAIT_MS 180000

/* Of this thread. */
static __thread bool no_memory;

void *
__wrap_calloc(size_t count, size_t size);
void *
__real_calloc(size_t count, size_t size);
int
__wrap_close(int fd);
int
__real_close(int fd);

void *
__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

static pthread_t control;
static uint32_t closed_here;

int
__wrap_close(int fd)
{
	if (no_memory && pthread_equal(pthread_self(), control))
		closed_here++;
	return __real_close(fd);
}

static struct rcd_closer *closer;
static struct rcd_quota_book book;

/* The other end of a pipe sees that this one is closed. */
static bool
is_closed(int other)
{
	struct pollfd poll_fd = { .fd = other };

	return poll(&poll_fd, 1, WAIT_MS) == 1 && (poll_fd.revents & POLLERR);
}

static void
message(void)
{
	int pipes[RCD_CLOSER_MESSAGE][2];

	for (int i = 0; i < RCD_CLOSER_MESSAGE; i++)
		CU_ASSERT_EQUAL(pipe(pipes[i]), 0);
	CU_ASSERT(rcd_closer_is_ready(closer));
	no_memory = true;
	for (int i = 0; i < RCD_CLOSER_MESSAGE; i++)
		rcd_closer_take(closer, pipes[i][0], UID);
	CU_ASSERT_EQUAL(closed_here, 0);
	/* There was room for so many, and is for no more. */
	CU_ASSERT(!rcd_closer_is_ready(closer));
	no_memory = false;
	CU_ASSERT(rcd_closer_is_ready(closer));
	for (int i = 0; i < RCD_CLOSER_MESSAGE; i++) {
		CU_ASSERT(is_closed(pipes[i][1]));
		close(pipes[i][1]);
	}
}

static void
give(int sock, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control_data = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = (char[1]){ 0 }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control_data.bytes,
		.msg_controllen = sizeof(control_data.bytes) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	CU_ASSERT_EQUAL(sendmsg(sock, &msg, 0), 1);
}

/* With a connection more than there is room for, only what brings none is received. */
static void
admission(void)
{
	char byte = 0;
	int ends[2];

	CU_ASSERT_EQUAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	CU_ASSERT(rcd_closer_is_ready(closer));
	rcd_closer_expect(closer);
	no_memory = true;
	CU_ASSERT(!rcd_closer_is_ready(closer));
	CU_ASSERT_EQUAL(rcd_closer_admit(closer, ends[0], UID), -EAGAIN);
	CU_ASSERT_EQUAL(send(ends[1], &byte, 1, 0), 1);
	CU_ASSERT_EQUAL(rcd_closer_admit(closer, ends[0], UID), 0);
	CU_ASSERT_EQUAL(recv(ends[0], &byte, 1, 0), 1);
	give(ends[1], STDERR_FILENO);
	CU_ASSERT_EQUAL(rcd_closer_admit(closer, ends[0], UID), -EMFILE);
	/* A socket with a descriptor in it is closed by another thread, which needs no memory. */
	rcd_closer_take_sock(closer, ends[0], UID);
	CU_ASSERT_EQUAL(closed_here, 0);
	no_memory = false;
	close(ends[1]);
}

static void
stop(void)
{
	for (int i = 0; i < WAIT_MS && rcd_closer_held(closer) > 0; i++)
		usleep(1000);
	CU_ASSERT_EQUAL(rcd_closer_held(closer), 0);
	rcd_closer_destroy(closer);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "H2 descriptors of a message without memory", message },
		{ "H2 messages and connections without memory", admission },
		{ "H2 all is closed in the end", stop },
	};
	const struct rcd_quota none = { .clients = 0 };

	control = pthread_self();
	rcd_quota_open(&book, &none, &none, &none);
	closer = rcd_closer_create(epoll_create1(EPOLL_CLOEXEC), &book);
	if (closer == NULL)
		return 1;
	return rcd_tap_run("closer", tests, sizeof(tests) / sizeof(tests[0]));
}
