import { describe, expect, test } from 'vitest';
import { Secret } from '../../platform/config/secret.ts';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import { createService } from './service.ts';
import { compareServices } from './service-difference.ts';

function service(entry: Record<string, unknown>, token = 'hub_token') {
  const { api_token: _, ...config } = serviceSchema.parse({ name: 'a', ...entry });
  return createService(config, { apiToken: new Secret(token), basePath: '/', directory: '/' });
}

const none = { added: [], removed: [], restarted: [], updated: [] };
const base = { command: 'x', url: 'http://h:1' };

describe('comparing services', () => {
  test('equal ones do not differ', () => {
    expect(compareServices([service(base)], [service(base)])).toEqual(none);
  });

  test('finds those that came and those that went', () => {
    const before = [service({ name: 'old' }), service({ name: 'same' })];
    const after = [service({ name: 'same' }), service({ name: 'new' })];
    expect(compareServices(before, after)).toEqual({ ...none, added: ['new'], removed: ['old'] });
  });

  test.each([
    { command: 'y' },
    { environment: { A: 'b' } },
    { user: 'ann' },
    { cwd: '/tmp' },
    { url: 'http://h:2' },
    { health_path: '/up' },
    { timeout: 5 },
    { stop_timeout: 5 },
    { oauth_client_id: 'service-b' },
    { oauth_client_allowed_scopes: ['self'] },
  ])('a managed service restarts for %j', (change) => {
    const difference = compareServices([service(base)], [service({ ...base, ...change })]);
    expect(difference).toEqual({ ...none, restarted: ['a'] });
  });

  test('a managed service restarts for another token', () => {
    const difference = compareServices([service(base)], [service(base, 'hub_other')]);
    expect(difference).toEqual({ ...none, restarted: ['a'] });
  });

  test.each([
    { admin: true },
    { display: false },
    { info: { a: 1 } },
    { access: 'gateway' },
    { oauth_no_confirm: true },
    { upstream_timeout: 3 },
  ])('a managed service runs on with %j', (change) => {
    const difference = compareServices([service(base)], [service({ ...base, ...change })]);
    expect(difference).toEqual({ ...none, updated: ['a'] });
  });

  test('an external service is only updated by another token', () => {
    const external = { url: 'http://h:1' };
    const difference = compareServices([service(external)], [service(external, 'hub_other')]);
    expect(difference).toEqual({ ...none, updated: ['a'] });
  });
});
