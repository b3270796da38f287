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
      'Addresses and CIDR ranges that are let in. All when left out.',
    ),
    deny_addresses: addresses.describe(
      'Addresses and CIDR ranges that are kept out, even if `allow_addresses` includes them.',
    ),
    client_certificate: z
      .enum(['required'])
      .optional()
      .describe(
        "Whether visitors must present a certificate issued by Hub.client_authorities, in addition to the route's other checks. The app gets it as Client-Cert (RFC 9440).",
      ),
    max_body_size: countable
      .optional()
      .describe('Maximum request body, overriding Proxy.max_body_size; 0 for no limit.'),
    requests_per_second: z
      .number()
      .positive()
      .max(1_000_000)
      .optional()
      .describe(
        "Average rate of requests per visitor, new WebSockets included; bursts of one second's worth are allowed. Each gateway process counts separately. Excess requests get 429.",
      ),
    bytes_per_second: countable
      .refine((size) => size >= 1024, 'is at least 1K')
      .optional()
      .describe(
        "Download rate per visitor, all requests together; bursts of one second's worth are allowed. WebSockets and uploads do not count.",
      ),
    per: z
      .enum(['user', 'address'])
      .default('user')
      .describe(
        'What counts as one visitor: a user, or an address (an IPv6 /64). Without a login checked by the gateway it is the address.',
      ),
    request_timeout: timeout.describe(
      'Seconds for a whole request, from upload to the end of the response. Applies to event streams, not to WebSockets.',
    ),
    idle_timeout: timeout.describe(
      'Seconds without traffic in either direction before a request or WebSocket is ended. Applies along with the timeouts of Proxy, but replaces Proxy.websocket_idle_timeout.',
    ),
  })
  .describe('Limits of the route. See “Limit what one route may take”.');

export type RouteLimits = z.output<typeof routeLimits>;
