// States of jobs, tasks and checkpoints: each has a colour, an icon and its name, never a colour alone.

import { icon } from './icons.js';
import { h } from './vdom.js';

/** Kind of a state: decides colour and icon. @type {Object<string, string>} */
const KINDS = {
  INITIALIZING: 'waiting',
  CREATED: 'waiting',
  SCHEDULED: 'waiting',
  DEPLOYING: 'waiting',
  RECONCILING: 'waiting',
  IN_PROGRESS: 'waiting',
  RUNNING: 'running',
  FINISHED: 'finished',
  COMPLETED: 'finished',
  RESTARTING: 'restarting',
  SUSPENDED: 'restarting',
  CANCELLING: 'canceled',
  CANCELING: 'canceled',
  CANCELED: 'canceled',
  FAILING: 'failed',
  FAILED: 'failed',
};

/** The states of a task, as they follow each other. */
export const TASK_STATES = [
  'CREATED',
  'SCHEDULED',
  'DEPLOYING',
  'INITIALIZING',
  'RUNNING',
  'FINISHED',
  'CANCELING',
  'CANCELED',
  'FAILED',
  'RECONCILING',
];

/** Whether a job in this state will never run again. @param {string} state @returns {boolean} */
export const isTerminal = (state) => state === 'FINISHED' || state === 'FAILED' || state === 'CANCELED';

/** @param {string} state @returns {string} */
export const kindOf = (state) => KINDS[state] || 'waiting';

/** A state as a badge. @param {string} state @param {string} [text] */
export function badge(state, text = state) {
  const kind = kindOf(state);
  return h('span', { class: `badge is-${kind}` }, icon(kind), h('span', null, text));
}

/**
 * How many tasks are in which state: small badges, those that are none left out.
 * @param {Object<string, any>} counts
 */
export function taskCounts(counts) {
  const shown = TASK_STATES.map((state) => [state, Number(counts[state] ?? counts[state.toLowerCase()] ?? 0)]).filter(
    ([, amount]) => Number(amount) > 0,
  );
  if (!shown.length) return h('span', { class: 'muted' }, 'none');
  return h(
    'span',
    { class: 'task-counts' },
    shown.map(([state, amount]) =>
      h(
        'span',
        { class: `count is-${kindOf(String(state))}`, title: `${amount} ${state}`, key: state },
        icon(kindOf(String(state))),
        h('span', null, amount),
        h('span', { class: 'sr-only' }, ` ${state} `),
      ),
    ),
  );
}

/**
 * A bar of tasks by state: those done, those running, the rest.
 * @param {Object<string, any>} counts
 * @param {number} total
 */
export function taskBar(counts, total) {
  const of = (state) => Number(counts[state] ?? counts[state.toLowerCase()] ?? 0);
  const parts = [
    ['finished', of('FINISHED')],
    ['running', of('RUNNING')],
    ['failed', of('FAILED')],
    ['canceled', of('CANCELED') + of('CANCELING')],
  ];
  const label = `${of('RUNNING')} of ${total} tasks running, ${of('FINISHED')} finished`;
  return h(
    'span',
    { class: 'task-bar', role: 'img', 'aria-label': label, title: label },
    parts.map(([kind, amount]) =>
      h('span', { key: kind, class: `is-${kind}`, style: { width: `${total ? (100 * Number(amount)) / total : 0}%` } }),
    ),
  );
}
