#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: "rocade enable" makes programs of a new shell get Rocade's libraries, twice is as once, and
"rocade disable" leaves every file as it was.

Method: home folders and a system's root of the test's own; shells started in them as a user would;
all files compared byte by byte, with their modes; perftest in such shells, on an engine. Writes
that fail leave all files as they were. The system's part needs root, for ldconfig in another root.

    test_enable.py BUILD_FOLDER ROCADED
"""
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROCADED = os.path.abspath(sys.argv[2])
CHOICE = BUILD / 'lib/choice'
TOOLS = pathlib.Path(__file__).resolve().parents[2] / 'usertools'
FILE = 'libibverbs.so.1'
SHOW = ('exec ' + sys.executable + ' -c "import ctypes; ctypes.CDLL(\'' + FILE + '\'); '
        'print(*sorted({line.split()[5] for line in open(\'/proc/self/maps\') '
        'if \'/' + FILE + '\' in line}))"')


class Home:
    """A user's home folder, for a while."""

    def __init__(self, **files):
        self.files = files

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix='rcdhome'))
        for name, text in self.files.items():
            (self.path / f'.{name}').write_bytes(text)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def env(self):
        kept = {key: val for key, val in os.environ.items()
                if not key.startswith(('ROCADE', 'LD_', 'XDG_', 'ZDOTDIR'))}
        return {**kept, 'HOME': str(self.path), 'SHELL': '/bin/bash',
                'ROCADE_BUILD_DIR': str(BUILD)}

    def rocade(self, *words, status=0, cwd=None):
        done = subprocess.run([sys.executable, TOOLS / 'rocade', *words], env=self.env(), cwd=cwd,
                              capture_output=True, text=True, check=False)
        tap.equal(done.returncode, status, f'{words}: {done.stdout}{done.stderr}')
        tap.true('Traceback' not in done.stderr, done.stderr)
        return done.stdout + done.stderr

    def shell(self, *options):
        """What a program loads in a new shell."""
        if shutil.which(options[0]) is None:
            raise tap.Skip(f'no {options[0]} here')
        done = subprocess.run([*options, '-c', SHOW], env=self.env(), capture_output=True,
                              stdin=subprocess.DEVNULL, text=True, check=False)
        tap.equal(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def tree(self):
        return {str(path): (stat.S_IMODE(path.lstat().st_mode), path.lstat().st_uid,
                            os.readlink(path) if path.is_symlink() else
                            path.read_bytes() if path.is_file() else None)
                for path in sorted(self.path.rglob('*'))}


def is_rocades(files):
    return str(CHOICE / FILE) in files and any(pathlib.Path(file).parent == BUILD / 'lib'
                                               for file in files)


def round_trip(**files):
    with Home(**files) as home:
        before = home.tree()
        tap.true(not is_rocades(home.shell('bash')), 'the system\'s before')
        home.rocade('enable')
        once = home.tree()
        tap.true('already' in home.rocade('enable'), 'twice')
        tap.equal(home.tree(), once, 'after the second')
        for shell in (['bash', '-i'], ['bash', '-l']):
            tap.true(is_rocades(home.shell(*shell)), f'{shell}: {home.shell(*shell)}')
        home.rocade('disable')
        tap.equal(home.tree(), before, 'after disable')
        tap.true('already' in home.rocade('disable'), 'disabled twice')
        tap.equal(home.tree(), before, 'after the second disable')


@tap.test
def an_empty_home():
    round_trip()


@tap.test
def start_files_come_back_as_they_were():
    round_trip(bashrc=b'case $- in *i*) ;; *) return;; esac\nexport A=1', profile=b'',
               bash_profile=b'. ~/.bashrc\n# \xff no UTF-8\n')


@tap.test
def zsh_where_it_is_used():
    with Home(zshenv=b'export A=1\n') as home:
        before = home.tree()
        home.rocade('enable')
        tap.true(b'rocade' in (home.path / '.zshenv').read_bytes(), 'block')
        if shutil.which('zsh'):
            tap.true(is_rocades(home.shell('zsh')), 'zsh')
        home.rocade('disable')
        tap.equal(home.tree(), before, 'after disable')


@tap.test
def links_modes_and_what_was_written_since_stay():
    with Home(bashrc=b'export A=1\n') as home:
        (home.path / 'dots').mkdir()
        (home.path / '.bashrc').rename(home.path / 'dots/bashrc')
        (home.path / 'dots/bashrc').chmod(0o600)
        (home.path / '.bashrc').symlink_to('dots/bashrc')
        home.rocade('enable')
        tap.true((home.path / '.bashrc').is_symlink(), 'a link still')
        tap.equal(stat.S_IMODE((home.path / 'dots/bashrc').stat().st_mode), 0o600, 'mode')
        for name in ('.bashrc', '.profile'):
            with open(home.path / name, 'a', encoding='ascii') as file:
                file.write('export B=2\n')
        home.rocade('disable')
        tap.equal((home.path / '.bashrc').read_text(), 'export A=1\nexport B=2\n', '.bashrc')
        tap.equal((home.path / '.profile').read_text(), 'export B=2\n', 'a file of ours, in use')


@tap.test
def damaged_marks_change_nothing():
    with Home() as home:
        home.rocade('enable')
        path = home.path / '.bashrc'
        path.write_text(path.read_text().replace('# <<< rocade\n', 'export A=1\n'))
        before = home.tree()
        for command in ('enable', 'disable'):
            words = home.rocade(command, status=1)
            tap.true(f'{path}: the marks of rocade enable are damaged' in words, words)
            tap.equal(home.tree(), before, command)


@tap.test
def dpdk_programs_get_the_systems():
    with Home() as home:
        home.rocade('enable')
        files = home.shell('env', 'bash', '-i')
        tap.true(is_rocades(files), f'{files}')
        done = subprocess.run(
            ['bash', '-ic', f'LD_PRELOAD={FILE} LD_DEBUG=files {sys.argv[2]} --version'],
            env=home.env(), capture_output=True, stdin=subprocess.DEVNULL, text=True, check=False)
        loaded = {line.split('calling init: ')[1] for line in done.stderr.splitlines()
                  if 'calling init: ' in line and FILE in line}
        tap.true(str(CHOICE / FILE) in loaded and not is_rocades(loaded), f'{loaded}')


@tap.test
def socket_and_words():
    with Home() as home:
        words = home.rocade('--socket', 'here/rocade.sock', 'enable')
        tap.true('environment.sh' in words, words)
        done = subprocess.run(['bash', '-ic', 'echo $ROCADE_SOCKET'], env=home.env(),
                              capture_output=True, stdin=subprocess.DEVNULL, text=True,
                              check=False)
        tap.equal(done.stdout.strip(), os.path.abspath('here/rocade.sock'), 'ROCADE_SOCKET')
        line = (home.path / '.config/environment.d/60-rocade.conf').read_text().splitlines()[1]
        tap.equal(line, f'LD_LIBRARY_PATH="{CHOICE}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',
                  'environment.d')


def shell_program(home, *command):
    """It, as a user starts it in a new shell."""
    # pylint: disable=consider-using-with
    return subprocess.Popen(['bash', '-lc', shlex.join(('exec', *command))], env=home.env(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


@tap.test
def perftest_in_a_new_shell():
    if shutil.which('ib_send_bw') is None:
        raise tap.Skip('no perftest here')
    command = ('ib_send_bw', '-x', '1', '-F', '-n', '100', '-p', str(20000 + os.getpid() % 10000))
    with Home() as home:
        socket = str(home.path / 'rocade.sock')
        log = open(home.path / 'log', 'w+', encoding='utf-8')  # pylint: disable=consider-using-with
        engine = subprocess.Popen(  # pylint: disable=consider-using-with
            [ROCADED, '--file-prefix', f'rcdenable{os.getpid()}', '--no-huge', '-m', '256',
             '--no-telemetry', '--', '--socket', socket, '--embedded-wire'],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        leash.leash(engine.pid)
        ends = []
        try:
            home.rocade('--socket', socket, 'enable')
            tap.wait_until('an engine', lambda: os.path.exists(socket) or
                           engine.poll() is not None)
            ends.append(shell_program(home, *command, '-d', 'roce0'))
            # The server listens some time after its start; a client that is early is refused.
            deadline = time.monotonic() + tap.PATIENCE
            while True:
                ends[1:] = [shell_program(home, *command, '-d', 'roce1', '127.0.0.1')]
                said = ends[1].communicate(timeout=tap.PATIENCE)[0]
                if ends[1].returncode == 0 or ends[0].poll() is not None or \
                        time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            if ends[1].returncode != 0:
                ends[0].terminate()
            said += ends[0].communicate(timeout=tap.PATIENCE)[0]
            tap.equal([end.returncode for end in ends], [0, 0],
                      said + (home.path / 'log').read_text())
            tap.true(' 65536 ' in said, said)
        finally:
            for process in (*ends, engine):
                process.kill()
                process.wait()
            log.close()


def doctor(home, **more):
    done = subprocess.run([sys.executable, TOOLS / 'rocade', 'doctor'], capture_output=True,
                          env={**home.env(), **more}, text=True, check=False)
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if line[6:].startswith('default '))
    return ' '.join(lines[at:at + 2])


@tap.test
def doctor_tells():
    with Home() as home:
        tap.true(doctor(home).startswith('ok    default      programs get the system\'s'),
                 doctor(home))
        home.rocade('enable')
        tap.true('open a new shell' in doctor(home), doctor(home))
        line = doctor(home, LD_LIBRARY_PATH=str(CHOICE))
        tap.true(line.startswith('ok    default      programs get Rocade\'s'), line)
        path = home.path / '.config/rocade/environment.sh'
        path.write_text(path.read_text().replace(str(CHOICE), '/nowhere/rocade'))
        tap.true(doctor(home).startswith('fail  default'), doctor(home))


def make_root(folder):
    """A system with our libraries installed, and the system's own, and no more."""
    ours, theirs = folder / 'usr/lib/x/rocade/default', folder / 'usr/lib/x'
    ours.mkdir(parents=True)
    (folder / 'etc/ld.so.conf.d').mkdir(parents=True)
    (folder / 'etc/ld.so.conf').write_text('include /etc/ld.so.conf.d/*.conf\n')
    (folder / 'etc/ld.so.conf.d/libc.conf').write_text('/usr/lib/x\n')
    for where in (ours, ours.parent, theirs):
        shutil.copy(CHOICE / FILE, where)


def cache(root):
    done = subprocess.run(['/sbin/ldconfig', '-r', root, '-p'], capture_output=True, text=True,
                          check=True)
    return [line.split('=> ')[1] for line in done.stdout.splitlines() if f'{FILE} (' in line]


@tap.test
def a_system():
    if os.geteuid() != 0:
        raise tap.Skip('ldconfig needs root for another root')
    with tempfile.TemporaryDirectory(prefix='rcdroot') as name, Home() as home:
        root = pathlib.Path(name)
        make_root(root)
        conf = root / 'etc/ld.so.conf.d/00-rocade.conf'
        for _ in range(2):
            home.rocade('enable', '--root', name)
            tap.equal(cache(root), [f'/usr/lib/x/rocade/default/{FILE}', f'/usr/lib/x/{FILE}'],
                      'order')
        tap.true('/usr/lib/x/rocade/default\n' in conf.read_text(), conf.read_text())
        for _ in range(2):
            home.rocade('disable', '--root', name)
            tap.equal(cache(root), [f'/usr/lib/x/{FILE}'], 'after disable')
        tap.equal(sorted(path.name for path in conf.parent.iterdir()), ['libc.conf'], 'files')
        library = f'usr/lib/x/rocade/default/{FILE}'
        folder = 'usr/lib/x/rocade'
        (root / folder).chmod(0o775)
        home.rocade('enable', '--root', name)
        home.rocade('disable', '--root', name)
        chosen = f'{folder}/{FILE}'
        for path, mode, user, group in (
                (folder, 0o777, 0, 0), (folder, 0o775, 0, 65534), (folder, 0o1777, 0, 0),
                (library, 0o664, 0, 65534), (chosen, 0o666, 0, 0), (chosen, 0o644, 65534, 0)):
            was = (root / path).stat().st_mode
            os.chown(root / path, user, group)
            (root / path).chmod(mode)
            words = home.rocade('enable', '--root', name, status=1)
            tap.true(f'others than root may write to /{path};' in words, words)
            tap.true(not conf.exists(), 'written all the same')
            os.chown(root / path, 0, 0)
            (root / path).chmod(was)


@tap.test
def all_files_or_none():
    sys.path.insert(0, str(TOOLS))
    import rocade_enable  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        old, new, broken = folder / 'old', folder / 'sub/new', folder / 'broken'
        write = rocade_enable.write

        def fails(path, data):
            if path in (broken, folder / 'other/broken'):
                raise OSError(28, 'No space left on device')
            write(path, data)

        for last in (broken, folder / 'other/broken'):
            for path in (old, broken):
                path.write_bytes(b'before')
            changes = [rocade_enable.Text(path, 'after') for path in (old, new, last)]
            rocade_enable.write = fails
            try:
                rocade_enable.apply(changes, True, folder, rocade_enable.owned)
                raise AssertionError('it did not say that it failed')
            except OSError:
                pass
            finally:
                rocade_enable.write = write
            tap.equal([(path.name, path.read_bytes()) for path in sorted(folder.iterdir())],
                      [('broken', b'before'), ('old', b'before')], f'files, {last} failed')


@tap.test
def nothing_of_others_runs_or_is_written():
    with Home(bashrc=b'echo hello\n') as home, tempfile.TemporaryDirectory() as folder:
        planted = pathlib.Path(folder)
        (planted / 'ctypes.py').write_text(f'open("{folder}/ran", "w").close()\n')
        home.rocade('enable', cwd=folder)
        home.rocade('disable', cwd=folder)
        tap.true(not (planted / 'ran').exists(), 'a module of the folder that one is in was run')
        if os.geteuid() != 0:
            raise tap.Skip('only root can give files to others')
        os.chown(home.path / '.bashrc', 65534, 65534)
        words = home.rocade('enable', status=1)
        tap.true('.bashrc is not of the user who runs this' in words, words)
        # Nor by a link of another user's to something of ours.
        (planted / 'ours').write_text('')
        (home.path / '.bashrc').unlink()
        (home.path / '.bashrc').symlink_to(planted / 'ours')
        os.chown(home.path / '.bashrc', 65534, 65534, follow_symlinks=False)
        words = home.rocade('enable', status=1)
        tap.true('.bashrc is not of the user who runs this' in words, words)
        tap.equal((planted / 'ours').read_text(), '', 'what the link leads to')
        make_root(planted / 'image')
        (planted / 'image/etc/ld.so.conf.d/00-rocade.conf').symlink_to(planted / 'precious')
        words = home.rocade('enable', '--root', str(planted / 'image'), status=1)
        tap.true('leads out of' in words, words)
        tap.true(not (planted / 'precious').exists(), 'written through a link')


@tap.test
def a_system_without_libraries():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    with tempfile.TemporaryDirectory(prefix='rcdroot') as name, Home() as home:
        os.makedirs(f'{name}/etc')
        words = home.rocade('enable', '--root', name, status=1)
        tap.true('the libraries are not' in words, words)


if __name__ == '__main__':
    sys.exit(tap.run())
