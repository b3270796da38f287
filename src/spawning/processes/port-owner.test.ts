import { expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import { createFindForeignProcess } from './port-owner.ts';

test('a program that answered and has gone is another one, since the own one would still listen', async () => {
  const view = { listenersOn: async () => [] } as never;
  const findForeignProcess = createFindForeignProcess({ view });
  const url = `http://127.0.0.1:${await freePort()}`;
  expect(String(await findForeignProcess(url, undefined, { isAnswered: true }))).toBe(
    `the program that answered at ${url} has gone`,
  );
  expect(await findForeignProcess(url, undefined)).toBeUndefined();
  // Who listens on another machine is not known here.
  expect(
    await findForeignProcess('http://192.0.2.1', undefined, { isAnswered: true }),
  ).toBeUndefined();
  // Another program is known to listen for it, such as that of a container.
  const trusting = createFindForeignProcess({ view, trustsAccounts: true });
  expect(await trusting(url, undefined, { isAnswered: true })).toBeUndefined();
});
