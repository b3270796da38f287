import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../../test/support/databases.ts';
import { explainQueryPlan, watchStatements } from '../../../../test/support/statements.ts';
import { createClientLoginStore, rememberLogin } from './client-login-store.ts';

describeEachDatabase('client login store', (open, dialect) => {
  test('finds the logins whose end a client is to be told, and no others', async () => {
    const database = await open();
    const logins = createClientLoginStore(database);
    for (const client_id of ['service-wiki', 'service-blog'])
      for (const session_id of ['one', 'two'])
        await rememberLogin(database.kysely, { client_id, session_id, user_id: 'alice' });
    expect(await logins.dueClients()).toEqual([]);
    const ended = database.kysely.updateTable('client_logins').set({ due_at: 0 });
    await ended.where('client_id', '=', 'service-wiki').where('session_id', '=', 'two').execute();
    expect(await logins.dueClients()).toEqual(['service-wiki']);
    const [due, ...others] = await logins.due('service-wiki', 100);
    expect(due).toMatchObject({ sessionId: 'two', userId: 'alice', attempts: 0 });
    expect(others).toEqual([]);
  });

  // It looks every few seconds and at each logout, and each login of each client is a row.
  if (dialect === 'sqlite') {
    test('looks at none of the logins that last', async () => {
      const database = await open();
      const logins = createClientLoginStore(database);
      using watch = watchStatements();
      const statements = await watch.during(async () => {
        await logins.dueClients();
        await logins.due('service-wiki', 100);
      });
      const plans = statements.map((statement) => explainQueryPlan(database, statement));
      expect(await Promise.all(plans)).toEqual([
        expect.stringMatching(/USING COVERING INDEX client_logins_due$/),
        expect.stringMatching(/USING INDEX client_logins_due \(client_id=\? AND due_at<\?\)$/),
      ]);
    });
  }
});
