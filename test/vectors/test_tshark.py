#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: a second opinion. Method: tshark and rocade-dump read the same captures; opcode, PSN, QPN,
lengths, flags and every extended header of every packet must agree field by field; those of
Rocade's own as the dissector in Lua shows them.

    test_tshark.py ROCADE_DUMP FOLDER...
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

DUMP = sys.argv[1]
FOLDERS = [pathlib.Path(folder) for folder in sys.argv[2:]]
TSHARK = shutil.which('tshark')
LUA = pathlib.Path(__file__).parents[2] / 'usertools/rocade.lua'

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
# The same of connection management: name there, how to read it, message, field here. Flow label
# and packet rate are left away: tshark 4.0 takes both from the first bits of their word (07 04 d0
# 00 is label 0x0704d and rate 0 in the specification and in the kernel, 0x70 and 7 there).
CM_FIELDS = [(f'infiniband.cm.{name}', read, message, field) for message, prefix, fields in (
    ('REQ', 'req', (
        ('', number, 'local_comm_id'), ('.serviceid', hex64, 'service_id'),
        ('.localcaguid', hex64, 'local_ca_guid'), ('.localqkey', number, 'local_qkey'),
        ('.localqpn', number, 'local_qpn'), ('.responderres', number, 'responder_resources'),
        ('.localeecn', number, 'local_eecn'), ('.initdepth', number, 'initiator_depth'),
        ('.remoteeecn', number, 'remote_eecn'),
        ('.remoteresptout', number, 'remote_cm_response_timeout'),
        ('.transpsvctype', number, 'transport_service_type'),
        ('.e2eflowctrl', number, 'end_to_end_flow_control'),
        ('.startpsn', number, 'starting_psn'),
        ('.localresptout', number, 'local_cm_response_timeout'),
        ('.retrcount', number, 'retry_count'), ('.pkey', number, 'pkey'),
        ('.pppmtu', number, 'path_mtu'), ('.rdcexist', number, 'rdc_exists'),
        ('.rnrretrcount', number, 'rnr_retry_count'), ('.maxcmretr', number, 'max_cm_retries'),
        ('.srq', number, 'srq'), ('.ext_transport', number, 'extended_transport_type'),
        ('.prim_locallid', number, 'primary_local_lid'),
        ('.prim_remotelid', number, 'primary_remote_lid'),
        ('.prim_localgid_ipv4', str, 'primary_local_gid'),
        ('.prim_remotegid_ipv4', str, 'primary_remote_gid'),
        ('.prim_tfcclass', number, 'primary_traffic_class'),
        ('.prim_hoplim', number, 'primary_hop_limit'), ('.prim_sl', number, 'primary_sl'),
        ('.prim_subnetlocal', number, 'primary_subnet_local'),
        ('.prim_localacktout', number, 'primary_local_ack_timeout'),
        ('.alt_locallid', number, 'alternate_local_lid'),
        ('.alt_hoplim', number, 'alternate_hop_limit'),
        ('.alt_localacktout', number, 'alternate_local_ack_timeout'))),
    ('REP', 'rep', (
        ('', number, 'local_comm_id'), ('.remotecommid', number, 'remote_comm_id'),
        ('.localqkey', number, 'local_qkey'), ('.localqpn', number, 'local_qpn'),
        ('.localeecn', number, 'local_eecn'), ('.startpsn', number, 'starting_psn'),
        ('.respres', number, 'responder_resources'), ('.initdepth', number, 'initiator_depth'),
        ('.tgtackdelay', number, 'target_ack_delay'),
        ('.failoveracc', number, 'failover_accepted'),
        ('.e2eflowctrl', number, 'end_to_end_flow_control'),
        ('.rnrretrcount', number, 'rnr_retry_count'), ('.srq', number, 'srq'),
        ('.localcaguid', hex64, 'local_ca_guid'))),
    ('RTU', 'rtu', (('.localcommid', number, 'local_comm_id'),
                    ('.remotecommid', number, 'remote_comm_id'))),
    ('REJ', 'rej', (('.localcommid', number, 'local_comm_id'),
                    ('.remotecommid', number, 'remote_comm_id'),
                    ('.msgrej', number, 'message_rejected'),
                    ('.rejinfolen', number, 'reject_info_length'),
                    ('.reason', number, 'reason'))),
    ('DREQ', 'dreq', (('.localcommid', number, 'local_comm_id'),
                      ('.remotecommid', number, 'remote_comm_id'))),
    ('DREP', 'drsp', (('.localcommid', number, 'local_comm_id'),
                      ('.remotecommid', number, 'remote_comm_id'))),
) for suffix, read, field in fields for name in (prefix + suffix,)]
CMA_FIELDS = [
    ('infiniband.cm.req.ip_cm.ipv', number, 'ip_version'),
    ('infiniband.cm.req.ip_cm.sport', number, 'src_port'),
    ('infiniband.cm.req.serviceid.dport', number, 'dst_port'),
    ('infiniband.cm.req.ip_cm.sip4', str, 'src'),
    ('infiniband.cm.req.ip_cm.dip4', str, 'dst'),
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
    names = ([name for name, _, _ in FIELDS + CMA_FIELDS] + [row[0] for row in CM_FIELDS] +
             ADDRESSES + LENGTHS)
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


def compare_cm(packet, texts, where):
    """What tshark says of a CM message; it says nothing of some."""
    compared = 0
    for name, read, message, field in CM_FIELDS:
        if packet['mad']['cm'] == message and texts[name]:
            tap.equal(packet['mad']['fields'][field], read(texts[name]), f'{where} {name}')
            compared += 1
    for name, read, field in CMA_FIELDS:
        if texts[name] and 'rdmacm' in packet['mad']['fields']:
            tap.equal(packet['mad']['fields']['rdmacm'][field], read(texts[name]),
                      f'{where} {name}')
    expected = sum(row[2] == packet['mad']['cm'] for row in CM_FIELDS)
    # GIDs are shown as IPv4 or not at all.
    tap.true(compared >= expected - 2, f'{where}: {compared} of {expected} fields')


def compare_file(path):
    def check():
        if TSHARK is None:
            raise tap.Skip('no tshark on this machine')
        packets, texts = ours(path), theirs(path)
        tap.true(packets, 'no packets')
        tap.equal(len(packets), len(texts), 'packets')
        for packet, text in zip(packets, texts):
            compare_packet(packet, text, f'packet {packet["number"]}')
            if packet.get('mad', {}).get('cm'):
                compare_cm(packet, text, f'packet {packet["number"]}')
    return check


def sack(expected, seen, delay_ns, bitmap, padding=0):
    """A frame with a selective acknowledgement (doc/sack.md)."""
    roce = struct.pack('>BBHIII', 0xc1, 0x40, 0xffff, 0x17, expected, 0x1f << 24 | 5)
    return frame_of(roce + struct.pack('>II', seen, delay_ns) + bitmap, padding)


def hello(opcode, nonce, more=b''):
    """A HELLO or its answer."""
    return frame_of(struct.pack('>BBHIIIQ', opcode, 0x40, 0xffff, 0x17, 0, 1, nonce) + more, 2)


def marked(opcode, mark):
    """An acknowledge, or a SEND of no bytes, with a mark."""
    roce = struct.pack('>BBHBBHI', opcode, 0x40, 0xffff, mark, 0, 0x17, 5)
    return frame_of(roce + (bytes(4) if opcode == 0x11 else b''))


def frame_of(roce, padding=0):
    """Of what is in front of an ICRC, which is wrong."""
    roce += bytes(4)
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28 + len(roce), 0, 0x4000, 64, 17, 0,
                     bytes((10, 77, 0, 1)), bytes((10, 77, 0, 2)))
    total = sum(struct.unpack('>10H', ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack('>H', ~total & 0xffff) + ip[12:]
    udp = struct.pack('>HHHH', 0xc000, 4791, 8 + len(roce), 0)
    return bytes(12) + b'\x08\0' + ip + udp + roce + bytes(padding)


def both_say(frames, names):
    """Fields by the Lua dissector, and packets by rocade-dump."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'ours.pcap'
        path.write_bytes(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + b''.join(
            struct.pack('<IIII', 0, 0, len(frame), len(frame)) + frame for frame in frames))
        done = subprocess.run(
            [TSHARK, '-n', '-X', f'lua_script:{LUA}', '-r', path, '-T', 'fields',
             *(word for name in names for word in ('-e', name))],
            capture_output=True, text=True, check=False)
        tap.equal(done.returncode, 0, done.stderr)
        dump = subprocess.run([DUMP, '--json', path], capture_output=True, text=True, check=False)
    packets = [json.loads(line) for line in dump.stdout.splitlines()][:-1]
    lines = [line.split('\t') for line in done.stdout.split('\n')[:-1]]
    tap.equal((len(lines), len(packets)), (len(frames), len(frames)), 'packets')
    return lines, packets


@tap.test
def selective_acknowledgements():
    """By the Lua dissector: fields as rocade-dump has them, and the PSNs by hand."""
    if TSHARK is None:
        raise tap.Skip('no tshark on this machine')
    # Bits 0, 1, 2, 9 and 31; all 512, over the end of PSNs; what the parser does not take.
    frames = [(sack(100, 131, 700, bytes((0x07, 0x02, 0, 0x80)), 2), '101-103 110 132'),
              (sack(0xffffff, 3, 0xffffffff, bytes([0xff]) * 64), '0-511'),
              (sack(7, 7, 0, bytes(4)), ''), (sack(7, 7, 0, bytes(68)), None),
              (sack(7, 7, 0, b''), None)]
    names = ['rocade.sack', 'rocade.sack.expected', 'rocade.sack.msn', 'rocade.sack.seen',
             'rocade.sack.delay', 'rocade.sack.kept']
    lines, packets = both_say([frame for frame, _ in frames], names)
    for packet, texts, (_, kept) in zip(packets, lines, frames):
        if kept is None:
            tap.equal((texts, 'sacketh' in packet), ([''] * len(names), False), 'not well-formed')
            continue
        tap.equal(texts[1:], [str(number) for number in (
            packet['bth']['psn'], packet['aeth']['msn'], packet['sacketh']['seen'],
            packet['sacketh']['delay_ns'])] + [kept], 'a SACK')


@tap.test
def hellos_and_marks():
    if TSHARK is None:
        raise tap.Skip('no tshark on this machine')
    nonce = 0xfedcba9876543210
    names = ['rocade.hello.nonce', 'rocade.hello.offers', 'rocade.hello.answer', 'rocade.mark']
    lines, packets = both_say([hello(0xc2, nonce), hello(0xc3, 1), hello(0xc2, 1, bytes(4)),
                               marked(0x04, 0xea), marked(0x11, 0x15), marked(0x11, 0xc0)], names)

    def number(text):
        return int(text, 0) if text[:1].isdigit() else text in ('True', '1')

    tap.equal([[text and number(text) for text in line] for line in lines],
              [[nonce, 1, False, ''], [1, 1, True, ''], [''] * 4,
               ['', '', '', 0x2a], ['', '', '', 0x15], [''] * 4], 'tshark')
    tap.equal([(packet['bth']['name'], int(str(packet['helloeth']['nonce']), 0),
                packet['helloeth']['offers']) for packet in packets[:2]],
              [('HELLO', nonce, 1), ('HELLO_ACK', 1, 1)], 'rocade-dump')
    tap.equal('helloeth' in packets[2], False, 'not well-formed')
    tap.equal([packet['bth']['mark'] for packet in packets[3:]], [0x2a, 0x15, 0], 'marks')


for folder in FOLDERS:
    for capture in sorted(folder.rglob('*.pcap')):
        tap.add(str(capture.relative_to(folder.parent)), compare_file(capture))
sys.exit(tap.run())
