import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listMetrics } from '../../scripts/reference/metrics-page.ts';
import { freePort } from '../support/free-port.ts';
import { promtool } from '../support/promtool.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { createTestHub } from '../support/test-hub.ts';

const page = readFileSync(join(projectDirectory, 'docs', 'how-to', 'monitor.md'), 'utf8');
const [prometheusConfig = '', ruleFiles = '', probes = ''] = [
  ...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm),
].map(([, block = '']) => block);
const monitoring = join(projectDirectory, 'deploy', 'monitoring');
const rules = readFileSync(join(monitoring, 'alerts.yaml'), 'utf8');
const dashboard = JSON.parse(readFileSync(join(monitoring, 'dashboard.json'), 'utf8')) as {
  readonly panels: readonly { readonly targets?: readonly { readonly expr: string }[] }[];
};
const plotted = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'monitor-'));
  await writeFile(join(directory, 'rules.yml'), withoutAnnotations(rules));
  await writeFile(join(directory, 'prometheus.yml'), prometheusConfig);
});

afterAll(async () => rm(directory, { recursive: true }));

/** A test of promtool names every one of them, or fails. */
function withoutAnnotations(text: string): string {
  return text
    .replaceAll(/^ +annotations:\n(?: {10}.*\n)*/gm, '')
    .replaceAll(/^ +labels: .*\n/gm, '');
}

/** Samples one minute apart, in the notation of promtool, and the alerts that are due at a minute. */
interface Situation {
  readonly series: Readonly<Record<string, string>>;
  readonly minute: number;
  readonly alert: string;
  /** Labels of each alert that is due. */
  readonly due: readonly Readonly<Record<string, string>>[];
}

async function expectAlerts({ series, minute, alert, due }: Situation): Promise<void> {
  // JSON is YAML.
  const tests = {
    rule_files: ['rules.yml'],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        alert_rule_test: [
          {
            eval_time: `${minute}m`,
            alertname: alert,
            exp_alerts: due.map((labels) => ({ exp_labels: labels })),
          },
        ],
      },
    ],
  };
  await writeFile(join(directory, 'tests.yml'), JSON.stringify(tests));
  expect(await promtool(['test', 'rules', 'tests.yml'], { directory })).toMatchObject({
    code: 0,
    output: expect.stringContaining('SUCCESS'),
  });
}

test('every rule asks for metrics that there are', () => {
  const known = new Set(
    listMetrics().flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_count`, `${name}_sum`, `${name}_bucket`] : [name],
    ),
  );
  const asked = [...rules.matchAll(/\b(?:hub|process|nodejs)_\w+/g)].map(([name]) => name);
  expect(asked.length).toBeGreaterThan(4);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

test('the dashboard plots every metric of the hub', () => {
  const missing = listMetrics()
    .map(({ name }) => name)
    .filter((name) => name.startsWith('hub_') && !plotted.some((expr) => expr.includes(name)));
  expect(missing).toEqual([]);
});

test.skipIf(!requires('prometheus'))(
  'Prometheus scrapes a hub by them, and finds what the dashboard and the rules ask for',
  async () => {
    const service = { name: 'wiki', url: 'http://127.0.0.1:9', access: 'public' };
    await using hub = await createTestHub({
      Hub: { services: [service], authenticate_prometheus: false },
    });
    const config = `global: { scrape_interval: 1s, evaluation_interval: 1s }
${ruleFiles.replace(/'.*'/, JSON.stringify(join(monitoring, 'alerts.yaml')))}
${prometheusConfig.replace(/ +authorization:\n.*\n.*\n/, '').replace('127.0.0.1:8080', new URL(hub.url).host)}`;
    await writeFile(join(directory, 'scraping.yml'), config);
    await using prometheus = await startPrometheus(join(directory, 'scraping.yml'));
    const empty = async () => {
      const queries = plotted.map((expr) =>
        expr.replaceAll('$job', 'hub').replaceAll('$__rate_interval', '1m'),
      );
      const found = await Promise.all(
        queries.map(async (query) => [query, await prometheus.query(query)] as const),
      );
      // Of these a hub that nobody has used has nothing to say.
      const unused =
        /hub_(forwarded|logins|oauth|signing|server_(spawn|use)|service_(cpu|memory|uptime|restarts)|certificate)|instances/;
      return found.filter(([query, rows]) => rows.length === 0 && !unused.test(query));
    };
    await expect.poll(empty, { interval: 500 }).toEqual([]);
    await expect
      .poll(() => prometheus.rules())
      .toEqual([...rules.matchAll(/- alert: (\w+)/g)].map(([, name]) => `${name} ok`));
  },
);

describe.skipIf(!requires('promtool'))('to Prometheus’ own tool', () => {
  test('the configuration and the rules are valid', async () => {
    expect(await promtool(['check', 'rules', 'rules.yml'], { directory })).toMatchObject({
      code: 0,
    });
    expect(
      await promtool(['check', 'config', '--syntax-only', 'prometheus.yml'], { directory }),
    ).toMatchObject({
      code: 0,
    });
  });

  test.each<[what: string, situation: Situation]>([
    [
      'a service that keeps crashing',
      {
        series: { 'hub_service_state{service="wiki",state="crash_looping"}': '0x2 1x20' },
        minute: 9,
        alert: 'ServiceCrashLooping',
        due: [{ service: 'wiki', state: 'crash_looping' }],
      },
    ],
    [
      'a service that crashed once',
      {
        series: {
          'hub_service_state{service="wiki",state="crash_looping"}': '0x20',
          'hub_service_state{service="wiki",state="restarting"}': '0x9 1 0x10',
        },
        minute: 15,
        alert: 'ServiceCrashLooping',
        due: [],
      },
    ],
    [
      'a service that is up in one scrape of four',
      {
        series: { 'hub_service_up{service="wiki"}': '0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0 0 0 1 0' },
        minute: 16,
        alert: 'ServiceDown',
        due: [{ service: 'wiki' }],
      },
    ],
    [
      'a service that was restarted',
      {
        series: { 'hub_service_up{service="wiki"}': '1x9 0x1 1x9' },
        minute: 16,
        alert: 'ServiceDown',
        due: [],
      },
    ],
    [
      'a hub that cannot be reached',
      {
        series: { 'up{job="hub",instance="127.0.0.1:8080"}': '1x4 0x10' },
        minute: 10,
        alert: 'HubDown',
        due: [{ job: 'hub', instance: '127.0.0.1:8080' }],
      },
    ],
    [
      'a database that is away',
      {
        series: {
          'hub_storage_up{storage="database"}': '1x4 0x10',
          'hub_storage_up{storage="store"}': '1x20',
        },
        minute: 8,
        alert: 'HubStorageDown',
        due: [{ storage: 'database' }],
      },
    ],
    [
      'four failed starts of servers within some minutes, the first ever',
      {
        series: {
          'hub_server_spawn_duration_seconds_count{outcome="failed"}': '0x4 1 2 3 4 4x10',
          'hub_server_spawn_duration_seconds_count{outcome="ready"}': '0+5x20',
        },
        minute: 12,
        alert: 'ServersFailToStart',
        due: [{ outcome: 'failed' }],
      },
    ],
    [
      'a hub that answers with errors',
      {
        series: {
          'hub_http_request_duration_seconds_count{method="GET",code="500"}': '0+30x30',
          'hub_http_request_duration_seconds_count{method="GET",code="200"}': '0+900x30',
        },
        minute: 20,
        alert: 'HubAnswersWithErrors',
        due: [{}],
      },
    ],
    [
      'a service one in ten of whose answers is an error',
      {
        series: {
          'hub_forwarded_requests_total{route_kind="service",service="wiki",code="502"}': '0+10x30',
          'hub_forwarded_requests_total{route_kind="service",service="wiki",code="200"}': '0+90x30',
          'hub_forwarded_requests_total{route_kind="service",service="docs",code="200"}': '0+90x30',
        },
        minute: 20,
        alert: 'ServiceAnswersWithErrors',
        due: [{ service: 'wiki' }],
      },
    ],
    [
      'a log that is not read',
      {
        series: { hub_log_lines_dropped_total: '0x5 40x20' },
        minute: 10,
        alert: 'HubLogIncomplete',
        due: [{}],
      },
    ],
    [
      'passwords being tried',
      {
        series: {
          'hub_logins_total{authenticator="password",outcome="refused"}': '0+60x30',
          'hub_logins_total{authenticator="password",outcome="throttled"}': '0+60x30',
        },
        minute: 20,
        alert: 'ManyRefusedLogins',
        due: [{}],
      },
    ],
  ])('the rules and %s', async (_what, situation) => {
    await expectAlerts(situation);
  });
});

test('the probes ask for what a hub answers', async () => {
  await using hub = await createTestHub();
  const paths = [...probes.matchAll(/path: (\S+),/g)].map(([, path = '']) => path);
  expect(paths).toHaveLength(3);
  for (const path of paths) {
    const answer = await fetch(new URL(path, hub.url));
    expect([path, answer.status]).toEqual([path, 200]);
  }
});

/** Prometheus with a configuration, asked over HTTP. */
async function startPrometheus(configFile: string) {
  const port = await freePort();
  const child = spawn(
    pathOf('prometheus'),
    [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(directory, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const said = text(child.stderr);
  const ask = async (path: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const body = (await answer.json()) as { readonly status: string; readonly data: unknown };
    expect(body).toMatchObject({ status: 'success' });
    return body.data;
  };
  await expect
    .poll(async () => (child.exitCode === null ? await ask('rules').catch(() => null) : await said))
    .not.toBeNull();
  return {
    async query(query: string) {
      const data = await ask(`query?${new URLSearchParams({ query })}`);
      return (data as { readonly result: readonly unknown[] }).result;
    },
    /** Each with how its evaluation went. */
    async rules() {
      const { groups } = (await ask('rules')) as {
        groups: { rules: { name: string; health: string }[] }[];
      };
      return groups.flatMap((group) => group.rules.map(({ name, health }) => `${name} ${health}`));
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await said;
    },
  };
}
