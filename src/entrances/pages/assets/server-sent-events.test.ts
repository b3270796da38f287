import { afterEach, expect, test, vi } from 'vitest';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

type Events = (url: string, signal?: AbortSignal) => AsyncGenerator<unknown, void>;

/** The events of a page whose hub answers with what is written. */
async function follow(): Promise<{
  readonly events: AsyncGenerator<unknown>;
  readonly write: (text: string) => Promise<void>;
}> {
  const { readable, writable } = new TransformStream<Uint8Array>();
  const writer = writable.getWriter();
  vi.stubGlobal('document', { querySelector: () => null });
  vi.stubGlobal('fetch', async (_url: string, { signal }: { signal: AbortSignal }) => {
    signal.addEventListener('abort', () => {
      writer.abort(signal.reason).catch(() => {});
    });
    return new Response(readable);
  });
  const script: string = './server-sent-events.js';
  const { events } = (await import(script)) as { readonly events: Events };
  return {
    events: events('/hub/api/services/writer/output'),
    write: (text) => writer.write(new TextEncoder().encode(text)),
  };
}

test('events are read wherever the pieces of the answer end', async () => {
  const { events, write } = await follow();
  const written = write(':\n\ndata: {"a":1}\n\ndata: {"a"').then(() => write(':2}\n\n'));
  expect((await events.next()).value).toEqual({ a: 1 });
  expect((await events.next()).value).toEqual({ a: 2 });
  await written;
  await events.return(undefined);
});

test('a connection that falls silent, as one that broke while the computer slept, is given up', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { events, write } = await follow();
  void write('data: {"a":1}\n\n');
  await events.next();
  const next = events.next();
  const outcome = next.then(
    () => 'went on',
    () => 'given up',
  );
  // Signs of life count.
  await vi.advanceTimersByTimeAsync(20_000);
  await write(':\n\n');
  await vi.advanceTimersByTimeAsync(20_000);
  await write('data: {"a":2}\n\n');
  expect(await outcome).toBe('went on');
  const silent = events.next().then(
    () => 'went on',
    () => 'given up',
  );
  await vi.advanceTimersByTimeAsync(31_000);
  expect(await silent).toBe('given up');
});
