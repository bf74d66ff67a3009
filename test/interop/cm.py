# SPDX-License-Identifier: BSD-3-Clause
"""Connection management with the kernel's rdma_cm: connections by address in both roles, refused
ones, and ends of all kinds."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from peer import GUEST, LIMIT, OURS, sh, tap  # noqa: E402

ADDRESSES = {'4': (OURS, GUEST), '6': ('fd77::100', 'fd77::1')}


class Side:
    """Where programs run: with Rocade, or in the guest with its kernel."""

    def __init__(self, end, ours, patience):
        self.end, self.ours, self.patience = end, ours, patience
        self.kill = end.kill

    def begin(self, text):
        words = self.end.command(*text.split()) if self.ours else self.end.command(text)
        out = tempfile.TemporaryFile('w+', errors='replace')
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                   env=self.end.env if self.ours else None)
        process.out = out
        return process

    def ids(self):
        """Identifiers by state and address of the other end."""
        return [(entry['state'], entry.get('dst-addr', '')) for entry in self.end.cm_ids()]

    def listening(self):
        tap.wait_until('a listener', lambda: any(state == 'LISTEN' for state, _ in self.ids()),
                       self.patience)


class Plan:
    """The tests.

    @param add  the suite's: a name, a function, its arguments
    @param limit  seconds that a program may take
    @param patience  seconds that the emulated machine may take to be somewhere
    """

    def __init__(self, engine, peer, add, limit=LIMIT, patience=tap.PATIENCE):
        self.here, self.there = Side(engine, True, patience), Side(peer, False, patience)
        self.add, self.limit, self.patience = add, limit, patience

    def finish(self, process):
        process.wait(timeout=self.limit + 20)
        process.out.seek(0)
        return process.out.read()

    def sides(self, role):
        return (self.here, self.there) if role == 'server' else (self.there, self.here)

    def pair(self, role, family, server, client):
        """Both ends well, or the test fails. {} is the server's address."""
        first, second = self.sides(role)
        address = ADDRESSES[family][0 if role == 'server' else 1]
        process = first.begin(server.format(address))
        try:
            first.listening()
            # The emulated kernel says so before it is.
            time.sleep(0 if first.ours else 3)
            done = second.begin(client.format(address))
            said = self.finish(done)
            if done.returncode:
                first.kill(server.split()[0])
            out = self.finish(process)
        finally:
            process.kill()
            process.wait()
        tap.equal((process.returncode, done.returncode), (0, 0),
                  f'{server}, Rocade is {role}\n{out[-1500:]}\n{said[-1500:]}')
        return out + said

    def perftest(self, role):
        """Its client connects twice, and its server listens anew in between, which takes the
        emulated processor longer than the client: then the second request is refused."""
        command = 'ib_send_bw -R -F -n 50 -s 4096'
        for left in reversed(range(10)):
            try:
                return self.pair(role, '4', command, command + ' {}')
            except AssertionError as err:
                if not left or 'REJECTED; error: 8' not in str(err):
                    raise

    def refused(self, role):
        """Nobody listens: the client is told so, at once."""
        _, client = self.sides(role)
        address = OURS if role == 'server' else GUEST
        said = self.finish(client.begin(f'rping -c -C 1 -d -a {address}'))
        tap.true('RDMA_CM_EVENT_REJECTED, error 8' in said, said)

    def killed(self, role, victim):
        """One side dies: the other learns of it, and nothing is left here."""
        first, second = self.sides(role)
        address = OURS if role == 'server' else GUEST
        server = first.begin(f'rping -s -d -a {address}')
        first.listening()
        client = second.begin(f'rping -c -d -C 100000000 -a {address}')
        tap.wait_until('a connection', lambda: any(
            state == 'CONNECT' and dst for state, dst in self.here.ids()), self.patience)
        time.sleep(1)
        dies, lives, other = (self.here, self.there, client if role == 'server' else server) \
            if victim == 'Rocade' else \
            (self.there, self.here, server if role == 'server' else client)
        dies.kill('rping')
        said = self.finish(other)
        self.finish(server)
        self.finish(client)
        # Whichever comes first: a DREQ, or an answer to what was on its way to a queue pair in ERR,
        # which ends rping before it hears of anything else. Both are said on stderr, which isn't
        # cut in two as a buffer of stdout is.
        tap.true('DISCONNECT EVENT' in said or 'cq completion failed' in said,
                 said[-1500:])
        tap.wait_until('the end of all identifiers', lambda: not self.here.ids(), self.patience)

    def make(self, short):
        families = ('4',) if short else ('4', '6')
        count = 5 if short else 50
        programs = [
            ('rping', f'rping -s -v -V -C {count} -a {{}}', f'rping -c -v -V -C {count} -a {{}}'),
            ('ucmatose', 'ucmatose -b {} -c 5', 'ucmatose -s {} -c 5'),
            ('udaddy', 'udaddy -b {} -c 3', 'udaddy -s {} -c 3'),
        ]
        for role in ('server', 'client'):
            for family in families:
                for name, server, client in programs:
                    self.add(f'{name}, IPv{family}, Rocade {role}', self.pair, role, family,
                             server, client)
            self.add(f'a refused connection, Rocade {role}', self.refused, role)
        for role in ('server', 'client'):
            for victim in ('Rocade', 'the kernel'):
                self.add(f'{victim} is killed, Rocade {role}', self.killed, role, victim)
        if short:
            return
        # It resolves names to IPv4 alone.
        for role in ('server', 'client'):
            self.add(f'ib_send_bw -R, Rocade {role}', self.perftest, role)
