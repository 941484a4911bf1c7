// Moves and scales what is inside a box: by mouse, wheel, fingers and keys.

const MIN_SCALE = 0.04;
const MAX_SCALE = 2;
const STEP = 80;

/**
 * @typedef {Object} View
 * @property {number} x
 * @property {number} y
 * @property {number} scale
 */

/** Makes the content of a box movable. */
export class PanZoom {
  /** @param {HTMLElement} box @param {HTMLElement} stage What is moved. @param {function(View): void} changed */
  constructor(box, stage, changed) {
    this.box = box;
    this.stage = stage;
    this.changed = changed;
    /** @type {View} */
    this.view = { x: 0, y: 0, scale: 1 };
    /** Whether the reader has moved it: then it is not fitted again. */
    this.isMoved = false;
    this.size = { width: 1, height: 1 };
    /** @type {Map<number, {x: number, y: number}>} */
    this.pointers = new Map();
    this.dragged = 0;
    box.addEventListener('pointerdown', (event) => this.down(event));
    box.addEventListener('pointermove', (event) => this.move(event));
    for (const type of ['pointerup', 'pointercancel'])
      box.addEventListener(type, (event) => this.pointers.delete(event.pointerId));
    box.addEventListener('click', (event) => this.click(event), true);
    box.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    box.addEventListener('keydown', (event) => this.key(event));
    // a box that is tabbed to would scroll into view; it is moved there instead
    box.addEventListener('scroll', () => box.scrollTo(0, 0));
  }

  /** Applies the view. */
  apply() {
    const { x, y, scale } = this.view;
    this.stage.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    this.changed(this.view);
  }

  /** Shows everything. @param {{width: number, height: number}} [size] */
  fit(size = this.size) {
    this.size = size;
    this.isMoved = false;
    const width = this.box.clientWidth;
    const height = this.box.clientHeight;
    if (!width || !height) return;
    const scale = Math.max(MIN_SCALE, Math.min(1, (width - 32) / size.width, (height - 32) / size.height));
    this.view = { scale, x: (width - size.width * scale) / 2, y: (height - size.height * scale) / 2 };
    this.apply();
  }

  /**
   * Makes it larger or smaller around a point of the box.
   * @param {number} factor
   * @param {number} [x]
   * @param {number} [y]
   */
  zoom(factor, x = this.box.clientWidth / 2, y = this.box.clientHeight / 2) {
    const scale = Math.max(MIN_SCALE, Math.min(MAX_SCALE, this.view.scale * factor));
    const change = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * change, y: y - (y - this.view.y) * change };
    this.isMoved = true;
    this.apply();
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.view = { ...this.view, x: this.view.x + dx, y: this.view.y + dy };
    this.isMoved = true;
    this.apply();
  }

  /** Moves so that a part can be seen. @param {{x: number, y: number, width: number, height: number}} part */
  reveal(part) {
    const { x, y, scale } = this.view;
    const left = part.x * scale + x;
    const top = part.y * scale + y;
    const dx = offset(left, part.width * scale, this.box.clientWidth);
    const dy = offset(top, part.height * scale, this.box.clientHeight);
    if (dx || dy) this.pan(dx, dy);
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button !== 0 || /** @type {HTMLElement} */ (event.target).closest('button')) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.dragged = 0;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const area = this.box.getBoundingClientRect();
      const factor = distance(now, other) / Math.max(1, distance(before, other));
      this.zoom(factor, (now.x + other.x) / 2 - area.left, (now.y + other.y) / 2 - area.top);
      this.dragged = 100;
    } else {
      this.dragged += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      // a click with a trembling hand stays a click
      if (this.dragged > 4) {
        if (!this.box.hasPointerCapture(event.pointerId)) this.box.setPointerCapture(event.pointerId);
        this.pan(now.x - before.x, now.y - before.y);
      }
    }
    this.pointers.set(event.pointerId, now);
  }

  /** @param {MouseEvent} event */
  click(event) {
    if (this.dragged > 4) {
      event.preventDefault();
      event.stopPropagation();
    }
    this.dragged = 0;
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    // a plain wheel scrolls the page, unless the reader is at work in here
    if (!event.ctrlKey && !event.metaKey && !this.box.contains(document.activeElement)) return;
    event.preventDefault();
    const area = this.box.getBoundingClientRect();
    this.zoom(
      Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)),
      event.clientX - area.left,
      event.clientY - area.top,
    );
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowLeft: () => this.pan(STEP, 0),
      ArrowRight: () => this.pan(-STEP, 0),
      ArrowUp: () => this.pan(0, STEP),
      ArrowDown: () => this.pan(0, -STEP),
      '+': () => this.zoom(1.25),
      '=': () => this.zoom(1.25),
      '-': () => this.zoom(0.8),
      0: () => this.fit(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

/** @param {{x: number, y: number}} a @param {{x: number, y: number}} b */
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

/**
 * How far a part must move to lie inside.
 * @param {number} at
 * @param {number} size
 * @param {number} room
 * @returns {number}
 */
function offset(at, size, room) {
  if (at < 16) return 16 - at;
  if (at + size > room - 16) return Math.max(16 - at, room - 16 - at - size);
  return 0;
}
