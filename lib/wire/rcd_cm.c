/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * CM messages by their list of fields.
 */
#include "rcd_cm.h"

/* Numbers are read and written bit by bit in no hurry: connections are made, not packets sent. */
static uint64_t
cm_get_bits(const uint8_t *src, uint32_t at, uint32_t bits)
{
	uint64_t val = 0;

	for (uint32_t i = at; i < at + bits; i++)
		val = val << 1 | (src[i / 8] >> (7 - i % 8) & 1);
	return val;
}

static void
cm_put_bits(uint8_t *dst, uint32_t at, uint32_t bits, uint64_t val)
{
	for (uint32_t i = at + bits; i-- > at; val >>= 1)
		dst[i / 8] |= (uint8_t)((val & 1) << (7 - i % 8));
}

#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	static void parse_##name(const uint8_t *body, struct rcd_cm_##name *msg)                   \
	{                                                                                          \
		memcpy(msg->private_data, body + (private_at), sizeof(msg->private_data));
#define RCD_CM_NUM(name, field, at, bits)  msg->field = cm_get_bits(body, at, bits);
#define RCD_CM_GID(name, field, at)        memcpy(msg->field.raw, body + (at), RCD_GID_LEN);
#define RCD_CM_BYTES(name, field, at, len) memcpy(msg->field, body + (at), len);
#define RCD_CM_END(symbol, name)           }
#include "rcd_cm.def"

#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	static void build_##name(uint8_t *body, const struct rcd_cm_##name *msg)                   \
	{                                                                                          \
		memcpy(body + (private_at), msg->private_data, sizeof(msg->private_data));
#define RCD_CM_NUM(name, field, at, bits)  cm_put_bits(body, at, bits, msg->field);
#define RCD_CM_GID(name, field, at)        memcpy(body + (at), msg->field.raw, RCD_GID_LEN);
#define RCD_CM_BYTES(name, field, at, len) memcpy(body + (at), msg->field, len);
#define RCD_CM_END(symbol, name)           }
#include "rcd_cm.def"

/* Spec: IBTA 12.6 what stands where in a message */
bool
rcd_cm_parse(const uint8_t *body, uint16_t attr_id, struct rcd_cm *cm)
{
	cm->attr = (enum rcd_cm_attr)attr_id;
	switch (attr_id) {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	case attr_id:                                                                              \
		parse_##name(body, &cm->name);                                                     \
		return true;
#include "rcd_cm.def"
	default:
		return false;
	}
}

void
rcd_cm_build(uint8_t *body, const struct rcd_cm *cm)
{
	memset(body, 0, RCD_CM_BODY_LEN);
	switch (cm->attr) {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	case RCD_CM_##symbol:                                                                      \
		build_##name(body, &cm->name);                                                     \
		break;
#include "rcd_cm.def"
	}
}

uint32_t
rcd_cm_attr_mod(const struct rcd_cm *cm)
{
	switch (cm->attr) {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at) case RCD_CM_##symbol:
#define RCD_CM_MOD(name, field)                         return cm->name.field;
#define RCD_CM_END(symbol, name)                        break;
#include "rcd_cm.def"
	}
	return 0;
}

void
rcd_cm_set_attr_mod(struct rcd_cm *cm, uint32_t attr_mod)
{
	switch (cm->attr) {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at) case RCD_CM_##symbol:
#define RCD_CM_MOD(name, field)                         cm->name.field = attr_mod;
#define RCD_CM_END(symbol, name)                        break;
#include "rcd_cm.def"
	}
}

uint32_t
rcd_cm_rep_vendor_id(const struct rcd_cm_rep *rep)
{
	return (uint32_t)(rep->vendor_id_high << 16 | rep->vendor_id_middle << 8 |
		rep->vendor_id_low);
}

void
rcd_cm_rep_set_vendor_id(struct rcd_cm_rep *rep, uint32_t vendor_id)
{
	rep->vendor_id_high = vendor_id >> 16 & 0xff;
	rep->vendor_id_middle = vendor_id >> 8 & 0xff;
	rep->vendor_id_low = vendor_id & 0xff;
}

#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	static const struct rcd_cm_field fields_##name[] = {
#define RCD_CM_NUM(name, field, at, bits)  { #field, RCD_CM_KIND_NUM, at, bits },
#define RCD_CM_GID(name, field, at)        { #field, RCD_CM_KIND_GID, (at)*8, RCD_GID_LEN * 8 },
#define RCD_CM_BYTES(name, field, at, len) { #field, RCD_CM_KIND_BYTES, (at)*8, (len)*8 },
#define RCD_CM_END(symbol, name)                                                                   \
	{ "private_data", RCD_CM_KIND_PRIVATE,                                                     \
		(RCD_CM_BODY_LEN - RCD_CM_##symbol##_PRIVATE_LEN) * 8,                             \
		RCD_CM_##symbol##_PRIVATE_LEN * 8 },                                               \
	}                                                                                          \
	;
#include "rcd_cm.def"

const struct rcd_cm_field *
rcd_cm_fields(uint16_t attr_id, uint32_t *count)
{
	switch (attr_id) {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	case attr_id:                                                                              \
		*count = RCD_ARRAY_COUNT(fields_##name);                                           \
		return fields_##name;
#include "rcd_cm.def"
	default:
		*count = 0;
		return NULL;
	}
}

uint64_t
rcd_cm_get(const uint8_t *body, const struct rcd_cm_field *field)
{
	return cm_get_bits(body, field->at, field->bits);
}

/* Spec: IBTA 12.6.7.2 reasons for rejection */
const char *
rcd_cm_rej_text(uint16_t reason)
{
	static const char *const texts[] = {
		[1] = "no QP available",
		[2] = "no EEC available",
		[3] = "no resources available",
		[4] = "timeout",
		[5] = "unsupported request",
		[6] = "invalid communication ID",
		[7] = "invalid communication instance",
		[8] = "invalid service ID",
		[9] = "invalid transport service type",
		[10] = "stale connection",
		[11] = "RDC does not exist",
		[12] = "primary remote port GID rejected",
		[13] = "primary remote port LID rejected",
		[14] = "invalid primary SL",
		[15] = "invalid primary traffic class",
		[16] = "invalid primary hop limit",
		[17] = "invalid primary packet rate",
		[18] = "alternate remote port GID rejected",
		[19] = "alternate remote port LID rejected",
		[20] = "invalid alternate SL",
		[21] = "invalid alternate traffic class",
		[22] = "invalid alternate hop limit",
		[23] = "invalid alternate packet rate",
		[24] = "port and CM redirection",
		[25] = "port redirection",
		[26] = "invalid path MTU",
		[27] = "insufficient responder resources",
		[28] = "consumer reject",
		[29] = "RNR retry count reject",
		[30] = "duplicate local communication ID",
		[31] = "unsupported class version",
		[32] = "invalid primary flow label",
		[33] = "invalid alternate flow label",
		[35] = "vendor option not supported",
	};

	return reason < RCD_ARRAY_COUNT(texts) && texts[reason] != NULL ? texts[reason]
									: "unknown reason";
}

bool
rcd_cma_service_parse(uint64_t service_id, enum rcd_cma_space *space, uint16_t *port)
{
	*space = (enum rcd_cma_space)(service_id >> 16);
	*port = (uint16_t)service_id;
	return service_id >> 32 == 0 &&
		(*space == RCD_CMA_SPACE_IPOIB || *space == RCD_CMA_SPACE_TCP ||
			*space == RCD_CMA_SPACE_UDP || *space == RCD_CMA_SPACE_IB);
}

bool
rcd_cma_hdr_parse(const uint8_t *src, struct rcd_cma_hdr *hdr)
{
	hdr->version = src[0];
	hdr->ip_version = src[1] >> 4;
	hdr->port = rcd_get_be16(src + 2);
	if (hdr->ip_version == 4) {
		hdr->src = rcd_gid_from_ipv4(src + 16);
		hdr->dst = rcd_gid_from_ipv4(src + 32);
	} else {
		hdr->src = rcd_gid_from_ipv6(src + 4);
		hdr->dst = rcd_gid_from_ipv6(src + 20);
	}
	return hdr->version == 0 && (hdr->ip_version == 4 || hdr->ip_version == 6);
}

void
rcd_cma_hdr_build(uint8_t *dst, const struct rcd_cma_hdr *hdr)
{
	memset(dst, 0, RCD_CMA_HDR_LEN);
	dst[0] = hdr->version;
	dst[1] = (uint8_t)(hdr->ip_version << 4);
	rcd_put_be16(dst + 2, hdr->port);
	if (hdr->ip_version == 4) {
		memcpy(dst + 16, hdr->src.raw + 12, 4);
		memcpy(dst + 32, hdr->dst.raw + 12, 4);
	} else {
		memcpy(dst + 4, hdr->src.raw, RCD_GID_LEN);
		memcpy(dst + 20, hdr->dst.raw, RCD_GID_LEN);
	}
}
