import Koa from 'koa';
import { expect, test } from 'vitest';
import { startUpstream } from '../../../test/attacks/proxy-harness.ts';
import { hostCookies } from './cookies.ts';

async function ask(cookie: string | undefined, setCookies: readonly string[]) {
  const app = new Koa();
  let seen: string | undefined;
  app.use(hostCookies());
  app.use((ctx) => {
    seen = ctx.req.headers.cookie;
    ctx.set('Set-Cookie', [...setCookies]);
    ctx.body = '';
  });
  await using server = await startUpstream(app.callback());
  const answer = await fetch(server.url, { headers: cookie === undefined ? {} : { cookie } });
  return { seen, set: answer.headers.getSetCookie() };
}

test.each([
  [undefined, undefined],
  ['theme=dark', 'theme=dark'],
  ['hub-hub-login=planted', undefined],
  ['__Host-hub-hub-login=own; hub-hub-login=planted', 'hub-hub-login=own'],
  [' hub-form=planted ;a=1;__Host-hub-form=own', 'a=1; hub-form=own'],
  ['__host-hub-form=x; __Host-other=1', '__host-hub-form=x; __Host-other=1'],
])('of the cookies %s the hub believes %s', async (sent, expected) => {
  expect((await ask(sent, [])).seen).toBe(expected);
});

test('its own cookies are set for the whole host, under names that no other host can set', async () => {
  const { set } = await ask(undefined, [
    'hub-hub-login=x; Path=/hub/; HttpOnly; Secure; SameSite=Lax',
    'hub-form=; path=/hub/; secure',
    'theme=dark; Path=/a/',
  ]);
  expect(set).toEqual([
    '__Host-hub-hub-login=x; Path=/; HttpOnly; Secure; SameSite=Lax',
    '__Host-hub-form=; Path=/; secure',
    'theme=dark; Path=/a/',
  ]);
});
