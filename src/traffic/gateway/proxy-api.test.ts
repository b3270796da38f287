import { pino } from 'pino';
import { expect, test } from 'vitest';
import { Secret } from '../../platform/config/secret.ts';
import { createRouteTable } from '../proxy/route-table.ts';
import { createProxyApi } from './proxy-api.ts';

test('routes of the last run that have become impossible are left out with a warning that says why, and the others are there', () => {
  const target = 'http://127.0.0.1:9000';
  const ownUrl = 'http://127.0.0.1:8000';
  const routes = createRouteTable();
  routes.add({ prefix: '/taken/', target, access: 'public', owner: { kind: 'extra' } });
  const unasked = (): never => {
    throw new Error('no one asked for this');
  };
  const warnings: { path: string; reason: string }[] = [];
  const log = pino({ base: null }, { write: (line: string) => warnings.push(JSON.parse(line)) });
  createProxyApi({
    routes,
    token: new Secret('token-of-the-jupyterhub'),
    host: undefined,
    basePath: '/',
    ownUrls: [ownUrl],
    answers: { respond: unasked },
    clientAddress: unasked,
    audit: { recordAlone: unasked, recordBounded: unasked },
    log,
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
  expect(warnings).toEqual(
    [
      ['/', 'would hide / of this hub'],
      ['/hub', 'would hide /hub/ of this hub'],
      ['/taken/below', 'would hide the route'],
      ['/circle', 'would go in a circle'],
      ['/nowhere', 'no http:// or https:// URL'],
    ].map(([path, reason]) =>
      expect.objectContaining({ level: 40, path, reason: expect.stringContaining(reason ?? '') }),
    ),
  );
});
