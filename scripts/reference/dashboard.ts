import type { MetricDescription } from '../../src/platform/metrics/metrics.ts';
import { listMetrics } from './metrics-page.ts';

/** Rows of the dashboard, each with what its metrics begin with; what fits none is of the last. */
const rows: readonly (readonly [title: string, prefixes: readonly string[]])[] = [
  ['Requests', ['hub_http_', 'hub_forwarded_', 'hub_open_']],
  ['Servers of users', ['hub_server', 'hub_maintenance']],
  ['Services', ['hub_service_']],
  ['Logins', ['hub_login', 'hub_oauth_', 'hub_logout_', 'hub_signing_', 'hub_users']],
  [
    'Process',
    ['process_cpu_seconds', 'process_resident', 'process_open_fds', 'nodejs_eventloop_lag_p99'],
  ],
  ['Hub', ['hub_']],
];

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

const selector = '{job="$job"}';
const [columns, width, height] = [24, 8, 7];

/** What is plotted of a metric: rates of what is counted, and of durations how many and how long. */
function targetsOf({ name, type, labels }: MetricDescription): readonly Target[] {
  const legendFormat = labels.map((label) => `{{${label}}}`).join(' ');
  const by = (more: readonly string[] = []) => {
    const all = [...labels, ...more];
    return all.length === 0 ? 'sum ' : `sum by (${all.join(', ')}) `;
  };
  if (type === 'counter')
    return [{ expr: `${by()}(rate(${name}${selector}[$__rate_interval]))`, legendFormat }];
  // A moment is plotted as what is left until it.
  const since = /_(timestamp|not_after)_seconds$/.test(name) ? ' - time()' : '';
  if (type !== 'histogram') return [{ expr: `${name}${selector}${since}`, legendFormat }];
  return [0.5, 0.99].map((quantile) => ({
    expr: `histogram_quantile(${quantile}, sum by (le) (rate(${name}_bucket${selector}[$__rate_interval])))`,
    legendFormat: `p${quantile * 100}`,
  }));
}

function unitOf({ name, type }: MetricDescription): string {
  if (type === 'counter') return name.includes('cpu_seconds') ? 'none' : 'cps';
  if (name.endsWith('_seconds')) return 's';
  return name.endsWith('_bytes') ? 'bytes' : 'none';
}

/** `hub_server_spawn_duration_seconds` as a person would say it. */
function titleOf(name: string): string {
  const words = name
    .replace(/^(hub|process|nodejs)_/, '')
    .replace(/_(total|seconds|bytes)$/, '')
    .replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A dashboard of Grafana with every metric of the hub, in rows, for one Prometheus and one job. */
export function dashboard(): string {
  const left = new Set(listMetrics());
  const datasource = { type: 'prometheus', uid: '$datasource' };
  const panels: object[] = [];
  let y = 0;
  for (const [title, prefixes] of rows) {
    const shown = [...left].filter(({ name }) =>
      prefixes.some((prefix) => name.startsWith(prefix)),
    );
    panels.push({ type: 'row', title, collapsed: false, gridPos: { x: 0, y, w: columns, h: 1 } });
    y += 1;
    for (const [index, metric] of shown.entries()) {
      left.delete(metric);
      panels.push({
        type: 'timeseries',
        title: titleOf(metric.name),
        description: metric.help,
        datasource,
        gridPos: {
          x: (index * width) % columns,
          y: y + height * Math.floor((index * width) / columns),
          w: width,
          h: height,
        },
        fieldConfig: { defaults: { unit: unitOf(metric) }, overrides: [] },
        targets: targetsOf(metric).map((target, at) => ({
          ...target,
          datasource,
          refId: String.fromCharCode(65 + at),
        })),
      });
    }
    y += height * Math.ceil((shown.length * width) / columns);
  }
  const found = {
    uid: 'hub',
    title: 'Hub',
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
        {
          name: 'job',
          label: 'Job',
          type: 'query',
          datasource,
          query: 'label_values(hub_instance_info, job)',
          refresh: 1,
        },
      ],
    },
    panels: panels.map((panel, id) => ({ id: id + 1, ...panel })),
  };
  return `${JSON.stringify(found, undefined, 2)}\n`;
}
