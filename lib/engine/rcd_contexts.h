/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * All contexts of an engine, and what each of them needs of it.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CONTEXTS_H
#define RCD_CONTEXTS_H

#include <stdint.h>

#include "rcd_context.h"
#include "rcd_xrcd.h"

struct rcd_closer;
struct rcd_cm_host;
struct rcd_counters;
struct rcd_dev;
struct rcd_lcores;
struct rcd_ports;
struct rcd_qpns;
struct rcd_quota;

/** What they need. All of it is there as long as they are. */
struct rcd_contexts_conf {
	struct rcd_lcores *lcores;
	struct rcd_ports *ports;
	struct rcd_qpns *qpns;
	struct rcd_cm_host *cm;
	struct rcd_closer *closer;     /**< of descriptors that clients sent */
	struct rcd_counters *counters; /**< that have what a context counted, when it ends */
	const struct rcd_quota *quota; /**< limits of each: as large are its tables */
	uint64_t generation;           /**< of the engine */
	uint32_t *work;                /**< units of this step */
};

/** All of them. */
struct rcd_contexts {
	struct rcd_contexts_conf conf;
	struct rcd_context_list list;
	struct rcd_xrcd_list xrcds;
};

/** There are none. */
void
rcd_contexts_init(struct rcd_contexts *contexts, const struct rcd_contexts_conf *conf);

/** Tell those of a device something. @param type  enum rcd_event */
void
rcd_contexts_event(struct rcd_contexts *contexts, const struct rcd_dev *dev, uint32_t type);

/** A device goes, or with NULL all of them: the contexts are told, and end. */
void
rcd_contexts_end(struct rcd_contexts *contexts, const struct rcd_dev *dev);

/** Reports of the guard: whose memory went away, and what ends by it. After each. */
void
rcd_contexts_check_memory(struct rcd_contexts *contexts);

#endif /* RCD_CONTEXTS_H */
