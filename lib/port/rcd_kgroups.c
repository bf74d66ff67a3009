/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Lines of /proc/net/dev_mcast, cut where reads end: index, name, users, global users, MAC.
 */
#include "rcd_kgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rcd_thread.h"

#define READ_BYTES 8192

static void
kgroups_close(struct rcd_kgroups *kgroups)
{
	if (kgroups->reading)
		close(kgroups->fd);
	kgroups->reading = false;
}

void
rcd_kgroups_fini(struct rcd_kgroups *kgroups)
{
	RCD_ON_CONTROL();
	kgroups_close(kgroups);
	*kgroups = (struct rcd_kgroups){ 0 };
}

static int
kgroups_open(struct rcd_kgroups *kgroups, const char *path)
{
	kgroups->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (kgroups->fd < 0)
		return -errno;
	kgroups->reading = true;
	kgroups->next.count = kgroups->next.more = 0;
	kgroups->line_len = 0;
	kgroups->steps = 0;
	return 0;
}

static void
kgroups_take_line(struct rcd_kgroups *kgroups, const char *line, uint32_t ifindex)
{
	struct rcd_kgroups_list *next = &kgroups->next;
	unsigned int m[RCD_MAC_LEN];
	uint8_t mac[RCD_MAC_LEN];
	char *rest;

	/* Nearly all lines are other netdevs'. */
	if (strtoul(line, &rest, 10) != ifindex ||
		sscanf(rest, "%*s %*u %*u %2x%2x%2x%2x%2x%2x", &m[0], &m[1], &m[2], &m[3], &m[4],
			&m[5]) != RCD_MAC_LEN)
		return;
	for (int i = 0; i < RCD_MAC_LEN; i++)
		mac[i] = (uint8_t)m[i];
	/* Listed again, as another went in before it between two reads: from the beginning. */
	if (next->count > 0 && memcmp(next->macs[0], mac, RCD_MAC_LEN) == 0)
		next->count = next->more = 0;
	if (next->count < RCD_KGROUPS_MAX)
		memcpy(next->macs[next->count++], mac, RCD_MAC_LEN);
	else
		next->more++;
}

static void
kgroups_take(struct rcd_kgroups *kgroups, const char *bytes, size_t len, uint32_t ifindex)
{
	for (size_t i = 0; i < len; i++) {
		/* What is too long for a line is none of ours, or cut behind what is needed. */
		if (bytes[i] != '\n') {
			if (kgroups->line_len < sizeof(kgroups->line) - 1)
				kgroups->line[kgroups->line_len++] = bytes[i];
			continue;
		}
		kgroups->line[kgroups->line_len] = '\0';
		kgroups->line_len = 0;
		kgroups_take_line(kgroups, kgroups->line, ifindex);
	}
}

/*
 * The kernel finds its place again for each read, and when netdevs go in between another may be
 * passed over. It lists all of a netdev's at once, so that one has all or none.
 */
static void
kgroups_end(struct rcd_kgroups *kgroups)
{
	bool doubt = kgroups->next.count == 0 && kgroups->now.count > 0;

	kgroups_close(kgroups);
	kgroups->rest = kgroups->steps - 1;
	kgroups->known = true;
	if (!doubt || kgroups->doubted)
		kgroups->now = kgroups->next;
	kgroups->doubted = doubt && !kgroups->doubted;
}

int
rcd_kgroups_look(struct rcd_kgroups *kgroups, const char *path, uint32_t ifindex)
{
	char bytes[READ_BYTES];
	ssize_t got = 1;
	int err = 0;

	RCD_ON_CONTROL();
	if (!kgroups->reading && kgroups->rest > 0) {
		kgroups->rest--;
		return 0;
	}
	if (!kgroups->reading)
		err = kgroups_open(kgroups, path);
	if (err != 0)
		return err;
	kgroups->steps++;
	for (uint32_t done = 0; got > 0 && done < RCD_KGROUPS_STEP; done += (uint32_t)got) {
		got = read(kgroups->fd, bytes, sizeof(bytes));
		if (got > 0)
			kgroups_take(kgroups, bytes, (size_t)got, ifindex);
	}
	if (got > 0)
		return 0;
	err = got < 0 ? -errno : 0;
	if (err == 0)
		kgroups_end(kgroups);
	else
		kgroups_close(kgroups);
	return err;
}
