/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Users and capabilities. The kernel keeps both for each thread: the C library changes user and
 * groups in all of them, capabilities are changed here, thread by thread.
 */
#include "rights.h"

#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STRIP_ROUNDS 200
#define STRIP_NAP_NS 10000000

/**
 * What adding a netdev takes: packet sockets, neighbours of the kernel's, programs of AF_XDP. Its
 * rings are locked memory: without a limit on that, the last is given up too.
 */
static const unsigned int keep[] = { CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, CAP_IPC_LOCK };

static bool
rights_memlock_unlimited(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

void
rights_begin(bool core_dumps)
{
	const struct rlimit none = { 0, 0 };
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	/* These go on to every thread that is made from now on. Without rights they fail: fine. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	/* Instead of CAP_IPC_LOCK. A container's root may not. */
	setrlimit(RLIMIT_MEMLOCK, &all);
	if (!core_dumps) {
		setrlimit(RLIMIT_CORE, &none);
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	}
}

/* A number that may be a user or a group; -1 has a meaning of its own. */
static bool
rights_parse_id(const char *name, uint32_t *id)
{
	char *end;
	unsigned long val;

	if (name[0] < '0' || name[0] > '9')
		return false;
	errno = 0;
	val = strtoul(name, &end, 10);
	*id = (uint32_t)val;
	return *end == '\0' && errno == 0 && val < UINT32_MAX;
}

int
rights_find_user(const char *name, struct rights_user *user)
{
	const struct passwd *entry = getpwnam(name);
	uint32_t id;

	memset(user, 0, sizeof(*user));
	if (entry == NULL && rights_parse_id(name, &id)) {
		user->uid = id;
		user->gid = id;
		entry = getpwuid(id);
	} else if (entry == NULL) {
		fprintf(stderr, "rocaded: there is no user %s\n", name);
		return -EINVAL;
	}
	if (entry != NULL) {
		user->uid = entry->pw_uid;
		user->gid = entry->pw_gid;
		snprintf(user->name, sizeof(user->name), "%s", entry->pw_name);
	}
	return 0;
}

int
rights_find_group(const char *name, gid_t *gid)
{
	const struct group *entry = getgrnam(name);
	uint32_t id;

	if (entry == NULL && !rights_parse_id(name, &id)) {
		fprintf(stderr, "rocaded: there is no group %s\n", name);
		return -EINVAL;
	}
	*gid = entry != NULL ? entry->gr_gid : id;
	return 0;
}

static int
rights_capset(const struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return (int)syscall(SYS_capset, &header, data);
}

/* Runs in each thread that is to have no capability. */
static void
rights_on_strip(int signo)
{
	static const struct __user_cap_data_struct nothing[2];
	int err = errno;

	(void)signo;
	rights_capset(nothing);
	errno = err;
}

/* Whether a thread of ours has any capability; one that is gone has none. */
static bool
rights_has_capabilities(const char *tid)
{
	unsigned long long permitted = 0;
	char path[64], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "CapPrm:", 7) == 0)
			permitted = strtoull(line + 7, NULL, 16);
	fclose(file);
	return permitted != 0;
}

/* Signal the other threads that have capabilities. @return their number, or -1 */
static int
rights_strip_round(int signo)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	if (dir == NULL)
		return -1;
	while ((entry = readdir(dir)) != NULL) {
		long tid = strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || tid == gettid() || !rights_has_capabilities(entry->d_name))
			continue;
		syscall(SYS_tgkill, getpid(), tid, signo);
		count++;
	}
	closedir(dir);
	return count;
}

/* Take all capabilities from all other threads: the lcores and the helpers of EAL need none. */
static int
rights_strip_others(void)
{
	struct sigaction action = { .sa_handler = rights_on_strip, .sa_flags = SA_RESTART };
	struct timespec nap = { .tv_nsec = STRIP_NAP_NS };
	int signo = SIGRTMIN;
	int left = -1;

	sigaction(signo, &action, NULL);
	/* A round that finds nobody ends it: threads that they make have no more than they. */
	for (int i = 0; i < STRIP_ROUNDS && (left = rights_strip_round(signo)) > 0; i++)
		nanosleep(&nap, NULL);
	signal(signo, SIG_IGN);
	if (left == 0)
		return 0;
	fprintf(stderr, "rocaded: %d threads keep capabilities\n", left);
	return -EPERM;
}

/* Reduce this thread's capabilities to those that are kept. */
static int
rights_keep_few(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	struct __user_cap_data_struct few[2] = { 0 };

	if (syscall(SYS_capget, &header, data) != 0)
		return -errno;
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
		few[keep[i] / 32].permitted |= data[keep[i] / 32].permitted & 1u << (keep[i] % 32);
	if (rights_memlock_unlimited())
		few[CAP_IPC_LOCK / 32].permitted &= ~(1u << (CAP_IPC_LOCK % 32));
	few[0].effective = few[0].permitted;
	few[1].effective = few[1].permitted;
	return rights_capset(few) == 0 ? 0 : -errno;
}

int
rights_drop(const struct rights_user *user, bool core_dumps)
{
	bool changes = user != NULL && (user->uid != getuid() || user->gid != getgid());

	/* Root without root's capabilities could not open what belongs to others. */
	if (!changes && geteuid() == 0)
		return 0;
	if (changes &&
		(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
			(user->name[0] != '\0' ? initgroups(user->name, user->gid)
					       : setgroups(0, NULL)) != 0 ||
			setresgid(user->gid, user->gid, user->gid) != 0 ||
			setresuid(user->uid, user->uid, user->uid) != 0)) {
		fprintf(stderr, "rocaded: can't become user %u: %s\n", user->uid, strerror(errno));
		return -EPERM;
	}
	if (rights_keep_few() != 0) {
		fprintf(stderr, "rocaded: can't give up capabilities: %s\n", strerror(errno));
		return -EPERM;
	}
	prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, core_dumps ? 1 : 0, 0, 0, 0);
	return rights_strip_others();
}
