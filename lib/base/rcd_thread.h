/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Which thread a function belongs to: said by its first statement, and checked in builds for
 * debugging. A breach is a defect of ours, whatever clients or networks do: the process tells and
 * aborts. In release builds the marks are nothing.
 *
 * An engine has these threads:
 *
 *   the control thread  who made the engine, or stepped it last
 *   lcores              a thread is on one while it is in a round of it, or in a command for it:
 *                       the control thread too, where an lcore has no thread of its own
 *   others              close descriptors, copy memory of clients, carry frames for the kernel,
 *                       show what any thread may read (telemetry), are the program's own: nothing
 *                       that is marked is theirs
 *
 * Threads: any. What is set for the calling one is seen by it alone.
 *
 * Where there is no engine, as in most tests, only who is on an lcore is checked.
 *
 * A header says in its @file comment whose its functions are: "Threads: the control thread", "the
 * lcore" of what they work on, "any", or "one", whichever. What is different says so itself: "Any
 * thread", "One thread", "Control thread", "On the lcore". test/tidy looks for the marks.
 */
#ifndef RCD_THREAD_H
#define RCD_THREAD_H

#include <stddef.h>
#include <stdint.h>

/** Where a thread is. Members are private. */
struct rcd_thread_place {
	const void *lcore; /**< NULL: on none */
	uint32_t index;    /**< of that */
};

#ifdef RCD_DEBUG

/** The calling thread is the control thread from now on. */
void
rcd_thread_be_control(void);

/** There is no control thread any more. */
void
rcd_thread_end_control(void);

/**
 * The calling thread is on an lcore from now on.
 *
 * @param index  of it, to be told
 * @return where it was, for rcd_thread_leave()
 */
struct rcd_thread_place
rcd_thread_enter(const void *lcore, uint32_t index);
void
rcd_thread_leave(struct rcd_thread_place before);

/* What the marks call. Each aborts, unless the calling thread is the right one. */
void
rcd_thread_check_control(const char *func);
void
rcd_thread_check_lcores(const char *func);
void
rcd_thread_check_lcore(const char *func, const void *lcore, uint32_t index);

/** The control thread, and on no lcore. */
#define RCD_ON_CONTROL() rcd_thread_check_control(__func__)

/** On an lcore, whichever: it is the caller's to know which. */
#define RCD_ON_LCORES() rcd_thread_check_lcores(__func__)

/** On this lcore: any pointer to a struct with its index. */
#define RCD_ON_LCORE(lcore) rcd_thread_check_lcore(__func__, (lcore), (lcore)->index)

#else

static inline void
rcd_thread_be_control(void)
{
}

static inline void
rcd_thread_end_control(void)
{
}

static inline struct rcd_thread_place
rcd_thread_enter(const void *lcore, uint32_t index)
{
	(void)lcore;
	(void)index;
	return (struct rcd_thread_place){ .lcore = NULL };
}

static inline void
rcd_thread_leave(struct rcd_thread_place before)
{
	(void)before;
}

#define RCD_ON_CONTROL()    ((void)0)
#define RCD_ON_LCORES()     ((void)0)
#define RCD_ON_LCORE(lcore) ((void)sizeof(lcore))

#endif

#endif /* RCD_THREAD_H */
