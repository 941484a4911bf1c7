// What is shown below a checkpoint: where it is, why it failed, and each operator's part of it.

import { copyButton } from '../copying.js';
import { bytes, clock, count, duration } from '../format.js';
import { icon } from '../icons.js';
import { redraw } from '../redraw.js';
import { badge } from '../states.js';
import { table } from '../table.js';
import { h } from '../vdom.js';

/** @param {import('./job.js').JobContext} context */
export function checkpointDetails(context) {
  /** @type {Map<number, any>} */
  const known = new Map();
  const open = new Set();
  /** Operators whose subtasks are shown, as "checkpoint vertex". @type {Map<string, any>} */
  const subtasks = new Map();
  const toggle = (set, key) => {
    if (!set.delete(key)) set instanceof Map ? set.set(key, null) : set.add(key);
    context.page.refresh();
    redraw();
  };
  const path = (id) => ['jobs', context.jobId, 'checkpoints', 'details', String(id)];
  return {
    isOpen: (id) => open.has(id),
    toggle: (id) => toggle(open, id),
    /** @param {import('../refresher.js').Fetcher} fetcher */
    async load(fetcher) {
      for (const id of open) known.set(id, await fetcher.getOr(path(id), known.get(id) || null));
      for (const key of subtasks.keys()) {
        const [id, vertex] = key.split(' ');
        subtasks.set(key, await fetcher.getOr([...path(id), 'subtasks', vertex], { subtasks: [] }));
      }
    },
    /** @param {any} one A checkpoint of the history. */
    view(one) {
      if (!open.has(one.id)) return null;
      const details = known.get(one.id) || one;
      return h(
        'div',
        { class: 'checkpoint-details' },
        details.external_path &&
          h(
            'p',
            null,
            details.discarded ? 'It was at ' : 'It is at ',
            h('span', { class: 'mono break' }, details.external_path),
            copyButton(details.external_path, 'the path'),
            details.discarded ? ' and has been deleted.' : '',
          ),
        details.failure_message && h('p', { class: 'text-bad' }, details.failure_message),
        table({
          id: `checkpoint ${context.jobId} ${one.id}`,
          label: `Operators of checkpoint ${one.id}`,
          rows: Object.entries(details.tasks || {}).map(([id, task]) => ({ ...task, id })),
          key: (task) => task.id,
          empty: 'No operator has acknowledged yet.',
          detail: (task) => subtaskTable(one.id, task.id, subtasks),
          columns: [
            { title: 'Operator', wide: true, cell: (task) => nameCell(context, one.id, task.id, subtasks, toggle) },
            {
              title: 'Acknowledged',
              number: true,
              cell: (task) => `${task.num_acknowledged_subtasks}/${task.num_subtasks}`,
            },
            { title: 'Latest acknowledgement', cell: (task) => clock(task.latest_ack_timestamp) },
            {
              title: 'Duration',
              number: true,
              sort: (task) => task.end_to_end_duration,
              cell: (task) => duration(task.end_to_end_duration),
            },
            {
              title: 'Checkpointed',
              number: true,
              sort: (task) => task.checkpointed_size,
              cell: (task) => bytes(task.checkpointed_size),
            },
            {
              title: 'Whole state',
              number: true,
              sort: (task) => task.state_size,
              cell: (task) => bytes(task.state_size),
            },
            {
              title: 'In flight',
              number: true,
              cell: (task) => `${bytes(task.processed_data)} (${bytes(task.persisted_data)})`,
            },
          ],
        }),
      );
    },
  };
}

/** @returns {any} */
function nameCell(context, checkpoint, vertex, subtasks, toggle) {
  const key = `${checkpoint} ${vertex}`;
  const name = context.job.vertices.find((one) => one.id === vertex)?.name || vertex;
  return h(
    'button',
    {
      type: 'button',
      class: 'disclose',
      'aria-expanded': subtasks.has(key) ? 'true' : 'false',
      title: name,
      onclick: () => toggle(subtasks, key),
    },
    icon(subtasks.has(key) ? 'down' : 'right'),
    h('span', { class: 'clamp' }, name),
  );
}

/** @returns {any} */
function subtaskTable(checkpoint, vertex, subtasks) {
  const key = `${checkpoint} ${vertex}`;
  if (!subtasks.has(key)) return null;
  const data = subtasks.get(key);
  if (!data) return 'Loading …';
  return table({
    id: `checkpoint subtasks ${key}`,
    label: 'Subtasks',
    rows: data.subtasks,
    key: (one) => one.index,
    empty: 'No subtask has acknowledged yet.',
    columns: [
      { title: 'Subtask', number: true, sort: (one) => one.index, cell: (one) => count(one.index) },
      {
        title: 'State',
        cell: (one) =>
          badge(
            one.status.toUpperCase() === 'PENDING_OR_FAILED' ? 'IN_PROGRESS' : one.status.toUpperCase(),
            one.status,
          ),
      },
      { title: 'Acknowledged', cell: (one) => clock(one.ack_timestamp) },
      {
        title: 'Duration',
        number: true,
        sort: (one) => one.end_to_end_duration ?? -1,
        cell: (one) => duration(one.end_to_end_duration),
      },
      {
        title: 'Checkpointed',
        number: true,
        sort: (one) => one.checkpointed_size ?? -1,
        cell: (one) => bytes(one.checkpointed_size),
      },
      { title: 'Synchronous', number: true, cell: (one) => duration(one.checkpoint?.sync) },
      { title: 'Asynchronous', number: true, cell: (one) => duration(one.checkpoint?.async) },
      { title: 'Alignment', number: true, cell: (one) => duration(one.alignment?.duration) },
      { title: 'Start delay', number: true, cell: (one) => duration(one.start_delay) },
      { title: 'Unaligned', cell: (one) => (one.unaligned_checkpoint ? 'yes' : 'no') },
    ],
  });
}
