/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The multicast MACs that queue pairs of a device listen to, and how many memberships each is of:
 * what a port is to hear is known without a question to lcores. Several groups may have one MAC.
 *
 * Threads: the control thread.
 */
#ifndef RCD_JOINED_H
#define RCD_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_eth.h"
#include "rcd_gid.h"

struct rcd_joined_mac {
	uint8_t mac[RCD_MAC_LEN];
	uint32_t members;
};

/** Those of a device. All zero, none. */
struct rcd_joined {
	uint32_t count, room;
	struct rcd_joined_mac *macs; /**< in order */
};

/** No more of it is needed. */
void
rcd_joined_fini(struct rcd_joined *joined);

/** A queue pair is in a group now. @return 0 or -ENOMEM: nothing is counted */
int
rcd_joined_add(struct rcd_joined *joined, const struct rcd_gid *group);

/** Whether any is of this MAC. */
bool
rcd_joined_has(const struct rcd_joined *joined, const uint8_t *mac);

/** One that was counted is not any more. */
void
rcd_joined_del(struct rcd_joined *joined, const struct rcd_gid *group);

#endif /* RCD_JOINED_H */
