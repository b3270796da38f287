import { createMetrics, type MetricDescription } from '../../src/platform/metrics/metrics.ts';
import { serviceStates } from '../../src/workloads/services/service-status.ts';
import { cell, code, generatedNote } from './markdown.ts';

/** Every metric there is, as the hub itself describes it. */
export function listMetrics(): readonly MetricDescription[] {
  const metrics = createMetrics();
  metrics.observe({
    services: () => [],
    certificates: () => [],
    serviceStates,
    instance: { name: '', version: '' },
    instancesByState: () => ({ up: 0, down: 0 }),
    gateways: () => 0,
    isInMaintenance: () => Promise.resolve(false),
    serversByState: () => ({}),
    serversTogether: () => ({ cpuCores: 0, memoryBytes: 0 }),
    users: () => Promise.resolve(0),
    storagesUp: () => Promise.resolve({}),
    lastBackup: () => Promise.resolve(undefined),
    signingKeys: () => Promise.resolve([]),
    signingKeyStates: { algorithms: [], states: [] },
    openWebSockets: () => 0,
    droppedSpans: () => 0,
    droppedLogLines: () => 0,
    acmeFailure: async () => undefined,
    changeFeed: () => ({ ageSeconds: 0, losses: 0 }),
  });
  return metrics.list();
}

/** The reference page of the metrics. */
export function metricsPage(): string {
  const metrics = listMetrics();
  const toLine = ({ name, type, help, labels }: MetricDescription) =>
    `| ${code(name)} | ${type} | ${labels.map(code).join(', ')} | ${cell(help)} |`;
  const own = metrics.filter(({ name }) => name.startsWith('hub_'));
  const ofProcess = metrics.filter(({ name }) => !name.startsWith('hub_'));
  // What Node.js reports depends on what happens to be open, so its labels are left out.
  const toShortLine = ({ name, type, help }: MetricDescription) =>
    `| ${code(name)} | ${type} | ${cell(help)} |`;
  return `# Metrics

${generatedNote}

\`GET /hub/metrics\` answers in the text format of Prometheus or, where that is preferred, OpenMetrics, on the public and on the internal address. It
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
