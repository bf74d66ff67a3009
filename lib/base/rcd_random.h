/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Numbers that nobody can guess from those that came before: the kernel's, taken by the buffer.
 *
 * Threads: one at a time.
 */
#ifndef RCD_RANDOM_H
#define RCD_RANDOM_H

#include <stdint.h>

/** Random bytes at hand. All zero: none yet. */
struct rcd_random {
	uint8_t bytes[256];
	uint32_t left;
};

/**
 * Take 32 random bits. May be a system call, which does not wait once the kernel's generator was
 * seeded; not for lcores.
 */
uint32_t
rcd_random_u32(struct rcd_random *random);

#endif /* RCD_RANDOM_H */
