#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rocade-dump as its users meet it: output, totals and exit status, for good captures of
every format and link type, damaged packets, and files that are no captures.

Method: captures are written here byte by byte from the kept packets of a kernel's rxe.

    test_dump.py ROCADE_DUMP
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'harness'))
import tap  # noqa: E402

DUMP = sys.argv[1]
ETHERNET, RAW_IP, COOKED, USER0, COOKED2 = 1, 101, 113, 147, 276
TEMP = tempfile.TemporaryDirectory()
ARP = bytes.fromhex('ffffffffffff525400770001080600010800060400015254007700010a4d0001'
                    '0000000000000a4d0002')
LLDP = bytes.fromhex('0180c200000e52540077000188cc') + bytes(46)


def kept(version):
    """Frames of the kept capture of this IP version."""
    data = (HERE / f'kept-v{version}.pcap').read_bytes()
    frames, pos = [], 24
    while pos < len(data):
        caplen, = struct.unpack_from('<I', data, pos + 8)
        frames.append(data[pos + 16:pos + 16 + caplen])
        pos += 16 + caplen
    return frames


V4, V6 = kept(4), kept(6)


def pcap(frames, link=ETHERNET, order='<', magic=0xa1b2c3d4, snaplen=None):
    out = struct.pack(order + 'IHHiIII', magic, 2, 4, 0, 0, snaplen or 65535, link)
    for i, frame in enumerate(frames):
        held = frame[:snaplen]
        out += struct.pack(order + 'IIII', 1700000000 + i, 250, len(held), len(frame)) + held
    return out


def pcapng(frames):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack('<II', kind, 12 + len(body)) + body + struct.pack('<I', 12 + len(body))

    out = block(0x0a0d0d0a, struct.pack('<IHHq', 0x1a2b3c4d, 1, 0, -1))
    out += block(1, struct.pack('<HHI', ETHERNET, 0, 65535))
    for frame in frames:
        out += block(6, struct.pack('<IIIII', 0, 0, 0, len(frame), len(frame)) + frame)
    return out


def write(data, name='capture.pcap'):
    path = pathlib.Path(TEMP.name) / name
    path.write_bytes(data)
    return str(path)


def dump(*args, status=0, stdin=None):
    """Run it; returns (lines of stdout, stderr)."""
    done = subprocess.run([DUMP, *args], input=stdin, capture_output=True, check=False)
    tap.equal(done.returncode, status, f'exit status of {args}, stderr {done.stderr!r}')
    return done.stdout.decode().splitlines(), done.stderr.decode()


def totals(packets=0, ok=0, bad=0, malformed=0, other=0):
    return (f'packets {packets} roce {ok + bad} icrc_ok {ok} icrc_bad {bad} '
            f'malformed {malformed} other {other}')


def refused(path, *words):
    """The file can't be read: status 2, and one line that names it and says why."""
    _, err = dump(path, status=2)
    tap.equal(len(err.splitlines()), 1, 'lines on stderr')
    for word in ('rocade-dump', path, *words):
        tap.true(word in err, f'{word!r} in {err!r}')


def damaged(frame, offset, bits):
    return frame[:offset] + bytes([frame[offset] ^ bits]) + frame[offset + 1:]


@tap.test
def good_capture():
    out, err = dump(write(pcap(V4 + V6)))
    count = len(V4) + len(V6)
    tap.equal(out[-1], totals(count, ok=count), 'totals')
    tap.equal(len(out), count + 1, 'lines')
    tap.equal(err, '', 'stderr')
    tap.true(all(' icrc ok' in line for line in out[:-1]), 'every packet is ok')


@tap.test
def a_line_says_it_all():
    frame = next(f for f in V4 if f[42] == 0x0a)  # RDMA WRITE ONLY
    line = dump(write(pcap([frame])))[0][0]
    qpn, psn = frame[47:50].hex(), frame[51:54].hex()
    va, rkey, length = frame[54:62].hex(), frame[62:66].hex(), int.from_bytes(frame[66:70], 'big')
    for part in ('0.000000000 10.77.0.1:', ' > 10.77.0.2:4791 RC_RDMA_WRITE_ONLY ', f'qp 0x{qpn} ',
                 f'psn 0x{psn} ackreq ', 'pkey 0xffff ',
                 f'reth va 0x{va} rkey 0x{rkey} dmalen {length} ', f'len {length} icrc ok'):
        tap.true(part in line, f'{part!r} in {line!r}')


@tap.test
def words_for_syndromes_and_cm():
    text = '\n'.join(dump(write(pcap(V4)))[0])
    for part in ('(ACK, no credits used)', '(RNR NAK, wait 0.64 ms)', '(NAK, PSN sequence error)',
                 '(NAK, remote access error)', '(NAK, remote operational error)', ' cm REQ ',
                 ' cm REP ', ' cm RTU ', ' cm REJ ', ' cm DREQ ', ' cm DREP ', ' cm SIDR_REQ ',
                 ' cm SIDR_REP ', ' immdt 0x', ' ieth rkey 0x', ' atomiceth va 0x',
                 ' atomicacketh original 0x', ' deth qkey 0x80010000 srcqp 0x000001', ' solicited'):
        tap.true(part in text, part)


@tap.test
def wrong_icrc():
    frames = [V4[0], damaged(V4[1], len(V4[1]) - 1, 1), V6[0]]
    out, _ = dump(write(pcap(frames)), status=1)
    tap.equal(out[-1], totals(3, ok=2, bad=1), 'totals')
    tap.true(' icrc BAD (0x' in out[1], out[1])


@tap.test
def malformed_packets():
    frames = [damaged(V4[0], 43, 0x01), V6[0][:62] + b'\x15' + V6[0][63:], V4[0][:50],
              V4[0][:13], b'']
    out, _ = dump(write(pcap(frames)), status=1)
    tap.equal(out[-1], totals(5, malformed=5), 'totals')
    for line, why in zip(out, ('transport header version', 'reserved or unknown opcode',
                               'IPv4 total length', 'Ethernet header', 'Ethernet header')):
        tap.true('MALFORMED: ' in line and why in line, line)


@tap.test
def other_packets():
    ping = bytes.fromhex('525400770001525400770002080045000024000040004001264f0a4d00020a4d0001'
                         '0800f7fa00010002') + b'\0\2' + bytes(10)
    out, _ = dump(write(pcap([ARP, LLDP, ping, damaged(V4[0], 37, 1)])))
    tap.equal(out[-1], totals(4, other=4), 'totals')
    for line, what in zip(out, ('ARP request 10.77.0.1 > 10.77.0.2', 'not IP',
                                '10.77.0.2 > 10.77.0.1 ICMP', 'UDP to another port')):
        tap.true(what in line, line)


@tap.test
def vlan_tag():
    frame = V6[0][:12] + bytes.fromhex('8100602a') + V6[0][12:]
    out, _ = dump(write(pcap([frame])))
    tap.true(' vlan 42 ' in out[0], out[0])
    tap.equal(out[-1], totals(1, ok=1), 'totals')


@tap.test
def link_types():
    for link, header in ((RAW_IP, b''), (COOKED, bytes(14) + b'%s'), (COOKED2, b'%s' + bytes(18))):
        frames = [header.replace(b'%s', frame[12:14]) + frame[14:] for frame in (V4[0], V6[0])]
        out, _ = dump(write(pcap(frames, link=link)))
        tap.equal(out[-1], totals(2, ok=2), f'totals of link type {link}')
    out, _ = dump(write(pcap([b'\0' * 7], link=COOKED)), status=1)
    tap.equal(out[-1], totals(1, malformed=1), 'a cut cooked header')
    out, _ = dump(write(pcap([b''], link=RAW_IP)), status=1)
    tap.equal(out[-1], totals(1, malformed=1), 'an empty raw packet')
    refused(write(pcap([V4[0]], link=USER0)), 'link type')


@tap.test
def file_formats():
    for data in (pcap(V4[:3], order='>'), pcap(V4[:3], magic=0xa1b23c4d), pcapng(V4[:3])):
        out, _ = dump(write(data))
        tap.equal(out[-1], totals(3, ok=3), 'totals')
    out, _ = dump(write(pcap(V4[:2], magic=0xa1b23c4d)))
    tap.true(out[1].startswith('1.000000000 '), out[1])
    out, _ = dump('-', stdin=pcap(V4[:3]))
    tap.equal(out[-1], totals(3, ok=3), 'totals from standard input')
    out, _ = dump(write(pcap([])))
    tap.equal(out, [totals()], 'a capture without packets')


@tap.test
def cut_by_snap_length():
    frame = max(V4, key=len)
    out, _ = dump(write(pcap([frame], snaplen=64)), status=1)
    tap.true(f'(the capture holds 64 of {len(frame)} bytes)' in out[0], out[0])
    tap.equal(out[-1], totals(1, malformed=1), 'totals')


@tap.test
def files_that_are_no_captures():
    refused(str(pathlib.Path(TEMP.name) / 'none'), 'No such file')
    refused(TEMP.name, 'directory')
    refused(write(b''), 'empty')
    refused(write(b'All work and no play makes Jack a dull boy.\n' * 9), 'not a capture')
    refused(write(os.urandom(4096).replace(b'\xd4\xc3', b'\0\0')), 'not a capture')
    refused(write(pcap(V4)[:20]), 'truncated')


@tap.test
def truncated_at_every_length():
    frames = sorted(V4, key=len)[:2]
    data = pcap(frames)
    whole = {24: 0, 24 + 16 + len(frames[0]): 1, len(data): 2}
    for length in range(24, len(data) + 1):
        path = write(data[:length])
        if length in whole:
            out, _ = dump(path, '--quiet')
            tap.equal(out[-1], totals(whole[length], ok=whole[length]), 'totals')
        else:
            out, err = dump(path, '--quiet', status=2)
            count = sum(1 for at in whole if 24 < at < length)
            tap.equal(out[-1], totals(count, ok=count), 'totals before the cut')
            tap.true(f'after packet {count}' in err and 'truncated' in err, err)


@tap.test
def json_is_valid_and_complete():
    frames = V4 + V6 + [damaged(V4[0], 43, 1), damaged(V4[0], 60, 1), ARP]
    out, _ = dump('--json', write(pcap(frames)), status=1)
    objects = [json.loads(line) for line in out]
    good = len(V4) + len(V6)
    tap.equal(len(objects), len(frames) + 1, 'objects')
    tap.equal([o['number'] for o in objects[:-1]], list(range(1, len(frames) + 1)), 'numbers')
    tap.equal([o['verdict'] for o in objects[good:-1]], ['BTH_TVER', 'ICRC', 'ARP'], 'verdicts')
    tap.equal([o.get('icrc_ok') for o in objects[good:-1]], [None, False, None], 'icrc_ok')
    total = objects[-1]['totals']
    tap.equal({k: total[k] for k in ('packets', 'roce', 'icrc_ok', 'icrc_bad', 'malformed',
                                     'other')},
              {'packets': good + 3, 'roce': good + 1, 'icrc_ok': good, 'icrc_bad': 1,
               'malformed': 1, 'other': 1}, 'totals')
    tap.equal(total['counters'], {
        'rx_packets': good + 3, 'rx_bytes': sum(map(len, frames)), 'rx_roce': good, 'rx_arp': 1,
        'rx_drop_bth_tver': 1, 'rx_drop_icrc': 1}, 'counters')
    tap.true(any(o.get('mad', {}).get('cm') == 'REQ' for o in objects), 'a CM REQ')


@tap.test
def arguments():
    path = write(pcap(V4[:1]))
    for args in ((), (path, path), ('--nonsense', path), ('-x',)):
        _, err = dump(*args, status=2)
        tap.true('usage:' in err, err)
    out, _ = dump('--help')
    tap.true(out[0].startswith('usage: rocade-dump'), out[0])
    out, _ = dump('--version')
    tap.true(out[0].startswith('rocade-dump 0.'), out[0])


@tap.test
def output_that_fails():
    with open('/dev/full', 'w', encoding='ascii') as full:
        done = subprocess.run([DUMP, write(pcap(V4))], stdout=full, stderr=subprocess.PIPE,
                              check=False)
    tap.equal(done.returncode, 2, 'exit status')
    tap.true(b"can't write" in done.stderr, done.stderr)


sys.exit(tap.run())
