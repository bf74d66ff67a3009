/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Connection management messages (IBTA Vol. 1, 12.6) and the header that RDMA CM puts into the
 * private data of requests (Annex A11): bytes to and from structs. One list (rcd_cm.def) makes the
 * structs, the parser, the builder and the names. What the messages mean is not here.
 */
#ifndef RCD_CM_H
#define RCD_CM_H

#include "rcd_gid.h"
#include "rcd_mad.h"

#define RCD_CM_CLASS_VERSION 2
#define RCD_CM_METHOD_SEND   0x03

/**
 * What a local CA GUID of ours begins with; others take GUIDs as they are. The locally
 * administered identifier is no vendor's, and one that is made of a MAC has 0xff in the fourth
 * byte. Then 24 bits that tell adapters apart, and last what the sender offers (doc/sack.md).
 */
#define RCD_CM_GUID_PREFIX UINT64_C(0x0252434400000000)

/** Of the last byte: selective acknowledgement. Others are sent as 0 and ignored. */
#define RCD_CM_OFFERS_SACK 0x01

/** A GUID of ours. @param bits  the middle 24 of the lower half are used */
static inline uint64_t
rcd_cm_guid(uint64_t bits, uint8_t offers)
{
	return RCD_CM_GUID_PREFIX | (bits & 0xffffff00) | offers;
}

/** What its owner offers. @return 0 when it is not one of ours */
static inline uint8_t
rcd_cm_guid_offers(uint64_t guid)
{
	return guid >> 32 == RCD_CM_GUID_PREFIX >> 32 ? (uint8_t)guid : 0;
}

/** Bytes behind the MAD header, whatever the message. */
#define RCD_CM_BODY_LEN (RCD_MAD_LEN - RCD_MAD_HDR_LEN)

/** Which message: the attribute of its MAD. */
enum rcd_cm_attr {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at) RCD_CM_##symbol = attr_id,
#include "rcd_cm.def"
};

/* A struct for each message: struct rcd_cm_req and so on, host order. */
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at)                                            \
	enum {                                                                                     \
		RCD_CM_##symbol##_PRIVATE_LEN = RCD_CM_BODY_LEN - (private_at)                     \
	};                                                                                         \
	struct rcd_cm_##name {
#define RCD_CM_NUM(name, field, at, bits)  uint64_t field : bits;
#define RCD_CM_GID(name, field, at)        struct rcd_gid field;
#define RCD_CM_BYTES(name, field, at, len) uint8_t field[len];
#define RCD_CM_MOD(name, field)            uint32_t field;
#define RCD_CM_END(symbol, name)                                                                   \
	uint8_t private_data[RCD_CM_##symbol##_PRIVATE_LEN];                                       \
	}                                                                                          \
	;
#include "rcd_cm.def"

/** Any of them. */
struct rcd_cm {
	enum rcd_cm_attr attr;
	union {
#define RCD_CM_BEGIN(symbol, name, attr_id, private_at) struct rcd_cm_##name name;
#include "rcd_cm.def"
	};
};

/**
 * Parse the body of a CM message. Values are not judged.
 *
 * @param body     RCD_CM_BODY_LEN bytes behind the MAD header
 * @param attr_id  of the MAD
 * @return false for an attribute that is no message of CM
 */
bool
rcd_cm_parse(const uint8_t *body, uint16_t attr_id, struct rcd_cm *cm);

/** Write the body of a message: all of it. @param body RCD_CM_BODY_LEN writable bytes */
void
rcd_cm_build(uint8_t *body, const struct rcd_cm *cm);

/** What is in the MAD header of a message: its attribute modifier; 0 for most. */
uint32_t
rcd_cm_attr_mod(const struct rcd_cm *cm);

/** Take that from the MAD header: rcd_cm_parse() sees the body alone. */
void
rcd_cm_set_attr_mod(struct rcd_cm *cm, uint32_t attr_mod);

/** What a REQ has for transport service types (IBTA 12.6.5). */
enum rcd_cm_service {
	RCD_CM_SERVICE_RC = 0,
	RCD_CM_SERVICE_UC = 1,
	RCD_CM_SERVICE_EXTENDED = 3, /**< what the extended transport type says (Annex A14) */
};

/** The extended transport type of XRC. */
#define RCD_CM_EXTENDED_XRC 1

/** Whether a REQ asks for a connection of XRC, from its initiator to a target. */
static inline bool
rcd_cm_req_is_xrc(const struct rcd_cm_req *req)
{
	return req->transport_service_type == RCD_CM_SERVICE_EXTENDED &&
		req->extended_transport_type == RCD_CM_EXTENDED_XRC;
}

/** The queue pair of a REP: that of a target of XRC is where RD has its EE context (Annex A14). */
static inline uint32_t
rcd_cm_rep_qpn(const struct rcd_cm_rep *rep, bool xrc)
{
	return (uint32_t)(xrc ? rep->local_eecn : rep->local_qpn);
}

/** The 24 bits that a REP has in three places (IBTA 12.6.8): whose options it brings. */
uint32_t
rcd_cm_rep_vendor_id(const struct rcd_cm_rep *rep);

/** Write them. @param vendor_id  more than 24 bits are cut */
void
rcd_cm_rep_set_vendor_id(struct rcd_cm_rep *rep, uint32_t vendor_id);

/** What a walk over the fields of a message sees. */
enum rcd_cm_kind {
	RCD_CM_KIND_NUM,
	RCD_CM_KIND_GID,
	RCD_CM_KIND_BYTES,   /**< of a meaning that depends */
	RCD_CM_KIND_PRIVATE, /**< private data */
};

/** A field. */
struct rcd_cm_field {
	const char *name; /**< as in rcd_cm.def */
	enum rcd_cm_kind kind;
	uint16_t at;   /**< bits from the start of the body */
	uint16_t bits; /**< of it */
};

/**
 * Fields of a message, in their order.
 *
 * @param count  set
 * @return static array; NULL for an attribute that is no message
 */
const struct rcd_cm_field *
rcd_cm_fields(uint16_t attr_id, uint32_t *count);

/** A number out of a body. @param field of kind RCD_CM_KIND_NUM */
uint64_t
rcd_cm_get(const uint8_t *body, const struct rcd_cm_field *field);

/** Words for a reason of REJ. @return static string, never NULL */
const char *
rcd_cm_rej_text(uint16_t reason);

/** Bytes of the header of RDMA CM. */
#define RCD_CMA_HDR_LEN 36

/** The first bytes of the private data of REQ and SIDR_REQ for the port spaces of RDMA CM. */
struct rcd_cma_hdr {
	uint8_t version;    /**< 0 */
	uint8_t ip_version; /**< 4 or 6 */
	uint16_t port;      /**< of who asks */
	struct rcd_gid src; /**< IPv4 in its mapped form */
	struct rcd_gid dst;
};

/** Port spaces of RDMA CM: the upper half of a service ID; the lower is the port. */
enum rcd_cma_space {
	RCD_CMA_SPACE_IPOIB = 0x0002,
	RCD_CMA_SPACE_TCP = 0x0106,
	RCD_CMA_SPACE_UDP = 0x0111,
	RCD_CMA_SPACE_IB = 0x013f,
};

/** Service ID of a port. */
static inline uint64_t
rcd_cma_service_id(enum rcd_cma_space space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

/** Whether a service ID is one of RDMA CM, and of which space and port. */
bool
rcd_cma_service_parse(uint64_t service_id, enum rcd_cma_space *space, uint16_t *port);

/** Parse the header. @return false when it is another version, or of no IP */
bool
rcd_cma_hdr_parse(const uint8_t *src, struct rcd_cma_hdr *hdr);

/** Write the header. @param dst RCD_CMA_HDR_LEN writable bytes */
void
rcd_cma_hdr_build(uint8_t *dst, const struct rcd_cma_hdr *hdr);

#endif /* RCD_CM_H */
