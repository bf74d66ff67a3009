/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What lcores see of devices: an immutable view each, with its MAC, its addresses and the MACs of
 * the devices that it reaches without a port. A change makes new views, and frees the old ones when
 * no lcore looks at them any more (rcd_lport.h).
 *
 * Threads: the control thread.
 */
#ifndef RCD_DEV_VIEW_H
#define RCD_DEV_VIEW_H

#include <stdint.h>

#include "rcd_dev_conf.h"

struct rcd_dev;

/** The addresses that it begins with, and lcores may see it. @return 0 or -ENOMEM */
int
rcd_dev_view_begin(struct rcd_dev *dev);

/** Lcores see it no more, and ports->devs does not have it. */
void
rcd_dev_view_end(struct rcd_dev *dev);

/**
 * Another MAC from now on, and another first address if that is made of it.
 *
 * @return 0; -ENOMEM: it has the old one, or still the old address
 */
int
rcd_dev_view_set_mac(struct rcd_dev *dev, const uint8_t *mac);

/** Add or remove an address; the others keep their places. @return 0, -EEXIST, -ENOENT, -ENOSPC */
int
rcd_dev_view_addr_add(struct rcd_dev *dev, const struct rcd_addr *addr);
int
rcd_dev_view_addr_del(struct rcd_dev *dev, const struct rcd_gid *gid);

#endif /* RCD_DEV_VIEW_H */
