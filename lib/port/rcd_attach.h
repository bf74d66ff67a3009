/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The port of a device: an end of an embedded wire, one on a kernel's netdev, any other of DPDK's.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ATTACH_H
#define RCD_ATTACH_H

#include <stddef.h>

struct rcd_dev;

/** Find or make the port of a device. @return 0 or -errno with a sentence */
int
rcd_attach(struct rcd_dev *dev, char *error, size_t error_len);

/** Make the rings of a wire between a device and its peer. @return 0 or -ENOMEM with a sentence */
int
rcd_attach_wire_rings(struct rcd_dev *dev, char *error, size_t error_len);

/** Close the port. */
void
rcd_detach(struct rcd_dev *dev);

/** Free the rings by which a device sends on its wire, when both ends are detached. */
void
rcd_detach_wire_rings(const struct rcd_dev *dev);

#endif /* RCD_ATTACH_H */
