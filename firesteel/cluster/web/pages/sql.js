// SQL: an editor, the tables of the session, and results that change as they come.

import { duration } from '../format.js';
import { icon } from '../icons.js';
import { redraw, remembered } from '../redraw.js';
import { href } from '../router.js';
import { selection, sqlEditor } from '../sql_editor.js';
import { reason, SqlResult, SqlSession } from '../sql_session.js';
import { chosen, placeOf } from '../sql_text.js';
import { panel, table } from '../table.js';
import { toast } from '../toasts.js';
import { h } from '../vdom.js';

const SYMBOLS = { INSERT: '+I', UPDATE_BEFORE: '-U', UPDATE_AFTER: '+U', DELETE: '-D' };
const NUMBERS = ['TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'FLOAT', 'DOUBLE', 'DECIMAL'];
const TEXT = 'sql-text';
const EXAMPLE = 'SHOW TABLES;';

const session = new SqlSession();

/** @returns {import('../app.js').Page} */
export function sqlPage() {
  const state = remembered('sql', {
    text: localStorage.getItem(TEXT) ?? EXAMPLE,
    mark: null,
    results: [],
    shown: 0,
    isChangelog: false,
    tables: null,
    columns: {},
    problem: '',
  });
  session.lost = () => {
    state.tables = null;
    state.columns = {};
    toast('info', 'The SQL session has ended, with its tables. A new one is open.');
  };
  return {
    title: () => 'SQL',
    async load() {
      if (state.tables === null) await loadTables(state);
      else await session.heartbeat();
    },
    view: () => [
      h('h1', null, 'SQL'),
      h('div', { class: 'sql-page' }, tablesPanel(state), h('div', { class: 'sql-main' }, editorPanel(state), resultPanel(state))),
    ],
  };
}

async function loadTables(state) {
  try {
    state.tables = (await session.rows('SHOW TABLES')).map((row) => row[0]);
    state.problem = '';
  } catch (error) {
    if (error.status === 401) throw error;
    state.problem = reason(error);
  }
  redraw();
}

/** Executes statements one after the other, until one fails. */
async function run(state, found) {
  state.mark = null;
  state.results = [];
  for (const { sql, start } of found) {
    const result = new SqlResult(session, sql);
    state.results.push(result);
    state.shown = state.results.length - 1;
    redraw();
    await result.run(redraw);
    if (result.isOk) {
      // there may be other tables now
      state.columns = {};
      await loadTables(state);
    }
    if (result.error) {
      const place = /line (\d+), column (\d+)/.exec(result.error);
      if (place) state.mark = placeOf(state.text, start, Number(place[1]), Number(place[2]));
    }
    if (result.error || result.isCancelled) break;
  }
  redraw();
}

function isRunning(state) {
  return state.results.some((result) => result.isRunning && !result.isCancelled);
}

function editorPanel(state) {
  const busy = isRunning(state);
  const start = () => {
    if (!isRunning(state)) run(state, chosen(state.text, ...selection()));
  };
  const explain = () => {
    const [one] = chosen(state.text, ...selection());
    if (one) run(state, [{ ...one, sql: `EXPLAIN ${one.sql.replace(/^EXPLAIN\s+/i, '')}` }]);
  };
  const cancel = () => state.results.filter((result) => result.isRunning).forEach((result) => (result.cancel(), redraw()));
  return h(
    'section',
    { class: 'panel', 'aria-label': 'Statements' },
    h('div', {
      class: 'sql-editor',
      widget: sqlEditor,
      data: {
        text: state.text,
        mark: state.mark,
        changed: (text) => {
          state.text = text;
          state.mark = null;
          localStorage.setItem(TEXT, text);
        },
        complete: (text, position) => session.complete(text, position),
        run: start,
      },
    }),
    h(
      'div',
      { class: 'controls sql-controls' },
      h('button', { type: 'button', class: 'button is-primary', disabled: busy, onclick: start, onmousedown: keepFocus }, 'Run'),
      h('button', { type: 'button', class: 'button', disabled: busy, onclick: explain, onmousedown: keepFocus }, 'Explain'),
      h('button', { type: 'button', class: 'button is-danger', disabled: !busy, onclick: cancel }, 'Cancel'),
      h(
        'span',
        { class: 'muted small', id: 'sql-help' },
        'Ctrl+Enter runs the statement at the cursor, or those selected. Ctrl+Space completes.',
      ),
    ),
  );
}

/** A click must not take the selection of the editor. */
function keepFocus(event) {
  event.preventDefault();
}

function tablesPanel(state) {
  const open = async (name) => {
    if (state.columns[name]) delete state.columns[name];
    else {
      try {
        state.columns[name] = await session.rows(`DESCRIBE ${name.split('.').map((part) => `\`${part}\``).join('.')}`);
      } catch (error) {
        state.columns[name] = [[reason(error), '']];
      }
    }
    redraw();
  };
  const names = state.tables || [];
  return h(
    'section',
    { class: 'panel sql-tables', 'aria-label': 'Tables' },
    h('h2', null, 'Tables'),
    state.problem && h('p', { class: 'text-bad wrap' }, state.problem),
    !state.problem && names.length === 0 && h('p', { class: 'muted' }, state.tables ? 'There are none yet. CREATE TABLE makes one.' : 'Loading …'),
    h(
      'ul',
      null,
      names.map((name) =>
        h(
          'li',
          { key: name },
          h(
            'button',
            { type: 'button', class: 'disclose', 'aria-expanded': state.columns[name] ? 'true' : 'false', onclick: () => open(name) },
            icon(state.columns[name] ? 'down' : 'right'),
            h('span', { class: 'mono break' }, name),
          ),
          state.columns[name] &&
            h(
              'dl',
              { class: 'sql-columns' },
              state.columns[name].map(([column, type]) => [
                h('dt', { key: `n ${column}`, class: 'mono' }, column),
                h('dd', { key: `t ${column}`, class: 'muted' }, type),
              ]),
            ),
        ),
      ),
    ),
  );
}

function resultPanel(state) {
  const result = state.results[state.shown];
  if (!result) return panel('Result', h('div', { class: 'empty' }, 'Run a statement to see its result.'));
  const several = state.results.length > 1;
  return h(
    'section',
    { class: 'panel', 'aria-label': 'Result' },
    several &&
      h(
        'div',
        { class: 'segments sql-results' },
        state.results.map((one, index) =>
          h(
            'button',
            {
              type: 'button',
              key: index,
              class: 'segment',
              'aria-pressed': index === state.shown ? 'true' : 'false',
              title: one.sql,
              onclick: () => ((state.shown = index), redraw()),
            },
            `${index + 1}${one.error ? ' ✕' : ''}`,
          ),
        ),
      ),
    statusView(state, result),
    h('div', { 'aria-live': 'polite' }, result.error && errorView(result)),
    !result.error && contentView(state, result),
  );
}

function statusView(state, result) {
  const [name, kind] = result.error
    ? ['FAILED', 'is-failed']
    : result.isCancelled
      ? ['CANCELLED', 'is-canceled']
      : result.isRunning
        ? ['RUNNING', 'is-running']
        : ['FINISHED', 'is-finished'];
  const choose = (isChangelog) => () => ((state.isChangelog = isChangelog), redraw());
  return h(
    'div',
    { class: 'controls' },
    h('span', { class: `badge ${kind}` }, name),
    h('span', { class: 'muted small' }, duration(result.tookMs)),
    result.isQuery &&
      h('span', { class: 'muted small' }, `${result.rows.size.toLocaleString('en')} rows, ${result.changeCount.toLocaleString('en')} changes`),
    result.jobId && h('a', { href: href(['jobs', result.jobId]), class: 'small' }, 'Job'),
    result.isQuery &&
      h(
        'div',
        { class: 'segments' },
        [
          ['Table', false],
          ['Changelog', true],
        ].map(([title, value]) =>
          h(
            'button',
            {
              type: 'button',
              key: title,
              class: 'segment',
              'aria-pressed': state.isChangelog === value ? 'true' : 'false',
              onclick: choose(value),
            },
            title,
          ),
        ),
      ),
  );
}

function errorView(result) {
  const place = /line (\d+), column (\d+)/.exec(result.error);
  const lines = result.sql.split('\n');
  // the parser's message has the excerpt already
  const excerpt = place && !/\n\s*\^/.test(result.error) ? `${lines[place[1] - 1] ?? ''}\n${' '.repeat(place[2] - 1)}^` : '';
  return h('div', { class: 'note is-bad' }, icon('warning'), h('pre', { class: 'wrap' }, result.error, excerpt && `\n\n${excerpt}`));
}

function contentView(state, result) {
  if (result.isOk) return h('p', { class: 'muted' }, 'OK');
  if (!result.columns.length) return h('div', { class: 'empty' }, 'Waiting for the first rows …');
  const [first] = result.rows.values();
  const isText = result.rows.size === 1 && result.columns.length === 1 && String(first.fields[0]).includes('\n');
  if (isText && !result.isQuery) return h('pre', { class: 'sql-plan' }, first.fields[0]);
  const columns = result.columns.map((column, index) => ({
    title: column.name,
    hint: column.logicalType.type,
    number: NUMBERS.includes(column.logicalType.type),
    cell: (row) => (row.fields[index] === null ? h('span', { class: 'muted' }, 'NULL') : row.fields[index]),
    sort: state.isChangelog ? undefined : (row) => sortable(row.fields[index], column.logicalType.type),
  }));
  if (result.isQuery && state.isChangelog) {
    const kind = { title: 'op', cell: (row) => h('code', null, SYMBOLS[row.kind]) };
    return table({
      id: 'sql-changelog',
      label: 'Changes, the latest first',
      columns: [kind, ...columns],
      rows: [...result.changes].reverse(),
      key: (row) => row.number,
      empty: 'No changes.',
    });
  }
  return table({
    id: 'sql-result',
    label: 'Rows of the result',
    columns,
    rows: [...result.rows].map(([number, row]) => ({ number, fields: row.fields })),
    key: (row) => row.number,
    empty: result.isRunning ? 'No rows yet.' : 'No rows.',
  });
}

function sortable(value, type) {
  if (value === null) return '';
  return NUMBERS.includes(type) ? Number(value) : value;
}
