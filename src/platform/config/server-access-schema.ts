import { z } from 'zod';
import { forwardingKeys } from './forwarding-schema.ts';
import { routeLimits } from './route-limits-schema.ts';

/** How visitors reach the app of a server. */
export const serverAccessKeys = {
  access: z
    .enum(['server', 'gateway'])
    .default('server')
    .describe(
      'Who checks visitors: the server itself, after a first check by the gateway that its user cannot bypass, or the gateway alone.',
    ),
  strip_prefix: z
    .boolean()
    .default(false)
    .describe(
      'Whether the prefix is stripped from paths for a guarded app that cannot be configured with one. Redirects are rewritten; links in its pages are not.',
    ),
  ready_path: z
    .string()
    .startsWith('/')
    .default('/')
    .describe(
      'Path below the prefix that is polled until it returns a status below 500: the server is then ready.',
    ),
  kernels_path: z
    .string()
    .startsWith('/')
    .optional()
    .describe(
      'Path below the prefix where Jupyter lists its kernels, `/api/kernels`, or its notebooks with their kernels, `/api/sessions`, without a token. It is asked before an idle server is stopped, and a busy kernel counts as use; also while somebody looks at the page of the server, which names what is running.',
    ),
  ...forwardingKeys,
  limits: routeLimits.optional(),
};

/** The same for a profile. */
export const profileAccessKeys = {
  access: serverAccessKeys.access.unwrap().optional().describe('In place of Spawner.access.'),
  strip_prefix: z.boolean().optional().describe('In place of Spawner.strip_prefix.'),
  ready_path: serverAccessKeys.ready_path
    .unwrap()
    .optional()
    .describe('In place of Spawner.ready_path.'),
  kernels_path: serverAccessKeys.kernels_path.describe('In place of Spawner.kernels_path.'),
  host: forwardingKeys.host.unwrap().optional().describe('In place of Spawner.host.'),
  identity_headers: forwardingKeys.identity_headers
    .unwrap()
    .optional()
    .describe('In place of Spawner.identity_headers.'),
  headers: forwardingKeys.headers.unwrap().optional().describe('In place of Spawner.headers.'),
  limits: routeLimits.optional().describe('In place of Spawner.limits.'),
};
