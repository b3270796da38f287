import { createPublicKey } from 'node:crypto';
import { resolve } from 'node:path';
import type { ServiceConfig } from '../../platform/config/config.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { contestedHeader } from '../../platform/protocol/identity-headers.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import { leadsTo, listenKey } from '../../spawning/processes/port-listener.ts';
import { findUselessRules } from '../../traffic/proxy/route-rules.ts';
import { calledAddresses, clientIdOf } from './service.ts';

/** What the machine says about services, gathered beforehand so that the check itself is pure. */
export interface ServiceFacts {
  readonly maySwitchAccounts: boolean;
  userExists(name: string): boolean;
  /** Takes an absolute path. */
  isDirectory(path: string): boolean;
}

/** A service, with its token or what is kept of one. */
export interface ServiceToValidate extends ServiceConfig {
  readonly tokenHash?: string | undefined;
}

export interface ServicesToValidate {
  readonly services: readonly ServiceToValidate[];
  /** Folder against which `cwd` is resolved. */
  readonly directory: string;
  /** Where the hub itself listens. */
  readonly hubUrls: readonly string[];
}

/** What is wrong with one of the services. */
export interface ServiceProblem {
  /** Of the service in the list. */
  readonly index: number;
  readonly field: string;
  readonly message: Phrase;
  /** Whether another one has it already. */
  readonly isTaken: boolean;
}

type Report = (field: string, message: Phrase, options?: { readonly isTaken: boolean }) => void;

/** A token this short could be guessed (specification, Limits). */
const maxRefusedSecretLength = 8;
const managedOnlyFields = ['environment', 'user', 'cwd'] as const;

/** Finds every problem of `Hub.services` at once; each message names the service. */
export function validateServices(
  toValidate: ServicesToValidate,
  facts: ServiceFacts,
): readonly ConfigProblem[] {
  return findServiceProblems(toValidate, facts).map(({ index, field, message }) => {
    const { name, place } = toValidate.services[index] ?? {};
    const path =
      place === undefined ? `Hub.services[${index}]` : `Proxy.extra_routes.${place.spec}`;
    return {
      path: `${path}.${place !== undefined && field === 'url' ? 'target' : field}`,
      message: `${message} (service "${name}")`,
    };
  });
}

/** Finds every problem of services that are to run beside one another, wherever they are defined. */
export function findServiceProblems(
  { services, directory, hubUrls }: ServicesToValidate,
  facts: ServiceFacts,
): readonly ServiceProblem[] {
  const problems: ServiceProblem[] = [];
  const seen = new Map<string, { readonly owner: Phrase; readonly isShareable: boolean }>();
  // What else forwards to the hub is told below that it may not.
  for (const url of hubUrls)
    seen.set(`listen ${listenKey(url)}`, { owner: text`the hub itself`, isShareable: true });

  for (const [index, service] of services.entries()) {
    const report: Report = (field, message, { isTaken = false } = { isTaken: false }) =>
      problems.push({ index, field, message, isTaken });
    checkFields(service, report);
    for (const [field, address] of calledAddresses(service)) {
      // A managed one may be behind the address that it is to listen at.
      if (field === 'url' && service.command !== undefined) continue;
      if (hubUrls.some((own) => leadsTo(address, own)))
        report(field, text`is an address of the hub itself`);
    }
    if (service.command === undefined) checkExternal(service, report);
    else checkManaged(service, { directory, facts, report });

    for (const { field, key, message, isShareable = false } of uniqueValues(service)) {
      const other = seen.get(key);
      if (other === undefined)
        seen.set(key, { owner: text`the service "${service.name}"`, isShareable });
      else if (!isShareable || !other.isShareable) {
        report(field, message(other.owner), { isTaken: true });
      }
    }
  }
  return problems;
}

/** What a rule says is told where its service is not guarded: there it would protect nothing. */
function checkForwarding(service: ServiceConfig, report: Report): void {
  const { access, rules, limits, strip_prefix, host, identity_headers, place } = service;
  if (access !== 'gateway' && rules.length > 0) {
    report('rules', `need "access": "gateway", but it is "${access}"`);
  }
  if (access === 'service' && strip_prefix) {
    report('strip_prefix', 'is for apps that the gateway guards, or that are public');
  }
  if (access === 'service' && host === 'upstream') {
    report('host', 'is for apps that the gateway guards, or that are public');
  }
  if (access !== 'gateway' && Object.keys(identity_headers).length > 0) {
    report('identity_headers', `need "access": "gateway", but it is "${access}"`);
  }
  for (const key of place?.isBehindProxy === true ? Object.keys(limits ?? {}) : []) {
    if (key === 'per' || key.endsWith('_addresses')) continue;
    report(`limits.${key}`, 'is not for "forward-auth": another proxy forwards to the app');
  }
  const contested = contestedHeader(service);
  if (contested !== undefined) {
    report('headers.request', text`${contested} is one of identity_headers`);
  }
  for (const { index, earlier } of findUselessRules(rules)) {
    report(`rules[${index}]`, `can never match: rules[${earlier}] before it matches all of it`);
  }
}

function checkFields(service: ServiceConfig, report: Report): void {
  const { url, access, api_token, place } = service;
  checkForwarding(service, report);
  if (service.oauth_offline && !service.oauth_grants.includes('refresh'))
    report('oauth_offline', 'needs "refresh" among oauth_grants');
  if (service.oauth_public && service.oauth_grants.includes('client_credentials'))
    report('oauth_grants', '"client_credentials" is for a client with a secret');
  if (service.oauth_jwks !== undefined && service.oauth_jwks_uri !== undefined)
    report('oauth_jwks_uri', text`is in place of oauth_jwks`);
  if (service.oauth_public && (service.oauth_jwks ?? service.oauth_jwks_uri) !== undefined)
    report('oauth_public', text`is for a client without keys`);
  for (const [index, jwk] of service.oauth_jwks?.keys.entries() ?? []) {
    const problem = publicKeyProblem(jwk);
    if (problem !== undefined) report(`oauth_jwks.keys[${index}]`, problem);
  }
  if (api_token !== undefined && api_token.reveal().length <= maxRefusedSecretLength) {
    report('api_token', `must be longer than ${maxRefusedSecretLength} characters`);
  }
  if (url === undefined) {
    const needsUrl = access !== 'service' && place?.isBehindProxy !== true;
    if (needsUrl) report('access', text`"${access}" needs a url to forward to`);
    return;
  }
  const { username, password, search, hash } = new URL(url);
  if (username !== '' || password !== '')
    report('url', text`must not hold a user name or password`);
  if (search !== '' || hash !== '') report('url', text`must not have a query or a fragment`);
}

/** Why a JWK is no public key by which a client may be known; undefined where it is one. */
function publicKeyProblem(jwk: Readonly<Record<string, unknown>>): Phrase | undefined {
  if ('d' in jwk || 'k' in jwk) return text`is a private key: give the public one`;
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPublicKey({
      key: jwk,
      format: 'jwk',
    });
    const { modulusLength = 0 } = asymmetricKeyDetails ?? {};
    if (asymmetricKeyType === 'rsa' && modulusLength < 2048)
      return text`has ${modulusLength} bits, and needs 2048`;
    return undefined;
  } catch {
    return text`is no public key as a JWK (RFC 7517)`;
  }
}

function checkExternal(service: ServiceConfig, report: Report): void {
  for (const field of managedOnlyFields) {
    if (service[field] !== undefined) {
      report(field, text`is only for a managed service, one with a command`);
    }
  }
}

function checkManaged(
  { command = [], user, cwd }: ServiceConfig,
  context: { readonly directory: string; readonly facts: ServiceFacts; readonly report: Report },
): void {
  const { directory, facts, report } = context;
  if ((command[0] ?? '') === '') report('command', 'is empty');
  if (user !== undefined && !facts.maySwitchAccounts) {
    report(
      'user',
      text`needs a hub that may switch accounts, as root or with CAP_SETUID and CAP_SETGID`,
    );
  }
  if (user !== undefined && !facts.userExists(user)) {
    report('user', text`there is no user "${user}" on this machine`);
  }
  if (cwd !== undefined && !facts.isDirectory(resolve(directory, cwd))) {
    report('cwd', text`${resolve(directory, cwd)} is not a directory`);
  }
}

interface UniqueValue {
  readonly field: string;
  readonly key: string;
  /** Says who has it already. */
  message(owner: Phrase): Phrase;
  /** Whether others may have it as well that say so. */
  readonly isShareable?: boolean;
}

const usedBy = (owner: Phrase) => text`is used already by ${owner}`;

function uniqueValues(service: ServiceToValidate): readonly UniqueValue[] {
  const { name, api_token, url, command, place } = service;
  const tokenHash = api_token === undefined ? service.tokenHash : hashSecret(api_token.reveal());
  const clientId = clientIdOf(service);
  const clientField = service.oauth_client_id === undefined ? 'name' : 'oauth_client_id';
  return [
    { field: 'name', key: `name ${name}`, message: usedBy },
    {
      field: clientField,
      key: `client ${clientId}`,
      message: (owner: Phrase) => text`the OAuth client id ${clientId} is used already by ${owner}`,
    },
    ...(tokenHash === undefined
      ? []
      : [
          {
            field: 'api_token',
            key: `token ${tokenHash}`,
            message: (owner: Phrase) => text`must be unique, but is also that of ${owner}`,
          },
        ]),
    // An extra route is a further way to an app; external services may be two names of one.
    ...(url === undefined || place !== undefined
      ? []
      : [
          {
            field: 'url',
            key: `listen ${listenKey(url)}`,
            message: (owner: Phrase) => text`has the same address and port as ${owner}`,
            isShareable: command === undefined,
          },
        ]),
  ];
}
