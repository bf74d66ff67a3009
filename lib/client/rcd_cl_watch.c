/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Memory that a userfaultfd is registered for.
 */
#include "rcd_cl_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int
rcd_cl_watch_open(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int probe = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (probe >= 0 && ioctl(probe, UFFDIO_API, &api) != 0) {
		close(probe);
		return -1;
	}
	return probe;
}

/* A page has one at most. */
int
rcd_cl_watch_probe(int probe, uintptr_t start, uintptr_t end)
{
	struct uffdio_register reg = { .range = { .start = start, .len = end - start },
		.mode = UFFDIO_REGISTER_MODE_MISSING };

	if (syscall(SYS_ioctl, probe, UFFDIO_REGISTER, &reg) != 0 ||
		syscall(SYS_ioctl, probe, UFFDIO_UNREGISTER, &reg.range) != 0)
		return -errno;
	return 0;
}

/* Of missing pages, of writes, and of pages that a file has. */
static bool
cl_watch_has_flag(const char *flags)
{
	return strstr(flags, " um") != NULL || strstr(flags, " uw") != NULL ||
		strstr(flags, " ui") != NULL;
}

int
rcd_cl_watch_read(uintptr_t start, uintptr_t end)
{
	/* Of this thread: in /proc/self the memory is gone when the first thread has ended. */
	FILE *smaps = fopen("/proc/thread-self/smaps", "re");
	bool within = false;
	char line[512];
	int err = -EPERM;

	if (smaps == NULL)
		return -EPERM;
	while (fgets(line, sizeof(line), smaps) != NULL) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
			if (from >= end)
				break;
			within = to > start;
		} else if (within && strncmp(line, "VmFlags:", 8) == 0) {
			err = cl_watch_has_flag(line) ? -EBUSY : 0;
			if (err != 0)
				break;
		}
	}
	fclose(smaps);
	return err;
}
