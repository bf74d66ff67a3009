/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory whose faults the program itself answers, by a userfaultfd: to replace it would take that
 * from it without a word. Private to lib/client.
 */
#ifndef RCD_CL_WATCH_H
#define RCD_CL_WATCH_H

#include <stdint.h>

/** A userfaultfd for rcd_cl_watch_probe(), which takes no right. @return -1: none for this user */
int
rcd_cl_watch_open(void);

/**
 * Whether any page of a range has a userfaultfd, of this process or one that it gave away. Nobody
 * else may run: calls of theirs into the memory would fail. System calls by syscall() alone.
 *
 * @param probe  of rcd_cl_watch_open(), for one range
 * @return 0: none has; -EBUSY: one has; other -errno: the kernel does not tell
 */
int
rcd_cl_watch_probe(int probe, uintptr_t start, uintptr_t end);

/**
 * The same without a userfaultfd of our own. Any thread. Takes time for all mappings of the process
 * up to there, and for all their pages.
 *
 * @return 0: none has; -EBUSY: one has; -EPERM: the kernel does not tell
 */
int
rcd_cl_watch_read(uintptr_t start, uintptr_t end);

#endif /* RCD_CL_WATCH_H */
