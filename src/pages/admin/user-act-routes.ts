import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from 'koa';
import { mostNewUsers } from '../../accounts/accounts.ts';
import type { Batches, BatchReport } from '../../accounts/batches.ts';
import { type Invitations, invitationLifetimeSeconds } from '../../accounts/invitations.ts';
import { HubError } from '../../errors.ts';
import { listFilter } from '../../rbac/access-check.ts';
import type { Caller } from '../../rbac/caller.ts';
import { joined, message, type Phrase, phraseIn, text, translated } from '../../texts/text.ts';
import type { GroupStore } from '../../users/group-store.ts';
import type { UserStore } from '../../users/user-store.ts';
import { textField } from '../elements/form.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { batchPage } from './batch-page.ts';
import { invitationLinksPage } from './new-users-page.ts';
import { createUserActs, type UserAct, type UserActDeps } from './user-acts.ts';
import { usersFilterFor } from './users-filter.ts';
import { readUsersQuery, usersFields, usersUrl } from './users-query.ts';

/** Users that can be ticked on one page, and more. */
const mostTicked = 200;
/** Of all that match. */
const mostMatching = 200_000;
/** What is done by then is told on the list itself. */
const patienceMs = 2_000;
/** Reasons that a notice names. */
const mostTold = 3;

type InvitationAct = Omit<UserAct, 'name' | 'run'> & { readonly name: 'invite' };

const invitationAct: InvitationAct = {
  name: 'invite',
  label: text`Make links for`,
  scope: 'admin:users',
  question: (count) =>
    message('{count, plural, one {Make a link for # user?} other {Make a link for # users?}}', {
      count,
    }),
  consequence: text`Each lets one person choose the first or a new password. Links made before stop working.`,
  button: () => text`Make links`,
  told: (count) =>
    message('{count, plural, one {Links for # user.} other {Links for # users.}}', { count }),
  asks: 'for all',
};

/** `/hub/admin/act-on-users` and `/hub/admin/batches/:id`: the same for many users at once. */
export function adminUserActRoutes(
  admin: AdminContext,
  deps: Omit<UserActDeps, 'users'> & {
    readonly users: UserStore;
    readonly invitations: Invitations;
    readonly batches: Batches;
    readonly groups: Pick<GroupStore, 'getByName'>;
  },
): { readonly offered: (who: Admin) => { readonly name: string; readonly label: Phrase }[] } {
  const { pages } = admin;
  const { users, batches, invitations } = deps;
  const acts = createUserActs(deps);
  const all = [...acts.slice(0, -1), invitationAct, ...acts.slice(-1)];

  async function isGroup(who: Admin, name: string): Promise<boolean> {
    who.require('groups', { kind: 'group', name });
    return await deps.groups.getByName(name).then(
      () => true,
      (error) => {
        if (error instanceof HubError && error.code === 'not_found') return false;
        throw error;
      },
    );
  }

  /** Those that a form is about. */
  async function namesIn(form: URLSearchParams, who: Admin): Promise<string[]> {
    if (form.get('whom') !== 'matching')
      return [...new Set(form.getAll('user'))].slice(0, mostTicked);
    const filter = usersFilterFor(who, readUsersQuery(form));
    return users.listNames(filter, mostMatching);
  }

  async function ask(
    ctx: Context,
    form: URLSearchParams,
    act: UserAct | InvitationAct,
    names: readonly string[],
    problem?: Phrase,
  ): Promise<void> {
    const before = form.get('count');
    const isMatching = form.get('whom') === 'matching';
    const hasChanged = isMatching && before !== null && before !== String(names.length);
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: act.question(names.length),
      consequences: [
        hasChanged &&
          message(
            'The list has changed meanwhile: there {before, plural, one {was # user} other {were # users}}.',
            { before },
          ),
        !isMatching && names.length <= 10 && names.join(', '),
        act.consequence,
      ].filter((line) => line !== false),
      label: act.button(names.length),
      action: pages.urls.adminActOnUsers,
      cancelUrl: usersUrl(pages.urls, readUsersQuery(form)),
      fields: {
        ...usersFields(readUsersQuery(form)),
        act: act.name,
        whom: isMatching ? 'matching' : 'ticked',
        user: isMatching ? [] : names,
        count: String(names.length),
        confirmed: 'true',
      },
      questions:
        act.name === 'group' &&
        textField({
          name: 'to_group',
          label: text`Group`,
          value: form.get('to_group') ?? undefined,
          autocomplete: 'off',
          isLiteral: true,
          isFocused: true,
          maxLength: 255,
          problem,
        }),
      typeToConfirm: act.asks === 'typed' ? expectedWord(form, names) : undefined,
      problem,
    });
    pages.send(ctx, page, problem === undefined ? 200 : 400);
  }

  /** What is typed to confirm: the name of one who was ticked, else how many there are. */
  function expectedWord(form: URLSearchParams, names: readonly string[]): string {
    const [only = '', ...more] = names;
    return more.length === 0 && only !== '' && form.get('whom') !== 'matching'
      ? only
      : String(names.length);
  }

  /** What has to be asked before it is done; `problem` says what was wrong with the last answer. */
  function openQuestion(
    form: URLSearchParams,
    act: UserAct | InvitationAct,
    names: readonly string[],
  ): { readonly problem?: Phrase } | undefined {
    const isMatching = form.get('whom') === 'matching';
    if (!isMatching && act.asks === 'for all') return undefined;
    if (form.get('confirmed') !== 'true') return {};
    if (isMatching && form.get('count') !== String(names.length)) return {};
    const expected = expectedWord(form, names);
    if (act.asks === 'typed' && form.get('confirmation')?.trim() !== expected) {
      const isName = expected === names[0];
      return {
        problem: isName ? text`This is not the name of the user.` : text`This is not their number.`,
      };
    }
    if (act.name === 'group' && (form.get('to_group') ?? '').trim() === '') {
      return { problem: text`Type the name of a group.` };
    }
    return undefined;
  }

  async function invite(ctx: Context, who: Admin, names: readonly string[]): Promise<void> {
    if (names.length > mostNewUsers) {
      throw new HubError('bad_request', text`At most ${mostNewUsers} links can be made at once.`, {
        hint: text`Search for part of the users, and make the links in several steps.`,
      });
    }
    const links: {
      userName: string;
      url: string;
      purpose: keyof typeof invitationLifetimeSeconds;
    }[] = [];
    const problems: Phrase[] = [];
    for (const name of names) {
      try {
        who.require('admin:users', { kind: 'user', name });
        const { user, url, purpose } = await invitations.create(who.caller, name);
        links.push({ userName: user.name, url, purpose });
      } catch (error) {
        if (!(error instanceof HubError) || error.code === 'storage_unavailable') throw error;
        problems.push(joined([name, translated(error.shown.message)], ': '));
      }
    }
    const isInvitation = links.every(({ purpose }) => purpose === 'invitation');
    const lifetimes = links.map(({ purpose }) => invitationLifetimeSeconds[purpose]);
    pages.send(
      ctx,
      invitationLinksPage({
        layout: await pages.formLayoutFor(ctx),
        purpose: isInvitation ? 'invitation' : 'reset',
        links,
        problems,
        lifetimeSeconds: Math.min(...lifetimes, invitationLifetimeSeconds.invitation),
      }),
    );
  }

  function tell(ctx: Context, act: UserAct, report: BatchReport): void {
    const { done, failed, problems, returnTo } = report;
    const parts: Phrase[] = done > 0 ? [act.told(done)] : [];
    const reasons = problems.slice(0, mostTold).map(({ name, message }) => `${name}: ${message}`);
    if (failed > 0)
      parts.push(
        message(
          '{count, plural, one {Not done for # user. {reasons}} other {Not done for # users. {reasons}}}',
          { count: failed, reasons: joined(reasons) },
        ),
      );
    const kind = failed === 0 ? 'good' : 'warn';
    pages.redirectWithNotice(ctx, returnTo, { kind, text: joined(parts) });
  }

  admin.post(
    '/admin/act-on-users',
    async (ctx, who, form) => {
      const returnTo = usersUrl(pages.urls, readUsersQuery(form));
      const act = all.find(({ name }) => name === form.get('act'));
      if (act === undefined) throw new HubError('bad_request', text`There is no such action.`);
      const names = await namesIn(form, who);
      if (names.length === 0) {
        const told =
          form.get('whom') === 'matching'
            ? text`No user matches any more.`
            : text`Tick users first.`;
        return pages.redirectWithNotice(ctx, returnTo, { kind: 'warn', text: told });
      }
      const question = openQuestion(form, act, names);
      if (question !== undefined) return ask(ctx, form, act, names, question.problem);
      if (act.name === 'invite') return invite(ctx, who, names);
      const group = (form.get('to_group') ?? '').trim();
      if (act.name === 'group' && !(await isGroup(who, group))) {
        return ask(ctx, form, act, names, text`There is no group “${group}”.`);
      }
      const { runTogether } = act;
      const { id, finished } = await batches.start({
        by: who.login.user.id,
        title: phraseIn(act.question(names.length), pages.languageOf(ctx)).replace(/\?$/, ''),
        returnTo,
        names,
        work: async (name) => act.run(await admin.again(who.login), name, { group }),
        workTogether:
          runTogether &&
          (async (several) => runTogether(await admin.again(who.login), several, { group })),
      });
      const report = await Promise.race([finished, sleep(patienceMs, undefined, { ref: false })]);
      if (report !== undefined && report.failed <= mostTold) return tell(ctx, act, report);
      ctx.redirect(pages.urls.adminBatch(id));
      ctx.status = 303;
    },
    { needsRecentLogin: (form) => form.get('act') !== 'start' && form.get('act') !== 'stop' },
  );

  admin.get('/admin/batches/:id', async (ctx, who) => {
    const report = await batches.find(parameter(ctx, 'id'), who.login.user.id);
    if (report === undefined) {
      throw new HubError('not_found', text`Nothing is known of this any more.`, {
        hint: text`What was done is told for a day, to those who began it.`,
      });
    }
    pages.send(ctx, batchPage({ layout: await pages.layoutFor(ctx), report }));
  });

  return {
    offered: ({ caller }) =>
      all.filter(
        ({ name, scope }) =>
          reachesOthers(caller, scope) &&
          (name !== 'invite' || invitations.isUsed) &&
          (name !== 'start' || deps.servers.isConfigured),
      ),
  };
}

/** Whether a scope is held for more than the holder's own account, as every user holds some. */
function reachesOthers({ scopes, owner }: Caller, scope: string): boolean {
  const filter = listFilter(scopes, scope);
  if (filter === undefined || filter === 'all') return filter === 'all';
  return filter.groups.size > 0 || [...filter.users].some((name) => name !== owner.name);
}
