import { existsSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import {
  canonicalUserName,
  createUserNameRules,
} from '../../identity/authentication/user-name-rules.ts';
import { validateCustomScopes } from '../../identity/rbac/custom-scopes.ts';
import {
  createScopeCatalogue,
  type ScopeCatalogue,
} from '../../identity/rbac/scope-definitions.ts';
import { scopeProblem, validateRoles } from '../../identity/rbac/validate-roles.ts';
import { validateGroupName } from '../../identity/users/user-name.ts';
import type { Config } from '../../platform/config/config.ts';
import { loadCookieSecrets } from '../../platform/config/cookie-secret.ts';
import { ConfigError, type ConfigProblem, HubError } from '../../platform/errors.ts';
import { createCertificateChoice } from '../../platform/http/tls/certificate-choice.ts';
import {
  readCertificateFiles,
  readClientAuthorities,
  readListFiles,
} from '../../platform/http/tls/certificate-files.ts';
import { createHeldCertificates } from '../../platform/http/tls/certificate-source.ts';

/** Checks everything that names a scope: roles, custom scopes, what services and servers may ask for. */
export function checkScopes({ Hub, Authenticator, Spawner }: Config): ConfigProblem[] {
  const catalogue = createScopeCatalogue(Hub.custom_scopes);
  return [
    ...validateCustomScopes(Hub.custom_scopes),
    ...validateRoles(Hub.load_roles, {
      catalogue,
      serviceNames: Hub.services.map(({ name }) => name),
      managesRoles: Authenticator.manage_roles,
    }),
    ...Hub.services.flatMap((service, index) =>
      listProblems(
        service.oauth_client_allowed_scopes,
        `Hub.services[${index}].oauth_client_allowed_scopes`,
        catalogue,
      ),
    ),
    ...listProblems(
      Spawner.oauth_client_allowed_scopes,
      'Spawner.oauth_client_allowed_scopes',
      catalogue,
    ),
    ...listProblems(Spawner.server_token_scopes, 'Spawner.server_token_scopes', catalogue),
  ];
}

function listProblems(
  scopes: readonly string[],
  path: string,
  catalogue: ScopeCatalogue,
): ConfigProblem[] {
  return scopes.flatMap((scope, index) => {
    const message = scopeProblem(scope, catalogue);
    return message === undefined ? [] : [{ path: `${path}[${index}]`, message: String(message) }];
  });
}

/** Checks names that become users and groups. */
export function checkAccounts({ Hub, Authenticator }: Config): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const { problemOf } = createUserNameRules(Authenticator);
  // Each of them becomes an account: one whose name no login may have would be of no use.
  function checkUsers(names: readonly string[], path: string): void {
    for (const [index, name] of names.entries()) {
      const message = problemOf(canonicalUserName(name));
      if (message !== undefined)
        problems.push({ path: `${path}[${index}]`, message: String(message) });
    }
  }
  for (const [index, { name, users }] of Hub.load_groups.entries()) {
    const path = `Hub.load_groups[${index}]`;
    try {
      validateGroupName(name);
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      problems.push({ path: `${path}.name`, message: error.message });
    }
    checkUsers(users, `${path}.users`);
  }
  for (const [index, { users = [] }] of Hub.load_roles.entries()) {
    checkUsers(users, `Hub.load_roles[${index}].users`);
  }
  checkUsers(Authenticator.admin_users, 'Authenticator.admin_users');
  checkUsers(Authenticator.allowed_users, 'Authenticator.allowed_users');
  return problems;
}

/** Checks the file of the cookie key when there is one; makes none. */
export async function checkCookieSecretFile(config: Config): Promise<readonly ConfigProblem[]> {
  const { cookie_secret: configured, cookie_secret_file } = config.Hub;
  const file = resolve(config.directory, cookie_secret_file);
  if (configured !== undefined || !existsSync(file)) return [];
  try {
    await loadCookieSecrets({ configured, file });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

/** Checks the files of `Hub.certificates`, `Hub.client_authorities` and `Hub.client_revocation_lists`. */
export async function checkCertificateFiles(config: Config): Promise<readonly ConfigProblem[]> {
  const read = [
    ...(await readCertificateFiles(config)),
    await readClientAuthorities(config),
    ...(await readListFiles(config)),
  ];
  return read.filter((each) => typeof each === 'object').filter((each) => 'message' in each);
}

const dayMs = 86_400_000;
/** How long before its end a certificate is pointed at. */
export const certificateWarningMs = 14 * dayMs;

/** Points at certificates that end soon, and at names of the hub that none is for. */
export async function certificateWarnings(config: Config): Promise<readonly ConfigProblem[]> {
  const path = 'Hub.certificates';
  const found = (await readCertificateFiles(config)).filter((each) => 'names' in each);
  if (found.length === 0) return [];
  const ending = found.flatMap(({ origin, notAfter }, index) => {
    const leftMs = notAfter.getTime() - Date.now();
    if (leftMs >= certificateWarningMs) return [];
    const message = `${origin} ${leftMs < 0 ? 'has ended' : 'ends'} on ${notAfter.toISOString()}; renew it`;
    return [{ path: `${path}[${index}].certificate`, message }];
  });
  const held = createHeldCertificates();
  held.hold(found);
  const { covers } = createCertificateChoice(held);
  const { publicUrl, subdomainHost, Hub } = config;
  const lacking = [
    publicUrl.hostname,
    ...(subdomainHost === undefined ? [] : [`*.${subdomainHost.hostname}`]),
  ].filter(
    (name) => Hub.acme === undefined && isIP(name.replace(/^\[|\]$/g, '')) === 0 && !covers(name),
  );
  return [
    ...ending,
    ...lacking.map((name) => ({ path, message: `none is for ${name}, where browsers go` })),
  ];
}
