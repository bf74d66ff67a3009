/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Closing what came from clients. Closing a descriptor may wait for as long as its sender likes: a
 * connection of TCP lingers, a server of a file system does not answer. So threads of their own do
 * it, which may hang, and never the control thread.
 *
 * Memory (memfd, tmpfs, hugetlbfs) is closed at once: nobody is asked for it. All functions belong
 * to the control thread, and none waits.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CLOSER_H
#define RCD_CLOSER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Descriptors of one user that may wait to be closed before no more of them are received. */
#define RCD_CLOSER_USER 64

/** The same of all users, where a stranger can send them: no connection is accepted above it. */
#define RCD_CLOSER_FULL 1024

/** The most that one message brings: the kernel's SCM_MAX_FD. */
#define RCD_CLOSER_MESSAGE 253

/** So many above the total of descriptors, messages with some are received from nobody. */
#define RCD_CLOSER_OVER 192

struct rcd_closer;
struct rcd_quota_book;

/**
 * Start the threads.
 *
 * @param epoll_fd  set in which the sockets may be
 * @param book  where users are charged for descriptors that wait; outlives the closer
 * @return the closer, or NULL
 */
struct rcd_closer *
rcd_closer_create(int epoll_fd, struct rcd_quota_book *book);

/** Stop. Threads that hang are left behind with what they close: the process's end ends them. */
void
rcd_closer_destroy(struct rcd_closer *closer);

/**
 * Let a socket take descriptors, or none: then who sends some gets EPERM. An accepted socket is as
 * the one that listened was.
 *
 * @return whether the kernel can do that (since Linux 6.16); if not, a socket takes them
 */
bool
rcd_closer_open_to_fds(int sock, bool open);

/**
 * Whether there is memory to close all sockets that are expected, one more, and what one message
 * brings: before either comes. Nothing is allocated when they are closed.
 */
bool
rcd_closer_is_ready(struct rcd_closer *closer);

/** A client's socket is there, which rcd_closer_take_sock() gets one day. */
void
rcd_closer_expect(struct rcd_closer *closer);

/** Close a descriptor that a client sent. @param uid  whose it is, and who is charged meanwhile */
void
rcd_closer_take(struct rcd_closer *closer, int fd, uid_t uid);

/**
 * Close the socket of a client, and with it the descriptors that were never read from it. It leaves
 * the epoll set at once. It was expected.
 */
void
rcd_closer_take_sock(struct rcd_closer *closer, int sock, uid_t uid);

/** Give back what users were charged for that is closed by now. The other functions do so too. */
void
rcd_closer_reap(struct rcd_closer *closer);

/**
 * Whether the next message of a user's socket may be received: with descriptors, if there is room
 * to close all that it can bring.
 *
 * @return 0; -EAGAIN: there is none yet, and the next may have some; -EBUSY: it is to stay unread
 *         for a while, others have left too much; else -errno: it is to go
 */
int
rcd_closer_admit(struct rcd_closer *closer, int sock, uid_t uid);

/** Whether a connection of this user may stay. */
bool
rcd_closer_may_stay(struct rcd_closer *closer, uid_t uid);

/** Whether connections may be accepted, each of which may bring descriptors. */
bool
rcd_closer_may_accept(struct rcd_closer *closer);

/** Descriptors that users are charged for, for the audit. */
uint64_t
rcd_closer_owed(const struct rcd_closer *closer);

/** Descriptors that are not closed yet. */
uint32_t
rcd_closer_held(struct rcd_closer *closer);

#endif /* RCD_CLOSER_H */
