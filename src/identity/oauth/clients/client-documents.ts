import type { Logger } from 'pino';
import { z } from 'zod';
import { createLimiter } from '../../../platform/concurrency/limiter.ts';
import { HubError } from '../../../platform/errors.ts';
import type { KeyvSpace } from '../../../platform/store/keyv-space.ts';
import { text } from '../../../platform/texts/text.ts';
import type { Client } from './client.ts';
import { type ClientHosts, requestClient } from './client-request.ts';
import { countedAttempt, type FailureLimit } from './failure-limit.ts';
import { isLoopbackUri } from './redirect-uri.ts';

/** Whose documents are read; nobody's with `none`. */
export type DocumentHosts = ClientHosts | 'none';

/** What an agent says of itself at the URL that is its client id (draft-ietf-oauth-client-id-metadata-document). */
export interface ClientDocuments {
  /** The client that a client id is the URL of, as far as the id alone tells; undefined for any other id. */
  clientOf(clientId: string): Client | undefined;
  /**
   * The same client with what its document says. Throws `bad_request` where there is none that is good, and
   * `too_many_requests` where the user it is read for has had many fetched; who asks for nobody is to be limited before.
   */
  read(client: Client, userId?: string): Promise<Client>;
}

const maxBytes = 5 * 1024;
const timeoutMs = 5_000;
const keptMs = 5 * 60_000;
/** What cannot be read is not asked for again at once: anybody can name an address. */
const failureKeptMs = 60_000;
const maxAtOnce = 8;

/** It may be shown to people, so it is one short line. */
export const clientName = z.string().transform((name) =>
  name
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .slice(0, 60),
);

const clientDocument = z.object({
  client_id: z.string(),
  client_name: clientName.optional(),
  redirect_uris: z.array(z.string().max(2_000).refine(isSafeRedirectUri)).min(1).max(20),
  // Nobody could have given it a secret.
  token_endpoint_auth_method: z.literal('none').optional(),
});
export type ClientDocument = z.output<typeof clientDocument>;

export function createClientDocuments({
  hosts,
  hubUrl,
  documents,
  reads,
  log,
}: {
  readonly hosts: DocumentHosts;
  /** Where people find the hub. */
  readonly hubUrl: URL;
  readonly documents: Pick<KeyvSpace<ClientDocument | 'failed'>, 'get' | 'set'>;
  /** What is fetched for each user. */
  readonly reads: FailureLimit;
  readonly log: Logger;
}): ClientDocuments {
  const limit = createLimiter(maxAtOnce);

  /** Users' servers and services are there too: their agents would be shown as those of the hub. */
  function isOfHub(clientId: string): boolean {
    const { host, hostname } = new URL(clientId);
    return host === hubUrl.host || hostname.endsWith(`.${hubUrl.hostname}`);
  }

  async function fetched(clientId: string): Promise<ClientDocument> {
    const body = await limit(() => download(clientId, hosts));
    const document = clientDocument.parse(JSON.parse(body));
    if (document.client_id !== clientId) throw new Error('it is the document of another client');
    return document;
  }

  async function documentOf(
    clientId: string,
    userId: string | undefined,
  ): Promise<ClientDocument | 'failed'> {
    const kept = await documents.get(clientId);
    if (kept !== undefined) return kept;
    const fetch = () => fetchAndKeep(clientId);
    return await (userId === undefined ? fetch() : countedAttempt(reads, userId, fetch, tooMany));
  }

  async function fetchAndKeep(clientId: string): Promise<ClientDocument | 'failed'> {
    const document = await fetched(clientId).catch((error: unknown) => {
      log.warn({ client: clientId, err: error }, 'could not read the document of a client');
      return 'failed' as const;
    });
    await documents.set(clientId, document, document === 'failed' ? failureKeptMs : keptMs);
    return document;
  }

  return {
    clientOf: (clientId) =>
      hosts !== 'none' && isDocumentUrl(clientId) && !isOfHub(clientId)
        ? agent(clientId)
        : undefined,

    async read(client, userId) {
      const document = await documentOf(client.clientId, userId);
      if (document === 'failed') {
        const { host } = new URL(client.clientId);
        throw new HubError(
          'bad_request',
          text`What ${host} says about the application cannot be used.`,
          {
            hint: text`The link that brought you here is faulty; tell the operator of the application.`,
          },
        );
      }
      const { client_name: name, redirect_uris: redirectUris } = document;
      return { ...client, redirectUris, ...(name && { name }) };
    },
  };
}

const tooMany = (retryAfterSeconds: number) =>
  new HubError('too_many_requests', text`Too many attempts.`, {
    hint: text`Try again in a few minutes.`,
    retryAfterSeconds,
  });

/** "An https scheme, a path component, no single-dot or double-dot path segments, no fragment, no username or password" (§3). */
function isDocumentUrl(clientId: string): boolean {
  const url = clientId.length <= 500 ? URL.parse(clientId) : null;
  // Written as it is read: compared as text, one client has one id.
  return url !== null && url.href === clientId && /^https:\/\/[^/@]+\/[^#]+$/.test(clientId);
}

function agent(clientId: string): Client {
  const { host, origin } = new URL(clientId);
  return {
    clientId,
    kind: 'agent',
    name: host,
    origin,
    redirectUris: [],
    isPublic: true,
    allowedScopes: [],
    accessScope: undefined,
    skipsConsent: false,
    grants: ['refresh'],
    identity: { clientId },
  };
}

/** A page on the web, or an app on the device of the user (RFC 8252 §7.1, §7.3); no script, file or the like. */
function isSafeRedirectUri(uri: string): boolean {
  const url = uri.includes('#') ? null : URL.parse(uri);
  if (url === null) return false;
  return (
    url.protocol === 'https:' ||
    isLoopbackUri(uri) ||
    /^[a-z][a-z\d+-]*\.[^:]+:$/.test(url.protocol)
  );
}

async function download(url: string, hosts: DocumentHosts): Promise<string> {
  const { status, body } = await requestClient(url, AbortSignal.timeout(timeoutMs), {
    hosts: hosts === 'any' ? 'any' : 'public',
    maxAnswerBytes: maxBytes,
  });
  if (status !== 200) throw new Error(`the answer is ${status}`);
  return body;
}
