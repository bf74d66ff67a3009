/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: no message of a wrong shape gets to who serves it, and none before its turn. Method: each
 * request of the list with one thing wrong at a time; a second list of what needs no open device.
 */
#include <errno.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_ctrl.h"
#include "rcd_tap.h"

/* Descriptors that a request brings; all others bring none. */
static unsigned int
descriptors(uint32_t op)
{
	if (op == RCD_CTRL_SOCKETS)
		return 4;
	return op == RCD_CTRL_MEM_ADD || op == RCD_CTRL_IMPORT || op == RCD_CTRL_XRCD_OPEN ||
		op == RCD_CTRL_NETNS;
}

static int
check(uint32_t op, long surplus, unsigned int fds)
{
	static struct rcd_ctrl_msg msg;

	memset(&msg, 0, sizeof(msg));
	msg.hdr.op = op;
	return rcd_ctrl_req_check(&msg, (size_t)((long)rcd_ctrl_req_len(op) + surplus), fds);
}

static void
every_request_has_one_shape(void)
{
	for (uint32_t op = 0; op < RCD_CTRL_OP_COUNT; op++) {
		CU_ASSERT_EQUAL(check(op, 0, descriptors(op)), 0);
		CU_ASSERT_EQUAL(check(op, 1, descriptors(op)), -EPROTO);
		CU_ASSERT_EQUAL(check(op, -1, descriptors(op)), -EPROTO);
		CU_ASSERT_EQUAL(check(op, 0, descriptors(op) + 1), -EPROTO);
		CU_ASSERT_EQUAL(check(op, 0, 1 - descriptors(op)), -EPROTO);
		CU_ASSERT_TRUE(rcd_ctrl_req_len(op) > sizeof(struct rcd_ctrl_hdr));
		CU_ASSERT_TRUE(rcd_ctrl_rep_len(op) <= sizeof(struct rcd_ctrl_msg));
		CU_ASSERT_STRING_NOT_EQUAL(rcd_ctrl_op_name(op), "?");
	}
	CU_ASSERT_STRING_EQUAL(rcd_ctrl_op_name(RCD_CTRL_OP_COUNT), "?");
}

static void
headers_that_say_nothing(void)
{
	static struct rcd_ctrl_msg msg;

	for (size_t len = 0; len < sizeof(msg.hdr); len++)
		CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, len, 0), -EPROTO);
	msg.hdr.op = RCD_CTRL_OP_COUNT;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, sizeof(msg), 0), -EPROTO);
	msg.hdr.op = UINT32_MAX;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, sizeof(msg), 0), -EPROTO);
	msg.hdr.op = RCD_CTRL_PORT;
	msg.hdr.status = -EAGAIN;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, rcd_ctrl_req_len(RCD_CTRL_PORT), 0), -EPROTO);
}

static void
counts_and_texts_end_within_the_message(void)
{
	static struct rcd_ctrl_msg msg;

	msg.hdr.op = RCD_CTRL_MR_REG;
	msg.body.mr_reg_req.extent_count = RCD_CTRL_EXTENTS_MAX;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, rcd_ctrl_req_len(msg.hdr.op), 0), 0);
	msg.body.mr_reg_req.extent_count++;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, rcd_ctrl_req_len(msg.hdr.op), 0), -EPROTO);
	msg.hdr.op = RCD_CTRL_MR_REREG;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, rcd_ctrl_req_len(msg.hdr.op), 0), -EPROTO);
	memset(&msg.body, 'a', sizeof(msg.body));
	msg.hdr.op = RCD_CTRL_ADMIN;
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, rcd_ctrl_req_len(msg.hdr.op), 0), -EPROTO);
	msg.body.admin_req.json[sizeof(msg.body.admin_req.json) - 1] = '\0';
	CU_ASSERT_EQUAL(rcd_ctrl_req_check(&msg, rcd_ctrl_req_len(msg.hdr.op), 0), 0);
}

/* What rcd_ctrl.h says of the order: all others are about an open device. */
static enum rcd_ctrl_stage
stage_of(uint32_t op)
{
	static const uint32_t greeted[] = { RCD_CTRL_DEVICE, RCD_CTRL_OPEN, RCD_CTRL_IMPORT,
		RCD_CTRL_ADMIN, RCD_CTRL_SOCKETS, RCD_CTRL_NETNS };

	if (op == RCD_CTRL_HELLO)
		return RCD_CTRL_STAGE_NEW;
	for (size_t i = 0; i < RCD_ARRAY_COUNT(greeted); i++)
		if (op == greeted[i])
			return RCD_CTRL_STAGE_GREETED;
	return strncmp(rcd_ctrl_op_name(op), "cm_", 3) == 0 ? RCD_CTRL_STAGE_GREETED
							    : RCD_CTRL_STAGE_OPEN;
}

static void
every_request_has_its_stage(void)
{
	for (uint32_t op = 0; op < RCD_CTRL_OP_COUNT; op++)
		CU_ASSERT_EQUAL(rcd_ctrl_op_stage(op), stage_of(op));
	CU_ASSERT_TRUE(RCD_CTRL_STAGE_NEW < RCD_CTRL_STAGE_GREETED);
	CU_ASSERT_TRUE(RCD_CTRL_STAGE_GREETED < RCD_CTRL_STAGE_OPEN);
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(every_request_has_one_shape),
		RCD_TEST(headers_that_say_nothing),
		RCD_TEST(counts_and_texts_end_within_the_message),
		RCD_TEST(every_request_has_its_stage),
	};

	return rcd_tap_run("ctrl", tests, RCD_ARRAY_COUNT(tests));
}
