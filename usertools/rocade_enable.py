# SPDX-License-Identifier: BSD-3-Clause
"""Rocade for good: programs find its libraries without being told, those of a user or all of the
system. What is written is files of our own, and in a shell's start files a marked block, which goes
as it came. The libraries that are chosen are those that leave DPDK programs the system's own."""
import contextlib
import os
import pathlib
import platform
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile

from rocade_engine import Failure

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = 'libibverbs.so.1'
SYSTEM_FILE = 'etc/ld.so.conf.d/00-rocade.conf'
PACKAGE_FILE = '/etc/ld.so.conf.d/00-rocade-verbs.conf'
MARK = '"rocade enable" wrote this, "rocade disable" removes it'
BEGIN, END, NEW = f'# >>> rocade: {MARK}', '# <<< rocade', ', and this file'
BLOCK = re.compile(re.escape(BEGIN.encode()) + rb'([^\n]*)\n.*?' + re.escape(END.encode()) +
                   rb'\n', re.S)
PROBE = ('import ctypes, sys\n'
         'ctypes.CDLL(sys.argv[1])\n'
         'print(sys.argv[1], *{line.split()[5] for line in open("/proc/self/maps") '
         'if sys.argv[1] in line})')


def libraries(prefix):
    """Where the drop-in libraries may be below an installation."""
    return sorted(prefix.glob('lib/rocade')) + sorted(prefix.glob('lib/*/rocade'))


def folders(prefix):
    """Where those may be that make them the default."""
    return [folder / 'default' for folder in libraries(prefix)]


def find_folder(root):
    """The libraries' folder as a program will see it, from which a system in root is to live."""
    build = pathlib.Path(os.environ.get('ROCADE_BUILD_DIR', HERE.parent / 'build'))
    if root != pathlib.Path('/'):
        places = folders(root / 'usr') + folders(root / 'usr/local')
    else:
        places = [build / 'release/lib/choice', build / 'lib/choice', *folders(HERE.parent),
                  *folders(HERE.parent.parent)]
    for place in places:
        if (place / LIBRARY).exists():
            return pathlib.Path('/') / place.resolve().relative_to(root.resolve())
    if platform.machine() not in ('x86_64', 'aarch64'):
        raise Failure(f'there are no libraries to be the default on {platform.machine()}: '
                      'use rocade run')
    raise Failure('the libraries are not here: install rocade-verbs, or in a checkout run '
                  'usertools/rocade-quickstart.sh, or ninja')


def used(env):
    """Which files a new program with this environment loads by the library's name; a Failure with
    the loader's words when it can load none."""
    # -I: not the modules of whatever folder we are in.
    done = subprocess.run([sys.executable, '-I', '-c', PROBE, LIBRARY], env=env, cwd='/',
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure((done.stderr.strip().splitlines() or ['it can not be loaded'])[-1])
    return done.stdout.split()[1:]


def is_ours(files):
    """Rocade's library beside the one that chooses, in an installation or as it was built."""
    return any(pathlib.Path(file).parent.name != 'choice' and
               (pathlib.Path(file).parent / 'choice').is_dir() or
               pathlib.Path(file).parent.name == 'rocade' for file in files)


def try_folder(folder, root):
    """Before anything is written: what is there can be used."""
    if root != pathlib.Path('/'):
        return
    env = {**os.environ, 'LD_LIBRARY_PATH': str(folder), 'ROCADE_VERBS': 'rocade'}
    if not is_ours(used(env)):
        raise Failure(f'{folder}/{LIBRARY} does not find Rocade\'s libraries')


class Text:
    """A file that is ours as a whole."""

    def __init__(self, path, text):
        self.path, self.text = path, text

    def new(self, enabled):
        """What is to be there: bytes, or None for no file."""
        return self.text.encode() if enabled else None


class Block:
    """A marked part at the start of a file that is somebody else's: below, a shell that is not
    interactive may have left it."""

    def __init__(self, path, line):
        self.path, self.line = path, line

    def new(self, enabled):
        old = self.path.read_bytes() if self.path.exists() else None
        found = BLOCK.search(old or b'')
        rest = BLOCK.sub(b'', old or b'')
        if BEGIN.encode() in rest or b'\n' + END.encode() in b'\n' + rest:
            raise Failure(f'{self.path}: the marks of rocade enable are damaged; take what lies '
                          f'between "{BEGIN}" and "{END}" out, with both')
        created = old is None or (found and found[1] == NEW.encode())
        if not enabled:
            return None if created and not rest else rest if found else old
        mark = BEGIN + (NEW if created else '')
        return f'{mark}\n{self.line}\n{END}\n'.encode() + rest


def home():
    path = os.environ.get('HOME') or os.path.expanduser('~')
    if not os.path.isdir(path):
        raise Failure(f'there is no home folder {path}')
    return pathlib.Path(path)


def config_home():
    given = os.environ.get('XDG_CONFIG_HOME', '')
    return pathlib.Path(given) if given.startswith('/') else home() / '.config'


def shell_file():
    """What shells read."""
    return config_home() / 'rocade/environment.sh'


def user_changes(folder, socket):
    """All that is written for a user; folder and socket matter only to what is made."""
    config, base = config_home(), home()
    head = f'# {MARK}.\n'
    quoted = shlex.quote(str(folder))
    sh = head + (f'case ":${{LD_LIBRARY_PATH:-}}:" in\n*:{quoted}:*) ;;\n'
                 f'*) export LD_LIBRARY_PATH={quoted}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}} ;;\n'
                 'esac\n')
    env = head + f'LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"\n'
    fish = head + (f'contains -- {quoted} (string split : -- "$LD_LIBRARY_PATH")\n'
                   f'or set -gx --path LD_LIBRARY_PATH {quoted} $LD_LIBRARY_PATH\n')
    if socket:
        sh += f'export ROCADE_SOCKET={shlex.quote(socket)}\n'
        env += f'ROCADE_SOCKET="{socket}"\n'
        fish += f'set -gx ROCADE_SOCKET {shlex.quote(socket)}\n'
    changes = [Text(config / 'environment.d/60-rocade.conf', env), Text(shell_file(), sh)]
    if (config / 'fish').is_dir():
        changes.append(Text(config / 'fish/conf.d/rocade.fish', fish))
    line = f'if [ -r {shlex.quote(str(shell_file()))} ]; then . ' \
           f'{shlex.quote(str(shell_file()))}; fi'
    logins = [base / name for name in ('.bash_profile', '.bash_login', '.profile')]
    files = [path for path in logins if path.exists()] or [base / '.profile']
    files.append(base / '.bashrc')
    zsh = pathlib.Path(os.environ.get('ZDOTDIR') or base) / '.zshenv'
    if zsh.exists() or os.environ.get('SHELL', '').endswith('zsh'):
        files.append(zsh)
    return changes + [Block(path, line) for path in files]


def write(path, data):
    """In one step, through a link to where the file is, with the rights that it has."""
    path = pathlib.Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}.')
    try:
        with os.fdopen(handle, 'wb') as file:
            file.write(data)
            if path.exists():
                about = path.stat()
                os.fchmod(handle, stat.S_IMODE(about.st_mode))
                if (about.st_uid, about.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(handle, about.st_uid, about.st_gid)
            else:
                os.fchmod(handle, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def remove(path, top):
    """The file, and folders below top that hold nothing any more."""
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == top or top not in parent.parents:
            break
        if parent.is_dir():
            if any(parent.iterdir()):
                break
            parent.rmdir()


def put(path, data, top):
    """Make it the content of the file; None: there is no such file."""
    if data is None:
        remove(path, top)
    else:
        write(path, data)


def owned(path):
    """It is of the user who runs this."""
    if os.path.lexists(path) and path.lstat().st_uid != os.geteuid():
        raise Failure(f'{path} is not of the user who runs this')


def ours(path):
    """Root's shells must not come to read what another user can change: with "sudo -E", root has
    that user's home. Links on the way are looked at as well as what they lead to."""
    tops = [top for top in (home(), config_home()) if path.is_relative_to(top)]
    for one in (pathlib.Path(os.path.realpath(path)), path, *path.parents):
        owned(one)
        if not tops or one == tops[0]:
            break


def below(root, path):
    """A system's file below a root: no link in there may lead out of it."""
    if not pathlib.Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        raise Failure(f'{path} leads out of {root}')
    return path


def undo(plan, top):
    """Make the files what they were, as far as can be: those first that take room."""
    for path, old, _ in sorted(plan, key=lambda each: each[1] is not None):
        with contextlib.suppress(OSError):
            if (path.read_bytes() if path.exists() else None) != old:
                put(path, old, top)


def apply(changes, enabled, top, check=ours):
    """Make all changes, or none when one can not be; check(path) says whose the files must be.
    Returns what was changed: [(path, old content, new one)]."""
    plan = []
    for change in changes:
        old = change.path.read_bytes() if change.path.exists() else None
        new = change.new(enabled)
        if new == old:
            continue
        folder = pathlib.Path(os.path.realpath(change.path)).parent
        while not folder.exists():
            folder = folder.parent
        if not os.access(folder, os.W_OK):
            raise Failure(f'{change.path} can not be written by this user')
        if old is None:
            owned(folder)
        check(change.path)
        plan.append((change.path, old, new))
    try:
        for path, _, new in plan:
            put(path, new, top)
    except BaseException:
        undo(plan, top)
        raise
    return plan


def guarded(folder, root):
    """What all programs of a system load is nobody's to change but root's: the libraries that
    choose, those beside their folder that they load, where links lead, and all folders above."""
    root = root.resolve()
    path = root / folder.relative_to('/')
    files = [file.resolve() for place in (path, path.parent) for file in place.glob('*.so*')]
    folders_of_them = {path, path.parent, *(file.parent for file in files)}
    above = {parent for each in folders_of_them for parent in each.parents if parent != root and
             parent not in root.parents}
    for one in sorted({*files, *folders_of_them, *above}):
        about = one.stat()
        free = about.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if about.st_gid else 0))
        # Nobody may take from such a folder what is another's, but everybody may add to it.
        if one not in folders_of_them and one.is_dir() and about.st_mode & stat.S_ISVTX:
            free = 0
        if about.st_uid or free:
            raise Failure(f'{folder} can not be the default of the system: others than root may '
                          f'write to /{one.relative_to(root)}; install Rocade '
                          '(usertools/rocade-package.sh)')


def system_change(folder):
    return f'# Rocade: programs get its libraries, DPDK programs the system\'s own.\n{folder}\n'


def for_system(enabled, root):
    if not os.access(root / 'etc', os.W_OK):
        raise Failure(f'{root / SYSTEM_FILE} can not be written by this user: run as root')
    folder = None
    if enabled:
        folder = find_folder(root)
        guarded(folder, root)
        try_folder(folder, root)
    changed = apply([Text(below(root, root / SYSTEM_FILE), system_change(folder))], enabled,
                    root / 'etc', owned)
    ldconfig = shutil.which('ldconfig') or '/sbin/ldconfig'
    where = [] if root == pathlib.Path('/') else ['-r', str(root)]
    done = subprocess.run([ldconfig, *where], capture_output=True, text=True, check=False)
    if done.returncode:
        undo(changed, root / 'etc')
        raise Failure(f'ldconfig: {done.stderr.strip() or "it fails, and does not say why"}')
    return changed


def switch(args, enabled):
    root = pathlib.Path(args.root)
    if args.system or root != pathlib.Path('/'):
        changed, whose = for_system(enabled, root), 'the system'
    else:
        folder, socket = None, None
        if enabled:
            folder = find_folder(root)
            if re.search(r'["$\\:\n]', str(folder)):
                raise Failure(f'{folder} has a character that LD_LIBRARY_PATH can not hold')
            socket = os.path.abspath(args.socket) if args.named else None
            if socket and re.search(r'["$\\\n]', socket):
                raise Failure(f'{socket} has a character that environment.d can not hold')
            try_folder(folder, root)
        changed = apply(user_changes(folder, socket), enabled, home())
        whose = 'this user'
    for path, _, _ in changed:
        print(f'{"changed" if path.exists() else "removed"} {path}')
    print(f'Rocade is {"now" if changed else "already"} {"" if enabled else "not "}the default of '
          f'{whose}')
    folder = named_folder(pathlib.Path(PACKAGE_FILE))
    if not enabled and folder and folder.exists():
        print(f'{PACKAGE_FILE} makes it the default of the system still: remove package '
              'rocade-verbs-default')
    if enabled and whose == 'this user':
        print(f'new shells know it; this one by: . {shlex.quote(str(shell_file()))}')


def switch_to(enabled):
    """The function of a command."""
    return lambda args: switch(args, enabled)


def named_folder(path):
    """The folder that a file of ours names."""
    try:
        text = path.read_text(encoding='utf-8')
    except OSError:
        return None
    found = re.search(r'^(?:\*\) export LD_LIBRARY_PATH=)?(\'?)(/[^\'\n$]*)\1', text, re.M)
    return pathlib.Path(found[2]) if found else None


def check():
    """For "rocade doctor": (state, what, remedy)."""
    enabled = {f'/{SYSTEM_FILE}': named_folder(pathlib.Path('/', SYSTEM_FILE)),
               str(shell_file()): named_folder(shell_file())}
    # The file outlives its package, until that is purged; its folder does not.
    packaged = named_folder(pathlib.Path(PACKAGE_FILE))
    if packaged and packaged.exists():
        enabled[PACKAGE_FILE] = packaged
    by = [name for name, folder in enabled.items() if folder]
    for name in by:
        if not (enabled[name] / LIBRARY).exists():
            return 'fail', f'{name} names {enabled[name]}, where the libraries are no more', \
                'rocade disable, or rocade enable again (with --system as root)'
    try:
        ours = is_ours(used(dict(os.environ)))
    except Failure as failure:
        return 'fail', f'{LIBRARY} can not be loaded: {failure}', 'rocade disable'
    if ours:
        how = f'by {", ".join(by)}' if by else 'in this shell'
        return 'ok', f'programs get Rocade\'s libraries {how}, DPDK programs the system\'s', ''
    if os.environ.get('ROCADE_VERBS') == 'system':
        return 'ok', 'programs get the system\'s libraries: ROCADE_VERBS is system', ''
    if by:
        return 'warn', f'programs get the system\'s libraries in this shell, in spite of ' \
            f'{", ".join(by)}', 'open a new shell'
    return 'ok', 'programs get the system\'s libraries, Rocade\'s by rocade run', ''
