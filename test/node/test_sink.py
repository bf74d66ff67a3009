#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: examples/inline-sink writes what it captures into the memory of another program, all of it,
byte for byte and in order, through a ring that is far smaller.

Method:

  generator [memif]==[memif] inline-sink [memif]==[memif] rocaded - collector - a pipe to here

    test_sink.py ROCADED LIBIBVERBS SINK COLLECTOR GENERATOR [PACKETS]
"""
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
from ends import End, ENV, FOLDER, LIMIT, ROCADED, counters, leash, rocade_on, tap  # noqa: E402

SINK, COLLECTOR, GENERATOR = map(os.path.abspath, sys.argv[3:6])
PACKETS = int(sys.argv[6]) if len(sys.argv) > 6 else 1000000
BARE = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
EAL = ['--no-huge', '-m', '512', '--no-pci', '--no-telemetry', '-l', '0']
TABLE = bytes((i * 31 + i // 256 * 7) & 255 for i in range(4096))
HEADER = b'\2\0\0\0\0\1\2\0\0\0\0\2\x88\xb5'
running = {}


def begin(name, *command, env=None):
    with open(f'{FOLDER}/{name}.log', 'w', encoding='utf-8') as log:
        process = subprocess.Popen(command, env=env or BARE, stdout=log, stderr=log)
    leash.leash(process.pid)
    running[name] = process


def said(name):
    return pathlib.Path(f'{FOLDER}/{name}.log').read_text(encoding='utf-8')


def alive():
    for name, process in running.items():
        tap.equal(process.poll(), None, f'{name}: {said(name)}')


def end(name):
    process = running.pop(name)
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=LIMIT)


def end_all():
    """What a test that failed has left: the next one is told of its own mistakes alone."""
    for process in running.values():
        process.kill()
        process.wait()
    running.clear()


def memif(index, path, role):
    """A client does not start before there is a server."""
    path = f'{FOLDER}/{path}.sock'
    if role == 'client':
        tap.wait_until('a server', lambda: os.path.exists(path))
    return f'net_memif{index},role={role},socket={path},socket-abstract=no,bsize=8192,rsize=9,' \
           f'mac=02:00:00:00:0{int(role == "client")}:0{index}'


def tail_len(number):
    return 38 + (number * 2654435761 & 0xffffffffffffffff) % 1009 % 331


def compare(stream):
    """A capture file, packet by packet. Returns how many came."""
    tap.equal(len(stream.read(24)), 24, 'the head of a capture file')
    for number in range(PACKETS):
        head = stream.read(16)
        if len(head) < 16:
            return number
        data = stream.read(struct.unpack('<8xII', head)[0])
        begins = number % 2048
        if data != HEADER + struct.pack('>Q', number) + TABLE[begins:begins + tail_len(number)]:
            raise AssertionError(f'packet {number}: {data.hex()}')
    return PACKETS


def free_port():
    with socket.socket() as found:
        found.bind(('127.0.0.1', 0))
        return found.getsockname()[1]


def begin_far_end(to):
    """An engine and a collector on it, which writes to a file; and how to ask the engine."""
    config = pathlib.Path(FOLDER) / 'far.conf'
    config.write_text(f'[engine]\nsocket = {FOLDER}/far.sock\n[device m0]\ntype = port\n'
                      f'devargs = {memif(0, "roce", "server")}\naddress = 10.5.0.1/24\n',
                      encoding='utf-8')
    begin('far', ROCADED, '--file-prefix', f'far{os.getpid()}', '--no-huge', '-m', '512',
          '--no-telemetry', '--', '--config', config)
    env = {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/far.sock'}
    side = End('m0', env)
    tap.wait_until('an engine', lambda: alive() or 'm0' in rocade_on(side, 'link').stdout)
    begin_far_end.port = str(free_port())
    begin('collector', COLLECTOR, 'm0', '1', begin_far_end.port, '4', to, env=env)
    return side


def begin_near_end(count):
    begin('sink', SINK, *EAL, '--file-prefix', f'sink{os.getpid()}', '--vdev',
          memif(0, 'packets', 'server'), '--vdev', memif(1, 'roce', 'client'), '--',
          '10.5.0.2/24', f'127.0.0.1:{begin_far_end.port}')
    begin('generator', GENERATOR, *EAL, '--file-prefix', f'generator{os.getpid()}', '--vdev',
          memif(0, 'packets', 'client'), '--', str(count))


@tap.test
def collector_is_ready():
    os.mkfifo(f'{FOLDER}/pipe')
    begin_far_end(f'{FOLDER}/pipe')


@tap.test
def every_packet():
    begin_near_end(PACKETS)
    # A pipe into which nothing comes ends when its writer does.
    patience = threading.Timer(LIMIT, running['collector'].kill)
    patience.start()
    with open(f'{FOLDER}/pipe', 'rb', buffering=1 << 20) as stream:
        try:
            tap.equal(compare(stream), PACKETS, 'packets')
        finally:
            patience.cancel()
            print(''.join(f'# {name}: {line}\n' for name in running
                          for line in said(name).splitlines()[-3:]), end='', file=sys.stderr)
    alive()


@tap.test
def sink_ends_and_collector_hears():
    tap.equal(end('generator'), -signal.SIGTERM, 'generator')
    tap.equal(end('sink'), 0, said('sink'))
    tap.equal(running['collector'].wait(timeout=LIMIT), 0, said('collector'))
    running.pop('collector')
    tap.true(f'{PACKETS} packets' in said('collector'), said('collector'))
    tap.true(f'{PACKETS} packets' in said('sink'), said('sink'))
    tap.equal(end('far'), 0, said('far'))


@tap.test
def collector_goes_first():
    """In the midst of it: the sink says so, and ends."""
    end_all()
    for name in ('roce', 'packets'):
        pathlib.Path(f'{FOLDER}/{name}.sock').unlink(missing_ok=True)
    side = begin_far_end('/dev/null')
    begin_near_end(1000 * PACKETS)
    tap.wait_until('packets', lambda: alive() or counters(side)['rx_roce'] > 1000)
    collector = running.pop('collector')
    collector.kill()
    collector.wait()
    tap.equal(running['sink'].wait(timeout=LIMIT), 1, said('sink'))
    tap.true('the collector is gone' in said('sink'), said('sink'))
    running.pop('sink')
    tap.equal(end('generator'), -signal.SIGTERM, 'generator')
    tap.equal(end('far'), 0, said('far'))


@tap.test
def there_is_no_collector():
    done = subprocess.run([SINK, *EAL, '--no-shconf', '--vdev', 'net_null0', '--vdev', 'net_null1',
                           '--', '10.5.0.2/24', f'127.0.0.1:{free_port()}'], env=BARE, text=True,
                          capture_output=True, timeout=LIMIT, check=False)
    tap.equal((done.returncode, 'Connection refused' in done.stderr), (1, True), done.stderr)


sys.exit(tap.run())
