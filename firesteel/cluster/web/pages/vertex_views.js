// Views of a vertex: what it is, its subtasks, where they run, their watermarks, accumulators and backpressure.

import { bytes, compact, count, dateTime, description, duration, percent, watermark } from '../format.js';
import { redraw, remembered } from '../redraw.js';
import { href } from '../router.js';
import { badge, taskCounts } from '../states.js';
import { facts, table } from '../table.js';
import { h } from '../vdom.js';
import { loadFlow } from './flow.js';
import { loadBar } from './job_graph.js';
import { loading } from './overview.js';

/** @typedef {import('./job.js').JobContext} JobContext @typedef {import('./vertex.js').VertexView} VertexView */

/** @param {JobContext} context @param {string} id */
const pathOf = (context, id) => ['jobs', context.jobId, 'vertices', id];

/**
 * A view of one answer.
 * @param {function(import('../refresher.js').Fetcher): Promise<any>} load
 * @param {function(any): any} show
 * @returns {VertexView}
 */
function viewOf(load, show) {
  let data = null;
  return {
    async load(fetcher) {
      data = await load(fetcher);
    },
    view: () => (data === null ? loading() : show(data)),
  };
}

/** @param {JobContext} context @param {string} id @returns {VertexView} */
export function detailView(context, id) {
  return {
    // the graph asks for it already, other tabs do not
    load: async (fetcher) =>
      context.page.route.params.tab && context.page.route.params.tab !== 'overview'
        ? loadFlow(fetcher, context)
        : undefined,
    view() {
      const vertex = context.job.vertices.find((one) => one.id === id);
      const node = context.job.plan.nodes.find((one) => one.id === id);
      const flow = context.flow.get(id);
      const { metrics } = vertex;
      return [
        node && node.description && h('pre', { class: 'operators' }, description(node.description)),
        flow &&
          flow.busy !== null && [
            loadBar(flow),
            h(
              'p',
              { class: 'small' },
              `Busy ${percent(flow.busy)} (busiest subtask ${percent(flow.busiest)}), backpressured ${percent(flow.backpressured)}, idle ${percent(flow.idle)}.`,
            ),
          ],
        facts([
          ['State', badge(vertex.status)],
          ['Tasks', taskCounts(vertex.tasks)],
          ['Parallelism', `${count(vertex.parallelism)} (at most ${count(vertex.maxParallelism)})`],
          ['Started', dateTime(vertex['start-time'])],
          ['Ended', dateTime(vertex['end-time'])],
          ['Duration', duration(vertex.duration)],
          ['Records received', count(metrics['read-records'])],
          ['Records sent', count(metrics['write-records'])],
          ['Bytes received', bytes(metrics['read-bytes'])],
          ['Bytes sent', bytes(metrics['write-bytes'])],
          flow && ['Low watermark', watermark(flow.watermark)],
          ['Busy so far', duration(metrics['accumulated-busy-time'])],
          ['Backpressured so far', duration(metrics['accumulated-backpressured-time'])],
          ['Idle so far', duration(metrics['accumulated-idle-time'])],
          ['Vertex id', h('span', { class: 'mono' }, id)],
          ...(node?.inputs || []).map((input) => [
            `Input ${input.num}`,
            `${input.ship_strategy} from ${context.job.vertices.find((one) => one.id === input.id)?.name || input.id}${input.exchange ? ` (${input.exchange})` : ''}`,
          ]),
        ]),
      ];
    },
  };
}

/** Columns that subtasks and TaskManagers share. */
const IO_COLUMNS = [
  {
    title: 'Received',
    number: true,
    sort: (row) => row.metrics['read-records'],
    cell: (row) => `${compact(row.metrics['read-records'])} rec · ${bytes(row.metrics['read-bytes'])}`,
  },
  {
    title: 'Sent',
    number: true,
    sort: (row) => row.metrics['write-records'],
    cell: (row) => `${compact(row.metrics['write-records'])} rec · ${bytes(row.metrics['write-bytes'])}`,
  },
  { title: 'Duration', number: true, sort: (row) => row.duration, cell: (row) => duration(row.duration) },
];

/** @param {any} row */
function whereCell(row) {
  const id = row['taskmanager-id'];
  if (!id || id === '(unassigned)') return h('span', { class: 'muted' }, 'unassigned');
  return h('a', { href: href(['taskmanagers', id]), title: id }, row.endpoint || id);
}

/** @param {JobContext} context @param {string} id @returns {VertexView} */
export function subtasksView(context, id) {
  const busyOf = (row) => {
    const { metrics } = row;
    const all =
      metrics['accumulated-busy-time'] + metrics['accumulated-idle-time'] + metrics['accumulated-backpressured-time'];
    return all > 0 ? metrics['accumulated-busy-time'] / all : null;
  };
  return viewOf(
    (fetcher) => fetcher.get(pathOf(context, id)),
    (data) =>
      table({
        id: `subtasks ${id}`,
        label: 'Subtasks',
        rows: data.subtasks,
        key: (row) => `${row.subtask} ${row.attempt}`,
        empty: 'No subtask has been deployed yet.',
        columns: [
          { title: 'Subtask', number: true, sort: (row) => row.subtask, cell: (row) => count(row.subtask) },
          { title: 'State', sort: (row) => row.status, cell: (row) => badge(row.status) },
          { title: 'Attempt', number: true, sort: (row) => row.attempt, cell: (row) => count(row.attempt + 1) },
          { title: 'TaskManager', sort: (row) => row.endpoint, cell: whereCell },
          { title: 'Busy so far', number: true, sort: (row) => busyOf(row) ?? -1, cell: (row) => percent(busyOf(row)) },
          ...IO_COLUMNS,
          { title: 'Started', sort: (row) => row['start-time'], cell: (row) => dateTime(row['start-time']) },
        ],
      }),
  );
}

/** @param {JobContext} context @param {string} id @returns {VertexView} */
export function taskManagersView(context, id) {
  return viewOf(
    (fetcher) => fetcher.get([...pathOf(context, id), 'taskmanagers']),
    (data) =>
      table({
        id: `vertex taskmanagers ${id}`,
        label: 'TaskManagers of the vertex',
        rows: data.taskmanagers,
        key: (row) => row['taskmanager-id'],
        empty: 'The vertex is not running on any TaskManager.',
        columns: [
          { title: 'TaskManager', sort: (row) => row.endpoint, cell: whereCell },
          { title: 'State', sort: (row) => row.status, cell: (row) => badge(row.status) },
          { title: 'Tasks', cell: (row) => taskCounts(row['status-counts']) },
          ...IO_COLUMNS,
        ],
      }),
  );
}

/** @param {JobContext} context @param {string} id @returns {VertexView} */
export function watermarksView(context, id) {
  return viewOf(
    (fetcher) => fetcher.get([...pathOf(context, id), 'watermarks']),
    (data) => {
      const rows = data.map((entry) => ({ subtask: Number.parseInt(entry.id, 10), value: entry.value }));
      const lowest = rows.reduce(
        (least, row) => (Number(row.value) < Number(least) ? row.value : least),
        rows[0]?.value,
      );
      return [
        rows.length > 0 &&
          h(
            'p',
            null,
            'Low watermark: ',
            h('strong', null, watermark(lowest)),
            Number(lowest) > 1e11 &&
              Number(lowest) < 8e15 &&
              h(
                'span',
                { class: 'muted' },
                ` (${duration(Math.max(0, context.job.now - Number(lowest)))} behind the clock)`,
              ),
          ),
        table({
          id: `watermarks ${id}`,
          label: 'Watermarks',
          rows,
          key: (row) => row.subtask,
          empty:
            'No subtask has received a watermark: it is a source, or the job assigns none (assign_timestamps_and_watermarks).',
          columns: [
            { title: 'Subtask', number: true, sort: (row) => row.subtask, cell: (row) => count(row.subtask) },
            { title: 'Input watermark', sort: (row) => Number(row.value), cell: (row) => watermark(row.value) },
            { title: 'Value', number: true, cell: (row) => h('span', { class: 'mono' }, row.value) },
          ],
        }),
      ];
    },
  );
}

/** @param {JobContext} context @param {string} id @returns {VertexView} */
export function accumulatorsView(context, id) {
  return viewOf(
    async (fetcher) => {
      const [all, each] = await Promise.all([
        fetcher.get([...pathOf(context, id), 'accumulators']),
        fetcher.getOr([...pathOf(context, id), 'subtasks', 'accumulators'], { subtasks: [] }),
      ]);
      return {
        all: all['user-accumulators'],
        each: each.subtasks.flatMap((subtask) =>
          subtask['user-accumulators'].map((one) => ({ ...one, subtask: subtask.subtask })),
        ),
      };
    },
    (data) => {
      const columns = [
        { title: 'Name', wide: true, sort: (row) => row.name, cell: (row) => row.name },
        { title: 'Type', cell: (row) => row.type },
        { title: 'Value', number: true, cell: (row) => h('span', { class: 'mono' }, row.value) },
      ];
      return [
        table({
          id: `accumulators ${id}`,
          label: 'Accumulators',
          rows: data.all,
          key: (row) => row.name,
          empty: 'The vertex has no accumulators. Each counter is one: runtime_context.get_metrics_group().counter(…).',
          columns,
        }),
        data.each.length > 0 && [
          h('h3', null, 'By subtask'),
          table({
            id: `subtask accumulators ${id}`,
            label: 'Accumulators by subtask',
            rows: data.each,
            key: (row) => `${row.subtask} ${row.name}`,
            columns: [
              { title: 'Subtask', number: true, sort: (row) => row.subtask, cell: (row) => count(row.subtask) },
              ...columns,
            ],
          }),
        ],
      ];
    },
  );
}

const LEVELS = { ok: 'Not backpressured', low: 'Somewhat backpressured', high: 'Heavily backpressured' };

/** @param {JobContext} context @param {string} id @returns {VertexView} */
export function backpressureView(context, id) {
  return viewOf(
    (fetcher) => fetcher.get([...pathOf(context, id), 'backpressure']),
    (data) => {
      const state = remembered('backpressure help', { isOpen: false });
      const level = data['backpressure-level'] || data.backpressureLevel || 'ok';
      const rows = data.subtasks || [];
      return [
        rows.length > 0 &&
          h(
            'p',
            { class: `note ${level === 'ok' ? 'is-good' : 'is-warning'}` },
            `${LEVELS[level] || level}: `,
            level === 'ok'
              ? 'its output is consumed without delay.'
              : 'it waits for downstream vertices to consume its output. Look there for the cause.',
          ),
        table({
          id: `backpressure ${id}`,
          label: 'Backpressure by subtask',
          rows,
          key: (row) => `${row.subtask} ${row['attempt-number'] ?? ''}`,
          empty: 'There are no measurements: the vertex is not running.',
          columns: [
            { title: 'Subtask', number: true, sort: (row) => row.subtask, cell: (row) => count(row.subtask) },
            {
              title: 'Load',
              cell: (row) => loadBar({ busy: Number(row.busyRatio), backpressured: row.ratio, idle: row.idleRatio }),
            },
            {
              title: 'Busy',
              number: true,
              sort: (row) => Number(row.busyRatio),
              cell: (row) => percent(Number(row.busyRatio)),
            },
            { title: 'Backpressured', number: true, sort: (row) => row.ratio, cell: (row) => percent(row.ratio) },
            { title: 'Idle', number: true, sort: (row) => row.idleRatio, cell: (row) => percent(row.idleRatio) },
            {
              title: 'Level',
              sort: (row) => row.ratio,
              cell: (row) => LEVELS[row['backpressure-level'] || row.backpressureLevel] || NONE_LEVEL,
            },
          ],
        }),
        h(
          'details',
          { open: state.isOpen, ontoggle: (event) => ((state.isOpen = event.target.open), redraw()) },
          h('summary', null, 'How to read this'),
          h(
            'p',
            null,
            'A subtask is busy (processing), idle (waiting for input) or backpressured (waiting until its output is consumed). The bottleneck is the first vertex after the backpressured ones: it is busy, while those upstream of it wait.',
          ),
        ),
      ];
    },
  );
}

const NONE_LEVEL = '–';
