import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { errorModel } from './models.ts';
import { operation } from './operation.ts';

const gone = { 410: { description: 'Always.', schema: errorModel } };

const refuse = (hint: string) => (): never => {
  throw new HubError('gone', text`This operation of old versions of JupyterHub is not supported.`, {
    hint,
  });
};

const whoHolds =
  'Send the token in the header Authorization to /hub/api/user, or ask /hub/api/oauth2/introspect.';

/** Deprecated in JupyterHub since its version 2: they take secrets in the path. */
export const authorizationOperations = [
  operation({
    id: 'identifyToken',
    method: 'GET',
    path: '/authorizations/token/{token}',
    tag: 'oauth',
    summary: 'Gone: identify a token by `GET /hub/api/user` or by introspection',
    scopes: 'public',
    answers: gone,
  }).handle(refuse(whoHolds)),
  operation({
    id: 'createTokenByPassword',
    method: 'POST',
    path: '/authorizations/token',
    audit: { none: 'It is gone.' },
    tag: 'oauth',
    summary: 'Gone: create a token by `POST /hub/api/users/{name}/tokens`',
    scopes: 'public',
    answers: gone,
  }).handle(
    refuse('Send POST /hub/api/users/{name}/tokens with {"auth": {"username": …, "password": …}}.'),
  ),
  operation({
    id: 'identifyCookie',
    method: 'GET',
    path: '/authorizations/cookie/{cookie}/{value}',
    tag: 'oauth',
    summary: 'Gone: log users in to a service by OAuth',
    scopes: 'public',
    answers: gone,
  }).handle(refuse('Cookies of the hub are not for services; log users in by OAuth.')),
];
