import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Whether a request is an opening handshake in every point of RFC 6455 §4.2.1. */
export function isOpeningHandshake(req: IncomingMessage): boolean {
  const { method, headers, httpVersion } = req;
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    httpVersion === '1.1' &&
    headers['sec-websocket-version'] === '13' &&
    /^[A-Za-z0-9+/]{22}==$/.test(headers['sec-websocket-key'] ?? '') &&
    // A body would be sent on as the first frames.
    headers['transfer-encoding'] === undefined &&
    Number(headers['content-length'] ?? 0) === 0
  );
}

/** Whether an upstream's 101 answers the client's key (RFC 6455 §4.1), and so is a WebSocket's. */
export function isHandshakeAnswer(answer: IncomingMessage, clientKey: string): boolean {
  const expected = createHash('sha1')
    .update(`${clientKey}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  const { headers } = answer;
  return (
    headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-accept'] === expected
  );
}
