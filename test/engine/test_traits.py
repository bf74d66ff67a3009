#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the engine works with what drivers do differently: frames in several buffers, tags that the
port takes off, a cable that comes out, a NIC that goes, PAUSE frames.

Method: net_impair has these traits before a port (nic_node.py), which is another one for each test
of the same engines; programs tell what they hear of it (nic_heard.py).

    test_traits.py ROCADED PAIR LISTEN
"""
import json
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from netns import PAIR, ROCADE, in_csum_errors, pair, rocade, run  # noqa: E402
from nic_heard import GROUP, Listener, folded, inside, own_mac, ping, roce_datagram, send_frames, \
    tags_of_the_kernels, talk_in_a_vlan, wrong_checksums  # noqa: E402
from nic_node import ONE, OWN, OWN6, PEER, PEER6, leave, on  # noqa: E402

DEVICE_FATAL, PORT_ACTIVE, PORT_ERR = 8, 9, 10


def refused(there, *words):
    said, status = rocade('--socket', there.engine.socket, *words)
    tap.true(status != 0, words)
    return said


# Frames in several buffers.

def segments(there):
    there.traffic()
    for address, size in ((PEER, 1400), (PEER6, 1400), (PEER, 0)):
        ping(there.a, address, size)
    tap.equal(there.counter('rx_drop_segments'), 0, 'frames that were not put together')


def segments_of_jumbo_frames(there):
    tap.equal(there.link()['mtu'], 9000, 'MTU')
    for address in (PEER, PEER6):
        ping(there.a, address, 8900)
    for address in (OWN, OWN6):
        ping(there.b, address, 8900)
    there.traffic()


tap.add('segments_of_jumbo_frames', on('segment=4096', segments_of_jumbo_frames, mtu=9000))


def groups_and_pieces(there):
    """A datagram to members on both lcores, and a longer frame that begins like one: too long for
    any buffer, it is no RoCE, and goes to the kernel as a whole."""
    frame = roce_datagram(GROUP)
    with Listener(there.engine, 'r0', 4, '4', GROUP) as members:
        before = there.counter('to_kernel')
        # They come to members before what is sent after them, if they do.
        send_frames(there.b, 'vb', *[frame + bytes(8000)] * 20)
        tap.wait_until('the kernel to have them', lambda: there.counter(
            'to_kernel') >= before + 20)
        send_frames(there.b, 'vb', frame)
        members.expect(*(f'datagram {number} 64' for number in range(4)))
    there.traffic()


tap.add('groups_and_pieces', on('segment=2048', groups_and_pieces, mtu=9000))


# Between the bytes of BTH, of IPv4 and of IPv6.
for cut in (48, 66):
    tap.add(f'segments_of_{cut}', on(f'segment={cut}', segments))
    tap.add(f'segments_of_{cut}_for_the_engine_alone',
            on(f'segment={cut}', lambda there: [
                [pair(there.engine, 'r0', there.peer, 'peer', version) for version in '46'],
                [ping(there.b, address, 1400) for address in (OWN, OWN6)]], kernel=False))


# Tags that the port takes off.

def tags_of_ours(there):
    """An address is not there for who has another tag, or none."""
    talk_in_a_vlan(there)
    for number, tag in enumerate((b'', struct.pack('>HH', 0x8100, 6)), 1):
        send_frames(there.b, 'vb', b'\xff' * 6 + bytes.fromhex('020000000077') + tag +
                    bytes.fromhex('0806' '0001080006040001' '020000000077' 'c0a80507') + bytes(6) +
                    bytes([192, 168, 5, 1]) + bytes(20))
        tap.wait_until('the count', lambda number=number: there.counter(
            'rx_drop_vlan') == number)


for name, args in (('', 'strip=1'), ('_in_pieces', 'strip=1,segment=48'), ('_left', 'seed=1')):
    tap.add(f'tags_of_the_kernels{name}', on(args, tags_of_the_kernels))
    tap.add(f'tags_of_ours{name}', on(args, tags_of_ours, kernel=False))


# Checksums: nobody believes a port, and the kernel is told nothing of them.

def checksums(there):
    frame = roce_datagram(GROUP)
    with Listener(there.engine, 'r0', 1, '4', GROUP) as member:
        send_frames(there.b, 'vb', *wrong_checksums(frame, 10))
        tap.wait_until('the count', lambda: there.counter('rx_drop_ipv4_checksum') == 10)
        send_frames(there.b, 'vb', frame)
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
            send_frames(there.b, 'vb', udp_to(there, 4002, what, wrong))
        tap.equal(listener.stdout.readline(), 'right\n', 'what the kernel took')
        tap.equal(in_csum_errors(there.a) - before, 1, 'what it did not take')


def udp_to(there, port, what, wrong):
    """Five bytes for the kernel, and a checksum that is right, or off by so much."""
    mac = own_mac(there) + bytes.fromhex('020000000002')
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
                    'ip', '-n', there.a, 'link', 'show', 'r0k')) == (state == 'DOWN'))
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
        tap.true('its NIC is taken away' in there.log(), 'the log')
        there.add('seed=1')
        there.traffic()


def link_goes_in_use(there):
    """Programs are told, in the midst of traffic; the engine lives, and the port can be added
    again, beside programs that have not let go of it yet."""
    for _ in range(2):
        with Listener(there.engine, 'r0', 2, '4', GROUP) as program, subprocess.Popen(
                [PAIR, there.engine.socket, 'r0', there.peer.socket, 'peer', '4', '1000000'],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as talks:
            try:
                more = there.counter('sent_pkts') + 1000
                tap.wait_until('traffic', lambda more=more: there.counter('sent_pkts') > more)
                there.engine.admin('link', 'del', 'r0')
                program.expect(*(f'event {number} {DEVICE_FATAL}' for number in range(2)))
                tap.equal(json.loads(there.engine.admin('-j', 'link')), [], 'links')
                tap.true('r0k' not in run('ip', '-n', there.a, 'link'), 'a netdev without a port')
                there.add('seed=1')
                there.traffic()
            finally:
                talks.kill()


def driver_says_it_in_a_reset(there):
    """From within one that does not end."""
    with Listener(there.engine, 'r0', 1, '4') as program:
        there.impair('reset=1000')
        tap.wait_until('the reset', lambda: 'asks for a reset' in there.log())
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
tap.add('link_goes_in_use', on('seed=1', link_goes_in_use))
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

tap.add('the_engines_end_well', leave)

if __name__ == '__main__':
    sys.exit(tap.run())
