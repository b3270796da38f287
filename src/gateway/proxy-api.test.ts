import { expect, test } from 'vitest';
import { Secret } from '../config/secret.ts';
import { createRouteTable } from '../proxy/route-table.ts';
import { createProxyApi } from './proxy-api.ts';

test('routes of the last run that have become impossible are left out, and the others are there', () => {
  const target = 'http://127.0.0.1:9000';
  const ownUrl = 'http://127.0.0.1:8000';
  const routes = createRouteTable();
  routes.add({ prefix: '/taken/', target, access: 'public', owner: { kind: 'extra' } });
  const unasked = (): never => {
    throw new Error('no one asked for this');
  };
  createProxyApi({
    routes,
    token: new Secret('token-of-the-jupyterhub'),
    host: undefined,
    basePath: '/',
    ownUrls: [ownUrl],
    answers: { respond: unasked },
    clientAddress: unasked,
    audit: { recordAlone: unasked, recordBounded: unasked },
    kept: [
      ['/first', { target }],
      ['/', { target }],
      ['/hub', { target }],
      ['/taken/below', { target }],
      ['/circle', { target: ownUrl }],
      ['/nowhere', { target: 'nonsense' }],
      ['/last', { target }],
    ],
    onChange: unasked,
  });
  const prefixes = routes.list().map(({ prefix }) => prefix);
  expect(prefixes.toSorted()).toEqual(['/first/', '/last/', '/taken/']);
});
