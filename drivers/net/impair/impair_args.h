/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the impairment driver is to do, as text and as numbers. No EAL is needed.
 */
#ifndef IMPAIR_ARGS_H
#define IMPAIR_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_sequence.h"

#define IMPAIR_NAME_LEN 64

/** Packets that the queue of a bottleneck has at most. */
#define IMPAIR_QUEUE_PACKETS 1024

/** As a threshold, what always happens: probability times 2^32. */
#define IMPAIR_ALWAYS (UINT64_C(1) << 32)

/** What happens to packets; each has a probability of its own. */
enum impair_kind {
	IMPAIR_DROP,
	IMPAIR_CORRUPT,   /**< one bit is turned, behind the Ethernet header */
	IMPAIR_ECN,       /**< Congestion Experienced, on packets that are ECN-capable (RFC 3168) */
	IMPAIR_DUPLICATE, /**< the copy follows at once */
	IMPAIR_REORDER,   /**< held back until others passed it */
	IMPAIR_DELAY,     /**< held back for a time */
	IMPAIR_KINDS,
};

/** What a received frame that is dropped counts as, in the statistics of the device. */
enum impair_lost {
	IMPAIR_LOST_MISSED, /**< imissed: its queue was full */
	IMPAIR_LOST_BUFFER, /**< rx_nombuf: there was nothing to put it into */
	IMPAIR_LOST_ERROR,  /**< ierrors: it was damaged */
	IMPAIR_LOST_KINDS,
};

/** How long those are delayed that are. */
enum impair_dist {
	IMPAIR_DIST_CONSTANT, /**< delay_us */
	IMPAIR_DIST_UNIFORM,  /**< up to jitter_us less or more */
	IMPAIR_DIST_NORMAL,   /**< delay_us in the mean, jitter_us the standard deviation */
	/** delay_us and more (Lomax of shape 2): longer by jitter_us in the mean, some by far. */
	IMPAIR_DIST_PARETO,
	IMPAIR_DISTS,
};

extern const char *const impair_kind_names[IMPAIR_KINDS];

/** Settings. */
struct impair_args {
	char port[IMPAIR_NAME_LEN];       /**< name of the ethdev that is wrapped; "": not given */
	uint64_t threshold[IMPAIR_KINDS]; /**< probability times 2^32 */
	uint32_t gap;                     /**< packets that pass a reordered one */
	uint32_t delay_us;                /**< how long a delayed one waits */
	enum impair_dist delay_dist;
	uint32_t jitter_us;
	uint32_t delay_min_us, delay_max_us; /**< bounds of the time, whatever the distribution */
	uint64_t ge_p, ge_r;      /**< a burst begins, ends: probability times 2^32; 0: no bursts */
	uint64_t ge_bad, ge_good; /**< loss within and between bursts, likewise */
	uint32_t ge_max;          /**< packets of a burst at most; 0: any */
	uint64_t rate;            /**< of a bottleneck, bytes of frames in a second; 0: none */
	uint64_t queue;           /**< before it, bytes; 0: any */
	uint32_t queue_packets;   /**< likewise, packets */
	uint64_t mark;            /**< bytes in it that ECN marks behind; 0: it does not */
	uint64_t seed;
	uint32_t burst;  /**< packets that it takes, and gives, in one call; 0: any */
	uint32_t ring;   /**< places in a queue at most, as it says; 0: as wrapped */
	bool busy;       /**< it has to be stopped before its MTU can change */
	uint32_t reset;  /**< it was reset: nothing goes until it was tried so often to set it up */
	uint32_t queues; /**< of its own, before a port that has one; 0: those of the port */
	uint32_t flow;   /**< 1: those know flow rules; 2: such that choose their hash */
	uint32_t fewer;  /**< queues that a reset leaves it without */
	bool unsum;      /**< a reset leaves it without csum */
	bool remove;     /**< its NIC was taken away, as its driver says */
	bool link;       /**< its cable is in */
	uint32_t segment; /**< bytes of a receive buffer: longer frames are in several; 0: any */
	bool strip;       /**< VLAN tags of received frames are beside them, asked for or not */
	uint32_t groups; /**< multicast addresses that it can listen to, and never to all; 0: any */
	uint32_t vlans;  /**< that it can be told, and lets tagged frames of in; 0: of any */
	bool vlans_off;  /**< but all when its filter is switched off, which is not so at first */
	bool promiscuous; /**< it knows that mode */
	bool pause;       /**< PAUSE frames can be set */
	bool csum;        /**< it works out sums of TCP and UDP that are left to it */
	enum impair_lost lost;
	bool rx; /**< received packets are impaired */
	bool tx; /**< sent ones are */
};

/** No impairment, sending side, gap 3, delay 100 us, seed 1; what NICs have, and a link. */
void
impair_args_init(struct impair_args *args);

/** Those that a device begins again with: what can't be changed of it, and else as new. */
void
impair_args_again(struct impair_args *args, const struct impair_args *now);

/** Whether they are of the same port, and of the same NIC. */
bool
impair_args_same(const struct impair_args *args, const struct impair_args *other);

/**
 * Take settings from text over those that are there: drop=1%,duplicate=0.01,reorder=1%,gap=5,
 * delay=100%,delay_us=50,corrupt=1e-3,ecn=0.5,seed=7,side=tx|rx|both,port=NAME; bursts of loss:
 * ge_p=0.1%,ge_r=25%,ge_max=8,ge_bad=100%,ge_good=0; delays that differ:
 * delay_dist=constant|uniform|normal|pareto,jitter_us=20,delay_min_us=0,delay_max_us=500; a
 * bottleneck: rate=125000000,queue=256000,queue_packets=500,mark=64000; and what other drivers do:
 * burst=4,ring=64,busy=1,reset=1,queues=3,flow=0,fewer=1,remove=1,link=0,segment=48,strip=1,
 * groups=8,vlans=8,vlans_off=1,promiscuous=0,pause=1,csum=1,unsum=1,lost=missed|buffer|error.
 *
 * @param error  set to a sentence on failure, when args is left as it was
 * @return 0 or -EINVAL
 */
int
impair_args_parse(struct impair_args *args, const char *text, char *error, size_t error_len);

#endif /* IMPAIR_ARGS_H */
