import { expect, test } from 'vitest';
import { createAddressReports } from './address-reports.ts';

const never = new AbortController().signal;
const onNode7 = ({ host = 'node7', port }: { host: string | undefined; port: number }) => {
  if (host !== 'node7') throw new Error(`The job does not run on ${host}.`);
  return `http://${host}:${port}`;
};

test('the first address that the spawner accepts counts, and no other after it', async () => {
  const reports = createAddressReports();
  const address = reports.await('server-1', onNode7, never);
  await expect(reports.tell('server-1', { host: 'node8', port: 1 })).rejects.toMatchObject({
    code: 'forbidden',
    message: 'The job does not run on node8.',
  });
  await reports.tell('server-1', { host: undefined, port: 4711 });
  expect(await address).toBe('http://node7:4711');
  await expect(reports.tell('server-1', { host: 'node7', port: 4712 })).rejects.toMatchObject({
    code: 'conflict',
  });
});

test('only a server that is waited for is heard', async () => {
  const reports = createAddressReports();
  const given = new AbortController();
  const address = reports.await('server-1', onNode7, given.signal);
  const other = { host: 'node7', port: 1 };
  await expect(reports.tell('server-2', other)).rejects.toMatchObject({ code: 'conflict' });
  given.abort(new Error('given up'));
  await expect(address).rejects.toThrow('given up');
  await expect(reports.tell('server-1', other)).rejects.toMatchObject({ code: 'conflict' });
});

test('however many reports come, one is checked at a time', async () => {
  const reports = createAddressReports();
  const checking = Promise.withResolvers<string>();
  let checks = 0;
  const address = reports.await(
    'server-1',
    () => {
      checks += 1;
      return checking.promise;
    },
    never,
  );
  const first = reports.tell('server-1', { host: 'node7', port: 1 });
  const second = { host: 'node7', port: 2 };
  await expect(reports.tell('server-1', second)).rejects.toMatchObject({ code: 'conflict' });
  checking.resolve('http://node7:1');
  await first;
  expect([await address, checks]).toEqual(['http://node7:1', 1]);
});
