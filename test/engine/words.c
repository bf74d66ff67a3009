/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Requests of administration, from the words that people use: "link set r0 up" is
 * {"op":"link_set","name":"r0","state":"up"}.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rcd_client.h"
#include "rig.h"

#define WORDS_MAX 16

struct words {
	char *word[WORDS_MAX];
	unsigned int count, at;
	char *json;
	size_t len, size;
};

static const char *
words_next(struct words *words)
{
	return words->at < words->count ? words->word[words->at++] : NULL;
}

static bool
words_is(struct words *words, const char *word)
{
	if (words->at == words->count || strcmp(words->word[words->at], word) != 0)
		return false;
	words->at++;
	return true;
}

static void
words_put(struct words *words, const char *key, const char *val)
{
	if (val != NULL && words->len < words->size)
		words->len += (size_t)snprintf(words->json + words->len, words->size - words->len,
			"%s\"%s\":\"%s\"", words->len > 1 ? "," : "", key, val);
}

static void
words_put_type(struct words *words)
{
	static const char *const kinds[][2] = { { "wire", "peer" }, { "netdev", "netdev" },
		{ "port", "devargs" } };

	for (int i = 0; i < 3; i++)
		if (words_is(words, kinds[i][0])) {
			words_put(words, "type", kinds[i][0]);
			words_put(words, kinds[i][1], words_next(words));
		}
	if (words_is(words, "packet"))
		words_put(words, "mode", "packet");
}

/* What comes behind the name. */
static void
words_put_rest(struct words *words, const char *verb)
{
	const char *key;
	char text[80];

	if (strncmp(verb, "addr", 4) == 0) {
		const char *address = words_next(words);

		if (words_is(words, "vlan")) {
			snprintf(text, sizeof(text), "%s@%s", address, words_next(words));
			address = text;
		}
		words_put(words, "address", address);
	}
	if (strcmp(verb, "link_add") == 0)
		words_put_type(words);
	if (words_is(words, "up"))
		words_put(words, "state", "up");
	else if (words_is(words, "down"))
		words_put(words, "state", "down");
	while ((key = words_next(words)) != NULL)
		words_put(words, key, words_next(words));
}

static void
words_to_json(char *line, char *json, size_t size)
{
	static const char *const verbs[] = { "add", "del", "set" };
	struct words words = { .json = json, .size = size };
	char op[40] = "";
	char *save = NULL;

	for (char *word = strtok_r(line, " ", &save); word != NULL && words.count < WORDS_MAX;
		word = strtok_r(NULL, " ", &save))
		words.word[words.count++] = word;
	words.len = (size_t)snprintf(json, size, "{");
	snprintf(op, sizeof(op), "%s", words_next(&words));
	for (int i = 0; i < 3; i++)
		if (words_is(&words, verbs[i])) {
			snprintf(op + strlen(op), sizeof(op) - strlen(op), "_%s", verbs[i]);
			words_put(&words, "op", op);
			words_put(&words, "name", words_next(&words));
			words_put_rest(&words, op);
		}
	if (words.len == 1) {
		words_put(&words, "op", op);
		words_put(
			&words, strcmp(op, "resource") == 0 ? "kind" : "name", words_next(&words));
	}
	snprintf(json + words.len, size - words.len, "}");
}

char *
rig_admin(const char *socket, const char *line)
{
	struct rcd_ctrl_admin_req req = { .json = "" };
	struct rcd_client client;
	struct rcd_ctrl_fds fds;
	char *text = NULL;
	struct stat stat;
	char copy[sizeof(req.json)];

	snprintf(copy, sizeof(copy), "%s", line);
	words_to_json(copy, req.json, sizeof(req.json));
	if (rcd_client_connect(&client, socket) != 0)
		return NULL;
	if (rcd_client_call(&client, RCD_CTRL_ADMIN, &req, NULL, NULL, &fds) == 0 &&
		fds.count == 1 && fstat(fds.fds[0], &stat) == 0) {
		text = calloc(1, (size_t)stat.st_size + 1);
		if (text != NULL && pread(fds.fds[0], text, (size_t)stat.st_size, 0) < 0)
			text[0] = '\0';
	}
	rcd_ctrl_fds_close(&fds);
	rcd_client_close(&client);
	return text;
}
