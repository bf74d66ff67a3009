#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: a manual page says what its program does, all of it, and renders.

Method: man renders each page, with all its warnings. The words of --help, the keys that the daemon
names when it meets one that it does not know, and what the sources ask the environment for are
compared with the page's, in both directions.

    test_man.py RELEASE DPDK_VERSION PAGE... ROCADED ROCADE_BENCH ROCADE_DUMP
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROCADE = ROOT / 'usertools/rocade'
RELEASE, DPDK = sys.argv[1:3]
PAGES = {os.path.basename(path): pathlib.Path(path) for path in sys.argv[3:-3]}
PROGRAMS = {os.path.basename(path): path for path in sys.argv[-3:]}
PAGE_OF = {'rocaded': 'rocaded.8', 'rocade-bench': 'rocade-bench.1', 'rocade-dump': 'rocade-dump.1'}
ENV = {**os.environ, 'ROCADE_ROCADED': PROGRAMS['rocaded'], 'COLUMNS': '300',
       'MAN_KEEP_FORMATTING': '', 'MANWIDTH': '300'}


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=ENV,
                          timeout=tap.PATIENCE, check=False)
    return done.stdout, done.stderr, done.returncode


def plain(page):
    """The page's source as words: fonts and escapes gone."""
    text = PAGES[page].read_text()
    text = re.sub(r'\\f[BIRP]', '', text).replace('\\-', '-').replace('\\(aq', "'")
    return text.replace('\\&', '').replace('\\%', '').replace('\\e', '\\')


def sections(page):
    """{heading: lines} of a page."""
    parts = re.split(r'^\.SH "?([^"\n]*)"?$', plain(page), flags=re.M)
    return dict(zip(parts[1::2], (part.splitlines() for part in parts[2::2])))


def items(lines):
    """{head: text} of what stands below .TP."""
    found = {}
    for i, line in enumerate(lines):
        if line == '.TP':
            text = []
            for more in lines[i + 2:]:
                if more.startswith('.') and not more.startswith('..'):
                    break
                text.append(more)
            found[lines[i + 1]] = ' '.join(text)
    return found


def render(page):
    def check():
        # Containers that were made smaller have another program by that name.
        if shutil.which('man') is None or not re.match(r'man \d', run('man', '--version')[0]):
            raise tap.Skip('no man on this machine')
        out, err, status = run('man', '-l', '--warnings', '-E', 'UTF-8', PAGES[page])
        tap.equal((status, err), (0, ''), 'warnings')
        tap.true('NAME' in out and 'SEE ALSO' in out, out[:200])
    return check


def told_options(out):
    """{"-c, --config FILE": text} of what --help printed."""
    found, head = {}, None
    for line in out.splitlines():
        begins = re.match(r'  (?:(-\w, )|    )(--[\w-]+(?: \S+)?)(?: +(\S.*))?$', line)
        if begins:
            head = (begins[1] or '') + begins[2]
            found[head] = begins[3] or ''
        elif head and line.startswith(' ' * 26):
            found[head] += ' ' + line.strip()
        else:
            head = None
    return {name: text.strip() for name, text in found.items()}


def help_of(program):
    def check():
        out, err, status = run(PROGRAMS[program], '--help')
        tap.equal((status, err), (0, ''), f'{program} --help')
        told = told_options(out)
        tap.true(len(told) > 3, f'options in {out}')
        tap.equal(items(sections(PAGE_OF[program])['OPTIONS']), told, 'page and --help')
    return check


def commands_of_rocade():
    out, _, _ = run(ROCADE, '--help')
    listed = re.findall(r'^    (\w+)  +\S', out, re.M)
    page = '\n'.join(sections('rocade.8')['COMMANDS'])
    tap.equal(re.findall(r'^\.SS (\w+)$', page, re.M), listed, 'commands')
    about = dict(zip(listed, re.split(r'^\.SS \w+$', page, flags=re.M)[1:]))
    for command in listed:
        usage, _, status = run(ROCADE, command, '--help')
        tap.equal(status, 0, f'rocade {command} --help')
        for line in re.findall(r'^(?:usage:|  +)\s*(rocade .*)$', usage, re.M):
            line = ' '.join(line.replace('[-h]', '').split())
            tap.true(f'.B {line}\n' in about[command], f'{line} is not in {about[command]}')
        heads = ' '.join(re.findall(r'^  (-.*)$', usage, re.M))
        for name in set(re.findall(r'--[\w-]+', heads)) - {'--help'}:
            tap.true(name in about[command], f'{command} {name}')
    options = '\n'.join(sections('rocade.8')['OPTIONS'])
    for name in re.findall(r'(--[\w-]+)', out):
        tap.true(name in options, name)


def faults(text, *options):
    with tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
        file.write(text)
        file.flush()
        _, err, _ = run(PROGRAMS['rocaded'], '--config', file.name, '--check-config', *options)
    return err


def keys_of(section):
    """{key: default} that the page tells."""
    return {head.split(' =')[0]: (re.findall(r'Default: (.*)\.$', text) or [None])[0]
            for head, text in items(sections('rocade.conf.5')[section]).items()}


def keys_of_configuration():
    for section, of in (('engine', '[engine]'), ('device NAME', 'a device')):
        head = section.replace('NAME', 'a')
        err = faults(f'[{head}]\ncow = 1\n')
        known = re.search(rf'no such key in {re.escape(of)}; there are (.*)', err)[1].split()
        told = keys_of(f'[{section}]')
        tap.equal(sorted(told), sorted(known), f'keys of [{section}]')
        for key, start in told.items():
            if start:
                # Some are of one type of device only.
                types = [''] if section == 'engine' else ['type = netdev\n', 'type = port\n']
                told = [faults(f'[{head}]\n{of_type}{key} = {start}\n') for of_type in types]
                tap.true(any(f' {key}:' not in err for err in told), f'default of {key}: {told}')


def keys_of_links():
    """Those that the command line knows are those of the engine's list."""
    sys.path.insert(0, str(ROOT / 'usertools'))
    sys.dont_write_bytecode = True
    from rocade_complete import LINK_KEYS, LINK_SETTINGS
    text = (ROOT / 'lib/port/rcd_link_key.def').read_text()
    listed = re.findall(r'^RCD_LINK_KEY\(\w+, (\w+), [^,]+, (\w+), "([^"]*)"', text, re.M)
    tap.true(len(listed) > 10, listed)
    tap.equal(LINK_KEYS, {name: form for name, _, form in listed}, 'keys and values')
    tap.equal(list(LINK_SETTINGS), [name for name, time, _ in listed if time == 'LIVE'], 'settings')
    told = '\n'.join(sections('rocade.8')['COMMANDS'])
    for name in LINK_SETTINGS:
        tap.true(re.search(rf'^\.BR? {name}\b', told, re.M), f'{name} is not in rocade(8)')
        # Who names one of its values names all.
        said = re.search(rf'^\.B {name}\n\(([^)]*)\)', told, re.M)
        values, said = (set(re.findall(r'\b[a-z]+\b', text))
                        for text in (LINK_KEYS[name], said[1] if said else ''))
        tap.true(not values & said or values <= said, f'{name}: not all of {values}: {said}')


def shown(page, section):
    """The examples of a section, each as lines."""
    text = '\n'.join(sections(page)[section])
    return [block.strip().splitlines() for block in re.findall(r'^\.EX$(.*?)^\.EE$', text,
                                                              re.M | re.S)]


def examples_of_configuration():
    examples = shown('rocade.conf.5', 'EXAMPLES')
    tap.true(len(examples) == 2, examples)
    for example in examples:
        tap.equal(faults('\n'.join(example) + '\n'), '', example)
    tap.true(faults('[engine]\nidle = lazy\n'), 'a fault is not told')


def commands_of_examples():
    """What examples have rocade do follows its grammar: each word may come behind those before."""
    sys.path.insert(0, str(ROOT / 'usertools'))
    sys.dont_write_bytecode = True
    from rocade_complete import GRAMMAR, elements, follow, is_name
    lines = [line for page, section in (('rocade.7', 'A FIRST SESSION'), ('rocade.8', 'EXAMPLES'))
             for block in shown(page, section) for line in block]
    count = 0
    for line in lines:
        words = [word for word in line.removeprefix('# ').split() if word != '&']
        words = [word for word in words[1:] if word not in ('-d', '-j', '-p')]
        if not line.removeprefix('# ').startswith('rocade ') or words[0] not in GRAMMAR:
            continue
        for end in range(1, len(words)):
            may = set().union(*(follow(elements(pattern), words[1:end])
                                for pattern in GRAMMAR[words[0]]))
            tap.true(any(is_name(element) or words[end] in element.split('|') for element in may),
                     f'{line}: {words[end]} can not come there: {may}')
        count += 1
    tap.true(count >= 10, f'only {count} commands in {lines}')


def names_of_quotas():
    told = [head.split(',')[0] for head in items(sections('rocade.conf.5')['[quota]'])]
    text = (ROOT / 'lib/base/rcd_resource.def').read_text()
    tap.equal(told, re.findall(r'^RCD_RESOURCE\(\w+, (\w+),', text, re.M), 'quotas')
    err = faults('[quota]\n' + ''.join(f'{name} = 8M\nuid_{name} = 8M\n' for name in told))
    tap.true('no such key' not in err, err)
    tap.true('no such key' in faults('[quota]\ncow = 8M\n'), 'a wrong key is taken')


def names_of_counters():
    told = [head.split(' ')[0] for head in items(sections('rocade.8')['COUNTERS'])]
    text = (ROOT / 'lib/base/rcd_counter.def').read_text()
    tap.equal(told, re.findall(r'^RCD_COUNTER\(\w+, (\w+),', text, re.M), 'counters')


def asked_of_the_environment():
    """Names that the sources hold, of C in strings, of scripts in strings and expansions."""
    found = {}
    for folder in ('lib', 'app', 'drivers', 'usertools'):
        for path in (ROOT / folder).rglob('*'):
            # The list itself, and what has nothing to say to users.
            if not path.is_file() or path.suffix in ('.def', '.build', '.pyc'):
                continue
            text = path.read_text(errors='replace')
            pattern = r'["\'](ROCADE_[A-Z_]+)["\']'
            if path.suffix == '.sh':
                pattern = r'\$\{?(ROCADE_[A-Z_]+)'
            for name in re.findall(pattern, text):
                found.setdefault(name, path.relative_to(ROOT))
    # The one that is put together.
    tap.true("'ROCADE_' + name.upper()" in ROCADE.read_text(), 'how rocade finds its daemon')
    return {**found, 'ROCADE_ROCADED': 'usertools/rocade'}


def variables_of_the_environment():
    text = (ROOT / 'lib/base/rcd_env.def').read_text()
    listed = dict(re.findall(r'^RCD_ENV\((\w+), "[^"]*", "([^"]*)"', text, re.M))
    found = asked_of_the_environment()
    tap.equal(sorted(set(found) - set(listed)), [],
              f'names that lib/base/rcd_env.def does not list, of {found}')
    tap.equal(sorted(set(listed) - set(found)), [], 'names that nobody asks for')
    pages = {'library': 'rocade.7', 'rocaded': 'rocaded.8', 'rocade': 'rocade.8'}
    for name, who in listed.items():
        tap.true(set(who.split()) <= {*pages, 'tree'}, f'{name}: who is {who}?')
        for asks in set(who.split()) & set(pages):
            heads = items(sections(pages[asks])['ENVIRONMENT'])
            tap.true(any(head.startswith(name + '=') for head in heads), f'{name} of {asks}')


def versions():
    for name, program in [*PROGRAMS.items(), ('rocade', ROCADE)]:
        out, err, status = run(program, '--version')
        tap.equal((status, err), (0, ''), f'{name} --version')
        first, dpdk, core = out.splitlines()
        tap.equal(first, f'{name} {RELEASE}', 'the program')
        tap.true(dpdk.startswith(f'DPDK: built with {DPDK}'), dpdk)
        tap.equal('runs with' in dpdk, name != 'rocade-dump', dpdk)
        tap.true(re.fullmatch(r'rdma-core: built with \d+\.\d+, installed is \d+\.\d+', core), core)
    for path in sorted((ROOT / 'usertools').glob('rocade-*.sh')):
        if path.name == 'rocade-root.sh':
            continue
        out, err, status = run(path, '--version')
        tap.equal((status, err), (0, ''), f'{path.name} --version')
        tap.equal(out.splitlines()[0], f'{path.name} {RELEASE}', path.name)
        tap.equal(len(out.splitlines()), 3, f'lines of {out}')


tap.equal(sorted(PAGES), sorted(path.stem for path in (ROOT / 'doc/man').glob('*.in')), 'pages')
for one in PAGES:
    tap.add(f'{one}_renders', render(one))
for one in PROGRAMS:
    tap.add(f'{one}_options', help_of(one))
for function in (commands_of_rocade, commands_of_examples, keys_of_configuration,
                 keys_of_links, examples_of_configuration, names_of_quotas, names_of_counters,
                 variables_of_the_environment, versions):
    tap.test(function)
sys.exit(tap.run())
