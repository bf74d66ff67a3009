/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a program meets the engine that it was told of, or its user's own, or everybody's, in that
 * order; and none that somebody else has put in its way. Method: sockets in folders with all sorts
 * of rights, and this program once more, with its owner's rights lent to another user.
 */
#include "rcd_cl_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rcd_tap.h"

#define OWNER    64321
#define STRANGER 64322

static char folder[64];
static char place[128];

static int
make_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

static int
listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = make_socket();

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	CU_ASSERT_EQUAL_FATAL(bind(sock, (struct sockaddr *)&addr, sizeof(addr)), 0);
	CU_ASSERT_EQUAL_FATAL(listen(sock, 8), 0);
	return sock;
}

/* Whether a search ends at this path. */
static bool
meets(const char *named, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	int sock = make_socket();
	bool met = rcd_cl_place_connect(sock, named) == 0 &&
		getpeername(sock, (struct sockaddr *)&addr, &len) == 0 &&
		strcmp(addr.sun_path, path) == 0;

	close(sock);
	return met;
}

static void
made(void)
{
	snprintf(folder, sizeof(folder), "/tmp/rcdplaceXXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(place, sizeof(place), "%s/rocade", folder);
	CU_ASSERT_EQUAL_FATAL(mkdir(place, 0700), 0);
	snprintf(place, sizeof(place), "%s/rocade/rocade.sock", folder);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	unsetenv("ROCADE_SOCKET");
}

static void
removed(void)
{
	char path[128];

	unlink(place);
	snprintf(path, sizeof(path), "%s/rocade", folder);
	rmdir(path);
	CU_ASSERT_EQUAL(rmdir(folder), 0);
}

static void
order(void)
{
	char named[128];
	int own, told;

	made();
	snprintf(named, sizeof(named), "%s/named.sock", folder);
	/* Nobody is there. */
	CU_ASSERT_FALSE(meets(NULL, place));
	told = listen_at(named);
	own = listen_at(place);
	CU_ASSERT(meets(NULL, place));
	CU_ASSERT(meets("", place));
	CU_ASSERT(meets(named, named));
	setenv("ROCADE_SOCKET", named, 1);
	CU_ASSERT(meets(NULL, named));
	CU_ASSERT(meets(place, place));
	setenv("ROCADE_SOCKET", "", 1);
	CU_ASSERT(meets(NULL, place));
	/* Who was told of one gets that or none. */
	close(told);
	unlink(named);
	setenv("ROCADE_SOCKET", named, 1);
	CU_ASSERT_FALSE(meets(NULL, place));
	unsetenv("ROCADE_SOCKET");
	/* What an engine left behind that was killed is none. */
	close(own);
	CU_ASSERT_FALSE(meets(NULL, place));
	CU_ASSERT_EQUAL(access(place, F_OK), 0);
	removed();
}

/* A socket that somebody else listens at, where this user's may be. */
static void
of_somebody_else(void)
{
	static const uid_t users[] = { 0, OWNER, STRANGER };

	if (geteuid() != 0) {
		rcd_tap_skip("needs root");
		return;
	}
	made();
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		char sub[128];
		int listening;

		snprintf(sub, sizeof(sub), "%s/rocade", folder);
		CU_ASSERT_EQUAL(chown(folder, users[i], users[i]), 0);
		CU_ASSERT_EQUAL(chown(sub, users[i], users[i]), 0);
		CU_ASSERT_EQUAL_FATAL(seteuid(users[i]), 0);
		listening = listen_at(place);
		CU_ASSERT(meets(NULL, place));
		CU_ASSERT(meets(place, place));
		CU_ASSERT_EQUAL_FATAL(seteuid(0), 0);
		chmod(place, 0777);
		/* The folder is another's from now on; nobody but that one and root is met. */
		for (size_t k = 0; k < sizeof(users) / sizeof(users[0]); k++) {
			CU_ASSERT_EQUAL(chown(folder, users[k], users[k]), 0);
			CU_ASSERT_EQUAL(chown(sub, users[k], users[k]), 0);
			CU_ASSERT_EQUAL_FATAL(seteuid(users[k]), 0);
			CU_ASSERT_EQUAL(meets(NULL, place), users[i] == 0 || i == k);
			CU_ASSERT(meets(place, place));
			CU_ASSERT_EQUAL_FATAL(seteuid(0), 0);
		}
		close(listening);
		unlink(place);
	}
	CU_ASSERT_EQUAL(chown(folder, 0, 0), 0);
	removed();
}

static void
rights_of_folders(void)
{
	static const struct {
		mode_t above, ours;
		int err;
	} table[] = {
		{ 0700, 0700, 0 },
		{ 0755, 0700, 0 },
		{ 0775, 0700, -EACCES },
		{ 0707, 0700, -EACCES },
		{ 01777, 0700, -EACCES },
		{ 0700, 0750, -EACCES },
		{ 0700, 0701, -EACCES },
	};
	char path[108], sub[128];

	made();
	snprintf(sub, sizeof(sub), "%s/rocade", folder);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		chmod(folder, table[i].above);
		chmod(sub, table[i].ours);
		CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), table[i].err);
		CU_ASSERT(table[i].err != 0 || strcmp(path, place) == 0);
	}
	chmod(sub, 0700);
	chmod(folder, 0700);
	if (geteuid() == 0) {
		const char *const of[] = { folder, sub };

		for (size_t i = 0; i < 2; i++) {
			CU_ASSERT_EQUAL(chown(of[i], STRANGER, STRANGER), 0);
			CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), -EACCES);
			CU_ASSERT_EQUAL(chown(of[i], 0, 0), 0);
		}
	}
	rmdir(sub);
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), -ENOENT);
	close(open(sub, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), -ENOTDIR);
	unlink(sub);
	removed();
}

static void
names(void)
{
	char path[108], own[64], longer[160];

	made();
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), 0);
	/* To the byte. */
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, strlen(place) + 1), 0);
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, strlen(place)), -ENAMETOOLONG);
	memset(longer, 'x', sizeof(longer));
	longer[0] = '/';
	longer[sizeof(longer) - 1] = '\0';
	setenv("XDG_RUNTIME_DIR", longer, 1);
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), -ENAMETOOLONG);
	CU_ASSERT_EQUAL(rcd_cl_place_connect(-1, longer), -ENAMETOOLONG);
	setenv("XDG_RUNTIME_DIR", folder + 1, 1);
	CU_ASSERT_EQUAL(chdir("/"), 0);
	CU_ASSERT_EQUAL(rcd_cl_place_own(path, sizeof(path)), -ENOENT);
	/* What systems with sessions have. */
	snprintf(own, sizeof(own), "/run/user/%u/rocade/rocade.sock", (unsigned int)geteuid());
	setenv("XDG_RUNTIME_DIR", "", 1);
	CU_ASSERT(rcd_cl_place_own(path, sizeof(path)) != 0 || strcmp(path, own) == 0);
	unsetenv("XDG_RUNTIME_DIR");
	CU_ASSERT(rcd_cl_place_own(path, sizeof(path)) != 0 || strcmp(path, own) == 0);
	removed();
}

/* @return exit status of this program as STRANGER: with OWNER's rights, or without */
static int
as_stranger(const char *program)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (setresgid(STRANGER, STRANGER, STRANGER) == 0 &&
			setresuid(STRANGER, STRANGER, STRANGER) == 0)
			execl(program, program, "own", (char *)NULL);
		_exit(99);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
lent_rights(void)
{
	char program[128], sub[128], command[256];

	if (geteuid() != 0) {
		rcd_tap_skip("needs root");
		return;
	}
	made();
	snprintf(sub, sizeof(sub), "%s/rocade", folder);
	snprintf(program, sizeof(program), "%s/program", folder);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", (int)getpid(), program);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	chmod(folder, 0755);
	/* The folders are whose rights the program has, or would have. */
	for (int lent = 0; lent < 2; lent++) {
		uid_t user = lent ? OWNER : STRANGER;

		CU_ASSERT_EQUAL(chown(folder, user, user), 0);
		CU_ASSERT_EQUAL(chown(sub, user, user), 0);
		CU_ASSERT_EQUAL(chown(program, OWNER, OWNER), 0);
		CU_ASSERT_EQUAL(chmod(program, lent ? 04755 : 0755), 0);
		CU_ASSERT_EQUAL(as_stranger(program), lent ? EACCES : 0);
	}
	unlink(program);
	removed();
}

int
main(int argc, char **argv)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(order),
		RCD_TEST(of_somebody_else),
		RCD_TEST(rights_of_folders),
		RCD_TEST(names),
		RCD_TEST(lent_rights),
	};
	char path[108];

	if (argc == 2 && strcmp(argv[1], "own") == 0)
		_exit(-rcd_cl_place_own(path, sizeof(path)));
	return rcd_tap_run("place", tests, sizeof(tests) / sizeof(tests[0]));
}
