/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * VLANs of a port that filters them: it is told those of the device's addresses. Where the kernel
 * has the addresses its VLANs are not known, and no filter is asked for.
 *
 * Threads: the control thread.
 */
#ifndef RCD_VLANS_H
#define RCD_VLANS_H

#include <stdbool.h>
#include <stdint.h>

#define RCD_VLANS 4096

struct rcd_dev;

/** Those of a device that its port was told. All zero, none. */
struct rcd_vlans {
	bool filter;                   /**< the port was asked to filter */
	uint64_t told[RCD_VLANS / 64]; /**< a bit each */
};

/** The device's port has started again, and knows none. */
void
rcd_vlans_tell(struct rcd_dev *dev);

/** Addresses may have come and gone: tell the port, if it filters. */
void
rcd_vlans_follow(struct rcd_dev *dev);

#endif /* RCD_VLANS_H */
