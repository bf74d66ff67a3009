/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The common header of management datagrams, and the names of connection management attributes
 * (IBTA Vol. 1, 13.4.2 and 12.6). The bodies of CM messages are not here.
 */
#ifndef RCD_MAD_H
#define RCD_MAD_H

#include "rcd_bytes.h"
#include "rcd_verdict.h"

#define RCD_MAD_LEN     256 /**< every MAD, header included */
#define RCD_MAD_HDR_LEN 24

#define RCD_MAD_BASE_VERSION 1
#define RCD_MAD_CLASS_CM     0x07

/** A MAD header, host order. */
struct rcd_mad {
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method; /**< response bit included */
	uint16_t status;
	uint16_t class_specific;
	uint64_t tid; /**< transaction ID */
	uint16_t attr_id;
	uint32_t attr_mod;
};

/**
 * Parse the header of a MAD.
 *
 * @param src  payload of a datagram to QP1
 * @param len  its bytes: a MAD has RCD_MAD_LEN
 * @return RCD_VERDICT_OK, RCD_VERDICT_MAD_SHORT or RCD_VERDICT_MAD_VERSION
 */
enum rcd_verdict
rcd_mad_parse(const uint8_t *src, size_t len, struct rcd_mad *mad);

/** Write the header. @param dst RCD_MAD_HDR_LEN writable bytes */
void
rcd_mad_build(uint8_t *dst, const struct rcd_mad *mad);

/** Short name of a CM attribute, for example "REQ". @return static string; NULL if unknown */
const char *
rcd_cm_attr_name(uint16_t attr_id);

#endif /* RCD_MAD_H */
