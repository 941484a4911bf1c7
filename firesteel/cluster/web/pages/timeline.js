// When the tasks of a job were in which state.

import { eachOf } from '../api.js';
import { clock, dateTime, duration, plural } from '../format.js';
import { icon } from '../icons.js';
import { redraw, remembered } from '../redraw.js';
import { isTerminal, kindOf, TASK_STATES } from '../states.js';
import { PAGE_SIZE, panel } from '../table.js';
import { h } from '../vdom.js';

const JOB_STATES = [
  'INITIALIZING',
  'CREATED',
  'RUNNING',
  'RESTARTING',
  'FAILING',
  'CANCELLING',
  'SUSPENDED',
  'FINISHED',
  'CANCELED',
  'FAILED',
];
const ENDS = new Set(['FINISHED', 'CANCELED', 'FAILED']);

/** @typedef {{state: string, from: number, to: number}} Span */

/**
 * The spans between the times at which states were entered.
 * @param {Object<string, number>} timestamps
 * @param {string[]} states
 * @param {number} end
 * @returns {Span[]}
 */
export function spansOf(timestamps, states, end) {
  const entered = states.map((state) => ({ state, from: timestamps[state] || 0 })).filter((one) => one.from > 0);
  entered.sort((a, b) => a.from - b.from || states.indexOf(a.state) - states.indexOf(b.state));
  return entered.map((one, index) => ({
    ...one,
    to: entered[index + 1]?.from ?? (ENDS.has(one.state) ? one.from : Math.max(one.from, end)),
  }));
}

/**
 * The spans of the job. Of each state only the last time is known: once the job has started again, what was before
 * its last restart is one span.
 * @param {any} job
 * @param {number} end
 * @returns {Span[]}
 */
function jobSpans(job, end) {
  const spans = spansOf(job.timestamps, JOB_STATES, end);
  const hasRestarted = job.timestamps.RESTARTING > 0 && spans[0].state === 'INITIALIZING';
  return hasRestarted ? [{ ...spans[0], state: 'EARLIER' }, ...spans.slice(1)] : spans;
}

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function timelineTab(context) {
  /** @type {Map<string, any>} */
  const times = new Map();
  const state = remembered(`timeline ${context.jobId}`, { open: null, pages: {} });
  return {
    async load(fetcher) {
      state.open ||= new Set(context.job.vertices.length <= 4 ? context.job.vertices.map((vertex) => vertex.id) : []);
      await eachOf([...state.open], async (id) =>
        times.set(id, await fetcher.getOr(['jobs', context.jobId, 'vertices', id, 'subtasktimes'], { subtasks: [] })),
      );
    },
    view() {
      const { job } = context;
      const end = isTerminal(job.state) ? job['end-time'] : job.now;
      const scale = { start: job['start-time'], end: Math.max(end, job['start-time'] + 1) };
      const toggle = (id) => () => {
        if (!state.open.delete(id)) state.open.add(id);
        context.page.refresh();
        redraw();
      };
      return panel(
        'Timeline',
        h(
          'p',
          { class: 'muted' },
          `From ${dateTime(scale.start)} to ${isTerminal(job.state) ? dateTime(scale.end) : 'now'}: ${duration(scale.end - scale.start)}.`,
        ),
        legend(),
        h(
          'div',
          { class: 'timeline' },
          row('Job', job.name, jobSpans(job, end), scale, 'job'),
          job.vertices.map((vertex) => vertexRows(vertex, times.get(vertex.id), scale, end, state, toggle(vertex.id))),
          !job.vertices.length && h('p', { class: 'muted' }, 'No task has been deployed yet.'),
          h(
            'div',
            { class: 'timeline-axis muted', 'aria-hidden': 'true' },
            [0, 0.25, 0.5, 0.75, 1].map((share) =>
              h('span', { key: share }, clock(scale.start + share * (scale.end - scale.start))),
            ),
          ),
        ),
      );
    },
  };
}

/**
 * @param {any} vertex
 * @param {any} times
 * @param {{start: number, end: number}} scale
 * @param {number} end
 * @param {any} state
 * @param {function(): void} toggle
 */
function vertexRows(vertex, times, scale, end, state, toggle) {
  const isOpen = state.open ? state.open.has(vertex.id) : false;
  const started = vertex['start-time'];
  const own =
    started > 0 ? [{ state: vertex.status, from: started, to: vertex['end-time'] > 0 ? vertex['end-time'] : end }] : [];
  const subtasks = times ? times.subtasks : [];
  const page = Math.min(state.pages[vertex.id] || 0, Math.max(0, Math.ceil(subtasks.length / PAGE_SIZE) - 1));
  const to = (next) => () => {
    state.pages[vertex.id] = next;
    redraw();
  };
  return h(
    'div',
    { key: vertex.id, class: 'timeline-group' },
    row(
      h(
        'button',
        {
          type: 'button',
          class: 'disclose',
          'aria-expanded': isOpen ? 'true' : 'false',
          title: vertex.name,
          onclick: toggle,
        },
        icon(isOpen ? 'down' : 'right'),
        h('span', { class: 'clamp' }, vertex.name),
      ),
      vertex.name,
      own,
      scale,
      'vertex',
    ),
    isOpen &&
      subtasks
        .slice(page * PAGE_SIZE, (page + 1) * PAGE_SIZE)
        .map((subtask) =>
          row(
            `Subtask ${subtask.subtask}`,
            `Subtask ${subtask.subtask}`,
            spansOf(subtask.timestamps, TASK_STATES, end),
            scale,
            `subtask ${subtask.subtask}`,
            'is-subtask',
          ),
        ),
    isOpen && times && !subtasks.length && h('p', { class: 'muted' }, 'There are no times yet.'),
    isOpen &&
      subtasks.length > PAGE_SIZE &&
      h(
        'nav',
        { class: 'pager', 'aria-label': `Pages of ${vertex.name}` },
        h(
          'button',
          { type: 'button', class: 'button is-small', disabled: page === 0, onclick: to(page - 1) },
          'Previous',
        ),
        h(
          'span',
          { class: 'muted' },
          `${page * PAGE_SIZE}–${Math.min(subtasks.length, (page + 1) * PAGE_SIZE) - 1} of ${plural(subtasks.length, 'subtask')}`,
        ),
        h(
          'button',
          {
            type: 'button',
            class: 'button is-small',
            disabled: (page + 1) * PAGE_SIZE >= subtasks.length,
            onclick: to(page + 1),
          },
          'Next',
        ),
      ),
  );
}

/**
 * @param {any} title
 * @param {string} name
 * @param {Span[]} spans
 * @param {{start: number, end: number}} scale
 * @param {string} key
 * @param {string} [extra]
 */
function row(title, name, spans, scale, key, extra = '') {
  const at = (time) => Math.max(0, Math.min(100, (100 * (time - scale.start)) / (scale.end - scale.start)));
  const spoken = `${name}: ${spans.map((span) => `${stateName(span)} ${duration(span.to - span.from)}`).join(', ') || 'not started'}`;
  return h(
    'div',
    { class: `timeline-row ${extra}`, key },
    h('div', { class: 'timeline-title' }, title),
    h(
      'div',
      { class: 'timeline-bar', role: 'img', 'aria-label': spoken },
      spans.map((span) =>
        h(
          'span',
          {
            key: span.state,
            class: `span is-${span.state.toLowerCase()} is-${kindOf(span.state)}`,
            title: `${stateName(span)}\n${dateTime(span.from)}\n${duration(span.to - span.from)}`,
            style: { left: `${at(span.from)}%`, width: `${Math.max(0, at(span.to) - at(span.from))}%` },
          },
          at(span.to) - at(span.from) > 12 ? stateName(span) : '',
        ),
      ),
    ),
  );
}

/** @param {Span} span @returns {string} */
const stateName = (span) => (span.state === 'EARLIER' ? 'earlier attempts' : span.state);

function legend() {
  const entry = (state, text) =>
    h(
      'li',
      { key: state },
      h('span', { class: `legend-box span is-${state} is-${kindOf(state.toUpperCase())}` }),
      text,
    );
  return h(
    'ul',
    { class: 'legend' },
    entry('created', 'created'),
    entry('scheduled', 'scheduled, deploying'),
    entry('initializing', 'initializing'),
    entry('running', 'running'),
    entry('restarting', 'restarting'),
    entry('finished', 'finished'),
    entry('canceled', 'cancelled'),
    entry('failed', 'failed'),
  );
}
