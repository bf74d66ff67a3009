/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * VLANs of a port that filters them: it is told those of the device's addresses. Where the kernel
 * has the addresses it is asked to let all in, and told those of the netdevs that the kernel has on
 * the device's, in case it filters whether it was asked to or not.
 *
 * Threads: the control thread.
 */
#ifndef RCD_VLANS_H
#define RCD_VLANS_H

#include <stdbool.h>
#include <stdint.h>

#define RCD_VLANS 4096

struct rcd_dev;

/** Those of a device: a bit each. All zero, none. */
struct rcd_vlans {
	uint64_t kernels[RCD_VLANS / 64]; /**< of netdevs on the kernel's one of the port */
	uint64_t wanted[RCD_VLANS / 64];  /**< that the port was to be told last */
	uint64_t told[RCD_VLANS / 64];    /**< that it took, whether it filters now or not */
	bool asked;                       /**< it was, since it started */
};

/** The device's port has started again, and knows none. */
void
rcd_vlans_tell(struct rcd_dev *dev);

/** Addresses may have come and gone, or netdevs: tell the port, if it can filter. */
void
rcd_vlans_follow(struct rcd_dev *dev);

/** Whether the kernel has a netdev with this tag on the device's: for rcd_vlans_follow(). */
void
rcd_vlans_set_kernels(struct rcd_dev *dev, uint16_t id, bool there);

#endif /* RCD_VLANS_H */
