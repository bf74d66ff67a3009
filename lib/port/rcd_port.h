/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a port says of itself, by its number, to those who need nothing else of DPDK.
 *
 * Threads: the control thread.
 */
#ifndef RCD_PORT_H
#define RCD_PORT_H

#include <stdbool.h>
#include <stdint.h>

/** Whether its link is up. */
bool
rcd_port_up(uint16_t port_id);

/** How fast that is, Mb/s; 0: it does not know. */
uint32_t
rcd_port_speed_mbps(uint16_t port_id);

/** The largest MTU of IP that it takes. @return 0 or -errno */
int
rcd_port_mtu_max(uint16_t port_id, uint32_t *mtu);

#endif /* RCD_PORT_H */
