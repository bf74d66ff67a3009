#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the command line does what its guide says, and leaves nothing behind.

Method: the commands as a user types them, on an engine of the test's own; its files, processes
and sockets compared before and after.

    test_cli.py ROCADED
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

ROCADED = sys.argv[1]
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
FOLDER = tempfile.mkdtemp(prefix='rcdcli')
SOCKET = f'{FOLDER}/run/rocade.sock'
ENV = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': SOCKET}
PREFIX = f'rcdcli{os.getpid()}'
EAL = ['--', '--file-prefix', PREFIX, '--no-huge', '-m', '256']


def rocade(*words, status=0):
    done = subprocess.run([ROCADE, '--log', f'{FOLDER}/run/rocaded.log', *words],
                          capture_output=True, text=True, env=ENV, timeout=60, check=False)
    tap.equal(done.returncode, status, f'{words}: {done.stdout}{done.stderr}')
    return done.stdout + done.stderr


def up(*words):
    os.makedirs(f'{FOLDER}/run', exist_ok=True)
    out = rocade('up', *words, *EAL)
    leash.leash(json.loads(rocade('-j', 'engine'))['pid'])
    return out


def traces():
    """What an engine of this test could leave behind; others may run beside it."""
    processes = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            state = (path.parent / 'stat').read_text().rsplit(')', 1)[1].split()[0]
            if PREFIX in path.read_text().split('\0') and state != 'Z':
                processes.append(path.parent.name)
        except OSError:
            pass
    return {
        'processes': sorted(processes),
        'sockets': sorted(line.split()[-1] for line in
                          pathlib.Path('/proc/net/unix').read_text().splitlines()
                          if FOLDER in line or PREFIX in line),
        'files': sorted(
            path for folder in ('/dev/hugepages', '/var/run/dpdk', '/dev/shm', FOLDER)
            # Folders of others may go while we look.
            for where, folders, names in os.walk(folder) for name in folders + names
            for path in [os.path.join(where, name)]
            if os.path.exists(path) and (folder == FOLDER or PREFIX in path)),
    }


def nothing_left(before):
    """All traces are gone, soon: a process that ends has no command line when its sockets close."""
    deadline = time.monotonic() + 30
    while traces() != before and time.monotonic() < deadline:
        time.sleep(0.05)
    tap.equal(traces(), before, 'what is left')


@tap.test
def up_show_down_leaves_nothing():
    before = traces()
    up()
    lines = rocade('link', 'show').splitlines()
    tap.equal(len(lines), 2, 'links')
    for line in lines:
        tap.true('state ACTIVE physical_state LINK_UP' in line, line)
    rocade('down')
    nothing_left(before)


@tap.test
def second_engine_is_refused():
    up()
    try:
        tap.true('answers' in rocade('up', *EAL, status=1), 'the command does not say why')
        done = subprocess.run([ROCADED, '--file-prefix', f'rcdother{os.getpid()}', '--no-huge',
                               '-m', '256', '--', '--socket', SOCKET], capture_output=True,
                              text=True, check=False)
        tap.equal(done.returncode, 1, 'status of the daemon')
        tap.true('another engine answers' in done.stderr, done.stderr)
    finally:
        rocade('down')


@tap.test
def every_listing_has_json():
    up()
    try:
        for words in (['link'], ['dev'], ['resource'], ['statistic'], ['engine'], ['doctor'],
                      *[['resource', 'show', kind] for kind in
                        ('pd', 'cq', 'qp', 'mr', 'srq', 'ctx')]):
            json.loads(rocade('-j', *words))
            rocade(*words)
        links = json.loads(rocade('-j', 'link'))
        tap.equal([link['ifname'] for link in links], ['roce0', 'roce1'], 'names')
        tap.equal(links[0]['state'], 'ACTIVE', 'state')
        gids = [gid['gid'] for gid in links[0]['gids']]
        tap.true('::ffff:10.77.0.1' in gids and 'fd77::1' in gids, gids)
        counters = json.loads(rocade('-j', 'statistic', 'show', 'link', 'roce1'))[0]['counters']
        for name in ('sent_pkts', 'rcvd_pkts', 'out_of_seq_request', 'rx_drop_icrc'):
            tap.true(name in counters, name)
        tap.true(all(check['state'] in ('ok', 'warn', 'fail') for check in
                     json.loads(rocade('-j', 'doctor'))), 'doctor')
    finally:
        rocade('down')


@tap.test
def links_added_and_removed():
    up()
    try:
        rocade('link', 'add', 'x0', 'type', 'wire', 'peer', 'x1')
        rocade('addr', 'add', '192.168.3.1/24', 'dev', 'x0')
        tap.true('::ffff:192.168.3.1' in rocade('-d', 'link', 'show', 'x0/1'), 'address')
        rocade('link', 'set', 'x1', 'down')
        time.sleep(0.1)
        tap.true('state DOWN' in rocade('link', 'show', 'x0'), 'the other end stays up')
        rocade('link', 'del', 'x0')
        rocade('link', 'add', 'n0', 'type', 'port', 'net_null0')
        tap.true('link n0/1' in rocade('link'), 'no port n0')
        rocade('link', 'del', 'n0')
        for words, what in ((['link', 'show', 'zz'], 'no link zz'),
                            (['link', 'del', 'zz'], 'no link zz'),
                            (['link', 'add', 'y', 'type', 'netdev', 'nodev9'], 'nodev9'),
                            (['link', 'add', 'y', 'type', 'port', 'net_nothing0'], 'net_nothing0'),
                            (['link', 'add', 'roce0', 'type', 'wire', 'peer', 'q'], 'roce0'),
                            (['link', 'add', 'y', 'type', 'tunnel', 'q'], 'type'),
                            (['addr', 'add', '1.2.3', 'dev', 'roce0'], '1.2.3'),
                            (['resource', 'show', 'cow'], 'cow')):
            tap.true(what in rocade(*words, status=1), words)
        tap.equal(len(rocade('link').splitlines()), 2, 'links left')
    finally:
        rocade('down')


@tap.test
def configuration_faults_have_lines():
    path = pathlib.Path(FOLDER) / 'bad.cfg'
    path.write_text('[engine]\nidle = lazy\nsocket_mode = 0999\n\n[device a]\ntype = wire\n'
                    'peer = b\naddress = 10.0.0.300/24\nmtu = 12\n[quota]\nqps = 0\n[cow]\nx = 1\n')
    done = subprocess.run([ROCADED, '--config', path, '--check-config'], capture_output=True,
                          text=True, check=False)
    tap.equal(done.returncode, 2, 'status')
    found = sorted(int(line.split(':')[1]) for line in done.stderr.splitlines())
    tap.equal(found, [2, 3, 7, 8, 9, 11, 12], done.stderr)
    path.write_text('[device a]\ntype = wire\npeer = b\naddress = 10.0.0.1/24, fd00::1/64@7\n'
                    '[device b]\ntype = wire\npeer = a\n[quota]\nqueue_bytes = 64M\n')
    done = subprocess.run([ROCADED, '--config', path, '--check-config'], capture_output=True,
                          text=True, check=False)
    tap.equal((done.returncode, done.stderr), (0, ''), 'a good file')


@tap.test
def configured_engine():
    path = pathlib.Path(FOLDER) / 'good.cfg'
    path.write_text(f'[engine]\nsocket = {SOCKET}\nsocket_mode = 0600\nidle = sleep\n'
                    '[device a]\ntype = wire\npeer = b\naddress = 10.0.0.1/24@7\nmtu = 1500\n'
                    '[device b]\ntype = wire\npeer = a\nmtu = 1500\n')
    up('--config', str(path))
    try:
        tap.equal(os.stat(SOCKET).st_mode & 0o777, 0o600, 'mode of the socket')
        engine = json.loads(rocade('-j', 'engine'))
        tap.equal(engine['idle'], 'sleep', 'idle policy')
        link = json.loads(rocade('-j', 'link', 'show', 'a'))[0]
        tap.equal(link['active_mtu'], 1024, 'path MTU')
        tap.true({'gid': '::ffff:10.0.0.1', 'vlan': 7}.items() <= link['gids'][1].items(),
                 link['gids'])
        # Asleep, it takes next to nothing of a core.
        stat = pathlib.Path(f'/proc/{engine["pid"]}/stat')

        def ticks():
            return sum(map(int, stat.read_text().rsplit(')', 1)[1].split()[11:13]))
        begin = ticks()
        time.sleep(1)
        tap.true(ticks() - begin < 20, 'an idle engine does not sleep')
    finally:
        rocade('down')


@tap.test
def drops_privileges():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    path = pathlib.Path(FOLDER) / 'user.cfg'
    path.write_text(f'[engine]\nsocket = {SOCKET}\nuser = nobody\n[device a]\ntype = wire\n'
                    'peer = b\n[device b]\ntype = wire\npeer = a\n')
    before = traces()
    up('--config', str(path))
    try:
        engine = json.loads(rocade('-j', 'engine'))
        status = pathlib.Path(f'/proc/{engine["pid"]}/status').read_text()
        uid = [line for line in status.splitlines() if line.startswith('Uid:')][0].split()[1]
        tap.true(uid != '0', 'still root')
    finally:
        rocade('down')
    nothing_left(before)


if __name__ == '__main__':
    sys.exit(tap.run())
