// The JobManager: its configuration, metrics, logs, output and threads.

import { chart } from '../chart.js';
import { bytes, compact } from '../format.js';
import { remembered } from '../redraw.js';
import { href } from '../router.js';
import { facts, filter, panel, table, tabs } from '../table.js';
import { h } from '../vdom.js';
import { settings } from './job_configuration.js';
import { logsPart, textPart, threadDumpPart } from './logs.js';
import { loading } from './overview.js';
import { isSize, metricFormat } from './vertex_metrics.js';

const TABS = [
  ['configuration', 'Configuration'],
  ['metrics', 'Metrics'],
  ['logs', 'Logs'],
  ['stdout', 'Stdout'],
  ['threads', 'Thread dump'],
];
const KEPT = 300;
const AT_ONCE = 60;

/** @param {import('../app.js').PageContext} context @returns {import('../app.js').Page} */
export function jobManagerPage(context) {
  const base = ['jobmanager'];
  /** @type {Object<string, import('./logs.js').Part>} */
  const parts = {
    configuration: configurationPart(),
    metrics: metricsPart(),
    logs: logsPart(base, 'jobmanager'),
    stdout: textPart(
      [...base, 'stdout'],
      'jobmanager-stdout.txt',
      'There is no output yet. Output of programs that run in the JobManager is shown here.',
    ),
    threads: threadDumpPart([...base, 'thread-dump']),
  };
  const active = () => (context.route.params.tab in parts ? context.route.params.tab : 'configuration');
  return {
    title: () => 'JobManager',
    load: (fetcher) => parts[active()].load(fetcher),
    view: () => [
      h('h1', null, 'JobManager'),
      tabs(
        'Parts of the JobManager',
        TABS.map(([id, title]) => ({ id, title, href: href(['jobmanager', id]) })),
        active(),
      ),
      h('div', { key: active(), class: 'tab-content' }, parts[active()].view()),
    ],
  };
}

/** @returns {import('./logs.js').Part} */
function configurationPart() {
  let entries = null;
  let environment = null;
  return {
    async load(fetcher) {
      [entries, environment] = await Promise.all([
        fetcher.get('jobmanager/config'),
        fetcher.getOr('jobmanager/environment', null),
      ]);
    },
    view() {
      if (!entries) return loading();
      return [
        environment &&
          panel(
            'Environment',
            facts([
              ['Version', environment.jvm.version],
              ['Machine', environment.jvm.arch],
              environment.jvm.options.length > 0 && [
                'Options',
                h('span', { class: 'mono break' }, environment.jvm.options.join(' ')),
              ],
            ]),
          ),
        panel('Settings', settings('jobmanager config', entries, 'No option is set: all have their defaults.')),
      ];
    },
  };
}

/** @returns {import('./logs.js').Part} */
function metricsPart() {
  let values = null;
  /** @type {Map<string, Array<[number, number]>>} */
  const histories = new Map();
  const state = remembered('jobmanager metrics', { shown: new Set() });
  return {
    async load(fetcher) {
      const names = (await fetcher.get('jobmanager/metrics')).map((metric) => metric.id);
      const answers = [];
      // an address has a length that servers bear
      for (let at = 0; at < names.length; at += AT_ONCE)
        answers.push(...(await fetcher.get('jobmanager/metrics', { get: names.slice(at, at + AT_ONCE).join(',') })));
      values = answers.sort((a, b) => a.id.localeCompare(b.id));
      const now = Date.now();
      for (const metric of values) {
        if (!histories.has(metric.id)) histories.set(metric.id, []);
        const points = histories.get(metric.id);
        if (Number.isFinite(Number(metric.value))) points.push([now, Number(metric.value)]);
        if (points.length > KEPT) points.shift();
      }
    },
    view() {
      if (!values) return loading();
      const wanted = filter('jobmanager metrics', 'Filter metrics by name');
      const toggle = (id) => () => {
        if (!state.shown.delete(id)) state.shown.add(id);
        window.dispatchEvent(new HashChangeEvent('hashchange'));
      };
      const charts = values.filter((metric) => state.shown.has(metric.id) && histories.get(metric.id).length);
      return [
        charts.length > 0 &&
          h(
            'div',
            { class: 'columns' },
            charts.map((metric) =>
              h(
                'section',
                { class: 'panel', key: metric.id },
                h('h2', { class: 'panel-title' }, metric.id),
                chart({
                  label: metric.id,
                  binary: isSize(metric.id),
                  format: metricFormat(metric.id),
                  series: [{ name: metric.id, points: [...histories.get(metric.id)] }],
                }),
              ),
            ),
          ),
        panel(
          null,
          h('div', { class: 'controls' }, wanted.field),
          table({
            id: 'jobmanager metrics',
            label: 'Metrics of the JobManager',
            rows: values.filter((metric) => !wanted.text || metric.id.toLowerCase().includes(wanted.text)),
            key: (metric) => metric.id,
            empty: 'No metric matches.',
            columns: [
              {
                title: 'Metric',
                wide: true,
                sort: (metric) => metric.id,
                cell: (metric) =>
                  h(
                    'label',
                    { class: 'choice' },
                    h('input', { type: 'checkbox', checked: state.shown.has(metric.id), onchange: toggle(metric.id) }),
                    h('span', { class: 'mono break' }, metric.id),
                  ),
              },
              {
                title: 'Value',
                number: true,
                cell: (metric) => h('span', { class: 'mono', title: metric.value }, valueText(metric)),
              },
            ],
          }),
        ),
      ];
    },
  };
}

/** @param {{id: string, value: string}} metric @returns {string} */
function valueText(metric) {
  const value = Number(metric.value);
  if (metric.value === '' || !Number.isFinite(value)) return metric.value;
  return /memory|bytes|heap.*(used|max|committed)/i.test(metric.id) ? bytes(value) : compact(value);
}
