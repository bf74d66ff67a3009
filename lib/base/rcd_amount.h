/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Amounts as people write them: a number, and K, M, G or T behind it for powers of 1024.
 * Threads: any.
 */
#ifndef RCD_AMOUNT_H
#define RCD_AMOUNT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Parse an amount; decimal, octal with a leading 0, or hexadecimal with 0x.
 *
 * @param most  the largest that is taken
 * @param val   unchanged when it is no such amount
 * @return whether it is one
 */
bool
rcd_amount_parse(const char *text, uint64_t most, uint64_t *val);

#endif /* RCD_AMOUNT_H */
