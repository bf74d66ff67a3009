#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: what "meson install" installs is what the packages hold, each file in one of them.

Method: Meson says what it would install, the packaging's lists say which package takes what. Every
file is taken by one list, and every line of a list takes a file. What the packages hold really is
compared by packages.sh.

    test_tree.py MESON BUILD_FOLDER HAVE_DRIVERS HAVE_CHOICE
"""
import fnmatch
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

MESON, BUILD = sys.argv[1:3]
# What is in these folders is not built everywhere.
PARTS = {'/pmds/': sys.argv[3], '/rocade/default/': sys.argv[4]}
ABSENT = [part for part, have in PARTS.items() if have != 'true']
DEBIAN = pathlib.Path(__file__).resolve().parents[2] / 'usertools/packaging/debian'


def introspect(what):
    done = subprocess.run([MESON, 'introspect', '--' + what, BUILD], capture_output=True, text=True,
                          check=True)
    return json.loads(done.stdout)


def installed():
    """Paths as they are with Debian's prefix."""
    options = {option['name']: option['value'] for option in introspect('buildoptions')}
    found = set()
    for path in introspect('installed').values():
        # A checkout is configured for /usr/local; a distribution has a folder for each CPU.
        path = pathlib.PurePath(path).relative_to(options['prefix'])
        libdir = pathlib.PurePath(options['libdir'])
        if path.is_relative_to(libdir) and len(libdir.parts) == 1:
            path = pathlib.PurePath('lib/any') / path.relative_to(libdir)
        found.add(f'usr/{path}')
    return found


def lists():
    """{package: [pattern, ...]}; what is named as not installed is taken too."""
    found = {}
    for path in [*sorted(DEBIAN.glob('*.install')), DEBIAN / 'not-installed']:
        found[path.stem] = [line for line in path.read_text().splitlines()
                            if line and not line.startswith('#')]
    return found


def takes(pattern, path):
    """As dh_install does: no part of a pattern goes over a slash; a folder takes all that is in
    it, but none of our lists names one."""
    parts, wanted = path.split('/'), pattern.split('/')
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatch, parts, wanted))


@tap.test
def every_file_is_in_one_package():
    packages = lists()
    files = installed()
    tap.true(len(files) > 20, f'only {len(files)} files: {sorted(files)}')
    for path in sorted(files):
        takers = [name for name, patterns in packages.items()
                  if any(takes(pattern, path) for pattern in patterns)]
        tap.equal(len(takers), 1, f'{path} is in {takers}')


@tap.test
def every_line_of_a_list_takes_a_file():
    files = installed()
    for name, patterns in lists().items():
        for pattern in patterns:
            if not any(part in pattern for part in ABSENT):
                tap.true(any(takes(pattern, path) for path in files), f'{name}: {pattern}')


@tap.test
def every_package_is_described():
    text = (DEBIAN / 'control').read_text()
    described = set(re.findall(r'^Package: (.*)', text, re.M))
    # That one has nothing but a file that the packaging makes.
    tap.equal(set(lists()) - {'not-installed'}, described - {'rocade-verbs-default'}, 'packages')


if __name__ == '__main__':
    sys.exit(tap.run())
