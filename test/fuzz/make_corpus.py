#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes seeds for the parser's fuzz target from the kept captures: one file per packet, named after
its contents, payloads cut where the headers don't need them.

    make_corpus.py FOLDER

Afterwards let libFuzzer minimise: fuzz_pkt -merge=1 test/fuzz/corpus/pkt FOLDER
"""
import hashlib
import pathlib
import struct
import sys

KEPT = pathlib.Path(__file__).parents[1] / 'vectors'


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(KEPT.glob('kept-*.pcap')):
        data, pos = path.read_bytes(), 24
        while pos < len(data):
            caplen, = struct.unpack_from('<I', data, pos + 8)
            frame = data[pos + 16:pos + 16 + caplen]
            pos += 16 + caplen
            name = hashlib.sha1(frame).hexdigest()
            (folder / name).write_bytes(frame)


main()
