import { describe } from 'vitest';
import { declareRefusals, type RefusedConfig } from '../../../test/support/config-loading.ts';

describe('an origin for each user is refused:', () => {
  declareRefusals([
    [
      'a host that is no URL',
      { Hub: { subdomain_host: 'hub.example.org' } },
      /^Hub\.subdomain_host: is not an http/,
    ],
    [
      'subdomains with a path',
      { Hub: { subdomain_host: 'http://hub.example.org/x/' } },
      'Hub.subdomain_host: must be an origin such as https://hub.example.org',
    ],
    [
      'subdomains of another scheme',
      { Hub: { public_url: 'https://h.example.org/', subdomain_host: 'http://h.example.org' } },
      'Hub.subdomain_host: must begin with https:// as public_url does (https://h.example.org/)',
    ],
    ...['http://127.0.0.1:8000', 'http://[::1]', 'http://2130706433'].map(
      (url): RefusedConfig => [
        `subdomains of the address ${url}`,
        { Hub: { subdomain_host: url } },
        'Hub.subdomain_host: must name a domain: an IP address has no subdomains',
      ],
    ),
    [
      'subdomains of a name with a dot at its end',
      { Hub: { subdomain_host: 'http://hub.example.org.' } },
      'Hub.subdomain_host: must not end in a dot',
    ],
    [
      'subdomains of a name that leaves no room for a label',
      { Hub: { subdomain_host: `http://${'a.'.repeat(95)}org` } },
      'Hub.subdomain_host: is longer than 189 characters',
    ],
    [
      'a hub that may be taken for a service',
      {
        Hub: {
          public_url: 'https://portal--service.example.org/',
          subdomain_host: 'https://example.org',
        },
      },
      /^Hub\.public_url: portal--service\.example\.org may become the host of a user's server/,
    ],
  ]);
});
