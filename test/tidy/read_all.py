#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Has a build's compiler read every source that it did not compile: what it warns of is found,
without the time that code for it takes.

    read_all.py BUILD_FOLDER TARGET...

Of the build these targets were made, and with them all headers that are generated. Sources that the
build itself generates are not read. Exit status 1 when the compiler objected to one.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

BUILD = pathlib.Path(sys.argv[1]).resolve()
WRITES = {'-o': 1, '-c': 0, '-MD': 0, '-MQ': 1, '-MF': 1}


def made(targets):
    """Objects that the targets consist of."""
    done = subprocess.run(['ninja', '-C', BUILD, '-t', 'commands', *targets], check=True,
                          capture_output=True, text=True)
    outputs = set()
    for line in done.stdout.splitlines():
        words = shlex.split(line)
        if '-c' in words and '-o' in words:
            outputs.add(words[words.index('-o') + 1])
    return outputs


def reading(command):
    """The words of a command without what it would write."""
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word not in WRITES:
            kept.append(word)
        for _ in range(WRITES.get(word, 0)):
            next(words)
    return [*kept, '-fsyntax-only']


def read(command):
    done = subprocess.run(reading(command), cwd=BUILD, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    compiled = made(sys.argv[2:])
    commands = json.loads((BUILD / 'compile_commands.json').read_text(encoding='utf-8'))
    left = [one['command'] for one in commands if one['output'] not in compiled and
            BUILD not in (BUILD / one['file']).resolve().parents]
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for status, said in pool.map(read, left):
            bad += status != 0
            print(said, end='')
    print(f'read_all: {len(compiled)} objects compiled, {len(left)} sources read, {bad} faulty')
    return 1 if bad or not compiled or not left else 0


sys.exit(main())
