/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * A program that was made for TCP: a server that has a child for each connection, and its client.
 *
 *   tcp_forks serve ADDRESS COUNT   so many connections
 *   tcp_forks ask ADDRESS COUNT     make them, one after the other
 *
 * The child answers what it was sent. Exit status: 0; 1, and what went wrong.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rs_must.h"

#define PORT       7480
#define BYTES      200000
#define COUNT_MOST 16

static void
receive_all(int file, uint8_t *to, size_t len)
{
	while (len > 0) {
		ssize_t got = recv(file, to, len, 0);

		MUST(got > 0);
		to += got;
		len -= (size_t)got;
	}
}

static void
send_all(int file, const uint8_t *from, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(file, from, len, 0);

		MUST(sent > 0);
		from += sent;
		len -= (size_t)sent;
	}
}

static void
answer(int file)
{
	static uint8_t bytes[BYTES];
	uint8_t rest;

	receive_all(file, bytes, BYTES);
	for (int i = 0; i < BYTES; i++)
		bytes[i] ^= 0xff;
	send_all(file, bytes, BYTES);
	MUST(recv(file, &rest, 1, 0) == 0);
	close(file);
}

static void
serve(const struct sockaddr_in *at, int count)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;
	int status;

	doing = "serves";
	MUST(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	MUST(bind(listener, (const struct sockaddr *)at, sizeof(*at)) == 0);
	MUST(listen(listener, COUNT_MOST) == 0);
	printf("listens\n");
	fflush(stdout);
	for (int i = 0; i < count; i++) {
		int file = accept(listener, NULL, NULL);
		pid_t child;

		MUST(file >= 0);
		child = fork();
		MUST(child >= 0);
		if (child == 0) {
			close(listener);
			answer(file);
			exit(0);
		}
		close(file);
	}
	for (int i = 0; i < count; i++)
		MUST(wait(&status) > 0 && status == 0);
	close(listener);
}

static void
ask(const struct sockaddr_in *at, int count)
{
	static uint8_t bytes[BYTES], got[BYTES];

	doing = "asks";
	for (int i = 0; i < BYTES; i++)
		bytes[i] = (uint8_t)(i * 13);
	for (int i = 0; i < count; i++) {
		int file = socket(AF_INET, SOCK_STREAM, 0);

		MUST(connect(file, (const struct sockaddr *)at, sizeof(*at)) == 0);
		send_all(file, bytes, BYTES);
		receive_all(file, got, BYTES);
		for (int j = 0; j < BYTES; j++)
			MUST((got[j] ^ bytes[j]) == 0xff);
		close(file);
	}
}

int
main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;

	if (count < 1 || count > COUNT_MOST || inet_pton(AF_INET, argv[2], &at.sin_addr) != 1)
		return 2;
	if (strcmp(argv[1], "serve") == 0)
		serve(&at, (int)count);
	else
		ask(&at, (int)count);
	return 0;
}
