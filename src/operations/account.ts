import { z } from 'zod';
import type { IdentityLinks } from '../identity/accounts/identity-links.ts';
import type { Passkeys } from '../identity/accounts/passkeys.ts';
import {
  codeProblem,
  requirePassword,
  type SecondFactors,
} from '../identity/accounts/second-factors.ts';
import type { UserProfiles } from '../identity/accounts/user-profiles.ts';
import type { AccountPasswords } from '../identity/authentication/account-passwords.ts';
import type { Authenticators } from '../identity/authentication/create-authenticators.ts';
import { loginLabels } from '../identity/authentication/login-labels.ts';
import type { LoginThrottle } from '../identity/authentication/login-throttle.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { GroupStore } from '../identity/users/group-store.ts';
import type { PasswordCredentialStore } from '../identity/users/password-credential-store.ts';
import type { User } from '../identity/users/user-store.ts';
import { currentActor } from '../platform/audit/actor.ts';
import { HubError, type HubErrorCode, type HubErrorOptions } from '../platform/errors.ts';
import type { AuditStore } from '../platform/store/audit-store.ts';
import { type Phrase, text } from '../platform/texts/text.ts';
import type { PasswordHasher } from '../plugin/host/authenticator.ts';
import { isExternal } from '../plugin/host/login-kinds.ts';
import { names } from './models.ts';
import { operation, view } from './operation.ts';
import { type Deps as OwnTokenDeps, ownTokensOf, ownTokensQuery } from './own-tokens.ts';
import { ownLoginOf, ownUserOf } from './own-user.ts';
import { loginsOf } from './sessions.ts';

export interface Deps extends OwnTokenDeps {
  readonly groups: Pick<GroupStore, 'groupNamesOf'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly passwords: Pick<
    AccountPasswords,
    'isUsed' | 'minimumLength' | 'problemWith' | 'apiTokenCount' | 'set'
  >;
  readonly passwordHasher: Pick<PasswordHasher, 'verify'>;
  /** That of the logins. */
  readonly throttle: Pick<LoginThrottle, 'attempt'>;
  readonly secondFactors: Omit<SecondFactors, 'removeAll'>;
  readonly passkeys: Pick<Passkeys, 'unusable' | 'listOf' | 'add' | 'rename' | 'remove'>;
  readonly identityLinks: IdentityLinks;
  readonly userProfiles: Pick<UserProfiles, 'read' | 'changeOwn'>;
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly auditLog: Pick<AuditStore, 'list'>;
  readonly logins: Pick<LoginSessions, 'endAllOfUser' | 'listOfUser'>;
}

const shownEntries = 10;

/** What every operation on one's own account has in common: it is that of the caller, whoever the form names. */
const own = { audience: 'page', method: 'POST', tag: 'internal', scopes: 'authenticated' } as const;
const done = { 204: { description: 'It is done.' } } as const;
const withRecoveryCodes = {
  200: {
    description: 'It is done, with new recovery codes for a user who had none.',
    schema: z.object({ recovery_codes: names.optional() }),
  },
} as const;
const withCode = z.object({ code: z.string() });

const recoveryCodes = (codes: readonly string[] | undefined) =>
  codes === undefined ? {} : { recovery_codes: codes };

const addressOfCaller = () => currentActor()?.address ?? '';

/** What users do with their own account, on the pages of the hub alone. */
export const accountOperations = [
  view({
    id: 'viewOwnAccount',
    path: '/account',
    scopes: 'authenticated',
    query: ownTokensQuery,
  }).handle(async ({ caller, query }, deps: Deps) => {
    const { secondFactors, passwords, passkeys } = deps;
    const user = ownUserOf(caller);
    const [
      links,
      { info, providedBy, shownPictureUrl },
      { entries: activity },
      groups,
      sessions,
      tokens,
    ] = await Promise.all([
      deps.identityLinks.listOf(user),
      deps.userProfiles.read(user),
      deps.auditLog.list({ filter: { target: user.name }, limit: shownEntries }),
      deps.groups.groupNamesOf(user.name),
      loginsOf(user.id, caller, deps.logins),
      ownTokensOf(caller, query, deps),
    ]);
    const hasPassword =
      passwords.isUsed && (await deps.credentials.findPasswordHash(user.name)) !== undefined;
    const factors = hasPassword ? await secondFactors.find(user.id) : undefined;
    const isRequired = hasPassword && (await secondFactors.isRequiredOf(user));
    return {
      userName: user.name,
      groups,
      profile: { displayName: info.displayName, email: info.email, providedBy, shownPictureUrl },
      password: hasPassword
        ? {
            minimumLength: passwords.minimumLength,
            tokenCount: await passwords.apiTokenCount(user.id),
          }
        : undefined,
      identities: links.map(({ id, label, display, subject, createdAt, mayUnlink }) => ({
        id,
        label,
        display: display ?? subject,
        linkedAt: createdAt,
        mayUnlink,
      })),
      linkable: deps.authenticators.list
        .filter(({ authenticator }) => isExternal(authenticator))
        .filter(({ name }) => !links.some(({ authenticator }) => authenticator === name))
        .map(({ name, authenticator }) => ({
          authenticator: name,
          label: loginLabels(authenticator.login.label),
        })),
      secondFactor: hasPassword
        ? {
            isOn: factors?.hasApp ?? false,
            isRequired: isRequired && factors?.passkeyCount === 0,
            recoveryCodesLeft: factors?.recoveryCodesLeft,
          }
        : undefined,
      passkeys: hasPassword
        ? {
            unusable: passkeys.unusable,
            passkeys: (await passkeys.listOf(user.id)).map((passkey) => ({
              ...passkey,
              mayRemove: !isRequired || factors?.hasApp === true || factors?.passkeyCount !== 1,
            })),
          }
        : undefined,
      activity,
      sessions,
      tokens,
    };
  }),
  operation({
    ...own,
    id: 'changeOwnProfile',
    path: '/account/profile',
    audit: ['user_info.change'],
    summary: 'Change what one is called',
    body: z.object({ display_name: z.string() }),
    answers: done,
  }).handle(({ caller, body }, { userProfiles }: Deps) =>
    userProfiles.changeOwn(ownUserOf(caller), { displayName: body.display_name }),
  ),
  operation({
    ...own,
    id: 'changeOwnPassword',
    path: '/account/password',
    audit: ['password.change', 'session.end', 'logout', 'token.revoke'],
    summary: 'Change the own password, and end all other logins',
    needsRecentLogin: true,
    body: z.object({
      current_password: z.string(),
      new_password: z.string(),
      end_api_tokens: z.boolean(),
    }),
    answers: done,
  }).handle(async ({ caller, body }, deps: Deps) => {
    const { passwords, credentials, passwordHasher, throttle } = deps;
    const { user, sessionId } = ownLoginOf(caller);
    const { current_password: current, new_password: password } = body;
    const same = text`This is the password you have now.`;
    const problem =
      passwords.problemWith(password, user.name) ?? (current === password ? same : undefined);
    if (problem !== undefined) throw problemOf('bad_request', 'new_password', problem);
    // Guessing here is guessing at the login: it counts there, so that neither helps the other.
    const tried = await throttle.attempt(
      { userName: user.name, address: addressOfCaller() },
      async () => {
        const credential = await credentials.findPasswordHash(user.name);
        return passwordHasher.verify(current, credential?.passwordHash);
      },
      ({ matches }) => (matches ? 'success' : 'failure'),
    );
    if (tried.outcome === 'delayed') {
      const tooMany = text`Too many wrong passwords. Wait a while, then try again.`;
      const { retryAfterSeconds } = tried;
      throw problemOf('too_many_requests', 'current_password', tooMany, { retryAfterSeconds });
    }
    if (!tried.result.matches)
      throw problemOf('forbidden', 'current_password', text`This is not your password.`);
    const endsApiTokens = body.end_api_tokens;
    await passwords.set(user, password, { keepSessionId: sessionId, endsApiTokens });
  }),
  operation({
    ...own,
    id: 'unlinkOwnIdentity',
    path: '/account/identities/unlink',
    audit: ['identity.unlink', 'session.end', 'logout'],
    summary: 'End the link to an account elsewhere, and the logins made by it',
    needsRecentLogin: true,
    body: z.object({ identity_id: z.string() }),
    answers: done,
  }).handle(async ({ caller, body }, { identityLinks }: Deps) => {
    const { user, sessionId } = ownLoginOf(caller);
    await identityLinks.unlink(user, body.identity_id, { keepSessionId: sessionId });
  }),
  view({
    id: 'viewOwnAppSetUp',
    path: '/account/second-factor',
    scopes: 'authenticated',
    // It shows a secret.
    needsRecentLogin: true,
    query: z.object({ state: z.string().optional() }),
  }).handle(async ({ caller, query }, { credentials, secondFactors }: Deps) => {
    const { user, sessionId } = ownLoginOf(caller);
    await requirePassword(credentials, user);
    // The secret of one that is on is never shown again.
    if ((await secondFactors.find(user.id))?.hasApp) return undefined;
    return secondFactors.setUp({ user, login: sessionId, state: query.state });
  }),
  operation({
    ...own,
    id: 'turnOnOwnApp',
    path: '/account/second-factor',
    audit: ['second_factor.enable', 'second_factor.renew_codes'],
    summary: 'Turn the own authenticator app on with its first code',
    needsRecentLogin: true,
    body: withCode.extend({ state: z.string() }),
    answers: withRecoveryCodes,
  }).handle(async ({ caller, body }, { credentials, secondFactors }: Deps) => {
    const { user, sessionId } = ownLoginOf(caller);
    await requirePassword(credentials, user);
    const attempt = { ...body, user, login: sessionId, address: addressOfCaller() };
    const result = await secondFactors.confirm(attempt);
    if (result.outcome !== 'on') throw codeProblem(result);
    return { status: 200, body: recoveryCodes(result.recoveryCodes) };
  }),
  view({
    id: 'viewOwnFactors',
    path: '/account/second-factor/recovery-codes',
    scopes: 'authenticated',
  }).handle(({ caller }, { secondFactors }: Deps) => secondFactors.find(ownUserOf(caller).id)),
  operation({
    ...own,
    id: 'turnOffOwnApp',
    path: '/account/second-factor/remove',
    audit: ['second_factor.remove', 'second_factor.check', 'second_factor.use_recovery_code'],
    summary: 'Turn the own authenticator app off, by a code, which says more than a recent login',
    body: withCode,
    answers: done,
  }).handle(async ({ caller, body }, { secondFactors }: Deps) => {
    const user = ownUserOf(caller);
    await requireCode(user, body.code, secondFactors);
    await secondFactors.removeCodes(user);
  }),
  operation({
    ...own,
    id: 'renewOwnRecoveryCodesByCode',
    path: '/account/second-factor/recovery-codes/by-code',
    audit: ['second_factor.renew_codes', 'second_factor.check', 'second_factor.use_recovery_code'],
    summary: 'Replace the own recovery codes, by a code, which says more than a recent login',
    body: withCode,
    answers: withRecoveryCodes,
  }).handle(async ({ caller, body }, { secondFactors }: Deps) => {
    const user = ownUserOf(caller);
    await requireCode(user, body.code, secondFactors);
    const codes = await secondFactors.renewRecoveryCodes(user.id);
    return { status: 200, body: recoveryCodes(codes) };
  }),
  operation({
    ...own,
    id: 'renewOwnRecoveryCodes',
    path: '/account/second-factor/recovery-codes',
    audit: ['second_factor.renew_codes'],
    summary: 'Replace the own recovery codes, where passkeys are all that there is',
    needsRecentLogin: true,
    answers: withRecoveryCodes,
  }).handle(async ({ caller }, { secondFactors }: Deps) => {
    const user = ownUserOf(caller);
    if ((await secondFactors.find(user.id))?.hasApp)
      throw new HubError('bad_request', text`Type a code of your authenticator app.`);
    const codes = await secondFactors.renewRecoveryCodes(user.id);
    return { status: 200, body: recoveryCodes(codes) };
  }),
  operation({
    ...own,
    id: 'addOwnPasskey',
    path: '/account/passkeys',
    audit: ['passkey.add', 'second_factor.renew_codes'],
    summary: 'Add a passkey to the own account',
    needsRecentLogin: true,
    body: z.object({ state: z.string(), response: z.string(), name: z.string() }),
    answers: withRecoveryCodes,
  }).handle(async ({ caller, body }, { credentials, passkeys }: Deps) => {
    const { user, sessionId } = ownLoginOf(caller);
    await requirePassword(credentials, user);
    const codes = await passkeys.add(user, { ...body, browser: sessionId }, body.name);
    return { status: 200, body: recoveryCodes(codes) };
  }),
  operation({
    ...own,
    id: 'renameOwnPasskey',
    path: '/account/passkeys/rename',
    audit: ['passkey.rename'],
    summary: 'Give a passkey of the own account another name',
    body: z.object({ id: z.string(), name: z.string() }),
    answers: done,
  }).handle(({ caller, body }, { passkeys }: Deps) =>
    passkeys.rename(ownUserOf(caller).id, body.id, body.name),
  ),
  operation({
    ...own,
    id: 'removeOwnPasskey',
    path: '/account/passkeys/remove',
    audit: ['passkey.remove', 'session.end', 'logout'],
    summary: 'Remove a passkey of the own account, and end all other logins',
    needsRecentLogin: true,
    body: z.object({ id: z.string() }),
    answers: done,
  }).handle(async ({ caller, body }, { passkeys, logins }: Deps) => {
    const { user, sessionId } = ownLoginOf(caller);
    await passkeys.remove(user, body.id);
    // Who has a passkey that was lost may be logged in with it.
    await logins.endAllOfUser(user.id, { except: sessionId });
  }),
];

function problemOf(
  code: HubErrorCode,
  field: string,
  problem: Phrase,
  options: HubErrorOptions = {},
): HubError {
  return new HubError(code, problem, { ...options, field: { name: field, problem } });
}

async function requireCode(
  user: User,
  code: string,
  secondFactors: Pick<SecondFactors, 'check'>,
): Promise<void> {
  const result = await secondFactors.check({ user, address: addressOfCaller(), code });
  if (result.outcome !== 'right') throw codeProblem(result);
}
