/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The configuration file of rocaded: sections and keys, checked one by one, faults told with their
 * line.
 */
#ifndef CONF_H
#define CONF_H

#include <stdio.h>

#include "filter.h"
#include "rcd_engine.h"

#define CONF_DEVS_MAX 32

/** All that a file can say. */
struct conf {
	struct rcd_engine_conf engine;
	char user[64];          /**< to become after start; empty: stay */
	char group[64];         /**< of the control socket; empty: leave it */
	char admin_user[64];    /**< may administer, besides root; empty: nobody */
	char admin_group[64];   /**< likewise its members */
	enum filter_mode calls; /**< what becomes of unexpected system calls */
	bool core_dumps;
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
 * Read a file over what is there, and then what is named *.conf in the folder of its name with ".d"
 * behind it, in the order of names: a later value stands. Devices are theirs alone.
 *
 * @param out  each fault is a line of it: "FILE:LINE: what"
 * @return number of faults; 0: all is well
 */
int
conf_load(struct conf *conf, const char *path, FILE *out);

/** One key of [engine], as KEY=VALUE. @return what is wrong with it, or NULL */
const char *
conf_option(struct conf *conf, const char *option);

#endif /* CONF_H */
