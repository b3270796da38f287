import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { Keyv } from 'keyv';
import { pino } from 'pino';
import { openAcmeAccount } from '../../platform/acme/acme-client.ts';
import {
  createResponder,
  findersOf,
  openChallenges,
  type SharedChallenges,
} from '../../platform/acme/challenges.ts';
import { orderCertificate } from '../../platform/acme/order.ts';
import { acmeNames } from '../../platform/config/acme-names.ts';
import type { AcmeConfig, Config } from '../../platform/config/config.ts';
import { HubError, messageOf } from '../../platform/errors.ts';
import { listen } from '../../platform/http/server/listener.ts';
import { createRedirectServer } from '../../platform/http/tls/redirect-server.ts';
import { createTlsEnd } from '../../platform/http/tls/tls-end.ts';
import { openKeyv } from '../../platform/store/keyv.ts';
import { openDatabase } from '../../platform/store/open-database.ts';

const log = pino({ level: 'silent' });

/** Directories that give certificates to nobody's harm, by those that they stand for. */
const stagingDirectories: Readonly<Record<string, string>> = {
  'https://acme-v02.api.letsencrypt.org/directory':
    'https://acme-staging-v02.api.letsencrypt.org/directory',
};

/**
 * Orders a certificate as `Hub.acme` says and throws it away; says what was done. The running hub answers the authority, or
 * this process where none runs. Throws HubError with what the authority said.
 */
export async function tryAcme(
  config: Config,
  {
    env,
    isHubRunning,
    signal,
  }: {
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly isHubRunning: boolean;
    readonly signal: AbortSignal;
  },
): Promise<string> {
  const { acme } = config.Hub;
  if (acme === undefined) throw new HubError('bad_request', 'Hub.acme is not set.');
  await using opened = new AsyncDisposableStack();
  const challenges = isHubRunning
    ? await openSharedChallenges(config, opened)
    : { http: new Keyv<string>(), tls: new Keyv() };
  if (!isHubRunning) await answerHere(config, acme, challenges, opened);
  const directory = stagingDirectories[acme.directory] ?? acme.directory;
  const names = acmeNames(config);
  try {
    const account = await openAcmeAccount(
      { directory, fetch, signal },
      {
        key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
        email: acme.email,
        externalAccount: acme.external_account,
      },
    );
    const responder = createResponder(acme, challenges, env);
    await orderCertificate(account, { names, responder, replaces: undefined, signal });
  } catch (error) {
    throw new HubError('bad_request', messageOf(error), { cause: error });
  }
  return `${directory} gives a certificate for ${names.join(', ')}.\n`;
}

async function openSharedChallenges(
  { Hub, directory }: Config,
  opened: AsyncDisposableStack,
): Promise<SharedChallenges> {
  const options = { directory, log };
  const database = opened.use(await openDatabase(Hub.database_url, options));
  return openChallenges(opened.use(await openKeyv({ url: Hub.keyv_url, database, ...options })));
}

async function answerHere(
  config: Config,
  { challenge }: AcmeConfig,
  challenges: SharedChallenges,
  opened: AsyncDisposableStack,
): Promise<void> {
  const { bind_url: bindUrl, redirect_bind_url: redirectUrl } = config.Hub;
  const certificates = {
    certificates: () => [],
    onChange: () => {},
    ...findersOf(challenge, challenges),
  };
  if (challenge === 'http-01' && redirectUrl !== undefined) {
    const { server, close } = createRedirectServer({ config, certificates, log });
    await listen(server, redirectUrl, { key: 'Hub.redirect_bind_url' });
    opened.defer(() => close(0));
  }
  if (challenge === 'tls-alpn-01') {
    const established = (socket: Socket) => void socket.destroy();
    const end = opened.use(createTlsEnd({ certificates, established }));
    const server = createServer(end.receive);
    await listen(server, bindUrl, { key: 'Hub.bind_url' });
    opened.defer(() => void server.close());
  }
}
