/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The kernel's netdev of a port: a TAP device (Linux, Documentation/networking/tuntap.rst) with the
 * port's MAC and MTU, and a thread that carries frames between it and the exception path
 * (rcd_exception.h). The kernel owns addresses, routes and neighbours, and the device follows as
 * that of any netdev does; MAC, MTU and promiscuity go the other way, from the netdev to the port.
 *
 * Threads: the control thread.
 */
#ifndef RCD_TUNTAP_H
#define RCD_TUNTAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a frame of the kernel's, Ethernet header and tags included: what NICs call jumbo. */
#define RCD_TUNTAP_FRAME_MAX 9728

struct rcd_dev;

/**
 * Make the netdev of a device whose port is started, or take one that is there for it (ip tuntap
 * add), bring it up and begin to carry. Sets dev->tuntap, dev->ifindex and lport->exception.
 *
 * @param error  set to a sentence on failure
 * @return 0, -EBUSY, -EPERM, -ENOMEM, -ENOTSUP or -errno: it is for rcd_tuntap_stop() and
 *         rcd_tuntap_close()
 */
int
rcd_tuntap_open(struct rcd_dev *dev, char *error, size_t error_len);

/**
 * Stop carrying, before the port is closed: what waits for the kernel is the port's. No lcore knows
 * the device. One that has no dev->tuntap is left alone, by this and by rcd_tuntap_close().
 */
void
rcd_tuntap_stop(struct rcd_dev *dev);

/** After that, when the port has given back what it sends: a netdev that was made is gone. */
void
rcd_tuntap_close(struct rcd_dev *dev);

/** Tell the kernel whether the port has a link. Here and below dev->tuntap is there. */
void
rcd_tuntap_set_carrier(struct rcd_dev *dev, bool up);

/**
 * The netdev has another MTU: the port follows, or the netdev gets back what the port can do.
 *
 * @return whether the port has it, and the device is to have it
 */
bool
rcd_tuntap_follow_mtu(struct rcd_dev *dev, uint32_t mtu);

/** Likewise its MAC. @return false: it keeps the old one, and so does the netdev */
bool
rcd_tuntap_follow_mac(struct rcd_dev *dev, const uint8_t *mac);

/** Likewise whether it hears all frames of the link. */
void
rcd_tuntap_follow_promiscuity(struct rcd_dev *dev, bool all);

#endif /* RCD_TUNTAP_H */
