#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: the house style holds where a machine can see it.

Method: each rule is a function over the files that git tracks (or, in an exported tree, all files)
and yields a line per breach. Each rule is first shown a small breach of its own, and must find it:
a rule that finds nothing because it is broken fails too.

    tidy.py SOURCE_ROOT
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import threads
from tree import sources, tracked, without_comments

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROOT = pathlib.Path(sys.argv[1]).resolve()
FILE_LINES = 600
FUNCTION_LINES = 70
COLUMNS = 100

# Longer than the limit, with the reason that a reader would accept.
LONG_FILES = {
    'lib/ctrl/rcd_ctrl.h': 'the whole protocol, one message after another',
    'test/sim/test_cm_agent.c': 'one model of two hosts, and all that is asked of it',
    'test/sim/scenario.c': 'one model: what is made up, and what must come of it',
    'test/unit/test_pkt.c': 'one table of damages and all that walks it',
    'test/unit/test_qp.c': 'one short situation after another on the same few helpers',
    'test/vectors/test_replay.c': 'one comparison in two passes over the same flows',
}
LONG_FUNCTIONS = {
    ('test/unit/test_pkt.c', 'damage'): 'one case per verdict, none longer than a few lines',
}

# Headers of ours that one header includes, at most: none brings everything.
HEADER_INCLUDES = 14

BANNED = {
    r'\bstrcpy\b': 'strcpy: snprintf or memcpy with a known length',
    r'\bstrcat\b': 'strcat: snprintf',
    r'\bsprintf\b': 'sprintf: snprintf',
    r'\bvsprintf\b': 'vsprintf: vsnprintf',
    r'\bgets\b': 'gets: fgets',
    r'\balloca\b': 'alloca: a fixed pool or malloc',
    r'\bstrtok\b': 'strtok: strtok_r',
    r'\batoi\b': 'atoi: strtol with its error',
    r'\bassert\s*\(': 'assert(): RCD_CHECK for our own invariants, a verdict for the rest',
}


def spdx(root):
    for path in tracked(root):
        if path.suffix in ('.c', '.h', '.def', '.py', '.sh', '.build') or \
                path.name in ('meson_options.txt', '.clang-format', '.editorconfig', '.gitignore',
                              'run'):
            head = (root / path).read_text(encoding='utf-8').splitlines()[:2]
            if not any('SPDX-License-Identifier: BSD-3-Clause' in line for line in head):
                yield f'{path}: no SPDX line at the top'


def file_comment(root):
    for path, text in sources(root, '.c', '.h'):
        if '@file' not in text[:200]:
            yield f'{path}: no @file comment at the top'


def file_lengths(root):
    for path, text in sources(root, '.c', '.h', '.py', '.sh'):
        lines = text.count('\n')
        if lines > FILE_LINES and str(path) not in LONG_FILES:
            yield f'{path}: {lines} lines, more than {FILE_LINES}'


def functions(text):
    """(name, first line, lines) of each function: its name stands at the start of a line, as the
    return type has a line of its own, and its body ends with a brace at the start of a line."""
    lines = text.splitlines()
    name, start = None, 0
    for number, line in enumerate(lines, 1):
        match = re.match(r'([a-z_]\w*)\(', line)
        if match:
            name, start = match.group(1), number
        elif line.startswith('}') and name:
            yield name, start, number - start + 1
            name = None
        elif line.endswith(';') and not line.startswith((' ', '\t')):
            name = None


def function_lengths(root):
    for path, text in sources(root, '.c', '.h'):
        for name, line, lines in functions(without_comments(text)):
            if lines > FUNCTION_LINES and (str(path), name) not in LONG_FUNCTIONS:
                yield f'{path}:{line}: {name}() has {lines} lines, more than {FUNCTION_LINES}'


def prefix(path):
    """What the static functions of a file begin with: its name, the program's too for a main.c."""
    if path.stem == 'main':
        return path.parent.name.removeprefix('rocade-') + '_main_'
    return path.stem.removeprefix('rcd_') + '_'


def static_functions(text):
    """Names of the static functions that a file without comments defines."""
    text = re.sub(r' ?__attribute__\(\([^\n]*?\)\) ?', ' ', text)
    text = re.sub(r'^ static', 'static', text, flags=re.M)
    return re.findall(r'^(?:\w+ )?static [^\n;={}]*?\b(\w+)\([^;{}=]*\)\n\{',
                      re.sub(r'^((?:\w+ )?static [^\n;={}()]*)\n', r'\1 ', text, flags=re.M), re.M)


def static_names(root):
    """A static function tells its file, so that no backtrace or profile has one name for two."""
    for path, text in sources(root, '.c'):
        if path.parts[0] not in ('lib', 'app', 'drivers'):
            continue
        for name in static_functions(without_comments(text)):
            if name != 'main' and not name.startswith(prefix(path)):
                yield f'{path}: {name}() is no {prefix(path)}...()'


def columns(root):
    for path, text in sources(root, '.c', '.h', '.py', '.sh', '.build'):
        for number, line in enumerate(text.splitlines(), 1):
            if len(line.expandtabs(8)) > COLUMNS:
                yield f'{path}:{number}: more than {COLUMNS} columns'


def white_space(root):
    for path, text in sources(root, '.c', '.h', '.def', '.py', '.sh', '.build'):
        if not text.endswith('\n') or text.endswith('\n\n'):
            yield f'{path}: must end with one newline'
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip():
                yield f'{path}:{number}: white space at the end'


def banned_calls(root):
    for path, text in sources(root, '.c', '.h'):
        for number, line in enumerate(without_comments(text).splitlines(), 1):
            for pattern, why in BANNED.items():
                if re.search(pattern, line) and 'static_assert' not in line:
                    yield f'{path}:{number}: {why}'


def layers(root):
    """Layer lists: {name: allowed names}, from lib/meson.build and lib/*/meson.build."""
    listed = re.search(r'libraries = \[(.*?)\]', (root / 'lib/meson.build').read_text(), re.S)
    order = re.findall(r"'(\w+)'", listed.group(1))
    allowed = {}
    for i, name in enumerate(order):
        text = (root / 'lib' / name / 'meson.build').read_text()
        deps = re.search(r'^deps = \[(.*?)\]', text, re.S | re.M)
        allowed[name] = re.findall(r"'(\w+)'", deps.group(1)) if deps else []
        for dep in allowed[name]:
            if dep not in order[:i]:
                raise AssertionError(f'lib/{name} depends on {dep}, which is not above it')
    return allowed


def with_dpdk(root):
    """C files that the build gives DPDK's headers: dpdk_sources of the libraries."""
    for path, text in sources(root, '.build'):
        listed = re.search(r'^dpdk_sources = files\((.*?)\)', text, re.S | re.M)
        for name in re.findall(r"'(\w+\.c)'", listed[1]) if listed else []:
            yield path.parent / name


def layering(root):
    """Libraries include only their own headers and those of declared deps."""
    try:
        allowed = layers(root)
    except AssertionError as breach:
        yield str(breach)
        return
    owner = {path.name: path.parts[1] for path in tracked(root)
             if path.parts[0] == 'lib' and path.suffix in ('.h', '.def')}
    knowing = {path.parts[1] for path in with_dpdk(root)}
    for path, text in sources(root, '.c', '.h', '.def'):
        if path.parts[0] != 'lib':
            continue
        for name in re.findall(r'#include "([^"]+)"', text):
            library = path.parts[1]
            if name in owner and owner[name] != library and owner[name] not in allowed[library]:
                yield f'{path}: includes {name} of lib/{owner[name]}, which is not in its deps'
        if re.search(r'#include [<"]rte_', text) and path.parts[1] not in knowing:
            yield f'{path}: DPDK in a library that has none'


def control_without_dpdk(root):
    """What is not among dpdk_sources reaches no header of DPDK, by whatever of ours; what is, does,
    but for lcores, whose work is compiled as DPDK is."""
    including = {path.name: re.findall(r'^#include [<"]([^">]+)', text, re.M)
                 for path, text in sources(root, '.c', '.h', '.def') if path.parts[0] == 'lib'}
    knowing = set(with_dpdk(root))
    for path, _ in sources(root, '.c'):
        if path.parts[0] != 'lib':
            continue
        reached, ways = set(), [[path.name]]
        found = None
        while ways and not found:
            way = ways.pop(0)
            found = way if way[-1].startswith('rte_') else None
            ways += [way + [name] for name in including.get(way[-1], ()) if name not in reached]
            reached.update(including.get(way[-1], ()))
        if found and path not in knowing:
            yield f'{path}: no dpdk_sources have it, and it includes {", ".join(found[1:])}'
        if not found and path in knowing and path.parts[1] != 'lcore':
            yield f'{path}: among dpdk_sources, and needs nothing of DPDK'


def called(root):
    """(library, file, its text, {function that is called: where it is defined}) of each C file of
    the libraries, with the tables that it includes; files are without suffix, functions those that
    other files can see."""
    texts, home = {}, {}
    tables = {path.name: without_comments(text) for path, text in sources(root, '.def')}
    for path, text in sources(root, '.c'):
        if path.parts[0] != 'lib':
            continue
        rows = ''.join(tables.get(name, '') for name in
                       set(re.findall(r'#include "([^"]+\.def)"', text)))
        text = without_comments(text)
        texts[path.parts[1], path.stem] = text + rows
        for kind, name in re.findall(r'^(\w[^\n;{}]*)\n(rcd_\w+)\([^;{}]*\)\n\{', text, re.M):
            if 'static' not in kind:
                home[name] = (path.parts[1], path.stem)
    for where, text in texts.items():
        words = set(re.findall(r'(?<!struct )(?<!enum )(?<!->)(?<!\.)\brcd_\w+', text))
        yield where, {name: home[name] for name in words if name in home}


def upward_calls(root):
    """Nothing is called that belongs to a library above, declared wherever: what must go up is a
    table of functions that the upper one hands in."""
    allowed = layers(root)
    for (library, file), calls in called(root):
        for name, (other, _) in sorted(calls.items()):
            if other not in (library, *allowed.get(library, [])):
                yield f'lib/{library}/{file}.c: calls {name}() of lib/{other}'


def circles(edges):
    """Sets of nodes that all lead to each other: {node: nodes that it leads to}."""
    reach = {node: set(edges.get(node, ())) for node in edges}
    for middle in edges:
        for node in edges:
            if middle in reach[node]:
                reach[node] |= reach[middle]
    return {frozenset(other for other in reach[node]
                      if other in reach and node in reach[other]) | {node}
            for node in edges if node in reach[node]}


def call_circles(root):
    """Files of a library call downwards, as libraries do."""
    edges = {}
    for (library, file), calls in called(root):
        edges.setdefault(library, {})[file] = {
            to for other, to in calls.values() if (other, to) != (library, file) and
            other == library}
    for library, files in edges.items():
        for circle in circles(files):
            yield f'lib/{library}: {", ".join(sorted(circle))} call each other in a circle'


def include_circles(root):
    """No header includes one that includes it."""
    edges = {path.name: re.findall(r'#include "([^"]+)"', text)
             for path, text in sources(root, '.h', '.def') if path.parts[0] == 'lib'}
    for circle in circles(edges):
        yield f'{", ".join(sorted(circle))} include each other'


def header_of_all(root):
    """No header that everybody includes: who uses something names the header that has it."""
    for path, text in sources(root, '.h'):
        count = len(re.findall(r'^#include "[^"]+\.h"', text, re.M))
        if path.parts[0] == 'lib' and count > HEADER_INCLUDES:
            yield f'{path}: includes {count} headers of ours'


def declared_where_said(root):
    """What a header of lib declares stands in the C file of its name, or in one that a comment
    names before the declaration."""
    files = {name: path.name for path, text in sources(root, '.c') if path.parts[0] == 'lib'
             for kind, name in re.findall(r'^(\w[^\n;{}=]*)\n(rcd_\w+)\([^;{}]*\)\n\{', text, re.M)
             if 'static' not in kind}
    for path, text in sources(root, '.h'):
        said = path.stem + '.c'
        for match in re.finditer(r'^/\* (rcd_\w+\.c)|^(rcd_\w+)\(', text, re.M):
            said = match[1] or said
            if path.parts[0] == 'lib' and files.get(match[2], said) != said:
                yield f'{path}: {match[2]}() stands in {files[match[2]]}'


def whole_of_a_room(root):
    """What makes up the whole of a room is known to a third of its files at most: the others know
    the objects that they work on."""
    files, including = {}, {}
    for path, text in sources(root, '.c'):
        if path.parts[0] == 'lib' and path.parts[1] in threads.LIBRARIES:
            files[path.parts[1]] = files.get(path.parts[1], 0) + 1
            for name in re.findall(r'^#include "(\w+_priv\.h)"', text, re.M):
                including.setdefault((path.parts[1], name), []).append(path.name)
    for (room, name), by in including.items():
        if 3 * len(by) > files[room]:
            yield f'lib/{room}/{name}: {len(by)} of {files[room]} files include it'


def steps_asked(root):
    """Each cell of the table of a connection's life is asked by the code of its layer."""
    texts = {}
    for path, text in sources(root, '.c', '.h'):
        if path.parts[0] == 'lib':
            texts[path.parts[1]] = texts.get(path.parts[1], '') + text
    for path, text in sources(root, '.def'):
        for step, rest in re.findall(r'^RCD_CM_STEP\((\w+), \w+,(.*?)"', text, re.M | re.S):
            cells = [cell.strip() for cell in rest.split(',')]
            for library, cell in zip(('cm', 'cma', 'rdmacm'), cells[::2]):
                if cell != 'NONE' and not re.search(rf'RCD_CM_STEP_{step}\b',
                                                    texts.get(library, '')):
                    yield f'{path}: lib/{library} never asks for {step}'


def product_without_tests(root):
    """What is shipped includes nothing of test/, and depends on no data beside the checkout."""
    for path, text in sources(root, '.c', '.h', '.build'):
        if path.parts[0] in ('lib', 'app', 'drivers', 'examples') and \
                re.search(r'rcd_tap|\.\./test|shared/', text):
            yield f'{path}: product code that knows tests or their data'


def enum_switches(root):
    """No default label beside enum constants of ours: -Wswitch-enum then sees every omission."""
    for path, text in sources(root, '.c', '.h'):
        for match in re.finditer(r'switch \([^\n]*\) \{(.*?)\n\t*\}', without_comments(text), re.S):
            body = match.group(1)
            if 'default:' in body and re.search(
                    r'case RCD_(VERDICT|OP|SERVICE|POS|PAYLOAD|L3|AETH)_', body):
                yield f'{path}: a default label in a switch over an enum of ours'


def formatting(root):
    tool = shutil.which('clang-format') or shutil.which('clang-format-14')
    if tool is None:
        raise tap.Skip('no clang-format on this machine')
    paths = [str(root / path) for path, _ in sources(root, '.c', '.h')]
    done = subprocess.run([tool, f'--style=file:{ROOT / ".clang-format"}', '--dry-run', *paths],
                          capture_output=True, text=True, check=False)
    for line in done.stderr.splitlines():
        if 'warning:' in line or 'error:' in line:
            yield line.replace(str(root) + '/', '')


def shell_syntax(root):
    for path in tracked(root):
        if path.suffix == '.sh' or path.parts == ('.ci', 'run'):
            done = subprocess.run(['bash', '-n', root / path], capture_output=True, text=True,
                                  check=False)
            if done.returncode:
                yield f'{path}: {done.stderr.strip()}'


def findings_tested(root):
    """Each row of the table of findings names tests that exist: "folder/program: case; case"."""
    table = (root / 'doc/security.md').read_text().split('| finding |')[1]
    for finding, *cells in re.findall(r'^\| (\w+(?: \d+)?) \|(.*)\|(.*)\|(.*)\|$', table, re.M):
        named, program = 0, None
        for part in cells[-1].strip().split('; '):
            match = re.search(r'\b(\w+/\w+): (.*)', part)
            if match:
                program, case = match.groups()
            elif program and part.startswith(finding + ' '):
                case = part
            else:
                continue
            folder, name = program.split('/')
            built = root / 'test' / folder / 'meson.build'
            code = (root / 'test' / folder).glob(f'test_{name}.*')
            if not built.is_file() or f"'{name}'" not in built.read_text().replace('test_', ''):
                yield f'doc/security.md: {finding}: no program {program}'
            elif not any(case in path.read_text() for path in code):
                yield f'doc/security.md: {finding}: no case "{case}" in {program}'
            named += 1
        if not named or not all(cell.strip() for cell in cells):
            yield f'doc/security.md: {finding}: names no test, or leaves something empty'


def versions_agree(root):
    """The command that is no C speaks the protocol and the ABI of the headers."""
    spoken = re.search(r'^MAGIC, VERSION, ABI = .*, (\d+), (\d+)$',
                       (root / 'usertools/rocade_engine.py').read_text(), re.M).groups()
    meant = [re.search(rf'#define {name}\s+(\d+)', (root / 'lib' / path).read_text()).group(1)
             for path, name in (('ctrl/rcd_ctrl.h', 'RCD_CTRL_VERSION'),
                                ('shmq/rcd_shm.h', 'RCD_SHM_ABI'))]
    if list(spoken) != meant:
        yield f'usertools/rocade_engine.py: speaks version and ABI {spoken}, the headers {meant}'
    asked = re.search(r'^OP_HELLO, OP_ADMIN, OP_SOCKETS, OP_NETNS = (\d+), (\d+), (\d+), (\d+)$',
                      (root / 'usertools/rocade_engine.py').read_text(), re.M).groups()
    served = re.findall(r'^RCD_CTRL(?:_CM)?\((\w+),',
                        (root / 'lib/ctrl/rcd_ctrl.def').read_text(), re.M)
    if [served[int(number)] for number in asked] != ['HELLO', 'ADMIN', 'SOCKETS', 'NETNS']:
        yield f'usertools/rocade_engine.py: greets and asks by {asked}: not rcd_ctrl.def\'s numbers'
    told = re.search(r"^RELEASE = '(.*)'$", (root / 'usertools/rocade').read_text(), re.M)[1]
    built = re.search(r"^    version: '(.*)',$", (root / 'meson.build').read_text(), re.M)[1]
    if told != built:
        yield f'usertools/rocade: is of release {told}, the build of {built}'


TABLE = '| finding | a | b | test |\n|---|---|---|---|\n| S1 | a | b | %s |\n'
TESTS = {'test/a/meson.build': "'b'\n", 'test/a/test_b.c': '"S1 holds"\n'}
AGREEING = 'MAGIC, VERSION, ABI = 3, 2, 2\nOP_HELLO, OP_ADMIN, OP_SOCKETS, OP_NETNS = 0, 1, 2, 3\n'
VERSIONS = {'lib/ctrl/rcd_ctrl.h': '#define RCD_CTRL_VERSION 2\n',
            'lib/shmq/rcd_shm.h': '#define RCD_SHM_ABI 2\n',
            'lib/ctrl/rcd_ctrl.def': 'RCD_CTRL(HELLO, a)\nRCD_CTRL_CM(ADMIN, b)\n'
                                    'RCD_CTRL(SOCKETS, c)\nRCD_CTRL(NETNS, d)\n',
            'usertools/rocade_engine.py': AGREEING.replace('2, 2', '2, 1'),
            'usertools/rocade': "RELEASE = '1'\n", 'meson.build': "    version: '1',\n"}
RELEASES = {**VERSIONS, 'usertools/rocade_engine.py': AGREEING,
            'meson.build': "    version: '2',\n"}
NUMBERS = {**VERSIONS, 'usertools/rocade_engine.py': AGREEING.replace('0, 1, 2', '1, 0, 2')}
LAYERS = {'lib/meson.build': "libraries = [\n'base', 'wire',\n]\n", 'lib/base/meson.build': '',
          'lib/wire/meson.build': "deps = ['base']\n"}
KNOWING = {'lib/wire/meson.build': "sources = files('c.c')\ndpdk_sources = files('w.c')\n",
           'lib/wire/w.c': '#include "w.h"\n', 'lib/wire/w.h': '#include <rte_eal.h>\n'}

# (rule, files in which it must find something)
RULES = [
    (spdx, {'a.c': 'int a;\n'}),
    (file_comment, {'a.c': '/* SPDX */\nint a;\n'}),
    (file_lengths, {'a.c': 'int a;\n' * (FILE_LINES + 1)}),
    (function_lengths, {'a.c': 'int\nf(void)\n{\n' + '\ta();\n' * FUNCTION_LINES + '}\n'}),
    (static_names, {'lib/a/rcd_a.c': 'static int\nfind(int a,\n\tint b)\n{\n}\n'}),
    (static_names, {'app/a/b.c': 'static void __attribute__((used)) a(void)\n{\n}\n'}),
    (static_names, {'app/a/b.c': '__attribute__((used)) static void\na(void)\n{\n}\n'}),
    (columns, {'a.c': '\tint a; /* ' + 'x' * COLUMNS + ' */\n'}),
    (white_space, {'a.c': 'int a; \n'}),
    (banned_calls, {'a.c': 'void f(void) { strcpy(a, b); }\n'}),
    (layering, {**LAYERS, 'lib/wire/w.h': '', 'lib/base/b.c': '#include "w.h"\n'}),
    (layering, {**LAYERS, 'lib/base/meson.build': "deps = ['wire']\n"}),
    (layering, {**LAYERS, 'lib/base/b.c': '#include <rte_eal.h>\n'}),
    (control_without_dpdk, {**KNOWING, 'lib/wire/c.c': '#include "w.h"\n'}),
    (control_without_dpdk, {**KNOWING, 'lib/wire/w.h': '\n'}),
    (upward_calls, {**LAYERS, 'lib/wire/w.c': 'int\nrcd_w(void)\n{\n}\n',
                    'lib/base/b.c': 'int\nrcd_b(void)\n{\n\treturn rcd_w();\n}\n'}),
    (call_circles, {'lib/base/a.c': 'int\nrcd_a(int a,\n\tint b)\n{\n\trcd_b();\n}\n',
                    'lib/base/b.c': 'int\nrcd_b(void)\n{\n\trcd_c();\n}\n',
                    'lib/base/c.c': 'int\nrcd_c(void)\n{\n\trun(rcd_a);\n}\n'}),
    (call_circles, {'lib/base/a.c': 'int\nrcd_a(void)\n{\n#include "a.def"\n}\n',
                    'lib/base/a.def': 'ROW(rcd_b())\n',
                    'lib/base/b.c': 'int\nrcd_b(void)\n{\n\trcd_a();\n}\n'}),
    (include_circles, {'lib/a/a.h': '#include "b.h"\n', 'lib/b/b.h': '#include "a.h"\n'}),
    (header_of_all, {'lib/a/a.h': ''.join(f'#include "{i}.h"\n' for i in range(15))}),
    (declared_where_said, {'lib/cma/a.h': '/** A. */\nint\nrcd_a(void);\n',
                           'lib/cma/b.c': 'int\nrcd_a(void)\n{\n}\n'}),
    (whole_of_a_room, {'lib/cma/a.c': '#include "rcd_cma_priv.h"\n', 'lib/cma/b.c': '\n'}),
    (steps_asked, {'lib/base/s.def': 'RCD_CM_STEP(A, EITHER, S(B) | S(C), STAY, NONE, STAY,\n'
                                     '\tNONE, STAY, "x")\n',
                   'lib/cma/a.c': 'RCD_CM_STEP_A'}),
    (product_without_tests, {'lib/a.c': '#include "rcd_tap.h"\n'}),
    (enum_switches, {'a.c': 'switch (a) {\ncase RCD_OP_SEND:\ndefault:\n}\n'}),
    (findings_tested, {**TESTS, 'doc/security.md': TABLE % 'a/b: S1 holds; S1 no case'}),
    (findings_tested, {**TESTS, 'doc/security.md': TABLE % 'a/c: S1 no program'}),
    (findings_tested, {**TESTS, 'doc/security.md': TABLE % ''}),
    (versions_agree, VERSIONS),
    (versions_agree, RELEASES),
    (versions_agree, NUMBERS),
    (formatting, {'a.c': 'int   a ;\n'}),
    (formatting, {'a.c': 'void\nf(void)\n{\n\tLIST_FOREACH(a, b, c)\n\ta();\n}\n'}),
    (shell_syntax, {'a.sh': 'if\n'}),
] + threads.RULES


def check(rule, example):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in example.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            tap.true(list(rule(root)), 'the rule does not find its own example')
        breaches = list(rule(ROOT))
        tap.true(not breaches, '\n'.join(breaches))
    return run


for position, (tidy_rule, breach_example) in enumerate(RULES):
    suffix = sum(1 for earlier, _ in RULES[:position] if earlier is tidy_rule)
    tap.add(tidy_rule.__name__ + (f'_{suffix + 1}' if suffix else ''),
            check(tidy_rule, breach_example))
sys.exit(tap.run())
