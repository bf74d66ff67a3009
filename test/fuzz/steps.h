/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The input of the fuzz targets that drive a whole engine: steps of one size, so that a fuzzer that
 * knows the size (steps_mutate.c) can insert, drop and repeat them.
 */
#ifndef STEPS_H
#define STEPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STEP_POKES 3

/** A change to the bytes of a message or a segment. */
struct poke {
	uint8_t at;  /**< in words of 4 bytes */
	uint8_t how; /**< POKE_*, width and meaning of the value */
	uint16_t val;
};

#define POKE_USED 0x80u

/** What a step's bytes mean is the target's affair. */
struct step {
	uint8_t who;
	uint8_t kind;
	uint8_t op;
	uint8_t how;
	struct poke pokes[STEP_POKES];
};

_Static_assert(sizeof(struct step) == 16, "as test/fuzz/make_corpus.py writes it");

/** Values that were learnt from replies. */
struct learnt {
	uint32_t vals[64];
	uint32_t count;
};

static inline void
learn(struct learnt *learnt, uint32_t val)
{
	learnt->vals[learnt->count++ % 64] = val;
}

/** The value of a poke: small, at an edge of its type, or one that was learnt. */
static inline uint64_t
poke_val(const struct poke *poke, const struct learnt *learnt, uint64_t last)
{
	uint64_t val = poke->val;
	uint32_t known = learnt->count < 64 ? learnt->count : 64;

	switch (poke->how >> 2 & 7) {
	case 0:
		return val;
	case 1:
		return 0 - val * 4096;
	case 2:
		return (UINT64_C(1) << (val & 63)) + (uint64_t)(int64_t)(int8_t)(val >> 8);
	case 3:
		return 0 - val;
	case 4:
		return val * 4096;
	case 5:
		return known > 0 ? learnt->vals[val % known] : val;
	case 6:
		return last;
	default:
		return val << 48 | val << 16 | val;
	}
}

/** Apply the pokes of a step to memory. @param len bytes there */
static inline void
poke_all(const struct step *step, const struct learnt *learnt, uint8_t *mem, size_t len)
{
	uint64_t last = 0;

	for (int i = 0; i < STEP_POKES; i++) {
		const struct poke *poke = &step->pokes[i];
		size_t width = (size_t)1 << (poke->how & 3);
		size_t at = (size_t)poke->at * 4;

		if (!(poke->how & POKE_USED))
			continue;
		last = poke_val(poke, learnt, last);
		if (at + width <= len)
			memcpy(mem + at, &last, width);
	}
}

#endif /* STEPS_H */
