/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What befalls contexts together: their device changes or goes, memory goes away under them.
 */
#include "rcd_contexts.h"

#include "rcd_ctrl.h"
#include "rcd_guard.h"
#include "rcd_segment.h"
#include "rcd_thread.h"
#include "rcd_ulost.h"
#include "rcd_wr.h"

void
rcd_contexts_init(struct rcd_contexts *contexts, const struct rcd_contexts_conf *conf)
{
	RCD_ON_CONTROL();
	contexts->conf = *conf;
	LIST_INIT(&contexts->list);
	LIST_INIT(&contexts->xrcds);
}

void
rcd_contexts_event(struct rcd_contexts *contexts, const struct rcd_dev *dev, uint32_t type)
{
	struct rcd_context *context;

	RCD_ON_CONTROL();
	LIST_FOREACH(context, &contexts->list, link)
		if (context->dev == dev)
			rcd_context_event(context, type, RCD_CTRL_EVENT_PORT, 1);
}

void
rcd_contexts_end(struct rcd_contexts *contexts, const struct rcd_dev *dev)
{
	struct rcd_context *context, *next;

	RCD_ON_CONTROL();
	for (context = LIST_FIRST(&contexts->list); context != NULL; context = next) {
		next = LIST_NEXT(context, link);
		if (dev != NULL && context->dev != dev)
			continue;
		rcd_context_event(context, RCD_EVENT_DEVICE_FATAL, RCD_CTRL_EVENT_DEVICE, 0);
		rcd_context_end(context);
	}
}

void
rcd_contexts_check_memory(struct rcd_contexts *contexts)
{
	const struct rcd_context *failed = NULL;
	struct rcd_context *context;
	uintptr_t addr;

	RCD_ON_CONTROL();
	/* Those who gave the addresses back before anybody looked. */
	LIST_FOREACH(context, &contexts->list, link) {
		if (!context->umem.lost)
			continue;
		rcd_context_mem_settle(context);
		rcd_context_objects_fail(context);
	}
	/* As many as the queue holds, and most are of one context: its queue pairs fail once. */
	while (rcd_guard_fault(&addr)) {
		LIST_FOREACH(context, &contexts->list, link) {
			bool segment = rcd_segment_has(&context->segment, addr);

			if (!segment && !rcd_ulost_cut(&context->umem, addr))
				continue;
			rcd_context_mem_blame(context);
			if (context != failed)
				rcd_context_objects_fail(context);
			failed = context;
			if (segment) {
				context->pages_go = true;
				rcd_context_end(context);
				failed = NULL;
			} else {
				rcd_guard_discard(addr);
			}
			break;
		}
	}
}
