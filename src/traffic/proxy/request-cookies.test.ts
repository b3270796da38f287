import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { sent } from '../../../test/support/sent-headers.ts';
import type { RouteAccess } from './route.ts';

describe('the cookies of a request to an upstream', () => {
  const cookie = (header: string, access: RouteAccess) =>
    sent(['Cookie', header], { access })['cookie'];
  const all =
    'a=1; hub-hub-login=L; hub-session-id=S; service-a=T; service-a-oauth-state-xyz=O; ' +
    'service-ab=X; service-b=X; service-b-oauth-state=X; hub-user-eve=X; hub-xsrf=X; ' +
    'HUB-HUB-LOGIN=X; __Host-hub-hub-login=X; b="2"';

  test('a service that checks visitors itself gets its own and the session id', () => {
    const expected = 'a=1; hub-session-id=S; service-a=T; service-a-oauth-state-xyz=O; b="2"';
    expect(cookie('a=1; hub-session-id=S', 'service')).toBe('a=1; hub-session-id=S');
    expect(cookie(all, 'service')).toBe(expected);
    expect(cookie(all, 'server')).toBe(expected);
  });

  test('behind the gateway or in public an upstream gets none of them', () => {
    expect(cookie(all, 'gateway')).toBe('a=1; b="2"');
    expect(cookie(all, 'public')).toBe('a=1; b="2"');
    expect(cookie('hub-session-id=S', 'gateway')).toBeUndefined();
  });

  test('whatever a visitor sends, none of the hub passes the gateway, and the others stay as they are', () => {
    const ofHub = fc.constantFrom(
      'hub-x',
      'HUB-x',
      'service-b',
      '__Host-hub-x',
      '__Secure-service-a',
    );
    const foreign = fc.constantFrom('a', 'x-hub-', 'my-service-b', 'hubs');
    const value = fc.string({
      unit: fc.constantFrom('"', '=', ',', ' ', '\t', 'b', 'hub-', '\xc3\xa0'),
    });
    const pair = fc.tuple(fc.oneof(ofHub, foreign), value, fc.constantFrom('', ' ', '\t', '\xa0'));
    fc.assert(
      fc.property(fc.array(pair, { minLength: 1, maxLength: 6 }), (pairs) => {
        const written = (list: typeof pairs) => list.map(([name, text]) => `${name}=${text}`);
        const header = pairs
          .map(([name, text, blank]) => `${blank}${name}${blank}=${text}`)
          .join(';');
        expect(cookie(header, 'gateway') ?? '').not.toMatch(
          /(?:^|;)\s*(?:__\w+-)?(?:hub|service)-/i,
        );
        const kept = pairs.filter(([name]) => /^(?:a|x-hub-|my-service-b|hubs)$/.test(name));
        const plain = String(cookie(written(pairs).join('; '), 'gateway') ?? '');
        const trimmed = (text: string) => text.replace(/[ \t]+$/, '');
        expect(plain.split(/; /).map(trimmed).join('; ')).toBe(
          written(kept).map(trimmed).join('; '),
        );
      }),
      runs(300),
    );
  });

  test('an alias of the session id goes where the session id goes, and is foreign elsewhere', () => {
    const aliases = { sessionIdAliases: ['jupyterhub-session-id'] };
    const both = 'hub-session-id=S; jupyterhub-session-id=S';
    for (const access of ['service', 'server'] as const) {
      expect(sent(['Cookie', both], { access, ...aliases })['cookie']).toBe(both);
    }
    for (const access of ['gateway', 'public'] as const) {
      const odd = `${both}; JupyterHub-Session-Id=S; a=1`;
      expect(sent(['Cookie', odd], { access, ...aliases })['cookie']).toBe('a=1');
    }
    expect(cookie(both, 'gateway')).toBe('jupyterhub-session-id=S');
  });

  test('foreign cookies stay as they are, byte for byte', () => {
    const odd = '$Version="1"; a=1;b=2 ;; =x; noequals; app-oauth-state=1; q="; "';
    expect(cookie(odd, 'gateway')).toBe(odd);
  });

  test('a repeated or oddly spaced name is dropped every time', () => {
    expect(cookie('hub-hub-login=1;hub-hub-login =2;  hub-hub-login=3;x=1', 'server')).toBe('x=1');
    expect(cookie('hub-hub-login', 'server')).toBeUndefined();
  });

  test('every Cookie header is filtered', () => {
    const headers = sent(['Cookie', 'hub-hub-login=1', 'cookie', 'a=1; hub-hub-login=1']);
    expect(headers['cookie']).toBe('a=1');
  });
});
