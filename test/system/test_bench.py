#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rocade-bench does what its options say, tells it in words and as JSON, and leaves nothing.

Method: short runs of each operation and attachment, the prompt fed by a pipe, an interrupt, wrong
options. Figures are looked at for being there and fitting each other, never for being good.

    test_bench.py ROCADE_BENCH
"""
import glob
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

BENCH = sys.argv[1]
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools' / 'rocade'
EAL = ['--no-huge', '-m', '384', '--log-level=lib.rocade.engine:error']
LIMIT = 300


started = []


def files():
    return {path for folder in ('/tmp', '/var/run/dpdk')
            for path in glob.glob(f'{folder}/rocade-bench*')}


# Of programs that were killed long ago, and had numbers that come again.
BEFORE = files()


def start(*options, eal=(), **more):
    process = subprocess.Popen([BENCH, *EAL, *eal, '--', *options], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    started.append(process.pid)
    return process


def run(*options, status=0, eal=()):
    with start(*options, eal=eal) as process:
        out, err = process.communicate(timeout=LIMIT)
    tap.equal(process.returncode, status, f'{options}: {err[-500:]}')
    return out, err


def results(*options, eal=()):
    """The options as the program understood them, and its results."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'out.json'
        # On a busy machine nothing may be done in so short a time.
        for seconds in '0.1', '3', '30':
            run(*options, '-D', seconds, '-j', str(path), eal=eal)
            found = json.loads(path.read_text())
            if all(result.get('messages_per_s', 1) > 0 and result.get('samples', 101) > 100 and
                   all(val > 0 for val in result.get('ceilings', {}).values()) and
                   ('turns' in result) == ('--turns' in options)
                   for result in found['results']):
                break
    return found['options'], found['results']


def check_throughput(result, what):
    for name in 'messages_per_s', 'bytes_per_s', 'packets_per_s', 'cycles_per_message':
        tap.true(result[name] > 0, f'{what}: {name} {result}')
    tap.equal(round(result['bytes_per_s'] / result['messages_per_s']), result['size'],
              f'{what}: size')
    stages = result['stage_cycles_per_message']
    tap.true(all(name in stages for name in
                 ('rx_parse_icrc', 'transport', 'copy', 'tx_build_icrc', 'doorbell_scan', 'idle')),
             f'{what}: {stages}')


def check_operation(op, service, *options):
    options, (result,) = results('-o', op, '-t', service, *options)
    tap.equal((options['op'], options['service']), (op, service), 'options')
    check_throughput(result, f'{service} {op}')
    if op in ('send', 'write-imm') and service == 'rc':
        tap.true(result['received_per_s'] > 0, f'{op}: the receiver is told')


for case in (('send', 'rc'), ('write', 'rc'), ('write-imm', 'rc'), ('read', 'rc'),
             ('cas', 'rc', '-s', '8'), ('faa', 'rc', '-s', '8'), ('write', 'uc')):
    tap.add('_'.join(case[:2]), lambda case=case: check_operation(*case))


@tap.test
def datagrams():
    for op, service in (('send', 'uc'), ('send', 'ud')):
        _, (result,) = results('-o', op, '-t', service, '-d', '16')
        tap.true(result['received_per_s'] > 0, f'{service}: {result}')


@tap.test
def shapes_of_traffic():
    for words in (['-x'], ['-q', '1', '-d', '1'], ['-e', '7', '-s', '100'],
                  ['-m', '256', '-s', '5000'], ['-n', '1'], ['-I', '64'], ['-b', '1'],
                  ['-q', '300', '-d', '2'], ['-s', '0'],
                  ['-s', '3M', '-q', '2', '-d', '4']):
        _, (result,) = results(*words)
        tap.true(result['messages_per_s'] > 0, f'{words}: {result}')


@tap.test
def a_sweep():
    _, found = results('-s', '8,1K,65536', '-r', '2')
    tap.equal([result['size'] for result in found], [8, 1024, 65536], 'sizes')
    for result in found:
        check_throughput(result, 'sweep')


@tap.test
def latency():
    for op in 'send', 'write', 'read', 'faa':
        _, (result,) = results('-L', '-o', op, '-s', '8')
        order = [result[name] for name in ('min_us', 'p50_us', 'p90_us', 'p99_us', 'p99.9_us',
                                           'p99.99_us', 'max_us')]
        tap.true(order == sorted(order) and order[0] > 0, f'{op}: {order}')
        tap.true(result['samples'] > 100, f'{op}: {result}')


@tap.test
def ceilings():
    out, _ = run('-C', '-D', '0.1', '-s', '1024')
    tap.true('% of copy + CRC' in out and '% of macswap' in out, out)
    _, (result,) = results('-C', '-s', '1024')
    for name, val in result['ceilings'].items():
        tap.true(val > 0, f'{name}: {val}')
    out, _ = run('-C', '-L', '-D', '0.1', '-s', '8')
    tap.true('empty relay' in out, out)


@tap.test
def lcores_of_their_own():
    for words in (['-c', 'shm'], ['-l', '1'], ['-c', 'shm', '-L', '-s', '8']):
        options, (result,) = results(*words)
        tap.true(result.get('messages_per_s', result.get('samples')) > 0, f'{words}: {result}')
    tap.equal(options['client'], 'shm', 'client')


@tap.test
def over_memif():
    with tempfile.TemporaryDirectory() as folder:
        ports = ['--port-a', f'net_memif0,role=server,socket={folder}/m,socket-abstract=no',
                 '--port-b', f'net_memif1,role=client,socket={folder}/m,socket-abstract=no']
        options, (result,) = results(*ports, '-m', '1024', '-s', '2000', '-C')
        tap.true(options['port'].startswith('net_memif0'), str(options))
        check_throughput(result, 'memif')
        # What the port loses is lost: nothing takes a shorter way.
        _, err = run(*ports, '--impair', 'drop=100%,seed=1', '-D', '100', status=1)
        tap.true('retry count exceeded' in err, err[-300:])


@tap.test
def loss():
    _, (result,) = results('--impair', 'drop=2%,seed=3', '-s', '16K')
    check_throughput(result, 'loss')
    tap.true(result['packets_sent_again'] > 0, str(result))


@tap.test
def loss_by_turns():
    # Far less than any machine does without it; what is under way has room in the queue.
    narrow = ['--impair', 'rate=2000000,queue=1000000,seed=3', '-s', '4K', '-q', '1', '-d', '4',
              '--turns', '100', '-r', '2']
    options, (result,) = results(*narrow)
    tap.equal(options['turns_ms'], 100, 'turns_ms')
    tap.true(0 < result['turns']['share'] < 0.5 and 0 < result['turns']['whole_share'] < 0.5 and
             result['turns']['between_bytes_per_s'] > 4e6, str(result))
    for wrong in (['--turns', '20'], ['--turns', '20', '--impair', 'drop=2%', '-L'],
                  ['--turns', '20', '--impair', 'drop=2%,seed=' + '0' * 220],
                  ['--turns', '10001', '--impair', 'drop=2%'],
                  ['--turns', '19', '--impair', 'drop=2%']):
        _, err = run(*wrong, status=2)
        tap.true('turns' in err, err)


@tap.test
def congestion_control():
    options, (result,) = results('--cc', 'swift,target=25', '-s', '16K')
    tap.equal(options['cc'], 'swift,target=25', 'cc')
    check_throughput(result, 'swift')
    for asked, had in ('dcqcn', 'dcqcn'), ('auto', 'swift'):
        with start('--cc', asked, '-D', '100', '-q', '3') as process:
            deadline = time.monotonic() + LIMIT
            while time.monotonic() < deadline and process.poll() is None:
                shown = subprocess.run([ROCADE, f'--socket=/tmp/rocade-bench.{process.pid}',
                                        'resource', 'show', 'qp', '-d'],
                                       capture_output=True, text=True).stdout
                if shown.count(had) == 6:
                    break
                time.sleep(0.1)
            tap.equal(shown.count(had), 6, f'three queue pairs of both ends: {shown}')
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=LIMIT)
    for wrong in ('fast', 'swift,target=0', 'none,target=5', 'auto,target=5', '',
                  'swift' + ',target=25' * 20):
        _, err = run('--cc', wrong, status=2)
        tap.true('rocade-bench: cc ' in err, err)


def talk(process, *lines):
    for line in lines:
        if isinstance(line, float):
            time.sleep(line)
        else:
            process.stdin.write(line + '\n')
            process.stdin.flush()


@tap.test
def the_prompt():
    with start('-i', '--impair', 'seed=1', stdin=subprocess.PIPE) as process:
        talk(process, 'show qp 0', 'start', 'start', 0.5, 'show stats', 'set size 128', 'show qp 3',
             'set impair drop=1%,seed=2', 0.3, 'clear stats', 0.3, 'stop', 'stop', 'set op send',
             'set size 256', 'set depth 7', 'set qps 3', 'set depth many', 'start', 0.3,
             'show qp 2', 'show qp 3', 'stop', 'show nothing', 'quit')
        out, err = process.communicate(timeout=LIMIT)
    tap.equal(process.returncode, 0, err[-300:])
    for text in ('since shown', 'since cleared', 'side a: QPN', 'RTS', 'It is running.',
                 'Stop first.', 'It is not running.', 'There are 3 queue pairs.'):
        tap.true(text in out, f'{text}: {out}')
    tap.true('depth many: a number' in err, err[-300:])


@tap.test
def an_interrupt_tells_what_there_is():
    # Before there is traffic there is nothing to tell: a busy machine takes longer to begin.
    for seconds in (2.5, 5, 10, 20, 40):
        with start('-D', '200', '-s', '8,16') as process:
            time.sleep(seconds)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT)
        if out:
            break
    tap.equal(process.returncode, 0, err[-300:])
    tap.true('rc write, 8 B' in out and 'M/s' in out, out)
    tap.true('16 B' not in out, out)


@tap.test
def wrong_options():
    for words in (['-o', 'fly'], ['-s', 'x'], ['-s', '-1'], ['-d', '0'], ['-q', '99999'],
                  ['-m', '1000'], ['-t', 'ud'], ['-t', 'uc', '-o', 'read'],
                  ['-o', 'cas', '-s', '16'], ['-D', '0'],
                  ['--port-a', 'net_null0'], ['-x', '-L'], ['surprise'], ['--nothing'],
                  ['-s', ','], ['-c', 'elsewhere']):
        _, err = run(*words, status=2)
        tap.true(err.strip(), f'{words}: says why')
    for words in (['-m', '4096', '--port-a', 'nonsense', '--port-b', 'more'],
                  ['-t', 'ud', '-o', 'send', '-s', '8000'], ['-j', '/nowhere/x', '-D', '0.05']):
        _, err = run(*words, status=1)
        tap.true('rocade-bench:' in err, f'{words}: {err[-300:]}')
    out, _ = run('--help')
    tap.true('usage: rocade-bench' in out, out)


@tap.test
def nothing_is_left():
    left = [path for path in files() - BEFORE
            if set(map(int, re.findall(r'\d+', path))) & set(started)]
    tap.equal(left, [], 'files')
    tap.true(len(started) > 50, 'nothing was started')


sys.exit(tap.run())
