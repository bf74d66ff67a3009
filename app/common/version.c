/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Versions. That of rdma-core is in the name of its library's file: libibverbs.so.1.14.44.0 is of
 * 44.0. It is not loaded for that: the drop-in of ours might be what answers.
 */
#include "version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behind the second point: 1.14.44.0 is 44.0. */
static const char *
version_release_of(const char *version)
{
	for (int points = 0; points < 2; points++) {
		const char *point = strchr(version, '.');

		if (point == NULL)
			return version;
		version = point + 1;
	}
	return version;
}

void
version_print(const char *program, const char *dpdk)
{
	static const char mark[] = ".so.";
	char *path = realpath(ROCADE_VERBS_LIBRARY, NULL);
	const char *version = path != NULL ? strstr(path, mark) : NULL;

	printf("%s %s\n", program, ROCADE_VERSION);
	printf("DPDK: built with %s", ROCADE_DPDK_VERSION);
	if (dpdk != NULL)
		printf(", runs with %s", strncmp(dpdk, "DPDK ", 5) == 0 ? dpdk + 5 : dpdk);
	printf("\nrdma-core: built with %s, installed is %s\n",
		version_release_of(ROCADE_VERBS_VERSION),
		version != NULL ? version_release_of(version + sizeof(mark) - 1) : "none");
	free(path);
}
