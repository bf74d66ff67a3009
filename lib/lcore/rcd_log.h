/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an engine says to whoever runs it: lines of DPDK's log (rte_log.h), of the type
 * "lib.rocade.engine". Who says something needs nothing of DPDK for it.
 *
 * Threads: any.
 */
#ifndef RCD_LOG_H
#define RCD_LOG_H

/** How much a line matters, by the numbers of rte_log.h. */
enum rcd_log_level {
	RCD_LOG_ERR = 4,
	RCD_LOG_WARNING = 5,
	RCD_LOG_NOTICE = 6,
	RCD_LOG_DEBUG = 8,
};

/** A line as it is. */
void
rcd_log_line(enum rcd_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** A line; without a newline at its end. @param level  without its prefix */
#define RCD_LOG(level, format, ...)                                                                \
	rcd_log_line(RCD_LOG_##level, "rocade: " format "\n", ##__VA_ARGS__)

#endif /* RCD_LOG_H */
