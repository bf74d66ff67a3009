# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified programs that talk to each other, one with Rocade and one with its peer, once with
Rocade as server and once as client."""
import re
import subprocess
import time

from peer import sh, tap

ROLES = ('server', 'client')
FAMILIES = {'0': 'link-local', '1': 'IPv4', '2': 'IPv6'}
BUSY = "Couldn't connect|Connection refused|Failed to connect|Unable to init the socket"
SEGMENTATION_FAULT = 139  # as a shell has it
KEPT = re.compile('retry counter exceeded|timed out')  # rxe asks without end


class GuestCrash(AssertionError):
    """A program in the guest ended in a segmentation fault."""


def start_server(words, env=None):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)


def average(text):
    """Of perftest's table: both sides may have printed one, and who is not measured says 0."""
    lines = re.findall(r'^ *\d+[ \t]+\d+[ \t]+[\d.]+[ \t]+([\d.]+)[ \t]+[\d.]+[ \t\r]*$', text,
                       re.M)
    return max(map(float, lines), default=0)


class Talk:
    """Between an engine and a peer (peer.py).

    @param way  of a role and a program, a context manager that yields the addresses by which they
                reach each other: ours, and the peer's
    @param limit  seconds that a program may take
    """

    def __init__(self, engine, peer, way, limit):
        self.engine, self.peer, self.way, self.limit = engine, peer, way, limit

    def exchange(self, role, ours, theirs):
        """One program on both sides, Rocade in this role. Returns statuses and what both printed.
        """
        ours, theirs = list(map(str, ours)), ' '.join(map(str, theirs))
        if role == 'server':
            server = start_server(self.engine.command(*ours), self.engine.env)
        else:
            server = start_server(self.peer.command(theirs))
        try:
            with self.way(role, ours[0]) as (host, guest):
                deadline = time.monotonic() + tap.PATIENCE
                while True:
                    if role == 'server':
                        status, text = self.peer.run(f'{theirs} {host}')
                    else:
                        done = sh(*self.engine.command(*ours, guest), env=self.engine.env,
                                  limit=self.limit + 10)
                        status, text = done.returncode, (done.stdout + done.stderr).decode()
                    if not re.search(BUSY, text) or time.monotonic() > deadline:
                        break
                    time.sleep(0.1)
            out = server.communicate(timeout=self.limit + 10)[0].decode(errors='replace')
        finally:
            server.kill()
            server.wait()
        if (status if role == 'server' else server.returncode) == SEGMENTATION_FAULT:
            raise GuestCrash(out + text)
        return server.returncode, status, out + text

    def both(self, role, program, *options):
        """A program with the same options on both sides; both must end well."""
        server, client, text = self.exchange(role, [program, '-d', self.engine.device, *options],
                                             [program, '-d', self.peer.device, *options])
        tap.equal((server, client), (0, 0), f'{program} {" ".join(map(str, options))}, Rocade is '
                  f'{role}\n{text}\n{self.engine.log()[-1500:]}')
        return text

    def pingpong(self, role, service, gid, size, mtu, *more):
        options = ['-g', gid, '-s', size, '-n', 100, *more]
        if service in ('rc', 'uc'):
            options += ['-m', mtu]
        if service == 'srq':
            options += ['-m', mtu, '-q', 4]
        self.both(role, f'ibv_{service}_pingpong', *options)

    def perftest(self, role, program, *options, gid=1):
        return self.both(role, program, '-x', gid, '-F', *options)

    def damaged(self, role, count, gid=1):
        """Programs whose data must arrive whole, though packets do not."""
        for tries in range(4):
            try:
                self.both(role, 'ibv_rc_pingpong', '-g', gid, '-s', 4096, '-n', 2 * count, '-c')
                break
            except AssertionError as err:
                # Its last acknowledge was lost, and who waits for it asks a peer that is gone.
                if tries == 3 or not KEPT.search(str(err)):
                    raise
        # Probes and NAKs repair. The timeout is longer than what an emulated processor may be late
        # by, in answers to what it was sent: 1.1 s, in place of 67 ms (doc/interop.md).
        patient = ['-u', 18, '-n', count]
        for verb in ('send', 'write', 'read'):
            text = self.perftest(role, f'ib_{verb}_bw', '-s', 16384, *patient, gid=gid)
            print(f'# ib_{verb}_bw, Rocade {role}: {average(text)} MB/s', flush=True)
        self.perftest(role, 'ib_atomic_bw', *patient, gid=gid)

    def attempt(self, func, args):
        """The emulated processor goes wrong now and then: a double fault of the kernel, in rxe and
        elsewhere, or a segmentation fault of the guest's program. Such a guest is asked once more,
        after a fresh boot where its kernel is gone. A program of ours that crashes is no such case.
        """
        try:
            func(*args)
        except AssertionError as err:
            said = self.peer.crashed()
            if said:
                print('# the kernel crashed; once more, with a fresh one\n# ' +
                      said.replace('\n', '\n# '), flush=True)
                self.peer.boot_again()
            elif isinstance(err, GuestCrash):
                print('# a program in the guest crashed; once more', flush=True)
            else:
                raise
            func(*args)
