// How evenly records are spread over the subtasks of each vertex.

import { eachOf } from '../api.js';
import { compact, count } from '../format.js';
import { panel, table } from '../table.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

/** Above these the spread is worth a look. */
const NOTEWORTHY = 50;

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function skewTab(context) {
  let rows = null;
  return {
    async load(fetcher) {
      rows = await eachOf(context.job.vertices, async (vertex) => {
        const [metric] = await fetcher.getOr(
          ['jobs', context.jobId, 'vertices', vertex.id, 'subtasks', 'metrics'],
          [],
          { get: 'numRecordsIn' },
        );
        return { vertex, metric: metric || null, skew: metric ? Number(metric.skew) : NaN };
      });
    },
    view() {
      if (!rows) return loading();
      const known = rows.filter((row) => row.metric).sort((a, b) => (b.skew || 0) - (a.skew || 0));
      return panel(
        'Data skew',
        h(
          'p',
          { class: 'muted' },
          'How unevenly the records are distributed over the subtasks of a vertex: 0% is even. High skew after a HASH edge means that few keys have most of the records; few subtasks then do most of the work.',
        ),
        table({
          id: `skew ${context.jobId}`,
          label: 'Data skew by vertex',
          rows: known,
          key: (row) => row.vertex.id,
          empty: 'There are no measurements yet.',
          columns: [
            {
              title: 'Vertex',
              wide: true,
              sort: (row) => row.vertex.name,
              cell: (row) =>
                h('a', { class: 'clamp', href: context.vertexHref(row.vertex.id, 'subtasks') }, row.vertex.name),
            },
            {
              title: 'Skew',
              sort: (row) => row.skew,
              cell: (row) =>
                h(
                  'div',
                  { class: 'load-cell' },
                  h(
                    'span',
                    { class: `meter${row.skew >= NOTEWORTHY ? ' is-warning' : ''}` },
                    h('span', { style: { width: `${Math.max(0, Math.min(100, row.skew || 0))}%` } }),
                  ),
                  h(
                    'span',
                    { class: 'small' },
                    Number.isFinite(row.skew)
                      ? `${Math.round(row.skew)}%${row.skew >= NOTEWORTHY ? ' – uneven' : ''}`
                      : 'no records',
                  ),
                ),
            },
            {
              title: 'Fewest',
              number: true,
              sort: (row) => Number(row.metric.min),
              cell: (row) => compact(Number(row.metric.min)),
            },
            {
              title: 'Average',
              number: true,
              sort: (row) => Number(row.metric.avg),
              cell: (row) => compact(Number(row.metric.avg)),
            },
            {
              title: 'Most',
              number: true,
              sort: (row) => Number(row.metric.max),
              cell: (row) => compact(Number(row.metric.max)),
            },
            {
              title: 'Parallelism',
              number: true,
              sort: (row) => row.vertex.parallelism,
              cell: (row) => count(row.vertex.parallelism),
            },
          ],
        }),
      );
    },
  };
}
