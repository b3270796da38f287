import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Config } from '../../config/config.ts';
import { HubError } from '../../errors.ts';
import { text } from '../../texts/text.ts';
import { type Answer, errorAnswer, toErrorResponse, writeAnswer } from '../answer.ts';
import { createConnectionLimits } from '../connection-limits.ts';
import { canonicalPath, createTrustedPeer, hostnameOf, hostProblem } from '../request-address.ts';
import { createHubServer, type HubServer } from '../server/http-server.ts';
import { createCertificateChoice } from './certificate-choice.ts';
import type { CertificateSource } from './certificate-source.ts';

const maxConnections = 1_000;

/**
 * Sends those who come by plain http to the same address by https: of the hosts that there are certificates for, and
 * no other, so that nobody is sent to where another one wants. Answers the challenges of certificate authorities.
 */
export function createRedirectServer(deps: {
  readonly config: Pick<Config, 'Proxy' | 'publicUrl'> & {
    readonly Hub: Pick<Config['Hub'], 'trusted_proxies'>;
  };
  readonly certificates: CertificateSource;
  readonly log: Logger;
}): HubServer {
  const { Hub, Proxy: proxyConfig, publicUrl } = deps.config;
  const choice = createCertificateChoice(deps.certificates);
  const port = publicUrl.port === '' ? '' : `:${publicUrl.port}`;

  async function answerTo(req: IncomingMessage): Promise<Answer> {
    const path = canonicalPath(req.url ?? '');
    if (path === undefined) {
      throw new HubError('invalid_path', text`This address can be read in more than one way.`);
    }
    const challenge = await deps.certificates.answerHttpChallenge?.(path.pathname);
    if (challenge !== undefined) {
      return { status: 200, headers: { 'content-type': 'text/plain' }, body: challenge };
    }
    const problem = hostProblem(req);
    if (problem !== undefined) throw problem;
    const host = hostnameOf(req.headers.host ?? '');
    if (host === undefined || (host !== publicUrl.hostname && !choice.covers(host))) {
      throw new HubError('misdirected', text`The hub does not go by this host name.`);
    }
    return { status: 308, headers: { location: `https://${host}${port}${path.target}` }, body: '' };
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    try {
      writeAnswer(req, res, await answerTo(req));
    } catch (error) {
      if (!(error instanceof HubError)) deps.log.error({ err: error }, 'challenge not answered');
      writeAnswer(req, res, errorAnswer(toErrorResponse(error)));
    }
  }

  return createHubServer({
    config: proxyConfig,
    log: deps.log,
    limits: createConnectionLimits({
      perAddress: proxyConfig.max_connections_per_address,
      inAll: maxConnections,
      isTrustedPeer: createTrustedPeer(Hub.trusted_proxies),
    }),
    request: (req, res) => void answer(req, res),
  });
}
