// Why a job failed, now and before.

import { copyButton } from '../copying.js';
import { count, dateTime } from '../format.js';
import { redraw, remembered } from '../redraw.js';
import { href } from '../router.js';
import { stackTrace } from '../stacktrace.js';
import { isTerminal } from '../states.js';
import { facts, panel } from '../table.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

const STEP = 20;

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function exceptionsTab(context) {
  let data = null;
  let restarts = null;
  let most = STEP;
  return {
    async load(fetcher) {
      const [answer, metrics] = await Promise.all([
        fetcher.get(['jobs', context.jobId, 'exceptions'], { maxExceptions: most }),
        fetcher.getOr(['jobs', context.jobId, 'metrics'], [], { get: 'numRestarts,fullRestarts' }),
      ]);
      data = answer.exceptionHistory;
      restarts = metrics.length ? Number(metrics[0].value) : null;
    },
    view() {
      if (!data) return loading();
      const [root, ...earlier] = data.entries;
      if (!root)
        return h(
          'div',
          { class: 'panel empty' },
          isTerminal(context.job.state)
            ? 'The job ended without an exception.'
            : 'There are no failures. If a task fails, its exception and the line of your program are shown here, for every restart.',
        );
      const more = () => {
        most += STEP;
        context.page.refresh();
      };
      return [
        panel(
          context.job.state === 'FAILED' ? 'Why the job failed' : 'Latest failure',
          summary(context, restarts),
          exception(root, true),
        ),
        earlier.length > 0 &&
          panel(
            'Earlier failures',
            // not by position, which changes with each new failure
            earlier.map((entry) => collapsed(entry, `${context.jobId} ${entry.timestamp} ${entry.taskName}`)),
          ),
        data.truncated && h('button', { type: 'button', class: 'button', onclick: more }, 'Show older ones'),
      ];
    },
  };
}

/** @param {import('./job.js').JobContext} context @param {number|null} restarts */
function summary(context, restarts) {
  const again = context.job.timestamps.RESTARTING;
  return facts(
    [
      restarts !== null && Number.isFinite(restarts) && ['Restarts', count(restarts)],
      again > 0 && ['Last restart', dateTime(again)],
    ].filter(Boolean),
    'is-line',
  );
}

/** @param {any} entry @param {boolean} withName */
function exception(entry, withName) {
  const manager = entry.taskManagerId;
  return h(
    'article',
    { class: 'exception' },
    withName && h('h3', { class: 'text-bad' }, entry.exceptionName),
    facts(
      [
        ['When', dateTime(entry.timestamp)],
        ['Task', entry.taskName || 'the whole job'],
        entry.endpoint && [
          'Where',
          manager && manager !== '(unassigned)'
            ? h('a', { href: href(['taskmanagers', manager]) }, entry.endpoint)
            : entry.endpoint,
        ],
        ...Object.entries(entry.failureLabels || {}),
      ],
      'is-line',
    ),
    h('div', { class: 'trace-box' }, copyButton(entry.stacktrace, 'the stack trace'), stackTrace(entry.stacktrace)),
    (entry.concurrentExceptions || []).length > 0 && [
      h('h4', null, `Concurrent exceptions: ${count(entry.concurrentExceptions.length)}`),
      entry.concurrentExceptions.map((other, index) => collapsed(other, `${entry.timestamp} concurrent ${index}`)),
    ],
  );
}

/** @param {any} entry @param {string} id */
function collapsed(entry, id) {
  const state = remembered(`exception ${id}`, { isOpen: false });
  return h(
    'details',
    {
      key: id,
      class: 'collapsed',
      open: state.isOpen,
      ontoggle: (event) => ((state.isOpen = event.target.open), redraw()),
    },
    h(
      'summary',
      null,
      h('span', { class: 'mono' }, dateTime(entry.timestamp)),
      ' ',
      h('strong', null, entry.exceptionName),
      entry.taskName && h('span', { class: 'muted' }, ` in ${entry.taskName}`),
    ),
    state.isOpen && exception(entry, false),
  );
}
