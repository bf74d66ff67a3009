/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Flows of a simulated network: messages from one host to another over a pair of RC queue pairs, as
 * WRITEs of the one or READs of the other. What arrives is compared with what was sent.
 */
#ifndef NET_FLOW_H
#define NET_FLOW_H

#include "net_host.h"

/** Most messages of a flow under way. */
#define NET_OUTSTANDING_MAX 64

/** Most bytes of a message. */
#define NET_SIZE_MAX (1 << 20)

/** Messages without an end. */
#define NET_ENDLESS UINT32_MAX

/** What all flows of a network have in common. */
struct net_load {
	struct net *net;
	uint8_t *pattern; /**< what messages are made of */
	size_t pattern_len;
	const struct rcd_cc_ops *cc;
	struct rcd_cc_params cc_params;
	uint32_t running;  /**< flows with an end that have not come to it */
	uint64_t ended_ns; /**< when there were none any more */
	uint64_t wrong;    /**< messages that are not what was sent */
	uint64_t *took_ns; /**< by message of the flows with an end, as they complete */
	uint32_t took_count, took_capacity;
};

/** What a flow is to be. */
struct net_flow_init {
	uint32_t size;        /**< bytes of a message, up to NET_SIZE_MAX */
	uint32_t outstanding; /**< messages under way, 1..NET_OUTSTANDING_MAX */
	uint32_t messages;    /**< in all; NET_ENDLESS: for as long as a flow with an end runs */
	uint64_t start_ns;
	uint64_t pause_ns;  /**< at most so long between two messages, as it comes */
	bool read;          /**< the receiver asks for the data */
	bool plain;         /**< without congestion control, whatever others have */
	uint32_t rate_kbps; /**< of its sender; 0: no limit */
	uint16_t mtu;       /**< bytes */
};

/** A flow. */
struct net_flow {
	struct net_load *load;
	struct net_flow_init init;
	struct net_qp *asks, *answers; /**< requester and responder */
	uint8_t *memory;               /**< where the messages arrive */
	struct rcd_key from_key, to_key;
	struct net_event again; /**< a message is to be posted */
	uint32_t posted, done;
	uint64_t posted_ns[NET_OUTSTANDING_MAX];
	uint64_t done_ns; /**< when the last one was */
	bool failed;
	struct net_series arrived; /**< payload that came to the receiver, bytes */
};

/** Begin. */
void
net_load_init(struct net_load *load, struct net *net, const struct rcd_cc_ops *cc,
	const struct rcd_cc_params *params);

/** End. */
void
net_load_fini(struct net_load *load);

/** Make a flow; it begins by itself. */
void
net_flow_init(struct net_flow *flow, struct net_load *load, struct net_host *from,
	struct net_host *to, const struct net_flow_init *init);

/** End it. Its queue pairs are the hosts'. */
void
net_flow_fini(struct net_flow *flow);

#endif /* NET_FLOW_H */
