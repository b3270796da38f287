import { text } from '../../../platform/texts/text.ts';
import type { Client } from './client.ts';

/** The client that `hub login` is, with what its user may do (RFC 6749 §2.1: public). */
export const commandLineClient: Client = {
  clientId: 'hub-command-line',
  kind: 'service',
  name: text`Command line`,
  origin: '',
  redirectUris: [],
  isPublic: true,
  allowedScopes: ['inherit'],
  accessScope: undefined,
  skipsConsent: false,
  grants: ['device', 'token_exchange'],
  identity: { clientId: 'hub-command-line' },
};
