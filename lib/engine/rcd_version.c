/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The release that this was compiled as.
 */
#include "rcd_version.h"

const char *
rcd_engine_version(void)
{
	return RCD_ENGINE_VERSION;
}

uint32_t
rcd_engine_version_num(void)
{
	return RCD_ENGINE_VERSION_NUM;
}
