import { expect, test } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { createFindStranger } from './port-owner.ts';

test('a program that answered and has gone is another one, since the own one would still listen', async () => {
  const view = { listenersOn: async () => [] } as never;
  const findStranger = createFindStranger({ view });
  const url = `http://127.0.0.1:${await freePort()}`;
  expect(String(await findStranger(url, undefined, { isAnswered: true }))).toBe(
    `the program that answered at ${url} has gone`,
  );
  expect(await findStranger(url, undefined)).toBeUndefined();
  // Who listens on another machine is not known here.
  expect(await findStranger('http://192.0.2.1', undefined, { isAnswered: true })).toBeUndefined();
  // Another program is known to listen for it, such as that of a container.
  const trusting = createFindStranger({ view, trustsAccounts: true });
  expect(await trusting(url, undefined, { isAnswered: true })).toBeUndefined();
});
