/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The AETH syndrome: which kind of acknowledge, and its 5-bit value (IBTA Vol. 1, 9.7.5.2).
 */
#ifndef RCD_AETH_H
#define RCD_AETH_H

#include <stddef.h>
#include <stdint.h>

/** Kind of acknowledge, bits 6:5 of the syndrome. */
enum rcd_aeth_kind {
	RCD_AETH_ACK = 0,     /**< value: credit code */
	RCD_AETH_RNR_NAK = 1, /**< value: RNR timer code, see rcd_rnr_timer_ns() */
	RCD_AETH_RESERVED = 2,
	RCD_AETH_NAK = 3, /**< value: enum rcd_nak */
};

/** NAK codes; others are reserved. */
enum rcd_nak {
	RCD_NAK_PSN_SEQUENCE = 0,
	RCD_NAK_INVALID_REQUEST = 1,
	RCD_NAK_REMOTE_ACCESS = 2,
	RCD_NAK_REMOTE_OPERATION = 3,
	RCD_NAK_INVALID_RD_REQUEST = 4,
};

/** Value of an ACK whose sender does not use end-to-end credits. */
#define RCD_AETH_CREDITS_INVALID 31

/** Room that rcd_aeth_text() never exceeds, terminating NUL included. */
#define RCD_AETH_TEXT_SIZE 48

/** Kind of a syndrome. */
static inline enum rcd_aeth_kind
rcd_aeth_kind(uint8_t syndrome)
{
	return (enum rcd_aeth_kind)(syndrome >> 5 & 3);
}

/** Value of a syndrome, 0..31. */
static inline uint8_t
rcd_aeth_value(uint8_t syndrome)
{
	return syndrome & 0x1f;
}

/** The syndrome byte of a kind and a value. */
static inline uint8_t
rcd_aeth_syndrome(enum rcd_aeth_kind kind, uint8_t value)
{
	return (uint8_t)(kind << 5 | (value & 0x1f));
}

/** Messages that a credit code allows. @param code 0..30 @return 0..32768 */
uint32_t
rcd_aeth_credits(uint8_t code);

/**
 * Write a syndrome in words, for example "RNR NAK, wait 0.64 ms".
 *
 * @param buf   where to; always NUL-terminated
 * @param size  bytes at @p buf, RCD_AETH_TEXT_SIZE is enough
 */
void
rcd_aeth_text(uint8_t syndrome, char *buf, size_t size);

#endif /* RCD_AETH_H */
