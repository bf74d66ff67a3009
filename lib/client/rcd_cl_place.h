/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Where a program finds the engine, if nobody told it: the user's own one first, then everybody's.
 * usertools/rocade_place.py looks in the same order.
 */
#ifndef RCD_CL_PLACE_H
#define RCD_CL_PLACE_H

#include <stddef.h>

/**
 * The place of the user's own engine: RCD_CTRL_SOCKET_OWN in $XDG_RUNTIME_DIR, or, where that is
 * not set, in /run/user/UID. Any thread.
 *
 * It is none when the process has more rights than who started it, when one of the two folders is
 * not this user's or others may look into ours, and when the name is too long for a socket.
 *
 * @param path  set
 * @param size  of path, bytes
 * @return 0; -EACCES: of somebody else; -ENAMETOOLONG; other -errno: there is no such folder
 */
int
rcd_cl_place_own(char *path, size_t size);

/**
 * Connect to an engine: to the one that ROCADE_SOCKET names and to no other; else to the user's
 * own, if it answers and is this user's or root's; else to that at RCD_CTRL_SOCKET. Any thread.
 *
 * @param sock  of AF_UNIX and SOCK_SEQPACKET, fresh, to be closed on exec: another may take its
 *              number
 * @param path  of the one and only; NULL: look
 * @return 0; -ENAMETOOLONG; -errno of connect()
 */
int
rcd_cl_place_connect(int sock, const char *path);

#endif /* RCD_CL_PLACE_H */
