/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: an answer that did not get here whole is no end of who sends them, and costs no descriptor.
 * Method: the other end of the pair is the test's.
 */
#include "rcd_netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rcd_bytes.h"
#include "rcd_tap.h"

static int ends[2];
static struct rcd_ctrl_fds four; /**< the test's own, to be sent */

static void
setup(void)
{
	CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	for (four.count = 0; four.count < RCD_AWAY_FDS; four.count++)
		four.fds[four.count] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
teardown(void)
{
	rcd_ctrl_fds_close(&four);
	close(ends[0]);
	close(ends[1]);
}

static int
lowest_free(void)
{
	int fd = dup(ends[0]);

	close(fd);
	return fd;
}

/* @param count  of the four */
static void
send_answer(const struct rcd_netns_rep *rep, size_t len, unsigned int count)
{
	struct rcd_ctrl_fds fds = four;

	fds.count = count;
	CU_ASSERT_EQUAL(rcd_ctrl_send(ends[1], rep, len, &fds, MSG_DONTWAIT), 0);
}

/* One that has no descriptors, and then one that has all: the stream goes on. */
static void
expect(uint32_t who, int32_t err)
{
	const struct rcd_netns_rep good = { .who = 9, .left = 2 };
	int before = lowest_free();
	struct rcd_netns_rep rep;
	struct rcd_ctrl_fds fds;

	CU_ASSERT_EQUAL(rcd_netns_take(ends[0], &rep, &fds), 0);
	CU_ASSERT_EQUAL(rep.who, who);
	CU_ASSERT_EQUAL(rep.err, err);
	CU_ASSERT_EQUAL(fds.count, 0);
	CU_ASSERT_EQUAL(lowest_free(), before);
	CU_ASSERT_EQUAL(rcd_netns_take(ends[0], &rep, &fds), -EAGAIN);
	send_answer(&good, sizeof(good), RCD_AWAY_FDS);
	CU_ASSERT_EQUAL(rcd_netns_take(ends[0], &rep, &fds), 0);
	CU_ASSERT(rep.who == 9 && rep.left == 2 && rep.err == 0);
	CU_ASSERT_EQUAL(fds.count, RCD_AWAY_FDS);
	rcd_ctrl_fds_close(&fds);
}

static void
not_whole(void)
{
	const struct rcd_netns_rep rep = { .who = 7 }, refused = { .who = 7, .err = -EACCES };
	const struct rcd_netns_rep longer[2] = { { .who = 7 } };

	setup();
	for (unsigned int count = 0; count < RCD_AWAY_FDS; count++) {
		send_answer(&rep, sizeof(rep), count);
		expect(7, -EMFILE);
	}
	send_answer(&rep, sizeof(rep) - 1, RCD_AWAY_FDS);
	expect(0, -EPROTO);
	send_answer(longer, sizeof(longer), RCD_AWAY_FDS);
	expect(0, -EPROTO);
	send_answer(&refused, sizeof(refused), RCD_AWAY_FDS);
	expect(7, -EACCES);
	send_answer(&refused, sizeof(refused), 0);
	expect(7, -EACCES);
	teardown();
}

/* As the kernel makes it: two of four have room. */
static void
no_room(void)
{
	const struct rcd_netns_rep rep = { .who = 7 };
	struct rlimit limit, less;

	setup();
	send_answer(&rep, sizeof(rep), RCD_AWAY_FDS);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
	less = limit;
	less.rlim_cur = (rlim_t)lowest_free() + 2;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &less), 0);
	for (int i = 0; i < 2; i++) {
		struct rcd_netns_rep got;
		struct rcd_ctrl_fds fds;

		CU_ASSERT_EQUAL(rcd_netns_take(ends[0], &got, &fds), i == 0 ? 0 : -EAGAIN);
		CU_ASSERT(i > 0 || (got.who == 7 && got.err == -EMFILE));
		CU_ASSERT_EQUAL(fds.count, 0);
	}
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
	teardown();
}

/* What was sent before comes before the end. */
static void
the_end(void)
{
	const struct rcd_netns_rep rep = { .who = 7, .err = -EACCES };
	struct rcd_netns_rep got;
	struct rcd_ctrl_fds fds;

	setup();
	send_answer(&rep, sizeof(rep), 0);
	CU_ASSERT_EQUAL(shutdown(ends[1], SHUT_RDWR), 0);
	CU_ASSERT_EQUAL(rcd_netns_take(ends[0], &got, &fds), 0);
	CU_ASSERT_EQUAL(rcd_netns_take(ends[0], &got, &fds), -EPIPE);
	CU_ASSERT_EQUAL(fds.count, 0);
	CU_ASSERT_EQUAL(rcd_netns_ask(ends[0], 7, 1, 1, NULL, four.fds[0]), -EPIPE);
	teardown();
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(not_whole),
		RCD_TEST(no_room),
		RCD_TEST(the_end),
	};

	return rcd_tap_run("netns_take", tests, RCD_ARRAY_COUNT(tests));
}
