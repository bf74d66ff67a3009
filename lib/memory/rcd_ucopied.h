/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Regions that are reached by copies, sorted by address: found in a few steps by each packet. The
 * control thread makes the list anew, and the lcore takes it: there may be thousands.
 *
 * Threads: the control thread.
 */
#ifndef RCD_UCOPIED_H
#define RCD_UCOPIED_H

#include <stdint.h>

struct rcd_umr;

/** The list of a context. All zero: none is reached so. */
struct rcd_ucopied {
	/* The lcore's. */
	struct rcd_umr **umrs;
	uint32_t count;
	uint32_t room;

	/* The control thread's. */
	struct rcd_umr **next;
	uint32_t next_count;
	uint32_t next_room;
};

/** The first place of a list whose region begins behind an address. Any thread, if it has that. */
uint32_t
rcd_ucopied_place(const struct rcd_ucopied *copied, uintptr_t addr);

/**
 * Make the next list.
 *
 * @param leaves  region of the list that is not in it any more; NULL: none
 * @param enters  region that is in it from then on; NULL: none
 * @param work    units of the control thread's step, added to
 * @return 0 or -ENOMEM; where none enters there is always room
 */
int
rcd_ucopied_prepare(struct rcd_ucopied *copied, const struct rcd_umr *leaves,
	struct rcd_umr *enters, uint32_t *work);

/** Use the list that was made. On the lcore. */
void
rcd_ucopied_swap(struct rcd_ucopied *copied);

/** Free both lists. */
void
rcd_ucopied_fini(struct rcd_ucopied *copied);

#endif /* RCD_UCOPIED_H */
