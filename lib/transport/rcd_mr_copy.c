/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Copies into and out of translated memory, in the order that programs count on, and the way to
 * memory that is foreign.
 */
#include <string.h>

#include "rcd_limits.h"
#include "rcd_mr_priv.h"

#define CACHE_LINE 64

void
rcd_mr_table_set_foreign(struct rcd_mr_table *table, const struct rcd_mr_foreign *foreign)
{
	table->foreign = foreign != NULL ? *foreign : (struct rcd_mr_foreign){ .len = 0 };
}

void *
rcd_mr_foreign_arg(const struct rcd_mr_table *table)
{
	return table->foreign.arg;
}

void
rcd_mr_table_watch(struct rcd_mr_table *table, void (*watch)(void *arg, bool begins), void *arg)
{
	table->watch = watch;
	table->watch_arg = arg;
}

bool
rcd_mr_is_foreign(const struct rcd_mr_table *table, const uint8_t *base)
{
	return (uintptr_t)base - table->foreign.start < table->foreign.len ||
		(uintptr_t)base >> RCD_MR_ALL_BITS != 0;
}

int
rcd_mr_read(const struct rcd_mr_table *table, uint8_t *dst, const uint8_t *base, size_t len)
{
	if (len > 0 && rcd_mr_is_foreign(table, base))
		return table->foreign.read(table->foreign.arg, dst, base, len);
	memcpy(dst, base, len);
	return 0;
}

/* A word of any kind of memory. */
typedef uint64_t __attribute__((may_alias)) word64;
typedef uint32_t __attribute__((may_alias)) word32;
typedef uint16_t __attribute__((may_alias)) word16;

/* Stores n words of this type, each behind all stores before it, and moves on. */
#define STORE_WORDS(type, n)                                                                       \
	do {                                                                                       \
		for (size_t i = 0; i < (n); i++) {                                                 \
			type word;                                                                 \
                                                                                                   \
			memcpy(&word, src + i * sizeof(word), sizeof(word));                       \
			__atomic_store_n((type *)(void *)dst + i, word, __ATOMIC_RELEASE);         \
		}                                                                                  \
		src += (n) * sizeof(type);                                                         \
		dst += (n) * sizeof(type);                                                         \
		len -= (n) * sizeof(type);                                                         \
	} while (0)

/* At most a cache line. */
static inline void
mr_copy_words(uint8_t *dst, const uint8_t *src, size_t len)
{
	if (len >= 1 && (uintptr_t)dst % 2 != 0)
		STORE_WORDS(uint8_t, 1);
	if (len >= 2 && (uintptr_t)dst % 4 != 0)
		STORE_WORDS(word16, 1);
	if (len >= 4 && (uintptr_t)dst % 8 != 0)
		STORE_WORDS(word32, 1);
	while (len >= 32)
		STORE_WORDS(word64, 4);
	while (len >= 8)
		STORE_WORDS(word64, 1);
	if (len >= 4)
		STORE_WORDS(word32, 1);
	if (len >= 2)
		STORE_WORDS(word16, 1);
	if (len >= 1)
		STORE_WORDS(uint8_t, 1);
}

/* More than that. Apart, as what calls nothing has no registers to keep. */
static __attribute__((noinline)) void
mr_copy_lines(uint8_t *dst, const uint8_t *src, size_t before, size_t tail)
{
	memcpy(dst, src, before);
	mr_copy_words(dst + before, src + before, tail);
}

/*
 * Programs poll the last byte of a message, or its last word, and take all in front of it for
 * written: adapters write upwards, and that has become a promise. memcpy() makes none. So what is
 * in the last cache line is stored behind the rest, upwards, in words that are not torn.
 */
static inline void
mr_copy_upwards(uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t tail = ((uintptr_t)dst + len - 1) % CACHE_LINE + 1;

	if (len == 8 && (uintptr_t)dst % 8 == 0)
		STORE_WORDS(word64, 1);
	else if (len > tail)
		mr_copy_lines(dst, src, len - tail, tail);
	else
		mr_copy_words(dst, src, len);
}

static int
mr_copy_write(
	const struct rcd_mr_table *table, void *user, uint8_t *base, const uint8_t *src, size_t len)
{
	if (len > 0 && rcd_mr_is_foreign(table, base))
		return table->foreign.write(table->foreign.arg, user, base, src, len);
	if (len > 0)
		mr_copy_upwards(base, src, len);
	return 0;
}

int
rcd_mr_atomic_foreign(const struct rcd_mr_table *table, void *user, uint8_t *base,
	const struct rcd_mr_atomic *what, uint64_t *original)
{
	return table->foreign.atomic(table->foreign.arg, user, base, what, original);
}

int
rcd_mr_atomic_order(const struct rcd_mr_table *table, void *user, const uint8_t *base)
{
	if (table->foreign.len == 0)
		return 0;
	return table->foreign.order(table->foreign.arg, user, base);
}

static __attribute__((noinline)) int
mr_copy_write_watched(
	const struct rcd_mr_table *table, void *user, uint8_t *base, const uint8_t *src, size_t len)
{
	int err;

	table->watch(table->watch_arg, true);
	err = mr_copy_write(table, user, base, src, len);
	table->watch(table->watch_arg, false);
	return err;
}

int
rcd_mr_write(
	const struct rcd_mr_table *table, void *user, uint8_t *base, const uint8_t *src, size_t len)
{
	if (__builtin_expect(table->watch != NULL, 0))
		return mr_copy_write_watched(table, user, base, src, len);
	return mr_copy_write(table, user, base, src, len);
}
