/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the engine shows of itself, its devices and counters: each fact is stated once, for the
 * command line (JSON) and for DPDK's telemetry, which differ in how it is written down.
 *
 * Threads: any.
 */
#ifndef RCD_SHOW_H
#define RCD_SHOW_H

#include <stdbool.h>
#include <stdint.h>

struct rcd_dev;
struct rcd_engine;
struct rcd_gid;

/**
 * How it is written down. Names are those of members; in a list there are none.
 */
struct rcd_show_ops {
	void (*text)(void *out, const char *name, const char *val);
	void (*number)(void *out, const char *name, uint64_t val);
	void (*flag)(void *out, const char *name, bool val);
	void (*none)(void *out, const char *name);
	/** A list, or an object, begins; what follows is in it, until end(). */
	void (*list)(void *out, const char *name);
	void (*object)(void *out, const char *name);
	/** An object in a list, whose first member tells it from the others. */
	void (*item)(void *out, const char *name, uint32_t number);
	void (*end)(void *out);
};

/** To whom something is shown. */
struct rcd_show {
	const struct rcd_show_ops *ops;
	void *out;
	struct rcd_engine *engine; /**< what is shown is its */
	/** Everything, for the control thread; otherwise what any thread may read. */
	bool all;
};

/*
 * Each writes members of an object that its caller has begun. Under rcd_telemetry_lock(), unless
 * it is the control thread that asks.
 */

void
rcd_show_link(const struct rcd_show *show, const struct rcd_dev *dev);
void
rcd_show_dev(const struct rcd_show *show, const struct rcd_dev *dev);
void
rcd_show_statistic(const struct rcd_show *show, const struct rcd_dev *dev);

/** How many objects clients have on a device. Control thread. */
void
rcd_show_resource(const struct rcd_show *show, const struct rcd_dev *dev);

void
rcd_show_engine(const struct rcd_show *show);

/** What every counter is called and counts: items of a list that its caller has begun. */
void
rcd_show_counters(const struct rcd_show *show);

/** An address, as a member or an element of a list. */
void
rcd_show_gid(const struct rcd_show *show, const char *name, const struct rcd_gid *gid);

/* rcd_show_eal.c */

/** What the port counts of frames that no lcore saw, by the names of DPDK's statistics. */
void
rcd_show_eal_port(const struct rcd_show *show, const struct rcd_dev *dev);

/** What net_impair and net_udp did: the extended statistics of the port that are their own. */
void
rcd_show_eal_driver(const struct rcd_show *show, const struct rcd_dev *dev);

/** How many buffers of its own a device has left. @param dev  that has such */
uint32_t
rcd_show_eal_buffers(const struct rcd_dev *dev);

/** Where EAL has its files, and whether it has hugepages. */
const char *
rcd_show_eal_dir(void);
bool
rcd_show_eal_hugepages(void);

/* rcd_show_object.c */

/**
 * Objects of this kind, of all clients: items of a list that its caller has begun. Control thread.
 *
 * @return false: there is no such kind
 */
bool
rcd_show_objects(const struct rcd_show *show, const char *kind);

/* rcd_show_quota.c */

/** Use and limits of all, of each user, of each client: items likewise. Control thread. */
void
rcd_show_quota(const struct rcd_show *show);

/* rcd_show_json.c */

#define RCD_SHOW_DEPTH 8

struct json_t;

/** Where it is written to: the innermost object or list is the last. */
struct rcd_show_json {
	struct json_t *stack[RCD_SHOW_DEPTH];
	uint32_t depth;
};

extern const struct rcd_show_ops rcd_show_json_ops;

#endif /* RCD_SHOW_H */
