// The frame around all pages: navigation, refreshing, the state of the connection.

import { ApiError, call, setToken } from './api.js';
import { clock } from './format.js';
import { icon } from './icons.js';
import { jobPage } from './pages/job.js';
import { jobManagerPage } from './pages/job_manager.js';
import { overviewPage } from './pages/overview.js';
import { sqlPage } from './pages/sql.js';
import { submitPage } from './pages/submit.js';
import { taskManagerPage, taskManagersPage } from './pages/task_managers.js';
import { drawWith, redraw } from './redraw.js';
import { Refresher } from './refresher.js';
import { href, match } from './router.js';
import { isDark, toggleTheme } from './theming.js';
import { dismissNewest, toast, toastsView } from './toasts.js';
import { askAgain, tokenDeclined } from './token.js';
import { draw, h } from './vdom.js';

/**
 * @typedef {Object} Page
 * @property {function(): string} title
 * @property {function(import('./refresher.js').Fetcher): Promise<void>} load Gets what it shows; called again and again.
 * @property {function(): any} view
 * @property {function(): boolean} [escape] Closes what is open; whether there was something.
 * @typedef {Object} PageContext
 * @property {import('./router.js').Route} route The present one.
 * @property {Object<string, any>} config The answer of /config.
 * @property {function(): void} refresh Asks for news at once.
 */

/** @type {Object<string, string>} */
const PATTERNS = {
  '/': 'overview',
  '/overview': 'overview',
  '/jobs/:jobid/:tab?': 'job',
  '/taskmanagers': 'taskmanagers',
  '/taskmanagers/:id/:tab?': 'taskmanager',
  '/jobmanager/:tab?': 'jobmanager',
  '/sql': 'sql',
  '/submit': 'submit',
};

/** @type {Object<string, function(PageContext): Page>} */
const PAGES = {
  overview: overviewPage,
  job: jobPage,
  taskmanagers: taskManagersPage,
  taskmanager: taskManagerPage,
  jobmanager: jobManagerPage,
  sql: sqlPage,
  submit: submitPage,
};

const DEFAULT_CONFIG = {
  'refresh-interval': 3000,
  'flink-version': '',
  features: { 'web-submit': true, 'web-cancel': true },
};

/** @type {PageContext} */
const context = { route: null, config: DEFAULT_CONFIG, refresh: () => refresher.refresh() };
/** @type {Page|null} */
let page = null;
let pageKey = '';
let hasConfig = false;
/** @type {any} */
let pageError = null;

const refresher = new Refresher({
  async load(fetcher) {
    if (!hasConfig) {
      context.config = { ...DEFAULT_CONFIG, ...(await fetcher.get('config')) };
      refresher.interval = Math.max(500, context.config['refresh-interval']);
      hasConfig = true;
    }
    if (page) await page.load(fetcher);
    pageError = null;
  },
  failed(error) {
    pageError = error;
  },
  recovered() {
    hasConfig = false; // it may be another JobManager now
    toast('good', 'The connection to the JobManager is restored.');
  },
  changed: redraw,
});

/** Shows the page of the address. */
function navigate() {
  const route = match(location.hash, PATTERNS);
  if (!route) {
    toast('bad', 'Page not found.', location.hash);
    location.replace(href(['overview']));
    return;
  }
  const isFirst = page === null;
  const key = `${route.name} ${route.params.jobid || route.params.id || ''}`;
  context.route = route;
  if (key !== pageKey) {
    pageKey = key;
    pageError = null;
    page = PAGES[route.name](context);
    if (!isFirst) {
      window.scrollTo(0, 0);
      requestAnimationFrame(() => document.getElementById('main')?.focus({ preventScroll: true }));
    }
  }
  redraw();
  refresher.refresh();
}

function headerView() {
  const entry = (title, path, names) =>
    h(
      'a',
      { key: title, href: path, class: 'nav-link', 'aria-current': names.includes(context.route.name) ? 'page' : null },
      title,
    );
  return h(
    'header',
    { class: 'top' },
    h(
      'a',
      { class: 'brand', href: href(['overview']) },
      h('img', { src: 'icon.svg', alt: '', width: 24, height: 24 }),
      h('span', null, 'Firesteel'),
    ),
    h(
      'nav',
      { class: 'nav', 'aria-label': 'Pages' },
      entry('Overview', href(['overview']), ['overview', 'job']),
      entry('TaskManagers', href(['taskmanagers']), ['taskmanagers', 'taskmanager']),
      entry('JobManager', href(['jobmanager']), ['jobmanager']),
      context.config.features['web-submit'] && entry('SQL', href(['sql']), ['sql']),
      context.config.features['web-submit'] && entry('Submit', href(['submit']), ['submit']),
    ),
    h(
      'div',
      { class: 'top-tools' },
      h(
        'button',
        {
          type: 'button',
          class: 'button is-small is-ghost',
          'aria-pressed': refresher.isPaused ? 'true' : 'false',
          title: 'Pause or resume refreshing',
          onclick: () => refresher.togglePaused(),
        },
        refresher.isPaused ? 'Paused' : 'Live',
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'button-icon',
          'aria-label': isDark() ? 'Light colours' : 'Dark colours',
          title: isDark() ? 'Light colours' : 'Dark colours',
          onclick: () => (toggleTheme(), redraw()),
        },
        icon(isDark() ? 'sun' : 'moon'),
      ),
    ),
  );
}

function bannerView() {
  if (refresher.lostSince) {
    const what =
      refresher.lostReason ||
      `The JobManager at ${location.host} has been unreachable since ${clock(refresher.lostSince)}.`;
    const shown = refresher.updatedAt ? ` The page shows data from ${clock(refresher.updatedAt)}.` : '';
    return h(
      'div',
      { class: 'banner is-bad', role: 'alert' },
      icon('warning'),
      h('span', null, `${what}${shown} Retrying every few seconds.`),
      h('button', { type: 'button', class: 'button is-small', onclick: () => refresher.refresh() }, 'Try now'),
    );
  }
  if (pageError instanceof ApiError && pageError.status === 401 && tokenDeclined()) {
    const ask = () => {
      askAgain();
      refresher.refresh();
    };
    return h(
      'div',
      { class: 'banner is-bad', role: 'alert' },
      icon('warning'),
      h('span', null, 'This cluster requires a token.'),
      h('button', { type: 'button', class: 'button is-small', onclick: ask }, 'Enter the token'),
    );
  }
  return null;
}

function mainView() {
  if (pageError && pageError.status !== 401) {
    const isMissing = pageError.status === 404;
    return h(
      'div',
      { class: 'panel empty-page' },
      h('h1', null, isMissing ? 'Not found' : 'This page cannot be shown'),
      h('pre', { class: 'text-bad wrap' }, pageError.message),
      h(
        'p',
        null,
        isMissing
          ? 'It may have ended and been removed. '
          : 'The page retries at the next refresh. ',
        h('a', { href: href(['overview']) }, 'Go to the overview'),
      ),
    );
  }
  return page.view();
}

/** @param {Object<string, any>} config @returns {string} */
function versionText(config) {
  const revision = String(config['flink-revision'] || '');
  return revision.startsWith('firesteel-') ? `Firesteel ${revision.slice('firesteel-'.length)} · ` : '';
}

function drawPage() {
  if (!page) return;
  document.title = `${page.title()} – Firesteel`;
  draw(
    document.getElementById('app'),
    h(
      'a',
      {
        class: 'skip',
        href: '#main',
        onclick: (event) => (event.preventDefault(), document.getElementById('main').focus()),
      },
      'Skip to the content',
    ),
    headerView(),
    h('div', { class: 'banners', 'aria-live': 'assertive' }, bannerView()),
    h(
      'main',
      { id: 'main', class: 'main', tabindex: -1, key: pageKey, 'aria-busy': refresher.updatedAt ? null : 'true' },
      mainView(),
    ),
    h(
      'footer',
      { class: 'foot muted' },
      versionText(context.config),
      refresher.updatedAt ? `updated ${clock(refresher.updatedAt)}` : 'loading …',
    ),
    toastsView(),
  );
}

/** Exchanges the code of a link that `firesteel cluster start` has printed for the token. */
async function login() {
  const found = /^#\/login\/([\w-]+)$/.exec(window.location.hash);
  if (!found) return;
  // the code works once, and does not belong in the history
  window.history.replaceState(null, '', '#/');
  try {
    const answer = await call('login', { method: 'POST', body: { code: found[1] } });
    setToken(answer.token);
  } catch (error) {
    toast('bad', error instanceof Error ? error.message : String(error));
  }
}

window.addEventListener('hashchange', () => login().then(navigate));
window.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || document.querySelector('dialog[open]')) return;
  const { target } = event;
  // a search field is emptied by it
  if (target instanceof HTMLInputElement && target.type === 'search' && target.value) return;
  if (!(page && page.escape && page.escape())) dismissNewest();
});
drawWith(drawPage);
login().then(navigate);
