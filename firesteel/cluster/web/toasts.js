// Short messages in a corner, which screen readers speak.

import { icon } from './icons.js';
import { redraw } from './redraw.js';
import { h } from './vdom.js';

/** @typedef {{id: number, kind: string, title: string, text: string}} Toast */

/** @type {Toast[]} */
let toasts = [];
let last = 0;

/**
 * Shows a message. One that is shown already is not shown twice.
 * @param {string} kind info, good or bad.
 * @param {string} title
 * @param {string} [text]
 */
export function toast(kind, title, text = '') {
  if (toasts.some((other) => other.title === title && other.text === text)) return;
  const id = ++last;
  toasts = [...toasts.slice(-3), { id, kind, title, text }];
  redraw();
  // errors stay until they are closed: they may have to be read, copied, searched for
  if (kind !== 'bad') setTimeout(() => dismiss(id), 8000);
}

/** Shows what went wrong, in the server's words. @param {string} what @param {any} error */
export function failed(what, error) {
  if (error && error.name === 'AbortError') return;
  toast('bad', what, String((error && error.message) || error));
}

/** @param {number} id */
function dismiss(id) {
  toasts = toasts.filter((other) => other.id !== id);
  redraw();
}

/** Closes the newest message. @returns {boolean} Whether there was one. */
export function dismissNewest() {
  if (!toasts.length) return false;
  dismiss(toasts[toasts.length - 1].id);
  return true;
}

/** All messages. */
export function toastsView() {
  return h(
    'div',
    { class: 'toasts', role: 'region', 'aria-label': 'Messages', 'aria-live': 'polite' },
    toasts.map((one) =>
      h(
        'div',
        { key: one.id, class: `toast is-${one.kind}`, role: one.kind === 'bad' ? 'alert' : 'status' },
        icon(one.kind === 'bad' ? 'failed' : one.kind === 'good' ? 'finished' : 'info'),
        h('div', { class: 'toast-text' }, h('strong', null, one.title), one.text && h('pre', null, one.text)),
        h(
          'button',
          { type: 'button', class: 'button-icon', 'aria-label': 'Close this message', onclick: () => dismiss(one.id) },
          icon('close'),
        ),
      ),
    ),
  );
}
