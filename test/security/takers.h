/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A session that takes one more of each thing that a client can use up. Each function is one
 * request, and returns what the engine answers: 0 or -errno.
 */
#ifndef TAKERS_H
#define TAKERS_H

#include "rig.h"

#define HUGE (UINT64_C(2) << 20)

/** A session, and what it needs to take more. */
struct taker {
	struct node node;
	uint32_t mem; /**< handle of 2 MiB */
	int fd;
	uint32_t cm_channel;
	struct rcd_ctrl_cm_addr listener; /**< of its own; port 0: none yet */
	uint32_t group_qp; /**< handle of a datagram queue pair, plus 1; 0: none yet */
	uint32_t group;    /**< last one that it joined */
};

/** Open roce0, with one of what others are made of. */
int
taker_open(struct taker *taker, const char *socket);

/** Share a file of no contents. @param handle set */
int
mem_add(struct taker *taker, uint64_t len, uint32_t *handle);

int
mem_add_part(struct taker *taker, uint64_t offset, uint64_t len, uint32_t *handle);

/** What is said of a resource where this text begins. @return its use; -1: nothing is said */
long long
use_of(const struct rig *rig, const char *who, const char *resource, long long *limit);

/** A session that keeps the files of its segment, of which queues take some megabytes. */
struct keeper {
	struct rcd_client client;
	int files[2]; /**< small pages, hugepages; -1: there are none */
};

void
keeper_open(struct keeper *keeper, const char *socket);

/** Bytes of pages that its files have. */
long long
keeper_bytes(const struct keeper *keeper);

int
take_descriptor(struct taker *taker);
int
take_mem(struct taker *taker);
int
take_addresses(struct taker *taker);
/** Share a file of its own, of no contents. */
int
share_file(struct taker *taker, uint64_t len);
int
take_shared(struct taker *taker);
int
take_mappings(struct taker *taker);
int
take_cq(struct taker *taker);
int
take_slots(struct taker *taker);
int
take_srq(struct taker *taker);
int
take_xrcd(struct taker *taker);
int
take_bytes(struct taker *taker);
int
take_dm(struct taker *taker);
int
take_qp(struct taker *taker);
int
take_null_mr(struct taker *taker);
int
take_mw(struct taker *taker);
int
take_pd(struct taker *taker);
int
take_ah(struct taker *taker);
int
take_cm_id(struct taker *taker);
int
take_cm_port(struct taker *taker);

/** An identifier on a port, which others of its like may have too. @param port  0: any, set */
int
share_cm_port(struct taker *taker, uint16_t *port, uint32_t *id);
int
take_cm_connection(struct taker *taker);
int
take_group(struct taker *taker);

#endif /* TAKERS_H */
