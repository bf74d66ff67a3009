/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What is shown, as JSON. Without memory something is missing, as jansson's functions do nothing
 * with a NULL.
 */
#include "rcd_show.h"

#include <jansson.h>

#include "rcd_check.h"

static json_t *
show_json_top(void *out)
{
	struct rcd_show_json *json = out;

	return json->stack[json->depth];
}

/* @return whether it is there now; else it has been freed */
static bool
show_json_put(void *out, const char *name, json_t *val)
{
	json_t *top = show_json_top(out);

	if (json_is_array(top))
		return json_array_append_new(top, val) == 0;
	return json_object_set_new(top, name, val) == 0;
}

static void
show_json_text(void *out, const char *name, const char *val)
{
	show_json_put(out, name, json_string(val));
}

static void
show_json_number(void *out, const char *name, uint64_t val)
{
	show_json_put(out, name, json_integer((json_int_t)val));
}

static void
show_json_flag(void *out, const char *name, bool val)
{
	show_json_put(out, name, json_boolean(val));
}

static void
show_json_none(void *out, const char *name)
{
	show_json_put(out, name, json_null());
}

static void
show_json_enter(void *out, const char *name, json_t *val)
{
	struct rcd_show_json *json = out;

	if (!show_json_put(out, name, val))
		val = NULL;
	RCD_CHECK(json->depth + 1 < RCD_SHOW_DEPTH);
	json->stack[++json->depth] = val;
}

static void
show_json_list(void *out, const char *name)
{
	show_json_enter(out, name, json_array());
}

static void
show_json_object(void *out, const char *name)
{
	show_json_enter(out, name, json_object());
}

static void
show_json_item(void *out, const char *name, uint32_t number)
{
	show_json_enter(out, NULL, json_object());
	show_json_number(out, name, number);
}

static void
show_json_end(void *out)
{
	struct rcd_show_json *json = out;

	json->depth--;
}

const struct rcd_show_ops rcd_show_json_ops = {
	.text = show_json_text,
	.number = show_json_number,
	.flag = show_json_flag,
	.none = show_json_none,
	.list = show_json_list,
	.object = show_json_object,
	.item = show_json_item,
	.end = show_json_end,
};
