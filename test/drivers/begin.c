/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * EAL for tests of drivers.
 */
#include "begin.h"

#include <rte_common.h>
#include <rte_eal.h>
#include <stdio.h>

int
begin_eal(const char *name)
{
	static char args[][24] = { "", "--no-huge", "-m", "64", "--no-shconf", "--no-pci",
		"--no-telemetry", "--log-level=1" };
	char *argv[RTE_DIM(args)];

	snprintf(args[0], sizeof(args[0]), "test_%s", name);
	for (size_t i = 0; i < RTE_DIM(args); i++)
		argv[i] = args[i];
	return rte_eal_init((int)RTE_DIM(args), argv) < 0 ? -1 : 0;
}
