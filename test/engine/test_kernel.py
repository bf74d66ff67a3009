#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: a port that the engine has, and the kernel its network on it (key "kernel" of a link).

Method: two namespaces on a veth. In A the engine has va as a DPDK port, and the kernel r0k on that;
in B the kernel has vb, and a second engine RoCE on it.

    A  kernel [r0k]==[rocade]==[va] ----- [vb kernel, rocade]  B

A's own kernel hears what comes by va as well, as it would not with a NIC that is bound: it is told
to leave that alone.

    test_kernel.py ROCADED PAIR
"""
import json
import pathlib
import struct
import subprocess
import sys
import textwrap
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from kernel_node import MAC, OWN, OWN6, PEER, PEER6, Stopped, carrier, leave  # noqa: E402
from kernel_node import of_frames, on_impaired, on_node, ping, tcp_bytes, udp_echo  # noqa: E402
from netns import PAIR, in_csum_errors, pair, run  # noqa: E402


@tap.test
def the_kernel_has_a_netdev():
    def test(node):
        netdev = node.netdev()
        tap.equal(netdev['address'], MAC, 'MAC')
        tap.true('LOWER_UP' in netdev['flags'], netdev)
        for size in (56, 1400):
            for address in (PEER, PEER6):
                ping(node, address, size)
            for address in (OWN, OWN6):
                ping(node, address, size, space=node.b)
        # Programs look for the address of a device among those of the kernel's interfaces.
        tap.true('netdev r0k' in node.engine.admin('-d', 'link'), node.engine.admin('-d', 'link'))
        tap.true(node.counter('to_kernel') > 0 and node.counter('from_kernel') > 0, 'counters')
    on_node(test)


@of_frames
def roce_beside_it():
    def test(node):
        def all_answered():
            with subprocess.Popen(
                    ['ip', 'netns', 'exec', node.a, 'ping', '-i', '0.02', '-c', '100', '-W', '5',
                     PEER], stdout=subprocess.PIPE, text=True) as beside:
                for version in ('4', '6'):
                    pair(node.engine, 'r0', node.peer, 'peer', version, '3')
                return ' 0% packet loss' in beside.communicate()[0]
        # On a busy machine some replies come later than ping waits for them.
        tap.wait_until('all replies', all_answered)
    on_node(test)


@of_frames
def tcp():
    on_node(lambda node: tcp_bytes(node, 64 << 20))


@tap.test
def jumbo_frames():
    """The netdev begins with the port's MTU; its owner may change it, as far as the port can."""
    def test(node):
        tap.equal(node.netdev()['mtu'], 9000, 'MTU')
        ping(node, PEER, 8900)
        ping(node, OWN, 8900, space=node.b)
        tcp_bytes(node, 16 << 20)
        node.ip('link', 'set', 'r0k', 'mtu', '1400')
        node.until(lambda text: 'active_mtu 1024' in text)
        tap.true(json.loads(node.ip('-j', 'link', 'show', 'va'))[0]['mtu'] == 1400, 'of the port')
        node.ip('link', 'set', 'r0k', 'mtu', '60000')
        tap.wait_until('what the port can do', lambda: node.netdev()['mtu'] == 1400)
        ping(node, PEER, 1300)
    on_node(test, 'mtu', '9000')


def hears(space, dev, mark):
    """A program that hears all frames of a netdev, until one has the mark."""
    return subprocess.Popen(
        ['ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
            import socket
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sock.bind(('{dev}', 3))
            sock.settimeout({tap.PATIENCE})
            print('ready', flush=True)
            while True:
                frame, (_, _, kind, _, _) = sock.recvfrom(4096)
                if kind != socket.PACKET_OUTGOING and {mark!r} in frame:
                    print('heard', flush=True)
                    break
            ''')], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def sends(space, dev, frame):
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import socket
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.bind(('{dev}', 0))
        sock.send(bytes.fromhex('{frame.hex()}'))
        '''))


def internet_sum(data):
    """RFC 1071."""
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f'>{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return struct.pack('>H', 0xffff - total)


def sends_without_sum(space, dev, frame, start, offset):
    """A frame whose sender leaves the sum from start on to the netdev (packet(7),
    PACKET_VNET_HDR)."""
    header = struct.pack('=BBHHHH', 1, 0, 0, 0, start, offset)
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import socket
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        sock.setsockopt(263, 15, 1)
        sock.bind(('{dev}', 0))
        sock.send(bytes.fromhex('{(header + frame).hex()}'))
        '''))


@of_frames
def sums_are_left_to_a_port_that_offers_them():
    """TCP's and UDP's, by IPv4 and IPv6; and those that no port knows are worked out."""
    def test(node):
        tcp_bytes(node, 4 << 20)
        udp_echo(node)
        left = node.counter('from_kernel_csum')
        # But for ARP and the like.
        tap.true(left > 200 and left * 2 > node.counter('from_kernel'), left)
        # Of a protocol of its own: nobody but its sender knows where its sum is.
        own = b'own\0\0\0' + 20 * b'\x12\x34' + b'odd'
        whole = own[:4] + internet_sum(own) + own[6:]
        for name, kind in (('unknown', '88b5'), ('tagged', '8100000c88b5')):
            # No sum begins before where an IP header would end, says the kernel.
            head = bytes.fromhex('ffffffffffff0200000000ee' + kind) + bytes(24)
            heard = hears(node.b, 'vb', whole)
            tap.equal(heard.stdout.readline(), 'ready\n', name)
            sends_without_sum(node.a, 'r0k', head + own, len(head), 4)
            tap.equal(heard.stdout.readline(), 'heard\n', name)
            heard.wait()
        tap.equal(node.counter('from_kernel_drop'), 0, 'from_kernel_drop')
        # What is asked for stays so when the port is set up anew.
        node.engine.admin('link', 'set', 'r0', 'impair', 'reset=1')
        before = node.counter('from_kernel_csum')
        udp_echo(node)
        tap.true(node.counter('from_kernel_csum') > before, 'after a reset')
    on_impaired(test, 'csum=1')


@of_frames
def sums_of_a_port_that_offers_them_no_more():
    """It was set up anew, and can't any more: of what was on its way nothing goes out wrong."""
    def test(node):
        udp_echo(node)
        left = node.counter('from_kernel_csum')
        tap.true(left > 0, left)
        flood = subprocess.Popen(
            ['ip', 'netns', 'exec', node.a, sys.executable, '-c', textwrap.dedent(f'''
                import socket, time
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                for count in range(20000):
                    sock.sendto(b'x' * 400, ('{PEER}', 5077))
                    if count % 20 == 0:
                        time.sleep(0.001)
                ''')])
        try:
            tap.wait_until('frames', lambda: node.counter('from_kernel_csum') > left + 1000)
            node.engine.admin('link', 'set', 'r0', 'impair', 'reset=1,unsum=1')
        finally:
            flood.wait()
        left = node.counter('from_kernel_csum')
        udp_echo(node)
        tap.equal(node.counter('from_kernel_csum'), left, 'left to the port')
        tap.equal(in_csum_errors(node.b), 0, 'wrong sums')
        tap.equal(node.counter('from_kernel_drop'), 0, 'from_kernel_drop')
    on_impaired(test, 'csum=1')


@of_frames
def sums_of_a_port_that_offers_none():
    def test(node):
        tcp_bytes(node, 1 << 20)
        udp_echo(node)
        tap.equal(node.counter('from_kernel_csum'), 0, 'left to the port')
        tap.equal(node.counter('from_kernel_drop'), 0, 'from_kernel_drop')
    on_node(test)


def somebody_elses_roce():
    """IPv4 and UDP headers of a packet for port 4791 of an address that is not the device's."""
    ip = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 128, 0, 0, 64, 17, 0, bytes((192, 168, 1, 2)),
                     bytes((192, 168, 1, 77)))
    return ip[:10] + internet_sum(ip) + ip[12:] + \
        struct.pack('>HHHH', 49152, 4791, 108, 0)


@of_frames
def any_frame_goes_through():
    """Both ways: LACP, LLDP, spanning tree, tags, groups, what nobody knows."""
    own = MAC.replace(':', '')
    frames = {
        'LACP': ('0180c2000002', '8809'),
        'LLDP': ('0180c200000e', '88cc'),
        'spanning tree': ('0180c2000000', '0027'),
        'priority': (own, '8100e00088b5'),
        'VLAN': (own, '8100000c88b5'),
        'two tags': (own, '88a800098100000c88b5'),
        'full frame with a tag': (own, '8100000c88b5' + 1480 * '66'),
        'everybody': ('ffffffffffff', '88b5'),
        'IPv4 group': ('01005e0000fb', '88b6'),
        'IPv6 group': ('3333000000fb', '88b6'),
        'RoCE for somebody else': (own, '0800' + somebody_elses_roce().hex()),
    }

    def test(node):
        for number, (name, (to, kind)) in enumerate(frames.items()):
            mark = f'mark {number} of a frame'.encode()
            frame = bytes.fromhex(f'{to}0200000000ee{kind}') + mark
            frame += bytes(max(0, 80 - len(frame)))
            for source, dev, sink, ear in ((node.b, 'vb', node.a, 'r0k'),
                                           (node.a, 'r0k', node.b, 'vb')):
                heard = hears(sink, ear, mark)
                tap.equal(heard.stdout.readline(), 'ready\n', name)
                sends(source, dev, frame)
                tap.equal(heard.stdout.readline(), 'heard\n', f'{name} on {ear}')
                heard.wait()
    on_node(test)


@of_frames
def neighbours_are_the_kernels():
    """ARP and neighbour discovery, both ways: each kernel finds the other."""
    def test(node):
        for address, own in ((PEER, OWN), (PEER6, OWN6)):
            for space, dev, to, mac in ((node.a, 'r0k', address, None), (node.b, 'vb', own, MAC)):
                for side, name in ((node.a, 'r0k'), (node.b, 'vb')):
                    run('ip', '-n', side, 'neigh', 'flush', 'dev', name)
                ping(node, to, 56, space=space)
                found = json.loads(run('ip', '-n', space, '-j', 'neigh', 'show', to, 'dev', dev))
                tap.true(found and found[0].get('lladdr') == (mac or json.loads(run(
                    'ip', '-n', node.b, '-j', 'link', 'show', 'vb'))[0]['address']), found)
    on_node(test)


@of_frames
def vlans():
    """A VLAN of the kernel's on the netdev: full frames, and the tag besides."""
    def test(node):
        for space, dev, number in ((node.a, 'r0k', 1), (node.b, 'vb', 2)):
            done = subprocess.run(['ip', '-n', space, 'link', 'add', 'link', dev, 'name', 'tagged',
                                   'type', 'vlan', 'id', '5'], capture_output=True, text=True,
                                  check=False)
            if 'Unknown device type' in done.stderr:
                node.clear()
                raise tap.Skip('this kernel has no VLAN netdevs')
            tap.equal(done.stderr, '', 'a VLAN netdev')
            run('ip', '-n', space, 'link', 'set', 'tagged', 'mtu', '1500', 'up')
            run('ip', '-n', space, 'addr', 'add', f'10.5.0.{number}/24', 'dev', 'tagged')
            run('ip', '-n', space, 'addr', 'add', f'fd05::{number}/64', 'dev', 'tagged', 'nodad')
        try:
            ping(node, '10.5.0.2', 1472)
            ping(node, '10.5.0.1', 1472, space=node.b)
            ping(node, 'fd05::2', 1452)
            ping(node, 'fd05::1', 1452, space=node.b)
        finally:
            run('ip', '-n', node.b, 'link', 'del', 'tagged')
    on_node(test)


@of_frames
def groups():
    """Programs of the kernel's that are in a group hear it, and are heard, on the netdev."""
    program = textwrap.dedent('''
        import socket, struct, sys
        group, dev, mark = sys.argv[1:4]
        family = socket.AF_INET6 if ':' in group else socket.AF_INET
        index = socket.if_nametoindex(dev)
        sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.settimeout(180)
        if family == socket.AF_INET:
            request = struct.pack('4s4si', socket.inet_aton(group), bytes(4), index)
            ways = socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.IP_MULTICAST_IF
        else:
            request = socket.inet_pton(family, group) + struct.pack('I', index)
            ways = socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.IPV6_MULTICAST_IF
        if mark:
            sock.setsockopt(ways[0], ways[2], request if '.' in group else struct.pack('I', index))
            sock.sendto(mark.encode(), (group, 7777))
        else:
            sock.bind((group, 7777))
            sock.setsockopt(ways[0], ways[1], request)
            print('ready', flush=True)
            print(sock.recv(100).decode(), flush=True)
        ''')

    def test(node):
        for group in ('239.1.2.3', 'ff15::1:2:3'):
            for source, dev, sink, ear in ((node.b, 'vb', node.a, 'r0k'),
                                           (node.a, 'r0k', node.b, 'vb')):
                with subprocess.Popen(
                        ['ip', 'netns', 'exec', sink, sys.executable, '-c', program, group, ear,
                         ''], stdout=subprocess.PIPE, text=True) as heard:
                    tap.equal(heard.stdout.readline(), 'ready\n', group)
                    node.inside(sys.executable, '-c', program, group, dev, f'by {dev}',
                                space=source)
                    tap.equal(heard.stdout.readline(), f'by {dev}\n', f'{group} on {ear}')
    on_node(test)


@of_frames
def drivers_that_are_not_simple():
    """One that takes three packets at a time, has small rings, and is stopped for another MTU."""
    def test(node):
        for mtu in ('1300', '1500'):
            node.ip('link', 'set', 'r0k', 'mtu', mtu)
            node.until(lambda text: f' mtu {mtu} ' in text)
            tap.true(json.loads(node.ip('-j', 'link', 'show', 'va'))[0]['mtu'] == int(mtu), mtu)
            ping(node, PEER, int(mtu) - 100)
            pair(node.engine, 'r0', node.peer, 'peer', '4', '1')
        tcp_bytes(node, 4 << 20)
    on_impaired(test, 'busy=1,burst=3,ring=64')


@of_frames
def what_the_port_lost_is_counted():
    def test(node):
        node.inside('sh', '-c', f'ping -q -c 200 -i 0.005 -W 1 {PEER} || true')
        lost = node.counter('port_rx_missed_errors')
        tap.true(lost > 0 and lost <= node.counter('rx_impair_drop'), lost)
        for name in ('port_rx_errors', 'port_rx_mbuf_allocation_errors', 'port_tx_errors'):
            tap.equal(node.counter(name), 0, name)
    on_impaired(test, 'drop=20%,side=rx')


@of_frames
def a_driver_that_was_reset():
    """Its port is set up anew, and nobody loses a connection."""
    def reset(node, number, args):
        node.engine.admin('link', 'set', 'r0', 'impair', args)
        tap.wait_until('the reset', lambda: node.engine.log.read_text().count(
            'asks for a reset') >= number)
        pair(node.engine, 'r0', node.peer, 'peer', '4', '1')

    def test(node):
        with subprocess.Popen(
                ['ip', 'netns', 'exec', node.a, 'ping', '-i', '0.02', '-c', '200', PEER],
                stdout=subprocess.PIPE, text=True) as beside:
            for number in range(1, 4):
                reset(node, number, 'reset=1')
            beside.send_signal(2)
            said = beside.communicate()[0]
        ping(node, PEER, 1400)
        # One that is not ready at once, as a virtual function whose other half is being reset.
        reset(node, 4, 'reset=4')
        tap.equal(node.engine.log.read_text().count('asks for a reset'), 4, said)
        tap.equal(node.netdev()['mtu'], 1500, 'MTU')
    on_impaired(test, 'seed=1')


@tap.test
def mac_and_state_are_the_kernels():
    def test(node):
        node.ip('link', 'set', 'r0k', 'address', '02:00:00:00:00:0b')
        node.until(lambda text: '02:00:00:00:00:0b' in text)
        tap.equal(json.loads(node.ip('-j', 'link', 'show', 'va'))[0]['address'],
                  '02:00:00:00:00:0b', 'of the port')
        ping(node, PEER, 56)
        pair(node.engine, 'r0', node.peer, 'peer', '4', '1')
        node.ip('link', 'set', 'r0k', 'down')
        node.until(lambda text: 'state DOWN' in text)
        node.ip('link', 'set', 'r0k', 'up')
        node.until(lambda text: 'state ACTIVE' in text)
        # A driver that keeps its MAC: so does the netdev.
        node.engine.admin('link', 'add', 'r1', 'type', 'port', 'net_pcap_mac,iface=lo', 'kernel',
                          'r1k')
        before = json.loads(node.ip('-j', 'link', 'show', 'r1k'))[0]['address']
        node.ip('link', 'set', 'r1k', 'address', '02:00:00:00:00:0c')
        tap.wait_until('its own MAC', lambda: before == json.loads(
            node.ip('-j', 'link', 'show', 'r1k'))[0]['address'])
        tap.true(before in node.engine.admin('-d', 'link'), 'the MAC that it tells')
        node.engine.admin('link', 'del', 'r1')
        # The cable: the kernel is told. A packet socket knows none, a TAP as a port does.
        node.engine.admin('link', 'add', 'r1', 'type', 'port', 'net_tap_cable,iface=cable',
                          'kernel', 'r1k')
        node.until(lambda text: text.count('state ACTIVE') == 2)
        for way, state, there in (('down', 'state DOWN', True),
                                  ('up', 'link r1/1 state ACTIVE', False)):
            node.ip('link', 'set', 'cable', way)
            node.until(lambda text: state in text)
            tap.wait_until('the carrier', lambda: there == (
                'NO-CARRIER' in node.ip('link', 'show', 'r1k')))
    on_node(test)


@of_frames
def what_it_says_of_the_rest():
    def test(node):
        for words, what in (
                (('addr', 'add', '10.0.0.1/24', 'dev', 'r0'), 'use ip addr'),
                (('link', 'set', 'r0', 'mtu', '1500'), 'ip link set r0k mtu 1500'),
                (('link', 'set', 'r0', 'gateway', '10.0.0.1'), 'with kernel r0k'),
                (('link', 'add', 'r1', 'type', 'port', 'net_af_packet_va'), 'is the port of r0'),
                (('link', 'add', 'r1', 'type', 'port', 'net_null0', 'kernel', 'r0k'),
                 'kernel r0k'),
                (('link', 'add', 'r1', 'type', 'port', 'net_null0', 'kernel', 'lo'), 'kernel lo'),
                (('link', 'add', 'r1', 'type', 'port', 'net_null0', 'kernel', 'a/b'), 'letters'),
                (('link', 'add', 'r1', 'type', 'port', 'net_null0', 'kernel', 'r1k', 'address',
                  '10.0.0.1/24'), 'with kernel r1k')):
            done = subprocess.run([str(pathlib.Path(__file__).parents[2] / 'usertools/rocade'),
                                   '--socket', node.engine.socket, *words], capture_output=True,
                                  text=True, check=False)
            tap.true(done.returncode and what in done.stdout + done.stderr,
                     f'{words}: {done.stdout}{done.stderr}')
        ping(node, PEER, 56)
    on_node(test)


def carrier_ticks(node):
    """Its processor time, in hundredths of a second."""
    fields = (carrier(node) / 'stat').read_text().rsplit(')', 1)[1].split()
    return int(fields[11]) + int(fields[12])


@tap.test
def it_goes_and_comes_back():
    def test(node):
        for _ in range(3):
            node.engine.admin('link', 'del', 'r0')
            tap.true('r0k' not in node.ip('link'), 'a netdev without the link')
            node.add()
            ping(node, PEER, 56)
        # A netdev that somebody deletes takes the link down; nobody looks for it again and again.
        node.ip('link', 'del', 'r0k')
        node.until(lambda text: 'state DOWN' in text)
        before, began = carrier_ticks(node), time.monotonic()
        time.sleep(1)
        tap.true(carrier_ticks(node) - before < 30 * (time.monotonic() - began),
                 'the carrier is busy with nothing')
        node.engine.admin('link', 'del', 'r0')
        node.add()
        # A netdev that somebody made for it stays, with its addresses.
        node.engine.admin('link', 'del', 'r0')
        node.ip('tuntap', 'add', 'r0k', 'mode', 'tap')
        node.add()
        ping(node, PEER, 56)
        node.engine.admin('link', 'del', 'r0')
        tap.true(OWN in node.ip('addr', 'show', 'r0k'), 'an address that went')
    on_node(test)


def flood(space, to):
    """A kernel that sends as fast as it can."""
    return subprocess.Popen(
        ['ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
            import socket
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            while True:
                try:
                    sock.sendto(bytes(1000), ('{to}', 9))
                except OSError:
                    pass
            ''')])


@of_frames
def floods():
    """Both ways at once: RoCE goes on, and nothing is lost of it that is not sent again."""
    def test(node):
        # Who is in the middle of a flood has found its neighbours before.
        for address in (PEER, PEER6):
            ping(node, address, 56)
        floods_ = [flood(node.a, PEER), flood(node.b, OWN)]
        try:
            for version in ('4', '6'):
                pair(node.engine, 'r0', node.peer, 'peer', version, '2')
        finally:
            for process in floods_:
                process.kill()
                process.wait()
        tap.wait_until('room', lambda: not subprocess.run(
            ['ip', 'netns', 'exec', node.a, 'ping', '-c', '1', '-W', '1', PEER],
            capture_output=True, check=False).returncode)
    on_node(test)


@of_frames
def a_kernel_that_stops_reading():
    """What is for it finds its ring full and is lost; RoCE does not wait."""
    def test(node):
        # Neighbours are found by the kernel, which is not to be asked then.
        for address in (PEER, PEER6):
            ping(node, address, 56)
        sends_some = textwrap.dedent(f'''
            import socket
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for _ in range(300):
                sock.sendto(bytes(100), ('{OWN}', 9))
            ''')
        with Stopped(node) as stopped:
            tap.wait_until('a full ring', lambda: node.inside(
                sys.executable, '-c', sends_some, space=node.b) == '' and
                node.counter('to_kernel_drop') > 0)
            for version in ('4', '6'):
                pair(node.engine, 'r0', node.peer, 'peer', version, '1')
            tap.true(stopped.holds(), 'it went on')
        ping(node, PEER, 56)
    on_node(test)


@of_frames
def a_shell_beside_roce():
    """RoCE as much as it can be, and a program that answers line by line, as ssh does: all lines
    come back while RoCE goes on."""
    def test(node):
        loads = [subprocess.Popen([PAIR, node.engine.socket, 'r0', node.peer.socket, 'peer', '4',
                                   '1000000'], stdout=subprocess.DEVNULL) for _ in range(3)]
        server = subprocess.Popen(
            ['ip', 'netns', 'exec', node.a, sys.executable, '-c', textwrap.dedent(f'''
                import socket
                door = socket.create_server(('{OWN}', 5002))
                print('ready', flush=True)
                conn = door.accept()[0].makefile('rwb', 0)
                for line in conn:
                    conn.write(line.upper())
                ''')], stdout=subprocess.PIPE, text=True)
        try:
            tap.equal(server.stdout.readline(), 'ready\n', 'the server')
            before = node.counter('rcvd_pkts')
            tap.wait_until('load', lambda: node.counter('rcvd_pkts') > before + 1000)
            before = node.counter('rcvd_pkts')
            said = node.inside(sys.executable, '-c', textwrap.dedent(f'''
                import socket
                sock = socket.create_connection(('{OWN}', 5002), {tap.PATIENCE})
                sock.settimeout({tap.PATIENCE})
                conn = sock.makefile('rwb', 0)
                for number in range(200):
                    conn.write(b'line %d\\n' % number)
                    assert conn.readline() == b'LINE %d\\n' % number
                print('all')
                '''), space=node.b)
            tap.equal(said, 'all\n', 'lines')
            tap.true(node.counter('rcvd_pkts') > before + 1000, 'RoCE meanwhile')
            tap.equal([load.poll() for load in loads], [None] * 3, 'RoCE at its end')
        finally:
            for process in (server, *loads):
                process.kill()
                process.wait()
    on_node(test)


@tap.test
def the_engines_end_well():
    leave()


if __name__ == '__main__':
    sys.exit(tap.run())
