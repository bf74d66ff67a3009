/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * ICRC: masking by lookup (gen_icrc_mask.py explains why that is right), the CRC by ISA-L.
 */
#include "rcd_icrc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "rcd_crc_shift.h"
#include "rcd_icrc_mask.h"
#include "rcd_pkt.h"

/*
 * ISA-L's AVX-512 loop returns with the upper halves of the vector registers in use. Until they
 * are cleared, every SSE instruction in the process, ISA-L's own short-buffer path among them,
 * runs several times slower (doc/wire.md has figures).
 */
#if defined(__x86_64__)
static bool have_avx;

static __attribute__((constructor)) void
icrc_detect_avx(void)
{
	__builtin_cpu_init();
	have_avx = __builtin_cpu_supports("avx");
}

static inline void
icrc_clear_upper_halves(void)
{
	if (__builtin_expect(have_avx, 1))
		__asm__ volatile("vzeroupper" ::: "memory");
}
#else
static inline void
icrc_clear_upper_halves(void)
{
}
#endif

/* Eight bytes as they lie in memory, for comparing only. */
static inline uint64_t
icrc_raw64(const uint8_t *src)
{
	uint64_t val;

	memcpy(&val, src, sizeof(val));
	return val;
}

/* Bits in which 8 bytes differ from the usual ones, among those that the mask names. */
static inline uint64_t
icrc_unusual(const uint8_t *src, const uint8_t usual_bytes[8], const uint8_t masked_bits[8])
{
	return (icrc_raw64(src) ^ icrc_raw64(usual_bytes)) & icrc_raw64(masked_bits);
}

/*
 * A masked byte with its usual value has 0 in its table. Nearly all packets of a flow have the
 * same values there, so one predicted branch over them is cheaper than looking each of them up:
 * at 1024 bytes of payload the whole CRC takes no more than some 60 cycles.
 */
static __attribute__((noinline)) uint32_t
icrc_unusual_ipv4(const uint8_t *ip)
{
	return mask[IPV4_TOS][ip[1]] ^ mask[IPV4_TTL][ip[8]] ^ mask[IPV4_UDP_CSUM0][ip[26]] ^
		mask[IPV4_UDP_CSUM1][ip[27]] ^ mask[IPV4_BTH_ECN][ip[32]];
}

static __attribute__((noinline)) uint32_t
icrc_unusual_ipv6(const uint8_t *ip)
{
	return mask[IPV6_CLASS0][ip[0]] ^ mask[IPV6_CLASS1][ip[1]] ^ mask[IPV6_FLOW0][ip[2]] ^
		mask[IPV6_FLOW1][ip[3]] ^ mask[IPV6_HOP_LIMIT][ip[7]] ^
		mask[IPV6_UDP_CSUM0][ip[46]] ^ mask[IPV6_UDP_CSUM1][ip[47]] ^
		mask[IPV6_BTH_ECN][ip[52]];
}

static inline uint32_t
icrc_start_ipv4(const uint8_t *ip)
{
	/* From the TOS to the TTL; from the UDP checksum to behind BTH byte 4. */
	static const uint8_t ip_usual[8] = { [7] = IPV4_TTL_USUAL };
	static const uint8_t ip_bits[8] = { [0] = 0xff, [7] = 0xff };
	static const uint8_t udp_usual[8] = { 0 };
	static const uint8_t udp_bits[8] = { [0] = 0xff, [1] = 0xff, [6] = 0xff };
	uint32_t crc = IPV4_START ^ mask[IPV4_CSUM0][ip[10]] ^ mask[IPV4_CSUM1][ip[11]];

	if ((icrc_unusual(ip + 1, ip_usual, ip_bits) |
		    icrc_unusual(ip + 26, udp_usual, udp_bits)) == 0)
		return crc;
	return crc ^ icrc_unusual_ipv4(ip);
}

static inline uint32_t
icrc_start_ipv6(const uint8_t *ip)
{
	/* From the traffic class to the hop limit; from the UDP checksum to behind BTH byte 4. */
	static const uint8_t ip_usual[8] = { [7] = IPV6_HOP_LIMIT_USUAL };
	static const uint8_t ip_bits[8] = { 0x0f, 0xff, 0xff, 0xff, [7] = 0xff };
	static const uint8_t udp_usual[8] = { 0 };
	static const uint8_t udp_bits[8] = { [0] = 0xff, [1] = 0xff, [6] = 0xff };

	if ((icrc_unusual(ip, ip_usual, ip_bits) | icrc_unusual(ip + 46, udp_usual, udp_bits)) == 0)
		return IPV6_START;
	return IPV6_START ^ icrc_unusual_ipv6(ip);
}

static inline uint32_t
icrc_start(enum rcd_l3 l3, const uint8_t *ip)
{
	return l3 == RCD_L3_IPV4 ? icrc_start_ipv4(ip) : icrc_start_ipv6(ip);
}

static inline uint32_t
icrc_update(uint32_t crc, const uint8_t *src, size_t len)
{
	crc = crc32_gzip_refl(crc, src, len);
	icrc_clear_upper_halves();
	return crc;
}

uint32_t
rcd_icrc_start(enum rcd_l3 l3, const uint8_t *ip)
{
	return icrc_start(l3, ip);
}

uint32_t
rcd_icrc_update(uint32_t crc, const uint8_t *src, size_t len)
{
	return icrc_update(crc, src, len);
}

uint32_t
rcd_icrc(enum rcd_l3 l3, const uint8_t *ip, size_t len)
{
	return icrc_update(icrc_start(l3, ip), ip, len);
}

/* What a CRC-32 over any bytes and their own CRC, least significant byte first, comes to. */
#define RESIDUE 0x2144df1cu

/* Of rcd_pkt.h; it stands here so that nothing but the CRC itself is called in the loop. */
unsigned int
rcd_pkt_icrc_check_burst(const struct rcd_pkt *pkts, enum rcd_verdict *verdicts, unsigned int count)
{
	unsigned int ok = 0;

	for (unsigned int i = 0; i < count; i++) {
		const struct rcd_pkt *pkt = &pkts[i];
		uint32_t crc;

		if (verdicts[i] != RCD_VERDICT_OK)
			continue;
		crc = icrc_update(icrc_start((enum rcd_l3)pkt->l3, pkt->ip), pkt->ip, pkt->ip_len);
		if (crc == RESIDUE)
			ok++;
		else
			verdicts[i] = RCD_VERDICT_ICRC;
	}
	return ok;
}

/** Bytes of an IPv4 header up to the end of its identification. */
#define ID_END 6

bool
rcd_pkt_icrc_any_id(const struct rcd_pkt *pkt)
{
	uint32_t change;
	uint16_t differing;

	if (pkt->l3 != RCD_L3_IPV4)
		return false;
	change = rcd_pkt_icrc_stored(pkt) ^ rcd_pkt_icrc_computed(pkt);
	return rcd_crc_explain16(change, pkt->ip_len - RCD_ICRC_LEN - (uint32_t)ID_END, &differing);
}
