/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device arguments, one by one.
 */
#include "udp_args.h"

#include <errno.h>
#include <limits.h>
#include <rte_common.h>
#include <rte_kvargs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_MAX (1u << 30)

static const char *const runs_names[] = { "learn", "all", "none" };

struct parse {
	struct udp_args *args;
	char *error;
	size_t error_len;
};

/* @return 0 or -EINVAL: no number, or out of bounds */
static int
udp_args_number(const char *val, unsigned long least, unsigned long most, unsigned long *number)
{
	char *end;

	if (val[0] < '0' || val[0] > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoul(val, &end, 10);
	return errno == 0 && *end == '\0' && *number >= least && *number <= most ? 0 : -EINVAL;
}

/* @return NULL, or what it may be */
static const char *
udp_args_take_runs(struct udp_args *args, const char *val)
{
	for (size_t i = 0; i < RTE_DIM(runs_names); i++) {
		if (strcmp(val, runs_names[i]) == 0) {
			args->runs = (enum udp_runs)i;
			return NULL;
		}
	}
	return "one of learn, all, none";
}

static const char *
udp_args_take_iface(struct udp_args *args, const char *val)
{
	if (val[0] == '\0' || strlen(val) >= sizeof(args->iface))
		return "the name of a netdev";
	memcpy(args->iface, val, strlen(val) + 1);
	return NULL;
}

/* Numbers with a plus between them, four for each queue. */
static const char *
udp_args_take_sockets(struct udp_args *args, const char *val)
{
	uint32_t count = 0;
	char *end;

	for (const char *at = val; count < UDP_QUEUES * UDP_SOCKETS; at = end + 1) {
		unsigned long fd;

		errno = 0;
		fd = strtoul(at, &end, 10);
		if (at[0] < '0' || at[0] > '9' || errno != 0 || fd > INT_MAX)
			break;
		args->given[count / UDP_SOCKETS][count % UDP_SOCKETS] = (int)fd;
		count++;
		args->given_count = (uint16_t)(count / UDP_SOCKETS);
		if (*end == '\0' && count % UDP_SOCKETS == 0)
			return NULL;
		if (*end != '+')
			break;
	}
	return "four descriptors of each queue, up to 16, with a plus between";
}

static const char *
udp_args_take_one(struct udp_args *args, const char *key, const char *val)
{
	unsigned long number;

	if (strcmp(key, "iface") == 0)
		return udp_args_take_iface(args, val);
	if (strcmp(key, "sockets") == 0)
		return udp_args_take_sockets(args, val);
	if (strcmp(key, "runs") == 0)
		return udp_args_take_runs(args, val);
	if (strcmp(key, "port") == 0) {
		if (udp_args_number(val, 1, UINT16_MAX, &number) != 0)
			return "1 to 65535";
		args->port = (uint16_t)number;
		return NULL;
	}
	if (strcmp(key, "buffer") == 0) {
		if (udp_args_number(val, 0, BUFFER_MAX, &number) != 0)
			return "bytes, up to a GiB";
		args->buffer_bytes = (uint32_t)number;
		return NULL;
	}
	if (udp_args_number(val, 0, 1, &number) != 0)
		return "0 or 1";
	*(strcmp(key, "gro") == 0 ? &args->gro : &args->icrc) = number == 1;
	return NULL;
}

static int
udp_args_take(const char *key, const char *val, void *arg)
{
	struct parse *parse = arg;
	const char *what = udp_args_take_one(parse->args, key, val != NULL ? val : "");

	if (what == NULL)
		return 0;
	snprintf(parse->error, parse->error_len, "%s=%s: %s", key, val != NULL ? val : "", what);
	return -EINVAL;
}

int
udp_args_parse(struct udp_args *args, const char *text, char *error, size_t error_len)
{
	static const char *const keys[] = { "iface", "port", "runs", "gro", "icrc", "buffer",
		"sockets", NULL };
	struct parse parse = { args, error, error_len };
	struct rte_kvargs *list;
	int err;

	*args = (struct udp_args){
		.port = 4791, .gro = true, .icrc = true, .buffer_bytes = 8u << 20
	};
	list = rte_kvargs_parse(text != NULL ? text : "", keys);
	if (list == NULL) {
		snprintf(error, error_len, "arguments are " UDP_ARGS_TEXT);
		return -EINVAL;
	}
	/* Newer DPDKs refuse a key without a value themselves. */
	snprintf(error, error_len, "arguments are " UDP_ARGS_TEXT);
	err = rte_kvargs_process(list, NULL, udp_args_take, &parse);
	rte_kvargs_free(list);
	return err == 0 ? 0 : -EINVAL;
}
