import { z } from 'zod';
import { forwardingKeys } from './forwarding-schema.ts';
import { routeLimits } from './route-limits-schema.ts';

/** How visitors reach the app of a server. */
export const serverAccessKeys = {
  access: z
    .enum(['server', 'gateway'])
    .default('server')
    .describe(
      'Who checks visitors: the server itself, behind a first check by the gateway that its user cannot replace, or the gateway alone.',
    ),
  strip_prefix: z
    .boolean()
    .default(false)
    .describe(
      'Whether an app that the gateway guards gets paths without its prefix, for one that cannot be told it. Redirects are corrected, links in its pages are not.',
    ),
  ready_path: z
    .string()
    .startsWith('/')
    .default('/')
    .describe(
      'Path below the prefix that is asked until it answers below 500: the server is ready then.',
    ),
  kernels_path: z
    .string()
    .startsWith('/')
    .optional()
    .describe(
      'Path below the prefix where Jupyter lists its kernels without a token, `/api/kernels`: a server that has been idle for long enough is asked, and one with a busy kernel counts as used.',
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
