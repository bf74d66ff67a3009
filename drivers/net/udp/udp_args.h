/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Device arguments of net_udp (rcd_pmd_udp.h says what they mean).
 */
#ifndef UDP_ARGS_H
#define UDP_ARGS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UDP_QUEUES  16
#define UDP_SOCKETS 4 /**< of a queue: struct udp_sockets says which */

/** To whom several datagrams go in one call. */
enum udp_runs {
	UDP_RUNS_LEARN,
	UDP_RUNS_ALL,
	UDP_RUNS_NONE,
};

struct udp_args {
	char iface[IF_NAMESIZE]; /**< "": any */
	uint16_t port;
	enum udp_runs runs;
	bool gro;
	bool icrc;
	uint32_t buffer_bytes;
	uint16_t given_count; /**< queues that have sockets already; 0: all make theirs */
	int given[UDP_QUEUES][UDP_SOCKETS];
};

/** What is written in the RTE_PMD_REGISTER_PARAM_STRING(). */
#define UDP_ARGS_TEXT                                                                              \
	"iface=<netdev> port=<int> runs=learn|all|none gro=<0|1> icrc=<0|1> buffer=<bytes> "       \
	"sockets=<fd>[+<fd>]..."

/**
 * @param text   NULL: none
 * @param error  set to a sentence on failure
 * @return 0 or -EINVAL
 */
int
udp_args_parse(struct udp_args *args, const char *text, char *error, size_t error_len);

#endif /* UDP_ARGS_H */
