/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How long a context lives: as long as it is open, and as its objects do.
 */
#include "rcd_vb.h"

#include <stdlib.h>

void
rcd_vb_leave(struct rcd_vb_context *context)
{
	if (__atomic_sub_fetch(&context->users, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	pthread_mutex_destroy(&context->lock);
	pthread_mutex_destroy(&context->base.context.mutex);
	free(context);
}

void *
rcd_vb_new(struct ibv_context *context, size_t bytes)
{
	void *object = calloc(1, bytes);

	if (object != NULL)
		__atomic_add_fetch(&rcd_vb_context(context)->users, 1, __ATOMIC_RELAXED);
	return object;
}

void
rcd_vb_free(struct ibv_context *context, void *object)
{
	free(object);
	rcd_vb_leave(rcd_vb_context(context));
}
