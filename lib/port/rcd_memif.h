/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Care of memif's driver (DPDK 22.11 to 24.11, drivers/net/memif/memif_socket.c). It frees what its
 * listening socket and its control channels work with when the last device of a socket is closed,
 * but leaves them open, and EAL's interrupt thread waiting for them: who connects then, or says
 * something, makes that thread work on freed memory.
 *
 * Threads: the control thread.
 */
#ifndef RCD_MEMIF_H
#define RCD_MEMIF_H

#include <stdbool.h>
#include <stddef.h>

/**
 * The socket that the driver listens at for a device.
 *
 * @param devargs  EAL device arguments
 * @param path     set to its name: of a file, or an abstract one, which begins with '\0'
 * @param len      bytes of path, one more than the name needs; set to those of the name
 * @return 0; -ENOENT: it is no memif, or connects itself; -EINVAL: no arguments, or too long
 */
int
rcd_memif_socket(const char *devargs, char *path, size_t *len);

/**
 * Before the driver makes a device that listens: a file that a killed engine left behind, and
 * nobody listens at, goes, or the driver fails.
 */
void
rcd_memif_prepare(const char *path, size_t len);

/**
 * Before the last device of a socket is stopped and closed: nobody listens at it any more, and its
 * channels have ended.
 *
 * The listening socket's number stays taken, by a descriptor that never says anything: EAL can't be
 * told to forget it, and ends the process when it is closed.
 */
void
rcd_memif_deafen(const char *path, size_t len);

#endif /* RCD_MEMIF_H */
