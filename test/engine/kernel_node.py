# SPDX-License-Identifier: BSD-3-Clause
"""A machine whose port the engine has, and the kernel its network on it, with a peer: what the
tests of that work with. The topology is in test_kernel.py; ROCADED and PAIR are its arguments."""
import contextlib
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import confine  # noqa: E402
import tap  # noqa: E402
from netns import Engine, run, stop_all  # noqa: E402
from nic_node import JUMBO, OWN, OWN6, PEER, PEER6, cable  # noqa: E402

MAC = '02:00:00:00:00:0a'


class Node:
    """What a test works with: the two namespaces, and an engine in each."""

    def __init__(self, veth, folder):
        self.a, self.b = veth.a, veth.b
        self.engine = Engine(folder, 'a', '', veth.a)
        self.peer = Engine(folder, 'b',
                           '[device peer]\ntype = netdev\nnetdev = vb\nmode = packet\n', veth.b)
        self.said = ''
        # Frames of 9000 bytes and more, in blocks that some of them fill.
        self.port = JUMBO

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

    def inside(self, *words, space=None, **how):
        return run('ip', 'netns', 'exec', space or self.a, *words, **how)

    def netdev(self):
        return json.loads(self.ip('-j', '-d', 'link', 'show', 'r0k'))[0]

    def until(self, condition):
        def holds():
            self.said = self.engine.admin('-d', 'link')
            return condition(self.said)
        try:
            tap.wait_until('the link', holds)
        except AssertionError as err:
            raise AssertionError(f'{err}: {self.said}{self.engine.log.read_text()}') from err

    def counter(self, name):
        for link in json.loads(self.engine.admin('-j', 'statistic')):
            if link['ifname'] == 'r0':
                return link['counters'][name] if 'counters' in link else link[name]
        raise AssertionError('r0 has no statistics')

    def stop(self):
        stop_all((self.engine, self.peer))


class Place:
    """Where a node stands: one for all tests, until one fails."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            veth = stack.enter_context(cable(9000))
            run('ip', '-n', veth.a, 'link', 'set', 'va', 'address', MAC)
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
    def answered():
        said = node.inside('ping', '-c', str(count), '-i', '0.02', '-W', '5', '-M', 'do', '-s',
                           str(size), address, space=space, check=False)
        tap.true('DUP' not in said, said)
        return f' {count} received' in said
    # On a busy machine some replies come later than ping waits for them.
    tap.wait_until(f'{address} to answer', answered)


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
        conn = socket.create_connection(('{PEER}', 5001), {tap.PATIENCE})
        for _ in range({count >> 20}):
            conn.sendall(data)
            seen.update(data)
        conn.shutdown(socket.SHUT_WR)
        print(conn.recv(64) == seen.digest())
        '''))
    server.wait(tap.PATIENCE)
    tap.equal(said, 'True\n', 'what arrived')


def udp_echo(node):
    """Of all lengths that matter to sums, by both versions: a kernel drops those that are wrong."""
    server = subprocess.Popen(
        ['ip', 'netns', 'exec', node.b, sys.executable, '-c', textwrap.dedent('''
            import socket
            sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            sock.bind(('::', 5003))
            print('ready', flush=True)
            while True:
                data, peer = sock.recvfrom(2000)
                sock.sendto(data[::-1], peer)
            ''')], stdout=subprocess.PIPE, text=True)
    try:
        tap.equal(server.stdout.readline(), 'ready\n', 'the server')
        said = node.inside(sys.executable, '-c', textwrap.dedent(f'''
            import os, socket
            for family, peer in ((socket.AF_INET, '{PEER}'), (socket.AF_INET6, '{PEER6}')):
                sock = socket.socket(family, socket.SOCK_DGRAM)
                sock.settimeout(5)
                before = []
                for size in (0, 1, 2, 17, 18, 19, 500, 1399, 1400):
                    data = os.urandom(size)
                    for _ in range({tap.PATIENCE} // 5):
                        sock.sendto(data, (peer, 5003))
                        try:
                            # What was asked for twice may be answered twice.
                            while (got := sock.recv(2000)) in before:
                                pass
                            break
                        except TimeoutError:
                            got = None
                    assert got == data[::-1], (peer, size, got)
                    before.append(got)
            print('all')
            '''))
        tap.equal(said, 'all\n', 'datagrams')
    finally:
        server.kill()
        server.wait()


def carrier(node):
    """The thread that carries, in /proc."""
    for task in pathlib.Path(f'/proc/{node.engine.process.pid}/task').iterdir():
        if (task / 'comm').read_text() == 'rocade-kernel\n':
            return task
    raise AssertionError('nobody carries')


class Stopped:
    """The thread that carries to the kernel, held in the middle of what it does."""
    SEIZE, INTERRUPT, DETACH, ANY_THREAD = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, node):
        self.task = carrier(node)
        self.tid = int(self.task.name)
        self.libc = ctypes.CDLL(None, use_errno=True)

    def ask(self, request):
        return self.libc.ptrace(ctypes.c_long(request), ctypes.c_long(self.tid), None, None)

    def __enter__(self):
        if self.ask(self.SEIZE):
            raise tap.Skip(f'no thread can be held here: {os.strerror(ctypes.get_errno())}')
        self.ask(self.INTERRUPT)
        os.waitpid(self.tid, self.ANY_THREAD)
        return self

    def holds(self):
        return (self.task / 'stat').read_text().rsplit(')', 1)[1].split()[0] == 't'

    def __exit__(self, *what):
        self.ask(self.DETACH)
