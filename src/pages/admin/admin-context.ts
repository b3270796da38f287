import type Router from '@koa/router';
import type { Context } from 'koa';
import type { AuditAction } from '../../audit/actions.ts';
import { oneOfVersions, type RequireVersion } from '../../crypto/version.ts';
import { HubError } from '../../errors.ts';
import type { Resource } from '../../rbac/access-check.ts';
import { checkAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Caller } from '../../rbac/caller.ts';
import type { Membership } from '../../rbac/membership.ts';
import { requireAccess } from '../../rbac/require-access.ts';
import type { Login, LoginSessions } from '../../sessions/login-sessions.ts';
import type { AuditStore } from '../../store/audit-store.ts';
import { text } from '../../texts/text.ts';
import { adminLink, openedBy } from '../elements/admin-link.ts';
import { actorOf } from '../elements/audit-table.ts';
import { type Html, html } from '../html.ts';
import type { ReadForm } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';

/** A user on the administration pages, and what they may do there. */
export interface Admin {
  readonly login: Login;
  readonly caller: Caller;
  readonly membership: Membership;
  may(scope: string, resource?: Resource): boolean;
  /** Throws as the API does: `forbidden` without the scope, `not_found` for a resource outside it. */
  require(scope: string, resource?: Resource): void;
}

/** What every administration page needs. */
export interface AdminContext {
  readonly pages: PageContext;
  /** Who did the latest of these deeds, as far as the administrator may read that. */
  lastActor(
    who: Admin,
    actions: readonly AuditAction[],
    target?: string,
  ): Promise<Html | undefined>;
  /** What a login may do now, for work that goes on after its request. Throws `forbidden` when it may no more. */
  again(login: Login): Promise<Admin>;
  get(path: string, page: (ctx: Context, admin: Admin) => Promise<void>): void;
  /**
   * The form has been read, its CSRF token checked, and the login is a recent one: without a word to the
   * contrary, what is done here outlives it.
   */
  post(
    path: string,
    action: (ctx: Context, admin: Admin, form: URLSearchParams) => Promise<void>,
    options?: { readonly needsRecentLogin: boolean | ((form: URLSearchParams) => boolean) },
  ): void;
}

/** Every page of the router it returns needs the scope `admin-ui`. */
export function createAdminContext(
  router: Router,
  {
    pages,
    authorizer,
    logins,
    readForm,
    auditLog,
  }: {
    readonly pages: PageContext;
    readonly authorizer: Authorizer;
    readonly logins: Pick<LoginSessions, 'find'>;
    /** Reads a form once the login is recent. */
    readonly readForm: ReadForm;
    readonly auditLog: Pick<AuditStore, 'list'>;
  },
): AdminContext {
  async function adminOf(login: Login): Promise<Admin> {
    const caller = await pages.callerOf(login);
    const membership = await authorizer.membershipFor(caller.scopes);
    requireAccess(caller.scopes, ['admin-ui'], membership);
    return {
      login,
      caller,
      membership,
      may: (scope, resource) =>
        checkAccess(caller.scopes, scope, resource, membership) === 'granted',
      require: (scope, resource) => requireAccess(caller.scopes, [scope], membership, resource),
    };
  }

  return {
    pages,

    async lastActor(who, actions, target) {
      if (!who.may('read:audit')) return undefined;
      const found = await Promise.all(
        actions.map((action) => {
          const filter = {
            action,
            result: 'done',
            ...(target !== undefined && { target }),
          } as const;
          return auditLog.list({ filter, limit: 1 });
        }),
      );
      const [latest] = found
        .flatMap(({ entries }) => entries)
        .sort((one, other) => other.at.getTime() - one.at.getTime() || other.id - one.id);
      const mayOpen = openedBy(who.caller, who.membership);
      return (
        latest && html`${actorOf(latest, (name) => adminLink({ ...pages, mayOpen }, 'user', name))}`
      );
    },

    async again({ session }) {
      const login = await logins.find(session.sessionId);
      if (login === undefined) throw new HubError('forbidden', text`You are no longer logged in.`);
      return adminOf(login);
    },

    get(path, page) {
      router.get(
        path,
        pages.loggedIn(async (ctx, login) => page(ctx, await adminOf(login))),
      );
    },

    post(path, action, { needsRecentLogin } = { needsRecentLogin: true }) {
      router.post(
        path,
        pages.loggedIn(async (ctx, login) => {
          const who = await adminOf(login);
          const form = await readForm(ctx, login, (sent) =>
            typeof needsRecentLogin === 'boolean' ? needsRecentLogin : needsRecentLogin(sent),
          );
          if (form !== undefined) await action(ctx, who, form);
        }),
      );
    },
  };
}

/** The version that a form was drawn with. */
export function versionIn(form: URLSearchParams): RequireVersion {
  return oneOfVersions([form.get('version') ?? '']);
}

/** Whether a change is refused because the form was drawn with another version. */
export function isOfFormerVersion(error: unknown): boolean {
  return error instanceof HubError && error.code === 'precondition_failed';
}

/** The part of an address that a route names. */
export function parameter(ctx: Context, name: string): string {
  return String(ctx['params'][name] ?? '');
}
