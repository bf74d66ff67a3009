/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: who polls the last byte, or the last word, of memory that a peer writes finds the rest
 * there. Method: the copy runs step by step (the processor's trap flag), and after each instruction
 * the destination is looked at, as another processor might.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "rcd_mr.h"
#include "rcd_tap.h"

enum {
	ROOM = 8192
};

static _Alignas(64) uint8_t memory[ROOM];
static uint8_t payload[ROOM];

static uint8_t *volatile at;
static volatile size_t length, word;
static volatile uint32_t steps, early, torn;

static void
look(void)
{
	bool last = at[length - 1] == payload[length - 1];

	steps++;
	if (last && memcmp(at, payload, length) != 0)
		early++;
	/* All bytes of the payload differ from what was there: a word has one or the other. */
	for (size_t i = 1; i < word; i++)
		torn += (at[length - 1 - i] == payload[length - 1 - i]) != last;
}

#ifdef __x86_64__
#define TRAP_FLAG 0x100

static volatile bool stepping;

static void
on_signal(int sig, siginfo_t *info, void *context)
{
	ucontext_t *at_signal = context;

	(void)info;
	if (sig == SIGTRAP && stepping)
		look();
	if (sig == SIGUSR1)
		stepping = !stepping;
	if (stepping)
		at_signal->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
	else
		at_signal->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

static void
begin_steps(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGTRAP, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
}

static void
copy_in_steps(const struct rcd_mr_table *table)
{
	raise(SIGUSR1);
	rcd_mr_write(table, NULL, at, payload, length);
	raise(SIGUSR1);
}
#endif

static void
the_last_byte_comes_last(void)
{
#ifdef __x86_64__
	static const size_t lengths[] = { 1, 3, 4, 8, 12, 16, 33, 63, 64, 65, 100, 129, 200, 256,
		300, 1000 };
	static const size_t offsets[] = { 0, 1, 2, 4, 7, 8, 20, 31, 36, 56, 60, 63 };
	struct rcd_mr_table *table = rcd_mr_table_create(2, 1);

	begin_steps();
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(1 + i % 255);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
			size_t offset = offsets[k];

			memset(memory, 0, sizeof(memory));
			at = memory + offset;
			length = lengths[i];
			/* The largest word that ends where the message does, and is aligned. */
			word = 8;
			while (word > length || (offset + length) % word != 0)
				word /= 2;
			copy_in_steps(table);
			CU_ASSERT_EQUAL(memcmp(at, payload, length), 0);
			CU_ASSERT_EQUAL(at[length], 0);
			CU_ASSERT(offset == 0 || at[-1] == 0);
		}
	}
	CU_ASSERT(steps > 1000);
	printf("# %u steps\n", steps);
	CU_ASSERT_EQUAL(early, 0);
	CU_ASSERT_EQUAL(torn, 0);
	rcd_mr_table_destroy(table);
#else
	(void)look;
	rcd_tap_skip("steps are taken on x86 only");
#endif
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "T10 the last byte of a message comes last", the_last_byte_comes_last },
	};

	return rcd_tap_run("mr_order", tests, sizeof(tests) / sizeof(tests[0]));
}
