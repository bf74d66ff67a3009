#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares, field by field, what two senders put on the wire for the same operations, and prints
the differences as a table in Markdown. The captures are of the same program with the same first
PSN, so a packet's counterpart has its opcode and PSN.

    compare.py ROCADE_DUMP OURS.pcap OUR_ADDRESS THEIRS.pcap THEIR_ADDRESS
"""
import collections
import json
import subprocess
import sys

# What must differ: addresses, numbers that a side chooses, what follows from them.
CHOSEN = {'number', 'time', 'src', 'dst', 'icrc', 'bth.dest_qp', 'reth.va', 'reth.rkey',
          'atomiceth.va', 'atomiceth.rkey', 'ieth.rkey', 'deth.src_qp', 'frame_len', 'cap_len'}


def flatten(packet, prefix=''):
    for key, val in packet.items():
        if isinstance(val, dict):
            yield from flatten(val, f'{prefix}{key}.')
        else:
            yield prefix + key, val


def load(dump, path, address):
    """{(opcode, PSN): fields} of the first of each that an address sent, and how many there are."""
    done = subprocess.run([dump, '--json', path], capture_output=True, text=True,
                          check=False)
    packets, count = {}, collections.Counter()
    for line in done.stdout.splitlines():
        packet = json.loads(line)
        if packet.get('src') != address or 'bth' not in packet:
            continue
        count[packet['bth']['name']] += 1
        packets.setdefault((packet['bth']['name'], packet['bth']['psn']), dict(flatten(packet)))
    return packets, count


def main():
    dump, ours_path, ours_address, theirs_path, theirs_address = sys.argv[1:]
    ours, our_count = load(dump, ours_path, ours_address)
    theirs, their_count = load(dump, theirs_path, theirs_address)
    found = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    for key in ours.keys() & theirs.keys():
        for field in ours[key].keys() | theirs[key].keys():
            pair = ours[key].get(field), theirs[key].get(field)
            if field not in CHOSEN and pair[0] != pair[1]:
                found[field]['sport' if field == 'sport' else key[0]][
                    ('', '') if field == 'sport' else pair] += 1
    print(f'{len(ours.keys() & theirs.keys())} pairs of packets with the same opcode and PSN\n')
    print('| field | packets | Rocade | rxe | how many |\n|---|---|---|---|---|')
    for field, opcodes in sorted(found.items()):
        for opcode, pairs in sorted(opcodes.items()):
            for (mine, other), times in pairs.most_common(3):
                print(f'| {field} | {opcode} | {mine} | {other} | {times} |')
    print('\n| packets sent | Rocade | rxe |\n|---|---|---|')
    for name in sorted(our_count | their_count):
        if our_count[name] != their_count[name]:
            print(f'| {name} | {our_count[name]} | {their_count[name]} |')


if __name__ == '__main__':
    main()
