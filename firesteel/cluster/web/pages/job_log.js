// The log lines of a job's functions.

import { redraw, remembered } from '../redraw.js';
import { h } from '../vdom.js';
import { refreshSoon, textPart } from './logs.js';

const LEVELS = ['DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'];

/** Records: the lines of a traceback belong to the line before them. @param {string} text @returns {string[]} */
const records = (text) => text.split(/\n(?! {4})/);

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function logTab({ jobId }) {
  const state = remembered(`log level ${jobId}`, { level: 'DEBUG' });
  const change = (event) => {
    state.level = event.target.value;
    redraw();
    refreshSoon();
  };
  const levels = () =>
    h(
      'label',
      { class: 'inline-field' },
      h('span', null, 'Level from'),
      h(
        'select',
        { value: state.level, onchange: change },
        LEVELS.map((level) => h('option', { key: level, value: level }, level)),
      ),
    );
  return textPart(
    ['jobs', jobId, 'log'],
    `${jobId}.log`,
    'The functions of this job have not logged anything, or nothing of this level.',
    { query: () => ({ level: state.level }), controls: levels, split: records },
  );
}
