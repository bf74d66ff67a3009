/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Defaults for EAL.
 */
/* Handles of interrupts are that in 22.11, and as they were in what follows. */
#define ALLOW_EXPERIMENTAL_API
#include "eal_start.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

#define EAL_ARGS_MAX 64
#define HUGE_MB_MIN  160
#define REST_SECONDS 2 /* that the interrupt thread may take to come to an end */

static char huge_dir[512]; /**< where EAL's hugepages are, if not where a file system begins */

struct eal_args {
	int count;
	char *args[EAL_ARGS_MAX];
};

/** What the user said, as far as defaults depend on it. */
struct given {
	bool no_huge;
	bool lcores;
	bool memory;
	bool devices;
	bool huge_dir;
	bool iova;
	const char *prefix;
};

static unsigned long long
eal_start_read_count(const char *size, const char *what)
{
	unsigned long long count = 0;
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%.60s/%s", size, what);
	file = fopen(path, "r");
	if (file != NULL && fscanf(file, "%llu", &count) != 1)
		count = 0;
	if (file != NULL)
		fclose(file);
	return count;
}

/* Hugepages of any size that are free, and promised to nobody, in bytes. */
static uint64_t
eal_start_free_hugepages(void)
{
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	struct dirent *entry;
	uint64_t bytes = 0;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		unsigned long long kib, count, promised;

		if (sscanf(entry->d_name, "hugepages-%llukB", &kib) != 1)
			continue;
		count = eal_start_read_count(entry->d_name, "free_hugepages");
		promised = eal_start_read_count(entry->d_name, "resv_hugepages");
		if (count > promised)
			bytes += (count - promised) * kib * 1024;
	}
	if (dir != NULL)
		closedir(dir);
	return bytes;
}

/* Where hugetlbfs is mounted first. @return whether it is */
static bool
eal_start_find_hugetlbfs(char *path, size_t path_len)
{
	FILE *mounts = fopen("/proc/mounts", "r");
	char line[1024], where[256], type[64];
	bool found = false;

	while (mounts != NULL && !found && fgets(line, sizeof(line), mounts) != NULL)
		found = sscanf(line, "%*s %255s %63s", where, type) == 2 &&
			strcmp(type, "hugetlbfs") == 0;
	if (mounts != NULL)
		fclose(mounts);
	if (found)
		snprintf(path, path_len, "%s", where);
	return found;
}

/* @param arg outlives EAL */
static void
eal_start_add_arg(struct eal_args *eal, const char *arg)
{
	if (eal->count < EAL_ARGS_MAX - 1)
		eal->args[eal->count++] = (char *)(uintptr_t)arg;
	eal->args[eal->count] = NULL;
}

static void
eal_start_look_at(int argc, char **argv, struct given *given)
{
	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];

		if (strncmp(arg, "-l", 2) == 0 || strncmp(arg, "-c", 2) == 0 ||
			options_is(arg, "--lcores") || options_is(arg, "--main-lcore"))
			given->lcores = true;
		if (options_is(arg, "--no-huge"))
			given->no_huge = true;
		if (strncmp(arg, "-m", 2) == 0 || options_is(arg, "--socket-mem"))
			given->memory = true;
		if (strncmp(arg, "-a", 2) == 0 || strncmp(arg, "-b", 2) == 0 ||
			options_is(arg, "--allow") || options_is(arg, "--block") ||
			options_is(arg, "--no-pci"))
			given->devices = true;
		given->huge_dir |= options_is(arg, "--huge-dir");
		given->iova |= options_is(arg, "--iova-mode");
		if (options_is(arg, "--file-prefix"))
			given->prefix = strchr(arg, '=') != NULL ? strchr(arg, '=') + 1
				: i + 1 < argc                   ? argv[i + 1]
								 : NULL;
	}
}

/*
 * The main lcore's thread may run on all cores; workers have one each, from the last: others are
 * elsewhere. With more workers than cores they share.
 */
static void
eal_start_default_lcores(struct eal_args *eal, struct eal_wish *wish)
{
	static char text[1024];
	int cores[CPU_SETSIZE];
	cpu_set_t set;
	uint32_t count = 0;
	int len;

	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			cores[count++] = i;
	len = snprintf(text, sizeof(text), "0@(");
	for (uint32_t i = 0; i < count && len < (int)sizeof(text) - 16; i++)
		len += snprintf(
			text + len, sizeof(text) - (size_t)len, "%s%d", i > 0 ? "," : "", cores[i]);
	len += snprintf(text + len, sizeof(text) - (size_t)len, ")");
	for (uint32_t i = 0; i < wish->workers && len < (int)sizeof(text) - 16; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, ",%u@%d", i + 1,
			cores[count - 1 - i % count]);
	wish->cores_shared = wish->workers > count;
	eal_start_add_arg(eal, "--lcores");
	eal_start_add_arg(eal, text);
}

/*
 * EAL takes files of hugepages while it runs, too: by then the program may be a user who can't make
 * any but in a folder of its own. @return false when hugepages are out of reach
 */
static bool
eal_start_own_huge_dir(struct eal_args *eal, const struct given *given, const struct eal_wish *wish)
{
	char mount[256];
	bool root = geteuid() == 0;

	if (!eal_start_find_hugetlbfs(mount, sizeof(mount)))
		return false;
	if (given->huge_dir)
		return true;
	/* Root of a user namespace is nobody to the file system of the machine. */
	if (root && wish->owner == 0)
		return access(mount, W_OK | X_OK) == 0;
	snprintf(huge_dir, sizeof(huge_dir), "%s/%s", mount, wish->prefix);
	mkdir(huge_dir, 0700);
	if (root && chown(huge_dir, wish->owner, (gid_t)-1) != 0)
		rmdir(huge_dir);
	if (access(huge_dir, W_OK | X_OK) != 0) {
		huge_dir[0] = '\0';
		return access(mount, W_OK | X_OK) == 0;
	}
	eal_start_add_arg(eal, "--huge-dir");
	eal_start_add_arg(eal, huge_dir);
	return true;
}

int
eal_start(int argc, char **argv, struct eal_wish *wish)
{
	static char memory[16];
	struct eal_args eal = { .count = 0 };
	struct given given = { .prefix = NULL };

	eal_start_look_at(argc, argv, &given);
	for (int i = 0; i < argc; i++)
		eal_start_add_arg(&eal, argv[i]);
	if (given.prefix != NULL) {
		snprintf(wish->prefix, sizeof(wish->prefix), "%s", given.prefix);
	} else {
		if (wish->prefix[0] == '\0')
			snprintf(wish->prefix, sizeof(wish->prefix), "%s.%d", wish->program,
				(int)getpid());
		eal_start_add_arg(&eal, "--file-prefix");
		eal_start_add_arg(&eal, wish->prefix);
	}
	if (!given.lcores)
		eal_start_default_lcores(&eal, wish);
	if (!given.devices) {
		/* No PCI device but those that are asked for: this one does not exist. */
		eal_start_add_arg(&eal, "-a");
		eal_start_add_arg(&eal, "0000:00:00.0");
	}
	if (!given.no_huge &&
		(eal_start_free_hugepages() < (uint64_t)HUGE_MB_MIN << 20 ||
			!eal_start_own_huge_dir(&eal, &given, wish))) {
		fprintf(stderr,
			"%s: fewer than %d MB of free hugepages, or no hugetlbfs that we may use: "
			"going on "
			"without, slower.\n"
			"%s: to have them: sysctl vm.nr_hugepages=512; mkdir -p /dev/hugepages; "
			"mount -t hugetlbfs none /dev/hugepages\n",
			wish->program, HUGE_MB_MIN, wish->program);
		eal_start_add_arg(&eal, "--no-huge");
		given.no_huge = true;
	}
	/* Addresses of the hardware are root's to know, and none of these devices wants them. */
	if (wish->owner != 0 && !given.no_huge && !given.iova && !given.devices) {
		eal_start_add_arg(&eal, "--iova-mode");
		eal_start_add_arg(&eal, "va");
	}
	if (given.no_huge && !given.memory) {
		snprintf(memory, sizeof(memory), "%u", wish->memory_mb);
		eal_start_add_arg(&eal, "-m");
		eal_start_add_arg(&eal, memory);
	}
	if (rte_eal_init(eal.count, eal.args) < 0) {
		fprintf(stderr, "%s: EAL does not start: %s\n", wish->program,
			rte_strerror(rte_errno));
		return -1;
	}
	return 0;
}

static void
eal_start_remove_matches(const char *pattern)
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		unlink(found.gl_pathv[i]);
	globfree(&found);
}

/* In EAL's interrupt thread, which has nothing else to do from here on. */
static void
eal_start_rest(void *arg)
{
	sem_post(arg);
	for (;;)
		poll(NULL, 0, -1);
}

/*
 * rte_eal_cleanup() unmaps EAL's memory while its interrupt thread goes on looking at what lies
 * there, as for the sockets that memif's driver leaves open: the thread is at rest before. Not in
 * an alarm, for the end of which rte_eal_cleanup() waits.
 *
 * @return false: it is not
 */
static bool
eal_start_rest_interrupts(void)
{
	static sem_t resting; /* posted by who is late, too */
	static struct rte_intr_handle *handle;
	int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); /* and it has something to say */
	struct timespec until;

	sem_init(&resting, 0, 0);
	/* What is made stays: the thread goes on holding it. */
	handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (handle == NULL || fd < 0 || rte_intr_fd_set(handle, fd) != 0 ||
		rte_intr_type_set(handle, RTE_INTR_HANDLE_EXT) != 0 ||
		rte_intr_callback_register(handle, eal_start_rest, &resting) != 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += REST_SECONDS;
	while (sem_timedwait(&resting, &until) != 0) {
		if (errno != EINTR)
			return false;
	}
	return true;
}

void
eal_end(const struct eal_wish *wish)
{
	char pattern[640];

	/* Otherwise its memory stays, until the process ends. */
	if (eal_start_rest_interrupts())
		rte_eal_cleanup();
	snprintf(pattern, sizeof(pattern), "/dev/hugepages/%smap_*", wish->prefix);
	eal_start_remove_matches(pattern);
	if (huge_dir[0] != '\0') {
		snprintf(pattern, sizeof(pattern), "%s/%smap_*", huge_dir, wish->prefix);
		eal_start_remove_matches(pattern);
		rmdir(huge_dir);
	}
	snprintf(pattern, sizeof(pattern), "%s/*", rte_eal_get_runtime_dir());
	eal_start_remove_matches(pattern);
	rmdir(rte_eal_get_runtime_dir());
}
