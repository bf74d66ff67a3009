#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the recipes of examples/ci and doc/ci.md do what they say, with the rights that they say.

Method: their files are read, and the commands in them run: by a shell, by pytest, in containers of
an ordinary user's podman whose root is this machine's /usr, and in namespaces as Kubernetes makes
them for the two containers of a pod, with the restrictions that the pod asks for.

    test_ci.py ROCADED LIBIBVERBS
"""
import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import nobody  # noqa: E402
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROCADED, LIBRARY = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
EXAMPLES = ROOT / 'examples/ci'
BUILD = LIBRARY.parents[1]
FOLDER = pathlib.Path(tempfile.gettempdir(), f'rcdci{os.getpid()}')
USER = 64329
# Python of the system: modules come from packages, and every user may read it.
PATH = f'{ROOT}/usertools:{ROCADED.parent}:/usr/sbin:/usr/bin:/sbin:/bin'
ENV = {'PATH': PATH, 'ROCADE_BUILD_DIR': str(BUILD), 'ROCADE_ROCADED': str(ROCADED),
       'HOME': str(FOLDER), 'TMPDIR': str(FOLDER), 'LC_ALL': 'C.UTF-8'}
PINGPONG = nobody.pingpong(18640)


def run(*command, status=0, cwd=FOLDER, **env):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd,
                          env={**ENV, **env}, timeout=nobody.WAIT_SECONDS, check=False)
    if status is not None:
        tap.equal(done.returncode, status, f'{command}: {done.stdout}{done.stderr}')
    return done


def read_yaml(name):
    try:
        import yaml
    except ImportError:
        raise tap.Skip('no python3-yaml') from None
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def nothing_left(but=()):
    tap.wait_until('engines gone', lambda: not {path.name for path in FOLDER.iterdir()} - {*but})


@tap.test
def job():
    text = (EXAMPLES / 'job.yml').read_text()
    shown = re.search(r'```yaml\n(.*?)```', (ROOT / 'doc/ci.md').read_text(), re.S)[1]
    tap.true(shown in text, 'doc/ci.md has another job than examples/ci/job.yml')
    steps = read_yaml('job.yml')[0]['jobs']['verbs']['steps']
    lines = [step['run'] for step in steps if 'run' in step]
    for line in lines:
        run('bash', '-n', '-c', line)
        for path in re.findall(r'/opt/rocade/(usertools/\S+)', line):
            tap.true(os.access(ROOT / path, os.X_OK), path)
    work = FOLDER / 'work'
    work.mkdir()
    last = lines[-1].replace('/opt/rocade', str(ROOT))
    for target, status in (('ibv_devices', 0), ('exit 3', 2)):
        (work / 'Makefile').write_text(f'check:\n\t{target}\n')
        done = run('bash', '-ec', last, cwd=work, status=status)
        tap.true(status or 'roce1' in done.stdout, done.stdout)
    shutil.rmtree(work)
    nothing_left()


@tap.test
def with_pytest():
    if run('/usr/bin/python3', '-c', 'import pytest, pyverbs', status=None).returncode:
        raise tap.Skip('no python3-pytest, or no python3-pyverbs')
    work = FOLDER / 'work'
    shutil.copytree(EXAMPLES, work, ignore=shutil.ignore_patterns('__pycache__'))
    tests = ['/usr/bin/python3', '-m', 'pytest', '-rs', '-p', 'no:cacheprovider', work]
    usual = run('rocade', 'run', '--engine', '--', *tests, PYTHONDONTWRITEBYTECODE='1')
    tap.true(' 3 passed' in usual.stdout, usual.stdout)
    # Without an engine they say what is missing; and a test that fails fails the job.
    alone = run(*tests, PYTHONDONTWRITEBYTECODE='1')
    tap.true('rocade run --engine -- pytest' in alone.stdout, alone.stdout)
    (work / 'test_fails.py').write_text('def test_fails(pair):\n    assert not pair\n')
    run('rocade', 'run', '--engine', '--', *tests, status=1, PYTHONDONTWRITEBYTECODE='1')
    shutil.rmtree(work)
    nothing_left()


NEEDED = [ROCADED, LIBRARY, ROOT / 'usertools/rocade']


class Home(nobody.Home):
    """With engines."""

    def __init__(self):
        super().__init__(USER, {**ENV, 'TMPDIR': '/tmp'}, NEEDED)

    @contextlib.contextmanager
    def engine(self):
        self.keep(self.run('rocade', 'up', '--', '--no-huge', '-m', '256', status=0).stdout)
        try:
            yield
        finally:
            self.run('rocade', 'down', status=0)
        tap.true(not (self.runtime / 'rocade').exists(), 'what is left')


def recipe():
    """The Containerfile's instructions, and the commands that its comment names."""
    text = (EXAMPLES / 'Containerfile').read_text()
    joined = text.replace('\\\n', '')
    said = dict(re.findall(r'^([A-Z]+) (.*)$', joined, re.M))
    return said, re.findall(r'^#   (podman .*)$', text, re.M)


@tap.test
def image():
    said, commands = recipe()
    tap.equal(set(said), {'FROM', 'COPY', 'RUN', 'ENTRYPOINT', 'CMD'}, 'instructions')
    control = (ROOT / 'usertools/packaging/debian/control').read_text()
    for name in re.findall(r'(rocade[a-z-]*)_\*\.deb', said['COPY']):
        tap.true(f'Package: {name}\n' in control, f'no package {name}')
    run('sh', '-n', '-c', said['RUN'])
    listed = (ROOT / 'usertools/rocade-setup.sh').read_text()
    for name in said['RUN'].split('rocade-verbs_*.deb')[1].split('&&')[0].split():
        tap.true(name in listed.split(), f'{name} is in no list of rocade-setup.sh')
    for words in map(shlex.split, commands):
        tap.equal(words[0], 'podman', words)
    tap.equal(len(commands), 3, 'commands')


def words_of_container(line):
    """Of a "podman run" with the image "rocade": options, and what runs in it."""
    said, _ = recipe()
    words, options, first = shlex.split(line)[3:], [], json.loads(said['ENTRYPOINT'])
    while words[0] != 'rocade':
        if words[0] == '--entrypoint':
            first = [words[1]]
        else:
            options += words[:2]
        words = words[2:]
    return options, first + words[1:]


class Podman:
    """Containers of a user whose root has this machine's programs. Skips where there are none."""

    def __init__(self, home):
        if shutil.which('podman', path=PATH) is None:
            raise tap.Skip('no podman')
        self.home, root = home, home.folder / 'root'
        for path in ('usr', 'etc/alternatives', 'tmp', 'run', 'proc', 'dev', 'sys', 'var', 'root',
                     str(ROOT)[1:], str(BUILD)[1:]):
            (root / path).mkdir(parents=True, exist_ok=True)
        for name in ('bin', 'sbin', 'lib', 'lib64'):
            (root / name).symlink_to(f'usr/{name}')
        (root / 'var/run').symlink_to('/run')
        for name in ('passwd', 'group', 'ld.so.cache'):
            shutil.copy(f'/etc/{name}', root / 'etc')
        run('chown', '-R', f'{USER}:{USER}', root)
        self.root, self.how = root, None
        said = []
        for how in ([], ['--runtime=runc']):
            done = self.run('true', how=how, status=None)
            if done.returncode == 0:
                self.how = how
                return
            said += (done.stderr.strip().splitlines() or ['podman says nothing'])[-1:]
        raise tap.Skip(f'podman makes no containers for an ordinary user here: {"; ".join(said)}')

    def run(self, *command, options=(), how=None, status=0):
        given = self.how if how is None else how
        env = [word for key in ('PATH', 'ROCADE_BUILD_DIR', 'ROCADE_ROCADED')
               for word in ('-e', f'{key}={ENV[key]}')]
        return self.home.run(
            'podman', '--cgroup-manager=cgroupfs', *given, 'run', '--rm', '--network=none',
            '--ulimit=host', '--tmpfs=/tmp', '-v', '/usr:/usr:ro', '-v', f'{ROOT}:{ROOT}:ro', '-v',
            f'{BUILD}:{BUILD}:ro', *env, *options, '--rootfs', self.root, *command, status=status,
            cwd='/')


@tap.test
def rootless_podman():
    with Home() as home:
        podman = Podman(home)
        _, commands = recipe()
        options, command = words_of_container(commands[1])
        out = podman.run(*command, options=options).stdout
        tap.true('roce0' in out and 'roce1' in out, out)
        out = podman.run(*command[:command.index('--') + 1], 'sh', '-c', PINGPONG, 'roce1',
                         options=options).stdout
        tap.equal(out.count('1000 iters'), 2, out)
        podman.run(*command[:command.index('--') + 1], 'sh', '-c', 'exit 7', status=7)
        options, command = words_of_container(commands[2])
        options = [word.replace('$XDG_RUNTIME_DIR', str(home.runtime)) for word in options]
        with home.engine():
            out = podman.run(*command, options=options).stdout
            tap.true('roce0' in out and 'roce1' in out, out)
            out = podman.run(*command[:command.index('--') + 1], 'sh', '-c', PINGPONG, 'roce1',
                             options=options).stdout
            tap.equal(out.count('1000 iters'), 2, out)


@tap.test
def rootless_namespaces():
    """What podman does, by hand: namespaces of all kinds, of a user without any right."""
    with Home() as home:
        apart = ['unshare', '-Urnmpf', '--kill-child', '--mount-proc']
        if home.run(*apart, 'true').returncode:
            raise tap.Skip('no namespaces for an ordinary user')
        lo = 'ip link set lo up && exec "$@"'
        out = home.run(*apart, 'sh', '-c', lo, 'sh', 'rocade', 'run', '--engine', '--', 'sh', '-c',
                       PINGPONG, 'roce1', status=0).stdout
        tap.equal(out.count('1000 iters'), 2, out)
        with home.engine():
            out = home.run(*apart, 'sh', '-c', lo, 'sh', 'rocade', 'run', '--', 'sh', '-c',
                           PINGPONG, 'roce1', status=0).stdout
            tap.equal(out.count('1000 iters'), 2, out)


def restricted(pod, container):
    """How setpriv makes what the pod asks for; fails when it asks for more than nothing."""
    of_pod, own = pod['securityContext'], container['securityContext']
    tap.equal((of_pod['runAsNonRoot'], of_pod['seccompProfile']),
              (True, {'type': 'RuntimeDefault'}), 'the pod')
    tap.equal(own, {'allowPrivilegeEscalation': False, 'readOnlyRootFilesystem': True,
                    'capabilities': {'drop': ['ALL']}}, container['name'])
    tap.true(not {'hostNetwork', 'hostPID', 'hostIPC'} & set(pod), 'of the host')
    tap.true('resources' not in container, 'devices or hugepages')
    return ['setpriv', f'--reuid={of_pod["runAsUser"]}', f'--regid={of_pod["runAsGroup"]}',
            *nobody.NO_RIGHTS]


CONTAINER = '''
mount -t tmpfs none /dev/shm && mount -o remount,bind,ro / && exec "$@"
'''
# A pod's network and processes, and the folder that its containers have in common.
POD = '''
set -e
mount -t tmpfs none /run
install -d -o {user} -g {user} /run/rocade
ip link set lo up
ip link add eth0 type veth peer name far
ip link set far up
ip link set eth0 up
ip addr add 10.9.0.1/24 dev eth0
unshare -m sh -c "$CONTAINER" sh env {env} {engine} >{folder}/log 2>&1 & engine=$!
for i in $(seq {tries}); do
    unshare -m sh -c "$CONTAINER" sh {probe} >/dev/null 2>&1 && break
    kill -0 $engine || {{ cat {folder}/log; exit 8; }}
    sleep 0.2
done
unshare -m sh -c "$CONTAINER" sh {program}
unshare -m sh -c "$CONTAINER" sh {more}
unshare -m sh -c "$CONTAINER" sh {caps}
kill $engine
wait $engine
ls -A /run/rocade
'''


@tap.test
def sidecar():
    config, about = read_yaml('sidecar.yaml')
    pod = about['spec']
    (engine,), (program,) = pod['initContainers'], pod['containers']
    tap.equal((engine['restartPolicy'], pod['shareProcessNamespace']), ('Always', True), 'the pod')
    shared = {volume['name'] for volume in pod['volumes'] if 'emptyDir' in volume}
    mounts = {mount['name']: mount for mount in engine['volumeMounts']}
    tap.equal(program['volumeMounts'], engine['volumeMounts'], 'what they have in common')
    tap.equal({mounts[name]['mountPath'] for name in shared}, {'/run/rocade'}, 'folders')
    nobody.need(USER, NEEDED)
    (FOLDER / 'pod').mkdir()
    for name, text in config['data'].items():
        (FOLDER / 'pod' / name).write_text(text)
    how = restricted(pod, engine)

    def line(container, command):
        words = [*restricted(pod, container), *command]
        return shlex.join(words).replace(mounts['config']['mountPath'], f'{FOLDER}/pod')

    script = POD.format(
        user=pod['securityContext']['runAsUser'], folder=f'{FOLDER}/pod',
        env=' '.join(f'{each["name"]}={each["value"]}' for each in engine['env']),
        engine=line(engine, engine['command']),
        probe=line(engine, engine['startupProbe']['exec']['command']),
        tries=5 * engine['startupProbe']['failureThreshold'],
        program=line(program, program['command']),
        more=line(program, [*program['command'][:program['command'].index('--') + 1], 'sh', '-c',
                            PINGPONG, 'roce0']),
        caps=shlex.join([*how, 'grep', '^Cap', '/proc/self/status']))
    done = run('unshare', '-nmpf', '--kill-child', '--mount-proc', 'bash', '-c', script,
               status=None, CONTAINER=CONTAINER)
    out = done.stdout + done.stderr
    log = (FOLDER / 'pod/log').read_text() if (FOLDER / 'pod/log').exists() else ''
    tap.equal(done.returncode, 0, out + log)
    tap.true('PORT_ACTIVE' in out and out.count('1000 iters') == 2, out)
    tap.equal({int(cap, 16) for cap in re.findall(r'Cap\w+:\s(\w+)', out)}, {0}, 'capabilities')
    tap.equal(done.stdout.split('CapAmb:')[1].split()[1:], ['dpdk'], 'what is left')
    shutil.rmtree(FOLDER / 'pod')
    nothing_left()


if __name__ == '__main__':
    FOLDER.mkdir(mode=0o711)
    try:
        sys.exit(tap.run())
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
