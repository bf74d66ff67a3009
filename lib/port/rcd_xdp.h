/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What DPDK's driver for AF_XDP leaves to us: its program ends with the engine, however that ends,
 * and nothing of a device that was removed stays.
 *
 * Threads: the control thread.
 */
#ifndef RCD_XDP_H
#define RCD_XDP_H

#include <stddef.h>

struct rcd_dev;

/**
 * Where the program is that net_af_xdp takes.
 *
 * @param path  set to it, or to the last place that was looked at
 * @return path; NULL: there is none
 */
const char *
rcd_xdp_program(char *path, size_t path_len);

/**
 * Before the driver has made anything.
 *
 * @return 0; -EBUSY: the netdev has a program of somebody's, which the driver would take away;
 *         -ENOMEM
 */
int
rcd_xdp_begin(struct rcd_dev *dev);

/**
 * When the port is set up: put the driver's program into a BPF link of ours, so that it leaves the
 * netdev when our descriptor is closed, by us or by the kernel. Older kernels have no such links:
 * the program stays as the driver put it there.
 *
 * @return 0, or -errno and the netdev has no program
 */
int
rcd_xdp_hold(struct rcd_dev *dev);

/** Before the port is closed: take the program away. */
void
rcd_xdp_release(struct rcd_dev *dev);

/** When the port is closed: close what the driver has left open. */
void
rcd_xdp_end(struct rcd_dev *dev);

#endif /* RCD_XDP_H */
