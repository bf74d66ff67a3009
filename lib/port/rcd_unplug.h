/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A NIC that is taken away while it is in use: the kernel asks VFIO to give it up, and waits until
 * that is done (linux/vfio.h, VFIO_PCI_REQ_IRQ_INDEX). EAL hears it in a thread of its own. Some
 * drivers hear of it by themselves, or that their device was reset (DPDK, rte_eth_event_type).
 *
 * Threads: the control thread.
 */
#ifndef RCD_UNPLUG_H
#define RCD_UNPLUG_H

#include <stdbool.h>

struct rcd_dev;

/** Hear of the device's port from now on, and of its NIC if it is one. */
void
rcd_unplug_watch(struct rcd_dev *dev);

/** No longer, when it returns. Without a watch it does nothing. */
void
rcd_unplug_end(struct rcd_dev *dev);

/** Whether its driver asked for a reset (rcd_ethdev_reset()) since this was asked last. */
bool
rcd_unplug_reset_asked(struct rcd_dev *dev);

/** Whether the NIC is to be given up: the device is to go. */
bool
rcd_unplug_asked(const struct rcd_dev *dev);

#endif /* RCD_UNPLUG_H */
