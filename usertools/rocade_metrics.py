# SPDX-License-Identifier: BSD-3-Clause
"""All counters of an engine as text for Prometheus: OpenMetrics 1.0, or the older format, 0.0.4.
Names, units and descriptions are those of the engine's own list, so nothing here drifts from it."""
import time

from rocade_engine import STRANGE, STRANGE_TEXT, Engine, Failure

# Less than Prometheus waits for us, unless it is told otherwise.
ANSWER_SECONDS = 8
# Users that get samples of their own, those with most clients first: nobody's counts grow a
# database by making users.
USERS_MOST = 256

OPENMETRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
TEXT = 'text/plain; version=0.0.4; charset=utf-8'


class Family:
    """A metric: its samples with their labels. A counter's name comes without _total."""

    def __init__(self, name, kind, text, unit=''):
        self.name, self.kind, self.text, self.unit = name, kind, text, unit
        self.samples = []

    def add(self, value, **labels):
        self.samples.append((labels, value))
        return self


def escaped(text):
    return str(text).replace('\\', r'\\').replace('\n', r'\n').replace('"', r'\"')


def number(value):
    return '+Inf' if value is None else f'{value:.6f}' if isinstance(value, float) else str(value)


def render(families, openmetrics):
    """As text. The two formats differ in what the name of a family is, in units, and at the end."""
    lines = []
    for family in families:
        if not family.samples:
            continue
        suffix = {'counter': '_total', 'info': '_info'}.get(family.kind, '')
        name = family.name if openmetrics else family.name + suffix
        kind = 'gauge' if family.kind == 'info' and not openmetrics else family.kind
        lines.append(f'# TYPE {name} {kind}')
        if openmetrics and family.unit:
            lines.append(f'# UNIT {name} {family.unit}')
        text = escaped(family.text) if openmetrics else family.text.replace('\\', r'\\')
        lines.append(f'# HELP {name} {text}')
        for labels, value in family.samples:
            inside = ','.join(f'{key}="{escaped(val)}"' for key, val in labels.items())
            lines.append(f'{family.name}{suffix}' + (f'{{{inside}}}' if inside else '') +
                         f' {number(value)}')
    if openmetrics:
        lines.append('# EOF')
    return '\n'.join(lines) + '\n'


def base_unit(unit):
    """The unit that the format wants instead, and how many of it one of this is."""
    return ('seconds', 1e-9) if unit == 'nanoseconds' else (unit, 1)


def counter_family(name, unit, text):
    """Of a counter of the engine: with its unit in the name, as the format wants it."""
    name = 'rocade_' + name.removesuffix('_pkts')
    unit, _ = base_unit(unit)
    if not name.endswith('_' + unit) and unit:
        name += '_' + unit
    return Family(name, 'counter', text, unit)


def counters(engine, about):
    """What "rocade statistic" shows of each link, and what belongs to none (no label)."""
    listed = engine.ask('counters')
    families = {entry['name']: counter_family(entry['name'], entry['unit'], entry['description'])
                for entry in listed}
    scales = {entry['name']: base_unit(entry['unit'])[1] for entry in listed}
    for link in engine.ask('statistic'):
        for name, value in link['counters'].items():
            if name not in families:
                # Those of a driver, which the list does not know.
                families[name] = counter_family(name, '', f'{name}, of the driver of the port')
            families[name].add(value * scales.get(name, 1), device=link['ifname'])
    for name, value in about['counters'].items():
        families[name].add(value * scales[name])
    return list(families.values())


def links(engine):
    up = Family('rocade_link_up', 'gauge', 'whether the link is ACTIVE')
    mtu = Family('rocade_link_mtu_bytes', 'gauge', 'MTU of IP', 'bytes')
    path = Family('rocade_link_active_mtu_bytes', 'gauge', 'largest path MTU of RDMA', 'bytes')
    objects = Family('rocade_objects', 'gauge', 'objects of clients, by kind')
    for link in engine.ask('link'):
        up.add(int(link['state'] == 'ACTIVE'), device=link['ifname'], type=link['type'])
        mtu.add(link['mtu'], device=link['ifname'])
        path.add(link['active_mtu'], device=link['ifname'])
    for entry in engine.ask('resource'):
        for kind in ('pd', 'cq', 'qp', 'cm_id', 'mr', 'ctx', 'srq'):
            objects.add(entry[kind], device=entry['ifname'], kind=kind)
    return [up, mtu, path, objects]


def lcores(about):
    polls = Family('rocade_lcore_polls', 'counter', 'polls since the start', 'polls')
    busy = Family('rocade_lcore_busy_polls', 'counter', 'those that found work', 'polls')
    longest = Family('rocade_lcore_longest_poll_work', 'gauge',
                     'units of work of the largest poll, each about 0.1 us')
    contexts = Family('rocade_lcore_contexts', 'gauge', 'contexts that the lcore serves')
    for lcore in about['lcores']:
        polls.add(lcore['polls'], lcore=lcore['lcore'])
        busy.add(lcore['busy_polls'], lcore=lcore['lcore'])
        longest.add(lcore['longest_poll_work'], lcore=lcore['lcore'])
        contexts.add(lcore['contexts'], lcore=lcore['lcore'])
    return [polls, busy, longest, contexts]


def quotas(engine):
    used = Family('rocade_quota_used', 'gauge', 'what all clients have of a resource')
    limit = Family('rocade_quota_limit', 'gauge', 'what there is of it')
    refused = Family('rocade_refused_requests', 'counter', 'requests beyond a limit', 'requests')
    clients = Family('rocade_user_clients', 'gauge', 'clients of a user')
    theirs = Family('rocade_user_quota_used', 'gauge', 'what a user has of a resource')
    most = Family('rocade_user_quota_limit', 'gauge', 'what the user may have of it')
    left_out = Family('rocade_users_left_out', 'gauge', 'users without samples of their own')
    users = []
    for entry in engine.ask('resource', kind='quota'):
        if entry['of'] == 'all':
            refused.add(entry['refusals'])
            for name, use in entry['quota'].items():
                used.add(use['used'], resource=name)
                limit.add(use['limit'], resource=name)
        elif entry['of'] == 'uid':
            users.append(entry)
    users.sort(key=lambda entry: -entry['clients'])
    for entry in users[:USERS_MOST]:
        clients.add(entry['clients'], uid=entry['uid'])
        for name, use in entry['quota'].items():
            theirs.add(use['used'], uid=entry['uid'], resource=name)
            most.add(use['limit'], uid=entry['uid'], resource=name)
    left_out.add(max(len(users) - USERS_MOST, 0))
    return [used, limit, refused, clients, theirs, most, left_out]


def whole(about):
    def gauge(name, key, text):
        return Family(name, 'gauge', text).add(about[key])
    return [
        Family('rocade_engine', 'info', 'the engine').add(
            1, version=about['version'], idle=about['idle']),
        Family('rocade_engine_uptime_seconds', 'gauge', 'since it started', 'seconds').add(
            about['uptime_ns'] / 1e9),
        gauge('rocade_clients', 'clients', 'connected programs: one for each connection'),
        gauge('rocade_queue_pairs', 'queue_pairs', 'queue pairs of all clients'),
        gauge('rocade_neighbours', 'neighbours', 'neighbours that are known'),
        gauge('rocade_closing_descriptors', 'closing', 'descriptors that are being closed'),
        gauge('rocade_longest_step_work', 'longest_step_work',
              'units of work of the largest step of the control thread')]


def collect(path):
    """Ask an engine. Returns its metrics, and what is wrong when it does not answer: rocade_up is 0
    then, and beside it is only how long asking took."""
    begin = time.monotonic()
    engine, trouble, families = None, '', []
    try:
        engine = Engine(path, ANSWER_SECONDS)
        about = engine.ask('engine')
        families = [*whole(about), *counters(engine, about), *links(engine), *lcores(about),
                    *quotas(engine)]
    except STRANGE:
        trouble = STRANGE_TEXT
    except (Failure, OSError) as err:
        trouble = str(err)
    finally:
        if engine is not None:
            engine.close()
    up = Family('rocade_up', 'gauge', 'whether the engine answers').add(int(not trouble))
    took = Family('rocade_scrape_duration_seconds', 'gauge', 'time that asking it took', 'seconds')
    return [up, took.add(time.monotonic() - begin), *families], trouble
