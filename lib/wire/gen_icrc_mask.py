#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables with which rcd_icrc.c masks header fields without touching the packet.

A CRC is linear: a byte that differs by d at offset j changes the register in the same way as an
initial register that differs by X, where X run over j zero bytes gives d. So "this field counts
as ones" becomes an exclusive-or on the initial value, looked up by the byte that is really there,
and one CRC call over the packet as it is does the rest. Each table holds X for the 256 values of
one masked byte, relative to the value it usually has: that one's entry is 0.

Independent of this, test/unit/test_icrc.c computes the ICRC bit by bit over a masked copy.
"""
import sys

POLY = 0xEDB88320  # CRC-32, reflected

FORWARD = []
for i in range(256):
    c = i
    for _ in range(8):
        c = c >> 1 ^ (POLY if c & 1 else 0)
    FORWARD.append(c)
# The top bytes of the 256 entries are all different, so a step can be undone.
BACKWARD = {entry >> 24: i for i, entry in enumerate(FORWARD)}


def step(state, byte):
    return state >> 8 ^ FORWARD[(state ^ byte) & 0xFF]


def undo_zero_byte(state):
    """The register that one zero byte turns into `state`."""
    i = BACKWARD[state >> 24]
    return (state ^ FORWARD[i]) << 8 & 0xFFFFFFFF | i


def initial_difference(offset, diff):
    for _ in range(offset):
        diff = undo_zero_byte(diff)
    return diff


# (name, offset from the first byte of the IP header, bits that count as ones, usual value)
FIELDS = {
    'ipv4': [('tos', 1, 0xFF, 0), ('ttl', 8, 0xFF, 64), ('csum0', 10, 0xFF, 0),
             ('csum1', 11, 0xFF, 0), ('udp_csum0', 26, 0xFF, 0), ('udp_csum1', 27, 0xFF, 0),
             ('bth_ecn', 32, 0xFF, 0)],
    'ipv6': [('class0', 0, 0x0F, 0), ('class1', 1, 0xFF, 0), ('flow0', 2, 0xFF, 0),
             ('flow1', 3, 0xFF, 0), ('hop_limit', 7, 0xFF, 64), ('udp_csum0', 46, 0xFF, 0),
             ('udp_csum1', 47, 0xFF, 0), ('bth_ecn', 52, 0xFF, 0)],
}

# The register after the dummy LRH, 8 bytes of ones.
state = 0xFFFFFFFF
for _ in range(8):
    state = step(state, 0xFF)
DUMMY_LRH = state

rows = []
defines = []
for l3, fields in FIELDS.items():
    start = DUMMY_LRH
    for name, offset, mask, usual in fields:
        table = [initial_difference(offset, (value ^ usual) & mask) for value in range(256)]
        rows.append((f'{l3}_{name}'.upper(), table))
        start ^= table[0xFF]
        defines.append(f'#define {l3.upper()}_{name.upper()}_USUAL {usual}u')
    # As ISA-L takes it, inverted, for a packet whose masked bytes all have their usual value.
    defines.append(f'#define {l3.upper()}_START 0x{start ^ 0xFFFFFFFF:08x}u')

with open(sys.argv[1], 'w') as out:
    print('/* Made by gen_icrc_mask.py; do not edit. */', *defines, sep='\n', file=out)
    print('enum {', *(f'\t{name},' for name, _ in rows), '};', sep='\n', file=out)
    # One array, so that one register addresses all of them.
    print(f'static const uint32_t mask[{len(rows)}][256] = {{', file=out)
    for _, table in rows:
        print('\t{', file=out)
        for i in range(0, 256, 8):
            print('\t\t' + ' '.join(f'0x{x:08x},' for x in table[i:i + 8]), file=out)
        print('\t},', file=out)
    print('};', file=out)
