#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: a second opinion. Method: tshark and rocade-dump read the same captures; opcode, PSN, QPN,
lengths, flags and every extended header of every packet must agree field by field.

    test_tshark.py ROCADE_DUMP FOLDER...
"""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

DUMP = sys.argv[1]
FOLDERS = [pathlib.Path(folder) for folder in sys.argv[2:]]
TSHARK = shutil.which('tshark')

# Dissectors that guess from ports or payload by heuristics; they hide the payload from us.
NOT_ROCE = ['rpcordma', 'smb_direct', 'iser', 'nvme-rdma', 'infiniband_sdp', 'infiniband.eoib',
            'fcoib', 'lnet', 'smc', 'drbd']


def number(text):
    return int(text, 0)


def flag(text):
    return text in ('1', 'True')


def icrc(text):
    """tshark shows the bytes in wire order; the value is least significant byte first."""
    return '0x' + number(text).to_bytes(4, 'little').hex()


def hex64(text):
    return f'0x{number(text):016x}'


# (tshark's field, its reading, our path). Compared when either side has it.
FIELDS = [
    ('frame.len', number, ('frame_len',)),
    ('udp.srcport', number, ('sport',)),
    ('udp.dstport', number, ('dport',)),
    ('infiniband.bth.opcode', number, ('bth', 'opcode')),
    ('infiniband.bth.se', flag, ('bth', 'solicited')),
    ('infiniband.bth.m', flag, ('bth', 'mig_req')),
    ('infiniband.bth.padcnt', number, ('bth', 'pad')),
    ('infiniband.bth.tver', number, ('bth', 'tver')),
    ('infiniband.bth.p_key', number, ('bth', 'pkey')),
    ('infiniband.bth.destqp', number, ('bth', 'dest_qp')),
    ('infiniband.bth.a', flag, ('bth', 'ack_req')),
    ('infiniband.bth.psn', number, ('bth', 'psn')),
    ('infiniband.deth.q_key', number, ('deth', 'qkey')),
    ('infiniband.deth.srcqp', number, ('deth', 'src_qp')),
    ('infiniband.reth.va', hex64, ('reth', 'va')),
    ('infiniband.reth.r_key', number, ('reth', 'rkey')),
    ('infiniband.reth.dmalen', number, ('reth', 'dma_len')),
    ('infiniband.atomiceth.swapdt', hex64, ('atomiceth', 'swap_or_add')),
    ('infiniband.atomiceth.cmpdt', hex64, ('atomiceth', 'compare')),
    ('infiniband.aeth.syndrome', number, ('aeth', 'syndrome')),
    ('infiniband.aeth.msn', number, ('aeth', 'msn')),
    ('infiniband.atomicacketh.origremdt', hex64, ('atomicacketh', 'original')),
    ('infiniband.immdt', lambda text: int(text.replace(':', ''), 16), ('immdt', 'data')),
    ('infiniband.ieth', lambda text: int(text.replace(':', ''), 16), ('ieth', 'rkey')),
    ('infiniband.invariant.crc', icrc, ('icrc',)),
]
ADDRESSES = ['ip.src', 'ip.dst', 'ipv6.src', 'ipv6.dst']
LENGTHS = ['ip.len', 'ipv6.plen', 'udp.length', 'infiniband.payload', 'data.data']


def ours(path):
    """rocade-dump's object per packet, totals left off."""
    done = subprocess.run([DUMP, '--json', path], capture_output=True, text=True, check=False)
    tap.equal(done.returncode, 0, f'exit status of rocade-dump, {done.stderr.strip()}')
    return [json.loads(line) for line in done.stdout.splitlines()][:-1]


def theirs(path):
    """tshark's fields per packet, as a dict of texts."""
    names = [name for name, _, _ in FIELDS] + ADDRESSES + LENGTHS
    command = [TSHARK, '-n', '-r', str(path), '-T', 'fields', '-E', 'separator=|',
               '-E', 'occurrence=f']
    for protocol in NOT_ROCE:
        command += ['--disable-protocol', protocol]
    for name in names:
        command += ['-e', name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    tap.equal(done.returncode, 0, f'exit status of tshark, {done.stderr.strip()}')
    return [dict(zip(names, line.split('|'))) for line in done.stdout.splitlines()]


def find(packet, path):
    for key in path:
        if key not in packet:
            return None
        packet = packet[key]
    return packet


def compare_packet(packet, texts, where):
    for name, read, path in FIELDS:
        expected = read(texts[name]) if texts[name] else None
        # tshark has one name for the keys and addresses of RETH and AtomicETH.
        if path[0] == 'reth' and path[1] != 'dma_len' and 'atomiceth' in packet:
            path = ('atomiceth', path[1])
        tap.equal(find(packet, path), expected, f'{where} {name}')
    tap.equal(packet['src'], texts['ip.src'] or texts['ipv6.src'], f'{where} source')
    tap.equal(packet['dst'], texts['ip.dst'] or texts['ipv6.dst'], f'{where} destination')
    if texts['ip.len']:
        tap.equal(packet['ip_len'], int(texts['ip.len']), f'{where} ip.len')
        tap.equal(packet['ip_len'] - 20, int(texts['udp.length']), f'{where} udp.length')
    else:
        tap.equal(packet['ip_len'], int(texts['ipv6.plen']) + 40, f'{where} ipv6.plen')
        tap.equal(packet['ip_len'] - 40, int(texts['udp.length']), f'{where} udp.length')
    # MADs are dissected further, so no payload is reported for them.
    if 'mad' not in packet:
        payload = texts['infiniband.payload'] or texts['data.data']
        got = len(payload.replace(':', '')) // 2
        tap.equal(packet['payload_len'], got - packet['bth']['pad'] if got else 0,
                  f'{where} payload')


def compare_file(path):
    def check():
        if TSHARK is None:
            raise tap.Skip('no tshark on this machine')
        packets, texts = ours(path), theirs(path)
        tap.true(packets, 'no packets')
        tap.equal(len(packets), len(texts), 'packets')
        for packet, text in zip(packets, texts):
            compare_packet(packet, text, f'packet {packet["number"]}')
    return check


for folder in FOLDERS:
    for capture in sorted(folder.rglob('*.pcap')):
        tap.add(str(capture.relative_to(folder.parent)), compare_file(capture))
sys.exit(tap.run())
