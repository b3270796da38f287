import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { startGuardedApp } from '../support/guarded-app.ts';
import {
  hasWebServer,
  type SiteServerName,
  startWebServer,
  webServerCommand,
} from '../support/web-servers.ts';
import { head, rawRequest, startProxy } from './proxy-harness.ts';

const servers: readonly SiteServerName[] = ['nginx', 'Apache'];

// They redirect `/docs` to `/docs/` by the Host they are asked with, and add what they take for the port.
describe.for(servers)('a redirect of %s to a directory', (name) => {
  test.skipIf(!hasWebServer(name))(
    'stays within the hub, under whatever host it is asked',
    async () => {
      await using upstream = await startWebServer(name, '/services/a/');
      await using proxy = await startProxy();
      proxy.addService('a', upstream.url);
      for (const host of ['hub.example.org', 'hub.example.org:8443', `127.0.0.1:${proxy.port}`]) {
        const request = `GET /services/a/docs HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
        const answer = await rawRequest(proxy.port, request);
        expect(answer).toMatch(/^HTTP\/1\.1 301 /);
        expect(/^location: (.*)\r$/im.exec(answer)?.[1]).toBe('/services/a/docs/');
      }
      const page = await rawRequest(proxy.port, head('GET /services/a/docs/', 'Connection: close'));
      expect(page).toContain('the page of docs');
    },
  );

  test.skipIf(!hasWebServer(name))(
    'stays within a server behind hub-singleuser that leaves the prefix out',
    async () => {
      using site = webServerCommand(name, '/');
      await using app = await startGuardedApp({
        stripsPrefix: true,
        command: [...site.command, '{port}'],
      });
      await app.singleuser.ready;
      const ask = async (path: string, host: string) => {
        const headers = { host, authorization: 'token good' };
        const outgoing = request(`${app.origin}${path}`, { headers }).end();
        const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
        const body = (await answer.toArray()).join('');
        return { status: answer.statusCode, location: answer.headers.location, body };
      };
      for (const host of ['hub.example.org', 'hub.example.org:8443', `127.0.0.1:${app.port}`]) {
        expect(await ask('/user/alice/docs', host)).toMatchObject({
          status: 301,
          location: '/user/alice/docs/',
        });
      }
      expect((await ask('/user/alice/docs/', 'hub.example.org')).body).toContain(
        'the page of docs',
      );
    },
  );
});
