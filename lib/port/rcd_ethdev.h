/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a device asks of the ethdev that it found or made: buffers, queues, offloads, MTU.
 *
 * Threads: the control thread.
 */
#ifndef RCD_ETHDEV_H
#define RCD_ETHDEV_H

#include <stdbool.h>
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

/** Whether a device is on a PCI bus. NULL is allowed, and none. */
bool
rcd_ethdev_is_nic(const struct rte_device *device);

/** The device on a PCI bus that a port belongs to. @return NULL: it is of another kind */
const struct rte_device *
rcd_ethdev_nic(uint16_t port_id);

/** Configure the device's port and start it. @return 0 or -errno with a sentence */
int
rcd_ethdev_start(struct rcd_dev *dev, char *error, size_t error_len);

/**
 * Give the port of a started device another MTU; one whose driver can't while it runs is stopped
 * for that, and started again.
 *
 * @return 0, or -errno (-EAGAIN: it is being reset): it has the old one, unless it does not start
 *         any more, and its device is to be given up (rcd_unplug_asked())
 */
int
rcd_ethdev_change_mtu(struct rcd_dev *dev, uint16_t mtu);

/**
 * The MAC of a device whose port is started: the one that it is to have, that of its port, or one
 * that is made of its name where the port knows none.
 *
 * @param error  of error_len bytes: a sentence, if it fails
 * @return 0, or what the driver said: -errno
 */
int
rcd_ethdev_take_mac(struct rcd_dev *dev, char *error, size_t error_len);

/** Another MAC of a netdev: give it to the port of a started device, which is to have the same. */
void
rcd_ethdev_follow_mac(const struct rcd_dev *dev, const uint8_t *mac);

/**
 * What a driver asks for whose device was reset (RTE_ETH_EVENT_INTR_RESET): all is set up anew.
 * A device whose port does not come back is to be given up; one that does may have another MTU
 * (rcd_dev_set_mtu()). One that is not ready for it has asked again (rcd_unplug_reset_asked()), and
 * no lcore touches it meanwhile. Shown.
 */
void
rcd_ethdev_reset(struct rcd_dev *dev);

#endif /* RCD_ETHDEV_H */
