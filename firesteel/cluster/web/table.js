// Tables: sorted by a click on a heading, in pages when long, as cards on a phone.

import { plural } from './format.js';
import { icon } from './icons.js';
import { redraw, remembered } from './redraw.js';
import { h } from './vdom.js';

/**
 * @typedef {Object} Column
 * @property {string} title
 * @property {function(any): any} cell What is shown of a row.
 * @property {function(any): any} [sort] What rows are sorted by; without it the column cannot be sorted.
 * @property {boolean} [number] Aligned to the right.
 * @property {string} [hint]
 * @property {boolean} [wide] May break into lines.
 */

/** How many rows a page has. */
export const PAGE_SIZE = 50;

/** @param {any} a @param {any} b @returns {number} */
function compare(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

/**
 * A table.
 * @param {Object} options
 * @param {string} options.id Unique; sort order and page are remembered by it.
 * @param {string} options.label What it lists, for screen readers.
 * @param {Column[]} options.columns
 * @param {any[]} options.rows
 * @param {function(any): string|number} options.key
 * @param {any} [options.empty] What is shown where there are no rows.
 * @param {function(any): any} [options.detail] What is shown below a row; where it gives nothing, nothing.
 * @param {number} [options.pageSize]
 * @param {function(any): string} [options.rowClass]
 */
export function table({ id, label, columns, rows, key, empty, detail, pageSize = PAGE_SIZE, rowClass }) {
  if (!rows.length) return h('div', { class: 'empty' }, empty || 'Nothing to show.');
  const state = remembered(`table ${id}`, { column: -1, descending: false, page: 0 });
  const column = columns[state.column];
  let sorted = rows;
  if (column && column.sort) {
    sorted = [...rows].sort((a, b) => compare(column.sort(a), column.sort(b)));
    if (state.descending) sorted.reverse();
  }
  const pages = Math.max(1, Math.ceil(rows.length / pageSize));
  state.page = Math.min(state.page, pages - 1);
  const shown = sorted.slice(state.page * pageSize, (state.page + 1) * pageSize);
  return h(
    'div',
    { class: 'table-box', key: `table ${id}` },
    h(
      'div',
      { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': label },
      h(
        'table',
        { class: 'table' },
        h('caption', { class: 'sr-only' }, label),
        h(
          'thead',
          null,
          h(
            'tr',
            null,
            columns.map((one, index) => heading(one, index, state)),
          ),
        ),
        h(
          'tbody',
          null,
          shown.map((row) => {
            const below = detail && detail(row);
            return [
              h(
                'tr',
                { key: key(row), class: rowClass ? rowClass(row) : null },
                columns.map((one) => h('td', { class: cellClass(one), 'data-label': one.title }, one.cell(row))),
              ),
              below &&
                h(
                  'tr',
                  { key: `${key(row)} detail`, class: 'detail-row' },
                  h('td', { colspan: columns.length }, below),
                ),
            ];
          }),
        ),
      ),
    ),
    pages > 1 && pager(state, pages, rows.length, pageSize, label),
  );
}

/** @param {Column} column @returns {string|null} */
const cellClass = (column) => [column.number && 'number', column.wide && 'wide'].filter(Boolean).join(' ') || null;

/** @param {Column} column @param {number} index @param {{column: number, descending: boolean}} state */
function heading(column, index, state) {
  const isSorted = state.column === index;
  const order = isSorted ? (state.descending ? 'descending' : 'ascending') : null;
  const sort = () => {
    state.descending = isSorted ? !state.descending : false;
    state.column = index;
    redraw();
  };
  return h(
    'th',
    { scope: 'col', class: cellClass(column), 'aria-sort': order, title: column.hint },
    column.sort
      ? h(
          'button',
          { type: 'button', class: 'sort', onclick: sort },
          column.title,
          h('span', { class: 'sort-mark', 'aria-hidden': 'true' }, isSorted ? (state.descending ? '▾' : '▴') : ''),
        )
      : column.title,
  );
}

/**
 * @param {{page: number}} state
 * @param {number} pages
 * @param {number} total
 * @param {number} size
 * @param {string} label
 */
function pager(state, pages, total, size, label) {
  const to = (page) => () => {
    state.page = Math.max(0, Math.min(pages - 1, page));
    redraw();
  };
  const first = state.page * size + 1;
  return h(
    'nav',
    { class: 'pager', 'aria-label': `Pages of ${label}` },
    h(
      'button',
      { type: 'button', class: 'button is-small', disabled: state.page === 0, onclick: to(state.page - 1) },
      'Previous',
    ),
    h(
      'span',
      { class: 'muted', 'aria-live': 'polite' },
      `${first}–${Math.min(total, first + size - 1)} of ${plural(total, 'row')}`,
    ),
    h(
      'button',
      { type: 'button', class: 'button is-small', disabled: state.page >= pages - 1, onclick: to(state.page + 1) },
      'Next',
    ),
  );
}

/** Names and values. @param {Array<[string, any]|null|false>} pairs @param {string} [extra] */
export function facts(pairs, extra = '') {
  return h(
    'dl',
    { class: `facts ${extra}` },
    pairs.filter(Boolean).map((pair) => h('div', { key: pair[0] }, h('dt', null, pair[0]), h('dd', null, pair[1]))),
  );
}

/** A field that filters a list. @param {string} id @param {string} label @returns {{text: string, field: any}} */
export function filter(id, label) {
  const state = remembered(`filter ${id}`, { text: '' });
  const field = h(
    'label',
    { class: 'search' },
    icon('search'),
    h('span', { class: 'sr-only' }, label),
    h('input', {
      type: 'search',
      placeholder: label,
      value: state.text,
      oninput: (event) => {
        state.text = event.target.value;
        redraw();
      },
    }),
  );
  return { text: state.text.trim().toLowerCase(), field };
}

/** @type {ScrollIntoViewOptions} */
const NEAREST = { block: 'nearest', inline: 'nearest' };

/**
 * Tabs as links.
 * @param {string} label
 * @param {Array<{id: string, title: any, href: string}>} items
 * @param {string} active
 */
export function tabs(label, items, active) {
  return h(
    'nav',
    { class: 'tabs', 'aria-label': label },
    items.map((item) =>
      h(
        'a',
        {
          key: item.id,
          href: item.href,
          class: 'tab',
          'aria-current': item.id === active ? 'page' : null,
          mounted: item.id === active ? (element) => element.scrollIntoView(NEAREST) : null,
          onclick: (event) => event.currentTarget.scrollIntoView(NEAREST),
        },
        item.title,
      ),
    ),
  );
}

/** A box with a heading. @param {any} title @param {...any} content */
export function panel(title, ...content) {
  return h('section', { class: 'panel' }, title && h('h2', { class: 'panel-title' }, title), content);
}
