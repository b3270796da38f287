import { once } from 'node:events';
import { env } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AttackedHub, attack, isHealthy, startAttackedHub } from './hub-harness.ts';
import { createMutator, createRandom } from './request-mutator.ts';

/** Further runs by hand: HUB_FUZZ_SEED=7 HUB_FUZZ_CASES=100000 npx vitest run test/attacks/fuzz.test.ts */
const seed = Number(env['HUB_FUZZ_SEED'] ?? 5);
const cases = Number(env['HUB_FUZZ_CASES'] ?? 3_000);
const atOnce = 20;
/** How long a connection without an answer is kept: long for a machine, short for a test. */
const patienceMs = 200;
/** After an answer: for what may come behind it. */
const answeredPauseMs = 10;

let hub: AttackedHub;
let token: string;

beforeAll(async () => {
  hub = await startAttackedHub();
  await hub.hub.logIn('alice');
  const answer = await hub.hub.api('/users/alice/tokens', 'admin-service-token', {
    method: 'POST',
    body: '{}',
  });
  ({ token } = (await answer.json()) as { token: string });
});
afterAll(async () => hub[Symbol.asyncDispose]());

/** Sends bytes in one or two pieces, and leaves when the hub has had its chance. */
async function send(text: string, splitAt: number): Promise<string> {
  const client = await attack(hub);
  client.write(text.slice(0, splitAt));
  if (splitAt < text.length) {
    await new Promise((resolve) => setImmediate(resolve));
    client.write(text.slice(splitAt));
  }
  const answered = once(client.socket, 'more').then(() => pause(answeredPauseMs));
  await Promise.race([client.closed, answered, pause(patienceMs)]);
  client.socket.destroy();
  return client.text();
}

test('rows 1 to 16, 43 to 46: whatever bytes a client sends, an application sees only what the guard let in', {
  timeout: 900_000 + cases * 20,
}, async () => {
  const random = createRandom(seed);
  const { request, disturb } = createMutator(random);
  const admissible: string[] = [];
  hub.hub.hub.publicServer.on('request', (req) => {
    // What the hub itself understood: only these can have been decided on.
    if (JSON.stringify(req.headers).includes(token)) admissible.push(`${req.method} ${req.url}`);
  });

  const sent: string[] = [];
  const statuses = new Map<string, number>();
  for (let index = 0; index < cases; index += atOnce) {
    await Promise.all(
      Array.from({ length: atOnce }, async (_, offset) => {
        const mark = `case-${index + offset}`;
        const credentials = random.chance(0.6) ? [`Authorization: token ${token}`] : [];
        const inner = `GET /services/guarded/smuggled-${mark} HTTP/1.1\r\nHost: hub.test\r\nX-Hub-User: mallory\r\n\r\n`;
        let text = request(`/services/guarded/${mark}`, credentials, inner);
        if (random.chance(0.3)) text += request(`/open/${mark}`, [], inner);
        if (random.chance(0.3)) text += request(`/services/guarded/second-${mark}`, [], inner);
        if (random.chance(0.4)) text = disturb(text);
        sent[index + offset] = text;
        const splitAt = random.chance(0.3) ? random.below(text.length) : text.length;
        const answer = await send(text, splitAt);
        for (const [, status = ''] of answer.matchAll(/^HTTP\/1\.1 (\d{3})/gm)) {
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
        expect(answer, text).not.toMatch(/^HTTP\/1\.1 500/m);
      }),
    );
  }
  expect(await isHealthy(hub.hub)).toBe(true);

  const keys = createRemoteJWKSet(new URL(`${hub.hub.apiUrl}/assertion-keys`));
  const left = [...admissible];
  const guarded = hub.seen.filter(({ app }) => app === 'guarded');
  expect(statuses.size).toBeGreaterThan(5);
  expect(guarded.length).toBeGreaterThan(cases / 20);
  for (const { method, url, headers } of guarded) {
    const shown = `${method} ${url} ${JSON.stringify(headers)}`;
    expect(headers['x-hub-user'], shown).toBe('alice');
    await jwtVerify(String(headers['x-hub-assertion']), keys);
    // Each request the application saw is one the hub had read, and none is seen twice.
    const plain = `${method === 'UPGRADE' ? 'GET' : method} ${url}`;
    const at = left.findIndex((line) => line === plain || decoded(line) === decoded(plain));
    expect(at, `${shown}\n${sent[Number(/case-(\d+)/.exec(url)?.[1])]}`).toBeGreaterThanOrEqual(0);
    left.splice(at, 1);
  }
  for (const { method, url, headers } of hub.seen) {
    const shown = `${method} ${url} ${JSON.stringify(headers)}`;
    expect(JSON.stringify(headers), shown).not.toContain('mallory');
    expect(headers, shown).not.toHaveProperty('x-original-url');
  }
  expect(hub.seen.filter(({ app }) => app === 'own')).toEqual([]);
});

/** The hub writes the prefix of a route in its own spelling; everything else stays as it was sent. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
