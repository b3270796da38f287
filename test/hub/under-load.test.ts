import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { defaultArgon2Cost } from '../../src/identity/authentication/password-hash.ts';
import { head, rawRequest, statusOf } from '../attacks/proxy-harness.ts';
import { createRandom } from '../attacks/request-mutator.ts';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, submitLogin, until } from '../support/test-hub.ts';

async function startApp(name: string) {
  const server = createServer((_req, res) => res.end(name)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

describe('a reload under load', () => {
  test('fails no request: services come, go and move while others are used', async () => {
    await using first = await startApp('first');
    await using second = await startApp('second');
    const service = (name: string, url: string) => ({ name, url, access: 'public' });
    const config = (url: string, ...others: object[]) => ({
      Hub: { services: [service('steady', first.url), service('moving', url), ...others] },
    });
    await using hub = await createTestHub(config(first.url));
    await untilState(hub, 'moving', 'ready');
    await untilState(hub, 'steady', 'ready');
    const port = Number(new URL(hub.url).port);
    const answers: Record<string, string[]> = { steady: [], moving: [] };
    let isOver = false;
    async function client(name: string): Promise<void> {
      while (!isOver) {
        const answer = await rawRequest(port, head(`GET /services/${name}/`, 'Connection: close'));
        answers[name]?.push(`${statusOf(answer)} ${answer.slice(answer.lastIndexOf('\n') + 1)}`);
      }
    }
    const clients = ['steady', 'moving', 'steady', 'moving'].map(client);
    for (let round = 0; round < 6; round += 1) {
      const target = round % 2 === 0 ? second : first;
      await hub.reload(config(target.url, service(`extra-${round}`, first.url)));
      const seen = answers['moving']?.length ?? 0;
      await until(() => (answers['moving']?.length ?? 0) > seen + 10, 'the new address is used');
    }
    isOver = true;
    await Promise.all(clients);
    expect(new Set(answers['steady'])).toEqual(new Set(['200 first']));
    expect(new Set(answers['moving'])).toEqual(new Set(['200 first', '200 second']));
    expect(answers['moving']?.at(-1)).toBe('200 first');
  });
});

const isRefused = ({ status, body }: BrowserAnswer) =>
  status !== 302 && !body.includes('Many users are logging in right now.');

test('a class that logs in at one moment from behind one address gets in, each of them', async () => {
  const names = Array.from({ length: 40 }, (_, index) => `pupil-${index}`);
  // A tenth of what is allowed by default, to go with a fifth of the people.
  const limits = { lockout_attempts: 1, concurrent_logins: 2 };
  const options = { passwordCost: defaultArgon2Cost };
  await using hub = await createPasswordHub(names, { Authenticator: limits }, options);
  let waiting = names;
  while (waiting.length > 0) {
    const answers = await Promise.all(
      waiting.map((name) => submitLogin(new FakeBrowser(), hub.url, name, testPassword)),
    );
    // A slow machine sends some away for a moment; nobody is held to have guessed.
    expect(answers.filter(isRefused).map(({ body }) => body)).toEqual([]);
    waiting = waiting.filter((_, index) => answers[index]?.status !== 302);
  }
});

describe('a hub that is killed at any moment', () => {
  const seed = 11;
  const kills = 6;

  async function post(
    folder: HubFolder,
    path: string,
    body?: object,
  ): Promise<Response | undefined> {
    try {
      const answer = await fetch(folder.apiUrl + path, {
        method: 'POST',
        headers: {
          authorization: 'token admin-service-token',
          'content-type': 'application/json',
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      await answer.clone().text();
      return answer;
    } catch {
      return undefined;
    }
  }

  test('has lost nothing it had acknowledged: users, groups, members and tokens', async () => {
    const random = createRandom(seed);
    await using folder = await createHubFolder();
    const users: string[] = [];
    const members: string[] = [];
    const tokens: string[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      const hub = await folder.start();
      if (kill === 0) expect((await post(folder, '/groups/all'))?.status).toBe(201);
      let isDead = false;
      void hub.exited.then(() => {
        isDead = true;
      });
      // The kill falls among the answers to five writers, after a number of them and not a time.
      let left = 5 + random.below(60);
      function acknowledged(list: string[], item: string): void {
        list.push(item);
        left -= 1;
        if (left === 0) hub.signal('SIGKILL');
      }
      async function writer(number: number): Promise<void> {
        for (let index = 0; !isDead; index += 1) {
          const name = `user-${kill}-${number}-${index}`;
          if ((await post(folder, `/users/${name}`))?.status === 201) acknowledged(users, name);
          const added = await post(folder, '/groups/all/users', { users: [name] });
          if (added?.ok === true) acknowledged(members, name);
          const made = await post(folder, `/users/${name}/tokens`, {});
          if (made?.status !== 201) continue;
          const { token } = (await made.json()) as { token: string };
          acknowledged(tokens, token);
        }
      }
      await Promise.all(Array.from({ length: 5 }, (_, number) => writer(number)));
      expect(await hub.exited).toBeNull();
    }

    await folder.start();
    const read = async (path: string, token = 'admin-service-token') =>
      fetch(folder.apiUrl + path, { headers: { authorization: `token ${token}` } });
    const group = (await (await read('/groups/all')).json()) as { users: string[] };
    expect(group.users).toEqual(expect.arrayContaining(members));
    for (const name of users) expect((await read(`/users/${name}`)).status, name).toBe(200);
    for (const token of tokens) expect((await read('/user', token)).status).toBe(200);
    expect(users.length + members.length + tokens.length).toBeGreaterThan(kills * 5);
  });
});
