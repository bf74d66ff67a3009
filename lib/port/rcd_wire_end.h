/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Ends of embedded wires whose other end nobody has asked for yet: names that are taken, and no
 * devices.
 *
 * Threads: the control thread.
 */
#ifndef RCD_WIRE_END_H
#define RCD_WIRE_END_H

#include <sys/queue.h>

#include "rcd_dev_conf.h"

/** One end. */
struct rcd_wire_end {
	LIST_ENTRY(rcd_wire_end) link;
	struct rcd_dev_conf conf;
	uint32_t serial; /**< that the device is to have: it counts from when it was asked for */
};

/** All of an engine. All zero: there is none. */
struct rcd_wire_ends {
	LIST_HEAD(, rcd_wire_end) list;
	uint32_t count;
};

/** The end of this name. @return NULL: there is none */
struct rcd_wire_end *
rcd_wire_end_find(const struct rcd_wire_ends *ends, const char *name);

/** Add one; there is none of its name. @return 0 or -ENOMEM */
int
rcd_wire_end_add(struct rcd_wire_ends *ends, const struct rcd_dev_conf *conf, uint32_t serial);

/** Remove and free one. */
void
rcd_wire_end_del(struct rcd_wire_ends *ends, struct rcd_wire_end *end);

/** Remove all. */
void
rcd_wire_ends_fini(struct rcd_wire_ends *ends);

#endif /* RCD_WIRE_END_H */
