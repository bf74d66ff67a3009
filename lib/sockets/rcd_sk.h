/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What librspreload.so does not have. rdma-core's library brings rsockets to programs that were
 * made for TCP, by taking the place of the C library's calls; up to its release 62 it has none of
 * those that newer programs make: accept4(), epoll, fcntl64(), ioctl(), a sendfile() that works.
 * This library is preloaded before it, and makes them of those that librspreload.so has.
 *
 *   rcd_sk_calls.c  calls of one socket
 *   rcd_sk_epoll.c  epoll_create() and all that follows
 *   rcd_sk_next.c   calls of the next library, and which descriptors are rsockets'
 *
 * Other files than rsockets go to the C library's calls as they are. Any thread may call.
 */
#ifndef RCD_SK_H
#define RCD_SK_H

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/** A function of ours under a name of the C library's. */
#define RCD_SK_TAKES(name) __asm__(#name) __attribute__((visibility("default")))

/** Sockets with greater numbers have no edges: EPOLLET is as if it was not asked for. */
#define RCD_SK_EDGES 65536

/** What was told of a socket's edges. */
enum rcd_sk_edge {
	RCD_SK_TOLD_IN = 1 << 0,  /**< until it is read */
	RCD_SK_TOLD_OUT = 1 << 1, /**< until it has taken less than it was given */
	RCD_SK_TOLD_END = 1 << 2,
};

/** By socket: enum rcd_sk_edge. Readers and writers: any thread, relaxed. */
extern _Atomic uint8_t rcd_sk_told[RCD_SK_EDGES];

/* rcd_sk_next.c */

/** The calls of the next library: librspreload.so, if it is preloaded too. */
struct rcd_sk_next {
	int (*accept)(int fd, struct sockaddr *addr, socklen_t *len);
	int (*accept4)(int fd, struct sockaddr *addr, socklen_t *len, int flags);
	int (*close)(int fd);
	void (*closefrom)(int first);
	int (*dup2)(int fd, int as);
	int (*dup3)(int fd, int as, int flags);
	int (*fcntl)(int fd, int cmd, ...);
	int (*ioctl)(int fd, unsigned long request, ...);
	int (*poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
	ssize_t (*read)(int fd, void *buf, size_t len);
	ssize_t (*readv)(int fd, const struct iovec *iov, int count);
	ssize_t (*recv)(int fd, void *buf, size_t len, int flags);
	ssize_t (*recvfrom)(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
		socklen_t *addr_len);
	ssize_t (*recvmsg)(int fd, struct msghdr *msg, int flags);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	ssize_t (*writev)(int fd, const struct iovec *iov, int count);
	ssize_t (*send)(int fd, const void *buf, size_t len, int flags);
	ssize_t (*sendto)(int fd, const void *buf, size_t len, int flags,
		const struct sockaddr *addr, socklen_t addr_len);
	ssize_t (*sendmsg)(int fd, const struct msghdr *msg, int flags);
	ssize_t (*sendfile)(int out, int in, off_t *offset, size_t count);
};

const struct rcd_sk_next *
rcd_sk_next(void);

/** Whether a descriptor is that of an rsocket. errno is kept. */
bool
rcd_sk_is_rsocket(int fd);

/**
 * poll(), with another mask of signals meanwhile.
 *
 * @param mask      NULL: as it is
 * @param signaled  set: the mask let a signal through that had waited, after which nothing waits
 */
int
rcd_sk_poll(struct pollfd *fds, nfds_t count, int timeout_ms, const sigset_t *mask, bool *signaled);

/* rcd_sk_epoll.c */

/** Descriptors are about to be closed: no epoll instance has them any more, nor are they ones. */
void
rcd_sk_epoll_forget(unsigned int first, unsigned int last);

/** Remember what was told, or forget it. */
static inline void
rcd_sk_tell(int fd, uint8_t edges)
{
	if (fd >= 0 && fd < RCD_SK_EDGES)
		atomic_fetch_or_explicit(&rcd_sk_told[fd], edges, memory_order_relaxed);
}

static inline void
rcd_sk_untell(int fd, uint8_t edges)
{
	/* Most files were never told of: no write to what others read. */
	if (fd >= 0 && fd < RCD_SK_EDGES &&
		atomic_load_explicit(&rcd_sk_told[fd], memory_order_relaxed) != 0)
		atomic_fetch_and_explicit(&rcd_sk_told[fd], (uint8_t)~edges, memory_order_relaxed);
}

/* What programs call, as the manual pages of these names have it: rcd_sk_epoll.c */

int
rcd_sk_epoll_ctl(int fd, int op, int file, struct epoll_event *event) RCD_SK_TAKES(epoll_ctl);

int
rcd_sk_epoll_pwait(int fd, struct epoll_event *events, int most, int timeout_ms,
	const sigset_t *mask) RCD_SK_TAKES(epoll_pwait);

int
rcd_sk_epoll_wait(int fd, struct epoll_event *events, int most, int timeout_ms)
	RCD_SK_TAKES(epoll_wait);

int
rcd_sk_epoll_create1(int flags) RCD_SK_TAKES(epoll_create1);

int
rcd_sk_epoll_create(int size) RCD_SK_TAKES(epoll_create);

/* rcd_sk_calls.c */

ssize_t
rcd_sk_read(int fd, void *buf, size_t len) RCD_SK_TAKES(read);

ssize_t
rcd_sk_readv(int fd, const struct iovec *iov, int count) RCD_SK_TAKES(readv);

ssize_t
rcd_sk_recv(int fd, void *buf, size_t len, int flags) RCD_SK_TAKES(recv);

ssize_t
rcd_sk_recvfrom(int fd, void *buf, size_t len, int flags, struct sockaddr *addr,
	socklen_t *addr_len) RCD_SK_TAKES(recvfrom);

ssize_t
rcd_sk_recvmsg(int fd, struct msghdr *msg, int flags) RCD_SK_TAKES(recvmsg);

ssize_t
rcd_sk_write(int fd, const void *buf, size_t len) RCD_SK_TAKES(write);

ssize_t
rcd_sk_writev(int fd, const struct iovec *iov, int count) RCD_SK_TAKES(writev);

ssize_t
rcd_sk_send(int fd, const void *buf, size_t len, int flags) RCD_SK_TAKES(send);

ssize_t
rcd_sk_sendto(int fd, const void *buf, size_t len, int flags, const struct sockaddr *addr,
	socklen_t addr_len) RCD_SK_TAKES(sendto);

ssize_t
rcd_sk_sendmsg(int fd, const struct msghdr *msg, int flags) RCD_SK_TAKES(sendmsg);

ssize_t
rcd_sk_sendfile(int out, int in, off_t *offset, size_t count) RCD_SK_TAKES(sendfile);

ssize_t
rcd_sk_sendfile64(int out, int in, off_t *offset, size_t count) RCD_SK_TAKES(sendfile64);

int
rcd_sk_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags) RCD_SK_TAKES(accept4);

int
rcd_sk_fcntl64(int fd, int cmd, ...) RCD_SK_TAKES(fcntl64);

int
rcd_sk_ioctl(int fd, unsigned long request, ...) RCD_SK_TAKES(ioctl);

int
rcd_sk_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
	RCD_SK_TAKES(ppoll);

int
rcd_sk_close(int fd) RCD_SK_TAKES(close);

int
rcd_sk_dup2(int fd, int as) RCD_SK_TAKES(dup2);

int
rcd_sk_dup3(int fd, int as, int flags) RCD_SK_TAKES(dup3);

int
rcd_sk_close_range(unsigned int first, unsigned int last, int flags) RCD_SK_TAKES(close_range);

void
rcd_sk_closefrom(int first) RCD_SK_TAKES(closefrom);

#endif /* RCD_SK_H */
