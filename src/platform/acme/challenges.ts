import { createHash } from 'node:crypto';
import { resolveTxt } from 'node:dns/promises';
import type { AcmeConfig } from '../config/config.ts';
import type { CertificateSource, KeyPair } from '../http/tls/certificate-source.ts';
import type { KeyvSpaces } from '../store/keyv.ts';
import type { KeyvSpace } from '../store/keyv-space.ts';
import { causeOf } from './acme-client.ts';
import { createChallengeCertificate } from './certificate-request.ts';
import { runDnsCommand } from './dns-command.ts';

/** What an authority wants to find before it believes that a name is of the hub. */
export interface Challenge {
  readonly name: string;
  readonly token: string;
  readonly keyAuthorization: string;
}

/** Puts what an authority looks for where it looks for it. */
export interface ChallengeResponder {
  readonly type: AcmeConfig['challenge'];
  present(challenge: Challenge, signal: AbortSignal): Promise<void>;
  /** Never throws; leaves what takes time where the signal is aborted. */
  withdraw(challenge: Challenge, signal: AbortSignal): Promise<void>;
  /** Where the authority looked, and what this machine finds there: after a refusal, for people. */
  describe(challenge: Challenge): Promise<string>;
}

/** What one instance presents and all answer. */
export interface SharedChallenges {
  /** Key authorizations by token. */
  readonly http: Pick<KeyvSpace<string>, 'get' | 'set' | 'delete'>;
  /** Certificates by name. */
  readonly tls: Pick<KeyvSpace<KeyPair>, 'get' | 'set' | 'delete'>;
}

export function openChallenges({ space }: KeyvSpaces): SharedChallenges {
  return { http: space('acme-http-challenges'), tls: space('acme-tls-challenges') };
}

const challengePath = '/.well-known/acme-challenge/';
/** One whose instance has died is forgotten after so long. */
const lifetimeMs = 3_600_000;
const lookLimitMs = 5_000;

/** How what was presented is found. */
export function findersOf(
  challenge: AcmeConfig['challenge'],
  { http, tls }: SharedChallenges,
): Pick<CertificateSource, 'findChallenge' | 'answerHttpChallenge'> {
  return {
    ...(challenge === 'tls-alpn-01' && { findChallenge: (name) => tls.get(name) }),
    ...(challenge === 'http-01' && {
      async answerHttpChallenge(path) {
        const token = path.startsWith(challengePath) ? path.slice(challengePath.length) : '';
        return /^[\w-]{16,128}$/.test(token) ? await http.get(token) : undefined;
      },
    }),
  };
}

export function createResponder(
  { challenge: type, dns_command: command = [] }: Pick<AcmeConfig, 'challenge' | 'dns_command'>,
  shared: SharedChallenges,
  /** Of the command. */
  environment: Readonly<Record<string, string | undefined>>,
): ChallengeResponder {
  switch (type) {
    case 'http-01':
      return {
        type,
        present: async ({ token, keyAuthorization }) =>
          void (await shared.http.set(token, keyAuthorization, lifetimeMs)),
        withdraw: async ({ token }) => await quietly(shared.http.delete(token)),
        describe: describeHttp,
      };
    case 'tls-alpn-01':
      return {
        type,
        async present({ name, keyAuthorization }) {
          const made = await createChallengeCertificate(name, keyAuthorization);
          await shared.tls.set(name, made, lifetimeMs);
        },
        withdraw: async ({ name }) => await quietly(shared.tls.delete(name)),
        describe: async ({ name }) =>
          `it looked at port 443 of ${name}, which has to lead to Hub.bind_url without anything that ends TLS before it`,
      };
    case 'dns-01': {
      const run = (action: 'add' | 'remove', challenge: Challenge, signal: AbortSignal) =>
        runDnsCommand(command, { action, ...recordOf(challenge) }, { environment, signal });
      return {
        type,
        present: (challenge, signal) => run('add', challenge, signal),
        withdraw: (challenge, signal) => quietly(run('remove', challenge, signal)),
        describe: describeDns,
      };
    }
  }
}

async function quietly(work: Promise<unknown>): Promise<void> {
  // What stays is harmless, and good for nothing once the authority has decided.
  await work.catch(() => undefined);
}

async function describeHttp({ name, token }: Challenge): Promise<string> {
  const url = `http://${name}${challengePath}${token}`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(lookLimitMs) });
    await answer.body?.cancel();
    return `this machine gets ${answer.status} from ${url}`;
  } catch (error) {
    return `this machine gets no answer from ${url}: ${causeOf(error)}`;
  }
}

/** RFC 8555 §8.4. */
function recordOf({ name, keyAuthorization }: Challenge): { name: string; value: string } {
  const value = createHash('sha256').update(keyAuthorization).digest('base64url');
  return { name: `_acme-challenge.${name}`, value };
}

async function describeDns(challenge: Challenge): Promise<string> {
  const { name, value } = recordOf(challenge);
  const found = await resolveTxt(name).then(
    (records) => records.map((parts) => parts.join('')).join(', ') || 'no text there',
    (error: Error) => error.message,
  );
  return `this machine finds at ${name}, where ${value} has to stand: ${found}`;
}
