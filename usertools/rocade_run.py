# SPDX-License-Identifier: BSD-3-Clause
"""rocade run: an unmodified program against our libraries and an engine, or one of its own that
lives as long as the program does."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import rocade_enable
import rocade_place
from rocade_engine import Engine, Failure

# Begins and ends are waited for so long. One second is usual; a busy machine may give a thread no
# core for a minute, and an engine that is killed leaves its clients nothing.
PATIENCE_SECONDS = 120
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
FOLDER_BYTES = 60


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


def preloaded(folder):
    """What has a program's TCP go by RDMA: rdma-core's library, behind what it lacks."""
    theirs = [path for pattern in ('lib*/rsocket/librspreload.so', 'lib/*/rsocket/librspreload.so')
              for path in sorted(pathlib.Path('/usr').glob(pattern))]
    if not theirs:
        raise Failure('--sockets: no librspreload.so here: install librdmacm1')
    paths = [str(folder / 'librocade-sockets.so'), str(theirs[0]), os.environ.get('LD_PRELOAD', '')]
    return ':'.join(path for path in paths if path)


def environment(args, here):
    """Where a program finds our libraries, and they the engine."""
    build = pathlib.Path(os.environ.get('ROCADE_BUILD_DIR', here.parent / 'build'))
    for folder in (build / 'release/lib', build / 'lib', *rocade_enable.libraries(here.parent)):
        if (folder / 'libibverbs.so.1').exists():
            fits(folder)
            paths = [str(folder), os.environ.get('LD_LIBRARY_PATH', '')]
            return {**os.environ, **({'LD_PRELOAD': preloaded(folder)} if args.sockets else {}),
                    'ROCADE_SOCKET': args.socket,
                    'LD_LIBRARY_PATH': ':'.join(path for path in paths if path)}
    raise Failure('the drop-in libraries are not built')


def not_started(command, err):
    return Failure(f'{command[0]}: {err.strerror}')


def with_engine_there(args, here):
    """In the place of this process."""
    env = environment(args, here)
    Engine(args.socket)
    # Python ignores them.
    for signo in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signo, signal.SIG_DFL)
    try:
        os.execvpe(args.command[0], args.command, env)
    except OSError as err:
        raise not_started(args.command, err) from None


def make_folder():
    """For all that the engine has in files: the user's own place, if there is one."""
    folder = tempfile.mkdtemp(prefix='rocade', dir=rocade_place.runtime_dir())
    # Names of sockets are short.
    if len(os.fsencode(folder)) > FOLDER_BYTES:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix='rocade', dir='/tmp')
    return pathlib.Path(folder)


def configure(kind, folder):
    """Its configuration. Returns the file's name, or None: an embedded wire."""
    what, _, name = kind.partition(':')
    if kind == 'wire':
        return None
    # By UDP an address may stand for the name.
    form = {'netdev': '[!-.0-~]{1,15}', 'udp': '[!-.0-~]{1,45}'}.get(what)
    if form is None or not re.fullmatch(form, name):
        raise Failure(f'--engine {kind}: wire, netdev:NAME or udp:NAME')
    path = folder / 'rocaded.conf'
    path.write_text(f'[engine]\n[device roce0]\ntype = {what}\nnetdev = {name}\n',
                    encoding='utf-8')
    return str(path)


def end_engine(down, args, pidfd, patience):
    """As "rocade down" does; without its help, if that fails."""
    while True:
        try:
            down(args)
            return
        except Exception:
            if time.monotonic() >= patience:
                break
            time.sleep(0.1)
    if pidfd is not None:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


def keep(end, down, args, folder):
    """Another process: when the first one ends, by whatever, engine and folder go."""
    try:
        os.setsid()
        for signo in PASSED_ON + (signal.SIGINT,):
            signal.signal(signo, signal.SIG_IGN)
        # The number of the engine's process, or 0: there will be none. Nothing: it may yet come.
        said = os.read(end, 32)
        pidfd = os.pidfd_open(int(said)) if said and int(said) else None
        os.read(end, 1)
        if not said or pidfd is not None:
            end_engine(down, args, pidfd, time.monotonic() + (0 if said else PATIENCE_SECONDS))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


class Signals:
    """What is to end this process ends the program, or keeps it from being started."""

    def __init__(self):
        self.process, self.before = None, []
        for signo in PASSED_ON + (signal.SIGINT,):
            signal.signal(signo, self.come)

    def come(self, signo, _frame):
        if self.process is None:
            self.before.append(signo)
        elif signo in PASSED_ON:
            self.process.send_signal(signo)
        # A terminal tells SIGINT to all of its group.

    def belong_to(self, process):
        self.process = process
        for signo in self.before:
            process.send_signal(signo)


def run_program(args, here, start, tell_keeper):
    """Returns its exit status, as a shell has it."""
    signals = Signals()
    daemon = None
    try:
        daemon = start(args)
    finally:
        tell_keeper(daemon.pid if daemon else 0)
    if signals.before:
        return 128 + signals.before[0]
    try:
        process = subprocess.Popen(args.command, env=environment(args, here),
                                   close_fds=False)
    except OSError as err:
        raise not_started(args.command, err) from None
    signals.belong_to(process)
    status = process.wait()
    if daemon.poll() is not None:
        sys.stderr.write(pathlib.Path(args.log).read_text(encoding='utf-8', errors='replace'))
        print('rocade: the engine ended before the program', file=sys.stderr)
    return status if status >= 0 else 128 - status


def with_engine_of_its_own(args, here, start, down):
    """For as long as the program runs."""
    folder = make_folder()
    args.socket, args.log = str(folder / 'rocade.sock'), str(folder / 'rocaded.log')
    args.eal, args.option, args.no_kernel_addresses = ['--file-prefix', folder.name], [], False
    # What EAL makes lies there: it takes root of a user namespace for one who may write to /run.
    args.environment = {'RUNTIME_DIRECTORY': str(folder)}
    # Of the engine only faults are told: the output is the program's.
    args.json = True
    read_end, write_end = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(write_end)
        keep(read_end, down, args, folder)
    os.close(read_end)
    def tell_keeper(pid):
        os.write(write_end, str(pid).encode())
    try:
        try:
            args.config = configure(args.engine, folder)
        except BaseException:
            # Or it waits for one that may yet come.
            tell_keeper(0)
            raise
        return run_program(args, here, start, tell_keeper)
    finally:
        os.close(write_end)
        os.waitpid(keeper, 0)
