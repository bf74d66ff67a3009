/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Loads and stores of integers at any alignment and in a stated byte order, and small helpers on
 * sizes and arrays.
 *
 * Every load takes a pointer to at least as many readable bytes as its width, every store to as
 * many writable ones; neither checks, the caller has. Compilers turn each into one move and one
 * byte swap.
 *
 * Threads: any.
 */
#ifndef RCD_BYTES_H
#define RCD_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** Number of elements of an array (not of a pointer). */
#define RCD_ARRAY_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** Load 16 bits, most significant byte first. */
static inline uint16_t
rcd_get_be16(const uint8_t *src)
{
	return (uint16_t)(src[0] << 8 | src[1]);
}

/** Load 24 bits, most significant byte first. */
static inline uint32_t
rcd_get_be24(const uint8_t *src)
{
	return (uint32_t)src[0] << 16 | (uint32_t)src[1] << 8 | src[2];
}

/** Load 32 bits, most significant byte first. */
static inline uint32_t
rcd_get_be32(const uint8_t *src)
{
	return (uint32_t)src[0] << 24 | (uint32_t)src[1] << 16 | (uint32_t)src[2] << 8 | src[3];
}

/** Load 64 bits, most significant byte first. */
static inline uint64_t
rcd_get_be64(const uint8_t *src)
{
	return (uint64_t)rcd_get_be32(src) << 32 | rcd_get_be32(src + 4);
}

/** Load 32 bits, least significant byte first: the byte order of the ICRC alone. */
static inline uint32_t
rcd_get_le32(const uint8_t *src)
{
	return (uint32_t)src[3] << 24 | (uint32_t)src[2] << 16 | (uint32_t)src[1] << 8 | src[0];
}

/** Store 16 bits, most significant byte first. */
static inline void
rcd_put_be16(uint8_t *dst, uint16_t val)
{
	dst[0] = (uint8_t)(val >> 8);
	dst[1] = (uint8_t)val;
}

/** Store the low 24 bits of @p val, most significant byte first. */
static inline void
rcd_put_be24(uint8_t *dst, uint32_t val)
{
	dst[0] = (uint8_t)(val >> 16);
	dst[1] = (uint8_t)(val >> 8);
	dst[2] = (uint8_t)val;
}

/** Store 32 bits, most significant byte first. */
static inline void
rcd_put_be32(uint8_t *dst, uint32_t val)
{
	dst[0] = (uint8_t)(val >> 24);
	dst[1] = (uint8_t)(val >> 16);
	dst[2] = (uint8_t)(val >> 8);
	dst[3] = (uint8_t)val;
}

/** Store 64 bits, most significant byte first. */
static inline void
rcd_put_be64(uint8_t *dst, uint64_t val)
{
	rcd_put_be32(dst, (uint32_t)(val >> 32));
	rcd_put_be32(dst + 4, (uint32_t)val);
}

/** Store 32 bits, least significant byte first: the byte order of the ICRC alone. */
static inline void
rcd_put_le32(uint8_t *dst, uint32_t val)
{
	dst[0] = (uint8_t)val;
	dst[1] = (uint8_t)(val >> 8);
	dst[2] = (uint8_t)(val >> 16);
	dst[3] = (uint8_t)(val >> 24);
}

#endif /* RCD_BYTES_H */
