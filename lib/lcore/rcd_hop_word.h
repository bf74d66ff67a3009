/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * MACs of next hops as lcores read them: one word for each place, which the control thread stores
 * (lib/port/rcd_hop.h) and any thread loads.
 *
 * Threads: any.
 */
#ifndef RCD_HOP_WORD_H
#define RCD_HOP_WORD_H

#include <stdint.h>
#include <string.h>

#include "rcd_eth.h"

/** Number of no place: the MAC of such a vector follows from its address. */
#define RCD_HOP_NONE 0u

/** The MAC of a place in one word, 0: none. Any thread. */
static inline uint64_t
rcd_hop_word(const uint64_t *macs, uint32_t hop)
{
	return __atomic_load_n(&macs[hop], __ATOMIC_RELAXED);
}

/** Its bytes. */
static inline void
rcd_hop_mac(uint64_t word, uint8_t *mac)
{
	memcpy(mac, &word, RCD_MAC_LEN);
}

#endif /* RCD_HOP_WORD_H */
