import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { tablesOf54, useOldJupyterHubs } from '../../../test/support/old-jupyterhub.ts';
import { openOldDatabase } from '../../platform/store/old-database.ts';
import { readOldHub } from './old-hub.ts';

const noHub = () => Promise.reject(new Error('a bad database is not taken over'));
const { directory, makeOld } = useOldJupyterHubs(noHub, 'sqlite');

async function read(url: string) {
  await using old = await openOldDatabase(url, { directory, setting: '--database' });
  return await readOldHub(old, Date.now());
}

test.each([
  [`update services set info = '{"title' where id = 1`, 'info of the service robot'],
  [`update services set command = '[' where id = 2`, 'command of the service runner'],
  [`update spawners set state = '{' where id = 2`, 'state of the server 2'],
  [`update roles set scopes = '[' where id = 3`, 'scopes of the role helper'],
  [`update groups set properties = '{' where id = 1`, 'properties of the group course'],
  [`update api_tokens set scopes = 'self' where id = 1`, 'scopes of the token 1'],
])('what is damaged by "%s" is named', async (statement, what) => {
  const url = await makeOld(`${tablesOf54} ${statement}`);
  await expect(read(url)).rejects.toMatchObject({
    code: 'bad_request',
    message: `The database is damaged: the ${what} is no JSON.`,
  });
});

test('a database that its JupyterHub is writing to is not waited for without end', async () => {
  const url = await makeOld(tablesOf54);
  using writer = new DatabaseSync(url.replace('sqlite:///', ''));
  writer.exec('begin exclusive');
  await expect(read(url)).rejects.toThrow('another program is writing to it: try again');
});

test('a million tokens of deleted users are counted, and none is taken over', async () => {
  const url = await makeOld(`${tablesOf54}
    with recursive ids (id) as (select 100 union all select id + 1 from ids where id < 1000099)
    insert into api_tokens select id, id, null, 'sha512:1:salt:00', 'abcd', 'jupyterhub', null, null, null, null, 'old', '[]' from ids;`);
  const { tokens, orphanTokens } = await read(url);
  expect(orphanTokens).toBe(1_000_000);
  expect(tokens.map(({ note }) => note)).not.toContain('old');
});
