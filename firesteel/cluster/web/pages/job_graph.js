// The overview of a job: its graph, what slows it down, and its vertices as a list.

import { bytes, compact, count, description, duration, isNumber, NONE, percent, plural, watermark } from '../format.js';
import { graph } from '../graph.js';
import { icon } from '../icons.js';
import { href } from '../router.js';
import { badge, isTerminal, taskBar, taskCounts } from '../states.js';
import { filter, panel, table } from '../table.js';
import { h } from '../vdom.js';
import { loadFlow, wholeFlow } from './flow.js';

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function graphTab(context) {
  let diagnosis = null;
  let cluster = null;
  return {
    async load(fetcher) {
      const { job } = context;
      const isOver = isTerminal(job.state);
      [diagnosis, cluster] = await Promise.all([
        job.state === 'RUNNING' ? fetcher.getOr(['jobs', context.jobId, 'diagnosis'], null) : null,
        isStarting(job.state) ? fetcher.get('overview') : null,
        isOver ? null : loadFlow(fetcher, context),
      ]);
      if (isOver) for (const vertex of job.vertices) context.flow.set(vertex.id, wholeFlow(vertex.metrics));
    },
    view() {
      const { job } = context;
      if (!job.plan.nodes.length) return h('div', { class: 'panel empty' }, notRunning(job.state));
      return [
        waiting(job, cluster),
        sentence(context, diagnosis),
        panel(null, graph(graphData(context, diagnosis)), legend()),
        vertexList(context, diagnosis),
      ];
    },
  };
}

/** @param {string} state */
function notRunning(state) {
  if (state === 'FAILED') return 'The job failed before its graph was created. See Exceptions for the reason.';
  if (isTerminal(state)) return 'The graph of this job is no longer available.';
  return 'The job is being prepared, or waits for slots. Its graph appears here.';
}

/** @param {string} state @returns {boolean} */
const isStarting = (state) => state === 'INITIALIZING' || state === 'CREATED';

/** Why the job does not run yet, or not now. @param {any} job @param {any} cluster The answer of /overview, or null. */
function waiting(job, cluster) {
  if (isStarting(job.state)) {
    const needed = slotsNeeded(job);
    const free = cluster ? cluster['slots-available'] : needed;
    const text =
      free < needed
        ? `The job waits for slots: it needs ${count(needed)}, and ${count(free)} of ${count(cluster['slots-total'])} are free.`
        : `The job is starting. It needs ${plural(needed, 'slot')}.`;
    return h('p', { class: 'note', role: 'status' }, icon('waiting'), h('span', null, text));
  }
  if (job.state === 'RESTARTING')
    return h(
      'p',
      { class: 'note is-warning', role: 'status' },
      icon('restarting'),
      h(
        'span',
        null,
        'A task has failed, and the job is restarting. ',
        h('a', { href: href(['jobs', job.jid, 'exceptions']) }, 'See why'),
      ),
    );
  if (job.state === 'FAILED')
    return h(
      'p',
      { class: 'note is-bad', role: 'status' },
      icon('failed'),
      h('span', null, 'The job has failed. ', h('a', { href: href(['jobs', job.jid, 'exceptions']) }, 'See why')),
    );
  return null;
}

/** Tasks of one slot sharing group share slots; groups do not. @param {any} job @returns {number} */
function slotsNeeded(job) {
  const groups = new Map();
  for (const vertex of job.vertices)
    groups.set(vertex.slotSharingGroupId, Math.max(groups.get(vertex.slotSharingGroupId) || 0, vertex.parallelism));
  return [...groups.values()].reduce((sum, slots) => sum + slots, 0);
}

/** What slows the job down, in words. @param {import('./job.js').JobContext} context @param {any} diagnosis */
function sentence(context, diagnosis) {
  if (!diagnosis) return null;
  const { bottleneck } = diagnosis;
  if (!bottleneck)
    return h('p', { class: 'note is-good', role: 'status' }, icon('finished'), h('span', null, diagnosis.explanation));
  return h(
    'p',
    { class: 'note is-warning', role: 'status' },
    icon('warning'),
    h(
      'span',
      null,
      h('strong', null, 'Bottleneck: '),
      h('a', { href: context.vertexHref(bottleneck.id, 'backpressure') }, bottleneck.name),
      '. ',
      withoutName(diagnosis.explanation, bottleneck.name),
    ),
  );
}

/** The name is shown already, as a link. @param {string} explanation @param {string} name @returns {string} */
function withoutName(explanation, name) {
  const opening = `'${name}' is the bottleneck: `;
  if (!explanation.startsWith(opening)) return explanation;
  const rest = explanation.slice(opening.length);
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** Which of the three takes most of the time. @param {import('./flow.js').Flow|undefined} flow @returns {string} */
function heat(flow) {
  if (!flow || flow.busy === null) return 'is-unknown';
  if (flow.mostBackpressured > 0.5) return 'is-backpressured';
  if (flow.busiest > 0.8) return 'is-hot';
  return flow.busiest > 0.4 ? 'is-warm' : 'is-idle';
}

/** @param {import('./job.js').JobContext} context @param {any} diagnosis @returns {import('../graph.js').GraphData} */
function graphData(context, diagnosis) {
  const { job, flow } = context;
  const vertices = new Map(job.vertices.map((vertex) => [vertex.id, vertex]));
  const slow = diagnosis && diagnosis.bottleneck && diagnosis.bottleneck.id;
  return {
    key: job.jid,
    selected: context.page.route.query.get('vertex'),
    nodes: job.plan.nodes.map((node) => {
      const vertex = vertices.get(node.id) || {
        name: description(node.description),
        parallelism: node.parallelism,
        status: 'CREATED',
        metrics: {},
      };
      const now = flow.get(node.id);
      return {
        id: node.id,
        label: nodeLabel(vertex, now, node.id === slow),
        href: context.vertexHref(node.id),
        extra: `${heat(now)}${node.id === slow ? ' is-bottleneck' : ''}`,
        content: nodeContent(vertex, now, node.id === slow),
      };
    }),
    edges: job.plan.nodes.flatMap((node) =>
      (node.inputs || []).map((input) => ({
        id: `${input.id} ${node.id} ${input.num}`,
        from: input.id,
        to: node.id,
        label: input.ship_strategy,
        isBusy: (flow.get(input.id)?.mostBackpressured || 0) > 0.5,
      })),
    ),
  };
}

/** @param {any} vertex @param {import('./flow.js').Flow|undefined} flow @param {boolean} isSlow @returns {string} */
function nodeLabel(vertex, flow, isSlow) {
  const parts = [vertex.name, vertex.status, `parallelism ${vertex.parallelism}`];
  if (flow && flow.busy !== null)
    parts.push(`busy ${percent(flow.busy)}, backpressured ${percent(flow.backpressured)}, idle ${percent(flow.idle)}`);
  if (isSlow) parts.push('the bottleneck');
  return parts.join('; ');
}

/** @param {any} vertex @param {import('./flow.js').Flow|undefined} flow @param {boolean} isSlow */
function nodeContent(vertex, flow, isSlow) {
  const { metrics } = vertex;
  return [
    h(
      'div',
      { class: 'node-head' },
      badge(vertex.status),
      h('span', { class: 'node-parallelism' }, `× ${vertex.parallelism}`),
      isSlow && h('span', { class: 'tag' }, 'Bottleneck'),
    ),
    h(
      'div',
      { class: 'node-name', title: vertex.name },
      vertex.name
        .split(/ -> /)
        .map((part, index) => h('span', { key: index, class: 'chain' }, index > 0 && '→ ', part, ' ')),
    ),
    loadBar(flow),
    h('div', { class: 'node-load' }, loadText(flow)),
    h(
      'dl',
      { class: 'node-rates' },
      rate('In', flow?.recordsIn, flow?.bytesIn, metrics['read-records'], metrics['read-bytes']),
      rate('Out', flow?.recordsOut, flow?.bytesOut, metrics['write-records'], metrics['write-bytes']),
      h('div', null, h('dt', null, 'Watermark'), h('dd', null, watermark(flow?.watermark ?? null))),
    ),
  ];
}

/** @param {string} title @param {any} records @param {any} size @param {any} allRecords @param {any} allBytes */
function rate(title, records, size, allRecords, allBytes) {
  const text = isNumber(records)
    ? `${compact(records)} rec/s · ${bytes(size)}/s`
    : isNumber(allRecords)
      ? `${compact(allRecords)} rec · ${bytes(allBytes)}`
      : NONE;
  return h('div', null, h('dt', null, title), h('dd', null, text));
}

/** Busy, backpressured and idle as one bar. @param {import('./flow.js').Flow|undefined} flow */
export function loadBar(flow) {
  const known = flow && flow.busy !== null;
  const part = (kind, value) =>
    h('span', { key: kind, class: `load-${kind}`, style: { width: `${known ? (value || 0) * 100 : 0}%` } });
  return h(
    'div',
    { class: `load-bar${known ? '' : ' is-unknown'}`, 'aria-hidden': 'true' },
    part('busy', flow?.busy),
    part('backpressured', flow?.backpressured),
    part('idle', flow?.idle),
  );
}

/** @param {import('./flow.js').Flow|undefined} flow */
function loadText(flow) {
  if (!flow || flow.busy === null) return h('span', { class: 'muted' }, 'No measurements');
  const most = flow.busiest - flow.busy > 0.1 ? ` (max ${percent(flow.busiest)})` : '';
  return [
    h('span', null, `Busy ${percent(flow.busy)}${most}`),
    h('span', null, `Backpr. ${percent(flow.backpressured)}`),
    h('span', null, `Idle ${percent(flow.idle)}`),
  ];
}

function legend() {
  const entry = (kind, text) => h('li', { key: kind }, h('span', { class: `legend-box load-${kind}` }), text);
  return h(
    'div',
    { class: 'graph-legend muted' },
    h('ul', null, entry('busy', 'busy'), entry('backpressured', 'backpressured'), entry('idle', 'idle')),
    h('span', null, 'Drag to move. Click in, then use the wheel, two fingers or + and − to zoom; 0 shows all.'),
  );
}

/** @param {import('./job.js').JobContext} context @param {any} diagnosis */
function vertexList(context, diagnosis) {
  const { job, flow } = context;
  const slow = diagnosis && diagnosis.bottleneck && diagnosis.bottleneck.id;
  const wanted = filter(`vertices ${job.jid}`, 'Find a vertex');
  const rows = job.vertices.filter((vertex) => !wanted.text || vertex.name.toLowerCase().includes(wanted.text));
  const io = (vertex, way) =>
    `${bytes(vertex.metrics[`${way}-bytes`])} · ${compact(vertex.metrics[`${way}-records`])} rec`;
  return h(
    'section',
    { class: 'panel' },
    h(
      'div',
      { class: 'title-row' },
      h('h2', { class: 'panel-title' }, 'Vertices'),
      job.vertices.length > 5 && wanted.field,
    ),
    table({
      id: `vertices ${job.jid}`,
      label: 'Vertices of the job',
      rows,
      key: (vertex) => vertex.id,
      empty: 'No vertex matches.',
      rowClass: (vertex) => (vertex.id === context.page.route.query.get('vertex') ? 'is-selected' : ''),
      columns: [
        {
          title: 'Vertex',
          wide: true,
          sort: (vertex) => vertex.name,
          cell: (vertex) =>
            h(
              'a',
              { class: 'clamp', title: vertex.name, href: context.vertexHref(vertex.id) },
              vertex.name,
              vertex.id === slow && h('span', { class: 'tag' }, 'Bottleneck'),
            ),
        },
        { title: 'State', sort: (vertex) => vertex.status, cell: (vertex) => badge(vertex.status) },
        {
          title: 'Busy',
          sort: (vertex) => flow.get(vertex.id)?.busiest ?? -1,
          cell: (vertex) =>
            h(
              'div',
              { class: 'load-cell' },
              loadBar(flow.get(vertex.id)),
              h('span', { class: 'small' }, percent(flow.get(vertex.id)?.busy)),
            ),
        },
        {
          title: 'Received',
          number: true,
          sort: (vertex) => vertex.metrics['read-records'],
          cell: (vertex) => io(vertex, 'read'),
        },
        {
          title: 'Sent',
          number: true,
          sort: (vertex) => vertex.metrics['write-records'],
          cell: (vertex) => io(vertex, 'write'),
        },
        {
          title: 'Parallelism',
          number: true,
          sort: (vertex) => vertex.parallelism,
          cell: (vertex) => count(vertex.parallelism),
        },
        {
          title: 'Duration',
          number: true,
          sort: (vertex) => vertex.duration,
          cell: (vertex) => duration(vertex.duration),
        },
        {
          title: 'Tasks',
          cell: (vertex) =>
            h('div', { class: 'task-cell' }, taskBar(vertex.tasks, vertex.parallelism), taskCounts(vertex.tasks)),
        },
      ],
    }),
  );
}
