// What can be done with a running job: checkpoint, savepoint, rescale, stop, cancel.

import { call, operate } from '../api.js';
import { copyButton } from '../copying.js';
import { openDialog } from '../dialogs.js';
import { icon } from '../icons.js';
import { failed, toast } from '../toasts.js';
import { h } from '../vdom.js';

/** @typedef {import('./job.js').JobContext} JobContext */

/** @param {JobContext} context */
export function jobActions(context) {
  const { features } = context.page.config;
  const isRunning = context.job.state === 'RUNNING';
  const button = (title, act, extra = '', isEnabled = isRunning) =>
    h(
      'button',
      {
        key: title,
        type: 'button',
        class: `button ${extra}`,
        disabled: !isEnabled,
        title: isEnabled ? null : 'The job is not running.',
        onclick: () => act(context),
      },
      title,
    );
  return h(
    'div',
    { class: 'actions', role: 'group', 'aria-label': 'Job actions' },
    button('Checkpoint', takeCheckpoint),
    button('Savepoint', takeSavepoint),
    button('Rescale', rescale),
    features['web-cancel'] !== false && button('Stop', stop),
    features['web-cancel'] !== false && button('Cancel', cancel, 'is-danger', context.job.state !== 'CANCELLING'),
  );
}

/**
 * A dialog with a form that starts an operation, shows its progress, and then its result or its error.
 * @param {string} title
 * @param {string} action Label of the button.
 * @param {function(Object<string, any>): any} fields Describes the form; it keeps its values in the object.
 * @param {function(Object<string, any>): Promise<any>} run
 * @param {function(any): any} done Describes the result.
 * @param {boolean} [isDanger]
 */
function operation(title, action, fields, run, done, isDanger = false) {
  const values = {};
  const state = { phase: 'asking', result: null, error: '' };
  return openDialog(title, (dialog) => {
    const start = async (event) => {
      event.preventDefault();
      state.phase = 'running';
      state.error = '';
      dialog.redraw();
      try {
        state.result = await run(values);
        state.phase = 'done';
      } catch (error) {
        state.error = error.message;
        state.phase = 'asking';
      }
      dialog.redraw();
    };
    const isRunning = state.phase === 'running';
    if (state.phase === 'done') {
      return h(
        'div',
        { class: 'form', key: 'done' },
        h('div', { role: 'status' }, done(state.result)),
        h(
          'div',
          { class: 'dialog-buttons' },
          h(
            'button',
            {
              type: 'button',
              class: 'button is-primary',
              mounted: (element) => element.focus(),
              onclick: () => dialog.close(state.result),
            },
            'Close',
          ),
        ),
      );
    }
    return h(
      'form',
      { class: 'form', key: 'form', onsubmit: start },
      h('fieldset', { disabled: isRunning, class: 'plain' }, fields(values)),
      state.error && h('pre', { class: 'text-bad wrap', role: 'alert' }, state.error),
      isRunning &&
        h(
          'div',
          { role: 'status' },
          h('div', { class: 'progress', 'aria-hidden': 'true' }),
          h('p', { class: 'muted' }, 'In progress … You may close this; the operation continues.'),
        ),
      h(
        'div',
        { class: 'dialog-buttons' },
        h(
          'button',
          { type: 'button', class: 'button', onclick: () => dialog.close(null) },
          isRunning ? 'Close' : 'Back',
        ),
        h(
          'button',
          { type: 'submit', class: `button ${isDanger ? 'is-danger' : 'is-primary'}`, disabled: isRunning },
          action,
        ),
      ),
    );
  });
}

/** @param {Object<string, any>} values */
function directoryField(values) {
  return h(
    'label',
    { class: 'field' },
    h('span', null, 'Directory'),
    h('input', {
      name: 'directory',
      placeholder: 'default of the cluster',
      autocomplete: 'off',
      spellcheck: 'false',
      oninput: (event) => (values.directory = event.target.value.trim()),
    }),
    h('small', { class: 'muted' }, 'Such as file:///data/savepoints. Empty: execution.checkpointing.savepoint-dir.'),
  );
}

/** @param {Object<string, any>} values */
function formatField(values) {
  values.format ||= 'CANONICAL';
  const choice = (format, text) =>
    h(
      'label',
      { class: 'choice' },
      h('input', {
        type: 'radio',
        name: 'format',
        checked: values.format === format,
        onchange: () => (values.format = format),
      }),
      h('span', null, text),
    );
  return h(
    'fieldset',
    { class: 'field' },
    h('legend', null, 'Format'),
    choice('CANONICAL', 'Canonical: any state backend can read it'),
    choice('NATIVE', 'Native: faster, for the same backend'),
  );
}

/** @param {any} result */
const savedAt = (result) => [
  h('p', null, icon('finished'), ' The savepoint is complete.'),
  h('p', { class: 'mono break result-path' }, result.location, copyButton(result.location, 'the path')),
];

/** @param {JobContext} context */
function takeSavepoint(context) {
  const path = ['jobs', context.jobId, 'savepoints'];
  return operation(
    'Take a savepoint',
    'Trigger',
    (values) => [
      h('p', null, 'The job continues. The savepoint is kept until you delete it.'),
      directoryField(values),
      formatField(values),
    ],
    (values) =>
      operate(path, path, {
        'target-directory': values.directory || null,
        'cancel-job': false,
        formatType: values.format,
      }),
    savedAt,
  );
}

/** @param {JobContext} context */
async function stop(context) {
  await operation(
    'Stop with a savepoint',
    'Stop the job',
    (values) => [
      h(
        'p',
        null,
        `“${context.job.name}” takes a savepoint and then ends as FINISHED. It can be restarted from the savepoint.`,
      ),
      directoryField(values),
      formatField(values),
      h(
        'label',
        { class: 'choice' },
        h('input', { type: 'checkbox', name: 'drain', onchange: (event) => (values.drain = event.target.checked) }),
        h(
          'span',
          null,
          'Drain: send the last watermark first, so that all windows and timers fire. For a job that will not be resumed.',
        ),
      ),
    ],
    (values) =>
      operate(['jobs', context.jobId, 'stop'], ['jobs', context.jobId, 'savepoints'], {
        targetDirectory: values.directory || null,
        drain: Boolean(values.drain),
        formatType: values.format,
      }),
    (result) => [savedAt(result), h('p', null, 'The job is stopping.')],
    true,
  );
  context.page.refresh();
}

/** @param {JobContext} context */
async function takeCheckpoint(context) {
  const path = ['jobs', context.jobId, 'checkpoints'];
  try {
    toast('info', 'Taking a checkpoint …');
    const result = await operate(path, path, { checkpointType: 'CONFIGURED' });
    toast('good', `Checkpoint ${result.checkpointId} is complete.`);
    context.page.refresh();
  } catch (error) {
    failed('The checkpoint failed.', error);
  }
}

/** @param {JobContext} context */
async function cancel(context) {
  const answer = await operation(
    'Cancel the job?',
    'Cancel the job',
    () =>
      h(
        'p',
        null,
        `“${context.job.name}” ends now, without a savepoint. Progress since its last checkpoint is lost. To be able to resume it, stop it with a savepoint instead.`,
      ),
    () => call(['jobs', context.jobId], { method: 'PATCH', query: { mode: 'cancel' } }),
    () => h('p', null, 'The job is being cancelled.'),
    true,
  );
  if (answer !== null) context.page.refresh();
}

/** @param {JobContext} context */
async function rescale(context) {
  const vertices = context.job.vertices;
  await operation(
    'Change the parallelism',
    'Rescale',
    (values) => {
      values.parallelism ||= Object.fromEntries(vertices.map((vertex) => [vertex.id, vertex.parallelism]));
      return [
        h('p', null, 'The job takes a checkpoint and restarts from it with the new parallelism.'),
        vertices.map((vertex) =>
          h(
            'label',
            { key: vertex.id, class: 'field is-side' },
            h('span', { class: 'clamp', title: vertex.name }, vertex.name),
            h('input', {
              type: 'number',
              min: 1,
              max: vertex.maxParallelism > 0 ? vertex.maxParallelism : 32768,
              required: true,
              value: String(values.parallelism[vertex.id]),
              oninput: (event) => (values.parallelism[vertex.id] = Number(event.target.value)),
            }),
          ),
        ),
      ];
    },
    (values) =>
      call(['jobs', context.jobId, 'resource-requirements'], {
        method: 'PUT',
        body: Object.fromEntries(
          Object.entries(values.parallelism).map(([id, upperBound]) => [
            id,
            { parallelism: { lowerBound: 1, upperBound } },
          ]),
        ),
      }),
    () => h('p', null, 'The job takes a checkpoint and then restarts with the new parallelism.'),
  );
  context.page.refresh();
}
