/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How a port hears multicast: all of it where its driver can, else the groups that it is told, else
 * whatever passes (promiscuous). The groups are those that programs have joined on the device,
 * those of its addresses, and those that the kernel listens to on its netdev.
 *
 * Threads: the control thread.
 */
#ifndef RCD_GROUPS_H
#define RCD_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_eth.h"

/** More of them are heard by hearing all; NICs have places for fewer. */
#define RCD_GROUPS_MAX 512

struct rcd_dev;

/** What a port was told. */
enum rcd_groups_kind {
	RCD_GROUPS_UNTOLD,      /**< nothing: it is no NIC, or knows nothing of such things */
	RCD_GROUPS_ALL,         /**< all groups */
	RCD_GROUPS_LISTED,      /**< those of a list */
	RCD_GROUPS_PROMISCUOUS, /**< to hear everything, as it knows no list */
	RCD_GROUPS_CROWDED,     /**< likewise, as the list was too long */
};

/** Of a device. All zero, it has none. */
struct rcd_groups {
	enum rcd_groups_kind kind;
	bool promiscuous; /**< asked for by the kernel, for its netdev */
	int err;          /**< why the list lacks some; 0: it does not */
	uint32_t count;
	uint8_t macs[RCD_GROUPS_MAX][RCD_MAC_LEN]; /**< as the port was told, in order, each once */
};

/** "untold", "all", "listed", "promiscuous": for people. Any thread. */
const char *
rcd_groups_name(enum rcd_groups_kind kind);

/** The device's port has started, or started again: tell it all that it may have forgotten. */
void
rcd_groups_tell(struct rcd_dev *dev);

/**
 * Groups may have come and gone: tell the port, if it has a list and that is another now. Nobody
 * says when the kernel's change, so this is called now and then, too.
 */
void
rcd_groups_follow(struct rcd_dev *dev);

/** Whether the kernel wants to hear everything. @return 0 or -errno: the port can't */
int
rcd_groups_set_promiscuous(struct rcd_dev *dev, bool all);

#endif /* RCD_GROUPS_H */
