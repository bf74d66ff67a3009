/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * How two programs meet: see meeting.h.
 */
#include "meeting.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
die(const char *what)
{
	perror(what);
	exit(1);
}

struct ibv_context *
meeting_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list != NULL && list[i] != NULL && context == NULL; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			context = ibv_open_device(list[i]);
	if (context == NULL)
		die(name);
	return context;
}

int
meeting_open(const char *address, uint16_t port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int sock = socket(AF_INET, SOCK_STREAM, 0);
	int on = 1;
	int tcp = sock;

	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (address != NULL) {
		inet_pton(AF_INET, address, &addr.sin_addr);
		if (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0) {
			fprintf(stderr, "Connection refused\n");
			exit(1);
		}
	} else {
		if (bind(sock, (struct sockaddr *)&addr, sizeof(addr)) != 0 || listen(sock, 1) != 0)
			die("bind");
		tcp = accept(sock, NULL, NULL);
	}
	setsockopt(tcp, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return tcp;
}

void
meeting_tell(int tcp, const void *mine, void *theirs, size_t size_bytes)
{
	uint8_t *at = theirs;

	if (write(tcp, mine, size_bytes) != (ssize_t)size_bytes)
		die("write");
	while (size_bytes > 0) {
		ssize_t got = read(tcp, at, size_bytes);

		if (got <= 0)
			die("read");
		at += got;
		size_bytes -= (size_t)got;
	}
}
