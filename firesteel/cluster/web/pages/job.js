// One job: its head with what can be done with it, its tabs, and the drawer of a vertex.

import { copyButton } from '../copying.js';
import { dateTime, duration, plural } from '../format.js';
import { icon } from '../icons.js';
import { go, href } from '../router.js';
import { badge, isTerminal } from '../states.js';
import { facts, tabs } from '../table.js';
import { h } from '../vdom.js';
import { checkpointsTab } from './checkpoints.js';
import { exceptionsTab } from './exceptions.js';
import { jobActions } from './job_actions.js';
import { configurationTab } from './job_configuration.js';
import { graphTab } from './job_graph.js';
import { logTab } from './job_log.js';
import { loading } from './overview.js';
import { skewTab } from './skew.js';
import { stateTab } from './state_query.js';
import { timelineTab } from './timeline.js';
import { vertexDrawer } from './vertex.js';

/**
 * @typedef {Object} JobContext What the parts of the page share.
 * @property {string} jobId
 * @property {any} job The answer of /jobs/:jobid, or null.
 * @property {import('../app.js').PageContext} page
 * @property {Map<string, import('./flow.js').Flow>} flow How busy each vertex is.
 * @property {function(string, string=): string} vertexHref The address of a vertex's drawer.
 *
 * @typedef {Object} Tab
 * @property {function(import('../refresher.js').Fetcher): Promise<void>} load
 * @property {function(): any} view
 */

/** @type {Array<{id: string, title: string, make: function(JobContext): Tab}>} */
const TABS = [
  { id: 'overview', title: 'Overview', make: graphTab },
  { id: 'exceptions', title: 'Exceptions', make: exceptionsTab },
  { id: 'log', title: 'Log', make: logTab },
  { id: 'timeline', title: 'Timeline', make: timelineTab },
  { id: 'checkpoints', title: 'Checkpoints', make: checkpointsTab },
  { id: 'skew', title: 'Data skew', make: skewTab },
  { id: 'state', title: 'State', make: stateTab },
  { id: 'configuration', title: 'Configuration', make: configurationTab },
];

/** @param {import('../app.js').PageContext} page @returns {import('../app.js').Page} */
export function jobPage(page) {
  const jobId = page.route.params.jobid;
  /** @type {Object<string, Tab>} */
  const made = {};
  const active = () => TABS.find((tab) => tab.id === page.route.params.tab) || TABS[0];
  const tab = () => (made[active().id] ||= active().make(context));
  const selected = () => page.route.query.get('vertex');
  /** @type {JobContext} */
  const context = {
    jobId,
    job: null,
    page,
    flow: new Map(),
    vertexHref: (vertex, view) =>
      href(['jobs', jobId, active().id], { vertex, view: view || page.route.query.get('view') }),
  };
  const drawer = vertexDrawer(context);
  const closeDrawer = () => {
    const last = selected();
    go(href(['jobs', jobId, active().id]));
    requestAnimationFrame(() =>
      /** @type {HTMLElement|null} */ (document.querySelector(`a.node[href*="${CSS.escape(last)}"]`))?.focus({
        preventScroll: true,
      }),
    );
  };
  return {
    title: () => (context.job ? context.job.name : 'Job'),
    async load(fetcher) {
      context.job = await fetcher.get(['jobs', jobId]);
      await Promise.all([tab().load(fetcher), selected() ? drawer.load(fetcher) : null]);
    },
    view() {
      const { job } = context;
      if (!job) return [h('h1', null, 'Job'), loading()];
      return [
        head(context),
        tabs(
          'Parts of the job',
          TABS.map((one) => ({ id: one.id, title: one.title, href: href(['jobs', jobId, one.id]) })),
          active().id,
        ),
        h('div', { key: active().id, class: 'tab-content' }, tab().view()),
        selected() && drawer.view(closeDrawer),
      ];
    },
    escape() {
      if (!selected()) return false;
      closeDrawer();
      return true;
    },
  };
}

/** @param {JobContext} context */
function head(context) {
  const { job, jobId } = context;
  const slots = job.vertices.reduce((most, vertex) => Math.max(most, vertex.parallelism), 0);
  return h(
    'div',
    { class: 'job-head' },
    h(
      'nav',
      { class: 'crumbs', 'aria-label': 'Where you are' },
      h('a', { href: href(['overview']) }, 'Jobs'),
      icon('right'),
    ),
    h(
      'div',
      { class: 'title-row' },
      h('h1', { class: 'job-title' }, job.name || '(no name)', ' ', badge(job.state)),
      !isTerminal(job.state) && jobActions(context),
    ),
    facts(
      [
        ['Job id', h('span', { class: 'mono' }, jobId, copyButton(jobId, 'the job id'))],
        ['Started', dateTime(job['start-time'])],
        isTerminal(job.state) && ['Ended', dateTime(job['end-time'])],
        ['Duration', duration(job.duration)],
        ['Kind', job['job-type'] === 'BATCH' ? 'Batch' : 'Streaming'],
        job.vertices.length > 0 && [
          'Parallelism',
          `${slots} at most · ${plural(
            job.vertices.reduce((sum, vertex) => sum + vertex.parallelism, 0),
            'task',
          )}`,
        ],
      ],
      'is-line',
    ),
  );
}
