import { expect, test } from 'vitest';
import type { Client } from '../../../identity/oauth/clients/client.ts';
import { clientTitle } from './client-title.ts';

const client = (name: string, server?: { userName: string; serverName: string }) =>
  ({ name, identity: { server } }) as unknown as Client;
const ada = (serverName: string) =>
  client(serverName === '' ? 'ada' : `ada/${serverName}`, { userName: 'ada', serverName });

test.each([
  ['a service', client('Wiki'), 'ada', 'Wiki'],
  ['one’s own default server', ada(''), 'ada', 'Your server'],
  ['one’s own named server', ada('lab'), 'ada', 'lab'],
  ['the default server of another user', ada(''), 'root', 'Server of ada'],
  ['a named server of another user', ada('lab'), 'root', 'ada/lab'],
  ['a client that is gone', undefined, 'ada', 'service-gone'],
])('%s has a title that its reader knows', (_, given, viewer, expected) => {
  expect(String(clientTitle(given, 'service-gone', viewer))).toBe(expected);
});
