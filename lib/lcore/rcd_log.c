/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * An engine's lines in DPDK's log, and their type.
 */
#include "rcd_log.h"

#include <assert.h>
#include <rte_log.h>
#include <stdarg.h>
#include <stdint.h>

static_assert((int)RCD_LOG_ERR == (int)RTE_LOG_ERR &&
		(int)RCD_LOG_WARNING == (int)RTE_LOG_WARNING &&
		(int)RCD_LOG_NOTICE == (int)RTE_LOG_NOTICE &&
		(int)RCD_LOG_DEBUG == (int)RTE_LOG_DEBUG,
	"levels are DPDK's");

RTE_LOG_REGISTER(rcd_logtype, lib.rocade.engine, NOTICE);

void
rcd_log_line(enum rcd_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	rte_vlog((uint32_t)level, (uint32_t)rcd_logtype, format, args);
	va_end(args);
}
