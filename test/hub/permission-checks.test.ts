import { expect, test } from 'vitest';
import { createExternalHub } from '../support/external-hub.ts';
import { createOwnService } from '../support/own-service.ts';
import { untilState } from '../support/services.ts';
import { watchStatements } from '../support/statements.ts';
import { createTestHub } from '../support/test-hub.ts';

const adminToken = 'admin-service-token';

test('who may do what is known without the database, as long as nothing changes', async () => {
  await using app = await createOwnService('app');
  // With a provider that is asked now and then about those who logged in there.
  await using external = await createExternalHub({
    Hub: {
      load_groups: [{ name: 'crew', users: ['alice'] }],
      load_roles: [
        { name: 'user', scopes: ['self', 'access:services', 'read:hub'] },
        { name: 'crew', scopes: ['access:servers!group=crew'], groups: ['crew'] },
      ],
      services: [{ ...app.config, access: 'gateway' }],
    },
  });
  const { hub } = external;
  app.connect(hub);
  await untilState(hub, 'app', 'ready');
  const browser = await external.logIn('alice');
  const created = await hub.api('/users/alice/tokens', adminToken, { method: 'POST' });
  const { token } = (await created.json()) as { token: string };
  const guarded = `${hub.url}services/app/`;
  await browser.open(guarded);

  const requests = {
    'the API with a token': () => hub.api('/info', token),
    'the API with a login': () => browser.request(`${hub.url}hub/api/info`),
    'a guarded app with a token': () =>
      fetch(guarded, { headers: { authorization: `token ${token}` } }),
    'a guarded app with a login': () => browser.request(guarded),
  };
  using watch = watchStatements();
  for (const [what, request] of Object.entries(requests)) {
    expect((await request()).status, what).not.toBe(403);
    // What is written may come at any time, and a timer may read something during one of the requests.
    const reads = async () =>
      (await watch.during(request)).filter(
        // The session of a browser holds more than the login, so it is read each time.
        (statement) => /^select/i.test(statement) && !statement.includes('from "keyv"'),
      );
    expect([await reads(), await reads(), await reads()], what).toContainEqual([]);
  }
});

test('owners of tokens who ask who they are at once share the query for their servers', async () => {
  await using hub = await createTestHub();
  const names = Array.from({ length: 12 }, (_, index) => `user-${index}`);
  const created = await hub.api('/users', adminToken, {
    method: 'POST',
    body: JSON.stringify({ usernames: names }),
  });
  expect(created.status).toBe(201);
  const tokens = await Promise.all(
    names.map(async (name) => {
      const issued = await hub.api(`/users/${name}/tokens`, adminToken, { method: 'POST' });
      return ((await issued.json()) as { token: string }).token;
    }),
  );
  const askAll = async () => {
    const answers = await Promise.all(tokens.map((token) => hub.api('/user', token)));
    return Promise.all(answers.map(async (answer) => ((await answer.json()) as User).name));
  };
  expect(await askAll()).toEqual(names);
  using watch = watchStatements();
  const statements = await watch.during(askAll);
  const ofServers = statements.filter((statement) => statement.includes('from "servers"'));
  expect(ofServers.length).toBeGreaterThan(0);
  expect(ofServers.length).toBeLessThan(names.length);
});

interface User {
  readonly name: string;
}
