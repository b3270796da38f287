import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import { createTestHub, submitForm, type TestHub, until } from '../support/test-hub.ts';

const fixtures = join(import.meta.dirname, '..', '..', 'fixtures', 'jupyter');

describe.runIf(requires('python3-jupyterhub'))(
  'services written with the Python classes of JupyterHub',
  () => {
    let hub: TestHub;
    let oauthUrl: string;
    let tokenUrl: string;

    beforeAll(async () => {
      const ports = [
        await freePort(),
        await freePort(),
        await freePort(),
        await freePort(),
      ] as const;
      hub = await createTestHub({
        Hub: {
          // A base URL with a path: JUPYTERHUB_BASE_URL is that path and no URL.
          bind_url: `http://127.0.0.1:${ports[0]}/team/`,
          environment_prefixes: ['HUB', 'JUPYTERHUB'],
          load_roles: [
            { name: 'services', users: ['alice'], scopes: ['access:services'] },
            { name: 'names', users: ['alice', 'mallory'], scopes: ['read:users:name'] },
          ],
          services: [
            {
              name: 'oauth',
              url: `http://127.0.0.1:${ports[1]}`,
              // The programs make a route of the path of it.
              oauth_redirect_uri: `http://127.0.0.1:${ports[0]}/team/services/oauth/oauth_callback`,
              command: [pathOf('python3-jupyterhub'), join(fixtures, 'oauth_service.py')],
            },
            {
              name: 'pages',
              url: `http://127.0.0.1:${ports[3]}`,
              command: [pathOf('python3-jupyterhub'), join(fixtures, 'token_pages.py')],
            },
            {
              name: 'tokens',
              url: `http://127.0.0.1:${ports[2]}`,
              command: [pathOf('python3-jupyterhub'), join(fixtures, 'token_service.py')],
            },
          ],
        },
      });
      oauthUrl = `${hub.url}services/oauth/`;
      tokenUrl = `${hub.url}services/tokens/`;
      for (const name of ['oauth', 'pages', 'tokens']) {
        await until(async () => {
          const answer = await hub.api(`/services/${name}`, 'admin-service-token');
          return ((await answer.json()) as { ready: boolean }).ready;
        }, `the service ${name} is ready`);
      }
    });

    afterAll(() => hub?.[Symbol.asyncDispose]());

    async function issueToken(userName: string, scopes?: string[]) {
      const answer = await hub.api(`/users/${userName}/tokens`, 'admin-service-token', {
        method: 'POST',
        body: JSON.stringify(scopes === undefined ? {} : { scopes }),
      });
      return (await answer.json()) as { token: string; id: string };
    }

    const asking = (url: string, token: string) =>
      fetch(url, { headers: { authorization: `token ${token}` }, redirect: 'manual' });

    test('with HubAuthenticated send a browser in no endless circle', async () => {
      const browser = await hub.logIn('alice');
      const url = `${hub.url}services/pages/`;
      let answer = await browser.request(url);
      let hops = 0;
      for (; answer.headers.location !== undefined && hops < 40; hops += 1) {
        answer = await browser.request(new URL(answer.headers.location, answer.url).href);
      }
      expect(answer.status).toBe(403);
      expect(answer.body).toContain('this page keeps asking again');
      expect(answer.body).toContain('/team/services/pages/ may be for programs with a token only');
      // What a browser takes before it gives up by itself.
      expect(hops).toBeLessThan(20);
      expect((await asking(url, (await issueToken('alice')).token)).status).toBe(200);
      // Another page is not meant.
      const other = await browser.request(`${hub.url}hub/login?next=/team/hub/token`);
      expect(other.headers.location).toBe('/team/hub/token');
    });

    describe('with HubOAuth', () => {
      test('lead a browser through login and consent and know who is there', async () => {
        const browser = await hub.logIn('alice');
        const consent = await browser.open(oauthUrl);
        expect(consent.body).toContain('Allow oauth?');
        const allowed = await submitForm(browser, consent, { decision: 'allow' });
        const page = await browser.open(new URL(allowed.headers.location ?? '', hub.url).href);
        expect([page.status, page.url]).toEqual([200, oauthUrl]);
        expect(JSON.parse(page.body)).toMatchObject({
          kind: 'user',
          name: 'alice',
          groups: [],
          scopes: expect.arrayContaining(['access:services!service=oauth']),
        });
        expect(browser.cookieNames()).toContain('service-oauth');
        // The state of the login is taken when it has ended, so a second visit needs none.
        expect((await browser.request(oauthUrl)).status).toBe(200);
      });

      test('send a visitor who is not logged in to the login page and back', async () => {
        const browser = await hub.logIn('alice');
        const first = await browser.request(oauthUrl);
        expect(first.status).toBe(302);
        const authorize = new URL(first.headers.location ?? '', oauthUrl);
        expect(authorize.pathname).toBe('/team/hub/api/oauth2/authorize');
        expect(authorize.searchParams.get('redirect_uri')).toBe(
          '/team/services/oauth/oauth_callback',
        );
        const anonymous = await fetch(authorize, { redirect: 'manual' });
        expect(anonymous.headers.get('location')).toMatch(/\/team\/hub\/login\?next=/);
      });

      test('take a token in the header or, of old, in the URL', async () => {
        const { token } = await issueToken('alice');
        expect(await (await asking(oauthUrl, token)).json()).toMatchObject({ name: 'alice' });
        expect(await (await fetch(`${oauthUrl}?token=${token}`)).json()).toMatchObject({
          name: 'alice',
        });
      });

      test('speak WebSocket with those who may', async () => {
        const { token } = await issueToken('alice');
        const url = `${oauthUrl.replace('http', 'ws')}echo`;
        const socket = new WebSocket(url, {
          headers: { authorization: `token ${token}`, origin: new URL(hub.url).origin },
        });
        await once(socket, 'open');
        socket.send('hello');
        const [message] = (await once(socket, 'message')) as [Buffer];
        expect(message.toString()).toBe('alice: hello');
        socket.close();
        await once(socket, 'close');
      });

      test('notice at once that the visitor has logged out', async () => {
        const browser = await hub.logIn('alice');
        const consent = await browser.open(oauthUrl);
        if (consent.url !== oauthUrl) await submitForm(browser, consent, { decision: 'allow' });
        expect((await browser.open(oauthUrl)).url).toBe(oauthUrl);
        const page = await browser.request(`${hub.url}hub/logout`);
        expect(page.body).toContain('You are logged out');
        expect(browser.cookieNames()).toContain('service-oauth');
        const after = await browser.open(oauthUrl);
        expect(after.url).toMatch(/\/team\/hub\/login\?next=/);
      });

      test('are closed to a user without the scope, in a browser and by token', async () => {
        const mallory = await hub.logIn('mallory');
        const page = await mallory.open(oauthUrl);
        expect(page.status).toBe(403);
        expect(page.url).toContain('/hub/api/oauth2/authorize');
        const { token } = await issueToken('mallory');
        expect((await asking(oauthUrl, token)).status).toBe(403);
      });

      test('are closed to a token of a user who may, when the token itself may not', async () => {
        const { token } = await issueToken('alice', ['read:users:name']);
        expect((await asking(oauthUrl, token)).status).toBe(403);
      });

      test('answer an interrupted login with an error instead of a loop', async () => {
        const browser = await hub.logIn('alice');
        const { status } = await browser.request(`${oauthUrl}oauth_callback?code=none&state=none`);
        expect([400, 403]).toContain(status);
      });
    });

    describe('with HubAuth', () => {
      test('know whose token they are shown', async () => {
        const { token } = await issueToken('alice');
        const answer = await asking(`${tokenUrl}any`, token);
        expect(answer.status).toBe(200);
        expect(await answer.json()).toMatchObject({ kind: 'user', name: 'alice' });
      });

      test('refuse no token, a wrong one, one without the scope and one that is revoked', async () => {
        expect((await fetch(tokenUrl)).status).toBe(401);
        expect((await asking(tokenUrl, 'hub_none')).status).toBe(401);
        const { token: weak } = await issueToken('alice', ['read:users:name']);
        expect((await asking(tokenUrl, weak)).status).toBe(403);
        const { token, id } = await issueToken('alice');
        const path = `/users/alice/tokens/${id}`;
        expect((await hub.api(path, 'admin-service-token', { method: 'DELETE' })).status).toBe(204);
        expect((await asking(tokenUrl, token)).status).toBe(401);
      });
    });
  },
);
