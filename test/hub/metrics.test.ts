import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import WebSocket from 'ws';
import { listMetrics } from '../../scripts/reference/metrics-page.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { promtool } from '../support/promtool.ts';
import { requires } from '../support/requires.ts';
import { adminToken, fixtureApp, serverPath, startUntilReady } from '../support/server-hub.ts';
import { managedService, openWithConsent, untilState } from '../support/services.ts';
import { createTestHub, submitLogin, type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
let browser: FakeBrowser;
/** Where a service is that is down at first. */
let laterPort: number;

beforeAll(async () => {
  laterPort = await freePort();
  hub = await createTestHub({
    Hub: {
      cleanup_servers: true,
      load_roles: [{ name: 'user', scopes: ['self', 'access:services'] }],
      services: [
        await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'gateway' }),
        await managedService('brief', 'fixtures/apps/web-server.cjs', { access: 'public' }),
        { name: 'later', url: `http://127.0.0.1:${laterPort}` },
      ],
    },
    Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
  });
  await untilState(hub, 'app', 'ready');
  await untilState(hub, 'brief', 'ready');
  await untilState(hub, 'later', 'unhealthy');
  browser = await hub.logIn('alice');
});

afterAll(async () => hub[Symbol.asyncDispose]());

async function exposition(): Promise<string> {
  return await (await hub.api('/metrics', adminToken)).text();
}

/** The samples of each metric as one text, by the metric's name. */
async function samples(): Promise<ReadonlyMap<string, string>> {
  const values = new Map<string, string>();
  let name = '';
  for (const line of (await exposition()).split('\n')) {
    const [, announced] = /^# TYPE (\S+)/.exec(line) ?? [];
    if (announced !== undefined) name = announced;
    else if (line !== '' && !line.startsWith('#'))
      values.set(name, `${values.get(name) ?? ''}${line}\n`);
  }
  return values;
}

/** Metrics that another test of a whole hub sees moving. */
const movedToRemote = [
  // database-away.test.ts
  'hub_change_feed_age_seconds',
  'hub_change_feed_losses_total',
  // time-limits.test.ts
  'hub_servers_stopped_by_limit_total',
  'hub_server_use_seconds_total',
  'hub_server_use_cpu_seconds_total',
  'hub_server_use_gib_seconds_total',
  'hub_server_use_gpu_seconds_total',
  // announcements.test.ts
  'hub_maintenance',
  // gateways.test.ts
  'hub_gateways',
  // instances-seen.test.ts
  'hub_instance_info',
  'hub_instances',
  // src/platform/tracing/tracing.test.ts
  'hub_trace_spans_dropped_total',
  // audit-file.test.ts
  'hub_audit_file_lines_dropped_total',
  // openid.test.ts
  'hub_logout_deliveries_total',
  // openid.test.ts
  'hub_signing_keys',
  // log-trouble.test.ts
  'hub_log_lines_dropped_total',
  // backup.test.ts
  'hub_backup_last_success_timestamp_seconds',
  // tls.test.ts
  'hub_certificate_current',
  'hub_certificate_not_after_seconds',
  // acme.test.ts
  'hub_acme_last_failure_timestamp_seconds',
  // readiness.test.ts
  'hub_storage_up',
];

/** Everything that the documented metrics of the hub are about. */
async function useTheHub(): Promise<void> {
  await submitLogin(new FakeBrowser(), hub.url, 'alice', 'wrong');
  await openWithConsent(browser, `${hub.url}services/app/`);
  await fetch(`${hub.apiUrl}/oauth2/token`, { method: 'POST', body: new URLSearchParams() });
  await fetch(`${hub.url}services/brief/exit`, { method: 'POST' });
  await hub.api('/users/bob', adminToken, { method: 'POST' });
  await startUntilReady(hub, serverPath('bob'));
}

test('each documented metric of the hub moves when what it counts happens', async () => {
  const before = await samples();
  const documented = listMetrics()
    .map(({ name }) => name)
    .filter((name) => name.startsWith('hub_') && !movedToRemote.includes(name));
  await useTheHub();
  const socket = new WebSocket(`${hub.url.replace('http', 'ws')}services/app/socket`, {
    origin: new URL(hub.url).origin,
    headers: { cookie: browser.cookieHeader(`${hub.url}services/app/`) },
  });
  await once(socket, 'message');
  const later = createServer((_request, response) => response.end()).listen(laterPort, '127.0.0.1');
  try {
    let still: string[] = documented;
    await until(async () => {
      // A server that does nothing takes no time of a processor.
      const visit = await fetch(`${hub.url}user/bob/`, {
        headers: { authorization: `token ${adminToken}` },
      });
      await visit.arrayBuffer();
      const now = await samples();
      still = still.filter((name) => now.get(name) === before.get(name));
      return still.length === 0;
    }, 'every metric has moved').catch((error: unknown) => {
      throw new Error(`never moved: ${still.join(', ')}`, { cause: error });
    });
  } finally {
    socket.close();
    later.close();
    later.closeAllConnections();
  }
});

test('a refusal of the token endpoint is counted under the code that the client is told', async () => {
  const count = async () =>
    Number(
      /^hub_oauth_refusals_total\{error="invalid_client"\} (\d+)$/m.exec(await exposition())?.[1] ??
        0,
    );
  const before = await count();
  const answer = await fetch(`${hub.apiUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'authorization_code', client_id: 'no-such-client' }),
  });
  expect(await answer.json()).toMatchObject({ error: 'invalid_client' });
  expect(await count()).toBe(before + 1);
});

test('an authorization request that is refused by redirect is counted', async () => {
  const address = new URL(`${hub.url}hub/api/oauth2/authorize`);
  const redirectUri = `${hub.url}services/app/oauth_callback`;
  address.search = String(
    new URLSearchParams({
      client_id: 'service-app',
      redirect_uri: redirectUri,
      response_type: 'token',
      state: 'xyz',
    }),
  );
  const answer = await browser.request(address.href);
  expect(answer.headers.location).toContain('error=unsupported_response_type');
  expect(await exposition()).toContain(
    'hub_oauth_refusals_total{error="unsupported_response_type"} 1',
  );
});

test.skipIf(!requires('promtool'))(
  'what Prometheus is told passes the lint of its own tool',
  async () => {
    expect(await promtool(['check', 'metrics'], { input: await exposition() })).toEqual({
      code: 0,
      output: '',
    });
  },
);

test('they come as OpenMetrics for a scraper that prefers it, and are called the same afterwards', async () => {
  const ask = (accept: string) => hub.api('/metrics', adminToken, { headers: { accept } });
  const prometheus =
    'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  const answer = await ask(prometheus);
  expect(answer.headers.get('content-type')).toContain('application/openmetrics-text');
  expect(answer.headers.get('vary')).toContain('Accept');
  const text = await answer.text();
  expect(text).toMatch(/\n# EOF\n$/);
  expect(text).not.toContain('\n\n');
  const logins = /^hub_logins_total\{authenticator="dummy",outcome="logged_in"\} [1-9]/m;
  expect(text).toContain('# TYPE hub_logins counter');
  expect(text).toMatch(logins);
  const old = await ask('text/plain;q=0.5,application/openmetrics-text;q=0.1');
  expect(old.headers.get('content-type')).toContain('text/plain');
  const oldText = await old.text();
  expect(oldText).toContain('# TYPE hub_logins_total counter');
  expect(oldText).toMatch(logins);
  const names = (of: string) =>
    [...new Set([...of.matchAll(/^(hub_\w+)[{ ]/gm)].map(([, name]) => name))].toSorted();
  expect(names(text)).toEqual(names(oldText));
});

test('they are compressed for a scraper that takes it', async () => {
  const ask = (coding: string) =>
    hub.api('/metrics', adminToken, { headers: { 'accept-encoding': coding } });
  const [compressed, plain] = [await ask('gzip'), await ask('identity')];
  expect(compressed.headers.get('content-encoding')).toBe('gzip');
  expect(plain.headers.get('content-encoding')).toBeNull();
  for (const answer of [compressed, plain]) {
    expect(answer.headers.get('content-type')).toContain('text/plain');
    expect(await answer.text()).toContain('# TYPE hub_service_state gauge');
  }
});
