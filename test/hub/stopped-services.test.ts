import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, passwordHubConfig, testPassword } from '../support/password-hub.ts';
import { adminToken, isAlive, tokenOf } from '../support/server-hub.ts';
import { printsEnvironment, serviceModel, untilState } from '../support/services.ts';
import { type TestHub, type TestHubConfig, until } from '../support/test-hub.ts';

let hub: TestHub;
let config: TestHubConfig;

beforeAll(async () => {
  config = passwordHubConfig({
    Hub: {
      services: [
        await printsEnvironment('tool', { info: { title: 'Tool', contact: 'The tool shop' } }),
        { name: 'outside', url: 'http://127.0.0.1:9' },
      ],
    },
  });
  hub = await createPasswordHub(['ada', 'bob'], config);
  await untilState(hub, 'tool', 'ready');
});
afterAll(async () => hub[Symbol.asyncDispose]());

const act = async (auditEvent: string, name = 'tool', token = adminToken) =>
  (await hub.api(`/services/${name}/${auditEvent}`, token, { method: 'POST' })).status;
const tool = () => serviceModel(hub, 'tool');
const page = async () => {
  const answer = await fetch(`${hub.url}services/tool/`, { headers: { accept: 'text/html' } });
  return { status: answer.status, text: await answer.text() };
};
const auditEvents = async () => {
  const answer = await hub.api('/audit?target=tool&limit=50', adminToken);
  const { entries } = (await answer.json()) as { entries: { action: string }[] };
  return entries.map(({ action }) => action);
};

/** Until it has ended and been given up, too. */
const untilStopped = () =>
  until(async () => {
    const { state, instance } = await tool();
    return state === 'stopped' && instance === null;
  }, 'the service is stopped');

async function stopTool(): Promise<void> {
  expect(await act('stop')).toBe(202);
  await untilStopped();
}

async function startTool(): Promise<void> {
  expect(await act('start')).toBe(202);
  await untilState(hub, 'tool', 'ready');
}

test('one that does not answer comes first in the list of the administration', async () => {
  await untilState(hub, 'outside', 'unhealthy');
  const ada = await hub.logIn('ada', testPassword);
  const { body } = await ada.request(`${hub.url}hub/admin/services`);
  const listed = [...body.matchAll(/data-key="(tool|outside)"/g)].map(([, name]) => name);
  expect(listed).toEqual(['outside', 'tool']);
});

describe('a service that is stopped by hand', () => {
  test('ends, and says who stopped it and when, wherever one looks', async () => {
    const { pid } = await tool();
    const token = await tokenOf(hub, 'ada');
    expect(await act('stop', 'tool', token)).toBe(202);
    await untilStopped();
    expect(isAlive(Number(pid))).toBe(false);
    const { stopped, last_error, since, last_exit } = await tool();
    expect({ stopped, last_error }).toEqual({
      stopped: { by: 'ada', at: expect.any(String) },
      last_error: null,
    });
    expect([since, last_exit]).toMatchObject([(stopped as { at: string }).at, { code: null }]);
    const metrics = await (await hub.api('/metrics', adminToken)).text();
    expect(metrics).toContain('hub_service_state{service="tool",state="stopped"} 1');
    expect(await page()).toMatchObject({ status: 503 });
    const { text } = await page();
    for (const said of ['Tool is stopped', 'by an administrator', 'The tool shop']) {
      expect(text).toContain(said);
    }
    // A second time changes nothing, and is no deed.
    expect(await act('stop')).toBe(202);
    expect((await tool())['stopped']).toEqual(stopped);
    expect((await auditEvents()).filter((action) => action === 'service.stop')).toHaveLength(1);
    await startTool();
    expect((await tool())['stopped']).toBeNull();
    expect((await page()).status).toBe(200);
  });

  test('stays stopped over a reload and a restart of the hub', async () => {
    await stopTool();
    await hub.reload(config);
    expect(await tool()).toMatchObject({ state: 'stopped', pid: null });
    hub = await hub.restart();
    expect(await tool()).toMatchObject({ state: 'stopped', stopped: { by: 'admin-service' } });
    expect((await page()).text).toContain('Tool is stopped');
    await startTool();
  });

  test('runs again when its configuration changes, and not when only its title does', async () => {
    await stopTool();
    const services = config.Hub?.['services'] as Record<string, unknown>[];
    const [first = {}, ...others] = services;
    const withTool = (changes: object) => ({
      ...config,
      Hub: { ...config.Hub, services: [{ ...first, ...changes }, ...others] },
    });
    await hub.reload(withTool({ info: { title: 'Another title' } }));
    expect(await tool()).toMatchObject({ state: 'stopped', pid: null });
    await hub.reload(withTool({ environment: { CHANGED: 'yes' } }));
    await untilState(hub, 'tool', 'ready');
    expect((await tool())['stopped']).toBeNull();
    await hub.reload(config);
    await untilState(hub, 'tool', 'ready');
  });

  test('is started by a restart as well', async () => {
    await stopTool();
    expect(await act('restart')).toBe(202);
    await untilState(hub, 'tool', 'ready');
    expect((await auditEvents())[0]).toBe('service.start');
  });
});

test('only who may administer a service stops and starts it, and no one an external one', async () => {
  for (const auditEvent of ['start', 'stop']) {
    expect([auditEvent, await act(auditEvent, 'tool', await tokenOf(hub, 'bob'))]).toEqual([
      auditEvent,
      403,
    ]);
    expect([auditEvent, await act(auditEvent, 'outside')]).toEqual([auditEvent, 400]);
    expect([auditEvent, await act(auditEvent, 'missing')]).toEqual([auditEvent, 404]);
  }
});

test('the page of a service stops and starts it', async () => {
  const browser = await hub.logIn('ada', testPassword);
  const url = `${hub.url}hub/admin/services/tool`;
  const press = async (auditEvent: string) =>
    submitTo(browser, await browser.request(url), `/hub/admin/services/tool/${auditEvent}`);
  expect((await press('stop')).headers.location).toBe('/hub/admin/services/tool');
  await until(
    async () => (await browser.request(url)).body.includes('by ada'),
    'the page says who stopped it',
  );
  await untilStopped();
  expect((await browser.request(`${hub.url}hub/admin/services`)).body).toContain('by ada');
  expect((await press('start')).status).toBe(303);
  // The page that comes next shows it on its way.
  expect((await browser.request(url)).body).not.toMatch(/class="status[^>]*>Stopped/);
  await untilState(hub, 'tool', 'ready');
});
