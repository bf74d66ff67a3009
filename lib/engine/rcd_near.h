/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory near a core, from the heap.
 *
 * Threads: the control thread.
 */
#ifndef RCD_NEAR_H
#define RCD_NEAR_H

#include <stddef.h>

/**
 * Memory for what an lcore touches, zeroed and in cache lines of its own; free() gives it back.
 *
 * @param socket_id  NUMA node of the lcore
 * @return NULL: there is none
 */
void *
rcd_near_zalloc(int socket_id, size_t bytes);

#endif /* RCD_NEAR_H */
