// Logs, standard output and thread dumps, the same for TaskManagers and the JobManager.

import { download } from '../api.js';
import { bytes, count, dateTime, plural } from '../format.js';
import { icon } from '../icons.js';
import { redraw, remembered } from '../redraw.js';
import { filter, panel, table } from '../table.js';
import { failed } from '../toasts.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

/** How many lines are shown: the newest. */
const LINES = 3000;

/** @typedef {{load: function(import('../refresher.js').Fetcher): Promise<void>, view: function(): any}} Part */

/**
 * Keeps the end of a growing text in view, unless the reader has scrolled up.
 * @param {HTMLElement} element
 * @param {{isFollowing: boolean, lines: any}} data
 */
function followed(element, data) {
  element.addEventListener(
    'scroll',
    () => (data.isFollowing = element.scrollHeight - element.scrollTop - element.clientHeight < 40),
  );
  let shown = null;
  const show = (next) => {
    // a text that has not changed stays as it is, and with it what the reader has selected
    if (next.lines !== shown) element.textContent = shown = next.lines;
    if (data.isFollowing) element.scrollTop = element.scrollHeight;
  };
  show(data);
  return { update: show };
}

/** @param {string} text @returns {string[]} */
const splitLines = (text) => text.split('\n');

/**
 * A text that grows.
 * @param {string[]} path
 * @param {string} name Of the file that is downloaded.
 * @param {string} empty
 * @param {{query?: function(): Object<string, any>, controls?: function(): any, split?: function(string): string[]}} [options]
 *   What the text is asked for with, what is shown beside the filter, and what the filter chooses from.
 * @returns {Part}
 */
export function textPart(path, name, empty, { query, controls, split = splitLines } = {}) {
  let content = null;
  const id = path.join('/');
  return {
    async load(fetcher) {
      content = await fetcher.text(path, query && query());
    },
    view() {
      if (content === null) return loading();
      const wanted = filter(`text ${id}`, 'Filter lines');
      const all = split(content.replace(/\n$/, ''));
      const found = wanted.text ? all.filter((part) => part.toLowerCase().includes(wanted.text)) : all;
      const matching = splitLines(found.join('\n'));
      const shown = matching.slice(-LINES);
      const state = remembered(`follow ${id}`, { isFollowing: true, lines: '' });
      state.lines = shown.join('\n');
      return panel(
        null,
        h(
          'div',
          { class: 'controls' },
          wanted.field,
          controls && controls(),
          h(
            'span',
            { class: 'muted' },
            content
              ? `${plural(found.length ? matching.length : 0, 'line')}${matching.length > shown.length ? `, the last ${count(shown.length)} shown` : ''}`
              : '',
          ),
          h(
            'button',
            {
              type: 'button',
              class: 'button is-small',
              onclick: () => download(path, name).catch((error) => failed('The download failed.', error)),
            },
            icon('download'),
            'Download',
          ),
        ),
        content
          ? h('pre', { class: 'log', tabindex: 0, 'aria-label': name, key: `log ${id}`, widget: followed, data: state })
          : h('div', { class: 'empty' }, empty),
      );
    },
  };
}

/**
 * A list of log files, and the one that was chosen.
 * @param {string[]} base The path of whose logs they are.
 * @param {string} owner
 * @returns {Part}
 */
export function logsPart(base, owner) {
  let files = null;
  const state = remembered(`logs ${base.join('/')}`, { chosen: '' });
  /** @type {Part|null} */
  let chosen = null;
  const choose = (name) => {
    state.chosen = name;
    chosen = name ? textPart([...base, 'logs', name], `${owner}-${name}`, 'The file is empty.') : null;
  };
  if (state.chosen) choose(state.chosen);
  return {
    async load(fetcher) {
      files = (await fetcher.get([...base, 'logs'])).logs;
      if (!chosen && files.length === 1) choose(files[0].name);
      if (chosen)
        await chosen.load(fetcher).catch((error) => (error.status === 404 ? choose('') : Promise.reject(error)));
    },
    view() {
      if (!files) return loading();
      const open = (name) => () => {
        choose(state.chosen === name ? '' : name);
        redraw();
        refreshSoon();
      };
      return [
        panel(
          'Log files',
          table({
            id: `logs ${base.join('/')}`,
            label: 'Log files',
            rows: files,
            key: (file) => file.name,
            empty: 'There are no log files.',
            rowClass: (file) => (file.name === state.chosen ? 'is-selected' : ''),
            columns: [
              {
                title: 'File',
                wide: true,
                sort: (file) => file.name,
                cell: (file) =>
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'link mono',
                      'aria-pressed': file.name === state.chosen ? 'true' : 'false',
                      onclick: open(file.name),
                    },
                    file.name,
                  ),
              },
              { title: 'Size', number: true, sort: (file) => file.size, cell: (file) => bytes(file.size) },
              { title: 'Changed', sort: (file) => file.mtime, cell: (file) => dateTime(file.mtime) },
            ],
          }),
        ),
        chosen && chosen.view(),
      ];
    },
  };
}

/** Clicks reach the refresher through the address: the same one again. */
export const refreshSoon = () => window.dispatchEvent(new HashChangeEvent('hashchange'));

/** @param {string[]} path @returns {Part} */
export function threadDumpPart(path) {
  let threads = null;
  return {
    async load(fetcher) {
      threads = (await fetcher.get(path)).threadInfos;
    },
    view() {
      if (!threads) return loading();
      const wanted = filter(`threads ${path.join('/')}`, 'Filter threads');
      const shown = threads.filter(
        (thread) => !wanted.text || thread.stringifiedThreadInfo.toLowerCase().includes(wanted.text),
      );
      return panel(
        'Thread dump',
        h('div', { class: 'controls' }, wanted.field, h('span', { class: 'muted' }, plural(shown.length, 'thread'))),
        shown.map((thread, index) => threadView(thread, `${path.join('/')} ${index} ${thread.threadName}`)),
        !shown.length && h('div', { class: 'empty' }, 'No thread matches.'),
      );
    },
  };
}

/** @param {any} thread @param {string} id */
function threadView(thread, id) {
  const state = remembered(`thread ${id}`, { isOpen: false });
  return h(
    'details',
    {
      key: id,
      class: 'collapsed',
      open: state.isOpen,
      ontoggle: (event) => ((state.isOpen = event.target.open), redraw()),
    },
    h('summary', { class: 'mono' }, thread.threadName),
    state.isOpen && h('pre', { class: 'trace', tabindex: 0 }, thread.stringifiedThreadInfo),
  );
}
