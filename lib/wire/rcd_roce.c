/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Parse and build of the transport headers, driven by the opcode table.
 */
#include "rcd_roce.h"

static inline bool
roce_payload_allowed(enum rcd_payload payload, size_t len)
{
	switch (payload) {
	case RCD_PAYLOAD_NONE:
		return len == 0;
	case RCD_PAYLOAD_ANY:
		return true;
	case RCD_PAYLOAD_ATOMIC:
		return len == RCD_ATOMIC_LEN;
	case RCD_PAYLOAD_BITMAP:
		return len > 0 && len % 4 == 0 && len <= RCD_SACK_BITMAP_MAX_LEN;
	}
	return false;
}

enum rcd_verdict
rcd_roce_parse(const uint8_t *src, size_t len, struct rcd_roce *roce, size_t *payload_len)
{
	enum rcd_verdict verdict = rcd_bth_parse(src, len, &roce->bth);

	if (verdict != RCD_VERDICT_OK)
		return verdict;
	if (roce->bth.tver != 0)
		return RCD_VERDICT_BTH_TVER;

	const struct rcd_opcode_info *info = rcd_opcode_info(roce->bth.opcode);

	if (info->service == RCD_SERVICE_NONE)
		return RCD_VERDICT_BTH_OPCODE;
	src += RCD_BTH_LEN;
	len -= RCD_BTH_LEN;
	if (len < info->ext_len)
		return RCD_VERDICT_EXT_SHORT;

	/* The sum of the lengths was checked above, so none of these can be short. */
	if (info->exts != 0) {
#define RCD_EXT_HEADER(symbol, field, length)                                                      \
	if (info->exts & RCD_EXT_##symbol) {                                                       \
		(void)rcd_##field##_parse(src, length, &roce->field);                              \
		src += length;                                                                     \
	}
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
	}
	len -= info->ext_len;
	if (len % 4 != 0)
		return RCD_VERDICT_ALIGN;
	if (len < roce->bth.pad_count)
		return RCD_VERDICT_PAD;
	len -= roce->bth.pad_count;
	if (!roce_payload_allowed(info->payload, len))
		return RCD_VERDICT_PAYLOAD;
	*payload_len = len;
	return RCD_VERDICT_OK;
}

size_t
rcd_roce_build(uint8_t *dst, const struct rcd_roce *roce)
{
	const struct rcd_opcode_info *info = rcd_opcode_info(roce->bth.opcode);

	rcd_bth_build(dst, &roce->bth);
	dst += RCD_BTH_LEN;
#define RCD_EXT_HEADER(symbol, field, length)                                                      \
	if (info->exts & RCD_EXT_##symbol) {                                                       \
		rcd_##field##_build(dst, &roce->field);                                            \
		dst += length;                                                                     \
	}
#include "rcd_ext.def"
#undef RCD_EXT_HEADER
	return rcd_roce_hdr_len(roce->bth.opcode);
}
