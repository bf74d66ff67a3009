/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The calls of the next library, and which descriptors are those of rsockets.
 */
#include "rcd_sk.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <rdma/rsocket.h>

_Atomic uint8_t rcd_sk_told[RCD_SK_EDGES];

static struct rcd_sk_next next;
static pthread_once_t next_once = PTHREAD_ONCE_INIT;

static void
sk_next_find(void)
{
	const struct {
		const char *name;
		void *at;
	} all[] = {
		{ "accept", &next.accept },
		{ "accept4", &next.accept4 },
		{ "close", &next.close },
		{ "closefrom", &next.closefrom },
		{ "dup2", &next.dup2 },
		{ "dup3", &next.dup3 },
		{ "fcntl", &next.fcntl },
		{ "ioctl", &next.ioctl },
		{ "poll", &next.poll },
		{ "read", &next.read },
		{ "readv", &next.readv },
		{ "recv", &next.recv },
		{ "recvfrom", &next.recvfrom },
		{ "recvmsg", &next.recvmsg },
		{ "write", &next.write },
		{ "writev", &next.writev },
		{ "send", &next.send },
		{ "sendto", &next.sendto },
		{ "sendmsg", &next.sendmsg },
		{ "sendfile", &next.sendfile },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		*(void **)all[i].at = dlsym(RTLD_NEXT, all[i].name);
}

const struct rcd_sk_next *
rcd_sk_next(void)
{
	pthread_once(&next_once, sk_next_find);
	return &next;
}

bool
rcd_sk_is_rsocket(int fd)
{
	int kept = errno;
	int size = 0;
	socklen_t len = sizeof(size);
	/* What no other socket has. */
	bool is = getsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &size, &len) == 0;

	errno = kept;
	return is;
}

/*
 * A signal that waits to be let through keeps poll() from waiting, as it would be with the kernel's
 * ppoll(). One that comes between the look and poll() does not.
 */
int
rcd_sk_poll(struct pollfd *fds, nfds_t count, int timeout_ms, const sigset_t *mask, bool *signaled)
{
	sigset_t before;
	sigset_t pending;
	int ret;

	*signaled = false;
	if (mask == NULL)
		return rcd_sk_next()->poll(fds, count, timeout_ms);
	sigpending(&pending);
	for (int signo = 1; signo < NSIG && !*signaled; signo++)
		*signaled = sigismember(&pending, signo) == 1 && sigismember(mask, signo) == 0;
	pthread_sigmask(SIG_SETMASK, mask, &before);
	ret = rcd_sk_next()->poll(fds, count, *signaled ? 0 : timeout_ms);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}
