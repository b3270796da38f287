/** Numbers that are the same for the same seed (mulberry32). */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    chance: (probability: number) => next() < probability,
    pick: <T>(items: readonly T[]): T => items[below(items.length)] as T,
  };
}

export type Random = ReturnType<typeof createRandom>;

const methods = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'HEAD',
  'PATCH',
  'TRACE',
  'CONNECT',
  'PRI',
];
const framings = [
  'Content-Length: 5',
  'Content-Length: 0',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length: 0x5',
  'Content-Length: 5 ',
  'Content-Length:\t5',
  'Content-Length : 5',
  'Content_Length: 5',
  'Content-Length: 99999999999999999999',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: Chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: chunked\r\n ignored',
  'Transfer_Encoding: chunked',
  'X: y\rTransfer-Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked',
  'TE: trailers, chunked',
  'Trailer: Authorization',
];
const otherHeaders = [
  'Expect: 100-continue',
  'Expect: 200-ok',
  'Upgrade: websocket',
  'Upgrade: h2c',
  'Connection: Upgrade',
  'Connection: close, X-Hub-User, Authorization',
  'Connection: keep-alive, Transfer-Encoding',
  'Connection: Content-Length',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Host: evil.example',
  'Host:',
  ' folded: 1',
  'X-Hub-User: mallory',
  'X_Hub_User: mallory',
  'X-Hub-Assertion: forged',
  'X-HTTP-Method-Override: DELETE',
  'X-Original-URL: /services/guarded/over',
  'X-Forwarded-Prefix: /services/guarded',
  'Cookie: a=b; service-guarded=forged; hub-session-id=x',
  'Cookie: "service-guarded=x; y"',
  'Authorization: token forged',
  'Authorization: Bearer',
  'Content-Encoding: gzip',
  'Keep-Alive: timeout=1',
  'Proxy-Connection: keep-alive',
  '__proto__: x',
  ': nameless',
  'X-Nul: a\0b',
  'Range: bytes=0-',
];
const pathPieces = [
  '..',
  '.',
  '%2e%2e',
  '%2f',
  '%5c',
  '\\',
  '//',
  ';',
  '%00',
  '%23',
  '#',
  '?',
  '%3f',
  '%',
  '%u002f',
  '\t',
  '\x80',
  '%25',
  '@',
  ':',
  '*',
];
const bytes = [
  '\r',
  '\n',
  '\r\n',
  '\0',
  '\t',
  ' ',
  ':',
  ';',
  ',',
  '\x0b',
  '\x0c',
  '\x85',
  '\xa0',
  '%',
  '"',
  '\x7f',
  '\xff',
  '0',
  '5',
  'a',
];

/** Makes requests that are nearly right, and seldom quite. */
export function createMutator(random: Random) {
  function chunked(body: string): string {
    const size = random.pick([
      body.length.toString(16),
      `0${body.length.toString(16)}`,
      `${body.length.toString(16)};ext=1`,
      `${body.length.toString(16)} `,
      (body.length + random.below(3) - 1).toString(16),
      '-1',
      '0x5',
      'ffffffffffffffff1',
    ]);
    const ending = random.pick([
      '\r\n0\r\n\r\n',
      '\r\n0\r\n\r\n',
      '\n0\n\n',
      '\r\n0\r\nX-Hub-User: mallory\r\n\r\n',
      '0\r\n\r\n',
      '\r\n00\r\n\r\n',
    ]);
    return `${size}\r\n${body}${ending}`;
  }

  function targetOf(path: string): string {
    if (random.chance(0.75)) return path;
    const piece = random.pick(pathPieces);
    const slashes = [...path.matchAll(/\//g)].map(({ index }) => index);
    const at = random.pick(slashes) + random.below(2);
    const changed = path.slice(0, at) + piece + path.slice(at);
    return random.pick([
      changed,
      changed,
      `http://hub.test${path}`,
      `http://evil.example${changed}`,
      path.slice(1),
      path.toUpperCase(),
    ]);
  }

  /** One request: right but for its framing, its target and some headers. */
  function request(path: string, headers: readonly string[], inner: string): string {
    const lines = ['Host: hub.test', ...headers];
    if (random.chance(0.45)) lines.splice(random.below(lines.length + 1), 0, random.pick(framings));
    if (random.chance(0.12)) lines.splice(random.below(lines.length + 1), 0, random.pick(framings));
    while (random.chance(0.3))
      lines.splice(random.below(lines.length + 1), 0, random.pick(otherHeaders));
    const body = random.pick([
      '',
      '',
      '',
      '',
      'hello',
      inner,
      chunked('hello'),
      chunked(inner),
      `0\r\n\r\n${inner}`,
    ]);
    const version = random.chance(0.9)
      ? 'HTTP/1.1'
      : random.pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/1.2', 'HTTP/2.0', 'http/1.1', '']);
    const method = random.chance(0.6) ? 'GET' : random.pick(methods);
    return `${method} ${targetOf(path)} ${version}\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
  }

  /** Changes a few bytes anywhere. */
  function disturb(text: string): string {
    let changed = text;
    while (random.chance(0.5)) {
      const at = random.below(changed.length + 1);
      const length = random.below(8);
      switch (random.below(6)) {
        case 0:
          changed = changed.slice(0, at) + random.pick(bytes) + changed.slice(at);
          break;
        case 1:
          changed = changed.slice(0, at) + changed.slice(at + length);
          break;
        case 2:
          changed = changed.slice(0, at) + changed.slice(at, at + length) + changed.slice(at);
          break;
        case 3:
          changed = changed.replace(
            '\r\n',
            random.pick(['\n', '\r', '\r\r\n', '\n\r', '\r\n\r\n']),
          );
          break;
        case 4:
          changed =
            changed.slice(0, at) + String.fromCharCode(random.below(256)) + changed.slice(at + 1);
          break;
        default: {
          const lines = changed.split('\r\n');
          const from = random.below(lines.length);
          lines.splice(random.below(lines.length), 0, lines[from] ?? '');
          changed = lines.join('\r\n');
        }
      }
    }
    return changed;
  }

  return { request, disturb };
}
