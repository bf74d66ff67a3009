#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: a NIC on a PCI bus goes from the kernel to the engine by the commands that doc/node.md has,
carries RoCE and the kernel's network, and goes back.

Method: a kernel in a virtual machine with an IOMMU and a NIC that DPDK has a driver for (the kit
nic-lab), whose root is this machine's; guest.sh is what happens there. The NIC's other end is a TAP
in a namespace here, which has an engine as a netdev, and the server of ibv_rc_pingpong. The guest
asks for its cable to be taken out and in, as its NIC's is QEMU's.

    test_lab.py ROCADED LIBIBVERBS MODEL DRIVER

Where there is no such machine to be had it says why and skips.
"""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from lab import ENV, HERE, KIT, ROOT, leash, monitor, need_kit, sh, stand_in, \
    tap  # noqa: E402

ROCADED, LIBRARY = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
MODEL, DRIVER = sys.argv[3:5]
NAMESPACE = f'rcdn{os.getpid()}'
SECONDS = 400
STEPS = re.findall(r'^\t?step (\w+)', (HERE / 'guest.sh').read_text(), re.M)
NOT_HERE = ('sleeps', 'wakes') if DRIVER == 'net_e1000_em' else ('jumbo', 'looks')
STEPS = [step for step in STEPS if not step.startswith(NOT_HERE)]


class Far:
    """The NIC's other end: an engine on the TAP, a server for one program after another."""

    def __init__(self, folder):
        sh('ip', 'netns', 'add', NAMESPACE, wrong=tap.Skip)
        for words in ('link set lo up', 'tuntap add tapn mode tap', 'link set tapn mtu 9000 up',
                      'addr add 10.78.0.1/24 dev tapn', 'addr add fd78::1/64 dev tapn nodad'):
            sh('ip', '-n', NAMESPACE, *words.split(), wrong=tap.Skip)
        self.socket = f'{folder}/far.sock'
        config = pathlib.Path(folder) / 'far.cfg'
        # One that polls would take a core from the emulated processors.
        config.write_text(f'[engine]\nsocket = {self.socket}\nidle = sleep\n'
                          '[device far]\ntype = netdev\nnetdev = tapn\nmode = packet\n')
        self.log = pathlib.Path(folder) / 'far.log'
        self.engine = self.begin(self.log, ROCADED, '--file-prefix', NAMESPACE, '--no-huge', '-m',
                                 '384', '--no-telemetry', '--', '--config', config)
        self.done = False
        self.servers = {}
        self.threads = [threading.Thread(target=self.serve, args=(index,), daemon=True)
                        for index in (1, 2)]
        for thread in self.threads:
            thread.start()

    def begin(self, log, *words, **env):
        with open(log, 'a', encoding='utf-8') as out:
            process = subprocess.Popen(['ip', 'netns', 'exec', NAMESPACE, *map(str, words)],
                                       stdout=out, stderr=out, env={**ENV, **env})
        leash.leash(process.pid)
        return process

    def serve(self, index):
        """By IPv4 (GID 1) or IPv6 (GID 2), which have a port each."""
        while not self.done:
            self.servers[index] = self.begin(
                self.log, 'ibv_rc_pingpong', '-d', 'far', '-g', index, '-p', 18514 + index, '-n',
                '100', ROCADE_SOCKET=self.socket, LD_LIBRARY_PATH=str(LIBRARY.parent))
            self.servers[index].wait()

    def stop(self):
        self.done = True
        for process in (*self.servers.values(), self.engine):
            if process.poll() is None:
                process.terminate()
                process.wait(tap.PATIENCE)
        for thread in self.threads:
            thread.join(30)
        subprocess.run(['ip', 'netns', 'del', NAMESPACE], check=False)


def cable(folder):
    """Out and in, as the guest says."""
    with socket.socket(socket.AF_UNIX) as connection:
        # It may be there, and nobody listen yet.
        tap.wait_until('QEMU', lambda: not connection.connect_ex(f'{folder}/asks'))
        with connection.makefile(encoding='utf-8', errors='replace') as lines:
            for line in lines:
                monitor(folder, 'set_link', name='nic0', up='in' in line)


held = set()
console = ''


@tap.test
def boots():
    global console
    need_kit()
    if not os.access('/lib/systemd/systemd-udevd', os.X_OK):
        raise tap.Skip('no systemd-udevd')
    with tempfile.TemporaryDirectory(prefix='rcdlab') as folder:
        script = pathlib.Path(folder) / 'script.sh'
        script.write_text(f'exec bash {HERE}/guest.sh {ROCADED} {LIBRARY.parent} '
                          f'{ROOT} {DRIVER}\n')
        far = Far(folder)
        threading.Thread(target=cable, args=(folder,), daemon=True).start()
        try:
            done = subprocess.run(
                [KIT / 'run', script, f'{MODEL},tapn'], stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors='replace', check=False,
                env={**ENV, 'PATH': stand_in(folder, 0, MODEL), 'NIC_LAB_NS': NAMESPACE,
                     'NIC_LAB_LIMIT': str(SECONDS)})
        finally:
            far.stop()
        console = done.stdout[-6000:]
        reached = re.findall(r'^step (\w+) held at (\d+) s', done.stdout, re.M)
        held.update(name for name, _ in reached)
        print('# ' + ', '.join(f'{name} at {seconds} s' for name, seconds in reached), flush=True)
        print('# ' + ', '.join(re.findall(r'^\d+ (?:polls|interrupts) .*', done.stdout, re.M)),
              flush=True)
        tap.true('nic-lab-status' in done.stdout, f'{console}{far.log.read_text()[-2000:]}')


def step(name):
    def check():
        if not console or any(other not in held for other in STEPS[:STEPS.index(name)]):
            raise tap.Skip('not reached')
        tap.true(name in held, console)
    check.__name__ = name
    tap.test(check)


for each in dict.fromkeys(STEPS):
    step(each)

if __name__ == '__main__':
    sys.exit(tap.run())
