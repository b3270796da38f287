import { createMetrics } from '../../src/metrics/metrics.ts';
import { serviceStates } from '../../src/services/service-status.ts';
import { cell, code, generatedNote } from './markdown.ts';

interface MetricRow {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** Every metric there is, by reading an exposition in which each has been counted once. */
export async function listMetrics(): Promise<readonly MetricRow[]> {
  const metrics = createMetrics();
  metrics.countRequest('GET', 200, 0.01);
  metrics.countLogin('password', 'logged_in');
  metrics.countGrant('service');
  metrics.countOAuthRefusal('invalid_grant');
  metrics.countSpawn('ready', 1);
  metrics.observe({
    services: () => [
      {
        name: 'wiki',
        isUp: true,
        state: 'ready',
        restarts: 0,
        cpuCores: 0,
        memoryBytes: 0,
        uptimeSeconds: 0,
      },
    ],
    serviceStates,
    serversByState: () => ({ running: 0 }),
    users: () => Promise.resolve(0),
    openWebSockets: () => 0,
    forwardedRequests: () => [{ routeKind: 'service', status: '200', total: 1 }],
  });
  const exposition = await metrics.exposition();
  return [...exposition.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)\n(.*)$/gm)].map(
    ([, name = '', help = '', type = '', sample = '']) => ({
      name,
      help,
      type,
      labels: [...sample.matchAll(/[{,](\w+)="/g)]
        .map(([, label = '']) => label)
        .filter((label) => label !== 'le'),
    }),
  );
}

/** The reference page of the metrics. */
export async function metricsPage(): Promise<string> {
  const metrics = await listMetrics();
  const toLine = ({ name, type, help, labels }: MetricRow) =>
    `| ${code(name)} | ${type} | ${labels.map(code).join(', ')} | ${cell(help)} |`;
  const own = metrics.filter(({ name }) => name.startsWith('hub_'));
  const ofProcess = metrics.filter(({ name }) => !name.startsWith('hub_'));
  // What Node.js reports depends on what happens to be open, so its labels are left out.
  const toShortLine = ({ name, type, help }: MetricRow) =>
    `| ${code(name)} | ${type} | ${cell(help)} |`;
  return `# Metrics

${generatedNote}

\`GET /hub/metrics\` answers in the text format of Prometheus, on the public and on the internal address. It
needs a token with the scope \`read:metrics\`, unless \`Hub.authenticate_prometheus\` is false. How to collect
them and what to be woken by: [monitor](../how-to/monitor.md).

## The hub

| metric | type | labels | meaning |
|---|---|---|---|
${own.map(toLine).join('\n')}

A service is in one of the states ${serviceStates.map(code).join(', ')}; \`hub_service_state\` is 1 for the one
it is in.

## The hub's own process

| metric | type | meaning |
|---|---|---|
${ofProcess.map(toShortLine).join('\n')}
`;
}
