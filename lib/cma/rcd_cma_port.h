/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Port spaces, which all clients of a network namespace share: who has which port, who may take it
 * too, who listens. What has a port stays in the namespace that its client had then.
 *
 * Threads: the control thread.
 */
#ifndef RCD_CMA_PORT_H
#define RCD_CMA_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "rcd_cm.h"
#include "rcd_cmid.h"

struct rcd_cma_dev;

#define RCD_CMA_SPACES 4

/** Ports that are given to who asks for any, as the kernel's net.ipv4.ip_local_port_range. */
#define RCD_CMA_EPHEMERAL_FIRST 32768u
#define RCD_CMA_EPHEMERAL_COUNT 28232u

/**
 * Identifiers of a network namespace that may share a port: all of them are looked at by who comes,
 * requests too; those of other namespaces are not.
 */
#define RCD_CMA_PORT_SHARE 1024

/** Who has a port in one network namespace. It is there as long as somebody has. */
struct rcd_cma_port_part {
	LIST_ENTRY(rcd_cma_port_part) link;
	uint64_t netns;
	struct rcd_cmid_list ids; /**< not empty */
};

/** Who has a port: a part for each namespace, and those are few, as each has a device. */
struct rcd_cma_port {
	LIST_HEAD(, rcd_cma_port_part) parts;
};

/** A port space. */
struct rcd_cma_space_ports {
	struct rcd_cma_port *ports;                          /**< by number */
	uint64_t taken[(RCD_CMA_EPHEMERAL_COUNT + 63) / 64]; /**< ephemeral ones, a bit each */
};

/** @return 0; -ENOMEM: what there is, rcd_cma_ports_fini() frees */
int
rcd_cma_ports_init(struct rcd_cma *cma);

/** Free them. Nobody may have one. */
void
rcd_cma_ports_fini(struct rcd_cma *cma);

/** Whether it is a port space. */
bool
rcd_cma_space_valid(uint32_t space);

/**
 * Take the port of id->src; a free one when that is 0, which is put in. Its client is charged.
 *
 * @param asker  as of rcd_cmid_bind()
 * @return 0; -EADDRINUSE; -EACCES: privileged; -EADDRNOTAVAIL: none is free, or a quota is reached;
 *         -ENODEV: its client's network namespace is not the engine's, and has no device; -ENOMEM
 */
int
rcd_cma_port_take(struct rcd_cmid *id, const void *asker);

/** Give it back, if it has one. */
void
rcd_cma_port_release(struct rcd_cmid *id);

/** Whether a bound identifier may listen beside the others on its port. @return 0, -EADDRINUSE */
int
rcd_cma_port_listen(const struct rcd_cmid *id);

/** Who listens for this. @param dev  that it came by. @return NULL: nobody */
struct rcd_cmid *
rcd_cma_port_find(struct rcd_cma *cma, const struct rcd_cma_dev *dev, enum rcd_cma_space space,
	uint16_t port, const struct rcd_gid *dst);

#endif /* RCD_CMA_PORT_H */
