// The graph of a job: boxes joined by edges, in a box one can move and zoom.

import { icon } from './icons.js';
import { curve, layOut, layOutDownwards } from './layout.js';
import { PanZoom } from './panzoom.js';
import { draw, h } from './vdom.js';

/**
 * @typedef {Object} GraphNode
 * @property {string} id
 * @property {string} label Label for screen readers.
 * @property {string} href Where a click leads.
 * @property {string} extra Classes.
 * @property {any} content
 * @typedef {{id: string, from: string, to: string, label: string, isBusy: boolean}} GraphEdge
 * @typedef {{nodes: GraphNode[], edges: GraphEdge[], selected: string|null, key: string}} GraphData
 */

const WIDTH = 296;
const HEIGHT = 196;
/** In a box narrower than this the graph runs from top to bottom. */
const NARROW = 560;
/** How high the box may be, as a share of the window; and what it needs at least. */
const MAX_HEIGHT_SHARE = 0.72;
const MIN_HEIGHT = 300;
/** Below these scales the boxes show less, larger. */
const FAR = 0.55;
const VERY_FAR = 0.22;

/** A graph. @param {GraphData} data */
export function graph(data) {
  return h('div', { class: 'graph-box', key: `graph ${data.key}`, widget: graphWidget, data });
}

/** @param {HTMLElement} element @param {GraphData} data */
function graphWidget(element, data) {
  const port = document.createElement('div');
  const stage = document.createElement('div');
  const tools = document.createElement('div');
  port.className = 'graph';
  port.tabIndex = 0;
  port.setAttribute('role', 'group');
  port.setAttribute(
    'aria-label',
    'Graph of the job. Arrow keys move it, plus and minus zoom, 0 shows all, Tab goes from vertex to vertex.',
  );
  stage.className = 'graph-stage';
  tools.className = 'graph-tools';
  port.append(stage);
  element.append(port, tools);

  let current = data;
  let structure = '';
  let isDownwards = false;
  let layout = layOut([], []);
  const panZoom = new PanZoom(port, stage, (view) => {
    port.classList.toggle('is-far', view.scale < FAR);
    port.classList.toggle('is-very-far', view.scale < VERY_FAR);
    port.style.setProperty('--inverse-scale', String(Math.min(6, 1 / view.scale)));
  });

  const paint = () => {
    isDownwards = port.clientWidth > 0 && port.clientWidth < NARROW;
    const now = JSON.stringify([
      isDownwards,
      current.nodes.map((node) => node.id),
      current.edges.map((edge) => edge.id),
    ]);
    const isNew = now !== structure;
    if (isNew) {
      structure = now;
      layout = (isDownwards ? layOutDownwards : layOut)(
        current.nodes.map((node) => ({ id: node.id, width: WIDTH, height: HEIGHT })),
        current.edges,
      );
    }
    // as high as the graph is when it fills the width, so that its numbers can be read
    const fitting = layout.height * Math.min(1, (port.clientWidth - 32) / layout.width) + 48;
    port.style.height = `${Math.max(MIN_HEIGHT, Math.min(fitting, window.innerHeight * MAX_HEIGHT_SHARE))}px`;
    draw(stage, edgesView(current, layout, isDownwards), nodesView(current, layout, panZoom));
    draw(tools, toolsView(panZoom));
    if (isNew) panZoom.fit({ width: layout.width, height: layout.height });
  };
  const observer = new ResizeObserver(() => {
    paint();
    if (!panZoom.isMoved) panZoom.fit();
  });
  observer.observe(port);
  paint();
  return {
    update(next) {
      const isOther = next.selected !== current.selected && next.selected;
      current = next;
      paint();
      const at = isOther && layout.boxes.get(next.selected);
      if (at) panZoom.reveal({ ...at, width: WIDTH, height: HEIGHT });
    },
    destroy: () => observer.disconnect(),
  };
}

/** @param {GraphData} data @param {import('./layout.js').Layout} layout @param {PanZoom} panZoom */
function nodesView(data, layout, panZoom) {
  const byId = new Map(data.nodes.map((node) => [node.id, node]));
  return layout.order.map((id) => {
    const node = byId.get(id);
    const at = layout.boxes.get(id);
    return h(
      'a',
      {
        key: id,
        href: node.href,
        draggable: 'false',
        class: `node ${node.extra}${id === data.selected ? ' is-selected' : ''}`,
        'aria-label': node.label,
        'aria-current': id === data.selected ? 'true' : null,
        style: { left: `${at.x}px`, top: `${at.y}px`, width: `${WIDTH}px`, height: `${HEIGHT}px` },
        onfocus: (event) =>
          event.target.matches(':focus-visible') && panZoom.reveal({ ...at, width: WIDTH, height: HEIGHT }),
      },
      node.content,
    );
  });
}

/** @param {GraphData} data @param {import('./layout.js').Layout} layout @param {boolean} isDownwards */
function edgesView(data, layout, isDownwards) {
  return h(
    'svg',
    { class: 'graph-edges', width: layout.width, height: layout.height, 'aria-hidden': 'true' },
    h(
      'defs',
      null,
      h(
        'marker',
        {
          id: 'arrow',
          viewBox: '0 0 10 10',
          refX: 9,
          refY: 5,
          markerWidth: 12,
          markerHeight: 12,
          markerUnits: 'userSpaceOnUse',
          orient: 'auto',
        },
        h('path', { class: 'arrow', d: 'M0 1l9 4-9 4z' }),
      ),
    ),
    data.edges.map((edge) => {
      const points = layout.edges.get(edge.id);
      if (!points) return null;
      const [from, to] = points;
      return h(
        'g',
        { key: edge.id, class: edge.isBusy ? 'edge is-backpressured' : 'edge' },
        h('path', { class: 'edge-line', d: curve(points, isDownwards), 'marker-end': 'url(#arrow)' }),
        h(
          'text',
          { class: 'edge-label', x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - 6, 'text-anchor': 'middle' },
          edge.label,
        ),
      );
    }),
  );
}

/** @param {PanZoom} panZoom */
function toolsView(panZoom) {
  const tool = (label, name, act) =>
    h(
      'button',
      { key: name, type: 'button', class: 'button-icon', 'aria-label': label, title: label, onclick: act },
      icon(name),
    );
  return [
    tool('Zoom in', 'plus', () => panZoom.zoom(1.25)),
    tool('Zoom out', 'minus', () => panZoom.zoom(0.8)),
    tool('Show all', 'fit', () => panZoom.fit()),
  ];
}
