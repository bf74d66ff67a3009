# SPDX-License-Identifier: BSD-3-Clause
"""Rsockets with rdma-core's own library over the kernel's rxe, in both roles. The programs verify
what they transfer, or this does."""
import os
import pathlib
import re

from cm import ADDRESSES
from peer import sh, tap

COPIED = 300_001  # bytes: more than both rings, and no multiple of anything
DATAGRAM = 1000   # bytes, the most that IPv6 leaves of a path MTU of 1024
HEADERS = 150     # bytes in a frame beside one, at most
FEW = 50          # datagrams, which any buffer has room for
# Of datagrams, one client after the other; udpong writes more than 999 in another way.
RUNS = (FEW, FEW, 100, 200, 400, 800, 800, 800)
BUFFER = 1 << 21  # more than those


class Sockets:
    """The tests.

    @param plan  of connections (cm.py): its sides, and how a pair of programs runs
    @param folder  for files of ours
    """

    def __init__(self, plan, folder):
        self.plan, self.folder = plan, pathlib.Path(folder)

    def stream(self, role, family, program, options):
        self.plan.pair(role, family, f'{program} -b {{}} {options}',
                       f'{program} -s {{}} {options}')

    def copy(self, role):
        """A file arrives as it was; its server runs until it is told."""
        peer = self.plan.there.end
        first, second = self.plan.sides(role)
        address = ADDRESSES['4'][0 if role == 'server' else 1]
        ours, theirs = str(self.folder / 'rcopy'), '/tmp/rcopy'
        data = os.urandom(COPIED)
        source, target = (theirs, ours) if role == 'server' else (ours, theirs)
        server = first.begin('rcopy')
        try:
            if role == 'server':
                put = sh(*peer.piped(f'cat > {source}'), data=data)
                tap.equal(put.returncode, 0, put.stderr)
            else:
                pathlib.Path(source).write_bytes(data)
            first.listening()
            client = second.begin(f'rcopy {source} {address}:{target}')
            said = self.plan.finish(client)
            tap.equal(client.returncode, 0, said)
            got = pathlib.Path(target).read_bytes() if role == 'server' else \
                sh(*peer.command(f'cat {target}')).stdout
            tap.true(got == data, f'another file, of {len(got)} bytes')
        finally:
            first.kill('rcopy')
            server.wait()

    def refused(self, role):
        """Nobody listens: the client is told so, at once."""
        _, client = self.plan.sides(role)
        address = ADDRESSES['4'][0 if role == 'server' else 1]
        said = self.plan.finish(client.begin(f'rstream -T b -s {address}'))
        tap.true('Connection refused' in said, said)

    def datagrams(self, role, family, how, loop):
        """All arrive, and some by RDMA, sooner or later: what a client sends before the threads of
        its library know the way goes by UDP, and a few may leave in less time than they take. Of
        many those by UDP may be lost.
        Nothing is echoed: as soon as an answer takes a millisecond, udpong -T e sends what it was
        answered last in place of what is next."""
        first, second = self.plan.sides(role)
        address = ADDRESSES[family][0 if role == 'server' else 1]
        self.plan.there.end.put(loop, '/usr/lib/loop_grh.so')
        guest = f'LD_PRELOAD=/usr/lib/loop_grh.so LOOP_GID={1 if family == "4" else 2} '
        server = first.begin(f'{"" if first.ours else guest}udpong -b {address} -T {how} '
                             f'-B {BUFFER}')
        counter = 'rx_bytes' if role == 'server' else 'tx_bytes'
        engine = self.plan.here.end
        try:
            for count in RUNS:
                before = engine.counters()[counter]
                client = second.begin(f'{"" if second.ours else guest}udpong -s {address} -T {how} '
                                      f'-C {count} -S {DATAGRAM} -B {BUFFER}')
                said = self.plan.finish(client)
                tap.equal(client.returncode, 0, said)
                sent = engine.counters()[counter] - before
                arrived = re.search(rf'^custom +{DATAGRAM} +(\d+) ', said, re.M)
                by_rdma = sent // (DATAGRAM + HEADERS)
                if arrived and by_rdma >= FEW // 2 and \
                        int(arrived[1]) >= (count if count == FEW else by_rdma):
                    break
            else:
                tap.true(False, f'{said}, {sent} bytes by RDMA')
        finally:
            first.kill('udpong')
            server.wait()

    def make(self, short):
        add = self.plan.add
        for role in ('server', 'client'):
            # rdma-core's rpoll() has POLLHUP before the last bytes were read, which ends its
            # programs where they are the client that is still to read them: there it does not poll.
            how = 'b' if role == 'server' else 'a'
            runs = [('rstream', '-T b -T v -S 3000 -I 20 -C 3'),
                    ('rstream', f'-T {how} -T v -S 70001 -I 5 -C 3')]
            if not short:
                # Rings that wrap in the middle of a message, and nothing inline.
                runs += [('rstream', f'-T {how} -T v -B 5001 -i 0 -S 20001 -I 5 -C 3'),
                         ('riostream', '-T b -T v -S 5000 -I 10 -C 3'),
                         ('riostream', f'-T {how} -S 70001 -I 5 -C 3')]
            for family in ('4', '6'):
                for program, options in runs:
                    add(f'{program} {options}, IPv{family}, Rocade {role}', self.stream, role,
                        family, program, options)
            add(f'rcopy, Rocade {role}', self.copy, role)
            add(f'rstream refused, Rocade {role}', self.refused, role)

    def make_datagrams(self, loop):
        """Where the addresses are this kernel's, too. The guest's programs need loop_grh.c."""
        for role in ('server', 'client'):
            for family in ('4', '6'):
                for how in ('b', 'a'):
                    self.plan.add(f'udpong -T {how}, IPv{family}, Rocade {role}', self.datagrams,
                                  role, family, how, loop)
