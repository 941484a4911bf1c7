// Reads a value of a running job's keyed state.

import { call } from '../api.js';
import { clock } from '../format.js';
import { redraw, remembered } from '../redraw.js';
import { isTerminal } from '../states.js';
import { panel } from '../table.js';
import { h } from '../vdom.js';

const FIELDS = [
  ['uid', 'Operator (uid)', 'set with .uid(…)'],
  ['name', 'State', 'the name in its descriptor'],
  ['key', 'Key', 'a text or a number, as in JSON'],
];

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function stateTab(context) {
  const state = remembered(`state ${context.jobId}`, {
    uid: '',
    name: '',
    key: '',
    answer: null,
    error: '',
    isAsking: false,
  });
  const ask = async (event) => {
    event.preventDefault();
    state.isAsking = true;
    redraw();
    try {
      state.answer = {
        key: state.key,
        at: Date.now(),
        value: await call(['jobs', context.jobId, 'state', state.uid, state.name], { query: { key: state.key } }),
      };
      state.error = '';
    } catch (error) {
      state.answer = null;
      state.error = error.message;
    }
    state.isAsking = false;
    redraw();
  };
  /** @type {any[]} */
  let operators = [];
  return {
    async load(fetcher) {
      // what states there are changes with the program only
      if (!operators.length && context.job.state === 'RUNNING')
        operators = (await fetcher.getOr(['jobs', context.jobId, 'state'], { operators })).operators;
    },
    view() {
      if (isTerminal(context.job.state))
        return h(
          'div',
          { class: 'panel empty' },
          'The job has ended. Savepoints can be read with the State Processor API.',
        );
      return panel(
        'Read a value of keyed state',
        operators.length > 0 && known(operators, state),
        h(
          'p',
          { class: 'muted' },
          'The current value of one key in the running task. Changes since the last checkpoint are lost if the job fails.',
        ),
        h(
          'form',
          { class: 'form is-row', onsubmit: ask },
          FIELDS.map(([name, title, hint]) =>
            h(
              'label',
              { key: name, class: 'field' },
              h('span', null, title),
              h('input', {
                name,
                required: true,
                value: state[name],
                list: name === 'key' ? null : `state-${name}`,
                placeholder: hint,
                autocomplete: 'off',
                spellcheck: 'false',
                oninput: (event) => ((state[name] = event.target.value), redraw()),
              }),
            ),
          ),
          h(
            'datalist',
            { id: 'state-uid' },
            operators.map((operator) =>
              h(
                'option',
                { key: operator['operator-id'], value: operator.uid || operator['operator-id'] },
                operator.name,
              ),
            ),
          ),
          h(
            'datalist',
            { id: 'state-name' },
            statesOf(operators, state.uid).map((one) => h('option', { key: one.name, value: one.name }, one.type)),
          ),
          h(
            'button',
            { type: 'submit', class: 'button is-primary', disabled: state.isAsking },
            state.isAsking ? 'Reading …' : 'Read',
          ),
        ),
        h(
          'div',
          { 'aria-live': 'polite' },
          state.error && h('pre', { class: 'text-bad wrap' }, state.error),
          state.answer &&
            h(
              'div',
              null,
              h('p', { class: 'muted' }, `Key ${state.answer.key} at ${clock(state.answer.at)}`),
              h('pre', { class: 'operators' }, JSON.stringify(state.answer.value, null, 2)),
            ),
        ),
      );
    },
  };
}

/**
 * The states of an operator, or of all while none is chosen.
 * @param {any[]} operators
 * @param {string} uid
 * @returns {any[]}
 */
function statesOf(operators, uid) {
  const chosen = operators.filter(
    (operator) => !uid || [operator.uid, operator['operator-id'], operator.name].includes(uid),
  );
  return chosen.flatMap((operator) => operator.states);
}

/**
 * What there is to read; a click fills the form.
 * @param {any[]} operators
 * @param {{uid: string, name: string}} state
 */
function known(operators, state) {
  const choose = (operator, name) => () => {
    state.uid = operator.uid || operator['operator-id'];
    state.name = name;
    redraw();
  };
  return h(
    'ul',
    { class: 'chips', 'aria-label': 'Keyed states of the job' },
    operators.flatMap((operator) =>
      operator.states.map((one) =>
        h(
          'li',
          { key: `${operator['operator-id']} ${one.name}` },
          h(
            'button',
            { type: 'button', class: 'chip', onclick: choose(operator, one.name) },
            h('strong', null, one.name),
            ` ${one.type} of ${operator.name}`,
          ),
        ),
      ),
    ),
  );
}
