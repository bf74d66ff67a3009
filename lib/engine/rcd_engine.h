/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The engine: devices, lcores and clients, as one object for programs to run.
 *
 * A program initialises EAL, creates an engine, adds devices, and calls rcd_engine_step() from one
 * thread, the control thread; who creates the engine is that until another one steps it. Polling is
 * done either by EAL worker lcores that the engine starts (rcd_engine_start()), by loops of the
 * program on them (rcd_engine_launch()), or, where EAL has no worker, by the control thread between
 * its steps (rcd_lcore_poll()). In the end it destroys the engine, and only then ends EAL.
 *
 * One engine of a process at a time: it has a handler of SIGBUS, for memory that clients take away,
 * names in EAL (rocade_...) and commands of telemetry. Faults elsewhere go to the handler that was
 * there before. No SIGPIPE comes of clients that close their sockets.
 *
 * The engine owns the ports of its devices: it sets them up, starts, polls, stops and, if it made
 * them or they are NICs, closes them. The program leaves their queues alone. Packets are in mbufs
 * of pools that the engine makes and frees; none of them passes through these functions. A program
 * that keeps its ports feeds the engine from them: rcd_inline.h.
 *
 * Errors: 0 or -errno, and where there is room for it a sentence for people; `error` may be NULL
 * with error_len 0. Nothing that clients or packets do makes a function fail that does not say so.
 * Times say their unit. Text is UTF-8, and copied: the caller keeps what it passes.
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

/** Links of all guests together (netns_links): the other half is of who administers. */
#define RCD_GUEST_LINKS 16

/** What an engine is to be. rcd_engine_conf_init() first: members may come to be more. */
struct rcd_engine_conf {
	char socket[108];     /**< path where clients come; "": by rcd_engine_adopt() alone */
	uint32_t socket_mode; /**< permission bits */
	int64_t socket_gid;   /**< group that owns it; -1: leave it */
	/** Who may administer besides root and the user that created the engine; -1: nobody. */
	int64_t admin_uid;
	int64_t admin_gid;  /**< likewise, who has this group */
	uint32_t clients;   /**< most at once: 1 to 4096 */
	enum rcd_idle idle; /**< of lcores that rcd_engine_start() starts */
	uint32_t mbufs;     /**< buffers per NUMA node; 0: 16383, and fewer where memory is short */
	uint32_t lcores;    /**< of the EAL worker lcores, so many at most; 0: all of them */
	struct rcd_quota quota;      /**< what each client may have at most */
	struct rcd_quota user_quota; /**< each user; 0: a share of what there is */
	bool kernel_addresses;       /**< give addresses of embedded wires to the kernel */
	/** Clients of network namespaces without devices get none, and administer nothing. */
	bool netns_exclusive;
	/**
	 * Links that clients of another network namespace may make for it: RCD_GUEST_LINKS at
	 * most. It needs netns_exclusive and netns_fd.
	 */
	uint32_t netns_links;
	/**
	 * To a process that makes sockets of other network namespaces, as rocaded has one; -1:
	 * none. The caller's, and open for as long as the engine is there.
	 */
	int netns_fd;
	/** Change what a net_impair does; NULL where the driver is not there (rcd_pmd_impair.h). */
	int (*impair_set)(uint16_t port_id, const char *args, char *error, size_t error_len);
};

/* rcd_engine_conf.c */

/** Set everything to its default, the daemon's socket among it. Any thread. */
void
rcd_engine_conf_init(struct rcd_engine_conf *conf);

struct rcd_engine;
struct rcd_lcore;
struct rcd_stages;

/* rcd_engine.c */

/**
 * Any thread, which is the control thread from then on; EAL is initialised.
 *
 * Create an engine and its lcores: one for each EAL worker lcore; without any, one that the
 * program polls. Listens, unless the socket's name is empty. Nothing polls yet.
 *
 * @param conf   copied
 * @param error  set to a sentence when NULL is returned
 * @return the caller's, until rcd_engine_destroy(); NULL: not enough memory, a member of conf that
 *         may not be, a socket that can't be had, or there is an engine in this process
 */
struct rcd_engine *
rcd_engine_create(const struct rcd_engine_conf *conf, char *error, size_t error_len);

/**
 * Close connections, remove devices, free everything. Loops on worker lcores are told to stop
 * (rcd_lcore_stopping()) and waited for. Any thread, when no other uses the engine.
 *
 * @param engine  NULL: nothing is done
 */
void
rcd_engine_destroy(struct rcd_engine *engine);

/**
 * Start polling on the EAL worker lcores: rcd_engine_launch() of each, with rcd_poll_main().
 *
 * @return as rcd_engine_launch(); those before the one that failed are running then
 */
int
rcd_engine_start(struct rcd_engine *engine);

/**
 * Instead: run a loop of the program's own on the EAL worker of an lcore. The loop calls
 * rcd_lcore_poll() for it, over and over, and returns when rcd_lcore_stopping() says so; while it
 * does other things the control thread may wait for it.
 *
 * @param index  below rcd_engine_lcore_count()
 * @param arg    passed to the loop; the caller's, until the engine is destroyed
 * @return 0; -ENOTSUP: EAL has no worker for it, the control thread polls it; -EBUSY: that worker
 *         does something; -EPIPE: it does not answer
 */
int
rcd_engine_launch(struct rcd_engine *engine, uint32_t index, int (*loop)(void *arg), void *arg);

/**
 * End the loops that rcd_engine_start() and rcd_engine_launch() began, and wait for them. The
 * engine stays as it is, its lcores are this thread's to poll from here on, or can be launched
 * again.
 */
void
rcd_engine_end_loops(struct rcd_engine *engine);

/**
 * Run a function on each lcore, one after another, and wait for it: it is short, and blocks nothing
 * for long. On the calling thread for an lcore that nothing was launched on.
 */
void
rcd_engine_each_lcore(struct rcd_engine *engine, void (*fn)(void *arg), void *arg);

/**
 * Any thread, one at a time: it is the control thread from then on.
 *
 * Wait for control work for at most this long, and do it. Where cores are scarce the thread first
 * rests when it computed for more than half of the time, for 4 ms at most; with a timeout of 0 it
 * does not. Packets are not its business: connections, devices, requests of clients and the
 * kernel's news are, so that a program calls it some ten times in a second at least.
 *
 * @param timeout_ms  0: what there is to do, without waiting; below 0: until there is something
 */
void
rcd_engine_step(struct rcd_engine *engine, int timeout_ms);

/**
 * Take a connected socket as a new client, as if it had come through the listening one.
 *
 * @param sock  AF_UNIX, SOCK_SEQPACKET, non-blocking; the engine's from now on, at failure too
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
 * Where the program polls the lcores itself, in one thread, that one.
 *
 * The first end of an embedded wire waits: it has neither port nor counters until its peer is
 * added. Sockets of another network namespace (netns) are waited for, 30 s at most: at start.
 *
 * @param conf   copied; rcd_dev_conf_check() finds it right
 * @param error  set to a sentence on failure
 * @return 0; -EEXIST: there is a device of this name; -EINVAL: no such name or peer; -ENODEV: no
 *         such netdev or port; -EBUSY: it is another device's port; -EADDRINUSE: somebody has UDP
 *         port 4791 of the netdev; -ENOSPC: too many devices; -ENOMEM; or what the driver said, as
 *         -errno
 */
int
rcd_engine_dev_add(
	struct rcd_engine *engine, const struct rcd_dev_conf *conf, char *error, size_t error_len);

/**
 * Remove a device and everything that clients have on it. Its port is stopped; one that the engine
 * made, or that is a NIC, is closed and detached, any other one is the program's again. Any thread,
 * as rcd_engine_dev_add().
 *
 * @return 0; -ENOENT: there is no such device
 */
int
rcd_engine_dev_del(struct rcd_engine *engine, const char *name);

/**
 * Change a key of a device that is there, as "rocade link set" does. Any thread, as
 * rcd_engine_dev_add().
 *
 * @param key    of rcd_link_key.def, one that is LIVE
 * @param val    its value, in words
 * @param error  set to a sentence, unless 0 is returned
 * @return 0; -ENOENT: no such device or key; -EINVAL: not such a value, or not of this device; or
 *         what its driver said, as -errno
 */
int
rcd_engine_dev_set(struct rcd_engine *engine, const char *name, const char *key, const char *val,
	char *error, size_t error_len);

/**
 * The DPDK port of a device: the engine's. Any thread, while none comes or goes.
 *
 * @param port_id  set when 0 is returned
 * @return 0; -ENOENT: there is no such device, or it waits for its peer
 */
int
rcd_engine_dev_port(struct rcd_engine *engine, const char *name, uint16_t *port_id);

/** A counter of a device, over all lcores; 0 without such a device. Any thread, likewise. */
uint64_t
rcd_engine_dev_count(struct rcd_engine *engine, const char *name, enum rcd_counter counter);

/* rcd_engine.c */

/** Number of lcores: one at least. Any thread. */
uint32_t
rcd_engine_lcore_count(const struct rcd_engine *engine);

/** One of them, for rcd_lcore_poll(). Any thread. @return the engine's; NULL: no such index */
struct rcd_lcore *
rcd_engine_lcore(struct rcd_engine *engine, uint32_t index);

/** Whether a client asked the engine to stop: the program's to heed. Any thread. */
bool
rcd_engine_stopping(const struct rcd_engine *engine);

/**
 * Measure where the time of an lcore goes from now on, into the stages of rcd_stages.h.
 *
 * @param index   below rcd_engine_lcore_count()
 * @param stages  the caller's, zeroed by it, and written by the lcore until this is called again;
 *                NULL: no more
 */
void
rcd_engine_measure(struct rcd_engine *engine, uint32_t index, struct rcd_stages *stages);

RCD_API_END

#endif /* RCD_ENGINE_H */
