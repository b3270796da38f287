import { describe, expect, test } from 'vitest';
import { submitMain } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { createTestHub } from '../support/test-hub.ts';

/** As many objects in one another. */
const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const token = 'admin-service-token';
const refusal = 'JSON may be nested 100 levels deep.';

describe('JSON that is nested too deep is refused wherever it comes in', () => {
  test('in any body of the API, and nothing of it is kept', async () => {
    await using hub = await createTestHub();
    const put = (path: string, body: string, method = 'PUT') =>
      hub.api(path, token, { method, body });
    await put('/groups/g1', '{}', 'POST');
    await put('/users/alice', '{}', 'POST');
    const url = '"url":"http://127.0.0.1:9"';
    for (const levels of [101, 3_000, 4_388, 100_000]) {
      for (const [path, body, method] of [
        ['/groups/g1/properties', nested(levels), 'PUT'],
        ['/services/deep', `{${url},"info":${nested(levels)}}`, 'PUT'],
        ['/users/alice/servers/lab', `{"user_options":${nested(levels)}}`, 'PUT'],
        ['/users/alice', `{"auth_state":${nested(levels)}}`, 'PATCH'],
      ] as const) {
        const answer = await put(path, body, method);
        const { message } = (await answer.json()) as { message: string };
        expect({ path, levels, status: answer.status, message }).toEqual({
          path,
          levels,
          status: 400,
          message: refusal,
        });
      }
    }
    expect((await put('/groups/g1/properties', nested(100))).status).toBe(200);
    expect((await put('/services/flat', `{${url},"info":${nested(50)}}`)).status).toBe(201);
    expect((await put('/services/flat', `{${url},"info":${nested(60)}}`)).status).toBe(200);
    expect((await hub.api('/groups', token)).status).toBe(200);
    expect(hub.logLines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  });

  test('in the form of a group, which keeps what was typed', async () => {
    await using hub = await createPasswordHub(['ada'], {
      Authenticator: { admin_users: ['ada'] },
    });
    await hub.api('/groups/g1', token, { method: 'POST', body: '{}' });
    const ada = await hub.logIn('ada', testPassword);
    const form = await ada.request(`${hub.url}hub/admin/groups/g1/properties`);
    const properties = nested(5_000);
    const refused = await submitMain(ada, form, { properties });
    expect([refused.status, refused.body]).toEqual([400, expect.stringContaining(refusal)]);
    expect(refused.body).toContain(properties.replaceAll('"', '&quot;'));
  });
});
