/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The type of an engine's lines in DPDK's log.
 */
#include "rcd_log.h"

RTE_LOG_REGISTER(rcd_logtype, lib.rocade.engine, NOTICE);
