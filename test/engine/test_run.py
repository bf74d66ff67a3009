#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: "rocade run --engine" runs a program with an engine of its own, passes on how it ended, and
leaves nothing behind, however it ends; several at a time, and as an ordinary user, too.

Method: unmodified programs and shells, and what lies in the folder for temporary files afterwards.

    test_run.py ROCADED LIBIBVERBS
"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROCADED, LIBRARY = map(os.path.abspath, sys.argv[1:3])
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
FOLDER = tempfile.mkdtemp(prefix='rcdrun')
# Libraries of this build; those that meson names are of no use to DPDK's programs.
ENV = {key: val for key, val in os.environ.items()
       if key != 'LD_LIBRARY_PATH'}
ENV |= {'ROCADE_ROCADED': ROCADED, 'ROCADE_BUILD_DIR': str(pathlib.Path(LIBRARY).parents[1]),
        'TMPDIR': FOLDER, 'XDG_RUNTIME_DIR': '/nowhere'}
NOBODY = 65534
PINGPONG = '''
ibv_rc_pingpong -p $0 -d roce0 -g 1 & server=$!
until ibv_rc_pingpong -p $0 -d roce1 -g 1 127.0.0.1; do
    kill -0 $server || exit 9
    sleep 0.1
done
wait $server
'''


def usual_signals():
    """What runs the tests may ignore some, as nohup does, and programs inherit that."""
    for signo in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(signo, signal.SIG_DFL)


def begin(*words, python=sys.executable, **how):
    return subprocess.Popen([python, ROCADE, 'run', *words], env=ENV, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            preexec_fn=usual_signals, **how)


def run(*words, status=0, **how):
    process = begin(*words, **how)
    out, err = process.communicate(timeout=tap.PATIENCE)
    tap.equal(process.returncode, status, f'{words}: {out}{err}')
    return out + err


def of_engines():
    """Processes of engines of this test."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            if FOLDER in path.read_text(encoding='utf-8', errors='replace'):
                found.append(path.parent.name)
        except OSError:
            pass
    return found


def nothing_left():
    tap.wait_until('engines gone', lambda: not of_engines() and not os.listdir(FOLDER))


@tap.test
def a_program():
    out = run('--engine', '--', 'ibv_devices')
    tap.true('roce0' in out and 'roce1' in out, out)
    # The output is the program's alone.
    tap.equal(run('--engine', '--', 'echo', 'hello').splitlines()[-1], 'hello', 'output')
    # Nobody else gets to the socket.
    out = run('--engine', '--', 'sh', '-c', 'stat -c "%a %u" "${ROCADE_SOCKET%/*}"')
    tap.equal(out.splitlines()[-1], f'700 {os.geteuid()}', 'the folder')
    nothing_left()


@tap.test
def over_rsockets():
    """What makes TCP RDMA is there, ours first; without what is the distribution's it is said."""
    theirs = [path for pattern in ('lib*/rsocket', 'lib/*/rsocket')
              for path in pathlib.Path('/usr').glob(f'{pattern}/librspreload.so')]
    if not theirs:
        tap.true('librdmacm1' in run('--sockets', '--engine', '--', 'true', status=1), 'what lacks')
        nothing_left()
        raise tap.Skip('no librspreload.so here')
    out = run('--sockets', '--engine', '--', 'sh', '-c', 'echo "$LD_PRELOAD"; cat /proc/self/maps')
    preload = out.splitlines()[0].split(':')
    tap.equal([pathlib.Path(path).name for path in preload],
              ['librocade-sockets.so', 'librspreload.so'], out)
    # It has names of its own for the files behind links.
    for path in (*preload, pathlib.Path(LIBRARY).with_name('librdmacm.so.1')):
        tap.true(str(pathlib.Path(path).resolve()) in out, f'{path} is not in {out}')
    nothing_left()


@tap.test
def how_it_ended():
    for words, status in ((('true',), 0), (('sh', '-c', 'exit 7'), 7),
                          (('sh', '-c', 'kill -9 $$'), 137), (('sh', '-c', 'kill -15 $$'), 143)):
        run('--engine', 'wire', '--', *words, status=status)
    nothing_left()


@tap.test
def two_at_once():
    """Each has devices of the same names, and its own."""
    processes = [begin('--engine', '--', 'sh', '-c', PINGPONG, str(18600 + i)) for i in range(2)]
    for process in processes:
        out, err = process.communicate(timeout=tap.PATIENCE)
        tap.equal(process.returncode, 0, out + err)
        tap.equal(out.count('1000 iters'), 2, out)
    nothing_left()


@tap.test
def an_ordinary_user():
    if os.geteuid() != 0:
        raise tap.Skip('this is one')
    # Root's own python3 may be where nobody else comes, and so may this tree.
    who = {'user': NOBODY, 'group': NOBODY, 'extra_groups': [], 'cwd': '/'}
    for path in (ROCADED, LIBRARY, ROCADE, '/usr/bin/python3'):
        if subprocess.run(['test', '-r', path], check=False, **who).returncode:
            raise tap.Skip(f'nobody can not read {path}')
    os.chmod(FOLDER, 0o777)
    out = run('--engine', '--', 'sh', '-c', 'id -u;' + PINGPONG, '18610',
              python='/usr/bin/python3', **who)
    tap.equal((out.splitlines()[0], out.count('1000 iters')), (str(NOBODY), 2), out)
    nothing_left()


def ended_by(signo, who):
    """A program that waits, ended with its engine: by a signal to it, or to what runs it."""
    process = begin('--engine', '--', 'sh', '-c', 'echo $$; exec sleep 1000',
                    start_new_session=True)
    pid = int(process.stdout.readline())
    tap.true(of_engines(), 'an engine')
    os.kill(pid if who == 'program' else process.pid, signo)
    process.wait(timeout=tap.PATIENCE)
    if signo != signal.SIGKILL:
        tap.equal(process.returncode, 128 + signo, 'status')
    elif who != 'program':
        # Nobody is there to end it.
        os.kill(pid, signal.SIGKILL)
    nothing_left()


for number in (signal.SIGTERM, signal.SIGHUP):
    tap.add(f'ended_by_{number.name}', lambda number=number: ended_by(number, 'rocade'))
tap.add('killed', lambda: ended_by(signal.SIGKILL, 'rocade'))
tap.add('program_killed', lambda: ended_by(signal.SIGTERM, 'program'))


@tap.test
def killed_before_it_is_there():
    process = begin('--engine', '--', 'true')
    tap.wait_until('a process', of_engines)
    process.kill()
    process.wait()
    nothing_left()


def interrupted_before_it_is_there(signo):
    process = begin('--engine', '--', 'echo', 'here')
    tap.wait_until('a process', of_engines)
    process.send_signal(signo)
    out, err = process.communicate(timeout=tap.PATIENCE)
    tap.equal((process.returncode, out), (128 + signo, ''), err)
    nothing_left()


for number in (signal.SIGTERM, signal.SIGINT):
    tap.add(f'before_it_is_there_{number.name}',
            lambda number=number: interrupted_before_it_is_there(number))


def is_dead(pid):
    """With its last thread: then its parent hears of it."""
    text = pathlib.Path(f'/proc/{pid}/stat').read_text(encoding='ascii')
    return text.rsplit(')', 1)[1].split()[0] == 'Z' and len(os.listdir(f'/proc/{pid}/task')) == 1


@tap.test
def an_engine_that_does_not_answer():
    """It is stopped, or dies: the program goes on, and nothing is left."""
    for signo, said in ((signal.SIGSTOP, ''), (signal.SIGKILL, 'the engine ended before')):
        process = begin('--engine', '--', 'sh', '-c', 'echo $$; read line', stdin=subprocess.PIPE)
        process.stdout.readline()
        engine = [pid for pid in of_engines()
                  if 'rocaded' in pathlib.Path(f'/proc/{pid}/comm').read_text(encoding='ascii')]
        tap.equal(len(engine), 1, 'engines')
        os.kill(int(engine[0]), signo)
        tap.wait_until('its end', lambda: signo == signal.SIGSTOP or is_dead(engine[0]))
        _, err = process.communicate('\n', timeout=tap.PATIENCE)
        tap.equal((process.returncode, said in err), (0, True), err)
        nothing_left()


@tap.test
def odd_folders_and_descriptors():
    fd = os.memfd_create('passed')
    os.write(fd, b'through')
    tmp, ENV['TMPDIR'] = ENV['TMPDIR'], f'{FOLDER}/{"x" * 80}'
    os.mkdir(ENV['TMPDIR'])
    try:
        out = run('--engine', '--', 'sh', '-c', f'cat /proc/self/fd/{fd}; ibv_devices',
                  pass_fds=(fd,))
        tap.true('through' in out and 'roce0' in out, out)
    finally:
        os.rmdir(ENV['TMPDIR'])
        ENV['TMPDIR'] = tmp
        os.close(fd)
    nothing_left()


@tap.test
def a_terminal_interrupts_all():
    """The program decides what that means, and the engine stays until it has ended."""
    process = begin('--engine', '--', sys.executable, '-u', '-c', '''
import signal, subprocess
try:
    print('ready', flush=True)
    signal.pause()
except KeyboardInterrupt:
    print(subprocess.run(['ibv_devices'], capture_output=True, text=True).stdout, flush=True)
    raise SystemExit(3)
''', start_new_session=True)
    tap.equal(process.stdout.readline(), 'ready\n', 'ready')
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=tap.PATIENCE)
    tap.equal((process.returncode, 'roce0' in out), (3, True), out + err)
    nothing_left()


@tap.test
def what_it_refuses():
    kinds = 'wire, netdev:NAME or udp:NAME'
    for words, what in ((('--engine', 'tcp:eth0', '--', 'true'), kinds),
                        (('--engine', 'netdev:', '--', 'true'), kinds),
                        (('--engine', 'udp:', '--', 'true'), kinds),
                        (('--engine', 'netdev:a\n[x]', '--', 'true'), kinds),
                        (('--engine', 'udp:a\n[x]', '--', 'true'), kinds),
                        (('--engine', 'netdev:nowhere', '--', 'true'), 'did not start'),
                        (('--engine', 'udp:nowhere', '--', 'true'), 'no netdev nowhere'),
                        (('--engine', 'udp:192.0.2.1', '--', 'true'), 'none with this address'),
                        (('--engine', '--', '/nonexistent'), 'No such file'),
                        (('--engine',), 'COMMAND'), ((), 'COMMAND')):
        began = time.monotonic()
        out = run(*words, status=1)
        tap.true(what in out, f'{words}: {out}')
        tap.true(time.monotonic() - began < 100, f'{words}: it waits for an engine')
    nothing_left()


status = tap.run()
shutil.rmtree(FOLDER, ignore_errors=True)
sys.exit(status)
