import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { v8Options } from '../../../spawning/processes/memory-settings.ts';

const urlOf = (path: string) => JSON.stringify(pathToFileURL(join(import.meta.dirname, path)).href);

/** Answers each request later, with the bytes of old objects. */
const server = `
  import { createServer } from 'node:net';
  import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
  const { createHttp2End } = await import(${urlOf('http2-end.ts')});
  const { TransientSet } = await import(${urlOf('../../concurrency/transient-set.ts')});
  const open = new TransientSet();
  const oldBytes = () => getHeapSpaceStatistics().find(({ space_name: name }) => name === 'old_space').space_used_size;
  const take = createHttp2End({
    config: { max_header_size: 16_384, idle_timeout: 0, request_timeout: 0 },
    accept(stream) {
      open.add(stream);
      stream.on('close', () => open.delete(stream));
    },
    serve(req, res) {
      const ofRequest = Array.from({ length: 1_000 }, () => req.url);
      res.on('close', () => ofRequest.length);
      setImmediate(() => res.end(String(oldBytes())));
    },
    tooLate() {},
  });
  const listener = createServer(take).listen(0, '127.0.0.1', () => console.log(listener.address().port));
`;

async function ask(session: ClientHttp2Session): Promise<number> {
  return Number(await text(session.request({ ':path': '/' })));
}

test('of requests that are over, what belongs to them is not kept until a full collection', async () => {
  const program = spawn(process.execPath, [...v8Options, '--input-type=module', '--eval', server], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const [port] = await once(program.stdout, 'data');
    const session = connect(`http://127.0.0.1:${String(port).trim()}`);
    const inTurn = async (requests: number) => {
      for (let at = 0; at < requests; at += 1) await ask(session);
    };
    const together = (requests: number) =>
      Promise.all(Array.from({ length: 8 }, () => inTurn(requests / 8)));
    const growth: number[] = [];
    for (let before = await ask(session), round = 0; round < 7; round += 1) {
      await together(2_000);
      const now = await ask(session);
      growth.push((now - before) / 2_000);
      before = now;
    }
    // Of each request the stream of Node alone; all of it would be 5 to 8 KB. In some rounds there is a full collection.
    expect(growth.toSorted((one, other) => one - other)[4]).toBeLessThan(2_500);
    session.destroy();
  } finally {
    program.kill();
  }
});
