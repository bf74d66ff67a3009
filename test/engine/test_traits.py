#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the engine works with what drivers do differently: frames in several buffers, tags that the
port takes off, a filter of multicast groups, a cable that comes out, a NIC that goes, PAUSE frames.

Method: net_impair has these traits before a port (nic_node.py); programs tell what they hear of it
(listen.c).

    test_traits.py ROCADED PAIR LISTEN
"""
import json
import pathlib
import queue
import select
import struct
import subprocess
import sys
import textwrap
import threading
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from netns import ROCADE, pair, run  # noqa: E402
from nic_node import ONE, OWN, OWN6, PEER, PEER6, on  # noqa: E402

LISTEN = sys.argv[3]
GROUP, GROUP6, NOBODYS = '239.1.2.3', 'ff15::1:203', '239.9.9.9'
DEVICE_FATAL, PORT_ACTIVE, PORT_ERR = 8, 9, 10


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
                said.append(self.said.get(timeout=60))
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
            self.process.wait(20)
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


def refused(there, *words):
    done = subprocess.run([str(ROCADE), '--socket', there.engine.socket, *words],
                          capture_output=True, text=True, check=False)
    tap.true(done.returncode != 0, words)
    return done.stdout + done.stderr


# Frames in several buffers.

def segments(there):
    there.traffic()
    for address, size in ((PEER, 1400), (PEER6, 1400), (PEER, 0)):
        ping(there.a, address, size)
    tap.equal(there.counter('rx_drop_segments'), 0, 'frames that were not put together')


# Between the bytes of BTH, of IPv4 and of IPv6.
for cut in (48, 66):
    tap.add(f'segments_of_{cut}', on(f'segment={cut}', segments))
    tap.add(f'segments_of_{cut}_for_the_engine_alone',
            on(f'segment={cut}', lambda there: [
                [pair(there.engine, 'r0', there.peer, 'peer', version) for version in '46'],
                [ping(there.b, address, 1400) for address in (OWN, OWN6)]], kernel=False))


def segments_of_jumbo_frames(there):
    tap.equal(there.link()['mtu'], 9000, 'MTU')
    for address in (PEER, PEER6):
        ping(there.a, address, 8900)
    for address in (OWN, OWN6):
        ping(there.b, address, 8900)
    there.traffic()


tap.add('segments_of_jumbo_frames', on('segment=4096', segments_of_jumbo_frames, mtu=9000))


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


def send_frame(space, dev, frame):
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import socket
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.bind(('{dev}', 0))
        sock.send(bytes.fromhex('{frame.hex()}'))
        '''))


def groups_and_pieces(there):
    """A datagram to members on both lcores, and a longer frame that begins like one: too long for
    any buffer, it is no RoCE, and goes to the kernel as a whole."""
    frame = roce_datagram(GROUP)
    with Listener(there.engine, 'r0', 4, '4', GROUP) as members:
        for _ in range(20):
            before = there.counter('to_kernel')
            send_frame(there.b, 'vb', frame + bytes(8000))
            # It comes to members before what is sent after it, if it does.
            tap.wait_until('the kernel to have it', lambda before=before: there.counter(
                'to_kernel') > before, 20)
        send_frame(there.b, 'vb', frame)
        members.expect(*(f'datagram {number} 64' for number in range(4)))
    there.traffic()


tap.add('groups_and_pieces', on('segment=2048', groups_and_pieces, mtu=9000))


# Tags that the port takes off.

def hear_tag(space, dev, mark):
    """The tag of a frame as the kernel has it, which takes it off for who looks (packet(7))."""
    return inside(space, f'''
        import socket, struct
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        sock.bind(('{dev}', 3))
        sock.setsockopt(263, 8, 1)  # PACKET_AUXDATA
        sock.settimeout(60)
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
        frame = (bytes.fromhex(there.link()['mac'].replace(':', '') + '020000000002') +
                 struct.pack('>HHH', 0x8100, tci, 0x88b5) + bytes(70) + mark + bytes(200))
        with hear_tag(there.a, 'r0k', mark) as listener:
            tap.equal(listener.stdout.readline(), 'ready\n', tci)
            send_frame(there.b, 'vb', frame)
            tap.equal(listener.stdout.readline(), f'tag {tci} {len(frame) - 4}\n', 'what came')
    there.traffic()


def talk_in_a_vlan(there):
    """Engines at both ends: many a kernel has no netdevs of VLANs."""
    there.peer.admin('link', 'del', 'peer')
    there.peer.admin('link', 'add', 'peer', 'type', 'port', there.port.replace('va', 'vb'), 'mtu',
                     '1500', 'address', '192.168.5.2/24@5, fd05::2/64@5')
    run('ip', '-n', there.b, 'addr', 'flush', 'dev', 'vb')
    for address in ('192.168.5.1/24@5', 'fd05::1/64@5'):
        there.engine.admin('addr', 'add', address, 'dev', 'r0')
    for address in (OWN, OWN6):
        there.engine.admin('addr', 'del', address, 'dev', 'r0')
    for version in '46':
        pair(there.engine, 'r0', there.peer, 'peer', version)
    tap.equal(there.counter('rx_drop_vlan'), 0, 'frames of another VLAN')


def tags_of_ours(there):
    """An address is not there for who has another tag, or none."""
    talk_in_a_vlan(there)
    for number, tag in enumerate((b'', struct.pack('>HH', 0x8100, 6)), 1):
        send_frame(there.b, 'vb', b'\xff' * 6 + bytes.fromhex('020000000077') + tag + bytes.fromhex(
            '0806' '0001080006040001' '020000000077' 'c0a80507') + bytes(6) + bytes(
                [192, 168, 5, 1]) + bytes(20))
        tap.wait_until('the count', lambda number=number: there.counter(
            'rx_drop_vlan') == number, 20)


for name, args in (('', 'strip=1'), ('_in_pieces', 'strip=1,segment=48'), ('_left', 'seed=1')):
    tap.add(f'tags_of_the_kernels{name}', on(args, tags_of_the_kernels))
    tap.add(f'tags_of_ours{name}', on(args, tags_of_ours, kernel=False))


# Who hears everything hears tags, too.
FILTERS = 'vlans=8,groups=64,promiscuous=0'


def a_filter_of_tags(there):
    """It lets those in that addresses of the engine have, from the beginning and later; also when
    the port was set up anew."""
    talk_in_a_vlan(there)
    there.impair('reset=1')
    tap.wait_until('the reset', lambda: 'asks for a reset' in there.engine.log.read_text(), 30)
    pair(there.engine, 'r0', there.peer, 'peer', '4')
    there.engine.admin('link', 'del', 'r0')
    there.engine.admin('link', 'add', 'r0', 'type', 'port', there.port, 'mtu', '1500', 'impair',
                       FILTERS, 'address', '192.168.5.1/24@5')
    pair(there.engine, 'r0', there.peer, 'peer', '4')
    # What no address has does not come at all.
    there.engine.admin('addr', 'del', '192.168.5.1/24@5', 'dev', 'r0')
    before = there.counter('rx_other_ethertype')
    tagged = b'\xff' * 6 + bytes.fromhex('020000000077' '81000005' '88b5') + bytes(1000)
    for _ in range(100):
        send_frame(there.b, 'vb', tagged)
    send_frame(there.b, 'vb', tagged[:12] + tagged[16:])
    tap.wait_until('the last', lambda: there.counter('rx_other_ethertype') > before, 20)
    tap.true(there.counter('rx_other_ethertype') - before < 50, 'frames of a VLAN that went')


def a_filter_without_room(there):
    there.engine.admin('addr', 'add', '192.168.5.1/24@5', 'dev', 'r0')
    tap.true("the port's filter does not take VLAN 5" in there.engine.log.read_text(), 'the log')
    for version in '46':
        pair(there.engine, 'r0', there.peer, 'peer', version)
    for address in (OWN, OWN6):
        ping(there.b, address)


tap.add('a_filter_without_room',
        on('vlans=1,groups=64,promiscuous=0', a_filter_without_room, kernel=False))
tap.add('a_filter_of_tags', on(FILTERS, a_filter_of_tags, kernel=False))


# A filter of multicast groups.

def kernel_hears(space, dev, group, port):
    return inside(space, f'''
        import socket, struct
        v4 = '.' in '{group}'
        sock = socket.socket(socket.AF_INET if v4 else socket.AF_INET6, socket.SOCK_DGRAM)
        sock.bind(('', {port}))
        index = socket.if_nametoindex('{dev}')
        if v4:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                            socket.inet_aton('{group}') + struct.pack('4si', bytes(4), index))
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                            socket.inet_pton(socket.AF_INET6, '{group}') + struct.pack('i', index))
        sock.settimeout(60)
        print('ready', flush=True)
        while True:
            print(sock.recv(64).decode(), flush=True)
        ''')


def kernel_says(space, dev, group, port, what):
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import socket, struct
        v4 = '.' in '{group}'
        sock = socket.socket(socket.AF_INET if v4 else socket.AF_INET6, socket.SOCK_DGRAM)
        index = socket.if_nametoindex('{dev}')
        if v4:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF,
                            struct.pack('4s4si', bytes(4), bytes(4), index))
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        sock.sendto({what!r}, ('{group}', {port}))
        '''))


def kernel_groups(there, port):
    """Those that sockets have joined are heard, when the port is told: within a second or so."""
    for group in (GROUP, GROUP6):
        with kernel_hears(there.a, 'r0k', group, port) as listener:
            tap.equal(listener.stdout.readline(), 'ready\n', group)
            for _ in range(100):
                kernel_says(there.b, 'vb', group, port, b'hello')
                if select.select([listener.stdout], [], [], 0.2)[0]:
                    break
            said = listener.stdout.readline()
            listener.kill()
            tap.equal(said, 'hello\n', group)


def groups_are_told(there):
    tap.equal(there.link()['multicast'], 'listed', 'how groups are heard')
    # Neighbours of IPv6 are asked for by groups.
    for address in (OWN, OWN6):
        ping(there.b, address)
    there.traffic()
    kernel_groups(there, 4001)
    # What nobody listens to does not come: the kernel would get it otherwise.
    before = there.counter('to_kernel')
    for _ in range(100):
        send_frame(there.b, 'vb', bytes.fromhex('01005e090909020000000002' '88b5') + bytes(50))
    tap.true(there.counter('to_kernel') - before < 50, 'groups that nobody has joined')
    # A port that is stopped, or reset, forgets them.
    run('ip', '-n', there.a, 'link', 'set', 'r0k', 'mtu', '1400')
    tap.wait_until('the MTU', lambda: there.link()['mtu'] == 1400, 30)
    run('ip', '-n', there.b, 'neigh', 'flush', 'dev', 'vb')
    ping(there.b, OWN6)
    there.impair('reset=1')
    tap.wait_until('the reset', lambda: 'asks for a reset' in there.engine.log.read_text(), 30)
    run('ip', '-n', there.b, 'neigh', 'flush', 'dev', 'vb')
    ping(there.b, OWN6)


def roce_groups(there):
    """Joined by programs, here and at the other end; of either version."""
    for version, group in (('4', GROUP), ('6', GROUP6)):
        with Listener(there.engine, 'r0', 2, version, group) as here:
            with Listener(there.peer, 'peer', 1, version) as other:
                other.send(group, 100)
                here.expect('datagram 0 100', 'datagram 1 100')
                with Listener(there.engine, 'r0', 1, version, NOBODYS) as late:
                    other.send(NOBODYS if version == '4' else group, 200)
                    if version == '4':
                        late.expect('datagram 0 200')


def groups_of_ours(there):
    tap.equal(there.link()['multicast'], 'listed', 'how groups are heard')
    for address in (OWN, OWN6):
        ping(there.b, address)
    there.engine.admin('addr', 'add', 'fd01::77/64', 'dev', 'r0')
    ping(there.b, 'fd01::77')
    for version in '46':
        pair(there.engine, 'r0', there.peer, 'peer', version)
    roce_groups(there)


def groups_that_are_too_many(there):
    """All is heard then; and when there is room again no more than is asked for."""
    tap.wait_until('the list', lambda: there.link()['multicast'] == 'listed', 10)
    with Listener(there.engine, 'r0', 1, '4', *(f'239.7.7.{number}' for number in range(8))):
        tap.equal(there.link()['multicast'], 'promiscuous', 'with too many')
        for address in (OWN, OWN6):
            ping(there.b, address)
    tap.wait_until('the list', lambda: there.link()['multicast'] == 'listed', 10)
    roce_groups(there)


def groups_without_a_way(there):
    """The port has no room and can't hear all: what it had it keeps, and the log says so."""
    with Listener(there.engine, 'r0', 1, '4', *(f'239.7.7.{number}' for number in range(8))):
        tap.equal(there.link()['multicast'], 'listed', 'with too many')
        tap.true('no room for more groups' in there.engine.log.read_text(), 'the log')
        ping(there.b, OWN6)


tap.add('groups_are_told', on('groups=64,promiscuous=0,busy=1', groups_are_told))
tap.add('groups_of_programs', on('groups=64,promiscuous=0', roce_groups))
tap.add('groups_of_ours', on('groups=64,promiscuous=0', groups_of_ours, kernel=False))
tap.add('groups_that_are_too_many', on('groups=8', groups_that_are_too_many, kernel=False))
tap.add('groups_without_a_way',
        on('groups=8,promiscuous=0', groups_without_a_way, kernel=False))


# Checksums: nobody believes a port, and the kernel is told nothing of them.

def in_csum_errors(space):
    names, values = [line.split() for line in run(
        'ip', 'netns', 'exec', space, 'cat', '/proc/net/snmp').splitlines()
        if line.startswith('Udp:')]
    return int(values[names.index('InCsumErrors')])


def checksums(there):
    frame = roce_datagram(GROUP)
    with Listener(there.engine, 'r0', 1, '4', GROUP) as member:
        for number in range(1, 11):
            send_frame(there.b, 'vb', frame[:24] + bytes([frame[24] ^ number]) + frame[25:])
            tap.wait_until('the count', lambda number=number: there.counter(
                'rx_drop_ipv4_checksum') == number, 20)
        send_frame(there.b, 'vb', frame)
        member.expect('datagram 0 64')
        tap.true(member.said.empty(), 'a datagram with a wrong checksum')
    with inside(there.a, f'''
            import socket
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind(('{OWN}', 4002))
            print('ready', flush=True)
            print(sock.recv(64).decode(), flush=True)
            ''') as listener:
        tap.equal(listener.stdout.readline(), 'ready\n', 'a socket')
        before = in_csum_errors(there.a)
        for what, wrong in ((b'wrong', 1), (b'right', 0)):
            send_frame(there.b, 'vb', udp_to(there, 4002, what, wrong))
        tap.equal(listener.stdout.readline(), 'right\n', 'what the kernel took')
        tap.equal(in_csum_errors(there.a) - before, 1, 'what it did not take')


def folded(data):
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp_to(there, port, what, wrong):
    """Five bytes for the kernel, and a checksum that is right, or off by so much."""
    mac = bytes.fromhex(there.link()['mac'].replace(':', '') + '020000000002')
    addresses = bytes([192, 168, 1, 2, 192, 168, 1, 1])
    udp = struct.pack('>HHHH', 4003, port, 8 + len(what), 0) + what
    total = folded(addresses + struct.pack('>HH', 17, len(udp)) + udp + bytes(len(udp) % 2))
    ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + len(udp), 1, 0x4000, 64, 17, 0) + addresses
    return (mac + b'\x08\x00' + ip[:10] + struct.pack('>H', folded(ip)) + ip[12:] + udp[:6] +
            struct.pack('>H', total ^ wrong) + udp[8:] + bytes(20))


tap.add('checksums', on('seed=1', checksums))


# The cable, and the NIC.

def cable_out_and_in(there):
    with Listener(there.engine, 'r0', 2, '4') as program:
        for _ in range(3):
            for args, event, state in (('link=0', PORT_ERR, 'DOWN'),
                                       ('link=1', PORT_ACTIVE, 'ACTIVE')):
                there.impair(args)
                program.expect(*(f'event {number} {event}' for number in range(2)))
                tap.equal(there.link()['state'], state, args)
                tap.wait_until('the carrier', lambda state=state: ('NO-CARRIER' in run(
                    'ip', '-n', there.a, 'link', 'show', 'r0k')) == (state == 'DOWN'), 10)
    # Connections go on behind it.
    command = f'{ROCADE} --socket {there.engine.socket} link set r0 impair'
    out_and_in = ' && '.join(f'{command} link={val}' for val in (0, 1, 0, 1))
    pair(there.engine, 'r0', there.peer, 'peer', '4', '1', out_and_in)
    there.traffic()


def driver_says_that_its_nic_went(there):
    """Programs are told, the engine lives, and the port can be added again."""
    for _ in range(2):
        with Listener(there.engine, 'r0', 2, '4') as program:
            there.impair('remove=1')
            program.expect(*(f'event {number} {DEVICE_FATAL}' for number in range(2)))
            tap.equal(json.loads(there.engine.admin('-j', 'link')), [], 'links')
            tap.true('r0k' not in run('ip', '-n', there.a, 'link'), 'a netdev without a port')
        tap.true('its NIC is taken away' in there.engine.log.read_text(), 'the log')
        there.add('seed=1')
        there.traffic()


def driver_says_it_in_a_reset(there):
    """From within one that does not end."""
    with Listener(there.engine, 'r0', 1, '4') as program:
        there.impair('reset=1000')
        tap.wait_until('the reset', lambda: 'asks for a reset' in there.engine.log.read_text())
        there.impair('remove=1')
        # The link went first, perhaps.
        said = program.lines(1)
        if said == [f'event 0 {PORT_ERR}']:
            said = program.lines(1)
        tap.equal(said, [f'event 0 {DEVICE_FATAL}'], 'what a program hears')
    there.add('seed=1')
    there.traffic()


tap.add('cable_out_and_in', on('seed=1', cable_out_and_in))
tap.add('driver_says_that_its_nic_went', on('seed=1', driver_says_that_its_nic_went))
tap.add('driver_says_it_in_a_reset', on('queues=3', driver_says_it_in_a_reset))


# PAUSE frames.

def pause_frames(there):
    tap.equal(there.link()['pause'], 'rx', 'as it was added')
    tap.true(' pause rx' in there.engine.admin('-d', 'link'), 'in words')
    for val in ('tx', 'both', 'off'):
        there.engine.admin('link', 'set', 'r0', 'pause', val)
        tap.equal(there.link()['pause'], val, val)
    there.engine.admin('link', 'set', 'r0', 'pause', 'keep')
    tap.equal(there.link()['pause'], 'off', 'kept')
    tap.true('one of keep, off, rx, tx, both' in refused(there, 'link', 'set', 'r0', 'pause', 'x'),
             'what it may be')
    there.traffic()


def pause_frames_of_a_driver_without(there):
    tap.true('pause' not in there.link(), 'what the port has not')
    tap.true('the driver refuses' in refused(there, 'link', 'set', 'r0', 'pause', 'off'), 'set')
    there.engine.admin('link', 'set', 'r0', 'pause', 'keep')
    there.engine.admin('link', 'del', 'r0')
    tap.true('pause off: the driver refuses' in refused(
        there, 'link', 'add', 'r0', 'type', 'port', there.port, 'impair', 'seed=1', 'pause', 'off'),
        'add')
    there.add('seed=1', 'pause', 'keep')
    there.traffic()


tap.add('pause_frames', on('pause=1', pause_frames, more=('pause', 'rx')))
tap.add('pause_frames_of_a_driver_without', on('seed=1', pause_frames_of_a_driver_without))


# Statistics.

def lost_frames(name):
    def test(there):
        run('ip', 'netns', 'exec', there.a, 'ping', '-q', '-c', '100', '-i', '0.005', '-W', '1',
            PEER, check=False)
        tap.true(0 < there.counter(name) <= there.counter('rx_impair_drop'), name)
        for other in lost.values():
            if other != name:
                tap.equal(there.counter(other), 0, other)
    return test


lost = {'missed': 'port_rx_missed_errors', 'buffer': 'port_rx_mbuf_allocation_errors',
        'error': 'port_rx_errors'}
for kind, counter in lost.items():
    tap.add(f'lost_{kind}', on(f'drop=30%,side=rx,lost={kind}', lost_frames(counter), lcores=ONE))

if __name__ == '__main__':
    sys.exit(tap.run())
