/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * PAUSE frames of a port (IEEE 802.3, annex 31B): whether it heeds and sends them. Nothing is told
 * to a port whose link says nothing of it.
 *
 * Threads: the control thread.
 */
#ifndef RCD_PAUSE_H
#define RCD_PAUSE_H

#include "rcd_dev_conf.h"

struct rcd_dev;

/**
 * Have a port that is started do as its link says, and see what it does (dev->pause).
 * @return 0, of KEEP always; -errno: it does as before
 */
int
rcd_pause_tell(struct rcd_dev *dev, enum rcd_pause pause);

#endif /* RCD_PAUSE_H */
