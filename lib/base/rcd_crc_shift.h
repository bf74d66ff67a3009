/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What another value of 16 bits in a packet changes in a CRC-32 over it. A CRC is linear: the
 * change depends on which bits differ and how many bytes follow, and on nothing else. So a check
 * can be moved to another value without reading the packet, and, the other way round, a difference
 * tells which value it would come from.
 *
 * Registers are reflected, as in CRC-32 everywhere: x^0 is the highest bit.
 *
 * Threads: any; pure.
 */
#ifndef RCD_CRC_SHIFT_H
#define RCD_CRC_SHIFT_H

#include <stdbool.h>
#include <stdint.h>

/** The polynomial, without its x^32. */
#define RCD_CRC_POLY 0xedb88320u

/** a times b, modulo the polynomial. */
static inline uint32_t
rcd_crc_multiply(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (; a != 0; a <<= 1) {
		product ^= b & -(a >> 31);
		b = (b >> 1) ^ (RCD_CRC_POLY & -(b & 1));
	}
	return product;
}

/** A register, so many zero bytes later. */
static inline uint32_t
rcd_crc_forward(uint32_t crc, uint32_t zeroes)
{
	uint32_t square = 0x00800000u; /* x^8 */

	for (; zeroes != 0; zeroes >>= 1) {
		if ((zeroes & 1) != 0)
			crc = rcd_crc_multiply(square, crc);
		square = rcd_crc_multiply(square, square);
	}
	return crc;
}

/** A register, so many zero bytes earlier. */
static inline uint32_t
rcd_crc_back(uint32_t crc, uint32_t zeroes)
{
	uint32_t square = 0x80000000u; /* x^0, and x^-8 eight steps of the register back */

	for (int i = 0; i < 8; i++)
		square = (square >> 31) != 0 ? ((square ^ RCD_CRC_POLY) << 1) | 1 : square << 1;
	for (; zeroes != 0; zeroes >>= 1) {
		if ((zeroes & 1) != 0)
			crc = rcd_crc_multiply(square, crc);
		square = rcd_crc_multiply(square, square);
	}
	return crc;
}

/**
 * The change of a CRC.
 *
 * @param differing  bits of the value that are others, which lies in network byte order
 * @param behind     bytes between it and the end of what the CRC is over
 */
static inline uint32_t
rcd_crc_change16(uint16_t differing, uint32_t behind)
{
	uint32_t bits = 0;

	/* As it lies in the packet, each byte with its lowest bit first. */
	for (int i = 0; i < 8; i++) {
		bits |= (uint32_t)(differing >> (8 + i) & 1) << i;
		bits |= (uint32_t)(differing >> i & 1) << (8 + i);
	}
	return rcd_crc_forward(bits, behind + 2);
}

/**
 * Whether another value would explain a difference.
 *
 * @param change     of the CRC
 * @param behind     bytes between the value and the end of what the CRC is over
 * @param differing  set to the bits of it that would have to be others
 */
static inline bool
rcd_crc_explain16(uint32_t change, uint32_t behind, uint16_t *differing)
{
	uint32_t bits = rcd_crc_back(change, behind + 2);

	*differing = (uint16_t)((bits & 0xff) << 8 | (bits >> 8 & 0xff));
	return bits >> 16 == 0;
}

#endif /* RCD_CRC_SHIFT_H */
