/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Calls of one socket: those that librspreload.so does not have, and those by which a program meets
 * the end of what there is to read or of the room to write, after which epoll tells it again.
 */
#include "rcd_sk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 16384

/* Read. @return what the call returned */
static ssize_t
sk_calls_read(int fd, ssize_t ret)
{
	rcd_sk_untell(fd, RCD_SK_TOLD_IN);
	return ret;
}

/* Written. @param len  what was to be @return what the call returned */
static ssize_t
sk_calls_written(int fd, size_t len, ssize_t ret)
{
	if (ret < 0 || (size_t)ret < len)
		rcd_sk_untell(fd, RCD_SK_TOLD_OUT);
	return ret;
}

static size_t
sk_calls_sum(const struct iovec *iov, size_t count)
{
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

ssize_t
rcd_sk_read(int fd, void *buf, size_t len)
{
	return sk_calls_read(fd, rcd_sk_next()->read(fd, buf, len));
}

ssize_t
rcd_sk_readv(int fd, const struct iovec *iov, int count)
{
	return sk_calls_read(fd, rcd_sk_next()->readv(fd, iov, count));
}

ssize_t
rcd_sk_recv(int fd, void *buf, size_t len, int flags)
{
	return sk_calls_read(fd, rcd_sk_next()->recv(fd, buf, len, flags));
}

ssize_t
rcd_sk_recvfrom(
	int fd, void *buf, size_t len, int flags, struct sockaddr *addr, socklen_t *addr_len)
{
	return sk_calls_read(fd, rcd_sk_next()->recvfrom(fd, buf, len, flags, addr, addr_len));
}

ssize_t
rcd_sk_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return sk_calls_read(fd, rcd_sk_next()->recvmsg(fd, msg, flags));
}

ssize_t
rcd_sk_write(int fd, const void *buf, size_t len)
{
	return sk_calls_written(fd, len, rcd_sk_next()->write(fd, buf, len));
}

ssize_t
rcd_sk_writev(int fd, const struct iovec *iov, int count)
{
	ssize_t ret = rcd_sk_next()->writev(fd, iov, count);

	/* One that was refused has buffers that nobody may look at. */
	return sk_calls_written(fd, ret < 0 ? 0 : sk_calls_sum(iov, (size_t)count), ret);
}

ssize_t
rcd_sk_send(int fd, const void *buf, size_t len, int flags)
{
	return sk_calls_written(fd, len, rcd_sk_next()->send(fd, buf, len, flags));
}

ssize_t
rcd_sk_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	socklen_t addr_len)
{
	return sk_calls_written(
		fd, len, rcd_sk_next()->sendto(fd, buf, len, flags, addr, addr_len));
}

ssize_t
rcd_sk_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t ret = rcd_sk_next()->sendmsg(fd, msg, flags);

	return sk_calls_written(fd, ret < 0 ? 0 : sk_calls_sum(msg->msg_iov, msg->msg_iovlen), ret);
}

/* A file's bytes, copied. @return bytes; -1 and errno: none were sent */
static ssize_t
sk_calls_copy(int out, int in, off_t *offset, size_t count)
{
	off_t from = offset != NULL ? *offset : lseek(in, 0, SEEK_CUR);
	uint8_t chunk[CHUNK];
	size_t done = 0;

	if (from < 0)
		return -1;
	while (done < count) {
		size_t most = count - done < CHUNK ? count - done : CHUNK;
		ssize_t got = pread(in, chunk, most, from);
		ssize_t sent = got > 0 ? rcd_sk_write(out, chunk, (size_t)got) : got;

		if (sent < 0 && done == 0)
			return -1;
		if (sent <= 0)
			break;
		done += (size_t)sent;
		from += sent;
		if (sent < got)
			break;
	}
	if (offset != NULL)
		*offset = from;
	else
		lseek(in, from, SEEK_SET);
	return (ssize_t)done;
}

ssize_t
rcd_sk_sendfile(int out, int in, off_t *offset, size_t count)
{
	/* librspreload.so's maps the file with flags that mmap() does not take. */
	if (rcd_sk_is_rsocket(out))
		return sk_calls_copy(out, in, offset, count);
	return rcd_sk_next()->sendfile(out, in, offset, count);
}

static_assert(sizeof(off_t) == 8, "sendfile() and sendfile64() are one, as are fcntl()s");

ssize_t
rcd_sk_sendfile64(int out, int in, off_t *offset, size_t count)
{
	return rcd_sk_sendfile(out, in, offset, count);
}

/* @return 0; -1 and errno */
static int
sk_calls_set_nonblock(int fd, bool nonblock)
{
	int flags = rcd_sk_next()->fcntl(fd, F_GETFL);

	if (flags < 0)
		return -1;
	flags = nonblock ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return rcd_sk_next()->fcntl(fd, F_SETFL, flags);
}

int
rcd_sk_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int ret;

	if (!rcd_sk_is_rsocket(fd))
		return rcd_sk_next()->accept4(fd, addr, len, flags);
	ret = rcd_sk_next()->accept(fd, addr, len);
	if (ret < 0)
		return ret;
	if ((flags & SOCK_NONBLOCK && sk_calls_set_nonblock(ret, true) < 0) ||
		(flags & SOCK_CLOEXEC && rcd_sk_next()->fcntl(ret, F_SETFD, FD_CLOEXEC) < 0)) {
		int kept = errno;

		rcd_sk_next()->close(ret);
		errno = kept;
		return -1;
	}
	return ret;
}

int
rcd_sk_fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	/* Numbers come in registers as pointers do. */
	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return rcd_sk_next()->fcntl(fd, cmd, arg);
}

/* At least how many bytes may be read. @return 0; -1 and errno */
static int
sk_calls_readable(int fd, int *bytes)
{
	uint8_t chunk[CHUNK];
	ssize_t got = rcd_sk_next()->recv(fd, chunk, sizeof(chunk), MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && errno != EAGAIN)
		return -1;
	*bytes = got > 0 ? (int)got : 0;
	return 0;
}

int
rcd_sk_ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if ((request == FIONBIO || request == FIONREAD) && arg != NULL && rcd_sk_is_rsocket(fd))
		return request == FIONBIO ? sk_calls_set_nonblock(fd, *(int *)arg != 0)
					  : sk_calls_readable(fd, arg);
	return rcd_sk_next()->ioctl(fd, request, arg);
}

int
rcd_sk_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	int64_t ms = -1;
	bool signaled;
	int ret;

	if (timeout != NULL) {
		ms = timeout->tv_sec < 0 || timeout->tv_nsec < 0 ? -2
			: timeout->tv_sec > INT32_MAX / 1000 - 1
			? INT32_MAX
			: timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000;
		if (ms == -2) {
			errno = EINVAL;
			return -1;
		}
	}
	ret = rcd_sk_poll(fds, count, (int)ms, mask, &signaled);
	if (ret != 0 || !signaled)
		return ret;
	errno = EINTR;
	return -1;
}

static void
sk_calls_forget(int fd)
{
	if (fd >= 0)
		rcd_sk_epoll_forget((unsigned int)fd, (unsigned int)fd);
}

/* Before it is another name of a file, which closes what it was. */
static void
sk_calls_forget_for(int fd, int as)
{
	/* Of one that is not open that stays. */
	if (fd != as && syscall(SYS_fcntl, fd, F_GETFD) >= 0)
		sk_calls_forget(as);
}

int
rcd_sk_close(int fd)
{
	sk_calls_forget(fd);
	return rcd_sk_next()->close(fd);
}

int
rcd_sk_dup2(int fd, int as)
{
	sk_calls_forget_for(fd, as);
	return rcd_sk_next()->dup2(fd, as);
}

int
rcd_sk_dup3(int fd, int as, int flags)
{
	sk_calls_forget_for(fd, as);
	return rcd_sk_next()->dup3(fd, as, flags);
}

int
rcd_sk_close_range(unsigned int first, unsigned int last, int flags)
{
	if (first <= last && !(flags & CLOSE_RANGE_CLOEXEC))
		rcd_sk_epoll_forget(first, last);
	return (int)syscall(SYS_close_range, first, last, flags);
}

void
rcd_sk_closefrom(int first)
{
	unsigned int from = first < 0 ? 0 : (unsigned int)first;

	rcd_sk_epoll_forget(from, UINT_MAX);
	rcd_sk_next()->closefrom(first);
}
