/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The rdma-core that the library was fitted to when it was built, and the one that is installed
 * where it is loaded. Its private functions change with each release: programs that know those of
 * another one may end in the midst of their work, and nobody would know why.
 *
 * Compiled with RCD_SYSTEM_VERBS, the path by which the system's library is found, and
 * RCD_SYSTEM_VERBS_NAME, the file that was there: libibverbs.so.1.14.44.0 is rdma-core 44.0's.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* @return what follows the library's own version, or NULL */
static const char *
vb_release_of(const char *name)
{
	static const char base[] = "libibverbs.so.";

	if (strncmp(name, base, sizeof(base) - 1) != 0)
		return NULL;
	name += sizeof(base) - 1;
	for (int dots = 0; dots < 2 && name != NULL; dots++) {
		name = strchr(name, '.');
		name = name != NULL ? name + 1 : NULL;
	}
	return name;
}

/* Point releases are alike: they differ in what no program sees. */
static size_t
vb_release_major_len(const char *release)
{
	return strcspn(release, ".");
}

/* In containers, and where rdma-core was removed, there is nothing to compare with. */
static void __attribute__((constructor)) vb_release_compare(void)
{
	char target[PATH_MAX];
	ssize_t len = readlink(RCD_SYSTEM_VERBS, target, sizeof(target) - 1);
	const char *ours = vb_release_of(RCD_SYSTEM_VERBS_NAME), *name, *theirs;

	if (len <= 0)
		return;
	target[len] = '\0';
	name = strrchr(target, '/');
	theirs = vb_release_of(name != NULL ? name + 1 : target);
	if (ours == NULL || theirs == NULL ||
		(vb_release_major_len(ours) == vb_release_major_len(theirs) &&
			strncmp(ours, theirs, vb_release_major_len(ours)) == 0))
		return;
	fprintf(stderr,
		"rocade: this libibverbs was built for rdma-core %s, and rdma-core %s is "
		"installed: "
		"programs may miss functions; build Rocade again, in another build directory\n",
		ours, theirs);
}
