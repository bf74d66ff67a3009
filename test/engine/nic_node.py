# SPDX-License-Identifier: BSD-3-Clause
"""Two namespaces on a veth, for tests of what drivers do: in A an engine has va as a DPDK port,
behind net_impair, and the kernel may have r0k on that; in B the kernel has vb, and a second engine
RoCE on it.

    A  kernel [r0k]==[rocade]==[net_impair]==[va] ----- [vb kernel, rocade]  B

A's own kernel hears what comes by va as well, as it would not with a NIC that is bound: it is told
to leave that alone.

Tests in a row that want the same engines have the same ones: they get a port of their own, and the
engines of one that fails go with it.
"""
import contextlib
import json
import pathlib
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from netns import Engine, Veth, pair, run, stop_all  # noqa: E402

OWN, PEER = '192.168.1.1', '192.168.1.2'
OWN6, PEER6 = 'fd01::1', 'fd01::2'
TWO = ('--lcores', '0@(0-1),1@0,2@1')
ONE = ('--lcores', '0@0,1@1')
JUMBO = 'net_af_packet_va,iface=va,framesz=9216,blocksz=36864,framecnt=512'
PORT = 'net_af_packet_va,iface=va,framesz=4480,blocksz=143360,framecnt=512'


class Node:
    """An engine on va, with a kernel's netdev, and its peer."""

    def __init__(self, veth, folder, lcores, idle, mtu):
        self.a, self.b, self.mtu = veth.a, veth.b, mtu
        self.said, self.undo = 0, []
        self.port = JUMBO if mtu > 4096 else PORT
        self.engine = Engine(folder, 'a', f'idle = {idle}\n', veth.a, eal=lcores)
        self.peer = Engine(folder, 'b',
                           '[device peer]\ntype = netdev\nnetdev = vb\nmode = packet\n', veth.b)
        tap.true(self.engine.up() and self.peer.up(),
                 self.engine.log.read_text() + self.peer.log.read_text())

    def log(self):
        """What the engine has said since the test began."""
        return self.engine.log.read_text()[self.said:]

    def clear(self):
        """As before a test: without its port, and nobody knows where that was."""
        while self.undo:
            self.undo.pop()()
        for link in json.loads(self.engine.admin('-j', 'link')):
            self.engine.admin('link', 'del', link['ifname'])
        if 'r0k' in run('ip', '-n', self.a, 'link'):
            run('ip', '-n', self.a, 'link', 'del', 'r0k')
        run('ip', '-n', self.a, 'link', 'set', 'va', 'mtu', str(self.mtu), 'promisc', 'off',
            'allmulticast', 'off')
        run('ip', '-n', self.b, 'neigh', 'flush', 'dev', 'vb')
        self.said = len(self.engine.log.read_text())

    def peer_again(self):
        """Its device, by the kernel's addresses, as it was in the beginning."""
        self.peer.admin('link', 'del', 'peer')
        for address in (f'{PEER}/24', f'{PEER6}/64'):
            run('ip', '-n', self.b, 'addr', 'add', address, 'dev', 'vb',
                *(['nodad'] if ':' in address else []))
        self.peer.admin('link', 'add', 'peer', 'type', 'netdev', 'vb', 'mode', 'packet')

    def add(self, impair, *more, kernel=True):
        """A port that the kernel has a part in, or one whose addresses are the engine's."""
        whose = ('kernel', 'r0k') if kernel else ('address', f'{OWN}/24,{OWN6}/64')
        done = self.engine.admin('link', 'add', 'r0', 'type', 'port', self.port, 'mtu',
                                 str(self.mtu), 'impair', impair, *whose, *more)
        for address in (f'{OWN}/24', f'{OWN6}/64') if kernel else ():
            run('ip', '-n', self.a, 'addr', 'add', address, 'dev', 'r0k',
                *(['nodad'] if ':' in address else []))
        tap.wait_until('the link', lambda: all(
            word in text for text in [self.engine.admin('-d', 'link')]
            for word in (OWN, OWN6, 'state ACTIVE')))
        return done

    def link(self):
        return json.loads(self.engine.admin('-j', 'link'))[0]

    def steering(self):
        return self.link()['steering']

    def impair(self, args):
        self.engine.admin('link', 'set', 'r0', 'impair', args)

    def counter(self, name):
        counters = json.loads(self.engine.admin('-j', 'statistic'))[0]
        return counters.get('counters', counters)[name]

    def traffic(self, rounds='1'):
        """Both ways, by connections of either version, and what the kernel says beside it."""
        before = self.counter('rx_handover')
        for version in ('4', '6', '4', '6'):
            pair(self.engine, 'r0', self.peer, 'peer', version, rounds)
        for address in (PEER, PEER6):
            # On a busy machine some replies come later than ping waits for them.
            tap.wait_until('a ping', lambda address=address: ' 3 received' in run(
                'ip', 'netns', 'exec', self.a, 'ping', '-c', '3', '-i', '0.02', '-W', '5',
                address, check=False))
        return self.counter('rx_handover') - before

    def stop(self):
        stop_all((self.engine, self.peer))


@contextlib.contextmanager
def cable(mtu):
    """The veth, whose end va is left alone by A's kernel."""
    veth = Veth(mtu)
    try:
        for address in (f'{OWN}/24', f'{OWN6}/64'):
            run('ip', '-n', veth.a, 'addr', 'del', address, 'dev', 'va')
        for name, val in (('ipv6/conf/va/disable_ipv6', 1), ('ipv4/conf/va/arp_ignore', 1),
                          ('ipv4/conf/va/rp_filter', 1)):
            run('ip', 'netns', 'exec', veth.a, 'sh', '-c', f'echo {val} > /proc/sys/net/{name}')
        whole_checksums(veth.b, 'vb')
        yield veth
    finally:
        veth.close()


class Place:
    """Where tests with the same wishes are."""

    def __init__(self, lcores=TWO, idle='auto', mtu=1500):
        with contextlib.ExitStack() as stack:
            veth = stack.enter_context(cable(mtu))
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            self.node = Node(veth, folder, lcores, idle, mtu)
            stack.callback(self.node.stop)
            self.stack = stack.pop_all()


places = []


def at(**wishes):
    """The engines of the test before, when it had the same wishes. Until then they keep its port:
    engines end with one, too."""
    if places and places[0][0] != wishes:
        try:
            leave()
        except AssertionError as err:
            raise AssertionError(f'the engines of the tests before: {err}') from err
    if places:
        places[0][1].node.clear()
    else:
        places.append((wishes, Place(**wishes)))
    return places[0][1].node


def leave():
    while places:
        places.pop()[1].stack.close()


def whole_checksums(space, dev):
    """A veth leaves checksums to a NIC that it is not, and a packet socket sees them unfinished."""
    run('ip', 'netns', 'exec', space, sys.executable, '-c', textwrap.dedent(f'''
        import array, fcntl, socket, struct
        stxcsum, siocethtool = 0x17, 0x8946
        value = array.array('B', struct.pack('II', stxcsum, 0))
        fcntl.ioctl(socket.socket(), siocethtool,
                    struct.pack('16sP', {dev.encode()!r}, value.buffer_info()[0]))
        '''))


def on(impair, test, more=(), kernel=True, **wishes):
    def body():
        try:
            there = at(**wishes)
            there.add(impair, *more, kernel=kernel)
            test(there)
        except BaseException as err:
            leave()
            if 'this build has no net_impair' in str(err):
                raise tap.Skip('no net_impair in this build') from None
            raise
    return body
