/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a descriptor whose close waits for as long as its sender likes keeps nobody from the
 * engine. Method: connections of TCP that linger with unsent data, of which the engine has the last
 * descriptor, by each way in: with a message, behind others, in a socket that is closed unread, on
 * the event stream. An honest client opens a device while the closes hang; the engine says how many
 * there are ("closing"). They end when the data is read.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rcd_tap.h"
#include "takers.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define LIMIT    4096 /**< descriptors of the engine */
#define NOBODY   65534
#define LINGER_S 3600 /**< longer than any test: reading at the other end ends it */
#define MANY     253
#define STREAMS  100
#define SHARE    64 /**< of one user */

static struct rig rig;

/* A connection that hangs its close; reading from the other end ends that. */
struct hanging {
	int fd;
	int other;
};

static struct hanging
hang(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct hanging hanging = { .fd = socket(AF_INET, SOCK_STREAM, 0) };
	static char bytes[4096];
	int size = 4096;

	MUST(listener >= 0 && hanging.fd >= 0);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(hanging.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	MUST(bind(listener, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	MUST(listen(listener, 1) == 0);
	MUST(getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
	MUST(connect(hanging.fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	hanging.other = accept(listener, NULL, NULL);
	MUST(hanging.other >= 0);
	close(listener);
	/* Until nothing more is on its way into the other end's buffer. */
	for (int quiet = 0; quiet < 3; quiet++) {
		while (send(hanging.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
			quiet = 0;
		usleep(1000);
	}
	MUST(setsockopt(hanging.fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
	return hanging;
}

/* A connection of a user that has greeted. @return its socket, or what the engine says instead */
static int
try_connect_as(uid_t uid)
{
	struct rcd_client client;
	int err;

	MUST(seteuid(uid) == 0);
	err = rcd_client_connect(&client, rig.socket);
	MUST(seteuid(0) == 0);
	return err == 0 ? client.sock : err;
}

static int
connect_as(uid_t uid)
{
	int sock = try_connect_as(uid);

	MUST(sock >= 0);
	return sock;
}

/* Send so many copies of a descriptor, another in the last place. @return 0 or -errno */
static int
give(int sock, size_t bytes, int first, int last, unsigned int count)
{
	struct rcd_ctrl_hdr hdr = { .op = RCD_CTRL_HELLO };
	union {
		char bytes[CMSG_SPACE(MANY * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { .iov_base = &hdr, .iov_len = bytes };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int fds[MANY];

	for (unsigned int i = 0; i < count; i++)
		fds[i] = i + 1 < count ? first : last;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, count * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static bool
wait_closing(int least, int most)
{
	uint64_t deadline = now_ms() + FOREVER_MS;
	long long closing;

	do {
		closing = rig_engine(&rig, "closing");
		if (closing >= least && closing <= most)
			return true;
		usleep(5000);
	} while (now_ms() < deadline);
	return false;
}

/* What the user of the attacks is charged for. @return -1: it has nothing */
static long long
descriptors_of_nobody(void)
{
	long long limit;

	return use_of(&rig, "\"uid\":65534,\"clients\"", "descriptors", &limit);
}

/* The engine serves an honest client, while so many closes hang. */
static void
serves(int least, int most)
{
	struct node node;

	CU_ASSERT_TRUE(wait_closing(least, most));
	MUST(node_try_open(&node, rig.socket, "roce1") == 0);
	node_close(&node);
	CU_ASSERT(rig_engine(&rig, "closing") >= least);
}

/* The data is read: the close ends. */
static void
end(const struct hanging *hanging, int count)
{
	char bytes[65536];

	for (int i = 0; i < count; i++)
		while (recv(hanging[i].other, bytes, sizeof(bytes), 0) > 0)
			;
	CU_ASSERT_TRUE(wait_closing(0, 0));
	for (int i = 0; i < count; i++)
		close(hanging[i].other);
}

/* @param silent  a message of no bytes comes first, which ends the connection */
static void
attack(unsigned int count, bool silent)
{
	struct hanging hanging = hang();
	int null = open("/dev/null", O_RDONLY);
	int sock;

	sock = connect_as(NOBODY);
	/* Stopped, so that the last descriptor is the engine's. */
	rig_halt(&rig);
	if (silent)
		MUST(send(sock, "", 0, 0) == 0);
	MUST(give(sock, sizeof(struct rcd_ctrl_hdr), null, hanging.fd, count) == 0);
	close(hanging.fd);
	close(null);
	MUST(kill(rig.pid, SIGCONT) == 0);
	serves(1, 1);
	end(&hanging, 1);
	close(sock);
}

static void
with_a_message(void)
{
	attack(1, false);
}

static void
more_than_there_is_room_for(void)
{
	attack(MANY, false);
}

static void
in_a_socket_that_is_closed(void)
{
	attack(1, true);
}

static void
with_no_bytes(void)
{
	struct hanging hanging = hang();
	int sock = connect_as(NOBODY);

	rig_halt(&rig);
	MUST(give(sock, 0, -1, hanging.fd, 1) == 0);
	close(hanging.fd);
	MUST(kill(rig.pid, SIGCONT) == 0);
	serves(1, 1);
	end(&hanging, 1);
	close(sock);
}

static void
on_the_event_stream(void)
{
	int null = open("/dev/null", O_RDONLY);
	struct node node;

	node_open(&node, rig.socket, "roce0", RCD_QP_RC);
	CU_ASSERT_EQUAL(give(node.client.events_fd, 1, null, null, 1), -EPIPE);
	CU_ASSERT_EQUAL(give(node.channel_fd, 1, null, null, 1), -EPIPE);
	node_close(&node);
	close(null);
}

/* More than one user may leave behind: the rest is not even received. Others have theirs closed. */
static void
a_user_has_its_share(void)
{
	struct hanging hanging[STREAMS];
	int socks[STREAMS];
	int answered = 0, refused = 0;
	int null = open("/dev/null", O_RDONLY);
	char byte;

	for (int i = 0; i < STREAMS; i++) {
		hanging[i] = hang();
		socks[i] = connect_as(NOBODY);
	}
	/* Once for all: a stop interrupts the closes that hang. */
	rig_halt(&rig);
	for (int i = 0; i < STREAMS; i++) {
		MUST(give(socks[i], sizeof(struct rcd_ctrl_hdr), null, hanging[i].fd, 1) == 0);
		close(hanging[i].fd);
	}
	MUST(kill(rig.pid, SIGCONT) == 0);
	serves(STREAMS, STREAMS);
	/* Refused with an answer those that were taken, without one the others. */
	for (int i = 0; i < STREAMS; i++)
		answered += recv(socks[i], &byte, 1, MSG_DONTWAIT) > 0;
	CU_ASSERT(answered > 0 && answered <= SHARE);
	/* What hangs is its own, and it has no more connections meanwhile. Others have. */
	CU_ASSERT(descriptors_of_nobody() >= STREAMS);
	for (int i = 0; i < STREAMS; i++)
		refused += try_connect_as(NOBODY) == -EUSERS;
	CU_ASSERT_EQUAL(refused, STREAMS);
	CU_ASSERT_TRUE(wait_closing(STREAMS, STREAMS));
	close(socks[0]);
	socks[0] = connect_as(0);
	MUST(give(socks[0], sizeof(struct rcd_ctrl_hdr), null, null, 1) == 0);
	CU_ASSERT(recv(socks[0], &byte, 1, 0) > 0);
	CU_ASSERT_TRUE(wait_closing(STREAMS, STREAMS));
	end(hanging, STREAMS);
	for (int i = 0; i < STREAMS; i++)
		close(socks[i]);
	close(null);
	for (uint64_t until = now_ms() + FOREVER_MS;
		descriptors_of_nobody() > 0 && now_ms() < until;)
		usleep(1000);
	CU_ASSERT(descriptors_of_nobody() <= 0);
	close(connect_as(NOBODY));
}

/* Users who leave a whole message each: others get in, and what they bring waits its turn. */
static void
users_have_a_share(void)
{
	enum {
		USERS = 20
	};
	struct hanging hanging[2 * USERS];
	int socks[USERS];
	int honest = connect_as(NOBODY);
	int null = open("/dev/null", O_RDONLY);
	struct rcd_ctrl_hdr hdr = { .op = RCD_CTRL_HELLO };
	char bytes[65536];
	char byte;

	for (int i = 0; i < USERS; i++) {
		hanging[2 * i] = hang();
		hanging[2 * i + 1] = hang();
		socks[i] = connect_as(100000 + (uid_t)i);
	}
	rig_halt(&rig);
	for (int i = 0; i < USERS; i++) {
		MUST(give(socks[i], sizeof(hdr), hanging[2 * i].fd, hanging[2 * i + 1].fd, MANY) ==
			0);
		close(hanging[2 * i].fd);
		close(hanging[2 * i + 1].fd);
	}
	MUST(kill(rig.pid, SIGCONT) == 0);
	CU_ASSERT_TRUE(wait_closing(MANY, LIMIT / 2));
	/* Whoever it is gets in, and is answered. */
	close(connect_as(0));
	close(connect_as(NOBODY));
	CU_ASSERT_EQUAL(send(honest, &hdr, sizeof(hdr), 0), sizeof(hdr));
	CU_ASSERT(recv(honest, &byte, 1, 0) > 0);
	/* A message with a descriptor waits, and is answered when they are closed. */
	MUST(give(honest, sizeof(hdr), null, null, 1) == 0);
	usleep(300000);
	CU_ASSERT(recv(honest, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CU_ASSERT_TRUE(wait_closing(MANY, LIMIT / 2));
	for (int i = 0; i < USERS; i++)
		close(socks[i]);
	/* In whatever order they are closed. */
	for (uint64_t until = now_ms() + FOREVER_MS;
		rig_engine(&rig, "closing") > 0 && now_ms() < until; usleep(1000))
		for (int i = 0; i < 2 * USERS; i++)
			while (recv(hanging[i].other, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
				;
	CU_ASSERT_TRUE(wait_closing(0, 0));
	for (int i = 0; i < 2 * USERS; i++)
		close(hanging[i].other);
	CU_ASSERT(recv(honest, &byte, 1, 0) > 0);
	close(honest);
	close(null);
}

/* Before the engine knows whose they are, it can't even be sent any: the sender gets an error. */
static void
before_a_greeting(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	int null = open("/dev/null", O_RDONLY);

	memcpy(addr.sun_path, rig.socket, sizeof(rig.socket));
	if (setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 1 }, sizeof(int)) != 0) {
		rcd_tap_skip("sockets of this kernel take descriptors from anybody");
	} else {
		MUST(connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0);
		CU_ASSERT_EQUAL(give(sock, sizeof(struct rcd_ctrl_hdr), null, null, 1), -EPERM);
	}
	close(null);
	close(sock);
}

/* The engine's end does not wait for them. */
static void
stop(void)
{
	struct hanging hanging = hang();
	int sock = connect_as(NOBODY);

	rig_halt(&rig);
	MUST(give(sock, sizeof(struct rcd_ctrl_hdr), -1, hanging.fd, 1) == 0);
	close(hanging.fd);
	MUST(kill(rig.pid, SIGCONT) == 0);
	CU_ASSERT_TRUE(wait_closing(1, 1));
	CU_ASSERT_EQUAL(rig_stop(&rig, FOREVER_MS), 0);
	close(sock);
	close(hanging.other);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		{ "H2 a descriptor whose close hangs", with_a_message },
		{ "H2 one behind more than there is room for", more_than_there_is_room_for },
		{ "H2 one in a socket that is closed unread", in_a_socket_that_is_closed },
		{ "H2 one with a message of no bytes", with_no_bytes },
		{ "H2 none comes before a greeting", before_a_greeting },
		{ "H2 none comes by the streams of events", on_the_event_stream },
		{ "H2 a user hangs its share of closes, and is refused", a_user_has_its_share },
		{ "H2 users hang a share of the closes together", users_have_a_share },
		{ "H2 the engine ends while a close hangs", stop },
	};

	struct rlimit limit = { .rlim_cur = LIMIT, .rlim_max = LIMIT };

	if (geteuid() != 0) {
		printf("1..0 # SKIP connections of another user need root\n");
		return 0;
	}
	MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	rig_start(&rig, NULL);
	MUST(chmod(rig.socket, 0666) == 0);
	return rcd_tap_run("linger", tests, sizeof(tests) / sizeof(tests[0]));
}
