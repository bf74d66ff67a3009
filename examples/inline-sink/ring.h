/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The ring of captured packets in the collector's memory, as both ends know it: machines of one
 * byte order. Head and tail are bytes since the beginning; a place is one of them modulo the size.
 *
 * A batch is records one after another, each a struct ring_record and the packet behind it. It
 * begins where the one before ended, or, when less than RING_BATCH_MOST is left up to the end of
 * the ring, at its beginning. The collector takes batches up to the tail, and stores the head,
 * which the sink reads when it wants room.
 */
#ifndef RING_H
#define RING_H

#include <stdint.h>

#define RING_BATCH_MOST 20000 /**< bytes */

struct ring_record {
	uint32_t len;     /**< of the packet, bytes */
	uint32_t number;  /**< of packets, from 0 */
	uint64_t time_ns; /**< when it was taken from the port */
	uint64_t tail;    /**< of the first record of a batch: where the batch ends */
};

/** What each end tells the other, once, by TCP. */
struct ring_end {
	uint8_t gid[16];
	uint64_t va;      /**< of the ring; the sink's are 0 from here on */
	uint64_t head_va; /**< words of 8 bytes */
	uint64_t tail_va;
	uint64_t bytes; /**< of the ring */
	uint32_t qpn;
	uint32_t psn; /**< of the first packet that it sends */
	uint32_t key;
	uint32_t reserved;
};

#endif /* RING_H */
