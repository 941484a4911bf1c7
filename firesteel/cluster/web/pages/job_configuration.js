// What a job was configured with.

import { facts, filter, panel, table } from '../table.js';
import { h } from '../vdom.js';
import { loading } from './overview.js';

/**
 * Names and values as a table with a filter.
 * @param {string} id
 * @param {Array<{key: string, value: string}>} entries
 * @param {string} empty
 */
export function settings(id, entries, empty) {
  const wanted = filter(id, 'Filter by name or value');
  const rows = entries.filter(
    (entry) => !wanted.text || `${entry.key} ${entry.value}`.toLowerCase().includes(wanted.text),
  );
  return [
    entries.length > 8 && wanted.field,
    table({
      id,
      label: 'Settings',
      rows,
      key: (entry) => entry.key,
      empty: entries.length ? 'No setting matches.' : empty,
      columns: [
        {
          title: 'Setting',
          wide: true,
          sort: (entry) => entry.key,
          cell: (entry) => h('span', { class: 'mono break' }, entry.key),
        },
        {
          title: 'Value',
          wide: true,
          sort: (entry) => entry.value,
          cell: (entry) => h('span', { class: 'mono break' }, String(entry.value)),
        },
      ],
    }),
  ];
}

/** @param {import('./job.js').JobContext} context @returns {import('./job.js').Tab} */
export function configurationTab(context) {
  let config = null;
  let cluster = [];
  return {
    async load(fetcher) {
      const [job, options] = await Promise.all([
        fetcher.get(['jobs', context.jobId, 'config']),
        fetcher.getOr(['jobs', context.jobId, 'jobmanager', 'config'], []),
      ]);
      config = job['execution-config'] || {};
      cluster = options;
    },
    view() {
      if (!config) return loading();
      const own = Object.entries(config['user-config'] || {}).map(([key, value]) => ({ key, value }));
      return [
        panel(
          'Execution',
          facts([
            ['Restart strategy', config['restart-strategy'] || '–'],
            [
              'Parallelism',
              config['job-parallelism'] === -1 ? 'default of the cluster' : String(config['job-parallelism'] ?? '–'),
            ],
            ['Object reuse', config['object-reuse-mode'] ? 'yes' : 'no'],
            context.job.plan.execution && [
              'Execution',
              `${context.job.plan.execution.kind}: ${context.job.plan.execution.reason}`,
            ],
          ]),
        ),
        panel(
          'Global job parameters',
          settings(`user config ${context.jobId}`, own, 'The program has no global job parameters. Its other settings are below.'),
        ),
        cluster.length > 0 && panel('All settings of the job', settings(`job config ${context.jobId}`, cluster, '')),
      ];
    },
  };
}
