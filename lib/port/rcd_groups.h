/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How a port hears multicast: all of it where its driver can, else the groups that it is told, else
 * whatever passes (promiscuous), else as many of the groups as it takes. The groups are those that
 * programs have joined on the device, those of its addresses, and those that the kernel listens to
 * on its netdev.
 *
 * Threads: the control thread.
 */
#ifndef RCD_GROUPS_H
#define RCD_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_eth.h"
#include "rcd_joined.h"
#include "rcd_kgroups.h"
#include "rcd_memberships.h"

/** More of them are heard by hearing all; NICs have places for fewer. */
#define RCD_GROUPS_MAX 512

struct rcd_dev;
struct rcd_gid;

/** What a port was told. */
enum rcd_groups_kind {
	RCD_GROUPS_UNTOLD,      /**< nothing: it is no NIC, or knows nothing of such things */
	RCD_GROUPS_ALL,         /**< all groups */
	RCD_GROUPS_LISTED,      /**< those of a list */
	RCD_GROUPS_PROMISCUOUS, /**< to hear everything, as it knows no list */
	RCD_GROUPS_CROWDED, /**< likewise: the list is too long or not known, or all are wanted */
};

/** Groups by their MACs, each once. */
struct rcd_groups_list {
	uint32_t count;
	uint32_t more; /**< that there was no room for */
	uint8_t macs[RCD_GROUPS_MAX][RCD_MAC_LEN];
};

/** Of a device. All zero, it has none. */
struct rcd_groups {
	enum rcd_groups_kind kind;
	bool promiscuous;              /**< asked for by the kernel, for its netdev */
	bool all;                      /**< whether the kernel wants all groups */
	bool told_all;                 /**< what `all` was when the port was told last */
	int told_err;                  /**< what `kernels_err` was then */
	int kernels_err;               /**< why those of the kernel are not known; 0: they are */
	bool stale;                    /**< what the port has is not what it was to have */
	uint32_t looks;                /**< since then, and before */
	uint32_t room;                 /**< of its list, when that was too short; else 0 */
	uint32_t unheard;              /**< so many are asked for one by one and not heard */
	struct rcd_groups_list wanted; /**< what matters most first; as the port was asked last */
	struct rcd_groups_list heard;  /**< that it took, of a list */
	struct rcd_joined joined;      /**< by queue pairs */
	struct rcd_memberships udp;    /**< likewise, of a device by UDP: the kernel's to hear */
	struct rcd_kgroups kernels;    /**< by the kernel, on its netdev */
};

/** "untold", "all", "listed", "promiscuous": for people. Any thread. */
const char *
rcd_groups_name(enum rcd_groups_kind kind);

/** The device goes. */
void
rcd_groups_fini(struct rcd_groups *groups);

/** The device's port has started, or started again: tell it all that it may have forgotten. */
void
rcd_groups_tell(struct rcd_dev *dev);

/**
 * Groups may have come and gone: tell the port, if it has a list and that is another now. Where it
 * had no room, that waits for the next look.
 */
void
rcd_groups_follow(struct rcd_dev *dev);

/** The same, now and then, with what the kernel has: nobody says when that changes. */
void
rcd_groups_look(struct rcd_dev *dev);

/** Whether the port has a list, so that it matters which groups the kernel wants. */
bool
rcd_groups_matter(const struct rcd_dev *dev);

/**
 * A queue pair joins a group: for rcd_groups_follow().
 *
 * @return 0 or -ENOMEM; by UDP, as rcd_memberships_add()
 */
int
rcd_groups_join(struct rcd_dev *dev, const struct rcd_gid *group);

/** One that joined leaves it. */
void
rcd_groups_leave(struct rcd_dev *dev, const struct rcd_gid *group);

/** Whether the kernel wants to hear everything. @return 0 or -errno: the port can't */
int
rcd_groups_set_promiscuous(struct rcd_dev *dev, bool everything);

/** Whether the kernel wants to hear all groups, as multicast routers do. */
void
rcd_groups_set_all(struct rcd_dev *dev, bool all);

#endif /* RCD_GROUPS_H */
