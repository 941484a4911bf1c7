// Dialogs: the browser's own <dialog>, which keeps the focus inside and closes with Escape.

import { draw, h, undraw } from './vdom.js';

/**
 * @typedef {Object} DialogContext
 * @property {function(any): void} close Closes the dialog with a result.
 * @property {function(): void} redraw
 */

let lastId = 0;

/**
 * Opens a dialog and waits until it is closed.
 * @param {string} title
 * @param {function(DialogContext): any} view Describes the content.
 * @param {{wide?: boolean}} [options]
 * @returns {Promise<any>} The result; null where it was closed with Escape.
 */
export function openDialog(title, view, options = {}) {
  return new Promise((resolve) => {
    const element = document.createElement('dialog');
    const titleId = `dialog-title-${++lastId}`;
    element.className = options.wide ? 'dialog is-wide' : 'dialog';
    element.setAttribute('aria-labelledby', titleId);
    document.body.append(element);
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    let result = null;
    const context = {
      close: (value) => {
        result = value;
        element.close();
      },
      redraw: () => draw(element, h('h2', { id: titleId, class: 'dialog-title' }, title), view(context)),
    };
    element.addEventListener('close', () => {
      undraw(element);
      element.remove();
      if (before && before.isConnected) before.focus();
      resolve(result);
    });
    context.redraw();
    element.showModal();
  });
}

/**
 * Asks before something is done that cannot be undone.
 * @param {string} title
 * @param {any} text
 * @param {string} action Label of the button.
 * @returns {Promise<boolean>}
 */
export async function confirmed(title, text, action) {
  const answer = await openDialog(title, (dialog) => [
    h('p', null, text),
    h(
      'div',
      { class: 'dialog-buttons' },
      h('button', { type: 'button', class: 'button', onclick: () => dialog.close(false) }, 'Back'),
      h('button', { type: 'button', class: 'button is-danger', onclick: () => dialog.close(true) }, action),
    ),
  ]);
  return answer === true;
}
