// Stack traces with the user's own line marked.

import { h } from './vdom.js';

const FRAME = /^\s*File "([^"]+)", line (\d+)/;
const AT = /^\s*at:\s+(.+:\d+)\s*$/;
/** Files that are not the user's. */
const FOREIGN =
  /[\\/]firesteel[\\/](?!examples)|site-packages|dist-packages|[\\/]lib[\\/]python\d|[\\/]pyspark[\\/]|^<frozen|^<string>|^<firesteel/;

/**
 * Which lines are the user's: where the failure names them (`at: file:line`), else the last frame of their own files.
 * @param {string[]} lines
 * @returns {Set<number>}
 */
export function userLines(lines) {
  const marked = new Set();
  let last = -1;
  lines.forEach((line, index) => {
    if (AT.test(line)) {
      marked.add(index);
      if (index + 1 < lines.length && /^\s{6,}\S/.test(lines[index + 1])) marked.add(index + 1);
    }
    const frame = FRAME.exec(line);
    if (frame && !FOREIGN.test(frame[1])) last = index;
  });
  for (
    let index = last;
    last >= 0 &&
    index < lines.length &&
    (index === last || /^\s{4,}\S/.test(lines[index])) &&
    !(index > last && FRAME.test(lines[index]));
    index += 1
  )
    marked.add(index);
  return marked;
}

/** A stack trace. @param {string} trace */
export function stackTrace(trace) {
  const lines = String(trace || '')
    .replace(/\s+$/, '')
    .split('\n');
  const marked = userLines(lines);
  return h(
    'pre',
    { class: 'trace', tabindex: 0, 'aria-label': 'Stack trace' },
    lines.map((line, index) =>
      marked.has(index)
        ? h('mark', { key: index, class: 'trace-line user-line' }, `${line}\n`)
        : h('span', { key: index, class: 'trace-line' }, `${line}\n`),
    ),
  );
}
