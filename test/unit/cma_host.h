/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A host for the CM service that is made of tables: devices, neighbours, the kernel's routes and a
 * clock are what a test says, and MADs wait until it has them delivered. No network, no rights, no
 * time that passes.
 */
#ifndef CMA_HOST_H
#define CMA_HOST_H

#include "rcd_cma_client.h"
#include "rcd_cma_event.h"
#include "rcd_sequence.h"

#define CMA_HOST_DEVS 4
#define CMA_HOST_MADS 16

/** A host, and its service. */
struct cma_host {
	struct rcd_cma *cma;
	struct rcd_quota_book book;
	struct rcd_sequence random;

	/* What the service is told. */
	uint32_t dev_count;
	struct rcd_cma_dev devs[CMA_HOST_DEVS]; /**< by place; without a name: none is there */
	struct rcd_gid_table gids[CMA_HOST_DEVS];
	bool gateway[CMA_HOST_DEVS]; /**< leads everywhere */
	uint32_t kernel_ifindex;     /**< way of all packets; 0: there is none */
	uint64_t kernel_netns;       /**< that it is in */
	struct rcd_gid kernel_src;
	int neighbour; /**< answer to who asks for one */
	int sending;   /**< result of sending */
	bool privileged;
	uint32_t foreign_qpn; /**< queue pair of somebody else */
	uint32_t room;        /**< bytes that streams still take */

	/* What it has done. */
	struct rcd_alarms alarms;
	struct rcd_waiters waiters; /**< for neighbours */
	uint32_t asked;             /**< for neighbours */
	uint32_t streams;           /**< that are open */
	uint32_t said;              /**< bytes in streams */
	uint32_t refused;           /**< attempts at that without room */
	uint32_t joined, left;      /**< that routers were told of */
	uint16_t said_vlan_id;      /**< the last time */
	struct rcd_gid said_source; /**< likewise */
	uint32_t mad_count;
	struct rcd_cm_way ways[CMA_HOST_MADS];
	uint8_t mads[CMA_HOST_MADS][RCD_MAD_LEN];
	uint64_t counts[RCD_COUNTER_COUNT];
};

/** Clock of all hosts. */
extern uint64_t cma_host_now_ns;

/** An address from text; NULL: of no family. */
struct rcd_ctrl_cm_addr
cma_host_addr(const char *text, uint16_t port);

/** Start a host without devices. Who asks for a neighbour is answered at once. */
void
cma_host_open(struct cma_host *host);

/** End it, after its clients; checks that nothing is left. */
void
cma_host_close(struct cma_host *host);

/** All who wait for neighbours are told to look again. */
void
cma_host_neighbours(struct cma_host *host);

/** Let time pass, of one host. */
void
cma_host_pass(struct cma_host *host, uint64_t ns);

/** One more device, up, with serial 100 and its place. @param name  NULL: leave the place empty */
struct rcd_cma_dev *
cma_host_dev(struct cma_host *host, const char *name);

/** One more address of the last device. */
void
cma_host_address(struct cma_host *host, const char *text, uint8_t prefix_len, uint16_t vlan_id);

/** A client, and the entry of its own. */
struct cma_host_client {
	struct cma_host *host;
	struct rcd_quota_entry quota;
	struct rcd_cma_client *cma;
	uint64_t netns; /**< whose devices it gets */
	uint32_t channel;
};

/** A client with one channel. @param uid  its user */
void
cma_host_client(struct cma_host *host, struct cma_host_client *client, uid_t uid);
void
cma_host_client_end(struct cma_host_client *client);

/** Start a host with one device, called as is said, its address, and a client. */
void
cma_host_open_with(struct cma_host *host, const char *name, const char *address,
	struct cma_host_client *client, uid_t uid);

/** An identifier of it. */
struct rcd_cmid *
cma_host_id(struct cma_host_client *client, enum rcd_cma_space space, uint8_t qp_type);

/** Have its owner bind it, resolve an address, join a group. @return as rcd_cmid_*() */
int
cma_host_bind(struct rcd_cmid *id, const char *text, uint16_t port);
int
cma_host_resolve(struct rcd_cmid *id, const char *text, uint16_t port);
int
cma_host_join(struct rcd_cmid *id, const char *text, uint32_t *handle);

/** The next event of a client. @return its type; -1: there is none; rep is set otherwise */
int
cma_host_event(struct cma_host_client *client, struct rcd_ctrl_cm_event_rep *rep);

/** Likewise, the next that is no news of an address or a route. */
int
cma_host_event_of_peer(struct cma_host_client *client, struct rcd_ctrl_cm_event_rep *rep);

/** Have all MADs that wait reach the peers, and those that these cause. */
void
cma_host_deliver(struct cma_host *a, struct cma_host *b);

#endif /* CMA_HOST_H */
