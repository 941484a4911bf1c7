// Line charts: a time axis, several series distinguished by colour, dash and name, and the values under the pointer.

import { clock } from './format.js';
import { draw, h } from './vdom.js';

/**
 * @typedef {Object} Series
 * @property {string} name
 * @property {Array<[number, number]>} points Times in milliseconds, and values.
 * @typedef {Object} ChartData
 * @property {string} label What it shows, for screen readers.
 * @property {Series[]} series
 * @property {function(any): string} format
 * @property {boolean} [binary] Sizes, whose axis has round numbers of KB or MB.
 * @property {number} [height]
 * @property {boolean} [dots] Marks each point.
 * @property {function(number): string} [formatTime]
 */

const LEFT = 74;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 22;
const DASHES = ['', '6 3', '2 3', '8 3 2 3', '1 2', '10 4'];

/** How many series can be distinguished. */
export const SERIES_STYLES = DASHES.length;

/** A chart. @param {ChartData} data */
export function chart(data) {
  return h('div', { class: 'chart', key: `chart ${data.label}`, widget: chartWidget, data });
}

/** @param {HTMLElement} element @param {ChartData} data */
function chartWidget(element, data) {
  let current = data;
  let hover = null;
  let width = element.clientWidth || 480;
  const paint = () => draw(element, chartView(current, width, hover, events));
  const events = {
    onpointermove: (event) => {
      const box = element.querySelector('svg').getBoundingClientRect();
      hover = ((event.clientX - box.left) / box.width) * width;
      paint();
    },
    onpointerleave: () => {
      hover = null;
      paint();
    },
    onkeydown: (event) => {
      const times = timesOf(current.series);
      if (!times.length || (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight')) return;
      event.preventDefault();
      const scale = scales(current, width);
      const at =
        hover === null ? times.length - 1 : nearest(times, scale.time(hover)) + (event.key === 'ArrowRight' ? 1 : -1);
      hover = scale.x(times[Math.max(0, Math.min(times.length - 1, at))]);
      paint();
    },
    onblur: () => {
      hover = null;
      paint();
    },
  };
  const observer = new ResizeObserver(() => {
    if (element.clientWidth && Math.abs(element.clientWidth - width) > 1) {
      width = element.clientWidth;
      paint();
    }
  });
  observer.observe(element);
  paint();
  return {
    update(next) {
      current = next;
      paint();
    },
    destroy: () => observer.disconnect(),
  };
}

/** @param {Series[]} series @returns {number[]} */
function timesOf(series) {
  const times = new Set();
  for (const one of series) for (const [at] of one.points) times.add(at);
  return [...times].sort((a, b) => a - b);
}

/** The index of the time closest to one. @param {number[]} times @param {number} at @returns {number} */
function nearest(times, at) {
  let best = 0;
  times.forEach((time, index) => {
    if (Math.abs(time - at) < Math.abs(times[best] - at)) best = index;
  });
  return best;
}

/** A round number not smaller than one. @param {number} value @returns {number} */
export function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 2.5, 5, 10]) if (value <= factor * power * 1.0000001) return factor * power;
  return 10 * power;
}

/** @param {ChartData} data @param {number} width */
function scales(data, width) {
  const height = data.height || 160;
  const times = timesOf(data.series);
  const values = data.series.flatMap((one) => one.points.map((point) => point[1])).filter(Number.isFinite);
  const round = (value) => {
    const unit = data.binary && value >= 1024 ? 1024 ** Math.floor(Math.log2(value) / 10) : 1;
    return roundUp(value / unit) * unit;
  };
  const low = Math.min(0, ...values);
  const top = round(Math.max(0, ...values));
  const bottom = low < 0 ? -round(-low) : 0;
  const start = times[0] ?? 0;
  const end = times[times.length - 1] ?? 1;
  const span = end - start || 1;
  const inner = Math.max(10, width - LEFT - RIGHT);
  return {
    height,
    top,
    bottom,
    start,
    end,
    x: (at) => LEFT + (start === end ? inner / 2 : ((at - start) / span) * inner),
    y: (value) => TOP + (1 - (value - bottom) / (top - bottom || 1)) * (height - TOP - BOTTOM),
    time: (x) => start + ((x - LEFT) / inner) * span,
  };
}

/** @param {ChartData} data @param {number} width @param {number|null} hover @param {Object<string, any>} events */
function chartView(data, width, hover, events) {
  const scale = scales(data, width);
  const times = timesOf(data.series);
  const formatTime = data.formatTime || clock;
  const ticks = [scale.bottom, (scale.bottom + scale.top) / 2, scale.top];
  const at = hover === null || !times.length ? null : times[nearest(times, scale.time(hover))];
  const last = data.series.map(
    (one) => `${one.name}: ${one.points.length ? data.format(one.points[one.points.length - 1][1]) : 'no value'}`,
  );
  return [
    h(
      'svg',
      {
        viewBox: `0 0 ${width} ${scale.height}`,
        height: scale.height,
        width: '100%',
        role: 'img',
        tabindex: 0,
        'aria-label': `${data.label}. Latest: ${last.join(', ')}. Arrow keys move through the values.`,
        ...events,
      },
      ticks.map((tick, index) => [
        h('line', {
          key: `grid ${index}`,
          class: 'chart-grid',
          x1: LEFT,
          x2: width - RIGHT,
          y1: scale.y(tick),
          y2: scale.y(tick),
        }),
        h(
          'text',
          { key: `tick ${index}`, class: 'chart-tick', x: LEFT - 8, y: scale.y(tick) + 4, 'text-anchor': 'end' },
          data.format(tick),
        ),
      ]),
      times.length > 0 &&
        h('text', { key: 'start', class: 'chart-tick', x: LEFT, y: scale.height - 6 }, formatTime(scale.start)),
      times.length > 1 &&
        h(
          'text',
          { key: 'end', class: 'chart-tick', x: width - RIGHT, y: scale.height - 6, 'text-anchor': 'end' },
          formatTime(scale.end),
        ),
      data.series.map((one, index) => line(one, index, scale, data.dots || one.points.length === 1)),
      at !== null &&
        h('line', {
          key: 'cursor',
          class: 'chart-cursor',
          x1: scale.x(at),
          x2: scale.x(at),
          y1: TOP,
          y2: scale.height - BOTTOM,
        }),
    ),
    h(
      'ul',
      { class: 'legend', 'aria-hidden': 'true' },
      at !== null && h('li', { key: 'time', class: 'legend-time' }, formatTime(at)),
      data.series.map((one, index) => {
        const points = one.points;
        const value = at === null ? points[points.length - 1]?.[1] : points.find((point) => point[0] === at)?.[1];
        return h(
          'li',
          { key: one.name, title: one.name },
          swatch(index),
          h('span', { class: 'legend-name' }, one.name),
          h('span', { class: 'legend-value' }, value === undefined ? '' : data.format(value)),
        );
      }),
    ),
  ];
}

/** @param {Series} series @param {number} index @param {any} scale @param {boolean} dots */
function line(series, index, scale, dots) {
  const points = series.points.filter((point) => Number.isFinite(point[1]));
  const style = index % SERIES_STYLES;
  return [
    h('polyline', {
      key: `line ${series.name}`,
      class: `series series-${style}`,
      'stroke-dasharray': DASHES[style],
      points: points.map(([at, value]) => `${scale.x(at).toFixed(1)},${scale.y(value).toFixed(1)}`).join(' '),
    }),
    dots &&
      points.map(([at, value]) =>
        h('circle', {
          key: `dot ${series.name} ${at}`,
          class: `dot series-${style}`,
          cx: scale.x(at),
          cy: scale.y(value),
          r: 2.5,
        }),
      ),
  ];
}

/** @param {number} index */
function swatch(index) {
  const style = index % SERIES_STYLES;
  return h(
    'svg',
    { class: 'swatch', width: 22, height: 8, viewBox: '0 0 22 8' },
    h('line', { class: `series series-${style}`, 'stroke-dasharray': DASHES[style], x1: 0, x2: 22, y1: 4, y2: 4 }),
  );
}
