// Where the boxes of a graph go: in layers from left to right, with few crossings and short, straight edges.

/**
 * @typedef {{id: string, width: number, height: number}} Box
 * @typedef {{id: string, from: string, to: string}} Edge
 * @typedef {{x: number, y: number}} Point
 * @typedef {Object} Layout
 * @property {Map<string, Point>} boxes The upper left corners.
 * @property {Map<string, Point[]>} edges The points each edge passes.
 * @property {string[]} order The boxes, layer by layer, from top to bottom.
 * @property {number} width
 * @property {number} height
 */

const LAYER_GAP = 110;
const BOX_GAP = 28;
const SWEEPS = 8;

/**
 * @typedef {{id: string, layer: number, width: number, height: number, y: number, before: Place[], after: Place[], isBend: boolean}} Place
 */

/**
 * Lays out a graph: each part that hangs together on its own, one below the other.
 * @param {Box[]} boxes
 * @param {Edge[]} edges
 * @returns {Layout}
 */
export function layOut(boxes, edges) {
  const known = new Set(boxes.map((box) => box.id));
  const usable = edges.filter((edge) => known.has(edge.from) && known.has(edge.to) && edge.from !== edge.to);
  const whole = { boxes: new Map(), edges: new Map(), order: [], width: 0, height: 0 };
  for (const part of parts(boxes, usable)) {
    const ids = new Set(part.map((box) => box.id));
    const one = layOutPart(
      part,
      usable.filter((edge) => ids.has(edge.from)),
    );
    const top = whole.height ? whole.height + 2 * BOX_GAP : 0;
    const lower = (point) => ({ x: point.x, y: point.y + top });
    for (const [id, point] of one.boxes) whole.boxes.set(id, lower(point));
    for (const [id, points] of one.edges) whole.edges.set(id, points.map(lower));
    whole.order.push(...one.order);
    whole.width = Math.max(whole.width, one.width);
    whole.height = top + one.height;
  }
  return whole;
}

/** Boxes that hang together. @param {Box[]} boxes @param {Edge[]} edges @returns {Box[][]} */
function parts(boxes, edges) {
  const group = new Map(boxes.map((box) => [box.id, box.id]));
  const find = (id) => {
    while (group.get(id) !== id) id = group.get(id);
    return id;
  };
  for (const edge of edges) group.set(find(edge.from), find(edge.to));
  const found = new Map();
  for (const box of boxes) {
    const root = find(box.id);
    if (!found.has(root)) found.set(root, []);
    found.get(root).push(box);
  }
  return [...found.values()];
}

/** @param {Box[]} boxes @param {Edge[]} edges @returns {Layout} */
function layOutPart(boxes, edges) {
  const layerOf = layers(boxes, edges);
  const places = new Map(
    boxes.map((box) => [box.id, place(box.id, layerOf.get(box.id), box.width, box.height, false)]),
  );
  const bends = new Map(edges.map((edge) => [edge.id, connect(edge, places.get(edge.from), places.get(edge.to))]));
  const rows = rowsOf([...places.values(), ...[...bends.values()].flat()]);
  order(rows);
  align(rows);
  return measure(rows, places, bends, edges);
}

/** @returns {Place} */
function place(id, layer, width, height, isBend) {
  return { id, layer, width, height, y: 0, before: [], after: [], isBend };
}

/** The longest way from a source decides the layer; sources move up to their nearest consumer. */
function layers(boxes, edges) {
  const inputs = new Map(boxes.map((box) => [box.id, []]));
  const outputs = new Map(boxes.map((box) => [box.id, []]));
  for (const edge of edges) {
    inputs.get(edge.to).push(edge.from);
    outputs.get(edge.from).push(edge.to);
  }
  const layer = new Map();
  const depth = (id, path) => {
    if (layer.has(id)) return layer.get(id);
    if (path.has(id)) return -1; // a cycle: this edge points backwards
    path.add(id);
    const value = inputs.get(id).reduce((most, from) => Math.max(most, depth(from, path) + 1), 0);
    path.delete(id);
    layer.set(id, value);
    return value;
  };
  for (const box of boxes) depth(box.id, new Set());
  for (const box of boxes) {
    if (inputs.get(box.id).length || !outputs.get(box.id).length) continue;
    layer.set(box.id, Math.max(0, Math.min(...outputs.get(box.id).map((to) => layer.get(to))) - 1));
  }
  return layer;
}

/** Joins two boxes, with a bend in each layer between them. @returns {Place[]} */
function connect(edge, from, to) {
  const bends = [];
  let last = from;
  const step = from.layer < to.layer ? 1 : -1;
  for (let layer = from.layer + step; layer !== to.layer && from.layer !== to.layer; layer += step) {
    const bend = place(`${edge.id} ${layer}`, layer, 0, 12, true);
    last.after.push(bend);
    bend.before.push(last);
    bends.push(bend);
    last = bend;
  }
  last.after.push(to);
  to.before.push(last);
  return bends;
}

/** @param {Place[]} places @returns {Place[][]} */
function rowsOf(places) {
  const rows = [];
  for (const one of places) (rows[one.layer] ||= []).push(one);
  return Array.from(rows, (row) => row || []);
}

/** Sorts each layer by the middle of its neighbours, forwards and backwards in turn; the best order stays. */
function order(rows) {
  let best = rows.map((row) => [...row]);
  let fewest = crossings(rows);
  for (let sweep = 0; sweep < SWEEPS && fewest > 0; sweep += 1) {
    const isForward = sweep % 2 === 0;
    const index = new Map();
    const note = (row) => row.forEach((one, at) => index.set(one, at));
    rows.forEach(note);
    for (const row of isForward ? rows : [...rows].reverse()) {
      const weight = new Map(
        row.map((one) => [
          one,
          middle(
            (isForward ? one.before : one.after).map((other) => index.get(other)),
            index.get(one),
          ),
        ]),
      );
      row.sort((a, b) => weight.get(a) - weight.get(b) || index.get(a) - index.get(b));
      note(row);
    }
    const now = crossings(rows);
    if (now < fewest) {
      fewest = now;
      best = rows.map((row) => [...row]);
    }
  }
  best.forEach((row, at) => (rows[at] = row));
}

/** @param {number[]} values @param {number} otherwise @returns {number} */
function middle(values, otherwise) {
  if (!values.length) return otherwise;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** How many pairs of edges cross. @param {Place[][]} rows @returns {number} */
function crossings(rows) {
  let total = 0;
  for (let layer = 0; layer + 1 < rows.length; layer += 1) {
    const index = new Map(rows[layer + 1].map((one, at) => [one, at]));
    const ends = rows[layer].flatMap((one) =>
      one.after
        .map((other) => index.get(other))
        .filter((at) => at !== undefined)
        .sort((a, b) => a - b),
    );
    for (let i = 0; i < ends.length; i += 1) for (let j = 0; j < i; j += 1) if (ends[j] > ends[i]) total += 1;
  }
  return total;
}

/** Moves each box as near to the middle of its neighbours as its place in the layer allows. */
function align(rows) {
  for (const row of rows) {
    let y = 0;
    for (const one of row) {
      one.y = y + one.height / 2;
      y += one.height + BOX_GAP;
    }
  }
  for (let sweep = 0; sweep < SWEEPS * 2; sweep += 1) {
    const isForward = sweep % 2 === 0;
    for (const row of isForward ? rows : [...rows].reverse()) {
      const wanted = row.map((one) => {
        const near = isForward ? one.before : one.after;
        return middle(
          (near.length ? near : isForward ? one.after : one.before).map((other) => other.y),
          one.y,
        );
      });
      spread(row, wanted);
    }
  }
}

/**
 * Gives the boxes of a layer the places nearest to those wanted that keep order and distance: pools of neighbours share their mean.
 */
function spread(row, wanted) {
  const offsets = [];
  row.forEach((one, at) =>
    offsets.push(at === 0 ? 0 : offsets[at - 1] + (row[at - 1].height + one.height) / 2 + BOX_GAP),
  );
  const pools = [];
  wanted.forEach((y, at) => {
    pools.push({ sum: y - offsets[at], size: 1 });
    while (pools.length > 1 && mean(pools[pools.length - 2]) > mean(pools[pools.length - 1])) {
      const last = pools.pop();
      pools[pools.length - 1].sum += last.sum;
      pools[pools.length - 1].size += last.size;
    }
  });
  let at = 0;
  for (const pool of pools)
    for (let count = 0; count < pool.size; count += 1, at += 1) row[at].y = mean(pool) + offsets[at];
}

/** @param {{sum: number, size: number}} pool */
const mean = (pool) => pool.sum / pool.size;

/** @returns {Layout} */
function measure(rows, places, bends, edges) {
  const lefts = [];
  const widths = rows.map((row) => Math.max(0, ...row.map((one) => one.width)));
  let x = 0;
  rows.forEach((row, layer) => {
    lefts[layer] = x;
    x += widths[layer] + LAYER_GAP;
  });
  const all = rows.flat();
  const top = Math.min(...all.map((one) => one.y - one.height / 2));
  const bottom = Math.max(...all.map((one) => one.y + one.height / 2));
  const boxes = new Map(
    [...places.values()].map((one) => [one.id, { x: lefts[one.layer], y: one.y - one.height / 2 - top }]),
  );
  const paths = new Map(
    edges.map((edge) => {
      const from = places.get(edge.from);
      const to = places.get(edge.to);
      const points = [{ x: lefts[from.layer] + from.width, y: from.y - top }];
      for (const bend of bends.get(edge.id)) {
        points.push(
          { x: lefts[bend.layer], y: bend.y - top },
          { x: lefts[bend.layer] + widths[bend.layer], y: bend.y - top },
        );
      }
      points.push({ x: lefts[to.layer], y: to.y - top });
      return [edge.id, points];
    }),
  );
  return {
    boxes,
    edges: paths,
    order: rows.flatMap((row) => row.filter((one) => !one.isBend).map((one) => one.id)),
    width: Math.max(0, x - LAYER_GAP),
    height: bottom - top,
  };
}

/**
 * Lays out a graph from top to bottom, for narrow boxes.
 * @param {Box[]} boxes
 * @param {Edge[]} edges
 * @returns {Layout}
 */
export function layOutDownwards(boxes, edges) {
  const turned = layOut(
    boxes.map((box) => ({ id: box.id, width: box.height, height: box.width })),
    edges,
  );
  const turn = (point) => ({ x: point.y, y: point.x });
  return {
    boxes: new Map([...turned.boxes].map(([id, point]) => [id, turn(point)])),
    edges: new Map([...turned.edges].map(([id, points]) => [id, points.map(turn)])),
    order: turned.order,
    width: turned.height,
    height: turned.width,
  };
}

/** A smooth line through points. @param {Point[]} points @param {boolean} isDownwards @returns {string} */
export function curve(points, isDownwards) {
  let path = `M${points[0].x.toFixed(1)} ${points[0].y.toFixed(1)}`;
  for (let at = 1; at < points.length; at += 1) {
    const from = points[at - 1];
    const to = points[at];
    const dx = isDownwards ? 0 : (to.x - from.x) / 2;
    const dy = isDownwards ? (to.y - from.y) / 2 : 0;
    const bends = [from.x + dx, from.y + dy, to.x - dx, to.y - dy, to.x, to.y];
    path += ` C${bends.map((value) => value.toFixed(1)).join(' ')}`;
  }
  return path;
}
