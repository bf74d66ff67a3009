/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How libFuzzer changes an input of steps: by whole steps, and within one.
 */
#include "rcd_sequence.h"
#include "steps.h"

size_t
LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other,
	size_t other_size, uint8_t *out, size_t max_size, unsigned int seed);

static uint32_t
next(struct rcd_sequence *random)
{
	return (uint32_t)rcd_sequence_next(random);
}

/* Mostly a whole number of 4 or 8 bytes, of a value near the edges that poke_val() knows. */
static struct poke
random_poke(struct rcd_sequence *random)
{
	/* Half of them in front, where most messages have what matters. */
	struct poke poke = { .at = (uint8_t)(next(random) % (next(random) % 2 == 0 ? 8 : 32)),
		.how = (uint8_t)(POKE_USED | next(random)),
		.val = (uint16_t)(next(random) % 3 == 0 ? next(random) : next(random) % 8) };

	if (next(random) % 4 != 0)
		poke.how |= 2;
	if ((poke.how & 3) == 3)
		poke.at &= (uint8_t)~1u;
	return poke;
}

/* A step with a poke or none. */
static struct step
random_step(struct rcd_sequence *random)
{
	struct step step = { .who = (uint8_t)next(random),
		.kind = (uint8_t)next(random),
		.op = (uint8_t)next(random),
		.how = (uint8_t)next(random) };
	uint32_t pokes = next(random) % 6;

	for (uint32_t i = 0; i < STEP_POKES && i < pokes / 2; i++)
		step.pokes[i] = random_poke(random);
	return step;
}

static void
change_step(struct step *step, struct rcd_sequence *random)
{
	struct poke *poke = &step->pokes[next(random) % STEP_POKES];

	switch (next(random) % 10) {
	case 0:
		step->who = (uint8_t)next(random);
		break;
	case 1:
		step->how = (uint8_t)next(random);
		break;
	case 2:
		step->op = (uint8_t)next(random);
		break;
	case 3:
		poke->how ^= POKE_USED;
		break;
	case 4:
		*poke = step->pokes[next(random) % STEP_POKES];
		poke->at = (uint8_t)(next(random) % 32);
		break;
	case 5:
		poke->val = (uint16_t)next(random);
		break;
	case 6:
	case 7:
	case 8:
		*poke = random_poke(random);
		break;
	default:
		LLVMFuzzerMutate((uint8_t *)step, sizeof(*step), sizeof(*step));
		break;
	}
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct step *steps = (struct step *)(void *)data;
	size_t count = size / sizeof(*steps);
	size_t room = max_size / sizeof(*steps);
	struct rcd_sequence random = { seed };

	if (room == 0)
		return 0;
	for (uint32_t changes = 1 + next(&random) % 3; changes > 0; changes--) {
		size_t at = count > 0 ? next(&random) % count : 0;
		size_t to = next(&random) % (count + 1);
		struct step made;

		switch (next(&random) % 6) {
		case 0:
		case 1:
			made = random_step(&random);
			break;
		case 2:
			if (count == 0)
				continue;
			made = steps[at];
			break;
		case 3:
			if (count < 2)
				continue;
			memmove(&steps[at], &steps[at + 1], (count-- - at - 1) * sizeof(*steps));
			continue;
		default:
			if (count > 0)
				change_step(&steps[at], &random);
			continue;
		}
		if (count == room)
			continue;
		memmove(&steps[to + 1], &steps[to], (count++ - to) * sizeof(*steps));
		steps[to] = made;
	}
	return count * sizeof(*steps);
}

/* The front of one, the back of the other. */
size_t
LLVMFuzzerCustomCrossOver(const uint8_t *one, size_t one_size, const uint8_t *other,
	size_t other_size, uint8_t *out, size_t max_size, unsigned int seed)
{
	size_t step = sizeof(struct step);
	struct rcd_sequence random = { seed };
	size_t front = next(&random) % (one_size / step + 1) * step;
	size_t skip = next(&random) % (other_size / step + 1) * step;
	size_t back = other_size / step * step - skip;

	if (front > max_size)
		front = max_size / step * step;
	if (back > max_size - front)
		back = (max_size - front) / step * step;
	memcpy(out, one, front);
	memcpy(out + front, other + skip, back);
	return front + back;
}
