/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Options that keep an idle connection alive: a message goes each time that it has been idle for
 * so long. Whether it arrives is known by the queue pair, which asks again by itself: for how often
 * and how long there is nothing to set.
 */
#include "rcd_rs.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>

#define IDLE_FILE   "/proc/sys/net/ipv4/tcp_keepalive_time"
#define IDLE_S      7200 /**< the kernel's, where it does not say */
#define IDLE_MOST_S 32767
#define INTERVAL_S  75
#define COUNT       9
#define COUNT_MOST  127

uint32_t
rcd_rs_keep_idle_s(const struct rcd_rs_keep *keep)
{
	FILE *file = keep->idle_s == 0 ? fopen(IDLE_FILE, "re") : NULL;
	unsigned int idle_s = 0;

	if (keep->idle_s != 0)
		return keep->idle_s;
	if (file == NULL)
		return IDLE_S;
	if (fscanf(file, "%u", &idle_s) != 1 || idle_s == 0)
		idle_s = IDLE_S;
	fclose(file);
	return rcd_rs_least(idle_s, INT32_MAX);
}

void
rcd_rs_keep_init(struct rcd_rs_keep *keep)
{
	*keep = (struct rcd_rs_keep){ .interval_s = INTERVAL_S, .count = COUNT };
}

static int
rs_keep_set_number(uint32_t *number, int val, int most)
{
	if (val < 1 || val > most)
		return -EINVAL;
	*number = (uint32_t)val;
	return 0;
}

int
rcd_rs_keep_set(struct rcd_rs *rs, int level, int option, int val)
{
	struct rcd_rs_keep *keep = &rs->keep;
	int err = 0;

	if (level == SOL_SOCKET && option == SO_KEEPALIVE)
		keep->on = val != 0;
	else if (level == IPPROTO_TCP && option == TCP_KEEPIDLE)
		err = rs_keep_set_number(&keep->idle_s, val, IDLE_MOST_S);
	else if (level == IPPROTO_TCP && option == TCP_KEEPINTVL)
		return rs_keep_set_number(&keep->interval_s, val, IDLE_MOST_S);
	else if (level == IPPROTO_TCP && option == TCP_KEEPCNT)
		return rs_keep_set_number(&keep->count, val, COUNT_MOST);
	else
		return -ENOPROTOOPT;
	return err == 0 ? rcd_rs_keep_begin(rs) : err;
}

int
rcd_rs_keep_begin(struct rcd_rs *rs)
{
	/* Who has never been served has nothing to be told of. */
	if (rs->state == RCD_RS_CLOSED || (!rs->keep.on && !rs->served))
		return 0;
	return rcd_rs_service_add(
		rs, rs->keep.on ? (int64_t)rcd_rs_keep_idle_s(&rs->keep) * 1000 : 0);
}
