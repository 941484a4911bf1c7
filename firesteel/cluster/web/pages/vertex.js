// The drawer of one vertex: a panel beside the graph, with views of its own.

import { icon } from '../icons.js';
import { badge } from '../states.js';
import { tabs } from '../table.js';
import { h } from '../vdom.js';
import { flameGraphView } from './vertex_flame_graph.js';
import { metricsView } from './vertex_metrics.js';
import {
  accumulatorsView,
  backpressureView,
  detailView,
  subtasksView,
  taskManagersView,
  watermarksView,
} from './vertex_views.js';

/**
 * @typedef {Object} VertexView
 * @property {function(import('../refresher.js').Fetcher): Promise<void>} load
 * @property {function(): any} view
 * @typedef {import('./job.js').JobContext} JobContext
 */

/** @type {Array<{id: string, title: string, make: function(JobContext, string): VertexView}>} */
const VIEWS = [
  { id: 'detail', title: 'Detail', make: detailView },
  { id: 'subtasks', title: 'Subtasks', make: subtasksView },
  { id: 'taskmanagers', title: 'TaskManagers', make: taskManagersView },
  { id: 'watermarks', title: 'Watermarks', make: watermarksView },
  { id: 'accumulators', title: 'Accumulators', make: accumulatorsView },
  { id: 'backpressure', title: 'Backpressure', make: backpressureView },
  { id: 'metrics', title: 'Metrics', make: metricsView },
  { id: 'flamegraph', title: 'Flame graph', make: flameGraphView },
];

/** @param {JobContext} context */
export function vertexDrawer(context) {
  /** @type {Map<string, VertexView>} */
  const made = new Map();
  const vertexId = () => context.page.route.query.get('vertex');
  const active = () => VIEWS.find((view) => view.id === context.page.route.query.get('view')) || VIEWS[0];
  const current = () => {
    const key = `${vertexId()} ${active().id}`;
    if (!made.has(key)) made.set(key, active().make(context, vertexId()));
    return made.get(key);
  };
  return {
    /** @param {import('../refresher.js').Fetcher} fetcher */
    load: (fetcher) => current().load(fetcher),
    /** @param {function(): void} close */
    view(close) {
      const vertex = context.job.vertices.find((one) => one.id === vertexId());
      return h(
        'aside',
        {
          class: 'drawer',
          key: `drawer ${vertexId()}`,
          role: 'region',
          'aria-label': vertex ? `Vertex ${vertex.name}` : 'Vertex',
          tabindex: -1,
          mounted: (element) => element.focus({ preventScroll: true }),
        },
        h(
          'div',
          { class: 'drawer-head' },
          h('h2', { class: 'drawer-title', title: vertex?.name }, vertex ? vertex.name : 'There is no such vertex'),
          vertex && badge(vertex.status),
          h(
            'button',
            {
              type: 'button',
              class: 'button-icon',
              'aria-label': 'Close the vertex',
              title: 'Close (Escape)',
              onclick: close,
            },
            icon('close'),
          ),
        ),
        vertex &&
          tabs(
            'Parts of the vertex',
            VIEWS.map((one) => ({ id: one.id, title: one.title, href: context.vertexHref(vertex.id, one.id) })),
            active().id,
          ),
        vertex && h('div', { class: 'drawer-body', key: active().id }, current().view()),
      );
    },
  };
}
