/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which descriptors tell of packets in a device's receive queues (rcd_rx_wait.h): interrupts that
 * its driver offers, or the sockets of a driver that works by them. Drivers don't say which sockets
 * are theirs: they are those that are new behind them, one for each queue, in the order of queues.
 *
 * Threads: the control thread.
 */
#ifndef RCD_DEV_WAIT_H
#define RCD_DEV_WAIT_H

#include <stdint.h>
#include <sys/types.h>

#include "rcd_lcores.h"
#include "rcd_lport.h"

struct rcd_dev;

/** Sockets of the kinds that drivers receive by. */
struct rcd_dev_wait_sockets {
	uint32_t count; /**< of places that are used; more than there are: too many */
	struct {
		int fd;
		ino_t inode;
	} places[RCD_DEVS_MAX * RCD_LCORES_MAX];
};

/** All that there are now. */
void
rcd_dev_wait_look(struct rcd_dev_wait_sockets *sockets);

/**
 * What lcores that sleep wait for of a device whose port is started.
 * @param before  a look before the driver made the port
 */
void
rcd_dev_wait_set(struct rcd_dev *dev, const struct rcd_dev_wait_sockets *before);

/** The same for a port that was stopped in between: sockets are those that they were. */
void
rcd_dev_wait_again(struct rcd_dev *dev);

#endif /* RCD_DEV_WAIT_H */
