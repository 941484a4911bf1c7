// Metrics of a vertex, chosen by name, as charts that go on with every refresh.

import { chart, SERIES_STYLES } from '../chart.js';
import { bytes, compact, count, watermark } from '../format.js';
import { redraw, remembered } from '../redraw.js';
import { filter } from '../table.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

const KEPT = 300;
const SHOWN = 60;
const FIRST = ['busyTimeMsPerSecond', 'numRecordsInPerSecond', 'numRecordsOutPerSecond'];

/** @typedef {Map<string, Array<[number, number]>>} History Points by series. */

/** Whether the values of a metric are bytes. @param {string} name @returns {boolean} */
export const isSize = (name) => /bytes|memory|size$/i.test(name) && !/queueSize|count$/i.test(name);

/** How the values of a metric are written. @param {string} name @returns {function(any): string} */
export function metricFormat(name) {
  if (/watermark$/i.test(name))
    return (value) => (Math.abs(value) > 9e18 ? 'none' : watermark(value).replace(/^\d+-\d+-\d+ /, ''));
  if (isSize(name)) return /persecond$/i.test(name) ? (value) => `${bytes(value)}/s` : bytes;
  if (/TimeMsPerSecond$/.test(name)) return (value) => `${compact(value)} ms/s`;
  return compact;
}

/** @param {import('./job.js').JobContext} context @param {string} id @returns {import('./vertex.js').VertexView} */
export function metricsView(context, id) {
  /** @type {string[]|null} */
  let names = null;
  /** @type {Map<string, History>} */
  const histories = new Map();
  const state = remembered(`metrics ${id}`, { chosen: null });
  const path = ['jobs', context.jobId, 'vertices', id];

  return {
    async load(fetcher) {
      const answer = await fetcher.get([...path, 'metrics']);
      names = [...new Set(answer.map((metric) => metric.id.replace(/^\d+\./, '')))].sort();
      state.chosen ||= FIRST.filter((name) => names.includes(name));
      const chosen = state.chosen.filter((name) => names.includes(name));
      if (!chosen.length) return;
      const vertex = context.job.vertices.find((one) => one.id === id);
      const points =
        vertex.parallelism <= SERIES_STYLES
          ? await eachSubtask(fetcher, path, chosen, vertex.parallelism)
          : await aggregated(fetcher, path, chosen);
      const now = Date.now();
      for (const [name, series, value] of points) remember(histories, name, series, now, value);
    },
    view() {
      if (names === null) return loading();
      if (!names.length)
        return h(
          'div',
          { class: 'empty' },
          'The vertex reports no metrics: it is not running, or has just started.',
        );
      return [
        chooser(id, names, state.chosen, context.page),
        state.chosen.map((name) => chartOf(name, histories.get(name))),
      ];
    },
  };
}

/**
 * @param {Map<string, History>} histories
 * @param {string} name
 * @param {string} series
 * @param {number} now
 * @param {number} value
 */
function remember(histories, name, series, now, value) {
  if (!Number.isFinite(value)) return;
  if (!histories.has(name)) histories.set(name, new Map());
  const history = histories.get(name);
  if (!history.has(series)) history.set(series, []);
  const points = history.get(series);
  points.push([now, value]);
  if (points.length > KEPT) points.shift();
}

/** One series per subtask. @returns {Promise<Array<[string, string, number]>>} */
async function eachSubtask(fetcher, path, chosen, parallelism) {
  const asked = chosen.flatMap((name) => Array.from({ length: parallelism }, (_, subtask) => `${subtask}.${name}`));
  const answer = await fetcher.get([...path, 'metrics'], { get: asked.join(',') });
  return answer.map((metric) => [
    metric.id.replace(/^\d+\./, ''),
    `Subtask ${Number.parseInt(metric.id, 10)}`,
    Number(metric.value),
  ]);
}

/**
 * Too many subtasks for lines of their own: least, mean and most.
 * @returns {Promise<Array<[string, string, number]>>}
 */
async function aggregated(fetcher, path, chosen) {
  const answer = await fetcher.get([...path, 'subtasks', 'metrics'], { get: chosen.join(',') });
  return answer.flatMap((metric) => [
    [metric.id, 'Maximum', Number(metric.max)],
    [metric.id, 'Average', Number(metric.avg)],
    [metric.id, 'Minimum', Number(metric.min)],
  ]);
}

/** @param {string} name @param {History|undefined} history */
function chartOf(name, history) {
  const series = [...(history || new Map())]
    .map(([title, points]) => ({ name: title, points: [...points] }))
    .sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  return h(
    'figure',
    { class: 'metric', key: `metric ${name}` },
    h('figcaption', null, name),
    series.length
      ? chart({ label: name, series, binary: isSize(name), format: metricFormat(name) })
      : h('p', { class: 'muted' }, 'No values yet.'),
  );
}

/** @param {string} id @param {string[]} names @param {string[]} chosen @param {import('../app.js').PageContext} page */
function chooser(id, names, chosen, page) {
  const wanted = filter(`metrics ${id}`, 'Filter metrics by name');
  const matching = names.filter((name) => !wanted.text || name.toLowerCase().includes(wanted.text));
  const shown = [...matching]
    .sort((a, b) => Number(chosen.includes(b)) - Number(chosen.includes(a)) || a.localeCompare(b))
    .slice(0, SHOWN);
  const toggle = (name) => () => {
    const at = chosen.indexOf(name);
    if (at >= 0) chosen.splice(at, 1);
    else chosen.push(name);
    page.refresh();
    redraw();
  };
  return h(
    'fieldset',
    { class: 'chooser' },
    h('legend', null, `Metrics (${count(chosen.length)} of ${count(names.length)} shown)`),
    wanted.field,
    h(
      'div',
      { class: 'choices', role: 'group', tabindex: 0, 'aria-label': 'Metrics' },
      shown.map((name) =>
        h(
          'label',
          { key: name, class: 'choice', title: name },
          h('input', { type: 'checkbox', checked: chosen.includes(name), onchange: toggle(name) }),
          h('span', null, name),
        ),
      ),
      matching.length > shown.length &&
        h('p', { class: 'muted' }, `${count(matching.length - shown.length)} more: type to filter.`),
      !matching.length && h('p', { class: 'muted' }, 'No metric matches.'),
    ),
  );
}
