// Programs: upload them, look at their plan, run them.

import { call } from '../api.js';
import { confirmed, openDialog } from '../dialogs.js';
import { dateTime, description } from '../format.js';
import { graph } from '../graph.js';
import { icon } from '../icons.js';
import { redraw, remembered } from '../redraw.js';
import { go, href } from '../router.js';
import { panel, table } from '../table.js';
import { failed, toast } from '../toasts.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

const ACCEPTED = ['.py', '.zip'];

/** @param {import('../app.js').PageContext} context @returns {import('../app.js').Page} */
export function submitPage(context) {
  let programs = null;
  const state = remembered('submit', { chosen: '', isUploading: false });
  const uploaded = (id) => {
    state.chosen = id;
    context.refresh();
  };
  return {
    title: () => 'Submit',
    async load(fetcher) {
      programs = (await fetcher.get('jars')).files;
    },
    view() {
      if (context.config.features['web-submit'] === false)
        return [
          h('h1', null, 'Submit'),
          h('div', { class: 'panel empty' }, 'Job submission from this page is disabled (web.submit.enable).'),
        ];
      if (!programs) return [h('h1', null, 'Submit'), loading()];
      return [
        h('h1', null, 'Submit'),
        uploadPanel(state, uploaded),
        panel('Programs', programTable(context, programs, state)),
      ];
    },
  };
}

/** @param {{isUploading: boolean}} state @param {function(string): void} uploaded */
function uploadPanel(state, uploaded) {
  const send = async (file) => {
    if (!file) return;
    if (!ACCEPTED.some((ending) => file.name.endsWith(ending))) {
      toast('bad', 'This is not a program.', `${file.name}: choose a ${ACCEPTED.join(' or ')} file.`);
      return;
    }
    state.isUploading = true;
    redraw();
    try {
      const body = new FormData();
      body.append('jarfile', file, file.name);
      const answer = await call('jars/upload', { method: 'POST', body });
      toast('good', `${file.name} is uploaded.`);
      uploaded(answer.filename.split('/').pop());
    } catch (error) {
      failed(`${file.name} was not uploaded.`, error);
    }
    state.isUploading = false;
    redraw();
  };
  return h(
    'section',
    {
      class: 'panel drop',
      'aria-label': 'Upload',
      ondragover: (event) => event.preventDefault(),
      ondrop: (event) => {
        event.preventDefault();
        send(event.dataTransfer.files[0]);
      },
    },
    h(
      'p',
      null,
      'A Python file whose program calls ',
      h('code', null, 'env.execute()'),
      ', or a .zip with a ',
      h('code', null, '__main__.py'),
      '. Drop it here, or:',
    ),
    h(
      'label',
      { class: 'button is-primary file-button' },
      icon('upload'),
      state.isUploading ? 'Uploading …' : 'Choose a program',
      h('input', {
        type: 'file',
        class: 'sr-only',
        accept: ACCEPTED.join(','),
        disabled: state.isUploading,
        onchange: (event) => (send(event.target.files[0]), (event.target.value = '')),
      }),
    ),
  );
}

/** @param {import('../app.js').PageContext} context @param {any[]} programs @param {{chosen: string}} state */
function programTable(context, programs, state) {
  const choose = (id) => () => {
    state.chosen = state.chosen === id ? '' : id;
    redraw();
  };
  const remove = (program) => async () => {
    if (
      !(await confirmed(
        'Remove the program?',
        `${program.name} is removed from the JobManager. Running jobs are not affected.`,
        'Remove',
      ))
    )
      return;
    try {
      await call(['jars', program.id], { method: 'DELETE' });
    } catch (error) {
      failed(`${program.name} was not removed.`, error);
    }
    context.refresh();
  };
  return table({
    id: 'programs',
    label: 'Programs',
    rows: programs,
    key: (program) => program.id,
    empty: 'No program has been uploaded yet. Choose one above, then set its arguments here and run it.',
    detail: (program) => (program.id === state.chosen ? runForm(program) : null),
    columns: [
      {
        title: 'Program',
        wide: true,
        sort: (program) => program.name,
        cell: (program) =>
          h(
            'button',
            {
              type: 'button',
              class: 'disclose',
              'aria-expanded': program.id === state.chosen ? 'true' : 'false',
              onclick: choose(program.id),
            },
            icon(program.id === state.chosen ? 'down' : 'right'),
            program.name,
          ),
      },
      { title: 'Uploaded', sort: (program) => program.uploaded, cell: (program) => dateTime(program.uploaded) },
      {
        title: '',
        cell: (program) =>
          h(
            'button',
            {
              type: 'button',
              class: 'button is-small',
              'aria-label': `Remove ${program.name}`,
              onclick: remove(program),
            },
            'Remove',
          ),
      },
    ],
  });
}

/** What is typed, as a shell would split it. @param {string} text @returns {string[]} */
export function splitArguments(text) {
  const found = [];
  for (const match of text.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'|(\S+)/g))
    found.push(match[1] !== undefined ? match[1].replace(/\\(.)/g, '$1') : (match[2] ?? match[3]));
  return found;
}

/** @param {any} program */
function runForm(program) {
  const values = remembered(`run ${program.id}`, {
    args: '',
    parallelism: '',
    savepoint: '',
    allowNonRestored: false,
    entry: '',
    busy: '',
  });
  const body = () => ({
    programArgsList: splitArguments(values.args),
    ...(values.entry ? { entryClass: values.entry } : {}),
    ...(values.parallelism ? { parallelism: Number(values.parallelism) } : {}),
    ...(values.savepoint ? { savepointPath: values.savepoint, allowNonRestoredState: values.allowNonRestored } : {}),
  });
  const during = async (what, act) => {
    values.busy = what;
    redraw();
    try {
      await act();
    } catch (error) {
      failed(what === 'run' ? 'The program did not start a job.' : 'The plan of the program could not be created.', error);
    }
    values.busy = '';
    redraw();
  };
  const run = (event) => {
    event.preventDefault();
    during('run', async () => {
      const { jobid } = await call(['jars', program.id, 'run'], { method: 'POST', body: body() });
      toast('good', 'The job is submitted.');
      go(href(['jobs', jobid]));
    });
  };
  const plan = () =>
    during('plan', async () =>
      showPlan(program.name, (await call(['jars', program.id, 'plan'], { method: 'POST', body: body() })).plan),
    );
  const text = (name, title, hint, more = {}) =>
    h(
      'label',
      { class: 'field' },
      h('span', null, title),
      h('input', {
        name,
        value: values[name],
        placeholder: hint,
        autocomplete: 'off',
        spellcheck: 'false',
        oninput: (event) => ((values[name] = event.target.value.trim()), redraw()),
        ...more,
      }),
    );
  return h(
    'form',
    { class: 'form', onsubmit: run },
    text('args', 'Arguments', '--input file:///data/in --rate 100'),
    program.name.endsWith('.zip') && text('entry', 'Python file to run', '__main__.py'),
    h(
      'div',
      { class: 'columns' },
      text('parallelism', 'Parallelism', 'default of the program or the cluster', { type: 'number', min: 1, max: 32768 }),
      text('savepoint', 'Start from savepoint', 'file:///data/savepoints/savepoint-…'),
    ),
    h(
      'label',
      { class: 'choice' },
      h('input', {
        type: 'checkbox',
        checked: values.allowNonRestored,
        disabled: !values.savepoint,
        onchange: (event) => (values.allowNonRestored = event.target.checked),
      }),
      h('span', null, 'Allow non-restored state: skip state of operators that the program no longer has'),
    ),
    h(
      'div',
      { class: 'dialog-buttons is-left' },
      h(
        'button',
        { type: 'submit', class: 'button is-primary', disabled: values.busy !== '' },
        values.busy === 'run' ? 'Starting …' : 'Run',
      ),
      h(
        'button',
        { type: 'button', class: 'button', disabled: values.busy !== '', onclick: plan },
        values.busy === 'plan' ? 'Compiling …' : 'Show plan',
      ),
    ),
  );
}

/** @param {string} name @param {any} plan */
function showPlan(name, plan) {
  const nodes = plan.nodes.map((node) => {
    const text = description(node.description) || node.id;
    return {
      id: node.id,
      label: text,
      href: location.hash,
      extra: 'is-plan',
      content: [
        h('div', { class: 'node-head' }, h('span', { class: 'node-parallelism' }, `× ${node.parallelism}`)),
        h('div', { class: 'node-name is-plan', title: text }, text),
      ],
    };
  });
  const edges = plan.nodes.flatMap((node) =>
    (node.inputs || []).map((input) => ({
      id: `${input.id} ${node.id} ${input.num}`,
      from: input.id,
      to: node.id,
      label: input.ship_strategy,
      isBusy: false,
    })),
  );
  return openDialog(
    `Plan of ${name}`,
    (dialog) => [
      nodes.length ? graph({ nodes, edges, selected: null, key: 'plan' }) : h('p', null, 'The plan is empty.'),
      h(
        'div',
        { class: 'dialog-buttons' },
        h('button', { type: 'button', class: 'button is-primary', onclick: () => dialog.close(null) }, 'Close'),
      ),
    ],
    { wide: true },
  );
}
