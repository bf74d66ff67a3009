/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * RoCE's UDP port of a netdev, held: the kernel does not answer "port unreachable" to packets that
 * the engine takes too, and a filter throws away what the kernel would queue there.
 *
 * Threads: the control thread.
 */
#ifndef RCD_HOLD_H
#define RCD_HOLD_H

#include <stddef.h>

struct rcd_dev;

/**
 * Hold it, by IPv4 and IPv6 where the kernel has them.
 *
 * @param error  of error_len bytes: a sentence, if it fails
 * @return 0 or -EADDRINUSE: a program has it
 */
int
rcd_hold_port(struct rcd_dev *dev, char *error, size_t error_len);

/** Close all sockets that a device has of its own, these or those of groups (rcd_dev.h). */
void
rcd_hold_release(struct rcd_dev *dev);

#endif /* RCD_HOLD_H */
