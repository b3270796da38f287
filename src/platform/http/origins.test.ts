import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/properties.ts';
import { createOrigins } from './origins.ts';
import { safeRedirectTarget } from './redirect-target.ts';

const publicUrl = new URL('https://hub.example.org:8443/team/');
const shared = createOrigins({ publicUrl, basePath: '/team/' });
const separate = createOrigins({
  publicUrl,
  basePath: '/team/',
  subdomainHost: new URL('https://example.org:8443'),
  ownLabel: 'hub',
});

test('on one shared origin every path and host is that of the hub', () => {
  expect(shared.of({ kind: 'server', userName: 'ada', serverName: '' })).toBe(publicUrl.origin);
  expect(shared.urlOf('/team/user/ada/')).toBe('/team/user/ada/');
  expect(shared.ofHost('anything')).toBe(publicUrl.origin);
});

test.each([
  ['/team/user/ada/', 'https://ada.example.org:8443/team/user/ada/'],
  ['/team/user/ada/lab/x?y#z', 'https://ada.example.org:8443/team/user/ada/lab/x?y#z'],
  ['/team/user/ada', 'https://ada.example.org:8443/team/user/ada'],
  ['/team/services/wiki/', 'https://wiki--service.example.org:8443/team/services/wiki/'],
  ['/team/hub/home', '/team/hub/home'],
  ['/team/user/', '/team/user/'],
  ['/user/ada/', '/user/ada/'],
  ['/team/user/%zz/', '/team/user/%zz/'],
  ['//team/user/ada/', '//team/user/ada/'],
  ['/team/', '/team/'],
])('leads %s to %s', (path, url) => {
  expect(separate.urlOf(path)).toBe(url);
});

test('gives no user the host of the hub', () => {
  const url = separate.of({ kind: 'server', userName: 'hub', serverName: '' });
  expect(url).not.toBe(publicUrl.origin);
  expect(separate.ofHost('hub.example.org')).toBe(publicUrl.origin);
});

test.each([
  ['hub.example.org', 'https://hub.example.org:8443'],
  ['HUB.example.org.:1', 'https://hub.example.org:8443'],
  ['ada.example.org:8443', 'https://ada.example.org:8443'],
  ['a.b.example.org', 'https://a.b.example.org:8443'],
  ['example.org', undefined],
  ['evil.org', undefined],
  ['evilexample.org', undefined],
  ['example.org.evil.org', undefined],
  ['ada.example.org:x', undefined],
  ['ada.example.org:8443:1', undefined],
  ['[::1]:8443', undefined],
  ['ada.example.org/x', undefined],
  ['x@ada.example.org', undefined],
  [' ada.example.org', undefined],
  ['', undefined],
])('takes the Host %j for %s', (host, origin) => {
  expect(separate.ofHost(host)).toBe(origin);
});

describe('for any next', () => {
  const piece = fc.constantFrom(
    ...['https://', 'http://', '//', '/', '\\', 'ada.example.org:8443', 'hub.example.org:8443'],
    ...['evil.org', '@', ':', '/team/', 'user/', 'ada/', '%2f', '%5c', '?', '#', '..', '\t', 'x'],
  );
  const next = fc.array(piece, { maxLength: 10 }).map((parts) => parts.join(''));

  test('a redirect stays on the hub, or goes to the origin that serves the path', () => {
    fc.assert(
      fc.property(next, (text) => {
        const target = safeRedirectTarget(text, publicUrl, separate);
        if (target === undefined) return;
        const url = new URL(separate.urlOf(target), publicUrl);
        const owner = separate.ownerOf(url.pathname);
        expect(url.origin).toBe(owner === undefined ? publicUrl.origin : separate.of(owner));
      }),
      runs(5_000),
    );
  });

  test('of an origin of the hub is accepted', () => {
    const url = 'https://ada.example.org:8443/team/user/ada/x?y';
    expect(safeRedirectTarget(url, publicUrl, separate)).toBe('/team/user/ada/x?y');
    expect(safeRedirectTarget(url, publicUrl)).toBeUndefined();
    expect(safeRedirectTarget(url, publicUrl, shared)).toBeUndefined();
  });
});
