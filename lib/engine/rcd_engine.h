/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine: devices, lcores and clients, as one object for programs to run.
 *
 * A program initialises EAL, creates an engine, adds devices, and calls rcd_engine_step() from one
 * thread, the control thread; who creates the engine is that until another one steps it. Polling is
 * done either by EAL worker lcores that the engine starts (rcd_engine_start()) or by the program
 * itself (rcd_lcore_poll()), in which case both must happen in one thread. It ignores SIGPIPE:
 * clients close streams that the engine writes to.
 *
 * Threads: the control thread, unless a function says otherwise.
 */
#ifndef RCD_ENGINE_H
#define RCD_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_api.h"
#include "rcd_counter.h"
#include "rcd_dev_conf.h"
#include "rcd_idle.h"
#include "rcd_resource.h"

RCD_API_BEGIN

/** What an engine is to be. */
struct rcd_engine_conf {
	char socket[108];
	uint32_t socket_mode; /**< permission bits */
	int64_t socket_gid;   /**< -1: leave it */
	/** Who may administer besides root and the user that created the engine; -1: nobody. */
	int64_t admin_uid;
	int64_t admin_gid; /**< likewise, who has this group */
	uint32_t clients;  /**< most at once: 1 to RCD_CLIENTS_MAX */
	enum rcd_idle idle;
	uint32_t mbufs;         /**< per NUMA node; 0: 16383, and fewer where memory is short */
	uint32_t lcores;        /**< of the EAL worker lcores, so many at most; 0: all of them */
	struct rcd_quota quota; /**< what each client may have at most */
	struct rcd_quota user_quota; /**< each user; 0: a share of what there is */
	bool kernel_addresses;       /**< give addresses of embedded wires to the kernel */
	/** Change what a net_impair does; NULL where the driver is not there (rcd_pmd_impair.h). */
	int (*impair_set)(uint16_t port_id, const char *args, char *error, size_t error_len);
};

/* rcd_engine_conf.c */

/** Defaults of everything. Any thread. */
void
rcd_engine_conf_init(struct rcd_engine_conf *conf);

struct rcd_engine;
struct rcd_lcore;
struct rcd_stages;

/* rcd_engine.c */

/**
 * Any thread, which is the control thread from then on.
 *
 * Create an engine and its lcores: one for each EAL worker lcore; without any, one that the
 * program polls. Listens, unless the socket's name is empty.
 *
 * @param error  set to a sentence when NULL is returned
 */
struct rcd_engine *
rcd_engine_create(const struct rcd_engine_conf *conf, char *error, size_t error_len);

/**
 * Close connections, remove devices, free everything. Worker lcores are stopped. Any thread, when
 * no other uses the engine.
 */
void
rcd_engine_destroy(struct rcd_engine *engine);

/** Start polling on the EAL worker lcores. @return 0 or -errno */
int
rcd_engine_start(struct rcd_engine *engine);

/**
 * Instead: run a loop of the program's own on the EAL worker of an lcore. The loop calls
 * rcd_lcore_poll() for it, over and over, and returns when rcd_lcore_stopping() says so; while it
 * does other things the control thread may wait for it.
 *
 * @return 0 or -errno
 */
int
rcd_engine_launch(struct rcd_engine *engine, uint32_t index, int (*loop)(void *arg), void *arg);

/** Run a function on each lcore, one after another: it is short, and blocks nothing for long. */
void
rcd_engine_each_lcore(struct rcd_engine *engine, void (*fn)(void *arg), void *arg);

/**
 * Any thread, one at a time: it is the control thread from then on.
 *
 * Wait for control work for at most this long, and do it. Where cores are scarce the thread first
 * rests when it computed for more than half of the time (rcd_pace.h), for 4 ms at most; with a
 * timeout of 0 it does not.
 */
void
rcd_engine_step(struct rcd_engine *engine, int timeout_ms);

/**
 * Take a connected socket as a new client, as if it had come through the listening one.
 *
 * @param sock  SOCK_SEQPACKET, non-blocking; the engine's from now on
 * @return 0, or -EUSERS and it is closed: there are too many, or nobody could hear it
 */
int
rcd_engine_adopt(struct rcd_engine *engine, int sock);

/** End the wait of rcd_engine_step(). Any thread, and signal handlers. */
void
rcd_engine_wake(struct rcd_engine *engine);

/* rcd_engine_dev.c */

/**
 * Add a device. Any thread: it takes the place of the control thread, between two of its steps.
 *
 * @param error  set to a sentence on failure
 * @return 0; -EEXIST, -EINVAL, -ENODEV, -ENOSPC, -ENOMEM
 */
int
rcd_engine_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len);

/** Remove a device and everything that clients have on it. Any thread. @return 0 or -ENOENT */
int
rcd_engine_dev_del(struct rcd_engine *engine, const char *name);

/**
 * Change a key of a device that is there, as "rocade link set" does. Any thread.
 *
 * @param key, val  of rcd_link_key.def, one that is LIVE
 * @param error     set to a sentence, unless 0 is returned
 * @return 0; -ENOENT: no such device or key; -EINVAL: not such a value, or not of this device; or
 *         what its driver said, as -errno
 */
int
rcd_engine_dev_set(struct rcd_engine *engine, const char *name, const char *key, const char *val,
	char *error, size_t error_len);

/** The DPDK port of a device. Any thread, while none comes or goes. @return 0 or -ENOENT */
int
rcd_engine_dev_port(struct rcd_engine *engine, const char *name, uint16_t *port_id);

/** A counter of a device, over all lcores; 0 without such a device. Any thread, likewise. */
uint64_t
rcd_engine_dev_count(struct rcd_engine *engine, const char *name, enum rcd_counter counter);

/* rcd_engine.c */

/** Number of lcores, and one of them. Any thread. */
uint32_t
rcd_engine_lcore_count(const struct rcd_engine *engine);
struct rcd_lcore *
rcd_engine_lcore(struct rcd_engine *engine, uint32_t index);

/** Whether a client asked the engine to stop. Any thread. */
bool
rcd_engine_stopping(const struct rcd_engine *engine);

/**
 * Measure where the time goes from now on: into the stages of rcd_stages.h.
 *
 * @param stages  the caller's, until this is called again; NULL: no more
 */
void
rcd_engine_measure(struct rcd_engine *engine, uint32_t index, struct rcd_stages *stages);

RCD_API_END

#endif /* RCD_ENGINE_H */
