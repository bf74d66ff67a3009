/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * rsockets are not offered: programs that import them load, and their calls fail with EOPNOTSUPP.
 */
#include <rdma/rsocket.h>

#include "rcd_rm.h"

#define NOT_OFFERED(type, name, ...)                                                               \
	type name(__VA_ARGS__)                                                                     \
	{                                                                                          \
		errno = EOPNOTSUPP;                                                                \
		return (type)-1;                                                                   \
	}

/* Their arguments are what rsocket.h says, and nobody looks at them. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

NOT_OFFERED(int, rsocket, int domain, int type, int protocol)
NOT_OFFERED(int, rbind, int socket, const struct sockaddr *addr, socklen_t addrlen)
NOT_OFFERED(int, rlisten, int socket, int backlog)
NOT_OFFERED(int, raccept, int socket, struct sockaddr *addr, socklen_t *addrlen)
NOT_OFFERED(int, rconnect, int socket, const struct sockaddr *addr, socklen_t addrlen)
NOT_OFFERED(int, rshutdown, int socket, int how)
NOT_OFFERED(int, rclose, int socket)
NOT_OFFERED(ssize_t, rrecv, int socket, void *buf, size_t len, int flags)
NOT_OFFERED(ssize_t, rrecvfrom, int socket, void *buf, size_t len, int flags,
	struct sockaddr *src_addr, socklen_t *addrlen)
NOT_OFFERED(ssize_t, rrecvmsg, int socket, struct msghdr *msg, int flags)
NOT_OFFERED(ssize_t, rsend, int socket, const void *buf, size_t len, int flags)
NOT_OFFERED(ssize_t, rsendto, int socket, const void *buf, size_t len, int flags,
	const struct sockaddr *dest_addr, socklen_t addrlen)
NOT_OFFERED(ssize_t, rsendmsg, int socket, const struct msghdr *msg, int flags)
NOT_OFFERED(ssize_t, rread, int socket, void *buf, size_t count)
NOT_OFFERED(ssize_t, rreadv, int socket, const struct iovec *iov, int iovcnt)
NOT_OFFERED(ssize_t, rwrite, int socket, const void *buf, size_t count)
NOT_OFFERED(ssize_t, rwritev, int socket, const struct iovec *iov, int iovcnt)
NOT_OFFERED(int, rpoll, struct pollfd *fds, nfds_t nfds, int timeout)
NOT_OFFERED(int, rselect, int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
	struct timeval *timeout)
NOT_OFFERED(int, rgetpeername, int socket, struct sockaddr *addr, socklen_t *addrlen)
NOT_OFFERED(int, rgetsockname, int socket, struct sockaddr *addr, socklen_t *addrlen)
NOT_OFFERED(
	int, rsetsockopt, int socket, int level, int optname, const void *optval, socklen_t optlen)
NOT_OFFERED(int, rgetsockopt, int socket, int level, int optname, void *optval, socklen_t *optlen)
NOT_OFFERED(int, rfcntl, int socket, int cmd, ...)
NOT_OFFERED(off_t, riomap, int socket, void *buf, size_t len, int prot, int flags, off_t offset)
NOT_OFFERED(int, riounmap, int socket, void *buf, size_t len)
NOT_OFFERED(size_t, riowrite, int socket, const void *buf, size_t count, off_t offset, int flags)
