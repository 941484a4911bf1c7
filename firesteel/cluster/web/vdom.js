// A small virtual DOM: pages describe their content, and only what differs is changed. That is what keeps focus,
// scroll positions, selections and open drawers through a refresh.

/**
 * @typedef {Object} VNode What an element, or a text, should be.
 * @property {string} [tag]
 * @property {Object<string, any>} [props]
 * @property {VNode[]} [children]
 * @property {string|number} [key]
 * @property {string} [text] Of a text, which has none of the above.
 * @property {any} [dom] What it became.
 * @property {{update?: function(any): void, destroy?: function(): void}} [instance]
 * @typedef {VNode|string|number|boolean|null|undefined|Array<any>} Child
 */

const SVG = 'http://www.w3.org/2000/svg';
const SVG_TAGS = new Set([
  'svg',
  'g',
  'path',
  'rect',
  'line',
  'circle',
  'text',
  'polyline',
  'defs',
  'marker',
  'pattern',
  'tspan',
]);
const NOT_ATTRIBUTES = new Set([
  'key',
  'style',
  'widget',
  'data',
  'mounted',
  'value',
  'checked',
  'indeterminate',
  'focus',
]);

/**
 * Describes an element.
 *
 * Props are attributes, except: `on…` listeners; `style`, an object; `value` and `checked`, set only when they change
 * between two descriptions; `widget`, a function `(element, data) => ({update, destroy})` that looks after the
 * element's content by itself, with `data` handed on at each refresh; `mounted`, called once with the element.
 *
 * @param {string} tag
 * @param {Object<string, any>|null} [props]
 * @param {...Child} children
 * @returns {VNode}
 */
export function h(tag, props, ...children) {
  const given = props || {};
  return { tag, props: given, children: normalise(children, []), key: given.key };
}

/** @param {Child[]} children @param {VNode[]} into @returns {VNode[]} */
function normalise(children, into) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) normalise(child, into);
    else if (typeof child === 'object') into.push(child);
    else into.push({ text: String(child) });
  }
  return into;
}

const drawn = new WeakMap();

/**
 * Makes the content of an element what is described.
 * @param {Element} parent
 * @param {...Child} children
 */
export function draw(parent, ...children) {
  const focused = /** @type {HTMLElement|null} */ (document.activeElement);
  const wanted = normalise(children, []);
  const before = drawn.get(parent);
  if (!before) parent.replaceChildren();
  const mounted = [];
  patchChildren(parent, before || [], wanted, mounted);
  drawn.set(parent, wanted);
  for (const call of mounted) call();
  if (!focused || focused === document.body || document.activeElement !== document.body) return;
  // an element that was moved in the tree has lost the focus; for one that is gone the content of the page has it, so
  // that Tab continues there and not at the top
  const next = focused.isConnected ? focused : document.getElementById('main');
  if (next) next.focus({ preventScroll: true });
}

/** Forgets what was drawn into an element, and notifies its widgets. @param {Element} parent */
export function undraw(parent) {
  for (const vnode of drawn.get(parent) || []) dispose(vnode);
  drawn.delete(parent);
}

/** @param {Node} parent @param {VNode[]} before @param {VNode[]} wanted @param {Array<function(): void>} mounted */
function patchChildren(parent, before, wanted, mounted) {
  const keyed = new Map();
  const unkeyed = new Map();
  for (const vnode of before) {
    if (vnode.key !== undefined) keyed.set(vnode.tag + ' ' + vnode.key, vnode);
    else {
      const kind = vnode.tag || '#text';
      if (!unkeyed.has(kind)) unkeyed.set(kind, []);
      unkeyed.get(kind).push(vnode);
    }
  }
  const kept = new Set();
  const nodes = wanted.map((vnode) => {
    const old =
      vnode.key !== undefined
        ? keyed.get(vnode.tag + ' ' + vnode.key)
        : (unkeyed.get(vnode.tag || '#text') || []).shift();
    if (old && !kept.has(old)) {
      kept.add(old);
      return patch(old, vnode, mounted);
    }
    return create(vnode, mounted);
  });
  for (const vnode of before) {
    if (kept.has(vnode)) continue;
    dispose(vnode);
    vnode.dom.remove();
  }
  let cursor = parent.firstChild;
  for (const node of nodes) {
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
  }
}

/** @param {VNode} vnode @param {Array<function(): void>} mounted @returns {Node} */
function create(vnode, mounted) {
  if (vnode.text !== undefined) {
    vnode.dom = document.createTextNode(vnode.text);
    return vnode.dom;
  }
  const element = SVG_TAGS.has(vnode.tag)
    ? document.createElementNS(SVG, vnode.tag)
    : document.createElement(vnode.tag);
  vnode.dom = element;
  if (vnode.props.widget) mounted.push(() => (vnode.instance = vnode.props.widget(element, vnode.props.data) || {}));
  else patchChildren(element, [], vnode.children, mounted);
  setProps(element, {}, vnode.props);
  if (vnode.props.mounted) mounted.push(() => vnode.props.mounted(element));
  return element;
}

/** @param {VNode} old @param {VNode} vnode @param {Array<function(): void>} mounted @returns {Node} */
function patch(old, vnode, mounted) {
  vnode.dom = old.dom;
  if (vnode.text !== undefined) {
    if (old.text !== vnode.text) old.dom.nodeValue = vnode.text;
    return vnode.dom;
  }
  if (old.props.widget !== vnode.props.widget) {
    dispose(old);
    const fresh = create(vnode, mounted);
    old.dom.replaceWith(fresh);
    return fresh;
  }
  vnode.instance = old.instance;
  setProps(/** @type {Element} */ (vnode.dom), old.props, vnode.props);
  if (!vnode.props.widget) patchChildren(vnode.dom, old.children, vnode.children, mounted);
  else if (vnode.instance && vnode.instance.update) vnode.instance.update(vnode.props.data);
  return vnode.dom;
}

/** @param {VNode} vnode */
function dispose(vnode) {
  if (vnode.text !== undefined) return;
  if (vnode.instance && vnode.instance.destroy) vnode.instance.destroy();
  for (const child of vnode.children) dispose(child);
}

/** @param {Element} element @param {Object<string, any>} before @param {Object<string, any>} props */
function setProps(element, before, props) {
  for (const name of Object.keys(before)) {
    if (name in props) continue;
    if (name.startsWith('on')) listen(element, name, null);
    else if (!NOT_ATTRIBUTES.has(name)) element.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) listen(element, name, value);
    else if (name === 'style') setStyle(element, before.style || {}, value);
    else if (name === 'value' || name === 'checked' || name === 'indeterminate') {
      if (value !== before[name] && element[name] !== value) element[name] = value;
    } else if (NOT_ATTRIBUTES.has(name) || before[name] === value) continue;
    else if (value === false || value === null || value === undefined) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** @param {any} element @param {Object<string, any>} before @param {Object<string, any>} style */
function setStyle(element, before, style) {
  for (const name of Object.keys(before)) if (!(name in style)) element.style.removeProperty(name);
  for (const [name, value] of Object.entries(style))
    if (before[name] !== value) element.style.setProperty(name, String(value));
}

/** One listener per element and event, which calls the latest function described. */
function listen(element, name, handler) {
  const type = name.slice(2).toLowerCase();
  const handlers = element.listeners_ || (element.listeners_ = {});
  if (!(type in handlers)) element.addEventListener(type, (event) => handlers[type] && handlers[type](event));
  handlers[type] = handler;
}
