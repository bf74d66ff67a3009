/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The process that makes sockets of other network namespaces for the engine (rcd_netns.h): the
 * engine's own threads never leave their namespace, and have no right to.
 *
 * It ends with the daemon.
 */
#ifndef NETNS_H
#define NETNS_H

/**
 * Begin it. Main thread, before there is any other, with all rights that the daemon has.
 *
 * @return a socket to it, which ends it when it is closed; or -errno
 */
int
netns_begin(void);

/**
 * There are no more namespaces by name: it gives up the rights that finding those takes, before it
 * hears of anything that is sent later.
 */
void
netns_settle(int sock);

/** Nobody needs it any more: it ends, and is waited for. The socket stays the caller's. */
void
netns_end(int sock);

#endif /* NETNS_H */
