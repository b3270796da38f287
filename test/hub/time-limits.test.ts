import { afterAll, beforeAll, expect, test } from 'vitest';
import { changeDatabase } from '../support/hub-database.ts';
import { serversInHub } from '../support/in-hub-servers.ts';
import { runCommand } from '../support/run-command.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  getServer,
  serverPath,
  startUntilReady,
  stopServer,
  submitFormTo,
  tokenOf,
  untilServer,
} from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

// Servers start in each of these.
const minute = 60_000;

let hub: TestHub;
beforeAll(async () => {
  hub = await createServerHub({
    Hub: {
      ...serversInHub.Hub,
      allow_named_servers: true,
      load_groups: [
        { name: 'guests', users: ['gus'] },
        { name: 'early', users: ['dora'] },
      ],
    },
    Spawner: {
      ...serversInHub.Spawner,
      start_timeout: 300,
      http_timeout: 300,
      start_at: [{ groups: ['early'], time: new Date().toISOString().slice(11, 16) }],
      idle_timeout_seconds: 3600,
      profiles: [
        { name: 'plain', default: true },
        { name: 'brief', idle_timeout_seconds: 1200 },
      ],
      limits_by_group: { guests: { idle_timeout_seconds: 0, max_age_seconds: 7200 } },
      remove_named_servers_at_limit: true,
      budgets: [
        { name: 'small', user: 'gil', period: 'month', server_hours: 2, when_over: 'keep' },
      ],
    },
  });
  await createUsers(hub, 'ann', 'bob', 'cleo', 'eve', 'fay', 'gil');
});
afterAll(() => hub?.[Symbol.asyncDispose]());

/** Lets time go by for a server, as far as it is stored. */
async function age(userName: string, change: string): Promise<void> {
  await changeDatabase(hub, (database) => {
    database
      .prepare(
        `update servers set ${change} where user_id = (select id from users where name = ?) and state = 'running'`,
      )
      .run(userName);
  });
}

const minutesLeft = ({ stops_at: at }: { readonly stops_at: string | null }): number | undefined =>
  at === null ? undefined : Math.round((Date.parse(at) - Date.now()) / minute);

/** Starts a server; its limits are known soon after that. */
async function startLimited(userName: string, serverName = '') {
  const path = serverPath(userName, serverName);
  await startUntilReady(hub, path);
  return untilServer(hub, path, ({ stops_at: at }) => at !== null, `${path} has limits`);
}

/** Has the hub look at all limits: it does after each start. */
async function look(): Promise<void> {
  await startUntilReady(hub, serverPath('bob'));
  await hub.api(serverPath('bob'), adminToken, { method: 'DELETE' });
  await untilServer(
    hub,
    serverPath('bob'),
    ({ stopped }) => stopped,
    'the server of bob is stopped',
  );
}

test('a server that is not used is stopped, its user is warned before and told why after', async () => {
  const started = await startLimited('ann');
  expect(started.stop_reason).toBe('idle_timeout');
  expect(minutesLeft(started)).toBeGreaterThanOrEqual(55);
  const browser = await hub.logIn('ann');
  expect((await browser.open(`${hub.url}hub/home`)).body).not.toContain('Extend');

  await age('ann', `last_activity_at = last_activity_at - ${55 * minute}`);
  const home = await browser.open(`${hub.url}hub/home`);
  expect(home.body).toMatch(
    /It will be stopped <time[^>]*>in \d minutes<\/time> unless it is used\./,
  );
  await submitFormTo(browser, home, /^\/hub\/extend\/ann$/);
  expect(minutesLeft(await getServer(hub, serverPath('ann')))).toBeGreaterThanOrEqual(55);
  expect((await browser.open(`${hub.url}hub/home`)).body).toContain('The server keeps running.');

  await age('ann', `last_activity_at = last_activity_at - ${61 * minute}`);
  await look();
  const path = serverPath('ann');
  const stopped = await untilServer(hub, path, (server) => server.stopped, 'the server is stopped');
  expect(stopped).toMatchObject({ stop_reason: 'idle_timeout', stops_at: null, failure: null });

  const after = 'It was stopped after 1 hour without activity.';
  expect((await browser.open(`${hub.url}hub/home`)).body).toContain(after);
  expect((await browser.open(`${hub.url}user/ann/`)).body).toContain(after);
  const audit = await hub.api('/audit?action=server.stop&target=ann', adminToken);
  expect(((await audit.json()) as { entries: object[] }).entries).toMatchObject([
    {
      actor: { kind: 'hub' },
      target: { kind: 'server', name: 'ann' },
      detail: { reason: 'idle_timeout', seconds: 3600 },
    },
  ]);
  const metrics = await (await fetch(`${hub.url}hub/metrics`, admin())).text();
  expect(metrics).toContain('hub_servers_stopped_by_limit_total{reason="idle_timeout"} 1');

  // Of the next run nothing of it is told.
  const again = await startLimited('ann');
  expect(minutesLeft(again)).toBeGreaterThanOrEqual(55);
});

test('the limit of a profile counts for servers that are started with it', async () => {
  await startUntilReady(hub, serverPath('eve', 'brief'), { profile: 'brief' });
  const limited = await untilServer(
    hub,
    serverPath('eve', 'brief'),
    ({ stops_at: at }) => at !== null,
    'it has limits',
  );
  expect(limited.stop_reason).toBe('idle_timeout');
  expect(minutesLeft(limited)).toBeGreaterThanOrEqual(15);
  expect(minutesLeft(limited)).toBeLessThanOrEqual(20);
});

test('a user keeps an idle server running for a time, and no longer', async () => {
  await startLimited('fay');
  const browser = await hub.logIn('fay');
  const page = () => browser.open(`${hub.url}hub/servers/fay`);
  const left = async () => minutesLeft(await getServer(hub, serverPath('fay')));
  // The first of the buttons.
  await submitFormTo(browser, await page(), /^\/hub\/extend\/fay$/, { keep: '14400' });
  expect(await left()).toBe(240);
  expect((await page()).body).toMatch(/It is kept running, used or not; that ends <time/);
  await age('fay', `last_activity_at = last_activity_at - ${61 * minute}`);
  await look();
  expect(await getServer(hub, serverPath('fay'))).toMatchObject({ ready: true });

  const keep = (seconds: unknown) =>
    hub.api(`${serverPath('fay')}/extend`, adminToken, {
      method: 'POST',
      body: JSON.stringify({ keep_running_seconds: seconds }),
    });
  for (const wrong of [86_401, -1, '1h', null]) expect((await keep(wrong)).status).toBe(400);
  const command = await runCommand(hub.directory, 'server extend fay --keep-running 8h'.split(' '));
  expect(command.stdout).toMatch(/^It is stopped at 2/);
  expect(await left()).toBe(480);
  expect(await (await keep(0)).json()).toMatchObject({ kept_until: null });
  expect(await left()).toBeLessThanOrEqual(60);
  const audit = await hub.api('/audit?action=server.keep&target=fay', adminToken);
  expect(((await audit.json()) as { entries: object[] }).entries).toMatchObject([
    { detail: { seconds: 0 } },
    { detail: { seconds: 28_800 } },
    { actor: { kind: 'user', name: 'fay' }, detail: { seconds: 14_400 } },
  ]);
});

test('the server of a group is started ahead, as the hub’s own doing', async () => {
  await untilServer(hub, serverPath('dora'), ({ ready }) => ready, 'it is ready');
  const audit = await hub.api('/audit?action=server.start&target=dora', adminToken);
  expect(((await audit.json()) as { entries: object[] }).entries).toMatchObject([
    { actor: { kind: 'hub' } },
  ]);
});

test('a longest age stays, whatever its user does', async () => {
  const started = await startLimited('gus');
  expect(started.stop_reason).toBe('max_age');
  expect(minutesLeft(started)).toBeGreaterThanOrEqual(115);
  const answer = await hub.api(`${serverPath('gus')}/extend`, adminToken, { method: 'POST' });
  expect(answer.status).toBe(409);
  const token = await tokenOf(hub, 'gus');
  const report = { last_activity: new Date(Date.now() + 50 * minute).toISOString() };
  await hub.api('/users/gus/activity', token, {
    method: 'POST',
    body: JSON.stringify({ servers: { '': report } }),
  });
  expect(minutesLeft(await getServer(hub, serverPath('gus')))).toBeLessThanOrEqual(120);
});

test('a server that tells of use to come is kept no longer than by use now', async () => {
  await startLimited('eve');
  const token = await tokenOf(hub, 'eve');
  const at = new Date(Date.now() + 50 * minute).toISOString();
  const answer = await hub.api('/users/eve/activity', token, {
    method: 'POST',
    body: JSON.stringify({ servers: { '': { last_activity: at } } }),
  });
  expect(answer.status).toBe(200);
  await look();
  expect(minutesLeft(await getServer(hub, serverPath('eve')))).toBeLessThanOrEqual(60);
  const extended = await hub.api(`${serverPath('eve')}/extend`, token, { method: 'POST' });
  expect(extended.status).toBe(200);
  expect(await extended.json()).toMatchObject({ stop_reason: 'idle_timeout' });
});

test('a named server is removed with its stop, where that is set', async () => {
  await startLimited('cleo', 'lab');
  await age('cleo', `last_activity_at = last_activity_at - ${61 * minute}`);
  await look();
  await until(
    async () => (await hub.api(serverPath('cleo', 'lab'), adminToken)).status === 404,
    'the server is gone',
  );
});

function admin() {
  return { headers: { authorization: `token ${adminToken}` } };
}

test('a start beyond a budget is refused, which home says before', async () => {
  const use = (hours: number) =>
    changeDatabase(hub, (database) => {
      const now = new Date();
      database
        .prepare(
          `insert or replace into usage_totals
            (kind, subject, span, at, label, wall_seconds, cpu_seconds, gib_seconds, gpu_seconds, cost)
            select 'user', id, 'month', ?, name, ?, 0, 0, 0, 0 from users where name = 'gil'`,
        )
        .run(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()), hours * 3600);
    });
  const browser = await hub.logIn('gil');
  await use(1.7);
  expect((await browser.open(`${hub.url}hub/home`)).body).toContain(
    'The budget “small” is nearly used up: 1.7 of 2 server hours, this month.',
  );
  await startUntilReady(hub, serverPath('gil'));
  expect((await browser.open(`${hub.url}hub/servers/gil`)).body).toContain(
    'is nearly used up: 1.7 of 2',
  );
  await use(2);
  const page = await browser.open(`${hub.url}hub/servers/gil`);
  const restart = await submitFormTo(browser, page, /restart-server/);
  expect(restart.body).toContain('2 of 2 server hours');
  expect((await stopServer(hub, serverPath('gil'))).status).toBe(204);
  await changeDatabase(hub, (database) => {
    // However short the run was, it is counted.
    const counted = database
      .prepare(`select user_name from usage_records where user_name = 'gil' and wall_seconds > 0`)
      .all();
    expect(counted).toHaveLength(1);
  });
  const metrics = await (await hub.api('/metrics', adminToken)).text();
  expect(metrics).toMatch(
    /^hub_server_use_seconds_total\{profile="\w*",engine="[\w.-]+"\} [\d.e-]+$/m,
  );
  const refused = await hub.api(serverPath('gil'), adminToken, { method: 'POST' });
  expect([refused.status, await refused.text()]).toEqual([
    403,
    expect.stringContaining('The budget “small” is used up: 2 of 2 server hours.'),
  ]);
  expect((await browser.open(`${hub.url}hub/usage`)).body).toContain('2 of 2 server hours');
});
