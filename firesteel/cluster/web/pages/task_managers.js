// The TaskManagers, and one of them.

import { bytes, count, dateTime, duration, NONE } from '../format.js';
import { icon } from '../icons.js';
import { href } from '../router.js';
import { facts, panel, table, tabs } from '../table.js';
import { h } from '../vdom.js';
import { logsPart, textPart, threadDumpPart } from './logs.js';
import { loading } from './overview.js';

/** @param {import('../app.js').PageContext} context @returns {import('../app.js').Page} */
export function taskManagersPage(context) {
  let managers = null;
  return {
    title: () => 'TaskManagers',
    async load(fetcher) {
      managers = (await fetcher.get('taskmanagers')).taskmanagers;
    },
    view() {
      if (!managers) return [h('h1', null, 'TaskManagers'), loading()];
      return [
        h('h1', null, 'TaskManagers'),
        panel(
          null,
          table({
            id: 'taskmanagers',
            label: 'TaskManagers',
            rows: managers,
            key: (one) => one.id,
            empty: [
              h('p', null, 'There are no TaskManagers.'),
              h(
                'p',
                null,
                'Spark’s executors appear here once they have registered. With ',
                h('code', null, '--master'),
                ' check Spark’s web UI for the reason if there are none.',
              ),
            ],
            columns: [
              {
                title: 'TaskManager',
                wide: true,
                sort: (one) => one.id,
                cell: (one) => [
                  h('a', { class: 'break', href: href(['taskmanagers', one.id]) }, one.id),
                  h('div', { class: 'muted small break' }, one.path),
                ],
              },
              { title: 'Slots in use', sort: (one) => one.slotsNumber - one.freeSlots, cell: (one) => slots(one) },
              {
                title: 'Tasks',
                number: true,
                sort: (one) => one.assignedTasks ?? -1,
                cell: (one) => count(one.assignedTasks),
              },
              {
                title: 'Cores',
                number: true,
                sort: (one) => one.hardware.cpuCores,
                cell: (one) => count(one.hardware.cpuCores),
              },
              {
                title: 'Physical memory',
                number: true,
                sort: (one) => one.hardware.physicalMemory,
                cell: (one) => bytes(one.hardware.physicalMemory),
              },
              {
                title: 'Last heartbeat',
                sort: (one) => one.timeSinceLastHeartbeat,
                cell: (one) => heartbeat(one.timeSinceLastHeartbeat),
              },
            ],
          }),
        ),
      ];
    },
  };
}

/** @param {number} at */
const heartbeat = (at) =>
  at > 0 ? h('span', { title: dateTime(at) }, `${duration(Math.max(0, Date.now() - at))} ago`) : NONE;

/** @param {any} one */
function slots(one) {
  const used = one.slotsNumber - one.freeSlots;
  return h(
    'div',
    { class: 'load-cell' },
    h(
      'span',
      { class: 'meter' },
      h('span', { style: { width: `${one.slotsNumber ? (100 * used) / one.slotsNumber : 0}%` } }),
    ),
    h('span', { class: 'small' }, `${count(used)} of ${count(one.slotsNumber)}`),
  );
}

const TABS = [
  ['overview', 'Overview'],
  ['logs', 'Logs'],
  ['stdout', 'Stdout'],
  ['threads', 'Thread dump'],
];

/** @param {import('../app.js').PageContext} context @returns {import('../app.js').Page} */
export function taskManagerPage(context) {
  const { id } = context.route.params;
  const base = ['taskmanagers', id];
  let manager = null;
  /** The names of jobs, by id. @type {Map<string, string>} */
  let names = new Map();
  /** @type {Object<string, import('./logs.js').Part>} */
  const parts = {
    overview: {
      async load(fetcher) {
        const { jobs } = await fetcher.get('jobs/overview');
        names = new Map(jobs.map((job) => [job.jid, job.name]));
      },
      view: () => overview(manager, names),
    },
    logs: logsPart(base, 'taskmanager'),
    stdout: textPart(
      [...base, 'stdout'],
      'taskmanager-stdout.txt',
      'There is no output yet. Output of print() and print sinks on this TaskManager is shown here.',
    ),
    threads: threadDumpPart([...base, 'thread-dump']),
  };
  const active = () => (context.route.params.tab in parts ? context.route.params.tab : 'overview');
  return {
    title: () => `TaskManager ${id}`,
    async load(fetcher) {
      [manager] = await Promise.all([fetcher.get(base), parts[active()].load(fetcher)]);
    },
    view() {
      return [
        h(
          'nav',
          { class: 'crumbs', 'aria-label': 'Where you are' },
          h('a', { href: href(['taskmanagers']) }, 'TaskManagers'),
          icon('right'),
        ),
        h('h1', { class: 'break' }, id),
        tabs(
          'Parts of the TaskManager',
          TABS.map(([name, title]) => ({ id: name, title, href: href(['taskmanagers', id, name]) })),
          active(),
        ),
        h('div', { key: active(), class: 'tab-content' }, manager ? parts[active()].view() : loading()),
      ];
    },
  };
}

/** @param {string} title @param {any} used @param {any} most */
function memory(title, used, most) {
  if (typeof used !== 'number' || used < 0) return null;
  const known = typeof most === 'number' && most > 0;
  return h(
    'div',
    { key: title, class: 'memory' },
    h('div', null, title),
    known &&
      h(
        'span',
        { class: 'meter', role: 'img', 'aria-label': `${bytes(used)} of ${bytes(most)}` },
        h('span', { style: { width: `${Math.min(100, (100 * used) / most)}%` } }),
      ),
    h('div', { class: 'muted small' }, known ? `${bytes(used)} of ${bytes(most)}` : bytes(used)),
  );
}

/** @param {any} manager @param {Map<string, string>} names */
function overview(manager, names) {
  const metrics = manager.metrics || {};
  const hardware = manager.hardware || {};
  const collectors = metrics.garbageCollectors || [];
  return [
    panel(
      'About',
      facts([
        ['Address', manager.path],
        ['Last heartbeat', heartbeat(manager.timeSinceLastHeartbeat)],
        ['Data port', manager.dataPort > 0 ? String(manager.dataPort) : NONE],
        ['Cores', count(hardware.cpuCores)],
        ['Physical memory', bytes(hardware.physicalMemory)],
        ['Slots', `${count(manager.slotsNumber - manager.freeSlots)} in use, ${count(manager.freeSlots)} free`],
      ]),
    ),
    panel(
      'Memory',
      h(
        'div',
        { class: 'columns is-three' },
        memory('Heap', metrics.heapUsed, metrics.heapMax),
        memory('Non-heap', metrics.nonHeapUsed, metrics.nonHeapMax),
        metrics.directMax > 0 && memory('Direct', metrics.directUsed, metrics.directMax),
        metrics.mappedMax > 0 && memory('Mapped', metrics.mappedUsed, metrics.mappedMax),
        metrics.nettyShuffleMemoryTotal > 0 &&
          memory('Network buffers', metrics.nettyShuffleMemoryUsed, metrics.nettyShuffleMemoryTotal),
        memory('Physical', hardware.physicalMemory - hardware.freeMemory, hardware.physicalMemory),
      ),
      collectors.length > 0 &&
        table({
          id: 'collectors',
          label: 'Garbage collectors',
          rows: collectors,
          key: (row) => row.name,
          columns: [
            { title: 'Garbage collector', cell: (row) => row.name },
            { title: 'Runs', number: true, cell: (row) => count(row.count) },
            { title: 'Time', number: true, cell: (row) => duration(row.time) },
          ],
        }),
    ),
    panel(
      'Slots in use',
      table({
        id: 'allocated slots',
        label: 'Slots in use',
        rows: (manager.allocatedSlots || []).map((slot, index) => ({ ...slot, index })),
        key: (slot) => slot.index,
        empty: 'All slots are free.',
        columns: [
          {
            title: 'Job',
            wide: true,
            sort: (slot) => names.get(slot.jobId) || slot.jobId,
            cell: (slot) => [
              h('a', { class: 'clamp', href: href(['jobs', slot.jobId]) }, names.get(slot.jobId) || slot.jobId),
              h('div', { class: 'muted mono small' }, slot.jobId),
            ],
          },
          { title: 'Tasks', number: true, cell: (slot) => count(slot.assignedTasks) },
          { title: 'Cores', number: true, cell: (slot) => (slot.resource ? String(slot.resource.cpuCores) : NONE) },
        ],
      }),
    ),
  ];
}
