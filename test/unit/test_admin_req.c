/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Goal: a request of administration is taken when it is one flat object of texts, and nothing else
 * is, whoever wrote it.
 * Method: a table of requests with the complaint that each must get; the limits at both sides; and
 * requests damaged at random, which must end with a sentence or with texts that are plain.
 */
#include "rcd_admin_req.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcd_bytes.h"
#include "rcd_tap.h"

#define ROOM 1024 /**< of a message, struct rcd_ctrl_admin_req */

static const struct {
	const char *text;
	const char *what; /* of the complaint; NULL: it is taken */
} requests[] = {
	{ "{\"op\":\"link\"}", NULL },
	{ " \n{ \"op\" : \"link_set\", \"name\":\"r0\" }\t", NULL },
	{ "{\"op\":\"\"}", NULL },
	{ "{\"op\":\"x\",\"[\":\"{[\\\"{\\\\\"}", NULL },
	{ "{\"op\":\"\\u00e4\\u0041\"}", NULL },
	{ "", "another version" },
	{ "link show", "another version" },
	{ "link set r0 up", "another version" },
	{ "\"op\"", "another version" },
	{ "7", "another version" },
	{ "[]", "another version" },
	{ "{}", "has no op" },
	{ "{\"name\":\"r0\"}", "has no op" },
	{ "{\"op\":7}", "member op is not a text" },
	{ "{\"op\":null}", "member op is not a text" },
	{ "{\"op\":\"link\",\"mtu\":1500}", "member mtu is not a text" },
	{ "{\"op\":\"link\",\"mtu\":1e999}", "no JSON" },
	{ "{\"op\":\"link\",\"up\":true}", "member up is not a text" },
	{ "{\"op\":\"link\",\"a\":{}}", "not one flat" },
	{ "{\"op\":\"link\",\"a\":[]}", "not one flat" },
	{ "{\"op\":[\"link\"]}", "not one flat" },
	{ "{{{{{{{{{{", "not one flat" },
	{ "{\"op\":\"link\"}{\"op\":\"stop\"}", "not one flat" },
	{ "{\"op\":\"link\",\"op\":\"stop\"}", "says something twice" },
	{ "{\"op\":\"link\",\"a\":\"1\",\"a\":\"2\"}", "says something twice" },
	{ "{\"op\":\"link\"", "no JSON" },
	{ "{\"op\":\"link", "no JSON" },
	{ "{\"op\":\"link\\", "no JSON" },
	{ "{\"op\":\"link\"} x", "no JSON" },
	{ "{'op':'link'}", "no JSON" },
	{ "{\"op\":\"link\",}", "no JSON" },
	{ "{\"op\":\"a\nb\"}", "no JSON" },
	{ "{\"op\":\"a\\nb\"}", "member op has control characters" },
	{ "{\"op\":\"a\\u007f\"}", "member op has control characters" },
	{ "{\"op\":\"link\",\"a\\u001b[2J\":\"1\"}", "control characters in its name" },
	{ "{\"op\":\"a\\u0000b\"}", "no JSON" },
	{ "{\"op\":\"\\ud800\"}", "no JSON" },
	{ "{\"op\":\"\xff\"}", "no JSON" },
	{ "{\"op\":\"\xc0\x80\"}", "no JSON" },
};

static bool
plain(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

static void
requests_one_by_one(void)
{
	for (size_t i = 0; i < RCD_ARRAY_COUNT(requests); i++) {
		struct rcd_admin_req req;
		char error[256] = "";
		int err = rcd_admin_req_parse(&req, requests[i].text, error, sizeof(error));

		CU_ASSERT_EQUAL(err, requests[i].what == NULL ? 0 : -EINVAL);
		CU_ASSERT_TRUE(plain(error));
		if (requests[i].what != NULL && strstr(error, requests[i].what) == NULL)
			printf("# %s: %s\n", requests[i].text, error);
		CU_ASSERT_TRUE(requests[i].what == NULL ? error[0] == '\0'
							: strstr(error, requests[i].what) != NULL);
		if (err == 0)
			rcd_admin_req_free(&req);
	}
}

static void
members_by_name(void)
{
	struct rcd_admin_req req;
	char error[256] = "";

	CU_ASSERT_EQUAL_FATAL(rcd_admin_req_parse(&req, "{\"b\":\"2\",\"op\":\"x\",\"a\":\"\"}",
				      error, sizeof(error)),
		0);
	CU_ASSERT_STRING_EQUAL(req.op, "x");
	CU_ASSERT_EQUAL(req.count, 2);
	CU_ASSERT_STRING_EQUAL(req.members[0].key, "b");
	CU_ASSERT_STRING_EQUAL(rcd_admin_req_get(&req, "b"), "2");
	CU_ASSERT_STRING_EQUAL(rcd_admin_req_get(&req, "a"), "");
	CU_ASSERT_PTR_NULL(rcd_admin_req_get(&req, "op"));
	CU_ASSERT_PTR_NULL(rcd_admin_req_get(&req, "c"));
	rcd_admin_req_free(&req);
}

static void
limits(void)
{
	struct rcd_admin_req req;
	char text[ROOM], error[256] = "";

	/* As many members as there is room for, and one more. */
	for (int more = 0; more < 2; more++) {
		size_t len = (size_t)snprintf(text, sizeof(text), "{\"op\":\"x\"");

		for (int i = 0; i < RCD_ADMIN_REQ_MEMBERS_MAX + more; i++)
			len += (size_t)snprintf(
				text + len, sizeof(text) - len, ",\"k%d\":\"v\"", i);
		snprintf(text + len, sizeof(text) - len, "}");
		CU_ASSERT_EQUAL(rcd_admin_req_parse(&req, text, error, sizeof(error)),
			more == 0 ? 0 : -EINVAL);
		if (more == 0)
			rcd_admin_req_free(&req);
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "one too many"));
	/* As deep as a message can be, and as long as a text can be. */
	memset(text, '{', sizeof(text));
	text[ROOM - 1] = '\0';
	CU_ASSERT_EQUAL(rcd_admin_req_parse(&req, text, error, sizeof(error)), -EINVAL);
	memset(text, 'a', sizeof(text));
	memcpy(text, "{\"op\":\"", 7);
	memcpy(text + ROOM - 3, "\"}", 3);
	CU_ASSERT_EQUAL(rcd_admin_req_parse(&req, text, error, sizeof(error)), 0);
	rcd_admin_req_free(&req);
}

static void
damaged(void)
{
	static const char whole[] =
		"{\"op\":\"link_add\",\"name\":\"r0\",\"mtu\":\"1500\",\"peer\":\"\\u0041\"}";
	static const char bytes[] = "{}[]\",:\\u0 \x01\xff";
	unsigned int seed = 1;

	for (int round = 0; round < 20000; round++) {
		struct rcd_admin_req req;
		char text[sizeof(whole)], error[256] = "";
		int err;

		memcpy(text, whole, sizeof(whole));
		for (int i = rand_r(&seed) % 4; i >= 0; i--)
			text[(size_t)rand_r(&seed) % (sizeof(whole) - 1)] =
				bytes[(size_t)rand_r(&seed) % sizeof(bytes)];
		err = rcd_admin_req_parse(&req, text, error, sizeof(error));
		CU_ASSERT_TRUE_FATAL(plain(error) && (err == 0) == (error[0] == '\0'));
		for (uint32_t i = 0; err == 0 && i < req.count; i++)
			CU_ASSERT_TRUE_FATAL(
				plain(req.members[i].key) && plain(req.members[i].val));
		if (err == 0)
			rcd_admin_req_free(&req);
	}
}

int
main(void)
{
	static const struct rcd_test tests[] = {
		RCD_TEST(requests_one_by_one),
		RCD_TEST(members_by_name),
		RCD_TEST(limits),
		RCD_TEST(damaged),
	};

	return rcd_tap_run("admin_req", tests, RCD_ARRAY_COUNT(tests));
}
