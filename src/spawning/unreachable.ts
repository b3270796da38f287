import { type Phrase, type Text, text } from '../platform/texts/text.ts';

/** Codes of Node.js, OpenSSL and undici. */
const reasons: Readonly<Record<string, Text>> = {
  ECONNRESET: text`it closed the connection`,
  EPIPE: text`it closed the connection`,
  UND_ERR_SOCKET: text`it closed the connection`,
  ENOTFOUND: text`its host name is unknown`,
  EAI_AGAIN: text`its host name cannot be looked up`,
  ETIMEDOUT: text`it took too long`,
  UND_ERR_CONNECT_TIMEOUT: text`it took too long`,
  UND_ERR_HEADERS_TIMEOUT: text`it took too long`,
  UND_ERR_BODY_TIMEOUT: text`it took too long`,
  EHOSTUNREACH: text`its host cannot be reached`,
  ENETUNREACH: text`its network cannot be reached`,
  SELF_SIGNED_CERT_IN_CHAIN: text`its certificate is not of the configured authority`,
  DEPTH_ZERO_SELF_SIGNED_CERT: text`its certificate is not of the configured authority`,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: text`its certificate is not of the configured authority`,
  ERR_TLS_CERT_ALTNAME_INVALID: text`its certificate is for another name`,
  CERT_HAS_EXPIRED: text`its certificate has expired`,
};

/** Why an engine or a cluster did not answer; `own` are its words for codes that mean something else there. */
export function whyUnreachable(thrown: unknown, own: Readonly<Record<string, Text>>): Phrase {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.name === 'TimeoutError' || thrown.name === 'AbortError') return text`it took too long`;
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : '';
  return own[code] ?? reasons[code] ?? oneLine(thrown.message);
}

const maxMessageLength = 500;

/** What a program said, without a full stop, of 500 characters at most. */
export function oneLine(said: string): string {
  const line = said.replaceAll(/\s+/g, ' ').trim().replace(/\.$/, '');
  return line.length > maxMessageLength ? `${line.slice(0, maxMessageLength)}…` : line;
}
