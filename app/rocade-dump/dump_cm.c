/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connection management messages as text and as JSON: every field, by the list that lib/wire has of
 * them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "dump.h"
#include "rcd_cm.h"

#define HEX_SIZE (2 * RCD_CM_BODY_LEN + 1)

/* Hexadecimal without the zeros at the end. @return its bytes */
static uint32_t
dump_cm_hex_of(const uint8_t *body, const struct rcd_cm_field *field, char text[HEX_SIZE])
{
	const uint8_t *bytes = body + field->at / 8;
	uint32_t len = field->bits / 8;

	while (len > 0 && bytes[len - 1] == 0)
		len--;
	text[0] = '\0';
	for (uint32_t i = 0; i < len; i++)
		snprintf(text + (size_t)2 * i, 3, "%02x", bytes[i]);
	return len;
}

static bool
dump_cm_is_request(uint16_t attr_id)
{
	return attr_id == RCD_CM_REQ || attr_id == RCD_CM_SIDR_REQ;
}

/* The header of RDMA CM, when the service is one of its. */
static bool
dump_cm_find_cma(const uint8_t *body, uint16_t attr_id, enum rcd_cma_space *space, uint16_t *port,
	struct rcd_cma_hdr *hdr)
{
	struct rcd_cm cm;

	if (!dump_cm_is_request(attr_id) || !rcd_cm_parse(body, attr_id, &cm))
		return false;
	return rcd_cma_service_parse(
		       attr_id == RCD_CM_REQ ? cm.req.service_id : cm.sidr_req.service_id, space,
		       port) &&
		rcd_cma_hdr_parse(
			attr_id == RCD_CM_REQ ? cm.req.private_data : cm.sidr_req.private_data,
			hdr);
}

static const char *
dump_cm_space_name(enum rcd_cma_space space)
{
	switch (space) {
	case RCD_CMA_SPACE_IPOIB:
		return "ipoib";
	case RCD_CMA_SPACE_TCP:
		return "tcp";
	case RCD_CMA_SPACE_UDP:
		return "udp";
	case RCD_CMA_SPACE_IB:
		return "ib";
	}
	return "unknown";
}

static void
dump_cm_text_field(FILE *out, const uint8_t *body, const struct rcd_cm_field *field)
{
	char text[HEX_SIZE];
	struct rcd_gid gid;
	uint64_t val;

	switch (field->kind) {
	case RCD_CM_KIND_NUM:
		val = rcd_cm_get(body, field);
		/* What is 0 is left away: half of a message is the alternate path. */
		if (val == 0)
			return;
		if (field->bits >= 16)
			fprintf(out, " %s 0x%0*" PRIx64, field->name, field->bits / 4, val);
		else
			fprintf(out, " %s %" PRIu64, field->name, val);
		return;
	case RCD_CM_KIND_GID:
		memcpy(gid.raw, body + field->at / 8, sizeof(gid.raw));
		dump_addr_text(&gid, text);
		if (strcmp(text, "::") != 0)
			fprintf(out, " %s %s", field->name, text);
		return;
	case RCD_CM_KIND_BYTES:
	case RCD_CM_KIND_PRIVATE:
		if (dump_cm_hex_of(body, field, text) > 0)
			fprintf(out, " %s %s", field->name, text);
		return;
	}
}

void
dump_cm_text(FILE *out, const uint8_t *body, uint16_t attr_id)
{
	uint32_t count;
	const struct rcd_cm_field *fields = rcd_cm_fields(attr_id, &count);
	struct rcd_cma_hdr hdr;
	enum rcd_cma_space space;
	uint16_t port;
	char src[DUMP_ADDR_SIZE], dst[DUMP_ADDR_SIZE];

	for (uint32_t i = 0; i < count; i++) {
		dump_cm_text_field(out, body, &fields[i]);
		if (attr_id == RCD_CM_REJ && strcmp(fields[i].name, "reason") == 0)
			fprintf(out, " (%s)",
				rcd_cm_rej_text((uint16_t)rcd_cm_get(body, &fields[i])));
	}
	if (!dump_cm_find_cma(body, attr_id, &space, &port, &hdr))
		return;
	dump_addr_text(&hdr.src, src);
	dump_addr_text(&hdr.dst, dst);
	fprintf(out, " rdmacm %s [%s]:%u > [%s]:%u", dump_cm_space_name(space), src, hdr.port, dst,
		port);
}

static json_t *
dump_cm_json_field(const uint8_t *body, const struct rcd_cm_field *field)
{
	char text[HEX_SIZE];
	struct rcd_gid gid;

	switch (field->kind) {
	case RCD_CM_KIND_NUM:
		if (field->bits > 32)
			return json_sprintf("0x%016" PRIx64, rcd_cm_get(body, field));
		return json_integer((json_int_t)rcd_cm_get(body, field));
	case RCD_CM_KIND_GID:
		memcpy(gid.raw, body + field->at / 8, sizeof(gid.raw));
		dump_addr_text(&gid, text);
		return json_string(text);
	case RCD_CM_KIND_BYTES:
	case RCD_CM_KIND_PRIVATE:
		dump_cm_hex_of(body, field, text);
		return json_string(text);
	}
	return NULL;
}

json_t *
dump_cm_json(const uint8_t *body, uint16_t attr_id)
{
	uint32_t count;
	const struct rcd_cm_field *fields = rcd_cm_fields(attr_id, &count);
	json_t *obj = json_object();
	struct rcd_cma_hdr hdr;
	enum rcd_cma_space space;
	uint16_t port;
	char src[DUMP_ADDR_SIZE], dst[DUMP_ADDR_SIZE];

	for (uint32_t i = 0; i < count; i++) {
		json_object_set_new(obj, fields[i].name, dump_cm_json_field(body, &fields[i]));
		if (attr_id == RCD_CM_REJ && strcmp(fields[i].name, "reason") == 0)
			json_object_set_new(obj, "reason_text",
				json_string(
					rcd_cm_rej_text((uint16_t)rcd_cm_get(body, &fields[i]))));
	}
	if (dump_cm_find_cma(body, attr_id, &space, &port, &hdr)) {
		dump_addr_text(&hdr.src, src);
		dump_addr_text(&hdr.dst, dst);
		json_object_set_new(obj, "rdmacm",
			json_pack("{s:s,s:i,s:s,s:s,s:i,s:i}", "space", dump_cm_space_name(space),
				"ip_version", hdr.ip_version, "src", src, "dst", dst, "src_port",
				hdr.port, "dst_port", port));
	}
	return obj;
}
