/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The configuration file of rocaded: sections and keys, checked one by one, faults told with their
 * line.
 */
#ifndef CONF_H
#define CONF_H

#include "rcd_engine.h"

#define CONF_DEVS_MAX 32

/** All that a file can say. */
struct conf {
	struct rcd_engine_conf engine;
	char user[64];  /**< to become after start; empty: stay */
	char group[64]; /**< of the control socket; empty: leave it */
	uint32_t dev_count;
	struct rcd_dev_conf devs[CONF_DEVS_MAX];
};

/** Defaults, without devices. */
void
conf_init(struct conf *conf);

/** The two ends of an embedded wire, roce0 and roce1, that a start without a file makes. */
void
conf_embedded_wire(struct conf *conf);

/**
 * Read a file over what is there. Each fault is a line on standard error: "FILE:LINE: what".
 *
 * @return number of faults; 0: all is well
 */
int
conf_load(struct conf *conf, const char *path);

#endif /* CONF_H */
