import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../../test/support/properties.ts';
import { ResponseReader } from './response-reader.ts';
import { ExchangeFailure, type ResponseHead } from './upstream-message.ts';

/** What a reader tells of the bytes of a connection, cut into pieces at some places. */
function readAll(
  bytes: string,
  { method = 'GET', cuts = [] as readonly number[], ends = false } = {},
) {
  const heads: ResponseHead[] = [];
  let body = '';
  let hasEnded = false;
  const reader = new ResponseReader({
    onHead: (head) => heads.push(head),
    onBody: (piece) => {
      body += piece.toString('latin1');
    },
    onEnd: () => {
      hasEnded = true;
    },
  });
  reader.begin(method);
  const all = Buffer.from(bytes, 'latin1');
  const places = [0, ...cuts, all.length];
  for (const [index, from] of places.slice(0, -1).entries()) {
    // As on a socket, the memory of a piece is used for the next one.
    const piece = Buffer.from(all.subarray(from, places[index + 1]));
    reader.read(piece);
    piece.fill('!');
  }
  if (ends) reader.end();
  const [head] = heads;
  return {
    status: head?.status,
    reason: head?.reason,
    headers: { ...head?.headers },
    head,
    body,
    hasEnded,
  };
}

const chunked = [
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nX-A: 1\r\nx-a: 2\r\n\r\n',
  '5\r\nhello\r\n',
  'A;name="v;x"\r\n, chunked \r\n',
  '5  \r\nworld\r\n',
  '000\r\nX-Trailer: yes\r\n\r\n',
].join('');
const sized = 'HTTP/1.1 404 Not Here\r\nContent-Length:  5 \r\nX-Empty:\r\n\r\nh\xe9llo';

describe('an answer', () => {
  test('in chunks is read, without their extensions and trailers', () => {
    const { status, headers, body, hasEnded, head } = readAll(chunked);
    expect({ status, body, hasEnded }).toEqual({
      status: 200,
      body: 'hello, chunked world',
      hasEnded: true,
    });
    expect(headers).toEqual({ 'transfer-encoding': 'Chunked', 'x-a': ['1', '2'] });
    expect(head?.isPersistent).toBe(true);
  });

  test('of a length is read, with its reason and bytes above ASCII', () => {
    expect(readAll(sized)).toMatchObject({
      status: 404,
      reason: 'Not Here',
      headers: { 'content-length': '5', 'x-empty': '' },
      body: 'h\xe9llo',
      hasEnded: true,
    });
  });

  test.for([
    ['chunks', chunked],
    ['a length', sized],
    ['an interim answer before it', `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${sized}`],
  ] as const)('with %s is the same however it is cut into pieces', ([, bytes]) => {
    const whole = readAll(bytes);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      expect(readAll(bytes, { cuts: [cut] })).toEqual(whole);
    }
    const everywhere = Array.from({ length: bytes.length - 1 }, (_, index) => index + 1);
    expect(readAll(bytes, { cuts: everywhere })).toEqual(whole);
  });

  test('without length ends with the connection, and can be followed by none', () => {
    const bytes = 'HTTP/1.1 200 OK\r\n\r\nall there is';
    expect(readAll(bytes)).toMatchObject({ body: 'all there is', hasEnded: false });
    const { hasEnded, head } = readAll(bytes, { ends: true });
    expect(hasEnded).toBe(true);
    expect(head?.isPersistent).toBe(false);
  });

  test.for([
    ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n'],
    ['HEAD', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['GET', 'HTTP/1.1 204 No Content\r\n\r\n'],
    ['GET', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n'],
    ['GET', 'HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n'],
  ] as const)('to %s that has no body ends with its head: %j', ([method, bytes]) => {
    expect(readAll(bytes, { method })).toMatchObject({ body: '', hasEnded: true });
  });

  test.for([
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', true],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n', false],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x-a,close\r\n\r\n', false],
    ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: closed\r\n\r\n', true],
    ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n', false],
    ['HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n', true],
  ] as const)('keeps the connection or not: %j, %s', ([bytes, isPersistent]) => {
    expect(readAll(bytes).head?.isPersistent).toBe(isPersistent);
  });

  test('says how long its connection is kept', () => {
    const bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: max=9, timeout=5\r\n\r\n';
    expect(readAll(bytes).head?.keepAliveMs).toBe(5_000);
    expect(readAll(sized).head?.keepAliveMs).toBeUndefined();
  });

  test('may have a header that is called like a member of every object', () => {
    const { head } = readAll('HTTP/1.1 200 OK\r\n__proto__: a\r\nconstructor: b\r\n\r\n');
    expect(Object.entries(head?.headers ?? {})).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ]);
  });
});

describe('what is no answer of HTTP/1.1 is refused', () => {
  const ok = 'HTTP/1.1 200 OK\r\n';
  const chunks = `${ok}Transfer-Encoding: chunked\r\n\r\n`;
  test.for([
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n'],
    ['another protocol that waits', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['another version', 'HTTP/2.0 200 OK\r\n\r\n'],
    ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n'],
    ['a status of four digits', 'HTTP/1.1 2000 OK\r\n\r\n'],
    ['a status that is no number', 'HTTP/1.1 2x0 OK\r\n\r\n'],
    ['a status with a sign', 'HTTP/1.1 +20 OK\r\n\r\n'],
    ['a status below 100', 'HTTP/1.1 099 OK\r\n\r\n'],
    ['a line feed in the status line', 'HTTP/1.1 200 OK\nX: y\r\n\r\n'],
    ['a switch of protocols nobody asked for', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['interim answers without end', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(40)],
    ['a header without colon', `${ok}nonsense\r\n\r\n`],
    ['a header without name', `${ok}: x\r\n\r\n`],
    ['a space before the colon', `${ok}Content-Length : 3\r\n\r\nabc`],
    ['a folded line', `${ok}X-A: 1\r\n b\r\n\r\n`],
    ['a line feed alone', `${ok}X-A: 1\nContent-Length: 3\r\n\r\nabc`],
    ['a carriage return alone', `${ok}X-A: 1\rContent-Length: 3\r\n\r\nabc`],
    ['a null byte in a value', `${ok}X-A: 1\0\r\n\r\n`],
    ['a null byte in a name', `${ok}X\0A: 1\r\n\r\n`],
    ['two lengths', `${ok}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`],
    ['two lengths in one', `${ok}Content-Length: 3, 3\r\n\r\nabc`],
    ['a length with a sign', `${ok}Content-Length: +3\r\n\r\nabc`],
    ['a negative length', `${ok}Content-Length: -3\r\n\r\nabc`],
    ['a length in hexadecimal', `${ok}Content-Length: 0x3\r\n\r\nabc`],
    ['an empty length', `${ok}Content-Length:\r\n\r\nabc`],
    ['a length beyond numbers', `${ok}Content-Length: ${'9'.repeat(20)}\r\n\r\nabc`],
    ['length and chunks', `${ok}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc`],
    ['a coding beside chunks', `${ok}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['a coding that is none', `${ok}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    [
      'chunked twice',
      `${ok}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['a head without end', `${ok}X-A: ${'a'.repeat(70_000)}`],
    ['a head too large', `${ok}X-A: ${'a'.repeat(70_000)}\r\n\r\n`],
    ['a chunk without size', `${chunks}\r\nabc`],
    ['a chunk size that is no number', `${chunks}xyz\r\nabc\r\n`],
    ['a chunk size with a prefix', `${chunks}0x3\r\nabc\r\n`],
    ['a chunk size with a sign', `${chunks}+3\r\nabc\r\n`],
    ['a chunk size beyond numbers', `${chunks}${'f'.repeat(17)}\r\nabc\r\n`],
    ['a chunk size that ends in a line feed', `${chunks}3\nabc\r\n0\r\n\r\n`],
    ['a chunk extension with a line feed', `${chunks}3;a\nb\r\nabc\r\n0\r\n\r\n`],
    ['a chunk longer than its size', `${chunks}3\r\nabcd\r\n0\r\n\r\n`],
    ['a chunk extension without end', `${chunks}3;${'a'.repeat(5_000)}`],
    ['a trailer without colon', `${chunks}0\r\nnonsense\r\n\r\n`],
    ['trailers without end', `${chunks}0\r\n${`X-A: ${'a'.repeat(1_000)}\r\n`.repeat(70)}`],
    ['bytes after the end', `${ok}Content-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n`],
    ['bytes after an answer without body', 'HTTP/1.1 204 No Content\r\n\r\nabc'],
    ['bytes after the last chunk', `${chunks}0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n`],
  ] as const)('%s', ([, bytes]) => {
    const refused = expect.objectContaining({ code: 'UPSTREAM_BAD_RESPONSE' });
    expect(() => readAll(bytes)).toThrow(refused);
    const halfway = Math.floor(bytes.length / 2);
    expect(() => readAll(bytes, { cuts: [halfway] })).toThrow(refused);
  });

  test('of what is refused, nothing after the fault reaches the client', () => {
    let body = '';
    const reader = new ResponseReader({
      onHead() {},
      onBody(piece) {
        body += piece.toString();
      },
      onEnd() {},
    });
    reader.begin('GET');
    expect(() => reader.read(Buffer.from(`${chunks}3\r\nabcX3\r\nxyz\r\n`))).toThrow();
    expect(body).toBe('abc');
  });

  test('a reader that was stopped reads nothing more, also of what it is at', () => {
    const pieces: string[] = [];
    const reader = new ResponseReader({
      onHead() {},
      onBody(piece) {
        pieces.push(piece.toString());
        reader.stop();
      },
      onEnd: () => pieces.push('end'),
    });
    reader.begin('GET');
    reader.read(Buffer.from(`${chunks}1\r\na\r\n1\r\nb\r\n0\r\n\r\n`));
    expect(pieces).toEqual(['ab']);
  });

  test.for(['2e2', '0x9', '9e9', '099', '20', '2000', ' 200', '+20', '20 '])(
    'a status %j is none',
    (status) => {
      expect(() => readAll(`HTTP/1.1 ${status} OK\r\nContent-Length: 0\r\n\r\n`)).toThrow(
        'status line',
      );
    },
  );
});

describe('an answer that comes bit by bit', () => {
  const chunkedHead = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

  test('has the chunks of one read in one piece', () => {
    const pieces: string[] = [];
    const reader = new ResponseReader({
      onHead() {},
      onBody: (piece) => pieces.push(piece.toString()),
      onEnd: () => pieces.push('end'),
    });
    reader.begin('GET');
    reader.read(Buffer.from(`${chunkedHead}${'1\r\nx\r\n'.repeat(1_000)}3\r\nab`));
    reader.read(Buffer.from('c\r\n2\r\nde\r\n0\r\n\r\n'));
    expect(pieces).toEqual([`${'x'.repeat(1_000)}ab`, 'cde', 'end']);
  });

  test('byte by byte costs no more than a few copies of its head', () => {
    const bytes = 60_000;
    const head = `HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(bytes)}\r\nContent-Length: 1\r\n\r\n`;
    let copied = 0;
    const { concat, from } = Buffer;
    const { copy } = Buffer.prototype;
    using _undo = {
      [Symbol.dispose]() {
        Object.assign(Buffer, { concat, from });
        Buffer.prototype.copy = copy;
      },
    };
    const cuts = Array.from({ length: head.length }, (_, index) => index + 1);
    Buffer.concat = (...args) => {
      const joined = concat(...args);
      copied += joined.length;
      return joined;
    };
    Buffer.prototype.copy = function (this: Buffer, ...args: Parameters<Buffer['copy']>) {
      const length = copy.apply(this, args);
      copied += length;
      return length;
    };
    expect(readAll(`${head}y`, { cuts })).toMatchObject({ status: 200, body: 'y', hasEnded: true });
    expect(copied).toBeLessThan(4 * head.length);
  });
});

describe('whatever an upstream sends', () => {
  const places = fc.array(fc.nat(), { maxLength: 12 });
  const cutsIn = (bytes: string, at: readonly number[]) =>
    [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((one, other) => one - other);
  const latin1 = fc.string({ unit: fc.nat(255).map((code) => String.fromCharCode(code)) });
  const field = fc.stringMatching(/^X-[a-z]{1,9}: [!-~\xa1-\xff]{0,9}$/);
  const heads = fc
    .tuple(fc.constantFrom('200 OK', '404 ', '299 \xe9'), fc.array(field, { maxLength: 4 }))
    .map(([status, fields]) => [`HTTP/1.1 ${status}`, ...fields].join('\r\n'));
  const wellFormed = fc
    .record({
      interim: fc.constantFrom('', 'HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n'),
      head: heads,
      pieces: fc.array(
        latin1.filter((text) => text !== ''),
        { maxLength: 5 },
      ),
      extension: fc.constantFrom('', ';a', ' ;a="b"', '\t'),
      trailer: fc.constantFrom('', 'X-Sum: 5\r\n'),
      isChunked: fc.boolean(),
    })
    .map(({ interim, head, pieces, extension, trailer, isChunked }) => {
      const body = pieces.join('');
      const chunks = pieces.map((text) => `${text.length.toString(16)}${extension}\r\n${text}\r\n`);
      const framed = isChunked
        ? `Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n${trailer}\r\n`
        : `Content-Length: ${body.length}\r\n\r\n${body}`;
      return { body, bytes: `${interim}${head}\r\n${framed}` };
    });

  test('an answer is read as it was meant, however it is cut into pieces', () => {
    fc.assert(
      fc.property(wellFormed, places, ({ body, bytes }, at) => {
        expect(readAll(bytes, { cuts: cutsIn(bytes, at) })).toMatchObject({ body, hasEnded: true });
      }),
      runs(500),
    );
  });

  test.for(['X: a\n', 'X: a\r', 'X: \x0ba'])('a line break in a value is refused: %j', (line) => {
    const bytes = `HTTP/1.1 200 OK\r\n${line}\r\nContent-Length: 0\r\n\r\n`;
    expect(() => readAll(bytes)).toThrow(ExchangeFailure);
  });

  test('a value in UTF-8 keeps its last byte', () => {
    const { headers } = readAll('HTTP/1.1 200 OK\r\nX:\t voil\xc3\xa0 \r\n\r\n');
    expect(headers).toEqual({ x: 'voil\xc3\xa0' });
  });

  test('what is none is refused, however it is cut into pieces', () => {
    const odd = fc.oneof(
      latin1,
      fc.constantFrom('\r', '\n', '\r\n', '0', ':', ' ', ';', ',', '\0'),
    );
    const changes = fc.record({ piece: odd, where: fc.nat(), left: fc.nat(3) });
    /** What the reader says of it, or that it refuses it. */
    const outcomeOf = (bytes: string, cuts: readonly number[]) => {
      try {
        return readAll(bytes, { cuts });
      } catch (error) {
        expect(error).toBeInstanceOf(ExchangeFailure);
        return 'refused';
      }
    };
    fc.assert(
      fc.property(wellFormed, changes, places, ({ bytes }, { piece, where, left }, at) => {
        const place = where % (bytes.length + 1);
        const changed = bytes.slice(0, place) + piece + bytes.slice(place + left);
        expect(outcomeOf(changed, cutsIn(changed, at))).toEqual(outcomeOf(changed, []));
      }),
      runs(1_000),
    );
  });
});
