/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory of the NUMA node that is asked for, as far as there is any.
 */
#include "rcd_near.h"

#include <numa.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bits.h"
#include "rcd_shm.h"
#include "rcd_thread.h"

void *
rcd_near_zalloc(int socket_id, size_t bytes)
{
	bool several = numa_available() >= 0 && numa_max_node() > 0;
	void *mem;

	RCD_ON_CONTROL();
	if (several)
		numa_set_preferred(socket_id);
	mem = aligned_alloc(RCD_CACHE_LINE, rcd_align_up(bytes, RCD_CACHE_LINE));
	/* The first touch decides where a page lies. */
	if (mem != NULL)
		memset(mem, 0, bytes);
	if (several)
		numa_set_localalloc();
	return mem;
}
