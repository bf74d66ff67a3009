# SPDX-License-Identifier: BSD-3-Clause
"""Who hears what on nic_node.py's link, and who says it: programs on an engine (listen.c), the
kernel's sockets, frames that a test makes."""
import queue
import struct
import subprocess
import sys
import textwrap
import threading
import zlib

import tap
from netns import pair, run
from nic_node import OWN, OWN6

LISTEN = sys.argv[3]
GROUP, GROUP6, NOBODYS = '239.1.2.3', 'ff15::1:203', '239.9.9.9'


class Listener:
    """A program that has a device, and tells what it hears."""

    def __init__(self, engine, device, nodes, version, *groups):
        self.process = subprocess.Popen(
            [LISTEN, engine.socket, device, str(nodes), version, *groups], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.said = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.expect('ready')

    def listen(self):
        for line in self.process.stdout:
            self.said.put(line.strip())

    def lines(self, count):
        """So many, in any order: one of each node, say."""
        said = []
        try:
            for _ in range(count):
                said.append(self.said.get(timeout=tap.PATIENCE))
        except queue.Empty:
            raise AssertionError(f'a program hears no more than {said}') from None
        return sorted(said)

    def expect(self, *lines):
        tap.equal(self.lines(len(lines)), sorted(lines), 'what a program hears')

    def send(self, group, length):
        self.process.stdin.write(f'{group} {length}\n')
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(tap.PATIENCE)
        finally:
            self.process.kill()


def inside(space, program, **more):
    return subprocess.Popen(
        ['ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(program)],
        stdout=subprocess.PIPE, text=True, **more)


def ping(space, address, size=56):
    tap.wait_until(f'{address} to answer', lambda: ' 3 received' in run(
        'ip', 'netns', 'exec', space, 'ping', '-c', '3', '-i', '0.02', '-W', '5', '-M', 'do',
        '-s', str(size), address, check=False))


def folded(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def roce_datagram(group, qkey=0x1234):
    """To a group, with a header that says all and a check sum of its own."""
    payload = b'to many'.ljust(64, b'.')
    address = bytes(int(part) for part in group.split('.'))
    bth = struct.pack('>BBHII', 0x64, 0x40, 0xffff, 0xffffff, 7) + struct.pack('>II', qkey, 0x11)
    udp = struct.pack('>HHHH', 0xc123, 4791, 8 + len(bth) + len(payload) + 4, 0)
    ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + len(udp) + len(bth) + len(payload) + 4, 1, 0x4000,
                     64, 17, 0) + bytes([192, 168, 1, 2]) + address
    ip = ip[:10] + struct.pack('>H', folded(ip)) + ip[12:]
    masked = (bytes([255] * 8) + ip[:1] + b'\xff' + ip[2:8] + b'\xff' + ip[9:10] + b'\xff\xff' +
              ip[12:] + udp[:6] + b'\xff\xff' + bth[:4] + b'\xff' + bth[5:] + payload)
    return (bytes([1, 0, 0x5e, address[1] & 0x7f, *address[2:]]) + bytes.fromhex('020000000002') +
            b'\x08\x00' + ip + udp + bth + payload + struct.pack('<I', zlib.crc32(masked)))


def send_frames(space, dev, *frames):
    """By one program: that begins takes longer than all that it sends."""
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import socket, sys
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.bind(('{dev}', 0))
        for line in sys.stdin:
            sock.send(bytes.fromhex(line))
        '''), given='\n'.join(frame.hex() for frame in frames))


def wrong_checksums(frame, count):
    """Frames that are this one but for the checksum of its IPv4 header."""
    return [frame[:24] + bytes([frame[24] ^ number]) + frame[25:]
            for number in range(1, count + 1)]


def send_and_see(there, *frames):
    """Ends when the engine has looked at them: it has counted one behind them, for itself, whose
    checksum is wrong."""
    before = there.counter('rx_drop_ipv4_checksum')
    last, = wrong_checksums(own_mac(there) + roce_datagram(GROUP)[6:], 1)
    send_frames(there.b, 'vb', *frames, last)
    tap.wait_until('the last frame', lambda: there.counter('rx_drop_ipv4_checksum') > before)


def own_mac(there):
    return bytes.fromhex(there.link()['mac'].replace(':', ''))


def hear_tag(space, dev, mark):
    """The tag of a frame as the kernel has it, which takes it off for who looks (packet(7))."""
    return inside(space, f'''
        import socket, struct
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind(('{dev}', 3))
        sock.setsockopt(263, 8, 1)  # PACKET_AUXDATA
        sock.settimeout({tap.PATIENCE})
        print('ready', flush=True)
        while True:
            frame, beside, _, _ = sock.recvmsg(4096, 256)
            if {mark!r} not in frame:
                continue
            status, _, _, _, _, tci = struct.unpack_from('IIIHHH', beside[0][2])
            print('tag', tci if status & 16 else 'none', len(frame), flush=True)
            break
        ''')


def tags_of_the_kernels(there):
    for tci in (5, 0x6005, 4094):
        mark = f'mark of {tci} '.encode()
        frame = (own_mac(there) + bytes.fromhex('020000000002') +
                 struct.pack('>HHH', 0x8100, tci, 0x88b5) + bytes(70) + mark + bytes(200))
        with hear_tag(there.a, 'r0k', mark) as listener:
            tap.equal(listener.stdout.readline(), 'ready\n', tci)
            send_frames(there.b, 'vb', frame)
            tap.equal(listener.stdout.readline(), f'tag {tci} {len(frame) - 4}\n', 'what came')
    there.traffic()


def talk_in_a_vlan(there):
    """Engines at both ends: many a kernel has no netdevs of VLANs."""
    there.peer.admin('link', 'del', 'peer')
    there.peer.admin('link', 'add', 'peer', 'type', 'port', there.port.replace('va', 'vb'), 'mtu',
                     '1500', 'address', '192.168.5.2/24@5, fd05::2/64@5')
    run('ip', '-n', there.b, 'addr', 'flush', 'dev', 'vb', 'scope', 'global')
    there.undo.append(there.peer_again)
    for address in ('192.168.5.1/24@5', 'fd05::1/64@5'):
        there.engine.admin('addr', 'add', address, 'dev', 'r0')
    for address in (OWN, OWN6):
        there.engine.admin('addr', 'del', address, 'dev', 'r0')
    for version in '46':
        pair(there.engine, 'r0', there.peer, 'peer', version)
    tap.equal(there.counter('rx_drop_vlan'), 0, 'frames of another VLAN')
