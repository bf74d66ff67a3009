/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a device asks of the ethdev that it found or made: buffers, queues, offloads, MTU.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ETHDEV_H
#define RCD_ETHDEV_H

#include <stddef.h>
#include <stdint.h>

struct rcd_dev;
struct rte_device;

/**
 * A mempool of a device's own, where that of its socket does not do; kept where it has one.
 * @param room bytes of a buffer, headroom included
 * @return 0 or -ENOMEM
 */
int
rcd_ethdev_make_pool(struct rcd_dev *dev, uint32_t count, uint16_t room);

/** The device on a PCI bus that a port belongs to. @return NULL: it is of another kind */
const struct rte_device *
rcd_ethdev_nic(uint16_t port_id);

/** Configure the device's port and start it. @return 0 or -errno with a sentence */
int
rcd_ethdev_start(struct rcd_dev *dev, char *error, size_t error_len);

#endif /* RCD_ETHDEV_H */
