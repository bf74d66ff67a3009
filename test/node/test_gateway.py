#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: examples/memif-gateway does what it shows: programs with verbs on one side, a memif on the
other, in a tunnel as well.

Method:

  plain   programs - gateway [memif client]==[memif server] rocaded - programs
  tunnel  programs - gateway [memif server]==[memif client] gateway - programs, by VXLAN

    test_gateway.py ROCADED LIBIBVERBS GATEWAY
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
from ends import (ENDS, End, ENV, FOLDER, LIMIT, ROCADED, all_gone, both,  # noqa: E402
                  leash, pair, rocade_on, tap)

GATEWAY = os.path.abspath(sys.argv[3])
BARE = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
ALONE = ['--no-huge', '-m', '512']
EAL = ['--no-pci', '--no-telemetry', '-l', '0']
# dpdk-dumpcap maps the gateway's memory where the gateway has it: where neither has anything else,
# a sanitizer's shadow neither.
APART = ['--base-virtaddr=0x200000000000']
MACS = ('02:00:00:00:0a:01', '02:00:00:00:0a:02')
running = []


def begin(name, *command):
    log = open(f'{FOLDER}/{name}.log', 'w', encoding='utf-8')
    process = subprocess.Popen(command, env=BARE, stdout=log, stderr=log)
    leash.leash(process.pid)
    running.append((name, process))
    return process


def memif(number, role):
    """A client does not start before there is a server."""
    path = pathlib.Path(f'{FOLDER}/memif{number}.sock')
    if role == 'client':
        tap.wait_until('a server', path.exists)
    return f'net_memif0,role={role},socket={FOLDER}/memif{number}.sock,socket-abstract=no,' \
           f'bsize=8192,rsize=9,mac={MACS[role == "client"]}'


def gateway(name, port, *options, memory=tuple(ALONE)):
    begin(name, GATEWAY, *EAL, *memory, '--file-prefix', f'{name}{os.getpid()}',
          '--vdev', port, '--', '--socket', f'{FOLDER}/{name}.sock', *options)
    return End('gateway0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/{name}.sock'})


def engine(name, port, address):
    config = pathlib.Path(FOLDER) / f'{name}.conf'
    config.write_text(f'[engine]\nsocket = {FOLDER}/{name}.sock\n[device m0]\ntype = port\n'
                      f'devargs = {port}\naddress = {address}\n', encoding='utf-8')
    begin(name, ROCADED, '--file-prefix', f'{name}{os.getpid()}', '--no-huge', '-m', '512',
          '--no-telemetry', '--', '--config', config)
    return End('m0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/{name}.sock'})


def ready(*ends):
    """All links are up. What runs on them is ENDS."""
    ENDS.clear()
    ENDS.extend(ends)

    def up():
        for name, process in running:
            tap.equal(process.poll(), None,
                      pathlib.Path(f'{FOLDER}/{name}.log').read_text(encoding='utf-8'))
        return all('state ACTIVE' in rocade_on(end, 'link').stdout for end in ends)
    tap.wait_until('links', up)


def end_all():
    all_gone()
    for name, process in reversed(running):
        process.send_signal(signal.SIGTERM)
        tap.equal(process.wait(timeout=LIMIT), 0, name)
    running.clear()


def traffic(server):
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '200', '-c')
    both('ibv_ud_pingpong', '-g', '1', '-n', '200')
    pair(['rping', '-s', '-a', server, '-v', '-V', '-C', '100'],
         ['rping', '-c', '-a', server, '-v', '-V', '-C', '100'])


@tap.test
def plain():
    server = engine('server', memif(1, 'server'), '10.5.0.1/24')
    ready(gateway('client', memif(1, 'client'), '--address', '10.5.0.2/24'), server)
    traffic('10.5.0.1')
    end_all()


@tap.test
def tunnel():
    first = gateway('inner', memif(2, 'server'), '--address', '10.6.0.1/24', '--vxlan',
                    f'77,192.0.2.1,192.0.2.2,{MACS[1]}', '--mac', '02:00:00:00:0b:01')
    second = gateway('outer', memif(2, 'client'), '--address', '10.6.0.2/24', '--vxlan',
                     f'77,192.0.2.2,192.0.2.1,{MACS[0]}', '--mac', '02:00:00:00:0b:02')
    ready(second, first)
    traffic('10.6.0.1')
    end_all()


@contextlib.contextmanager
def hugepages(count):
    """A folder of hugetlbfs with as many pages; the machine has as few afterwards as before."""
    path = pathlib.Path('/proc/sys/vm/nr_hugepages')
    before = path.read_text(encoding='ascii')

    def pages(kind):
        text = pathlib.Path('/proc/meminfo').read_text(encoding='ascii')
        return int(re.search(rf'HugePages_{kind}:\s*(\d+)', text)[1])
    try:
        # Some may be in use that are not counted as the machine's any more.
        path.write_text(str(pages('Total') + count), encoding='ascii')
        if pages('Free') < count:
            raise tap.Skip('too few hugepages')
    except OSError as err:
        raise tap.Skip(f'no hugepages: {err}') from None
    else:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(['mount', '-t', 'hugetlbfs', 'none', folder], check=True)
            try:
                yield folder
            finally:
                # Who uses it yet, as something failed, goes with the test.
                subprocess.run(['umount', '--lazy', folder], check=True)
    finally:
        path.write_text(before, encoding='ascii')


@tap.test
def captured():
    """By dpdk-dumpcap, as any port of a program that has called rte_pdump_init()."""
    if shutil.which('dpdk-dumpcap') is None:
        raise tap.Skip('no dpdk-dumpcap')
    path = f'{FOLDER}/captured.pcapng'
    with hugepages(192) as folder:
        server = engine('server3', memif(3, 'server'), '10.7.0.1/24')
        ready(gateway('client3', memif(3, 'client'), '--address', '10.7.0.2/24',
                      memory=('-m', '256', '--huge-dir', folder, *APART)), server)
        capture = subprocess.Popen(
            ['dpdk-dumpcap', f'--file-prefix=client3{os.getpid()}', '-i', 'net_memif0', '-c', '300',
             '-w', path], env=BARE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        leash.leash(capture.pid)
        # It does not tell when it has begun.
        for _ in range(20):
            both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '50', '-c')
            if capture.poll() is not None:
                break
        out = capture.communicate(timeout=LIMIT)[0]
        tap.true('Packets captured: ' in out, out)
        end_all()
    seen = subprocess.run(
        ['tshark', '-r', path, '-Y', 'infiniband', '-T', 'fields', '-e', 'ip.src'],
        capture_output=True, text=True, timeout=LIMIT, check=True).stdout.split()
    tap.equal(set(seen), {'10.7.0.1', '10.7.0.2'}, 'both ways')
    tap.true(len(seen) >= 250, f'{len(seen)} packets of RoCE')


@tap.test
def what_it_refuses():
    for options in ([], ['--address', 'x'], ['--address', '10.5.0.2/24', '--vxlan', '1,2,3'],
                    ['--address', '10.5.0.2/24', 'more']):
        done = subprocess.run(
            [GATEWAY, *EAL, *ALONE, '--no-shconf', '--vdev', 'net_null0', '--', *options],
            env=BARE, capture_output=True, text=True, timeout=LIMIT, check=False)
        tap.equal((done.returncode, 'memif-gateway: ' in done.stderr), (2, True), done.stderr)


sys.exit(tap.run())
