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
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import confine  # noqa: E402
import tap  # noqa: E402
from netns import Engine, Veth, pair, run  # noqa: E402
from nic_node import whole_checksums  # noqa: E402

MAC = '02:00:00:00:00:0a'
OWN, PEER = '192.168.1.1', '192.168.1.2'
OWN6, PEER6 = 'fd01::1', 'fd01::2'


class Node:
    """What a test works with: the two namespaces, and an engine in each."""

    def __init__(self, veth, folder):
        self.a, self.b = veth.a, veth.b
        self.engine = Engine(folder, 'a', '', veth.a)
        self.peer = Engine(folder, 'b',
                           '[device peer]\ntype = netdev\nnetdev = vb\nmode = packet\n', veth.b)
        self.said = ''
        # Frames of 9000 bytes and more, in blocks that some of them fill.
        self.port = 'net_af_packet_va,iface=va,framesz=9216,blocksz=36864,framecnt=512'

    def add(self, *more):
        self.engine.admin('link', 'add', 'r0', 'type', 'port', self.port, 'kernel', 'r0k', *more)
        for address, prefix in ((OWN, 24), (OWN6, 64)):
            self.ip('addr', 'add', f'{address}/{prefix}', 'dev', 'r0k',
                    *(['nodad'] if prefix == 64 else []))
        self.until(lambda text: OWN in text and OWN6 in text and 'state ACTIVE' in text)

    def clear(self):
        """As before add()."""
        for link in json.loads(self.engine.admin('-j', 'link')):
            self.engine.admin('link', 'del', link['ifname'])
        if 'r0k' in self.ip('link'):
            self.ip('link', 'del', 'r0k')
        for words in (('address', MAC), ('mtu', '9000')):
            self.ip('link', 'set', 'va', *words)

    def ip(self, *words):
        return run('ip', '-n', self.a, *words)

    def inside(self, *words, space=None):
        return run('ip', 'netns', 'exec', space or self.a, *words)

    def netdev(self):
        return json.loads(self.ip('-j', '-d', 'link', 'show', 'r0k'))[0]

    def until(self, condition):
        def holds():
            self.said = self.engine.admin('-d', 'link')
            return condition(self.said)
        try:
            tap.wait_until('the link', holds, 30)
        except AssertionError as err:
            raise AssertionError(f'{err}: {self.said}{self.engine.log.read_text()}') from err

    def counter(self, name):
        for link in json.loads(self.engine.admin('-j', 'statistic')):
            if link['ifname'] == 'r0':
                return link['counters'][name] if 'counters' in link else link[name]
        raise AssertionError('r0 has no statistics')

    def stop(self):
        for engine in (self.engine, self.peer):
            tap.equal(engine.stop(), 0, engine.log.read_text())


class Place:
    """Where a node stands: one for all tests, until one fails."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            veth = Veth(9000)
            stack.callback(veth.close)
            for dev, address in (('va', f'{OWN}/24'), ('va', f'{OWN6}/64')):
                run('ip', '-n', veth.a, 'addr', 'del', address, 'dev', dev)
            run('ip', '-n', veth.a, 'link', 'set', 'va', 'address', MAC)
            for name, val in (('ipv6/conf/va/disable_ipv6', 1), ('ipv4/conf/va/arp_ignore', 1),
                              ('ipv4/conf/va/rp_filter', 1)):
                run('ip', 'netns', 'exec', veth.a, 'sh', '-c',
                    f'echo {val} > /proc/sys/net/{name}')
            whole_checksums(veth.b, 'vb')
            self.node = Node(veth, stack.enter_context(tempfile.TemporaryDirectory()))
            stack.callback(self.node.stop)
            tap.true(self.node.engine.up() and self.node.peer.up(),
                     self.node.engine.log.read_text() + self.node.peer.log.read_text())
            self.stack = stack.pop_all()


places = []


def on_node(test, *more):
    if not places:
        places.append(Place())
    node = places[0].node
    try:
        node.add(*more)
        test(node)
        node.clear()
    except BaseException:
        leave()
        raise


def on_impaired(test, args):
    """A driver that does more than those at hand."""
    try:
        on_node(test, 'impair', args)
    except AssertionError as err:
        if 'this build has no net_impair' in str(err):
            raise tap.Skip('no net_impair in this build') from None
        raise


def leave():
    while places:
        places.pop().stack.close()


def of_frames(func):
    """A test of what is done with frames: the same whatever rights the engine has."""
    return func if confine.OPTIONS else tap.test(func)


def ping(node, address, size, count=3, space=None):
    said = node.inside('ping', '-c', str(count), '-i', '0.02', '-W', '2', '-M', 'do', '-s',
                       str(size), address, space=space)
    tap.true(f' {count} received' in said and 'DUP' not in said, said)


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
        beside = subprocess.Popen(
            ['ip', 'netns', 'exec', node.a, 'ping', '-i', '0.05', '-c', '100', PEER],
            stdout=subprocess.PIPE, text=True)
        for version in ('4', '6'):
            pair(node.engine, 'r0', node.peer, 'peer', version, '3')
        beside.send_signal(2)
        said = beside.communicate()[0]
        tap.true(re.search(r' 0(\.\d+)?% packet loss', said), said)
    on_node(test)


def tcp_bytes(node, count):
    """Through r0k and back, compared."""
    server = subprocess.Popen(
        ['ip', 'netns', 'exec', node.b, sys.executable, '-c', textwrap.dedent(f'''
            import hashlib, socket
            door = socket.create_server(('{PEER}', 5001))
            print('ready', flush=True)
            conn = door.accept()[0]
            seen = hashlib.sha256()
            while got := conn.recv(1 << 20):
                seen.update(got)
            conn.send(seen.digest())
            ''')], stdout=subprocess.PIPE, text=True)
    tap.equal(server.stdout.readline(), 'ready\n', 'the server')
    said = node.inside(sys.executable, '-c', textwrap.dedent(f'''
        import hashlib, os, socket
        data = os.urandom(1 << 20)
        seen = hashlib.sha256()
        conn = socket.create_connection(('{PEER}', 5001), 20)
        for _ in range({count >> 20}):
            conn.sendall(data)
            seen.update(data)
        conn.shutdown(socket.SHUT_WR)
        print(conn.recv(64) == seen.digest())
        '''))
    server.wait(20)
    tap.equal(said, 'True\n', 'what arrived')


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
        tap.wait_until('what the port can do', lambda: node.netdev()['mtu'] == 1400, 10)
        ping(node, PEER, 1300)
    on_node(test, 'mtu', '9000')


def hears(space, dev, mark):
    """A program that hears all frames of a netdev, until one has the mark."""
    return subprocess.Popen(
        ['ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
            import socket
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            sock.bind(('{dev}', 3))
            sock.settimeout(20)
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


@of_frames
def any_frame_goes_through():
    """Both ways: LACP, spanning tree, tags, groups, what nobody knows."""
    own = MAC.replace(':', '')
    frames = {
        'LACP': ('0180c2000002', '8809'),
        'spanning tree': ('0180c2000000', '0027'),
        'VLAN': (own, '8100000c88b5'),
        'two tags': (own, '88a800098100000c88b5'),
        'everybody': ('ffffffffffff', '88b5'),
        'IPv6 group': ('3333000000fb', '88b6'),
    }

    def test(node):
        for number, (name, (to, kind)) in enumerate(frames.items()):
            mark = f'mark {number} of a frame'.encode()
            frame = bytes.fromhex(f'{to}0200000000ee{kind}') + mark + bytes(60)
            for source, dev, sink, ear in ((node.b, 'vb', node.a, 'r0k'),
                                           (node.a, 'r0k', node.b, 'vb')):
                heard = hears(sink, ear, mark)
                tap.equal(heard.stdout.readline(), 'ready\n', name)
                sends(source, dev, frame)
                tap.equal(heard.stdout.readline(), 'heard\n', f'{name} on {ear}')
                heard.wait()
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
    def test(node):
        with subprocess.Popen(
                ['ip', 'netns', 'exec', node.a, 'ping', '-i', '0.02', '-c', '200', PEER],
                stdout=subprocess.PIPE, text=True) as beside:
            for _ in range(3):
                node.engine.admin('link', 'set', 'r0', 'impair', 'reset=1')
                pair(node.engine, 'r0', node.peer, 'peer', '4', '1')
            beside.send_signal(2)
            said = beside.communicate()[0]
        ping(node, PEER, 1400)
        # One that is not ready at once, as a virtual function whose other half is being reset.
        node.engine.admin('link', 'set', 'r0', 'impair', 'reset=4')
        pair(node.engine, 'r0', node.peer, 'peer', '4', '1')
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
            node.ip('-j', 'link', 'show', 'r1k'))[0]['address'], 10)
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
                'NO-CARRIER' in node.ip('link', 'show', 'r1k')), 10)
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
    """Processor time of the thread that carries, in hundredths of a second."""
    for task in pathlib.Path(f'/proc/{node.engine.process.pid}/task').iterdir():
        if (task / 'comm').read_text() == 'rocade-kernel\n':
            fields = (task / 'stat').read_text().rsplit(')', 1)[1].split()
            return int(fields[11]) + int(fields[12])
    raise AssertionError('nobody carries')


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
        before = carrier_ticks(node)
        time.sleep(1)
        tap.true(carrier_ticks(node) - before < 30, 'the carrier is busy with nothing')
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


@tap.test
def the_engines_end_well():
    leave()


if __name__ == '__main__':
    sys.exit(tap.run())
