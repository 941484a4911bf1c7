// Asks for the page to be drawn again: at most once per frame, however often it is asked.

let scheduled = false;
/** @type {function(): void} */
let drawAll = () => {};

/** Says what draws the page. @param {function(): void} draw */
export function drawWith(draw) {
  drawAll = draw;
}

/** Draws the page soon. */
export function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => {
    scheduled = false;
    drawAll();
  });
}

/** @type {Map<string, any>} */
const kept = new Map();

/**
 * What a part of a page remembers between two drawings: sort orders, page numbers, what is open.
 * @template T
 * @param {string} id
 * @param {T} initial
 * @returns {T}
 */
export function remembered(id, initial) {
  if (!kept.has(id)) kept.set(id, { ...initial });
  return kept.get(id);
}
