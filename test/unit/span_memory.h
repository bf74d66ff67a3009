/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of a process, for tests of its spans: laid out, marked, shared and looked at. What must
 * succeed is asserted here. Lengths are pages.
 */
#ifndef SPAN_MEMORY_H
#define SPAN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rcd_cl_span.h"

#define PAGE   4096u
#define PAGES  8u /**< of the memory that most cases have */
#define PARENT 0x11
#define CHILD  0x22

/** Spans that rcd_cl_span_sweep() has freed since this was set to 0. */
extern uint32_t span_forgotten;

/** For rcd_cl_span_sweep(): counts it. */
void
span_forget(struct rcd_cl_span *span);

/** Private memory. @param at  in place of what is there; NULL: anywhere */
uint8_t *
span_map(void *at, size_t pages, int prot);

/** Write into the first and last byte of each page but every third one, which stays untouched. */
void
span_mark(uint8_t *memory, size_t pages, uint8_t seed);

/** Whether memory is what span_mark() made of fresh one. */
bool
span_marked(const uint8_t *memory, size_t pages, uint8_t seed);

/**
 * rcd_cl_span_make(), tried again for a minute while other threads can't be stopped: a machine that
 * is busy, or stands still for a while, says nothing of what is tested.
 *
 * @return as rcd_cl_span_make(); -ETIMEDOUT or -EAGAIN: it went on for all that time
 */
int
span_try(uintptr_t start, uintptr_t end, struct rcd_cl_span **span);

/** Make a span of memory. */
struct rcd_cl_span *
span_make(uint8_t *memory, size_t pages);

/** The mapping that a page is in. */
struct rcd_cl_vma
span_vma(const uint8_t *page);

/** Spans that there are. */
uint32_t
span_count(void);

/** Unmap memory and sweep; span_forgotten is then how many went. */
void
span_end(uint8_t *memory, size_t pages);

#endif /* SPAN_MEMORY_H */
