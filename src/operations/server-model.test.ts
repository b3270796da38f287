import { expect, test } from 'vitest';
import { createOrigins } from '../platform/http/origins.ts';
import type { Server } from '../workloads/servers/server.ts';
import { presentServer } from './server-model.ts';

const server: Server = {
  id: 'id-1',
  userId: 'user-1',
  userName: 'ann b',
  name: '',
  displayName: undefined,
  state: 'starting',
  url: 'http://127.0.0.1:1',
  spawnerState: { pid: 4 },
  userOptions: { size: 1 },
  failure: undefined,
  lastFailure: undefined,
  createdAt: new Date(0),
  startedAt: new Date(1_000),
  lastActivityAt: undefined,
  instance: undefined,
};
const options = {
  prefix: '/user/ann%20b/',
  apiPath: '/hub/api/',
  origins: createOrigins({ publicUrl: new URL('https://hub.example/'), basePath: '/' }),
  withState: false,
  withUserOptions: true,
};

test('the API shows a server without its private address or ids', () => {
  expect(presentServer(server, options)).toEqual({
    name: '',
    display_name: null,
    full_name: 'ann b/',
    last_activity: null,
    started: '1970-01-01T00:00:01.000Z',
    pending: 'spawn',
    ready: false,
    stopped: false,
    unreachable_since: null,
    url: '/user/ann%20b/',
    full_url: 'https://hub.example/user/ann%20b/',
    user_options: { size: 1 },
    progress_url: '/hub/api/users/ann%20b/server/progress',
    full_progress_url: 'https://hub.example/hub/api/users/ann%20b/server/progress',
    failure: null,
    stops_at: null,
    kept_until: null,
    paused_at: null,
    rescue: false,
    stop_reason: null,
  });
});

test('a named server has its own progress, and its state only for who may see it', () => {
  const model = presentServer({ ...server, name: 'lab' }, { ...options, withState: true });
  expect(model).toMatchObject({
    full_name: 'ann b/lab',
    progress_url: '/hub/api/users/ann%20b/servers/lab/progress',
    state: { pid: 4 },
  });
});

test('a server with an origin of its own is shown with its whole URL', () => {
  const origins = createOrigins({
    publicUrl: new URL('https://hub.example/'),
    basePath: '/',
    subdomainHost: new URL('https://hub.example'),
  });
  const model = presentServer(
    { ...server, userName: 'ann' },
    { ...options, prefix: '/user/ann/', origins },
  );
  expect(model).toMatchObject({
    url: 'https://ann.hub.example/user/ann/',
    full_url: 'https://ann.hub.example/user/ann/',
    full_progress_url: 'https://hub.example/hub/api/users/ann/server/progress',
  });
});
