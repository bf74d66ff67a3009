#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the unit for systemd shuts off what it can, and leaves the daemon what it needs.

Method: systemd's own judgement of the unit, its list of system calls beside the daemon's, its
snippets carried out in a folder, and a daemon that is started with the rights that the unit gives.

    test_unit.py ROCADED
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

ROCADED = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / 'usertools'
UNIT = TOOLS / 'rocade.service'
EXPOSURE_MOST = 2.5
USER = 64321


def run(*command):
    if shutil.which(command[0]) is None:
        raise tap.Skip(f'no {command[0]} here')
    return subprocess.run(command, capture_output=True, text=True, timeout=tap.PATIENCE,
                          check=False)


def value(key):
    """All lines of a key, without its name."""
    return [line.split('=', 1)[1].strip() for line in UNIT.read_text().splitlines()
            if line.startswith(key + '=')]


def verified():
    # What an installed unit would be. The daemon is where this one has it; there is no other fault.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / UNIT.name
        path.write_text(UNIT.read_text().replace('/usr/local/sbin/rocaded',
                                                 os.path.abspath(ROCADED)))
        done = run('systemd-analyze', 'verify', str(path))
        faults = [line for line in done.stderr.splitlines() if 'rocade.service' in line]
        tap.equal(faults, [], 'what systemd-analyze verify says')
    # The container of vfio is a misc device, and none of the groups that char-vfio stands for.
    for device in ('/dev/net/tun rw', '/dev/vfio/vfio rw', 'char-vfio rw'):
        tap.true(device in value('DeviceAllow'), device)


tap.add('item 6 the unit is understood, and leaves the daemon its devices', verified)


def exposure():
    done = run('systemd-analyze', '--no-pager', '--offline=true', 'security', str(UNIT))
    found = re.search(r'Overall exposure level for \S+: ([0-9.]+)', done.stdout)
    if found is None:
        raise tap.Skip('systemd-analyze does not judge files here: ' + done.stderr.strip())
    print(f'# exposure {found.group(1)}')
    tap.true(float(found.group(1)) <= EXPOSURE_MOST, done.stdout)


tap.add('item 6 systemd-analyze security finds 2.5 or less', exposure)


def expand(name):
    """The system calls of a set of systemd's, or of one."""
    if not name.startswith('@'):
        return {name}
    found = set()
    done = run('systemd-analyze', 'syscall-filter', '--no-pager', name)
    for line in done.stdout.splitlines()[1:]:
        word = line.split('#')[0].strip()
        if word:
            found |= expand(word)
    return found


def system_calls():
    allowed = expand('@default')
    for line in value('SystemCallFilter'):
        names = set().union(*map(expand, line.lstrip('~').split()))
        allowed = allowed - names if line.startswith('~') else allowed | names
    source = (ROOT / 'app/rocaded/filter.c').read_text()
    ours = set(re.findall(r'"([a-z0-9_]+)"', source[:source.index('sanitizer_calls')]))
    ours |= {'mmap', 'mprotect', 'clone', 'prctl', 'socket'}
    tap.true(len(ours) > 100, ours)
    tap.equal(ours - allowed, set(), 'calls that the daemon makes and the unit forbids')
    for name in ('ptrace', 'process_vm_readv', 'process_vm_writev', 'mount', 'init_module',
                 'kexec_load', 'reboot', 'setns', 'execve'):
        tap.true(name not in ours, name)


tap.add('item 6 the unit leaves the daemon its system calls', system_calls)


def snippets():
    with tempfile.TemporaryDirectory() as folder:
        if os.geteuid() != 0:
            raise tap.Skip('needs root')
        for name in ('etc', 'run'):
            os.makedirs(f'{folder}/{name}')
        done = run('systemd-sysusers', f'--root={folder}', str(TOOLS / 'rocade.sysusers.conf'))
        tap.equal(done.returncode, 0, done.stderr)
        passwd = pathlib.Path(f'{folder}/etc/passwd').read_text()
        uid = int(re.search(r'^rocade:[^:]*:(\d+):', passwd, re.M).group(1))
        done = run('systemd-tmpfiles', f'--root={folder}', '--create',
                   str(TOOLS / 'rocade.tmpfiles.conf'))
        tap.equal(done.returncode, 0, done.stderr)
        tap.equal(os.stat(f'{folder}/run/rocade').st_uid, uid, 'its folder')


tap.add('item 6 the snippets make the account and its folder', snippets)


def hugepages():
    """What sets up tmpfiles at boot leaves /dev out, so the unit has to make the folder."""
    lines = (TOOLS / 'rocade.tmpfiles.conf').read_text().splitlines()
    tap.true(not any(line.startswith('d /dev') for line in lines),
             'a folder below /dev')
    before = value('ExecStartPre')
    tap.equal(len(before), 1, 'commands before the start')
    # Not as the account, and no failure where no hugepages are.
    tap.true(before[0].startswith('-+'), before)
    tap.true('dev-hugepages.mount' in value('After')[0].split(), 'after the mount')
    with tempfile.TemporaryDirectory() as folder:
        words = before[0].lstrip('-+').replace('/dev/hugepages', folder)
        words = words.replace(' rocade ', f' {os.geteuid()} ')
        tap.equal(run(*words.split()).returncode, 0, words)
        tap.equal(os.stat(f'{folder}/rocade').st_mode & 0o7777, 0o700, 'its mode')


tap.add('item 6 the unit makes the folder of hugepages', hugepages)


def comes_after_the_node():
    """Behind what binds NICs and makes hugepages; and who comes too early tries again."""
    after = value('After')[0].split()
    # driverctl@.service, modules and hugepages of tmpfiles.d are all in front of the first.
    for unit in ('basic.target', 'systemd-tmpfiles-setup.service', 'dev-hugepages.mount'):
        tap.true(unit in after, f'{unit} in {after}')
    driverctl = pathlib.Path('/usr/lib/systemd/system/driverctl@.service')
    if driverctl.exists():
        tap.true('Before=basic.target' in driverctl.read_text().split(), driverctl.read_text())
    tap.equal((value('Restart'), value('StartLimitIntervalSec')), (['on-failure'], ['0']), 'tries')
    final = [int(word) for word in value('RestartPreventExitStatus')[0].split()]
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder) / 'rocade.conf'
        parts = pathlib.Path(f'{config}.d')
        parts.mkdir()
        config.write_text(f'[engine]\nsocket = {folder}/rocade.sock\n')
        for text, mends in (('type = port\ndevargs = 0000:ff:1f.7\n', True),
                            ('type = netdev\nnetdev = rcdnone0\n', True),
                            ('type = port\ndevargs = 0000:ff:1f.7\nkernel = a/b\n', False)):
            (parts / 'r0.conf').write_text(f'[device r0]\n{text}')
            done = run(ROCADED, '--file-prefix', f'rcdunit{os.getpid()}', '--no-huge', '-m', '256',
                       '--', '--config', str(config))
            tap.true(done.returncode > 0, f'{text} {done.stdout}{done.stderr}')
            tap.equal(done.returncode not in final, mends, f'{text} {done.stdout}{done.stderr}')


tap.add('item 8 the unit comes after NICs are bound, and waits for who is late',
        comes_after_the_node)


# Small frames: not every machine lets a test lift RLIMIT_MEMLOCK, as the unit does. What
# ProtectSystem= and ProtectKernelTunables= make read-only is that; the folder is RuntimeDirectory=.
SANDBOX = '''ip link set lo mtu 1500
mount --make-rprivate /
for at in "$0" /sys /proc/sys; do
	mount --bind "$at" "$at"
done
for at in / /sys /proc/sys; do
	mount -o remount,bind,ro "$at"
done
exec "$@"
'''


def few_rights_do():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    names = value('AmbientCapabilities')[0].split()
    few = '-all,' + ','.join('+' + name.lower()[4:] for name in names)
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, USER, USER)
        socket = f'{folder}/rocade.sock'
        command = ['unshare', '-nm', 'sh', '-ec', SANDBOX, folder, 'setpriv', f'--reuid={USER}',
                   f'--regid={USER}', '--clear-groups', f'--inh-caps={few}',
                   f'--ambient-caps={few}', f'--bounding-set={few}', '--no-new-privs', ROCADED,
                   '--file-prefix', f'rcdunit{os.getpid()}', '--no-huge', '-m', '256', '--',
                   '--socket', socket, '--embedded-wire', '-o', 'seccomp=kill']
        env = {**os.environ, 'RUNTIME_DIRECTORY': folder}
        log = f'{folder}/log'
        with open(log, 'w', encoding='utf-8') as out:
            engine = subprocess.Popen(command, stdout=out, stderr=out, env=env)
        leash.leash(engine.pid)

        def rocade(*words):
            return run(sys.executable, str(TOOLS / 'rocade'), '--socket', socket, *words)
        try:
            deadline = time.monotonic() + tap.PATIENCE
            while rocade('engine').returncode and time.monotonic() < deadline:
                tap.equal(engine.poll(), None, pathlib.Path(log).read_text())
                time.sleep(0.1)
            for words in (('type', 'port', 'net_null0'),
                          ('type', 'netdev', 'lo', 'mode', 'packet')):
                done = rocade('link', 'add', 'x0', *words)
                tap.equal(done.returncode, 0, done.stderr + pathlib.Path(log).read_text())
                tap.equal(rocade('link', 'del', 'x0').returncode, 0, words)
            mounts = pathlib.Path(f'/proc/{engine.pid}/mountinfo').read_text()
            for at in '/', '/sys', '/proc/sys':
                last = [line for line in mounts.splitlines() if line.split()[4] == at][-1]
                tap.true(last.split()[5].startswith('ro'), last)
            for path in pathlib.Path(f'/proc/{engine.pid}/task').iterdir():
                status = (path / 'status').read_text()
                has = int(re.search(r'CapPrm:\s*(\S+)', status).group(1), 16) != 0
                tap.equal(has, path.name == str(engine.pid), 'capabilities\n' + status)
        finally:
            engine.terminate()
            tap.equal(engine.wait(tap.PATIENCE), 0, 'its end')


tap.add('item 6 a daemon starts and adds links with the rights of the unit', few_rights_do)


if __name__ == '__main__':
    sys.exit(tap.run())
