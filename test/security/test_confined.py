#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: once it runs, an engine has the rights that it needs, and nobody gets more by it.

Method: an engine that is started by root and becomes a user of no account; what the kernel says of
each of its threads, who may administer it, and whether it still adds links of each kind.

    test_confined.py ROCADED DRIVER
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

ROCADED, DRIVER = sys.argv[1:3]
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
USER, OTHER, GROUP = 64317, 64318, 64319
NET_ADMIN, NET_RAW, IPC_LOCK, BPF = 12, 13, 14, 39
FOLDER = tempfile.mkdtemp(prefix='rcdconf')
SOCKET = f'{FOLDER}/run/rocade.sock'
ENV = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': SOCKET}


def rocade(*words, **more):
    return subprocess.run([ROCADE, '--log', f'{FOLDER}/rocaded.log', *words], capture_output=True,
                          text=True, env=ENV, timeout=tap.PATIENCE, check=False, **more)


class Engine:
    def __init__(self, *options, user=str(USER), eal=()):
        self.options = [f'user={user}', 'socket_mode=0666', 'seccomp=kill', *options]
        self.eal = eal

    def __enter__(self):
        if os.geteuid() != 0:
            raise tap.Skip('needs root')
        words = [word for option in self.options for word in ('-o', option)]
        done = rocade('up', *words, '--', '--file-prefix', f'rcdconf{os.getpid()}', '--no-huge',
                      '-m', '256', *self.eal)
        tap.equal(done.returncode, 0, done.stdout + done.stderr)
        self.pid = json.loads(rocade('-j', 'engine').stdout)['pid']
        leash.leash(self.pid)
        return self

    def __exit__(self, *_):
        done = rocade('down')
        tap.equal(done.returncode, 0, done.stderr)

    def threads(self):
        """What the kernel says of each: {name: {key: words}}."""
        found = {}
        for path in pathlib.Path(f'/proc/{self.pid}/task').iterdir():
            lines = (path / 'status').read_text().splitlines()
            status = {line.split(':')[0]: line.split()[1:] for line in lines}
            found[f'{status["Name"][0]} {path.name}'] = status
        return found


def capabilities(status, which):
    bits = int(status[which][0], 16)
    return {bit for bit in range(64) if bits >> bit & 1}


def each_thread(check):
    def run():
        with Engine() as engine:
            threads = engine.threads()
            tap.true(len(threads) > 2, threads.keys())
            for name, status in threads.items():
                check(name, status, name.endswith(f' {engine.pid}'))
    return run


def is_the_user(name, status, _):
    tap.equal((set(status['Uid']), set(status['Gid'])), ({str(USER)}, {str(USER)}), name)
    tap.equal(status['Groups'], [], name)


def has_few_capabilities(name, status, control):
    wanted = {NET_ADMIN, NET_RAW, BPF} if control else set()
    limits = pathlib.Path(f'/proc/{name.split()[1]}/limits').read_text()
    if control and not re.search('Max locked memory +unlimited', limits):
        wanted.add(IPC_LOCK)
    for which in ('CapPrm', 'CapEff'):
        tap.equal(capabilities(status, which), wanted, f'{which} of {name}')
    for which in ('CapInh', 'CapBnd', 'CapAmb'):
        tap.equal(capabilities(status, which), set(), f'{which} of {name}')


def gets_no_privileges(name, status, _):
    tap.equal(status['NoNewPrivs'], ['1'], name)


def is_filtered(name, status, _):
    tap.equal(status['Seccomp'], ['2'], name)
    if name.startswith(('rte-worker', 'dpdk-worker')):
        tap.equal(status.get('Seccomp_filters', ['2']), ['2'], name)


tap.add('S14 every thread is the user', each_thread(is_the_user))
tap.add('S14 the control thread has few capabilities, the others none',
        each_thread(has_few_capabilities))
tap.add('S14 no thread gets new privileges', each_thread(gets_no_privileges))
tap.add('item 6 the system calls of every thread are filtered', each_thread(is_filtered))


def refused_calls_are_told():
    def log():
        return pathlib.Path(f'{FOLDER}/rocaded.log').read_text()
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    # EAL loads nothing from where everybody may write.
    with tempfile.TemporaryDirectory(dir='/run') as folder:
        eal = ('-d', shutil.copy(DRIVER, folder))
        with Engine('seccomp=log', eal=eal):
            tap.equal(rocade('link', 'set', 'roce0', 'up').returncode, 0, 'a link')
            tap.true('getpgid' not in log(), log())
        with Engine('seccomp=on', eal=eal):
            tap.wait_until('the end of a driver', lambda: 'getpgid fails with ENOSYS' in log())
            tap.wait_until('a sentence', lambda: re.search(
                r'rocaded: the system call getpgid \(\d+\) failed with ENOSYS', log()))
            tap.equal(rocade('link', 'set', 'roce0', 'up').returncode, 0, 'a link')
            tap.equal(log().count('the system call'), 1, log())


tap.add('item 6 a system call that is refused is named', refused_calls_are_told)


def no_core_dumps():
    with Engine() as engine:
        limits = pathlib.Path(f'/proc/{engine.pid}/limits').read_text()
        tap.true(re.search(r'Max core file size +0 +0 ', limits), limits)
        # What belongs to root here is of a process that can't be dumped, or traced by its user.
        tap.equal(os.stat(f'/proc/{engine.pid}/mem').st_uid, 0, 'owner of its memory')
    with Engine('core_dumps=yes') as engine:
        tap.equal(os.stat(f'/proc/{engine.pid}/mem').st_uid, USER, 'owner of its memory')


tap.add('item 6 no core dumps, unless told so', no_core_dumps)


def administer(uid, gid=None, groups=()):
    """Exit status of a command by somebody else."""
    command = ['setpriv', f'--reuid={uid}', f'--regid={gid or uid}']
    command += [f'--groups={",".join(map(str, groups))}'] if groups else ['--clear-groups']
    done = subprocess.run([*command, sys.executable, ROCADE, 'link', 'set', 'roce0', 'up'],
                          capture_output=True, text=True, env=ENV, timeout=tap.PATIENCE,
                          check=False)
    tap.true('Traceback' not in done.stderr, done.stderr)
    return done.returncode


def who_administers():
    os.chmod(FOLDER, 0o755)
    with Engine():
        tap.equal(administer(0), 0, 'root')
        tap.equal(administer(USER), 1, 'whom the engine became')
        tap.equal(administer(OTHER), 1, 'somebody else')
    with Engine(f'admin_user={OTHER}', f'admin_group={GROUP}'):
        tap.equal(administer(OTHER), 0, 'the user that the configuration names')
        tap.equal(administer(USER), 1, 'whom the engine became')
        tap.equal(administer(USER, gid=GROUP), 0, 'one of the group that it names')
        tap.equal(administer(USER, groups=(5, GROUP)), 0, 'one who is also in that group')
        tap.equal(administer(USER, groups=(5, 6)), 1, 'one of other groups')


tap.add('S14 only root and whom the configuration names administer', who_administers)


def links_at_run_time():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    with tempfile.TemporaryDirectory() as folder, Engine():
        os.chown(folder, USER, USER)
        # Drivers with threads, descriptors and shared memory of their own; w0 is a wire to w1.
        links = {'w0': 'wire peer w1', 'n0': 'port net_null0', 'r0': 'port net_ring0',
                 'm0': f'port net_memif0,role=server,socket={folder}/m,socket-abstract=no',
                 'v0': f'port net_vhost0,iface={folder}/v',
                 'u0': f'port net_virtio_user0,path={folder}/v'}
        for name, words in links.items():
            done = rocade('link', 'add', name, 'type', *words.split())
            tap.equal(done.returncode, 0, done.stderr)
        for name in reversed(links):
            done = rocade('link', 'del', name)
            tap.equal(done.returncode, 0, done.stderr)


tap.add('item 6 links come and go at run time', links_at_run_time)


def short_slices():
    def slices(idle):
        with Engine(f'idle={idle}') as engine:
            for task in pathlib.Path(f'/proc/{engine.pid}/task').iterdir():
                if (task / 'comm').read_text().startswith(('rte-worker', 'dpdk-worker')):
                    sched = (task / 'sched').read_text()
                    found = re.search(r'se\.slice\s*:\s*(\d+)', sched)
                    if found is None:
                        raise tap.Skip('the kernel tells of no slices')
                    return int(found.group(1))
        return None
    if tuple(map(int, os.uname().release.split('.')[:2])) < (6, 12):
        raise tap.Skip('slices are of Linux 6.12 and later')
    tap.equal(slices('yield'), 100000, 'slice of an lcore that yields')
    tap.true(slices('poll') > 100000, 'slice of an lcore that polls')


tap.add('T16 lcores that share take short slices', short_slices)


def nothing_left():
    with Engine():
        pass
    left = [str(path) for path in pathlib.Path(FOLDER).rglob('*')]
    tap.equal(left, [], 'files')
    tap.true(not os.path.exists(f'/var/run/dpdk/rcdconf{os.getpid()}'), 'folder of EAL')


tap.add('item 6 nothing is left behind', nothing_left)


if __name__ == '__main__':
    sys.exit(tap.run())
