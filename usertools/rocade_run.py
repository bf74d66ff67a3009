# SPDX-License-Identifier: BSD-3-Clause
"""rocade run: an unmodified program against our libraries and an engine, or one of its own that
lives as long as the program does."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import rocade_enable
from rocade_engine import Engine, Failure

# As long as "rocade up" waits for one.
START_SECONDS = 30


def fits(folder):
    """Libraries of another rdma-core end a program with no more than the name of a symbol."""
    # libibverbs.so.1.14.44.0 is rdma-core 44.0's.
    systems = (path for pattern in ('lib*/libibverbs.so.1', 'lib/*/libibverbs.so.1')
               for path in pathlib.Path('/usr').glob(pattern))
    ours, *theirs = (path.resolve().name.split('.')[4] if path.resolve().name.count('.') > 3
                     else None for path in (folder / 'libibverbs.so.1', *systems))
    if ours and theirs and ours not in theirs and None not in theirs:
        raise Failure(f'the libraries in {folder} are for rdma-core {ours}, and rdma-core '
                      f'{theirs[0]} is installed: build again, in another build directory')


def environment(socket, here):
    """Where a program finds our libraries, and they the engine."""
    build = pathlib.Path(os.environ.get('ROCADE_BUILD_DIR', here.parent / 'build'))
    for folder in (build / 'release/lib', build / 'lib', *rocade_enable.libraries(here.parent)):
        if (folder / 'libibverbs.so.1').exists():
            fits(folder)
            paths = [str(folder), os.environ.get('LD_LIBRARY_PATH', '')]
            return {**os.environ, 'ROCADE_SOCKET': socket,
                    'LD_LIBRARY_PATH': ':'.join(path for path in paths if path)}
    raise Failure('the drop-in libraries are not built')


def not_started(command, err):
    return Failure(f'{command[0]}: {err.strerror}')


def with_engine_there(args, here):
    """In the place of this process."""
    env = environment(args.socket, here)
    Engine(args.socket)
    try:
        os.execvpe(args.command[0], args.command, env)
    except OSError as err:
        raise not_started(args.command, err) from None


def configure(kind, folder):
    """Its configuration. Returns the file's name, or None: an embedded wire."""
    what, _, name = kind.partition(':')
    if kind == 'wire':
        return None
    if what != 'netdev' or not name:
        raise Failure(f'--engine {kind}: wire, or netdev:NAME')
    path = folder / 'rocaded.conf'
    path.write_text(f'[engine]\n[device roce0]\ntype = netdev\nnetdev = {name}\n',
                    encoding='utf-8')
    return str(path)


def keep(end, down, args, folder):
    """Another process: when the first one ends, by whatever, engine and folder go."""
    os.setsid()
    for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, signal.SIG_IGN)
    # A byte says that the engine is there, or will not be; without it, it may yet come.
    patience = time.monotonic() + (0 if os.read(end, 1) else START_SECONDS)
    os.read(end, 1)
    while True:
        try:
            down(args)
        except (Failure, OSError):
            if time.monotonic() < patience:
                time.sleep(0.1)
                continue
        break
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def wait(process):
    """Its exit status, as a shell has it; what ends this one ends the program."""
    for signo in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signo, lambda number, _: process.send_signal(number))
    # A terminal tells all of its group.
    signal.signal(signal.SIGINT, lambda *_: None)
    status = process.wait()
    return status if status >= 0 else 128 - status


def with_engine_of_its_own(args, here, up, down):
    """For as long as the program runs."""
    place = os.environ.get('XDG_RUNTIME_DIR') or None
    folder = pathlib.Path(tempfile.mkdtemp(prefix='rocade', dir=place))
    args.socket, args.log = str(folder / 'rocade.sock'), str(folder / 'rocaded.log')
    args.eal, args.option, args.no_kernel_addresses = ['--file-prefix', folder.name], [], False
    # What EAL makes for an ordinary user lies there.
    args.environment = {'XDG_RUNTIME_DIR': str(folder)}
    # Of the engine only faults are told: the output is the program's.
    args.json = True
    read_end, write_end = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(write_end)
        keep(read_end, down, args, folder)
    try:
        args.config = configure(args.engine, folder)
        env = environment(args.socket, here)
        try:
            up(args)
        finally:
            os.write(write_end, b'.')
        try:
            process = subprocess.Popen(args.command, env=env)
        except OSError as err:
            raise not_started(args.command, err) from None
        return wait(process)
    finally:
        os.close(write_end)
        os.waitpid(keeper, 0)
