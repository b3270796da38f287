import { describe } from 'vitest';
import { declareRefusals } from '../../../test/support/config-loading.ts';

describe('certificates that cannot be had or served are refused:', () => {
  declareRefusals([
    [
      'certificates without the terms',
      { Hub: { public_url: 'https://hub.example.org/', acme: { accept_terms: false } } },
      /^Hub\.acme\.accept_terms: must be true/,
    ],
    [
      'certificates for plain http',
      {
        Hub: {
          bind_url: 'https://x/',
          public_url: 'http://hub.example.org/',
          acme: { accept_terms: true },
        },
      },
      'Hub.acme: needs an https:// address in public_url, not http://hub.example.org',
    ],
    [
      'certificates for an address',
      { Hub: { bind_url: 'https://10.0.0.1/', acme: { accept_terms: true } } },
      'Hub.acme: is for names: no certificate is to be had for 10.0.0.1',
    ],
    [
      'certificates for a listener that shows none, and for gateways that do not answer',
      {
        Hub: {
          bind_url: 'http://127.0.0.1:8000/',
          public_url: 'https://hub.example.org/',
          gateways: 1,
          acme: { accept_terms: true },
        },
      },
      'Hub.acme: needs an https:// address in bind_url, such as https://0.0.0.0:443/',
      /^Hub\.acme\.challenge: must be "http-01" or "dns-01" with gateways/,
    ],
    [
      'certificates by a challenge that nothing answers',
      {
        Hub: {
          public_url: 'https://hub.example.org/',
          acme: { accept_terms: true, challenge: 'http-01' },
        },
      },
      'Hub.acme.challenge: needs redirect_bind_url for "http-01", such as http://0.0.0.0:80/',
    ],
    [
      "a certificate for each user's host",
      {
        Hub: {
          bind_url: 'https://hub.example.org/',
          subdomain_host: 'https://hub.example.org',
          acme: { accept_terms: true, dns_command: ['dns', '{name}'] },
        },
      },
      /^Hub\.acme\.challenge: must be "dns-01" .* certificate for \*\.hub\.example\.org, .* 50 a week/,
      /^Hub\.acme\.dns_command: has no use for tls-alpn-01/,
    ],
    [
      'a command that does not say which record',
      {
        Hub: {
          bind_url: 'https://hub.example.org/',
          acme: { accept_terms: true, challenge: 'dns-01', dns_command: ['dns', '{name}'] },
        },
      },
      /^Hub\.acme\.dns_command: is needed for dns-01, with \{action\}/,
    ],
    [
      'https without a certificate',
      { Hub: { bind_url: 'https://x/' } },
      'Hub.certificates: is needed, or acme, since bind_url is an https:// address',
    ],
  ]);
});
