// How busy the vertices of a job are, and how much passes them.

import { eachOf } from '../api.js';

/**
 * @typedef {Object} Flow Averages over the subtasks, shares of 1; rates are sums.
 * @property {number|null} busy
 * @property {number|null} backpressured
 * @property {number|null} idle
 * @property {number|null} busiest The busiest subtask.
 * @property {number|null} mostBackpressured
 * @property {number|null} recordsIn
 * @property {number|null} recordsOut
 * @property {number|null} bytesIn
 * @property {number|null} bytesOut
 * @property {number|null} watermark The lowest.
 */

const METRICS = [
  'busyTimeMsPerSecond',
  'backPressuredTimeMsPerSecond',
  'idleTimeMsPerSecond',
  'numRecordsInPerSecond',
  'numRecordsOutPerSecond',
  'numBytesInPerSecond',
  'numBytesOutPerSecond',
  'currentInputWatermark',
];

/** In a large graph only so many vertices are asked about in one refresh; the others have their turn in the next. */
const AT_ONCE = 40;

/** @param {any} value @returns {number|null} */
function number(value) {
  const converted = typeof value === 'string' ? Number(value) : value;
  return typeof converted === 'number' && Number.isFinite(converted) ? converted : null;
}

/** A share of a second, from milliseconds. @param {any} value @returns {number|null} */
function share(value) {
  const milliseconds = number(value);
  return milliseconds === null ? null : Math.max(0, Math.min(1, milliseconds / 1000));
}

/** @param {any[]} answer Answer of …/subtasks/metrics. @returns {Flow} */
export function flowOf(answer) {
  const by = new Map(answer.map((metric) => [metric.id, metric]));
  const of = (name) => by.get(name) || {};
  const times = ['busyTimeMsPerSecond', 'backPressuredTimeMsPerSecond', 'idleTimeMsPerSecond'];
  // subtasks that have finished spend no time, and do not count
  const all = times.reduce((sum, name) => sum + (number(of(name).avg) || 0), 0);
  const part = (name) => (all > 0 ? share((1000 * (number(of(name).avg) || 0)) / all) : share(of(name).avg));
  const [busy, backpressured, idle] = times.map(part);
  return {
    busy,
    backpressured,
    idle,
    busiest: share(of('busyTimeMsPerSecond').max),
    mostBackpressured: share(of('backPressuredTimeMsPerSecond').max),
    recordsIn: number(of('numRecordsInPerSecond').sum),
    recordsOut: number(of('numRecordsOutPerSecond').sum),
    bytesIn: number(of('numBytesInPerSecond').sum),
    bytesOut: number(of('numBytesOutPerSecond').sum),
    watermark: number(of('currentInputWatermark').min),
  };
}

/** What is left of a vertex that has ended: how it spent its whole life. @param {any} metrics @returns {Flow} */
export function wholeFlow(metrics) {
  const [busy, backpressured, idle] = ['busy', 'backpressured', 'idle'].map(
    (what) => number(metrics[`accumulated-${what}-time`]) || 0,
  );
  const all = busy + backpressured + idle;
  const part = (time) => (all > 0 ? time / all : null);
  return {
    busy: part(busy),
    backpressured: part(backpressured),
    idle: part(idle),
    busiest: part(busy),
    mostBackpressured: part(backpressured),
    recordsIn: null,
    recordsOut: null,
    bytesIn: null,
    bytesOut: null,
    watermark: null,
  };
}

let turn = 0;

/**
 * Asks how busy the vertices are.
 * @param {import('../refresher.js').Fetcher} fetcher
 * @param {import('./job.js').JobContext} context
 */
export async function loadFlow(fetcher, context) {
  const all = context.job.vertices.map((vertex) => vertex.id);
  const selected = context.page.route.query.get('vertex');
  const start = all.length > AT_ONCE ? (turn++ * AT_ONCE) % all.length : 0;
  const asked = new Set([...all.slice(start), ...all.slice(0, start)].slice(0, AT_ONCE));
  if (selected && all.includes(selected)) asked.add(selected);
  await eachOf([...asked], async (id) => {
    const answer = await fetcher.getOr(['jobs', context.jobId, 'vertices', id, 'subtasks', 'metrics'], [], {
      get: METRICS.join(','),
    });
    context.flow.set(id, flowOf(answer));
  });
}
