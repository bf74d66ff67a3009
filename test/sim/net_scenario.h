/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Scenarios of a network with many hosts: who sends what to whom over which links, and what is
 * measured.
 */
#ifndef NET_SCENARIO_H
#define NET_SCENARIO_H

#include "net_flow.h"

/** How the hosts are joined. */
enum net_shape {
	NET_STAR,  /**< all at one switch; host 0 receives */
	NET_RACKS, /**< half of them at each of two; each of the left sends to one of the right */
};

/** What a scenario is made of. net_scenario_find() fills in its own; change what is wanted. */
struct net_options {
	const char *name;
	const char *text; /**< one line */
	const struct rcd_cc_ops *cc;
	struct rcd_cc_params cc_params;
	uint64_t seed;
	enum net_shape shape;
	uint32_t senders;
	uint32_t dropping;         /**< of NET_RACKS: receivers that keep no packets out of order */
	uint32_t plain;            /**< of the senders so many have no congestion control */
	struct net_flow_init flow; /**< of each sender */
	uint32_t beside;           /**< more senders, of endless messages of 2^20 bytes */
	bool beside_acks;          /**< they send to host 1, the first sender, and not to host 0 */
	struct net_link link;      /**< of hosts and switch */
	struct net_link middle;    /**< of NET_RACKS: between the switches */
	uint64_t down_ns, up_ns; /**< when the link of host 0, or the middle, goes down; 0: never */
	struct net_host_init host;     /**< of all */
	struct net_host_init receiver; /**< of those that receive */
	struct net_buffer buffer;
	struct net_ecn ecn;
};

/** What came of it. */
struct net_result {
	bool ended;        /**< by itself, and nothing is in flight */
	bool counted;      /**< at all times every frame was somewhere */
	uint64_t ended_ns; /**< when the last flow with an end had come to it */
	double gbps;       /**< payload of whole messages of the flows with an end */
	/* What a flow has up to its own end, on average. */
	double rxe_gbps;    /**< to receivers that keep nothing, or of senders that are plain */
	double own_gbps;    /**< others with an end */
	double beside_gbps; /**< of the endless flows */
	double jain;        /**< index of the rates of flows with an end (Jain, Chiu, Hawe, 1984) */
	uint64_t p50_ns, p99_ns; /**< from a message's post to its completion */
	uint32_t queue_p99_bytes, queue_most_bytes;
	uint64_t sent, again; /**< packets of queue pairs, and of them requests sent again */
	uint32_t failed;      /**< flows that ended by an error */
	uint64_t wrong;       /**< messages with wrong bytes, and frames that a parser refused */
	uint64_t made, delivered, marked, late, digest;
	uint64_t dropped[NET_CAUSES];
};

/** A run, in which the result's time series are. */
struct net_run {
	struct net_options options;
	struct net net;
	struct net_load load;
	uint32_t host_count, flow_count;
	struct net_switch switches[2];
	struct net_host *hosts;
	struct net_port *ports; /**< of switches: those to the hosts, then the two of the middle */
	struct net_flow *flows; /**< those with an end first */
	struct net_port *watched; /**< whose queue is measured */
	struct net_trace trace;
	struct net_event down, up;
	struct net_result result;
};

/** The scenario of a number, with its options. @return false: there is none */
bool
net_scenario_get(uint32_t number, struct net_options *options);

/** The scenario of a name. @return false: there is none */
bool
net_scenario_find(const char *name, struct net_options *options);

/** Whether it can be run: what is out of range else would be a defect of the caller. */
bool
net_options_valid(const struct net_options *options);

/** Run it. @param run  its memory; net_scenario_fini() releases what is in it */
void
net_scenario_run(struct net_run *run, const struct net_options *options);

/** Release. */
void
net_scenario_fini(struct net_run *run);

#endif /* NET_SCENARIO_H */
