/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What the daemon may still do: privileges given away at start, and those given up once the ports
 * are open. Which system calls are left is in filter.h.
 *
 * All functions belong to the main thread.
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** A user to become. */
struct rights_user {
	uid_t uid;
	gid_t gid;
	char name[64]; /**< of its groups; empty: a number that no account has, and no groups */
};

/**
 * Give away what the daemon never needs, before there is any other thread: no program that it runs
 * could get rights (no new privileges, an empty bounding set, no ambient capabilities), no memory
 * of clients gets into a core dump, and registered memory is not limited by RLIMIT_MEMLOCK.
 *
 * @param core_dumps  leave core dumps as they are
 */
void
rights_begin(bool core_dumps);

/**
 * Look up a user by name or number.
 *
 * @return 0, or -EINVAL and it was said what is wrong
 */
int
rights_find_user(const char *name, struct rights_user *user);

/** Look up a group by name or number. @return 0, or -EINVAL and it was said what is wrong */
int
rights_find_group(const char *name, gid_t *gid);

/**
 * Become a user, in all threads. This one keeps what it takes to add devices at run time
 * (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF, and CAP_IPC_LOCK where locked memory is limited), as far as
 * it has it; the others keep nothing.
 *
 * @param user        NULL: stay who we are
 * @param core_dumps  as of rights_begin(): becoming a user turns them off
 * @return 0, or -EPERM and it was said why; then the daemon must not go on
 */
int
rights_drop(const struct rights_user *user, bool core_dumps);

#endif /* RIGHTS_H */
