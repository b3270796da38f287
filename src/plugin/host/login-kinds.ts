import type {
  Authenticator,
  ExternalAuthenticator,
  FormAuthenticator,
  RequestAuthenticator,
} from './authenticator.ts';

export function isForm(authenticator: Authenticator): authenticator is FormAuthenticator {
  return authenticator.login.kind === 'form';
}

export function isExternal(authenticator: Authenticator): authenticator is ExternalAuthenticator {
  return authenticator.login.kind === 'external';
}

export function isRequest(authenticator: Authenticator): authenticator is RequestAuthenticator {
  return authenticator.login.kind === 'request';
}
