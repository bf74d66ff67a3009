/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Where client memory is mapped in the engine: one window of addresses, and a SIGBUS handler for
 * it. A client can punch holes into its memory, or shrink the file behind it; a fault that this
 * causes is answered with anonymous memory in the place of all that is mapped there, and reported,
 * so that only the client suffers. Replacing a whole mapping takes no further one: it works when
 * the process has as many as it may have.
 *
 * One window per process.
 *
 * Threads: the control thread; the handler is in any.
 */
#ifndef RCD_GUARD_H
#define RCD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * Reserve the window and install the handler. Faults elsewhere keep their old action.
 *
 * @return 0; -EBUSY when there is a window; -ENOMEM
 */
int
rcd_guard_init(void);

/** Give back the window and the old handler. All ranges must be free. */
void
rcd_guard_fini(void);

/** Halves of the window. */
enum rcd_guard_part {
	RCD_GUARD_SHARED, /**< memory that is mapped whole */
	RCD_GUARD_COPIED, /**< regions of which some bytes are reached by copies */
};

/**
 * Take addresses for a mapping, inaccessible so far.
 *
 * @param len    bytes; rounded up to 2 MiB, so that hugepages fit
 * @return start, aligned to 2 MiB; NULL when the window is full
 */
void *
rcd_guard_reserve(enum rcd_guard_part part, size_t len);

/**
 * Say what is going to be mapped in reserved addresses, before it is: a fault replaces all of that,
 * and nothing beside it.
 *
 * @param reserved  from rcd_guard_reserve()
 * @param start     first address, in the reservation; its page size aligns it
 * @param len       bytes, whole pages
 */
void
rcd_guard_cover(const void *reserved, void *start, size_t len);

/**
 * Free the memory that stands in for what was there, when nothing is written to it any more.
 */
void
rcd_guard_discard(uintptr_t addr);

/**
 * Unmap what is there and give the addresses back. Nothing reads or writes there any more. Reports
 * of faults there are taken back: who gets the addresses next is not to blame.
 *
 * @return whether there was such a report
 */
bool
rcd_guard_release(void *start, size_t len);

/**
 * RCD_MSG_MAX_BYTES of addresses in the part of copies that nothing is ever mapped at: of regions
 * that have no memory, all of them.
 */
void *
rcd_guard_nowhere(void);

/** First address and length of a part of the window. */
void
rcd_guard_window(enum rcd_guard_part part, uintptr_t *start, size_t *len);

/** Bytes of both parts that are taken. */
size_t
rcd_guard_used(void);

/**
 * Have a function called when a fault is reported. It is called by a signal handler, in any thread.
 *
 * @param fn  NULL: none. rcd_guard_fini() forgets it
 */
void
rcd_guard_tell(void (*fn)(void *arg), void *arg);

/**
 * Take a report of a fault, in no order.
 *
 * @param addr  where
 * @return whether there was one
 */
bool
rcd_guard_fault(uintptr_t *addr);

#endif /* RCD_GUARD_H */
