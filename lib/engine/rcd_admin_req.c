/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of the command line, from bytes to members.
 */
#include "rcd_admin_req.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "rcd_text.h"

/* One object and nothing in it that nests: the parser, which recurses, is not asked otherwise. */
static bool
admin_req_flat(const char *text)
{
	unsigned int begun = 0;
	bool inside = false;

	for (; *text != '\0'; text++) {
		if (*text == '"')
			inside = !inside;
		else if (inside && *text == '\\' && text[1] != '\0')
			text++;
		else if (!inside && (*text == '{' || *text == '['))
			begun++;
	}
	return begun <= 1;
}

/* @return what is wrong with a member, or NULL */
static const char *
admin_req_member(struct rcd_admin_req *req, const char *key, const json_t *val)
{
	if (!json_is_string(val))
		return "is not a text";
	if (!rcd_text_printable(json_string_value(val)))
		return "has control characters";
	if (strcmp(key, "op") == 0) {
		req->op = json_string_value(val);
		return NULL;
	}
	if (req->count == RCD_ADMIN_REQ_MEMBERS_MAX)
		return "is one too many";
	req->members[req->count].key = key;
	req->members[req->count++].val = json_string_value(val);
	return NULL;
}

static int
admin_req_take(struct rcd_admin_req *req, char *error, size_t error_len)
{
	const char *key;
	json_t *val;

	json_object_foreach(req->json, key, val)
	{
		const char *what = rcd_text_printable(key) ? admin_req_member(req, key, val)
							   : "has control characters in its name";

		if (what != NULL) {
			snprintf(error, error_len, "the request's member %.40s %s",
				rcd_text_printable(key) ? key : "?", what);
			return -EINVAL;
		}
	}
	if (req->op == NULL) {
		snprintf(error, error_len, "the request has no op");
		return -EINVAL;
	}
	return 0;
}

int
rcd_admin_req_parse(struct rcd_admin_req *req, const char *text, char *error, size_t error_len)
{
	json_error_t fault;
	int err;

	memset(req, 0, sizeof(*req));
	if (text[strspn(text, " \t\r\n")] != '{') {
		snprintf(error, error_len,
			"the engine takes requests in JSON: this command is of another version");
		return -EINVAL;
	}
	if (!admin_req_flat(text)) {
		snprintf(error, error_len, "the request is not one flat object");
		return -EINVAL;
	}
	req->json = json_loads(text, JSON_REJECT_DUPLICATES, &fault);
	if (req->json == NULL) {
		if (json_error_code(&fault) == json_error_out_of_memory)
			return -ENOMEM;
		/* What the parser says quotes the request. */
		snprintf(error, error_len,
			"the request is no JSON, or says something twice: byte %d", fault.position);
		return -EINVAL;
	}
	err = admin_req_take(req, error, error_len);
	if (err != 0)
		rcd_admin_req_free(req);
	return err;
}

const char *
rcd_admin_req_get(const struct rcd_admin_req *req, const char *key)
{
	for (uint32_t i = 0; i < req->count; i++)
		if (strcmp(req->members[i].key, key) == 0)
			return req->members[i].val;
	return NULL;
}

void
rcd_admin_req_free(struct rcd_admin_req *req)
{
	json_decref(req->json);
	req->json = NULL;
}
