import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import { Secret } from '../../platform/config/secret.ts';
import { HubError } from '../../platform/errors.ts';
import { savePhrase, text } from '../../platform/texts/text.ts';
import { createChallenges } from './challenges.ts';
import { createChannelCaller, type InstanceAddress } from './channel-caller.ts';
import { type ChannelReceiver, createChannelReceiver } from './channel-receiver.ts';
import { channelHeaders, createChannelSignature } from './channel-signature.ts';

const path = '/hub/instances/';
const secret = new Secret('one key that all instances of a hub share');
const signature = createChannelSignature([secret]);

interface Party {
  readonly address: InstanceAddress & { readonly url: string };
  readonly receiver: ChannelReceiver;
  /** Requests as they came in, with their bodies. */
  readonly seen: { method: string; url: string; headers: Record<string, string>; body: string }[];
  close(): Promise<void>;
}

/** An internal listener with an instance behind it. */
async function listen(name: string, keys = signature): Promise<Party> {
  const id = `id-of-${name}`;
  const log = pino({ level: 'silent' });
  const receiver = createChannelReceiver({ path, self: { id, name }, signature: keys, log });
  const seen: Party['seen'] = [];
  const server = createServer((req, res) => {
    const entry = {
      method: req.method ?? '',
      url: req.url ?? '',
      headers: req.headers as Record<string, string>,
      body: '',
    };
    seen.push(entry);
    req.on('data', (chunk: Buffer) => {
      entry.body += chunk.toString();
    });
    if (!receiver.receive(req, res)) res.writeHead(404).end('not here');
  });
  server.listen(await freePort(), '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(async () => void (server.listening && (await close())));
  return { address: { id, name, url }, receiver, seen, close };
}

function callerNamed(id: string, keys = signature) {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line) => lines.push(JSON.parse(line)) });
  return { ...createChannelCaller({ path, self: { id }, signature: keys, log }), lines };
}

/** Sends bytes of an earlier request once more, as who has read them on the way would. */
async function sendAgain(
  url: string,
  { method, url: target, headers, body }: Party['seen'][number],
  changes: { readonly body?: string; readonly target?: string } = {},
): Promise<number> {
  const { host: _, 'content-length': __, ...rest } = headers;
  const { promise, resolve } = Promise.withResolvers<number>();
  const req = httpRequest(
    new URL(changes.target ?? target, url),
    { method, headers: rest },
    (res) => {
      res.resume();
      resolve(res.statusCode ?? 0);
    },
  );
  req.end(changes.body ?? body);
  return promise;
}

describe('the channel between instances', () => {
  test('has an operation done and gives its result', async () => {
    const there = await listen('b');
    there.receiver.handle('add', async (params) => {
      const { left, right } = params as { left: number; right: number };
      return left + right;
    });
    const here = callerNamed('id-of-a');
    expect(await here.call(there.address, 'add', { left: 2, right: 3 })).toBe(5);
    expect(await here.identify(there.address.url)).toEqual({
      kind: 'instance',
      id: 'id-of-b',
      name: 'b',
    });
  });

  test('throws here what was thrown there', async () => {
    const there = await listen('b');
    there.receiver.handle('stop', async () => {
      throw new HubError('conflict', 'Stop it first.', {
        hint: 'There is a button.',
        retryAfterSeconds: 7,
        details: { server: 'alice/' },
      });
    });
    const call = callerNamed('id-of-a').call(there.address, 'stop');
    await expect(call).rejects.toMatchObject({
      code: 'conflict',
      message: 'Stop it first.',
      hint: 'There is a button.',
      retryAfterSeconds: 7,
      details: { server: 'alice/' },
    });
  });

  test('keeps what an error says in the language of its reader', async () => {
    const there = await listen('b');
    const message = text`There is a role ${'x'} already.`;
    there.receiver.handle('make', async () => {
      throw new HubError('conflict', message, { hint: text`Choose another name.` });
    });
    const call = callerNamed('id-of-a').call(there.address, 'make');
    const error = (await call.catch((thrown: unknown) => thrown)) as HubError;
    expect(error.message).toBe('There is a role x already.');
    expect(savePhrase(error.shown.message)).toEqual(savePhrase(message));
    expect(savePhrase(error.shown.hint ?? '')).toEqual({ key: 'Choose another name.', values: [] });
  });

  test('says that a newer instance asks for what an older one does not know', async () => {
    const there = await listen('b');
    const call = callerNamed('id-of-a').call(there.address, 'unheard-of');
    await expect(call).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('another version'),
      hint: 'Run the same version of the hub on all instances.',
    });
  });

  test('does nothing for who has another key, has seen a call or changes one', async () => {
    const there = await listen('b');
    let stops = 0;
    there.receiver.handle('stop', async () => {
      stops += 1;
    });
    there.receiver.handle('delete', async () => {
      stops += 100;
    });
    const foreign = callerNamed('id-of-a', createChannelSignature([new Secret('another key')]));
    await expect(foreign.call(there.address, 'stop', { id: 1 })).rejects.toThrow();
    expect(stops).toBe(0);

    await callerNamed('id-of-a').call(there.address, 'stop', { id: 1 });
    expect(stops).toBe(1);
    const call = there.seen.at(-1);
    if (call === undefined) throw new Error('nothing was seen');
    expect(await sendAgain(there.address.url, call)).toBe(403);
    expect(await sendAgain(there.address.url, call, { body: '{"id":2}' })).toBe(403);
    expect(await sendAgain(there.address.url, call, { target: `${path}delete` })).toBe(403);
    // Nor with a challenge that was given to them.
    const question = 'q'.repeat(32);
    const asked = await fetch(`${there.address.url}${path}challenge?question=${question}`);
    const { challenge } = (await asked.json()) as { challenge: string };
    const headers = { ...call.headers, [channelHeaders.challenge]: challenge };
    expect(await sendAgain(there.address.url, { ...call, headers })).toBe(403);
    expect(stops).toBe(1);
  });

  test('does nothing for a call that was meant for another instance', async () => {
    const [there, other] = [await listen('b'), await listen('c')];
    there.receiver.handle('stop', async () => 'stopped');
    other.receiver.handle('stop', async () => 'stopped');
    await callerNamed('id-of-a').call(there.address, 'stop');
    const call = there.seen.at(-1);
    if (call === undefined) throw new Error('nothing was seen');
    expect(await sendAgain(other.address.url, call)).toBe(403);
  });

  test('works with keys that are being replaced, in both orders', async () => {
    const newer = new Secret('the key that takes its place');
    const there = await listen('b', createChannelSignature([secret, newer]));
    there.receiver.handle('ping', async () => 'pong');
    const here = callerNamed('id-of-a', createChannelSignature([newer, secret]));
    expect(await here.call(there.address, 'ping')).toBe('pong');
  });

  test('tells since when an instance does not answer, in the log once, and that it does again', async () => {
    const there = await listen('b');
    there.receiver.handle('ping', async () => 'pong');
    const here = callerNamed('id-of-a');
    await there.close();
    const first = await here.call(there.address, 'ping').catch((thrown: unknown) => thrown);
    expect(first).toMatchObject({
      code: 'unavailable',
      message:
        /^The instance "b" of the hub has not answered since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.$/,
    });
    const second = await here.call(there.address, 'ping').catch((thrown: unknown) => thrown);
    expect((second as Error).message).toBe((first as Error).message);
    expect(here.lines.map(({ msg }) => msg)).toEqual(['instance unreachable']);

    const back = await listen('b');
    back.receiver.handle('ping', async () => 'pong');
    expect(await here.call(back.address, 'ping')).toBe('pong');
    expect(here.lines.at(-1)?.['msg']).toBe('instance reachable again');
  });

  test('is limited in time', async () => {
    const there = await listen('b');
    there.receiver.handle('wait', () => new Promise(() => {}));
    const call = callerNamed('id-of-a').call(there.address, 'wait', undefined, { timeoutMs: 50 });
    await expect(call).rejects.toMatchObject({ code: 'unavailable' });
  });

  test.each([
    ['a hub with another cookie_secret', /another cookie_secret/],
    ['another instance', /the instance "c" answers there/],
    ['this very instance', /leads back to this instance/],
    ['no hub', /no hub with this base path \(status 404\)/],
  ])('finds out that an address leads to %s', async (who, reason) => {
    const parties: Record<string, () => Promise<Party>> = {
      'a hub with another cookie_secret': () =>
        listen('b', createChannelSignature([new Secret('another key')])),
      'another instance': () => listen('c'),
      'this very instance': () => listen('a'),
      'no hub': async () => {
        const party = await listen('b');
        party.receiver.receive = () => false;
        return party;
      },
    };
    const party = await parties[who]?.();
    const here = callerNamed('id-of-a');
    const address = { id: 'id-of-b', name: 'b', url: party?.address.url };
    await expect(here.call(address, 'stop')).rejects.toMatchObject({ code: 'unavailable' });
    expect(here.lines.at(-1)).toMatchObject({
      msg: 'instance address belongs to another program',
      err: { message: expect.stringMatching(reason) },
    });
  });

  test('says which setting is missing where an instance has no address', async () => {
    const call = callerNamed('id-of-a').call({ id: 'x', name: 'b', url: undefined }, 'stop');
    await expect(call).rejects.toMatchObject({ code: 'unavailable', hint: /Hub\.instance_url/ });
  });
});

describe('a challenge', () => {
  test('is good once, for half a minute, and only where it was given out', () => {
    let now = 1_000;
    const challenges = createChallenges(() => now);
    const challenge = challenges.issue();
    expect(createChallenges(() => now).isFresh(challenge)).toBe(false);
    expect(challenges.isFresh('0.x.y')).toBe(false);
    expect(challenges.isFresh(challenge)).toBe(true);
    expect(challenges.use(challenge)).toBe(true);
    expect(challenges.use(challenge)).toBe(false);
    const later = challenges.issue();
    now += 30_001;
    expect(challenges.isFresh(later)).toBe(false);
  });
});
