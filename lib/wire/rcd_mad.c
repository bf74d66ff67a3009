/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * MAD header and CM attribute names.
 */
#include "rcd_mad.h"

enum rcd_verdict
rcd_mad_parse(const uint8_t *src, size_t len, struct rcd_mad *mad)
{
	if (len < RCD_MAD_LEN)
		return RCD_VERDICT_MAD_SHORT;
	if (src[0] != RCD_MAD_BASE_VERSION)
		return RCD_VERDICT_MAD_VERSION;
	mad->base_version = src[0];
	mad->mgmt_class = src[1];
	mad->class_version = src[2];
	mad->method = src[3];
	mad->status = rcd_get_be16(src + 4);
	mad->class_specific = rcd_get_be16(src + 6);
	mad->tid = rcd_get_be64(src + 8);
	mad->attr_id = rcd_get_be16(src + 16);
	mad->attr_mod = rcd_get_be32(src + 20);
	return RCD_VERDICT_OK;
}

void
rcd_mad_build(uint8_t *dst, const struct rcd_mad *mad)
{
	dst[0] = mad->base_version;
	dst[1] = mad->mgmt_class;
	dst[2] = mad->class_version;
	dst[3] = mad->method;
	rcd_put_be16(dst + 4, mad->status);
	rcd_put_be16(dst + 6, mad->class_specific);
	rcd_put_be64(dst + 8, mad->tid);
	rcd_put_be16(dst + 16, mad->attr_id);
	rcd_put_be16(dst + 18, 0);
	rcd_put_be32(dst + 20, mad->attr_mod);
}

const char *
rcd_cm_attr_name(uint16_t attr_id)
{
	static const char *const names[] = {
		[0x01] = "ClassPortInfo",
		[0x10] = "REQ",
		[0x11] = "MRA",
		[0x12] = "REJ",
		[0x13] = "REP",
		[0x14] = "RTU",
		[0x15] = "DREQ",
		[0x16] = "DREP",
		[0x17] = "SIDR_REQ",
		[0x18] = "SIDR_REP",
		[0x19] = "LAP",
		[0x1a] = "APR",
	};

	return attr_id < RCD_ARRAY_COUNT(names) ? names[attr_id] : NULL;
}
