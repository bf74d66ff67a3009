/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A short list: a configuration has its ends beside each other, and people make few.
 */
#include "rcd_wire_end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_thread.h"

struct rcd_wire_end *
rcd_wire_end_find(const struct rcd_wire_ends *ends, const char *name)
{
	struct rcd_wire_end *end;

	RCD_ON_CONTROL();
	LIST_FOREACH(end, &ends->list, link)
		if (strcmp(end->conf.name, name) == 0)
			return end;
	return NULL;
}

int
rcd_wire_end_add(struct rcd_wire_ends *ends, const struct rcd_dev_conf *conf, uint32_t serial)
{
	struct rcd_wire_end *end = malloc(sizeof(*end));

	RCD_ON_CONTROL();
	if (end == NULL)
		return -ENOMEM;
	end->conf = *conf;
	end->serial = serial;
	LIST_INSERT_HEAD(&ends->list, end, link);
	ends->count++;
	return 0;
}

void
rcd_wire_end_del(struct rcd_wire_ends *ends, struct rcd_wire_end *end)
{
	RCD_ON_CONTROL();
	LIST_REMOVE(end, link);
	ends->count--;
	free(end);
}

void
rcd_wire_ends_fini(struct rcd_wire_ends *ends)
{
	RCD_ON_CONTROL();
	while (!LIST_EMPTY(&ends->list))
		rcd_wire_end_del(ends, LIST_FIRST(&ends->list));
}
