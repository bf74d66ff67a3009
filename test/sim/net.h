/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A network in one process and in virtual time: links with speed, delay and loss, ports with
 * queues, switches with finite buffers that mark by ECN. Who sits at its ends is net_host.h.
 *
 * Frames are real bytes, and a switch finds the way by the address in them. Every frame that was
 * made is delivered, dropped for one of the reasons below, or in flight: in the queue of a port, on
 * its wire, or in the ring of a host. Everything follows from the seed.
 */
#ifndef NET_H
#define NET_H

#include "frame.h"
#include "net_series.h"
#include "rcd_heap.h"
#include "rcd_sequence.h"

/** Most hosts of a network. */
#define NET_HOSTS_MAX 130

/** Most ports of a switch. */
#define NET_PORTS_MAX 130

struct net;
struct net_port;

/** Something that will happen: part of the object that it happens to. */
struct net_event {
	struct rcd_heap_entry entry; /**< by its time, ns */
	void (*call)(struct net_event *event);
};

/** Why a frame went no further. */
enum net_cause {
	NET_FULL, /**< no room in a switch's buffer */
	NET_LOST, /**< the link lost it */
	NET_DOWN, /**< the link is down */
	NET_RING, /**< the host did not take it out of its NIC */
	NET_CAUSES,
};

/** A frame. */
struct net_frame {
	struct net_event event; /**< it comes to the end of a link */
	struct net_frame *next; /**< in a queue, or among those free */
	struct net_port *port;  /**< whose link it is on */
	uint32_t downs;         /**< of the port, when it left */
	uint32_t len;           /**< bytes */
	uint8_t bytes[FRAME_MAX];
};

/** Frames in order. Zeroed: none. */
struct net_queue {
	struct net_frame *first, *last;
	uint32_t frames, bytes;
};

/** A link, one way. */
struct net_link {
	double gbps;
	uint64_t delay_ns;   /**< from one end to the other */
	double loss;         /**< probability per frame */
	double reorder;      /**< probability per frame of being late */
	uint64_t reorder_ns; /**< by so much at most */
};

/** When a port marks what it takes, by the bytes that wait before it. */
struct net_ecn {
	uint32_t kmin_bytes; /**< up to here never; 0: it does not mark at all */
	uint32_t kmax_bytes; /**< beyond always; kmin_bytes: a step */
	double pmax;         /**< probability at kmax_bytes, growing from 0 at kmin_bytes */
};

/** What a switch's ports may keep. */
struct net_buffer {
	uint32_t port_bytes;   /**< each port; with a shared buffer not looked at */
	uint32_t shared_bytes; /**< all ports together; 0: each has its own */
	double alpha; /**< a port has at most this times what is free (Choudhury, Hahne, 1998) */
};

/** A switch. */
struct net_switch {
	struct net *net;
	struct net_buffer buffer;
	struct net_ecn ecn;
	uint32_t used_bytes; /**< of the buffer, by all ports */
	uint32_t port_count;
	struct net_port *ports[NET_PORTS_MAX];
	struct net_port *routes[NET_HOSTS_MAX]; /**< by number of the host */
};

/** What is noted of a port's queue. */
struct net_trace {
	uint64_t since_ns;          /**< it has been as long as it is */
	uint64_t bins_ns[NET_BINS]; /**< for how long it was so many NET_BIN_BYTES */
	uint32_t most_bytes;
	struct net_series series; /**< its greatest length in each interval */
};

/** The sending end of a link, with what waits for it. */
struct net_port {
	struct net *net;
	struct net_switch *at; /**< that it is of; NULL: of a host */
	struct net_link link;
	void (*arrive)(void *to, struct net_frame *frame); /**< at the other end, which owns it */
	void *to;
	void (*drained)(void *arg); /**< after each frame that left; NULL: nobody asks */
	void *arg;
	struct net_queue queue; /**< the first is being sent */
	struct net_event sent;
	uint64_t rest_ps; /**< of a nanosecond, that the last frame took longer */
	uint32_t on_wire; /**< frames */
	uint32_t downs;   /**< times that the link went down */
	bool down;
	struct net_trace *trace; /**< NULL: nothing is noted */
};

/** The whole. */
struct net {
	struct rcd_sequence rng;
	uint64_t now_ns;
	uint64_t late_ns;       /**< drops of a full buffer from here on are counted as late too */
	struct rcd_heap events; /**< struct net_event */
	struct net_frame *free;
	uint64_t made, delivered, marked, late;
	uint64_t dropped[NET_CAUSES];
	uint64_t digest; /**< of all deliveries and their times: two runs that agree are the same */
};

/** Begin. */
void
net_init(struct net *net, uint64_t seed);

/** End: no event comes any more. What waits in queues is to be released before. */
void
net_fini(struct net *net);

/** Have an event come, or come at another time. */
void
net_at(struct net *net, struct net_event *event, uint64_t at_ns);

/** Have it not come. */
void
net_cancel(struct net *net, struct net_event *event);

/** Let the next event come. @return false: there is none up to that time */
bool
net_step(struct net *net, uint64_t until_ns);

/** A frame to fill. @return never NULL; goes back by net_drop() or net_deliver() */
struct net_frame *
net_frame_get(struct net *net);

/** A frame has come to its host, which has looked at it. */
void
net_deliver(struct net *net, struct net_frame *frame);

/** A frame goes no further. */
void
net_drop(struct net *net, struct net_frame *frame, enum net_cause cause);

/** Append a frame. */
void
net_queue_put(struct net_queue *queue, struct net_frame *frame);

/** Take the first. @return NULL: there is none */
struct net_frame *
net_queue_get(struct net_queue *queue);

/** Release what waits, uncounted: for the end. */
void
net_queue_clear(struct net *net, struct net_queue *queue);

/** Make a port. @param at  the switch that it is of, or NULL */
void
net_port_init(
	struct net_port *port, struct net *net, struct net_switch *at, const struct net_link *link);

/** Send a frame: it waits for those before it, if the switch has room. */
void
net_port_send(struct net_port *port, struct net_frame *frame);

/** The link goes down, and loses what waits for it and what is on it; or comes up again. */
void
net_port_set_down(struct net_port *port, bool down);

/** Begin to note how long the queue is. @param trace  zeroed */
void
net_port_trace(struct net_port *port, struct net_trace *trace);

/** Stop that. The length up to which the queue was for this share of the time. @return bytes */
uint32_t
net_port_traced(struct net_port *port, double share);

/** A frame comes to a switch: the `arrive` of ports that lead to one. */
void
net_switch_arrive(void *sw, struct net_frame *frame);

#endif /* NET_H */
