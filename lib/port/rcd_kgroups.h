/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The multicast MACs that the kernel would tell the NIC of a netdev. It tells nobody when they
 * change (RTNLGRP_IPV4_MCADDR and its like are of Linux 6.14, and say nothing of packet sockets),
 * and lists those of all netdevs of a namespace at once: as anybody may make that list long, it is
 * read a piece at a time, and a long one less often.
 *
 * Threads: the control thread.
 */
#ifndef RCD_KGROUPS_H
#define RCD_KGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_eth.h"

/** Of the calling process's namespace, whatever of /proc it can see. */
#define RCD_KGROUPS_FILE "/proc/self/net/dev_mcast"

/** More of them are counted, and not kept. */
#define RCD_KGROUPS_MAX 512

/** Bytes of the list that are read at a look; for each look but the first, one reads nothing. */
#define RCD_KGROUPS_STEP 65536

/** Room for a line. */
#define RCD_KGROUPS_LINE 128

struct rcd_kgroups_list {
	uint32_t count;
	uint32_t more;                              /**< that there was no room for */
	uint8_t macs[RCD_KGROUPS_MAX][RCD_MAC_LEN]; /**< as the kernel has them, each once */
};

/** Of a netdev. All zero, none was read. */
struct rcd_kgroups {
	struct rcd_kgroups_list now;  /**< as they were read last, as a whole */
	struct rcd_kgroups_list next; /**< so far */
	bool reading;
	bool known;     /**< the list was read as a whole, once at least */
	bool doubted;   /**< one that had some had none */
	int fd;         /**< while it is read */
	uint32_t steps; /**< that this took so far */
	uint32_t rest;  /**< looks that nothing is read at */
	size_t line_len;
	char line[RCD_KGROUPS_LINE]; /**< of which the end was not read yet */
};

/**
 * Read some of the list.
 *
 * @return 0, whether the list is another now or not; -errno: it can't be read
 */
int
rcd_kgroups_look(struct rcd_kgroups *kgroups, const char *path, uint32_t ifindex);

/** No more of it is needed; the next look begins anew. */
void
rcd_kgroups_fini(struct rcd_kgroups *kgroups);

#endif /* RCD_KGROUPS_H */
