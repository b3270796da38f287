import { z } from 'zod';
import { byteSize } from './common-schema.ts';
import { addressRange } from './route-rules-schema.ts';

const addresses = z.array(addressRange).min(1).max(1_000).optional();
// Read again as a number, by routes and gateways, which takes none beyond.
const countable = byteSize.refine(
  (size) => size <= Number.MAX_SAFE_INTEGER,
  'is more than can be counted',
);
const timeout = z.number().positive().max(86_400).optional();

/** What one route may take: a key of services, extra routes and users' servers alike. */
export const routeLimits = z
  .strictObject({
    allow_addresses: addresses.describe(
      'Addresses and ranges from which visitors may come. Every address when left out.',
    ),
    deny_addresses: addresses.describe(
      'Addresses and ranges from which nobody may come, also where `allow_addresses` has them.',
    ),
    client_certificate: z
      .enum(['required'])
      .optional()
      .describe(
        'Whether visitors have to show a certificate of Hub.client_authorities, beside what the route asks of them anyway. The app gets it as Client-Cert (RFC 9440).',
      ),
    max_body_size: countable
      .optional()
      .describe('Largest request body, in place of Proxy.max_body_size; 0 for no limit.'),
    requests_per_second: z
      .number()
      .positive()
      .max(1_000_000)
      .optional()
      .describe(
        'Requests of one visitor, WebSockets that are opened included, as an average: those of one second may come at once. Each gateway process counts for itself. What is beyond is answered 429.',
      ),
    bytes_per_second: countable
      .refine((size) => size >= 1024, 'is at least 1K')
      .optional()
      .describe(
        'How fast the bodies of answers go to one visitor, all requests together; those of one second may go at once. WebSockets and uploads do not count.',
      ),
    per: z
      .enum(['user', 'address'])
      .default('user')
      .describe(
        'Who is one visitor: a user, or an address or IPv6 /64. Without a login that the gateway checks, it is the address.',
      ),
    request_timeout: timeout.describe(
      'Seconds for a whole request, upload and answer; also ends event streams, but no WebSocket.',
    ),
    idle_timeout: timeout.describe(
      'Seconds in which a request or WebSocket may move nothing either way; beside the timeouts of Proxy, but in place of Proxy.websocket_idle_timeout.',
    ),
  })
  .describe('What the route may take. See “Limit what one route may take”.');

export type RouteLimits = z.output<typeof routeLimits>;
