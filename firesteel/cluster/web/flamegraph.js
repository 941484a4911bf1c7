// Flame graphs: what the samples of a vertex were doing, as wide as often. Callers above, callees below.

import { percent, plural } from './format.js';
import { draw, h } from './vdom.js';

/**
 * @typedef {{name: string, value: number, children: Frame[]}} Frame
 * @typedef {{frame: Frame, depth: number, from: number, width: number}} Placed
 * @typedef {{root: Frame, search: string}} FlameData
 */

const ROW = 21;
/** Frames narrower than this share of the width are left out: they would not be visible. */
const NARROWEST = 0.001;

/** A flame graph. @param {FlameData} data @param {string} key */
export function flameGraph(data, key) {
  return h('div', { class: 'flame-box', key, widget: flameWidget, data });
}

/** @param {HTMLElement} element @param {FlameData} data */
function flameWidget(element, data) {
  let current = data;
  /** The names of the frames down to the one that fills the width. @type {string[]} */
  let zoomed = [];
  const zoomTo = (path) => {
    zoomed = path;
    paint();
  };
  const paint = () => draw(element, flameView(current, zoomed, zoomTo));
  element.addEventListener('keydown', (event) => walk(element, event));
  paint();
  return {
    update(next) {
      const isSame = next.root === current.root && next.search === current.search;
      current = next;
      if (!isSame) paint();
    },
  };
}

/**
 * Where each frame goes, below the one that was zoomed to.
 * @param {Frame} frame
 * @param {number} total
 * @returns {Placed[]}
 */
function placed(frame, total) {
  const places = [];
  const add = (one, depth, from) => {
    const width = one.value / (total || 1);
    if (width < NARROWEST) return;
    places.push({ frame: one, depth, from, width });
    let at = from;
    for (const child of one.children || []) {
      add(child, depth + 1, at);
      at += child.value / (total || 1);
    }
  };
  add(frame, 0, 0);
  return places;
}

/** @param {FlameData} data @param {string[]} zoomed @param {function(string[]): void} zoomTo */
function flameView(data, zoomed, zoomTo) {
  const above = [];
  let top = data.root;
  for (const name of zoomed) {
    const next = (top.children || []).find((child) => child.name === name);
    if (!next) break;
    above.push(top);
    top = next;
  }
  const search = data.search.toLowerCase();
  const paths = new Map();
  const note = (frame, path) => {
    paths.set(frame, path);
    for (const child of frame.children || []) note(child, [...path, child.name]);
  };
  note(data.root, []);
  const places = [
    ...above.map((frame, depth) => ({ frame, depth, from: 0, width: 1 })),
    ...placed(top, top.value).map((one) => ({ ...one, depth: one.depth + above.length })),
  ];
  const found = search ? matching(data.root, search) : 0;
  const depth = Math.max(0, ...places.map((one) => one.depth)) + 1;
  return [
    h(
      'div',
      { class: 'flame-line' },
      h(
        'span',
        { class: 'muted', 'aria-live': 'polite' },
        search
          ? `${percent(found / (data.root.value || 1))} of all samples match.`
          : `${plural(data.root.value, 'sample')}. Click a frame to zoom in.`,
      ),
      above.length > 0 &&
        h('button', { type: 'button', class: 'button is-small', onclick: () => zoomTo([]) }, 'Show all'),
    ),
    h(
      'div',
      { class: 'flame', role: 'tree', 'aria-label': 'Flame graph', style: { height: `${depth * ROW}px` } },
      places.map((one) => {
        const name = one.frame.name;
        const path = paths.get(one.frame);
        const isFound = search && name.toLowerCase().includes(search);
        const text = `${name}: ${plural(one.frame.value, 'sample')}, ${percent(one.frame.value / (data.root.value || 1))}`;
        return h(
          'button',
          {
            key: path.join('\n') || 'root',
            type: 'button',
            role: 'treeitem',
            'aria-level': one.depth + 1,
            class: `frame ${hue(name)}${isFound ? ' is-found' : ''}${search && !isFound ? ' is-dim' : ''}${one.depth < above.length ? ' is-above' : ''}`,
            title: text,
            'aria-label': text,
            tabindex: one.depth === 0 ? 0 : -1,
            style: { left: `${one.from * 100}%`, width: `${one.width * 100}%`, top: `${one.depth * ROW}px` },
            onclick: () => zoomTo(path),
          },
          one.width > 0.02 ? name : '',
        );
      }),
    ),
  ];
}

/**
 * How many samples are below frames that match, each counted once.
 * @param {Frame} frame
 * @param {string} search
 * @returns {number}
 */
function matching(frame, search) {
  if (frame.name.toLowerCase().includes(search)) return frame.value;
  return (frame.children || []).reduce((sum, child) => sum + matching(child, search), 0);
}

/** The engine's own frames are cool, the user's warm. @param {string} name @returns {string} */
function hue(name) {
  if (/\(firesteel\/|^waits for |^network and mails/.test(name)) return 'is-engine';
  if (/\(site-packages\/|\(lib\/python\/|\(<|^root$/.test(name)) return 'is-library';
  return 'is-user';
}

/** Arrow keys go to the frame that lies in that direction. @param {HTMLElement} element @param {KeyboardEvent} event */
function walk(element, event) {
  const from = /** @type {HTMLElement} */ (event.target);
  const step = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
  if (!step || !from.classList.contains('frame')) return;
  event.preventDefault();
  const here = from.getBoundingClientRect();
  let best = null;
  for (const frame of /** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll('.frame'))) {
    const there = frame.getBoundingClientRect();
    const rows = Math.round((there.top - here.top) / ROW);
    if (rows !== step[1] || frame === from) continue;
    const dx =
      step[0] === 0
        ? there.left > here.right || there.right < here.left
          ? Infinity
          : Math.abs(there.left - here.left)
        : (there.left - here.left) * step[0];
    if (dx < 0 || dx === Infinity) continue;
    if (!best || dx < best.dx) best = { frame, dx };
  }
  if (best) best.frame.focus();
}
