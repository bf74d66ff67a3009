/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an engine says to whoever runs it, by DPDK's log (rte_log.h), whose type is
 * "lib.rocade.engine". Any thread.
 */
#ifndef RCD_LOG_H
#define RCD_LOG_H

#include <rte_log.h>

extern int rcd_logtype;

/** A line; without a newline at its end. @param level  of rte_log.h, without its prefix */
#define RCD_LOG(level, format, ...)                                                                \
	rte_log(RTE_LOG_##level, (uint32_t)rcd_logtype, "rocade: " format "\n", ##__VA_ARGS__)

#endif /* RCD_LOG_H */
