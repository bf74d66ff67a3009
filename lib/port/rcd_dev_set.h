/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Keys of a link that change while it is there.
 *
 * Threads: the control thread.
 */
#ifndef RCD_DEV_SET_H
#define RCD_DEV_SET_H

#include <stddef.h>

struct rcd_ports;

/**
 * Change a key of a device.
 *
 * @param key, val  of rcd_link_key.def, one that is LIVE
 * @param error     set to a sentence, unless 0 is returned
 * @return 0; -ENOENT: no such device or key; -EINVAL: not such a value, or not of this device; or
 *         what its driver said, as -errno
 */
int
rcd_dev_set(struct rcd_ports *ports, const char *name, const char *key, const char *val,
	char *error, size_t error_len);

#endif /* RCD_DEV_SET_H */
