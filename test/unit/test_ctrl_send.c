/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a message arrives as it was sent, with the descriptors that are wanted and no other left
 * open, whatever a stranger sends; and who sends to a stream never waits. Method: pairs of sockets,
 * one end of which sends what no client of ours would; each descriptor is counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "rcd_ctrl.h"
#include "rcd_tap.h"

#define MANY 20 /**< descriptors: more than a message of ours has room for */

static int ends[2];
static int kept; /**< a descriptor to send */

static void
begin(int type)
{
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, type, 0, ends), 0);
	kept = open("/dev/null", O_RDONLY);
	CU_ASSERT_FATAL(kept >= 0);
}

static void
end(void)
{
	close(ends[0]);
	close(ends[1]);
	close(kept);
}

/* Open descriptors of this process, of the first few hundred. */
static int
open_count(void)
{
	int count = 0;

	for (int fd = 0; fd < 300; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* As many descriptors as one likes. */
static void
send_many(size_t len, unsigned int count)
{
	union {
		char bytes[CMSG_SPACE(MANY * sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	char data[64] = "0123456789";
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr hdr = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&hdr);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned int i = 0; i < count; i++)
		memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &kept, sizeof(kept));
	CU_ASSERT_EQUAL(sendmsg(ends[0], &hdr, 0), (ssize_t)len);
}

static unsigned int dropped;

static void
drop(void *arg, int fd)
{
	CU_ASSERT_PTR_EQUAL(arg, &dropped);
	CU_ASSERT_EQUAL(close(fd), 0);
	dropped++;
}

static const struct rcd_ctrl_drop drops = { .fn = drop, .arg = &dropped };

static void
descriptors_come_or_go(void)
{
	/* Room for 16 bytes. */
	static const struct {
		size_t len;
		unsigned int sent;
		bool wanted;
		unsigned int kept;
		long got;
	} table[] = {
		{ 10, 1, true, 1, 10 }, { 10, RCD_CTRL_FDS_MAX, true, RCD_CTRL_FDS_MAX, 10 },
		{ 10, RCD_CTRL_FDS_MAX + 1, true, RCD_CTRL_FDS_MAX, 10 },
		{ 10, MANY, true, RCD_CTRL_FDS_MAX, 10 }, { 10, MANY, false, 0, 10 },
		{ 16, 2, true, 2, 16 },
		{ 17, 2, true, 0, -EMSGSIZE }, /* what was cut off means nothing */
		{ 40, MANY, true, 0, -EMSGSIZE }, { 40, 1, false, 0, -EMSGSIZE },
		{ 0, 1, true, 0, 0 }, /* looks like the end */
	};
	int before;

	begin(SOCK_SEQPACKET);
	before = open_count();
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct rcd_ctrl_fds fds = { .count = 77 };
		struct rcd_ctrl_fds *wanted = table[i].wanted ? &fds : NULL;
		char data[16];

		dropped = 0;
		send_many(table[i].len, table[i].sent);
		CU_ASSERT_EQUAL(rcd_ctrl_recv_drop(ends[1], data, sizeof(data), wanted, &drops),
			table[i].got);
		CU_ASSERT_EQUAL(dropped, table[i].sent - table[i].kept);
		if (wanted != NULL) {
			CU_ASSERT_EQUAL_FATAL(fds.count, table[i].kept);
			for (unsigned int k = 0; k < fds.count; k++)
				CU_ASSERT_EQUAL(fcntl(fds.fds[k], F_GETFD), FD_CLOEXEC);
			rcd_ctrl_fds_close(&fds);
			CU_ASSERT_EQUAL(fds.count, 0);
		}
		CU_ASSERT_EQUAL(open_count(), before);
		/* Who trusts the sender has them closed at once. */
		send_many(table[i].len, table[i].sent);
		CU_ASSERT_EQUAL(
			rcd_ctrl_recv(ends[1], data, sizeof(data), wanted, 0), table[i].got);
		if (wanted != NULL)
			rcd_ctrl_fds_close(&fds);
		CU_ASSERT_EQUAL(open_count(), before);
	}
	end();
}

static void
what_is_sent_arrives(void)
{
	static const char text[] = "a message";
	struct rcd_ctrl_fds two = { .count = 2 }, none = { .count = 0 }, fds;
	char data[64];
	int on = 1;

	begin(SOCK_SEQPACKET);
	two.fds[0] = two.fds[1] = kept;
	/* Who sent it comes as well, which is no descriptor. */
	CU_ASSERT_EQUAL(setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], text, sizeof(text), &two, 0), 0);
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], text, sizeof(text) - 1, &none, 0), 0);
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], text, 1, NULL, 0), 0);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], data, sizeof(data), &fds, 0), (long)sizeof(text));
	CU_ASSERT_STRING_EQUAL(data, text);
	CU_ASSERT_EQUAL(fds.count, 2);
	rcd_ctrl_fds_close(&fds);
	CU_ASSERT_EQUAL(
		rcd_ctrl_recv(ends[1], data, sizeof(data), &fds, 0), (long)sizeof(text) - 1);
	CU_ASSERT_EQUAL(fds.count, 0);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], data, sizeof(data), NULL, 0), 1);
	/* Nothing more; then nobody. */
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], data, sizeof(data), NULL, MSG_DONTWAIT), -EAGAIN);
	CU_ASSERT_EQUAL(rcd_ctrl_recv_drop(ends[1], data, sizeof(data), &fds, &drops), -EAGAIN);
	shutdown(ends[0], SHUT_WR);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], data, sizeof(data), NULL, 0), 0);
	shutdown(ends[1], SHUT_RD);
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], text, 1, NULL, 0), -EPIPE);
	end();
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], text, 1, NULL, 0), -EBADF);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], data, sizeof(data), NULL, 0), -EBADF);
}

static int alarms;

/* The second one brings what is waited for. */
static void
on_alarm(int signo)
{
	static const struct rcd_ctrl_event event = { .type = 3, .of = 2, .cookie = 77 };

	(void)signo;
	if (++alarms == 2)
		send(ends[0], &event, sizeof(event), 0);
}

static void
signals_end_a_wait_for_events_alone(void)
{
	struct sigaction action = { .sa_handler = on_alarm }, old;
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
	struct rcd_ctrl_event event = { .cookie = 0 };

	begin(SOCK_SEQPACKET);
	CU_ASSERT_EQUAL(sigaction(SIGALRM, &action, &old), 0);
	alarms = 0;
	setitimer(ITIMER_REAL, &often, NULL);
	CU_ASSERT_EQUAL(rcd_ctrl_recv_event(ends[1], &event), -EINTR);
	CU_ASSERT_EQUAL(rcd_ctrl_recv(ends[1], &event, sizeof(event), NULL, 0), sizeof(event));
	CU_ASSERT(alarms >= 2);
	CU_ASSERT_EQUAL(event.cookie, 77);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	event.cookie = 5;
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[0], &event, sizeof(event), NULL, 0), 0);
	event.cookie = 0;
	CU_ASSERT_EQUAL(rcd_ctrl_recv_event(ends[1], &event), sizeof(event));
	CU_ASSERT_EQUAL(event.cookie, 5);
	end();
}

static void
a_stream_never_waits(void)
{
	char data[512] = "";
	int sent = 0;

	begin(SOCK_STREAM);
	while (sent < 100000 && rcd_ctrl_stream_send(ends[0], data, sizeof(data)) == 0)
		sent++;
	CU_ASSERT(sent > 0 && sent < 100000);
	CU_ASSERT_EQUAL(rcd_ctrl_stream_send(ends[0], data, sizeof(data)), -EAGAIN);
	/* What was read is room again. */
	while (sent-- > 0)
		CU_ASSERT(recv(ends[1], data, sizeof(data), 0) > 0);
	CU_ASSERT_EQUAL(rcd_ctrl_stream_send(ends[0], data, sizeof(data)), 0);
	/* Without a reader nobody is to try again; nor does a signal end the sender. */
	close(ends[1]);
	CU_ASSERT_EQUAL(rcd_ctrl_stream_send(ends[0], data, sizeof(data)), 0);
	close(ends[0]);
	close(kept);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(what_is_sent_arrives),
		RCD_TEST(descriptors_come_or_go),
		RCD_TEST(signals_end_a_wait_for_events_alone),
		RCD_TEST(a_stream_never_waits),
	};

	return rcd_tap_run("ctrl_send", tests, sizeof(tests) / sizeof(tests[0]));
}
