import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Login } from '../../identity/sessions/login-sessions.ts';
import { type ChangeSubject, createChangeListeners } from '../../platform/store/change-subject.ts';
import { type ConnectionTags, createLiveConnections } from '../proxy/live-connections.ts';
import { createRoute } from '../proxy/route.ts';
import { createLiveAccess } from './live-access.ts';

const route = createRoute(
  {
    prefix: '/services/app/',
    target: 'http://127.0.0.1:9',
    access: 'gateway',
    owner: { kind: 'service', name: 'app' },
  },
  0,
);
const pollMs = 2_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp() {
  const connections = createLiveConnections();
  const openSessions = new Set(['open', 'other']);
  const closed: string[] = [];
  const log = pino({ level: 'silent' });
  const { add: onChange, callAll: announce } = createChangeListeners({ log });
  const liveAccess = createLiveAccess({
    connections,
    database: { onChange, now: Date.now },
    routes: { onRemove: () => () => {} },
    access: { isStillGranted: async (id) => id !== 'revoked' },
    loginAccess: { isStillGranted: async () => true },
    logins: {
      find: async (sessionId) => (openSessions.has(sessionId) ? ({} as Login) : undefined),
      onEnd: () => () => {},
    },
    groupNamesOf: async () => [],
    log,
  });
  return {
    openSessions,
    closed,
    announce: (subject: ChangeSubject = { kind: 'rights_changed' }) => announce(subject),
    connect(name: string, tags: Omit<ConnectionTags, 'route'>) {
      connections.add({
        kind: 'websocket',
        tags: { route, ...tags },
        close: (reason) => void closed.push(`${name}: ${reason}`),
        endStream: () => {},
      });
    },
    [Symbol.dispose]: () => liveAccess[Symbol.dispose](),
  };
}

test('a session that another process ended takes its connections along, and no others', async () => {
  using parts = setUp();
  parts.connect('of the session', { sessionId: 'open' });
  parts.connect('of another', { sessionId: 'other' });
  parts.connect('of nobody', {});
  await vi.advanceTimersByTimeAsync(pollMs);
  parts.openSessions.delete('open');
  parts.announce({ kind: 'rights_changed' });
  await vi.advanceTimersByTimeAsync(0);
  expect(parts.closed).toEqual(['of the session: session_ended']);
});

test('a cookie that never named an open session is no reason to cut a connection', async () => {
  using parts = setUp();
  parts.connect('stale', { sessionId: 'ended long ago' });
  await vi.advanceTimersByTimeAsync(pollMs);
  parts.announce({ kind: 'rights_changed' });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(parts.closed).toEqual([]);
});

test('a connection whose token no longer admits is ended after a change, one that expires without', async () => {
  using parts = setUp();
  parts.connect('revoked', { accessTokenId: 'revoked' });
  parts.connect('expiring', { accessTokenId: 'valid', expiresAtMs: Date.now() + 500 });
  parts.announce({ kind: 'rights_changed' });
  await vi.advanceTimersByTimeAsync(0);
  expect(parts.closed).toEqual(['revoked: access_revoked']);
  await vi.advanceTimersByTimeAsync(pollMs);
  expect(parts.closed).toEqual(['revoked: access_revoked', 'expiring: access_revoked']);
});
