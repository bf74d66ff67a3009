/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All devices of an engine, and what they share: neighbours, next hops, what the kernel says and is
 * told. The engine is their host, by struct rcd_ports_ops.
 *
 * Threads: the control thread, unless a function says otherwise.
 */
#ifndef RCD_PORTS_H
#define RCD_PORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_dev_conf.h"
#include "rcd_lport.h"
#include "rcd_wire_end.h"

struct rcd_away;
struct rcd_dev;
struct rcd_hops;
struct rcd_kaddr;
struct rcd_lcores;
struct rcd_neighs;
struct rcd_netlink;
struct rcd_note;
struct rcd_rtnl;
struct rte_mempool;

/** What the host does for them. */
struct rcd_ports_ops {
	/** Tell all clients of a device. @param type  enum rcd_event */
	void (*event)(void *arg, struct rcd_dev *dev, uint32_t type);
	/** A device goes: nothing refers to it any more when this returns. */
	void (*gone)(void *arg, struct rcd_dev *dev);
};

/** What they are to be. */
struct rcd_ports_conf {
	const struct rcd_ports_ops *ops;
	void *arg; /**< the host, for its operations */
	struct rcd_lcores *lcores;
	struct rte_mempool *const *pools; /**< of buffers, by NUMA node; NULL: none there */
	const uint64_t *seed;             /**< two words that nobody can guess */
	/** Change what a net_impair does; NULL where the driver is not there. */
	int (*impair_set)(uint16_t port_id, const char *args, char *error, size_t error_len);
	bool kernel_addresses; /**< give addresses of embedded wires to the kernel */
	bool exclusive;        /**< clients of other network namespaces get no devices of ours */
};

/** All of them. */
struct rcd_ports {
	struct rcd_ports_conf conf;
	struct rcd_dev *devs[RCD_DEVS_MAX]; /**< by index */
	struct rcd_wire_ends wire_ends;     /**< not devices yet */
	uint32_t next_serial;
	uint64_t netns;     /**< of this process (rcd_away.h); 0: the kernel does not tell */
	bool served_others; /**< it has, or had, devices of another network namespace */
	int watch_fd;       /**< readable while the kernel tells something */
	struct rcd_neighs *neighs;
	struct rcd_hops *hops;
	struct rcd_rtnl *rtnl;       /**< NULL: the kernel can't be asked */
	struct rcd_netlink *netlink; /**< NULL: it does not tell of netdevs */
	struct rcd_kaddr *kaddr;     /**< NULL: it is given no addresses */
};

/**
 * Make the tables, before there are lcores.
 *
 * @return 0 or -ENOMEM: it is for rcd_ports_close()
 */
int
rcd_ports_open(struct rcd_ports *ports, const struct rcd_ports_conf *conf);

/** Reach the kernel, when there are lcores. @return 0; -ENOMEM; -errno of epoll */
int
rcd_ports_begin(struct rcd_ports *ports);

/** Remove all devices, while lcores are there. */
void
rcd_ports_end(struct rcd_ports *ports);

/** Free everything, when no lcore runs and nobody waits. Never opened, all zero, is allowed. */
void
rcd_ports_close(struct rcd_ports *ports);

/** What tells that rcd_ports_ready() is to be called, by being readable. */
int
rcd_ports_fd(const struct rcd_ports *ports);

/** Take what the kernel has told. */
void
rcd_ports_ready(struct rcd_ports *ports);

/** Whether some of it was lost, and could not be asked for: rcd_ports_ready() again, later. */
bool
rcd_ports_unsure(const struct rcd_ports *ports);

/**
 * Whose devices somebody gets: a network namespace that has devices has those alone, one that has
 * none gets those of the engine's, unless they are exclusive.
 *
 * @param netns  that it is in (rcd_away_netns())
 * @return as lport.netns of these devices
 */
uint64_t
rcd_ports_netns(const struct rcd_ports *ports, uint64_t netns);

/** Whether it keeps clients of other network namespaces apart: it has, or had, devices in one. */
bool
rcd_ports_serve_others(const struct rcd_ports *ports);

/** An lcore saw a neighbour. @param note  of RCD_NOTE_NEIGH */
void
rcd_ports_learn(struct rcd_ports *ports, const struct rcd_note *note);

/** Whether anybody wants to know of this neighbour. Any thread: lcores ask. */
bool
rcd_ports_want(const struct rcd_ports *ports, const struct rcd_lport *lport, uint16_t vlan_id,
	const struct rcd_gid *gid);

/** What asks the kernel about a network namespace, as rcd_ports_netns(). @return NULL: nothing */
struct rcd_rtnl *
rcd_ports_rtnl(const struct rcd_ports *ports, uint64_t netns);

/**
 * Add a device.
 *
 * @param away   sockets of the network namespace that its netdev is in, the device's from now on,
 *               whatever is returned; NULL: it is in ours
 * @param error  set to a sentence on failure
 * @return 0; -EEXIST, -EINVAL, -ENODEV, -ENOSPC, -ENOMEM
 */
int
rcd_ports_add(struct rcd_ports *ports, const struct rcd_dev_conf *conf, struct rcd_away *away,
	char *error, size_t error_len);

/** Remove a device, or an end of a wire that waits. @return 0 or -ENOENT */
int
rcd_ports_del(struct rcd_ports *ports, const char *name);

#endif /* RCD_PORTS_H */
