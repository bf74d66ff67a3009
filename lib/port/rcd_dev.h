/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A device: one port, its link and its addresses. What lcores see of it is its rcd_lport, and a
 * view that is replaced as a whole (rcd_dev_view.h).
 *
 * Threads: the control thread.
 */
#ifndef RCD_DEV_H
#define RCD_DEV_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_dev_conf.h"
#include "rcd_eth.h"
#include "rcd_gid_table.h"
#include "rcd_groups.h"
#include "rcd_hop.h"
#include "rcd_lport.h"
#include "rcd_steer.h"
#include "rcd_vlans.h"

struct rcd_away;
struct rcd_netlink;
struct rcd_ports;
struct rcd_rtnl;
struct rcd_tuntap;
struct rcd_xdp;
struct rte_device;
struct rte_mempool;

/** The device. */
struct rcd_dev {
	struct rcd_lport lport; /**< all of it that lcores see; by its index in ports->devs */
	struct rcd_ports *ports;
	struct rcd_dev_conf conf;
	const struct rcd_gid_table *gids; /**< that of the view; without one it is empty */
	uint8_t mac[RCD_MAC_LEN];         /**< as in the view, when there is one */
	uint32_t hop; /**< of vectors to it within the engine; RCD_HOP_NONE: it has no view */
	struct rcd_dev *peer; /**< the other end of its wire; NULL: it is no wire's */
	char driver[32];      /**< of DPDK */
	char vdev[64];        /**< EAL device that goes with it: made for it, or a NIC; "": none */
	struct rte_device *wrapped; /**< what is behind net_impair, and goes with it; NULL: none */
	const struct rte_device *unplug_watched; /**< NULL: none is (rcd_unplug.h) */
	struct rcd_xdp *xdp;       /**< of a port by AF_XDP; NULL: another (rcd_xdp.h) */
	struct rcd_tuntap *tuntap; /**< of a port that the kernel has a part in; NULL: none */
	struct rcd_away *away;     /**< of one in another network namespace; NULL: it is in ours */
	uint32_t ifindex;          /**< of the netdev, in its namespace; 0: none */
	/** By which the netdev is reached, or tried; RCD_NETDEV_AUTO: none yet. */
	enum rcd_netdev_mode mode;
	struct rcd_groups groups; /**< that its port hears */
	struct rcd_vlans vlans;
	struct rcd_steer steer; /**< which of the port's queues gets what */
	/** Sockets that hold port 4791; by UDP, those that are in groups. -1: none */
	int hold[2];
	/** Of its own, where the driver wants that; NULL: that of its node. */
	struct rte_mempool *pool;
	uint32_t mtu_max;  /**< that the driver can do, whatever the netdev has; 0: any */
	uint32_t mtu;      /**< of IP */
	uint32_t path_mtu; /**< largest of the five that fits */
	int socket_id;
	enum rcd_pause pause; /**< as its port has it now; RCD_PAUSE_KEEP: it knows no such thing */
	bool up;
	bool link_up;      /**< of a netdev, as the kernel says */
	bool netdev_gone;  /**< likewise: it is no more, or in another network namespace */
	bool xdp_taken;    /**< likewise: it has an XDP program */
	bool unplug_asked; /**< its NIC is to be given up; atomic, EAL's thread sets it, too */
	bool port_watched; /**< its port's events are heard */
	bool reset_asked;  /**< its port is to be set up anew; atomic, as unplug_asked */
	uint64_t reset_ns; /**< when that began; 0: it has not, or is over */
	bool admin_down;   /**< taken down by a command */
	bool interrupts;   /**< its port was configured for those of receive queues */
	bool started;
	bool shown; /**< to lcores: it has a view */
};

/** A device by its name. Any thread, while none comes or goes. @return NULL: there is none */
struct rcd_dev *
rcd_dev_find(const struct rcd_ports *ports, const char *name);

/**
 * What clients of a device's network namespace know it by: its name up to an "@", which names alone
 * have that guests gave.
 *
 * @param name  RCD_NAME_LEN bytes, set
 */
void
rcd_dev_plain_name(const struct rcd_dev *dev, char *name);

/** By its number, which no other ever has. @return NULL: it went */
struct rcd_dev *
rcd_dev_by_serial(const struct rcd_ports *ports, uint32_t serial);

/** Whether the address belongs to the device now. @return its place in the table; -1: no */
int
rcd_dev_gid_find(const struct rcd_dev *dev, const struct rcd_gid *gid);

/**
 * Whether the MAC of one device is known to another without asking: both are the same, or of one
 * network namespace, and none is the end of a wire, whose link has two ends.
 */
bool
rcd_dev_knows(const struct rcd_dev *dev, const struct rcd_dev *other);

/** Whether packets get there without a port, too: not where no_shortcut is set. */
bool
rcd_dev_reaches(const struct rcd_dev *dev, const struct rcd_dev *other);

/** What a next hop on the link of a device is found by. Any thread that knows the device. */
struct rcd_hop_key
rcd_dev_hop_key(const struct rcd_lport *lport, uint16_t vlan_id, const struct rcd_gid *gid);

/** Whether its netdev may be named by an address that it has: where UDP sockets may reach it. */
bool
rcd_dev_by_address(const struct rcd_dev *dev);

/**
 * Whether the kernel sends and receives its packets, by UDP sockets: it finds the way and the
 * neighbour by itself. Any thread that knows the device.
 */
bool
rcd_dev_is_udp(const struct rcd_dev *dev);

/** What asks the kernel about a device. @return NULL: nothing can */
struct rcd_rtnl *
rcd_dev_rtnl(const struct rcd_dev *dev);

/** What the kernel tells of a device by. @return NULL: nothing does */
struct rcd_netlink *
rcd_dev_netlink(const struct rcd_dev *dev);

/** The number of a netdev, in the network namespace of the device. @return 0: there is none */
uint32_t
rcd_dev_netdev_index(const struct rcd_dev *dev, const char *name);

/** Its name, there. @param name  IF_NAMESIZE bytes. @return false: there is none */
bool
rcd_dev_netdev_name(const struct rcd_dev *dev, uint32_t ifindex, char *name);

/** Tell all clients of a device. @param type  enum rcd_event */
void
rcd_dev_event(struct rcd_dev *dev, uint32_t type);

/** The MTU is another one, or as near to it as the driver and the configuration let it be. */
void
rcd_dev_set_mtu(struct rcd_dev *dev, uint32_t mtu);

/* rcd_dev_link.c */

/** Speed of a device's link. @return Mb/s; 0: not known */
uint32_t
rcd_dev_speed_mbps(const struct rcd_dev *dev);

/** Look at the link again; tell clients when it changed. */
void
rcd_dev_check_link(struct rcd_dev *dev);

#endif /* RCD_DEV_H */
