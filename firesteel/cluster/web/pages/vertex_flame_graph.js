// The flame graph of a vertex: on CPU, waiting, or both.

import { dateTime } from '../format.js';
import { flameGraph } from '../flamegraph.js';
import { redraw, remembered } from '../redraw.js';
import { filter } from '../table.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

const TYPES = [
  ['full', 'Mixed', 'All samples'],
  ['on_cpu', 'On CPU', 'Samples of running code'],
  ['off_cpu', 'Off CPU', 'Samples of waiting code'],
];
/** What the server answers with in place of a time where there are no samples. */
const ENDED = -1;
const DISABLED = -3;

/** @param {import('./job.js').JobContext} context @param {string} id @returns {import('./vertex.js').VertexView} */
export function flameGraphView(context, id) {
  let data = null;
  let shown = '';
  const state = remembered(`flame graph ${id}`, { type: 'full', subtask: '' });
  const path = ['jobs', context.jobId, 'vertices', id, 'flamegraph'];
  return {
    async load(fetcher) {
      const asked = `${state.type} ${state.subtask}`;
      const answer = await fetcher.get(path, { type: state.type, subtaskindex: state.subtask });
      // the same samples are not drawn again, so that one can look at them in peace
      if (data && shown === asked && data.endTimestamp === answer.endTimestamp) return;
      data = answer;
      shown = asked;
    },
    view() {
      if (!data) return loading();
      if (data.endTimestamp === DISABLED)
        return h('div', { class: 'empty' }, 'Flame graphs are switched off: set rest.flamegraph.enabled to true.');
      if (data.endTimestamp === ENDED)
        return h('div', { class: 'empty' }, 'The vertex does not run: there is nothing to sample.');
      const wanted = filter(`flame graph ${id}`, 'Find a function');
      const vertex = context.job.vertices.find((one) => one.id === id);
      return [
        controls(context, state, vertex.parallelism, wanted.field),
        hasSamples(data) && shown === `${state.type} ${state.subtask}`
          ? [
              flameGraph({ root: data.data, search: wanted.text }, `flame ${id} ${shown}`),
              h(
                'p',
                { class: 'muted small' },
                `Sampled until ${dateTime(data.endTimestamp)}. Warm colours are your program, cool ones the engine and libraries.`,
              ),
            ]
          : h('div', { class: 'empty', role: 'status' }, 'Taking samples … This takes a few seconds.'),
      ];
    },
  };
}

/** @param {any} data @returns {boolean} */
const hasSamples = (data) => Boolean(data.data && data.data.value);

/**
 * @param {import('./job.js').JobContext} context
 * @param {{type: string, subtask: string}} state
 * @param {number} parallelism
 * @param {any} search
 */
function controls(context, state, parallelism, search) {
  const change = (name, value) => {
    state[name] = value;
    context.page.refresh();
    redraw();
  };
  return h(
    'div',
    { class: 'controls' },
    h(
      'div',
      { class: 'segments', role: 'group', 'aria-label': 'Which samples' },
      TYPES.map(([type, title, hint]) =>
        h(
          'button',
          {
            key: type,
            type: 'button',
            class: 'segment',
            title: hint,
            'aria-pressed': state.type === type ? 'true' : 'false',
            onclick: () => change('type', type),
          },
          title,
        ),
      ),
    ),
    parallelism > 1 &&
      h(
        'label',
        { class: 'inline-field' },
        h('span', null, 'Subtask'),
        h(
          'select',
          { value: state.subtask, onchange: (event) => change('subtask', event.target.value) },
          h('option', { value: '' }, 'all'),
          Array.from({ length: Math.min(parallelism, 500) }, (_, index) =>
            h('option', { key: index, value: String(index) }, index),
          ),
        ),
      ),
    search,
  );
}
