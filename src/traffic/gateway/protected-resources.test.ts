import { expect, test } from 'vitest';
import { deny } from '../../client/decision.ts';
import { HubError } from '../../platform/errors.ts';
import { canonicalPath } from '../../platform/http/request-address.ts';
import { createRouteTable } from '../proxy/route-table.ts';
import { createProtectedResources } from './protected-resources.ts';

test('metadata of a hub below a path is found before it and behind it, and told of where the hub is sure to be asked', async () => {
  const routes = createRouteTable();
  const owner = { kind: 'service', name: 'app' } as const;
  const prefix = '/team/services/app/';
  const route = routes.add({ prefix, target: 'http://127.0.0.1:1', access: 'gateway', owner });
  const resources = createProtectedResources({
    routes,
    origins: { of: () => 'https://hub.test', ownerOf: () => undefined },
    publicUrl: new URL('https://hub.test/team/'),
    issuer: 'https://hub.test/team',
  });
  const known = '/.well-known/oauth-protected-resource';
  for (const path of [`/team${known}/services/app/mcp`, `${known}/team/services/app/mcp`]) {
    const answer = resources.metadataFor('GET', canonicalPath(path)!, undefined);
    expect(JSON.parse(answer?.body ?? '{}')).toMatchObject({
      resource: 'https://hub.test/team/services/app/mcp',
      authorization_servers: ['https://hub.test/team'],
      scopes_supported: ['identify'],
    });
  }
  for (const path of [`${known}/services/app/`, `${known}s/team/services/app/`, `/x${known}`])
    expect(resources.metadataFor('GET', canonicalPath(path)!, undefined)).toBeUndefined();

  const denied = deny(new HubError('unauthenticated', 'no'));
  const policy = { known: () => undefined, decide: async () => denied };
  const request = { url: `${prefix}mcp?a=b`, headers: {} };
  expect(await resources.announcedBy(policy).decide(route, request)).toMatchObject({
    headers: {
      'www-authenticate': `Bearer realm="hub", resource_metadata="https://hub.test/team${known}/services/app/mcp"`,
    },
  });
});
