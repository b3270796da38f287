import { createServer, type IncomingMessage } from 'node:http';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rawRequest } from '../../../test/attacks/proxy-harness.ts';
import { deny } from '../../client/decision.ts';
import { routeRules } from '../../platform/config/route-rules-schema.ts';
import { HubError } from '../../platform/errors.ts';
import { answerOnSocket, writeAnswer } from '../../platform/http/answer.ts';
import { createErrorAnswers } from '../../platform/http/error-answers.ts';
import { createClientAddressReader } from '../../platform/http/request-address.ts';
import { serveMessages } from '../../platform/http/server/serve-messages.ts';
import type { RouteDefinition } from '../proxy/route.ts';
import { createRouteTable } from '../proxy/route-table.ts';
import type { AccessPolicy, Authorized, GateDecision } from './access-policy.ts';
import { createGateway } from './gateway.ts';

const alice: Authorized = {
  kind: 'authorized',
  headers: ['X-Hub-User', 'alice'],
  userName: 'alice',
  groups: ['staff'],
  sessionId: undefined,
  accessTokenId: undefined,
  clientId: undefined,
  expiresAtMs: undefined,
  stripAuthorization: false,
};

const decisions: Readonly<Record<string, GateDecision>> = {
  alice,
  nobody: { kind: 'redirect', location: '/hub/login', setCookies: ['a=b'] },
  mallory: deny(new HubError('forbidden', 'no'), {
    headers: { 'x-why': 'm' },
    setCookies: ['a=b'],
  }),
};
const visitorOf = ({ headers }: { headers: IncomingMessage['headers'] }) =>
  String(headers['x-visitor']);
const policy: AccessPolicy = {
  known: (_route, request) =>
    visitorOf(request as IncomingMessage) === 'known' ? alice : undefined,
  async decide(_route, request) {
    const decision = decisions[visitorOf(request as IncomingMessage)];
    if (decision === undefined) throw new Error('nobody can tell');
    return decision;
  },
};

let isOutdated = false;
let server: ReturnType<typeof start>;
beforeAll(async () => {
  server = start();
  await server.listening;
});
afterAll(() => server.close());

function start() {
  const routes = createRouteTable({ reservedPrefixes: ['/hub/'] });
  const add = (name: string, more: Partial<RouteDefinition> = {}) =>
    routes.add({
      prefix: `/services/${name}/`,
      target: 'http://127.0.0.1:1',
      access: 'gateway',
      owner: { kind: 'service', name },
      clientId: `service-${name}`,
      ...more,
    });
  const rules = routeRules.parse([
    { paths: ['/closed/*'], allow: 'nobody' },
    { paths: ['/open/*'], allow: 'everyone' },
    { paths: ['/admin/*'], groups: ['admins'] },
  ]);
  add('app', { rules });
  add('open', { access: 'public' });
  add('asleep', { isReady: false, rules });
  add('away', { via: 'other', rules });
  add('behind', { isBehindProxy: true, rules });
  const clientAddress = createClientAddressReader([]);
  const log = pino({ level: 'silent' });
  const answers = createErrorAnswers({ renderErrorPage: () => '', hstsSeconds: undefined, log });
  const said = (verdict: string) => ({ status: 200, headers: { 'x-verdict': verdict }, body: '' });
  const gateway = createGateway({
    routes,
    hostRules: {
      check: (req) =>
        req.headers.host === 'wrong.test'
          ? { error: new HubError('misdirected', 'wrong host') }
          : undefined,
    },
    crossOriginLogin: undefined,
    guard: policy,
    serverGuard: policy,
    forwardAuth: {
      answer: (req, res) => writeAnswer(req, res, said('forward-auth')),
    },
    hubPath: '/hub/',
    resources: { metadataFor: () => undefined },
    clientAddress,
    renderNotReadyPage: () => ({ html: '', error: new HubError('unavailable', 'asleep') }),
    isOutdated: () => isOutdated,
    forwarder: {
      forward: (req, res, { path, userName, headersToAdd }) =>
        writeAnswer(req, res, said(`forward ${path} ${userName} ${headersToAdd}`)),
    },
    webSockets: {
      forward: (_req, socket, _head, { path, userName, headersToAdd }) =>
        answerOnSocket(socket, said(`forward ${path} ${userName} ${headersToAdd}`)),
    },
    hops: {
      forward: (req, res, { via, path }) => writeAnswer(req, res, said(`hop ${via} ${path}`)),
      forwardUpgrade: (_req, socket, _head, { via, path }) =>
        answerOnSocket(socket, said(`hop ${via} ${path}`)),
    },
    answers,
    traffic: { requestClosed: () => {}, followUpgrade: () => ({ visitor: {} }) },
    leaveUpgrade: (_req, socket) => answerOnSocket(socket, said('hub')),
    userOfSession: async () => undefined,
  });
  const http = createServer();
  serveMessages(http, {
    request(req, res) {
      if (!gateway.handleRequest(req, res)) writeAnswer(req, res, said('hub'));
    },
    upgrade: gateway.handleUpgrade,
  });
  const listening = new Promise<void>((resolve) => http.listen(0, '127.0.0.1', () => resolve()));
  return {
    listening,
    get port() {
      return (http.address() as { port: number }).port;
    },
    close: () => http.close(),
  };
}

const handshake = [
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];

/** The verdict as its answer shows it: the status, and what was called or which error was given. */
async function verdictOn(target: string, headers: readonly string[], isUpgrade: boolean) {
  const host = headers.some((line) => line.startsWith('Host')) ? [] : ['Host: hub.test'];
  const connection = isUpgrade ? ['Connection: Upgrade', ...handshake] : ['Connection: close'];
  const lines = [`GET ${target} HTTP/1.1`, ...host, ...headers, ...connection];
  const answer = await rawRequest(server.port, `${lines.join('\r\n')}\r\n\r\n`);
  const named = /^x-verdict: (.*)\r$/im.exec(answer) ?? /"code":"(\w+)"/.exec(answer);
  return `${answer.split(' ')[1]} ${named?.[1] ?? ''}`.trim();
}

const as = (name: string) => `X-Visitor: ${name}`;
const other = 'Host: wrong.test';

/** What comes first of several reasons is in each of these that have several. */
test.for([
  ['two hosts', '/services/app/', ['Host: a', 'Host: b', as('alice')], '400 bad_request'],
  ['a path in doubt', '/services/app/%2e%2e/x', [as('alice')], '400 invalid_path'],
  ['no route', '/nothing', [], '200 hub'],
  ['no route on a wrong host', '/nothing', [other], '421 misdirected'],
  ['a wrong host', '/services/app/', [other, as('alice')], '421 misdirected'],
  ['a wrong host, of another instance', '/services/away/', [other], '421 misdirected'],
  ['a wrong host, not ready', '/services/asleep/', [other], '421 misdirected'],
  ['a wrong host, behind a proxy', '/services/behind/', [other], '421 misdirected'],
  ['a closed part', '/services/app/closed/x', [as('alice')], '403 forbidden'],
  ['a closed part of another instance', '/services/away/closed/x', [], '403 forbidden'],
  ['a closed part, not ready', '/services/asleep/closed/x', [], '403 forbidden'],
  ['a closed part behind a proxy', '/services/behind/closed/x', [], '403 forbidden'],
  ['not ready', '/services/asleep/', [as('alice')], '503 unavailable'],
  ['another instance', '/services/away/x?y', [], '200 hop other /services/away/x?y'],
  [
    'an open part',
    '/services/app/open/x',
    [],
    '200 forward /services/app/open/x undefined undefined',
  ],
  ['an open service', '/services/open/x', [], '200 forward /services/open/x undefined undefined'],
  [
    'who is known',
    '/services/app/x',
    [as('known')],
    '200 forward /services/app/x alice X-Hub-User,alice',
  ],
  [
    'who is let in',
    '/services/app/x',
    [as('alice')],
    '200 forward /services/app/x alice X-Hub-User,alice',
  ],
  ['who is refused', '/services/app/x', [as('mallory')], '403 forbidden'],
  ['who is in no group', '/services/app/admin/x', [as('alice')], '403 forbidden'],
  ['who is known and in no group', '/services/app/admin/x', [as('known')], '500 internal'],
  ['a failure', '/services/app/x', [as('?')], '500 internal'],
  ['an open part behind a proxy', '/services/behind/open/x', [], '404 not_found'],
  ['who is let in behind a proxy', '/services/behind/x', [as('alice')], '404 not_found'],
  ['who is refused behind a proxy', '/services/behind/x', [as('mallory')], '403 forbidden'],
] as const)(
  'a request and a WebSocket get the same verdict: %s',
  async ([, path, headers, verdict]) => {
    expect([await verdictOn(path, headers, false), await verdictOn(path, headers, true)]).toEqual([
      verdict,
      verdict,
    ]);
  },
);

test('while the hub cannot be asked, both are refused where someone must be asked', async () => {
  isOutdated = true;
  for (const isUpgrade of [false, true]) {
    expect(await verdictOn('/services/app/x', [as('alice')], isUpgrade)).toBe('503 unavailable');
    expect(await verdictOn('/services/app/closed/x', [], isUpgrade)).toBe('403 forbidden');
    expect(await verdictOn('/services/away/', [], isUpgrade)).toMatch('200 hop');
  }
  isOutdated = false;
});

test.for([
  ['a browser without a login', '/services/app/x', '302', '401 unauthenticated'],
  ['a path without its last slash', '/services/app', '308', '404 not_found'],
  ['a question of another proxy', '/hub/auth-request', '200 forward-auth', '404 not_found'],
] as const)(
  'a WebSocket is refused where a request is sent elsewhere: %s',
  async ([, path, http, webSocket]) => {
    expect(await verdictOn(path, [as('nobody')], false)).toBe(http);
    expect(await verdictOn(path, [as('nobody')], true)).toBe(webSocket);
  },
);
