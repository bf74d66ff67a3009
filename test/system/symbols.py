#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Do all ELF files of the distribution find in Rocade's libraries what they import?

Every package that depends on libibverbs1, librdmacm1 or libibumad3 is fetched from where this
machine's packages come from and unpacked, and nothing is installed: neither the machine's package
lists nor its packages change. Of each file that needs one of the three libraries, all symbols that
it binds to them must be exported by ours under the same version, and what a program copies of an
object must have the object's size. That is what the loader looks at under BIND_NOW.

    symbols.py [--cache FOLDER] [--record FOLDER] LIBIBVERBS LIBRDMACM LIBIBUMAD

  --cache FOLDER   where fetched packages stay for the next time; without, nothing stays
  --record FOLDER  write what is imported to FOLDER/symbols-RELEASE.txt, which test_elf.py reads

Exit status: 0 all found; 1 something is missing; 77 packages can't be had here.
"""
import argparse
import collections
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import elf

# What they are in; since the year 2038 concerns Debian, with another name.
PACKAGES = re.compile(r'(libibverbs1|librdmacm1|libibumad3)(t64)?')
SOURCES = pathlib.Path('/etc/apt/sources.list.d')


class Failure(Exception):
    """Said in one sentence, with an exit status."""

    def __init__(self, text, status=77):
        super().__init__(text)
        self.status = status


class Apt:
    """The distribution's packages, by lists and a cache of our own."""

    def __init__(self, work, cache):
        self.cache = cache
        for folder in ('parts', 'lists/partial', 'cache/archives/partial'):
            (work / folder).mkdir(parents=True)
        for source in (*SOURCES.glob('*.sources'), *SOURCES.glob('*.list'),
                       SOURCES.parent / 'sources.list'):
            text = source.read_text(encoding='utf-8') if source.exists() else ''
            # Those of others say nothing of the distribution.
            if re.search(r'debian|ubuntu', text):
                name = source.name + ('.list' if source.suffix == '' else '')
                (work / 'parts' / name.replace('sources.list', 'main.list')).write_text(
                    text, encoding='utf-8')
        self.options = ['-o', 'Dir::Etc::sourcelist=/dev/null',
                        '-o', f'Dir::Etc::sourceparts={work}/parts',
                        '-o', f'Dir::State::lists={work}/lists',
                        '-o', f'Dir::Cache={work}/cache', '-o', 'Dir::State::status=/dev/null',
                        '-o', 'APT::Sandbox::User=root', '-o', 'Acquire::Languages=none']

    def run(self, tool, *words, **more):
        done = subprocess.run([tool, *self.options, *words], capture_output=True, text=True,
                              check=False, **more)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ['it says nothing'])[-1]
            raise Failure(f'{tool} {words[0]}: {last}')
        return done.stdout

    def users(self):
        """{package: version} of those that depend on PACKAGES, and these."""
        self.run('apt-get', 'update', '-qq', '--error-on=any')
        found = {}
        for text in self.run('apt-cache', 'dumpavail').split('\n\n'):
            fields = dict(re.findall(r'^([\w-]+): (.*)$', text, re.M))
            needs = {re.split(r'[ :(]', one.strip())[0] for key in ('Depends', 'Pre-Depends')
                     for group in fields.get(key, '').split(',') for one in group.split('|')}
            needs.add(fields.get('Package', ''))
            if any(PACKAGES.fullmatch(one) for one in needs):
                found[fields['Package']] = fields['Version']
        return found

    def fetch(self, package, version):
        """The path of its file."""
        pattern = f'{package}_{version.replace(":", "%3a")}_*.deb'
        if not list(self.cache.glob(pattern)):
            self.run('apt-get', 'download', f'{package}={version}', cwd=self.cache)
        return next(self.cache.glob(pattern))


def imports_of(path):
    """[(file, what it imports)] of a package's ELF files that need one of the libraries."""
    found = []
    with tempfile.TemporaryDirectory(prefix='rcdsymbols') as folder:
        subprocess.run(['dpkg-deb', '--extract', path, folder], check=True)
        for file in sorted(pathlib.Path(folder).rglob('*')):
            if file.is_file() and not file.is_symlink():
                wants = elf.imported(file)
                if wants:
                    found.append((file.relative_to(folder), wants))
    return found


def release_of(version):
    """44 of 44.0-2."""
    return re.match(r'(?:\d+:)?(\d+)', version)[1]


def record(path, seen, release, system):
    """What programs import, for those who have no network."""
    lines = [f'# What the ELF files of {system} import of rdma-core {release}, and how many files.',
             '# Written by symbols.py --record.']
    lines += [f'{library} {name} {version} {count}'
              for (library, name, version), count in sorted(seen.items())]
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')


def table(apt, packages, ours):
    """Prints a line for each package. Returns what is imported, by how many files, and how much
    of it is missing."""
    print(f'{"package":28} {"version":28} files  symbols  missing')
    seen, files, missing, with_files = collections.Counter(), 0, 0, 0
    for package, version in sorted(packages.items()):
        found = imports_of(apt.fetch(package, version))
        if not found:
            continue
        wanted = {(library, *symbol) for _, wants in found for library, symbols in wants.items()
                  for symbol in symbols}
        for _, wants in found:
            seen.update((library, *symbol) for library, symbols in wants.items()
                        for symbol in symbols)
        lines = [f'{file}: {line}' for file, wants in found for line in elf.missing(wants, ours)]
        print(f'{package:28} {version:28} {len(found):5} {len(wanted):8} {len(lines):8}',
              flush=True)
        for line in lines:
            print(f'  {line}')
        files, missing, with_files = files + len(found), missing + len(lines), with_files + 1
    print(f'symbols: {with_files} packages, {files} files, {len(seen)} symbols, '
          f'{missing} missing')
    return seen, missing


def objects_differ(apt, packages, ours):
    """Objects of the distribution's libraries that are larger or smaller than ours."""
    with tempfile.TemporaryDirectory(prefix='rcdsymbols') as folder:
        for package in filter(PACKAGES.fullmatch, packages):
            subprocess.run(['dpkg-deb', '--extract', apt.fetch(package, packages[package]),
                            folder], check=True)
        for library in elf.LIBRARIES:
            path = next(pathlib.Path(folder).rglob(library))
            for symbol, (kind, size, _) in elf.exported(path).items():
                there = ours[library].get(symbol, ('none', 0))
                if kind == 'STT_OBJECT' and there[:2] != (kind, size):
                    yield f'{library}: {symbol[0]}@{symbol[1]} has {size} bytes, ours {there[1]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--cache', type=pathlib.Path)
    parser.add_argument('--record', type=pathlib.Path)
    parser.add_argument('libraries', nargs=3)
    args = parser.parse_args()
    if shutil.which('apt-get') is None:
        raise Failure('no apt-get here')
    ours = {name: elf.exported(path) for name, path in zip(elf.LIBRARIES, args.libraries)}
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='rcdsymbols')))
        cache = args.cache or work / 'packages'
        cache.mkdir(parents=True, exist_ok=True)
        apt = Apt(work, cache.resolve())
        packages = apt.users()
        release = release_of(packages['libibverbs1'])
        seen, missing = table(apt, packages, ours)
        for line in objects_differ(apt, packages, ours):
            print(line)
            missing += 1
        if args.record:
            system = re.search(r'^PRETTY_NAME="?(.*?)"?$', pathlib.Path(
                '/etc/os-release').read_text(encoding='utf-8'), re.M)[1]
            record(args.record / f'symbols-{release}.txt', seen, release, system)
    return 1 if missing else 0


if __name__ == '__main__':
    try:
        os.umask(0o022)
        sys.exit(main())
    except Failure as failure:
        print(f'symbols: {failure}', file=sys.stderr)
        sys.exit(failure.status)
    except KeyboardInterrupt:
        sys.exit(130)
