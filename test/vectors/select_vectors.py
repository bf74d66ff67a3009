#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Chooses the packets that the project keeps from a folder of captures.

    select_vectors.py FOLDER

Takes the first packet of every kind (IP version, opcode, flags, class of payload length, traffic
class, syndrome, CM attribute) and writes kept-v4.pcap and kept-v6.pcap beside this script, and
provenance.tsv, which says for each packet where it came from. The captures hold RoCEv2 only.
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).parent


def packets(path):
    """(index from 1, 16-byte record header, frame) of a classic little-endian pcap."""
    data = path.read_bytes()
    assert data[:4] == b'\xd4\xc3\xb2\xa1', path
    pos, index = 24, 1
    while pos < len(data):
        caplen, = struct.unpack_from('<I', data, pos + 8)
        yield index, data[pos:pos + 16], data[pos + 16:pos + 16 + caplen]
        pos += 16 + caplen
        index += 1


def kind(frame):
    ethertype, = struct.unpack_from('>H', frame, 12)
    version = 4 if ethertype == 0x0800 else 6
    bth = 14 + (20 if version == 4 else 40) + 8
    opcode, flags = frame[bth], frame[bth + 1]
    tclass = frame[15] if version == 4 else (frame[14] << 4 | frame[15] >> 4) & 0xFF
    dest_qp = int.from_bytes(frame[bth + 5:bth + 8], 'big')
    ack_req = frame[bth + 8] >> 7
    length = len(frame) - bth
    size = 0 if length < 20 else 1 if length < 400 else 2 if length < 900 else 3
    syndrome = frame[bth + 12] if opcode in (0x0d, 0x0f, 0x10, 0x11, 0x12) else None
    attr = frame[bth + 20 + 17] if opcode == 0x64 and dest_qp == 1 else None
    return version, (opcode, flags, ack_req, size, tclass, syndrome, attr)


def main():
    folder = pathlib.Path(sys.argv[1])
    seen = set()
    out = {version: bytearray(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1))
           for version in (4, 6)}
    count = {4: 0, 6: 0}
    rows = ['file\tpacket\tfrom\tpacket there']
    for path in sorted(folder.rglob('*.pcap')):
        for index, header, frame in packets(path):
            version, what = kind(frame)
            if (version, what) in seen:
                continue
            seen.add((version, what))
            out[version] += header + frame
            count[version] += 1
            rows.append(f'kept-v{version}.pcap\t{count[version]}\t'
                        f'{path.relative_to(folder)}\t{index}')
    for version, data in out.items():
        (HERE / f'kept-v{version}.pcap').write_bytes(data)
    (HERE / 'provenance.tsv').write_text('\n'.join(rows) + '\n')
    print(count)


main()
