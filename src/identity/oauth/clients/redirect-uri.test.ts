import { expect, test } from 'vitest';
import { absoluteRedirectUri, isSameRedirectUri } from './redirect-uri.ts';

const origin = 'https://hub.example';

test('takes a path as that path on the origin of the client', () => {
  expect(absoluteRedirectUri('/team/services/x/cb', origin)).toBe(
    'https://hub.example/team/services/x/cb',
  );
  expect(isSameRedirectUri('/services/x/cb', 'https://hub.example/services/x/cb', origin)).toBe(
    true,
  );
});

test('leaves an absolute URI as it is', () => {
  expect(absoluteRedirectUri('com.example.app:/cb', origin)).toBe('com.example.app:/cb');
});

test.each([
  ['/services/x/cb', '/services/x/cb/'],
  ['/services/x/cb', 'https://hub.example:443/services/x/cb'],
  ['/services/x/cb', 'https://HUB.example/services/x/cb'],
  ['/services/x/cb', '//hub.example/services/x/cb'],
  ['/a%2Fb', '/a/b'],
  ['/a%2Fb', '/a%2fb'],
])('does not take %s for %s', (left, right) => {
  expect(isSameRedirectUri(left, right, origin)).toBe(false);
});
