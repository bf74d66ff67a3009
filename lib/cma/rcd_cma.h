/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The CM service: identifiers of all clients, as librdmacm knows them, over one agent of lib/cm.
 *
 *   rcd_cma_serve.c    requests of clients
 *   rcd_cmid.c         identifiers: made, bound, resolved, listening, removed
 *   rcd_cma_conn.c     connections and datagram services of identifiers
 *   rcd_cma_mcast.c    multicast groups of identifiers
 *   rcd_cma_tell.c     what the agent tells of connections
 *   rcd_cma_list.c     identifiers for people
 *   rcd_cma.c          the service: its agent, time, MADs in and out
 *   rcd_cma_event.c    channels and their events
 *   rcd_cma_port.c     port spaces
 *   rcd_cma_account.c  who is charged for connections
 *   rcd_cma_route.c    device and source address for a destination
 *
 * The meaning of requests and events is that of librdmacm(7) and of the kernel's rdma_cm.
 *
 * What is not here: devices, neighbours, packets, queue pairs, rights of processes, the clock. The
 * host hands in functions for them (struct rcd_cma_ops).
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_H
#define RCD_CMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rcd_alarm.h"
#include "rcd_cm_agent.h"
#include "rcd_cma_account.h"
#include "rcd_cma_dev.h"
#include "rcd_cma_port.h"
#include "rcd_cmid.h"
#include "rcd_counter.h"
#include "rcd_mad.h"
#include "rcd_thread.h"
#include "rcd_waiter.h"

#define RCD_CMA_REQ_RATE 20000 /**< requests taken in a second, of all peers */

/** What the host does for the service. All of it in the control thread, none of it blocks. */
struct rcd_cma_ops {
	/** The host's clock, nanoseconds, never goes backwards. */
	uint64_t (*now_ns)(void);

	/** Random bits that nobody can guess from others. */
	uint32_t (*random)(void *arg);

	/**
	 * The next device, of all namespaces.
	 *
	 * @param place  0 for the first; set, for the next
	 * @return whether there is one; dev is set then
	 */
	bool (*dev_next)(void *arg, uint32_t *place, struct rcd_cma_dev *dev);

	/**
	 * The network namespace whose devices a client gets, by a number: no others are there for
	 * it, and what it binds and asks for does not meet what those of others do.
	 */
	uint64_t (*netns)(const void *owner);

	/** The device with a number. @return whether there is one; dev is set then */
	bool (*dev_of)(void *arg, uint32_t serial, struct rcd_cma_dev *dev);

	/** Count something of a device, or of none: the host's own. */
	void (*count)(void *arg, uint32_t serial, enum rcd_counter counter, uint64_t add);

	/**
	 * Send a MAD of RCD_MAD_LEN bytes to QP1 of the way's remote end, before the step of the
	 * control thread ends: the host may send several together.
	 *
	 * @param waiter  is called when it pays to try again, if -EAGAIN is returned; NULL: nobody
	 *                waits
	 * @return 0, and it may be lost; -EAGAIN: the neighbour is being asked for; another
	 *         -errno: it can't be sent
	 */
	int (*send)(void *arg, const struct rcd_cm_way *way, const uint8_t *mad,
		struct rcd_waiter *waiter);

	/** Tell routers of a membership of a device whose addresses are ours, or of its end. */
	void (*membership)(void *arg, uint32_t serial, const struct rcd_gid *source,
		const struct rcd_gid *group, uint16_t vlan_id, bool leave);

	/**
	 * Whether the MAC of the next hop towards an address is known.
	 *
	 * @param owner   the client's, on whose account it is asked for
	 * @param waiter  is called when it pays to look again, if -EAGAIN is returned
	 * @return 0; -EAGAIN: asked for; -ENETUNREACH; -ETIMEDOUT: nobody answers; -ENOMEM: it has
	 *         asked for too many that don't answer
	 */
	int (*resolve)(void *owner, uint32_t serial, int sgid_index, const struct rcd_gid *dgid,
		struct rcd_waiter *waiter);

	/** Whether there is a way, as far as is known without asking anybody on the link. */
	bool (*reachable)(void *arg, uint32_t serial, int sgid_index, const struct rcd_gid *dgid);

	/**
	 * The netdev that the kernel's packets to an address leave by, and their source.
	 *
	 * @param netns    namespace that they leave from
	 * @param ifindex  the netdev wanted, 0: any; set
	 * @param src      set, when the kernel says it
	 * @return 0, or -ENETUNREACH
	 */
	int (*source)(void *arg, uint64_t netns, const struct rcd_gid *dgid, uint32_t *ifindex,
		struct rcd_gid *src);

	/** Whether who asks may have a privileged port. @param asker  of rcd_cma_serve() */
	bool (*may_bind)(const void *asker);

	/** Whether a queue pair is of the process that asks. */
	bool (*has_qpn)(const void *asker, uint32_t qpn);

	/** Who the client is, for people. @param comm  set, printable, the host's */
	pid_t (*name)(const void *owner, const char **comm);

	/**
	 * A stream of bytes to a client, charged to it: the first end is the client's, and to the
	 * second is written without ever blocking.
	 *
	 * @return 0 or -errno
	 */
	int (*stream)(void *owner, int ends[2]);
	void (*stream_close)(void *owner, int sock);

	/** @return 0, also when nobody will ever read it; -EAGAIN when it has no room */
	int (*stream_send)(int sock, const void *data, size_t len);
};

/** What a service is to be. */
struct rcd_cma_conf {
	uint64_t secret;    /**< random bits: numbers that peers can't guess */
	uint64_t first_tid; /**< of transactions: goes out as it is, and so is no secret */
	uint64_t guid;      /**< bits of the local adapter's (rcd_cm_guid()) */
	const struct rcd_cma_ops *ops;
	void *arg;                 /**< of the ops */
	struct rcd_alarms *alarms; /**< of the control thread; outlive it */
};

/** A MAD that waits for a neighbour. */
struct rcd_cma_parked {
	SLIST_ENTRY(rcd_cma_parked) link; /**< of those without one */
	struct rcd_waiter waiter;
	struct rcd_alarm late;
	struct rcd_cma *cma;
	struct rcd_cm_way way;
	uint8_t mad[RCD_MAD_LEN];
};

#define RCD_CMA_PARKED  128 /**< MADs that wait for a neighbour */
#define RCD_CMA_QUERIES 32  /**< devices */

/** A group that identifiers of a device and a VLAN have joined, however many. */
struct rcd_cma_member {
	LIST_ENTRY(rcd_cma_member) link; /**< of those that are found together */
	struct rcd_gid gid;
	uint32_t dev;
	uint16_t vlan_id;
	int sgid_index;       /**< of the first that joined */
	uint64_t reported_ns; /**< when it was, because of a query */
	uint32_t users;
};

#define RCD_CMA_MEMBER_BUCKETS 1024

/** The service. Its fields are its own, but for audits, which read them. */
struct rcd_cma {
	const struct rcd_cma_ops *ops;
	void *arg;
	struct rcd_cm_agent *agent;
	struct rcd_cm_counts told; /**< what the devices' counters have of the agent's counts */
	struct rcd_cmid_list ids;
	struct rcd_cma_accounts rests; /**< of clients that have ended */
	struct rcd_cma_space_ports spaces[RCD_CMA_SPACES];
	uint64_t secret;
	LIST_HEAD(, rcd_cma_member) members[RCD_CMA_MEMBER_BUCKETS]; /**< by what they are of */
	struct {
		uint32_t serial;
		uint64_t at_ns;
	} queries[RCD_CMA_QUERIES]; /**< the last that were answered, by serial of the device */
	uint32_t parked_count;
	struct rcd_alarms *alarms;
	SLIST_HEAD(, rcd_cma_parked) unparked;
	struct rcd_cma_parked parked[RCD_CMA_PARKED];
};

/** Make the service. @return NULL: no memory */
struct rcd_cma *
rcd_cma_create(const struct rcd_cma_conf *conf);

/** End it, after all its clients. Nobody is told. NULL is allowed. */
void
rcd_cma_destroy(struct rcd_cma *cma);

/** Take a MAD of RCD_MAD_LEN bytes that came to QP1. @param way  back to who sent it */
void
rcd_cma_rx(struct rcd_cma *cma, const struct rcd_cm_way *way, const uint8_t *mad);

/** Let time pass for connections, some at a time: see rcd_cma_next(). */
void
rcd_cma_tick(struct rcd_cma *cma, uint64_t now_ns);

/** When to call that next. @return UINT64_MAX: never, as things are */
uint64_t
rcd_cma_next(const struct rcd_cma *cma);

/* rcd_cma_mcast.c */

/** A router asks for the groups of a device. */
void
rcd_cma_queried(struct rcd_cma *cma, uint32_t serial);

/* rcd_cma.c */

/** Connections, those in timewait included. */
uint32_t
rcd_cma_connections(const struct rcd_cma *cma);

/**
 * Whose connection says that a peer's queue pair offers something: what others were told of the
 * peer may be anybody's word.
 *
 * @param way     netns and remote are looked at
 * @param offers  RCD_CM_OFFERS_*
 * @return the owner of the client, as rcd_cma_client_create(); NULL: nobody's
 */
const void *
rcd_cma_offered(
	struct rcd_cma *cma, uint32_t remote_qpn, const struct rcd_cm_way *way, uint8_t offers);

/** A device goes, and is still there: so do the connections on it. */
void
rcd_cma_dev_gone(struct rcd_cma *cma, uint32_t serial);

/** Random bits that nobody can guess from others. */
static inline uint32_t
rcd_cma_random(const struct rcd_cma *cma)
{
	RCD_ON_CONTROL();
	return cma->ops->random(cma->arg);
}

/** The next device of a network namespace, as dev_next(). */
static inline bool
rcd_cma_dev_next(
	const struct rcd_cma *cma, uint64_t netns, uint32_t *place, struct rcd_cma_dev *dev)
{
	RCD_ON_CONTROL();
	while (cma->ops->dev_next(cma->arg, place, dev))
		if (dev->netns == netns)
			return true;
	return false;
}

/** The host's clock. */
static inline uint64_t
rcd_cma_now_ns(const struct rcd_cma *cma)
{
	RCD_ON_CONTROL();
	return cma->ops->now_ns();
}

/** The device with a number. @return whether there is one; dev is set then */
static inline bool
rcd_cma_dev(const struct rcd_cma *cma, uint32_t serial, struct rcd_cma_dev *dev)
{
	RCD_ON_CONTROL();
	return serial != RCD_CMA_NO_DEV && cma->ops->dev_of(cma->arg, serial, dev);
}

#endif /* RCD_CMA_H */
