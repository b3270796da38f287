import { expect, test } from 'vitest';
import { canFreeze } from '../../src/spawning/processes/cgroup.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';

test.skipIf(!canFreeze())(
  'a server that is idle rests, answers the next request, and is stopped while it rests',
  async () => {
    await using hub = await createServerHub({
      Spawner: { idle_timeout_seconds: 2, idle_action: 'pause' },
    });
    await createUsers(hub, 'ann');
    const ann = serverPath('ann');
    const untilPaused = () =>
      untilServer(hub, ann, (server) => server.paused_at !== null, 'it rests');
    await startUntilReady(hub, ann);
    expect(await untilPaused()).toMatchObject({ ready: true, stops_at: null, stop_reason: null });
    const browser = await hub.logIn('ann');
    expect((await browser.open(`${hub.url}hub/home`)).body).toContain(
      'because it was idle; it goes on as soon as it is opened.',
    );

    expect((await browser.open(`${hub.url}user/ann/`)).status).toBe(200);
    await untilServer(hub, ann, (server) => server.paused_at === null, 'it goes on');

    await untilPaused();
    expect([202, 204]).toContain((await stopServer(hub, ann)).status);
    const ended = await untilServer(hub, ann, ({ stopped }) => stopped, 'it is stopped');
    expect(ended).toMatchObject({ paused_at: null, stop_reason: null, failure: null });
    const audit = await hub.api('/audit?target=ann', adminToken);
    const actions = ((await audit.json()) as { entries: { action: string }[] }).entries
      .map(({ action }) => action)
      .filter((action) => /^server\.(?:pause|wake)$/.test(action));
    expect(actions).toEqual(['server.pause', 'server.wake', 'server.pause']);
  },
);
