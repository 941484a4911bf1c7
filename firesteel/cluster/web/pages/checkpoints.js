// The checkpoints of a job: how many, the latest, sizes and durations over time, the history and the configuration.

import { chart } from '../chart.js';
import { bytes, count, dateTime, duration, isNumber, NONE, percent } from '../format.js';
import { icon } from '../icons.js';
import { redraw, remembered } from '../redraw.js';
import { badge } from '../states.js';
import { facts, panel, table } from '../table.js';
import { h } from '../vdom.js';
import { checkpointDetails } from './checkpoint_details.js';
import { loading } from './overview.js';

/** How many points the charts keep: the server forgets earlier ones. */
const KEPT = 500;
const STATISTICS = [
  ['min', 'Minimum'],
  ['avg', 'Average'],
  ['p50', 'Median'],
  ['p90', '90%'],
  ['p99', '99%'],
  ['max', 'Maximum'],
];

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function checkpointsTab(context) {
  let data = null;
  let config = null;
  /** Completed ones, by id. @type {Map<number, any>} */
  const seen = new Map();
  const details = checkpointDetails(context);
  return {
    async load(fetcher) {
      const path = ['jobs', context.jobId, 'checkpoints'];
      const [all, settings] = await Promise.all([
        fetcher.getOr(path, {}),
        config || fetcher.getOr([...path, 'config'], {}),
      ]);
      data = all;
      config = settings;
      for (const one of all.history || []) if (one.status === 'COMPLETED') seen.set(one.id, one);
      for (const id of [...seen.keys()].sort((a, b) => a - b).slice(0, Math.max(0, seen.size - KEPT))) seen.delete(id);
      await details.load(fetcher);
    },
    view() {
      if (!data) return loading();
      if (!data.counts)
        return h(
          'div',
          { class: 'panel empty' },
          context.job['job-type'] === 'BATCH'
            ? 'A batch job takes no checkpoints: lost results are computed again.'
            : 'Checkpointing is disabled for this job. Set execution.checkpointing.interval, or call env.enable_checkpointing(…).',
        );
      return [
        overview(data),
        charts([...seen.values()].sort((a, b) => a.id - b.id)),
        panel('History', history(context, data, details)),
        summary(data.summary),
        config && config.mode && panel('Configuration', configuration(config)),
      ];
    },
  };
}

/** @param {any} data */
function overview(data) {
  const { counts, latest } = data;
  const number = (title, value) =>
    h(
      'div',
      { key: title, class: 'tile is-small' },
      h('span', { class: 'tile-title' }, title),
      h('span', { class: 'tile-value' }, count(value)),
    );
  return panel(
    'Overview',
    h(
      'div',
      { class: 'tiles is-small' },
      number('Triggered', counts.total),
      number('In progress', counts.in_progress),
      number('Completed', counts.completed),
      number('Failed', counts.failed),
      number('Restored', counts.restored),
    ),
    facts([
      [
        'Latest completed',
        latest.completed ? [latestOf(latest.completed), path(latest.completed.external_path)] : 'none yet',
      ],
      latest.savepoint && ['Latest savepoint', [latestOf(latest.savepoint), path(latest.savepoint.external_path)]],
      latest.failed && [
        'Latest failed',
        h(
          'span',
          null,
          `${latest.failed.id} at ${dateTime(latest.failed.failure_timestamp ?? latest.failed.trigger_timestamp)}: `,
          h('span', { class: 'text-bad' }, latest.failed.failure_message || 'no reason given'),
        ),
      ],
      latest.restored && [
        'Restored from',
        [
          `${latest.restored.is_savepoint ? 'Savepoint' : 'Checkpoint'} ${latest.restored.id} at ${dateTime(latest.restored.restore_timestamp)}`,
          path(latest.restored.external_path),
        ],
      ],
    ]),
  );
}

/** @param {any} one @returns {string} */
const latestOf = (one) =>
  `${one.id}, ${dateTime(one.latest_ack_timestamp)}, ${bytes(one.checkpointed_size)}, took ${duration(one.end_to_end_duration)}`;

/** @param {string|undefined} text */
const path = (text) => text && h('div', { class: 'mono small break' }, text);

/** @param {any[]} completed */
function charts(completed) {
  if (!completed.length) return null;
  /** @param {string} name @param {string} field @returns {import('../chart.js').Series} */
  const line = (name, field) => ({
    name,
    points: completed.map((one) => [one.trigger_timestamp, one[field]]).filter((point) => isNumber(point[1])),
  });
  return h(
    'div',
    { class: 'columns' },
    panel(
      'Size',
      chart({
        label: 'Size of checkpoints',
        dots: true,
        binary: true,
        format: bytes,
        series: [line('Checkpointed', 'checkpointed_size'), line('Whole state', 'state_size')],
      }),
    ),
    panel(
      'Duration',
      chart({
        label: 'Duration of checkpoints',
        dots: true,
        format: duration,
        series: [line('End to end', 'end_to_end_duration')],
      }),
    ),
  );
}

/**
 * @param {import('./job.js').JobContext} context
 * @param {any} data
 * @param {ReturnType<typeof checkpointDetails>} details
 */
function history(context, data, details) {
  return table({
    id: `checkpoints ${context.jobId}`,
    label: 'Checkpoints',
    rows: data.history,
    key: (one) => one.id,
    empty:
      'No checkpoint has been triggered yet. The first comes one interval after the start; “Checkpoint” above takes one now.',
    detail: (one) => details.view(one),
    columns: [
      {
        title: 'Id',
        number: true,
        sort: (one) => one.id,
        cell: (one) =>
          h(
            'button',
            {
              type: 'button',
              class: 'disclose',
              'aria-expanded': details.isOpen(one.id) ? 'true' : 'false',
              'aria-label': `Details of checkpoint ${one.id}`,
              onclick: () => details.toggle(one.id),
            },
            icon(details.isOpen(one.id) ? 'down' : 'right'),
            one.id,
          ),
      },
      { title: 'State', sort: (one) => one.status, cell: (one) => badge(one.status) },
      { title: 'Kind', sort: (one) => one.checkpoint_type, cell: (one) => kindName(one) },
      {
        title: 'Acknowledged',
        cell: (one) =>
          `${one.num_acknowledged_subtasks}/${one.num_subtasks} (${percent(one.num_subtasks ? one.num_acknowledged_subtasks / one.num_subtasks : 0)})`,
      },
      { title: 'Triggered', sort: (one) => one.trigger_timestamp, cell: (one) => dateTime(one.trigger_timestamp) },
      {
        title: 'Duration',
        number: true,
        sort: (one) => one.end_to_end_duration,
        cell: (one) => duration(one.end_to_end_duration),
      },
      {
        title: 'Checkpointed',
        number: true,
        hint: 'Size of the data written for this checkpoint',
        sort: (one) => one.checkpointed_size,
        cell: (one) => bytes(one.checkpointed_size),
      },
      { title: 'Whole state', number: true, sort: (one) => one.state_size, cell: (one) => bytes(one.state_size) },
      {
        title: 'In flight',
        number: true,
        hint: 'Data between tasks: processed during the alignment, and persisted',
        cell: (one) => `${bytes(one.processed_data)} (${bytes(one.persisted_data)})`,
      },
    ],
  });
}

/** @param {any} one @returns {string} */
function kindName(one) {
  const names = {
    CHECKPOINT: 'Checkpoint',
    UNALIGNED_CHECKPOINT: 'Unaligned checkpoint',
    SAVEPOINT: 'Savepoint',
    SYNC_SAVEPOINT: 'Stop with savepoint',
  };
  return names[one.checkpoint_type] || one.checkpoint_type || NONE;
}

/** @param {any} data */
function summary(data) {
  if (!data) return null;
  const state = remembered('checkpoint summary', { isOpen: false });
  /** @type {Array<[string, string, function(any): string]>} */
  const all = [
    ['Checkpointed', 'checkpointed_size', bytes],
    ['Whole state', 'state_size', bytes],
    ['End to end duration', 'end_to_end_duration', duration],
    ['Processed in flight', 'processed_data', bytes],
    ['Persisted in flight', 'persisted_data', bytes],
  ];
  const rows = all.filter(([, field]) => data[field]);
  return h(
    'details',
    {
      class: 'panel collapsed',
      open: state.isOpen,
      ontoggle: (event) => ((state.isOpen = event.target.open), redraw()),
    },
    h('summary', null, 'Summary of all completed'),
    table({
      id: 'checkpoint summary',
      label: 'Summary of all completed checkpoints',
      rows,
      key: (row) => row[1],
      columns: [
        { title: '', cell: (row) => row[0] },
        ...STATISTICS.map(([field, title]) => ({
          title,
          number: true,
          cell: (row) => row[2](Number(data[row[1]][field])),
        })),
      ],
    }),
  );
}

/** @param {any} config */
function configuration(config) {
  const yes = (value) => (value ? 'yes' : 'no');
  const kept = config.externalization && config.externalization.enabled;
  return facts([
    ['Mode', config.mode === 'exactly_once' ? 'Exactly once' : 'At least once'],
    [
      'Interval',
      isNumber(config.interval) && config.interval > 0 && config.interval < 1e15
        ? duration(config.interval)
        : 'on request only',
    ],
    ['Timeout', duration(config.timeout)],
    ['Minimum pause', duration(config.min_pause)],
    ['Maximum concurrent', count(config.max_concurrent)],
    ['Tolerable failures', count(config.tolerable_failed_checkpoints)],
    ['Unaligned', yes(config.unaligned_checkpoints)],
    isNumber(config.aligned_checkpoint_timeout) && [
      'Aligned timeout',
      config.aligned_checkpoint_timeout > 0 ? duration(config.aligned_checkpoint_timeout) : 'none',
    ],
    ['State backend', config.state_backend || NONE],
    ['Storage', config.checkpoint_storage || NONE],
    ['Kept when cancelled', kept ? yes(!config.externalization.delete_on_cancellation) : 'no'],
    ['After tasks finish', yes(config.checkpoints_after_tasks_finish)],
  ]);
}
