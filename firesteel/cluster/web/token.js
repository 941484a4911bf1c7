// The token of a cluster that is reachable from other machines: asked for once, by one dialog.

import { openDialog } from './dialogs.js';
import { h } from './vdom.js';

/** @type {Promise<string|null>|null} */
let asking = null;
let isDeclined = false;

/** Whether the user declined to enter a token: then only an action of theirs opens the dialog again. */
export const tokenDeclined = () => isDeclined;

/** Lets the next request ask again. */
export function askAgain() {
  isDeclined = false;
}

/**
 * Asks for the token.
 * @param {boolean} wasWrong Whether one was sent, and refused.
 * @param {string} message Message of the server.
 * @param {boolean} quiet Whether the request came from a refresh: these do not ask a second time.
 * @returns {Promise<string|null>}
 */
export function askForToken(wasWrong, message, quiet) {
  if (quiet && isDeclined) return Promise.resolve(null);
  asking ||= dialog(wasWrong, message).then((given) => {
    asking = null;
    isDeclined = given === null;
    return given;
  });
  return asking;
}

/** @param {boolean} wasWrong @param {string} message @returns {Promise<string|null>} */
function dialog(wasWrong, message) {
  let value = '';
  return openDialog('This cluster requires a token', (context) =>
    h(
      'form',
      {
        class: 'form',
        onsubmit: (event) => {
          event.preventDefault();
          context.close(value.trim() || null);
        },
      },
      wasWrong
        ? h('p', { class: 'text-bad' }, 'The JobManager did not accept the token.')
        : h('p', null, message.split('\n')[0]),
      h(
        'p',
        { class: 'muted' },
        'It is in the file ',
        h('code', null, 'token'),
        ' of the cluster’s directory. It is kept until this tab is closed.',
      ),
      h(
        'label',
        { class: 'field' },
        h('span', null, 'Token'),
        h('input', {
          type: 'password',
          name: 'token',
          autocomplete: 'off',
          required: true,
          autofocus: true,
          oninput: (event) => (value = event.target.value),
        }),
      ),
      h(
        'div',
        { class: 'dialog-buttons' },
        h('button', { type: 'button', class: 'button', onclick: () => context.close(null) }, 'Skip'),
        h('button', { type: 'submit', class: 'button is-primary' }, 'Continue'),
      ),
    ),
  );
}
