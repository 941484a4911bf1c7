// What the cluster has and does: slots, TaskManagers, jobs.

import { count, dateTime, duration, plural } from '../format.js';
import { href } from '../router.js';
import { badge, isTerminal, taskBar, taskCounts } from '../states.js';
import { filter, panel, table } from '../table.js';
import { h } from '../vdom.js';

/** @param {import('../app.js').PageContext} context @returns {import('../app.js').Page} */
export function overviewPage(context) {
  let overview = null;
  let jobs = [];
  return {
    title: () => 'Overview',
    async load(fetcher) {
      const [cluster, all] = await Promise.all([fetcher.get('overview'), fetcher.get('jobs/overview')]);
      overview = cluster;
      jobs = all.jobs;
    },
    view() {
      if (!overview) return [h('h1', null, 'Overview'), loading()];
      const wanted = filter('jobs', 'Filter by name, id or state');
      const shown = jobs.filter(
        (job) =>
          !wanted.text || [job.name, job.jid, job.state].some((text) => text.toLowerCase().includes(wanted.text)),
      );
      const running = shown.filter((job) => !isTerminal(job.state)).sort((a, b) => b['start-time'] - a['start-time']);
      const ended = shown.filter((job) => isTerminal(job.state)).sort((a, b) => b['end-time'] - a['end-time']);
      return [
        h('div', { class: 'title-row' }, h('h1', null, 'Overview'), jobs.length > 0 && wanted.field),
        tiles(overview),
        panel(
          'Running jobs',
          jobTable('running', 'Running jobs', running, wanted.text ? 'No running job matches.' : noJobs(context)),
        ),
        panel(
          'Completed jobs',
          jobTable(
            'completed',
            'Completed jobs',
            ended,
            wanted.text
              ? 'No completed job matches.'
              : 'No job has ended yet. Jobs that finish, fail or are cancelled are kept here for a while.',
          ),
        ),
      ];
    },
  };
}

/** What stands in place of a page that has no data yet. */
export const loading = () => h('div', { class: 'loading', role: 'status' }, 'Loading …');

/** @param {import('../app.js').PageContext} context */
function noJobs(context) {
  return [
    h('p', null, 'No job is running.'),
    h(
      'p',
      null,
      context.config.features['web-submit'] && [h('a', { href: href(['submit']) }, 'Submit a program'), ' here, or '],
      'run ',
      h('code', null, `firesteel run -m ${location.host} job.py`),
      ' in a terminal.',
    ),
  ];
}

/** @param {Object<string, any>} overview */
function tiles(overview) {
  const total = overview['slots-total'];
  const free = overview['slots-available'];
  const tile = (title, value, note, extra = '') =>
    h(
      'div',
      { key: title, class: `tile ${extra}` },
      h('span', { class: 'tile-title' }, title),
      h('span', { class: 'tile-value' }, value),
      h('span', { class: 'tile-note muted' }, note),
    );
  return h(
    'section',
    { class: 'tiles', 'aria-label': 'The cluster' },
    h(
      'div',
      { class: 'tile' },
      h('span', { class: 'tile-title' }, 'Free slots'),
      h('span', { class: 'tile-value' }, count(free), h('span', { class: 'tile-of' }, ` of ${count(total)}`)),
      h(
        'span',
        { class: 'meter', role: 'img', 'aria-label': `${total - free} of ${total} slots in use` },
        h('span', { style: { width: `${total ? (100 * (total - free)) / total : 0}%` } }),
      ),
    ),
    tile('TaskManagers', h('a', { href: href(['taskmanagers']) }, count(overview.taskmanagers)), plural(total, 'slot')),
    tile('Running jobs', count(overview['jobs-running']), 'including waiting ones'),
    tile(
      'Ended jobs',
      count(overview['jobs-finished'] + overview['jobs-cancelled'] + overview['jobs-failed']),
      `${count(overview['jobs-finished'])} finished · ${count(overview['jobs-cancelled'])} cancelled · ${count(overview['jobs-failed'])} failed`,
    ),
  );
}

/** @param {string} id @param {string} label @param {any[]} rows @param {any} empty */
function jobTable(id, label, rows, empty) {
  return table({
    id,
    label,
    rows,
    empty,
    key: (job) => job.jid,
    columns: [
      {
        title: 'Job',
        wide: true,
        sort: (job) => job.name,
        cell: (job) => [
          h('a', { class: 'job-name clamp', title: job.name, href: href(['jobs', job.jid]) }, job.name || '(no name)'),
          h('div', { class: 'muted mono small' }, job.jid),
        ],
      },
      { title: 'State', sort: (job) => job.state, cell: (job) => badge(job.state) },
      { title: 'Started', sort: (job) => job['start-time'], cell: (job) => dateTime(job['start-time']) },
      { title: 'Duration', number: true, sort: (job) => job.duration, cell: (job) => duration(job.duration) },
      id === 'completed' && {
        title: 'Ended',
        sort: (job) => job['end-time'],
        cell: (job) => dateTime(job['end-time']),
      },
      {
        title: 'Tasks',
        sort: (job) => job.tasks.total,
        cell: (job) => h('div', { class: 'task-cell' }, taskBar(job.tasks, job.tasks.total), taskCounts(job.tasks)),
      },
    ].filter(Boolean),
  });
}
