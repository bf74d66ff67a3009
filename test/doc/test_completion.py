#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: bash and zsh complete what is typed, from the programs and from the running engine, and are
silent about what an engine would know where there is none.

Method: each shell reads its completion and is asked as its line editor would ask: bash by the
variables of a completion function, zsh with functions in the place of those builtins that only work
in a completion. The answers are compared with what the engine lists.

    test_completion.py ROCADED ROCADE_BENCH ROCADE_DUMP
"""
import atexit
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import leash  # noqa: E402
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = tempfile.mkdtemp(prefix='rcdcomp')
SOCKET = f'{FOLDER}/rocade.sock'
PROGRAMS = [os.path.abspath(path) for path in sys.argv[1:]]
PATH = ':'.join([str(ROOT / 'usertools'), *map(os.path.dirname, PROGRAMS), os.environ['PATH']])
ENV = {**os.environ, 'ROCADE_ROCADED': PROGRAMS[0], 'ROCADE_SOCKET': SOCKET, 'PATH': PATH}

BASH = r'''
source "$1"
COMP_LINE=$2
COMP_POINT=${#2}
read -ra COMP_WORDS <<<"$COMP_LINE"
[[ $COMP_LINE != *" " ]] || COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
spec=$(complete -p "${COMP_WORDS[0]}") || exit 3
function=${spec#*-F }
${function%% *} "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}"
printf '%s\n' "${COMPREPLY[@]}"
'''
ZSH = r'''
compadd() {
	local -a given
	while (( $# )); do
		case $1 in
		-a) given=(${(P)2}); shift ;;
		-S) shift ;;
		esac
		shift
	done
	print -rl -- $given
}
_files() { print -rl -- *(N) }
_normal() { print -r -- "normal ${words[*]} at $CURRENT" }
words=(${=2})
[[ $2 != *" " ]] || words+=("")
CURRENT=$#words
cd $3
source $1
'''


def bash(line, where=FOLDER):
    return ask(['bash', '--norc', '-c', BASH, 'bash', ROOT / 'usertools/completion/rocade.bash',
                line], where)


def zsh(line, where=FOLDER):
    if shutil.which('zsh') is None:
        raise tap.Skip('no zsh on this machine')
    # Sourced, its last line calls the function for the words that are there.
    return ask(['zsh', '-f', '-c', ZSH, 'zsh', ROOT / 'usertools/completion/_rocade', line, where],
               where)


def ask(command, where):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=ENV, cwd=where,
                          timeout=tap.PATIENCE, check=False)
    tap.equal((done.returncode, done.stderr), (0, ''), f'{command[-1]}: {done.stdout}')
    return sorted(line for line in done.stdout.splitlines() if line)


def rocade(*words):
    done = subprocess.run([ROOT / 'usertools/rocade', '--log', f'{FOLDER}/log', *words],
                          capture_output=True, text=True, env=ENV, timeout=tap.PATIENCE,
                          check=False)
    tap.equal(done.returncode, 0, f'{words}: {done.stdout}{done.stderr}')
    return done.stdout


def expect(shell, line, *answers):
    tap.equal(shell(line), sorted(answers), line)


def without_an_engine(shell):
    """Words are known; what an engine would know is not, and nothing complains."""
    expect(shell, 'rocade li', 'link')
    expect(shell, 'rocade link ', 'show', 'add', 'del', 'set')
    expect(shell, 'rocade link show ')
    expect(shell, 'rocade dev show ', 'netns')
    expect(shell, 'rocade statistic show sent')
    expect(shell, 'rocade nothing ')
    expect(shell, 'rocade --det', '--details')
    expect(shell, 'rocade up --no', '--no-kernel-addresses')
    expect(shell, 'rocade link add x type ', 'wire', 'netdev', 'udp', 'port')
    expect(shell, 'rocade link add x type netdev lo mode ', 'auto', 'xdp', 'packet', 'udp')
    expect(shell, 'rocade link add x type netdev netdev lo mode ', 'auto', 'xdp', 'packet', 'udp')
    expect(shell, 'rocade link add x type wire peer y ', 'mode', 'netns', 'address', 'gateway',
           'gateway4', 'gateway6', 'kernel', 'mac', 'mtu', 'pause', 'impair', 'raw', 'cc',
           'cc_class', 'sl_dscp', 'tos', 'sack', 'state')
    expect(shell, 'rocade link add x type wire peer y mtu 1500 sta', 'state')
    expect(shell, 'rocade link add x type wire peer y mtu 1500 state ', 'up', 'down')
    expect(shell, 'rocade resource show c', 'cq', 'ctx', 'cm_id')
    tap.true('lo' in shell('rocade link add x type netdev '), 'netdevs of the kernel')


def other_programs(shell):
    expect(shell, 'rocaded --check', '--check-config')
    expect(shell, 'rocaded -l 0,1 -- --emb', '--embedded-wire')
    expect(shell, 'rocade-bench -', '--', '--help', '--version')
    expect(shell, 'rocade-bench -- --op ', 'send', 'write', 'write-imm', 'read', 'cas', 'faa')
    expect(shell, 'rocade-bench -- --service u', 'uc', 'ud')
    expect(shell, 'rocade-bench -- --lat', '--latency')
    expect(shell, 'rocade-dump --q', '--quiet')


def keys_and_files(shell):
    folder = tempfile.mkdtemp(dir=FOLDER)
    for name in ('one.conf', 'two.conf'):
        (pathlib.Path(folder) / name).touch()
    tap.equal(shell('rocade up -c ', folder), ['one.conf', 'two.conf'], 'files')
    tap.equal(shell('rocaded --config ', folder), ['one.conf', 'two.conf'], 'files')
    tap.equal(shell('rocade-dump ', folder), ['one.conf', 'two.conf'], 'files')
    expect(shell, 'rocade up -o seccomp', 'seccomp=')
    # To bash the word begins behind the "=".
    lead = '' if shell is bash else 'idle='
    expect(shell, 'rocaded -o idle=s', lead + 'sleep')
    expect(shell, 'rocade up -o idle=', *(lead + val for val in ('auto', 'poll', 'yield', 'sleep')))


def command_of_run(shell):
    if shell is bash:
        tap.true('rocade' in bash('rocade run -- roca'), 'commands')
        tap.true('rocade' in bash('rocade run --engine netdev:eth0 -- roca'), 'commands')
        tap.true('rocade' in bash('rocade run --sockets --engine -- roca'), 'commands')
        expect(bash, 'rocade run --sockets --e', '--engine')
    else:
        expect(zsh, 'rocade run -- rping -', 'normal rping - at 2')


def from_the_engine(shell):
    links = [link['ifname'] for link in json.loads(rocade('-j', 'link'))]
    devices = [device['ifname'] for device in json.loads(rocade('-j', 'dev'))]
    counters = list(json.loads(rocade('-j', 'statistic'))[0]['counters'])
    tap.true(len(links) == 4 and 'extra0' in links and len(counters) > 90, links)
    listed = (ROOT / 'lib/base/rcd_counter.def').read_text()
    tap.equal(counters, re.findall(r'^RCD_COUNTER\(\w+, (\w+),', listed, re.M), 'the list')
    expect(shell, 'rocade link show ', *links)
    expect(shell, 'rocade link set ext', 'extra0', 'extra1')
    expect(shell, 'rocade link set roce0 ', 'up', 'down', 'gateway', 'gateway4', 'gateway6', 'mtu',
           'pause', 'impair', 'raw', 'cc', 'cc_class', 'sl_dscp', 'tos',
           'sack', 'state')
    expect(shell, 'rocade link set roce0 mtu 1500 state ', 'up', 'down')
    expect(shell, 'rocade addr add 10.0.0.1/24 dev extra', 'extra0', 'extra1')
    expect(shell, 'rocade resource show qp link roce', 'roce0', 'roce1')
    expect(shell, 'rocade dev show ', 'netns', *devices)
    expect(shell, 'rocade statistic show ', 'link', *counters)
    expect(shell, 'rocade statistic show link roce0 rdma_', 'rdma_recvs', 'rdma_sends')
    expect(shell, 'rocade statistic show link roce0 rdma_sends rdma_r', 'rdma_recvs')
    expect(shell, f'rocade --socket {FOLDER}/none link show ')


def statistic_of_some():
    words = rocade('statistic', 'show', 'link', 'roce0', 'rdma_sends', 'sent_pkts').split()
    tap.equal(words[:3] + words[4:5], ['link', 'roce0/1', 'rdma_sends', 'sent_pkts'], 'in order')
    tap.equal(len(words), 6, 'no others')
    found = json.loads(rocade('-j', 'statistic', 'show', 'sent_pkts'))
    tap.equal([list(link['counters']) for link in found], [['sent_pkts']] * 4, 'of each link')
    done = subprocess.run([ROOT / 'usertools/rocade', 'statistic', 'show', 'link', 'roce0', 'cows'],
                          capture_output=True, text=True, env=ENV, timeout=tap.PATIENCE,
                          check=False)
    tap.equal((done.returncode, done.stderr), (1, 'rocade: there is no counter cows\n'),
              'a wrong one')


def stop():
    subprocess.run([ROOT / 'usertools/rocade', 'down'], env=ENV, capture_output=True,
                   timeout=tap.PATIENCE, check=False)
    shutil.rmtree(FOLDER)


def started(check):
    def run():
        if not os.path.exists(SOCKET):
            rocade('up', '--no-kernel-addresses', '--', '--file-prefix', f'rcdcomp{os.getpid()}',
                   '--no-huge', '-m', '256')
            leash.leash(json.loads(rocade('-j', 'engine'))['pid'])
            rocade('link', 'add', 'extra0', 'type', 'wire', 'peer', 'extra1')
        check()
    return run


atexit.register(stop)
for name, asked in (('bash', bash), ('zsh', zsh)):
    for what in (without_an_engine, other_programs, keys_and_files, command_of_run):
        tap.add(f'{name}_{what.__name__}', lambda what=what, asked=asked: what(asked))
for name, asked in (('bash', bash), ('zsh', zsh)):
    tap.add(f'{name}_from_the_engine', started(lambda asked=asked: from_the_engine(asked)))
tap.add('statistic_of_some', started(statistic_of_some))
sys.exit(tap.run())
