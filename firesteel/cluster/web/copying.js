// A button that copies a text.

import { icon } from './icons.js';
import { failed, toast } from './toasts.js';
import { h } from './vdom.js';

/** @param {string} text @param {string} what What it copies, for its label. */
export function copyButton(text, what) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast('good', 'Copied.', text);
    } catch (error) {
      failed('The browser does not allow this page to copy.', error);
    }
  };
  return h(
    'button',
    {
      type: 'button',
      class: 'button-icon is-small',
      'aria-label': `Copy ${what}`,
      title: `Copy ${what}`,
      onclick: copy,
    },
    icon('copy'),
  );
}
