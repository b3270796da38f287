import { setTimeout as sleep } from 'node:timers/promises';
import { maxNewUsers } from '../../../identity/accounts/accounts.ts';
import type { Batches, BatchReport } from '../../../identity/accounts/batches.ts';
import { invitationLifetimeSeconds } from '../../../identity/accounts/invitations.ts';
import type { LoginSessions } from '../../../identity/sessions/login-sessions.ts';
import { readUsersQuery, usersFields } from '../../../operations/users-query.ts';
import { HubError } from '../../../platform/errors.ts';
import {
  joined,
  message,
  type Phrase,
  phraseIn,
  readPhrase,
  text,
} from '../../../platform/texts/text.ts';
import { textField } from '../elements/form.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import type { BoundPages, Chosen, ModelOf } from '../forms/binding.ts';
import type { Next } from '../forms/next.ts';
import { type PageUrls, usersUrl } from '../page-urls.ts';
import { batchPage } from './batch-page.ts';
import { invitationLinksPage } from './new-users-page.ts';
import { type ActQuestion, type UserAct, type UserActName, userActs } from './user-acts.ts';

/** Users that can be ticked on one page, and more. */
const maxTicked = 200;
/** What is done by then is said on the list itself. */
const maxWaitMs = 2_000;
/** Reasons that a notice names. */
const maxReasons = 3;

/** A form that acts on users, as it was sent. */
interface Asked {
  readonly name: string;
  readonly act: UserAct;
  readonly names: readonly string[];
  readonly isMatching: boolean;
  readonly sent: URLSearchParams;
}

/** `/hub/admin/act-on-users` and `/hub/admin/batches/{batch}`: the same for many users at once. */
export function adminUserActRoutes(
  { page, choice, pages: { urls } }: BoundPages,
  {
    batches,
    logins,
  }: { readonly batches: Pick<Batches, 'start'>; readonly logins: Pick<LoginSessions, 'find'> },
): void {
  choice('/admin/act-on-users', {
    field: 'act',
    operations: Object.fromEntries(
      Object.entries(userActs).map(([name, { operation }]) => [name, operation]),
    ),
    logins,
    async act(chosen) {
      const { sent, choice: name } = chosen;
      const isMatching = sent.get('whom') === 'matching';
      const names = isMatching
        ? await chosen.read('viewMatchingUsers', { query: Object.fromEntries(sent) })
        : [...new Set(sent.getAll('user'))].slice(0, maxTicked);
      const returnTo = usersUrl(urls, readUsersQuery(sent));
      if (names.length === 0) {
        const say = isMatching ? text`No user matches any more.` : text`Select at least one user.`;
        return { to: returnTo, say, kind: 'warn' };
      }
      const asked = { name, act: userActs[name as UserActName], names, isMatching, sent };
      const question = openQuestion(asked) ?? (await wrongAnswer(asked, chosen));
      if (question !== undefined) return ask(urls, asked, question);
      return name === 'invite'
        ? makeLinks(names, chosen)
        : performEach(asked, chosen, { batches, returnTo, urls });
    },
  });

  page('/admin/batches/{batch}', 'viewBatch', ({ layout, model }) =>
    batchPage({ layout, ...model }),
  );
}

function ask(urls: PageUrls, asked: Asked, { problem, field }: OpenQuestion): Next {
  const { name, act, names, isMatching, sent } = asked;
  const before = sent.get('count');
  const hasChanged = isMatching && before !== null && before !== String(names.length);
  const query = readUsersQuery(sent);
  const show = (layout: Parameters<typeof confirmPage>[0]['layout']) =>
    confirmPage({
      layout,
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
      losesNothing: act.losesNothing,
      action: urls.adminActOnUsers,
      cancelUrl: usersUrl(urls, query),
      fields: {
        ...usersFields(query),
        act: name,
        whom: isMatching ? 'matching' : 'ticked',
        user: isMatching ? [] : names,
        count: String(names.length),
        confirmed: 'true',
      },
      questions: act.questions?.map((question, index) =>
        textField({
          ...question,
          ...(question.name === 'idle_minutes' && { type: 'number', min: 1 }),
          value: answerTo(question, asked),
          autocomplete: 'off',
          isLiteral: true,
          isFocused: field === undefined ? index === 0 : field === question.name,
          maxLength: 255,
          problem: field === question.name ? problem : undefined,
        }),
      ),
      typeToConfirm: act.asks === 'typed' ? expectedWord(asked) : undefined,
      problem,
    });
  return { show, status: problem === undefined ? 200 : 400 };
}

/** What is typed to confirm: the name of one who was ticked, else how many there are. */
function expectedWord({ names, isMatching }: Asked): string {
  const [only = '', ...more] = names;
  return more.length === 0 && only !== '' && !isMatching ? only : String(names.length);
}

interface OpenQuestion {
  /** What was wrong with the last answer. */
  readonly problem?: Phrase;
  /** The field of that answer, unless it is the one that confirms. */
  readonly field?: ActQuestion['name'];
}

/** What has to be asked before it is done. */
function openQuestion(asked: Asked): OpenQuestion | undefined {
  const { act, names, isMatching, sent } = asked;
  if (!isMatching && act.asks === 'for all') return undefined;
  if (sent.get('confirmed') !== 'true') return {};
  if (isMatching && sent.get('count') !== String(names.length)) return {};
  const expected = expectedWord(asked);
  if (act.asks === 'typed' && sent.get('confirmation')?.trim() !== expected) {
    const isName = expected === names[0];
    return {
      problem: isName ? text`This is not the name of the user.` : text`This is not their number.`,
    };
  }
  return undefined;
}

/** What was typed, or else what is likely. */
function answerTo({ name }: ActQuestion, { sent }: Asked): string {
  const likely = { from_group: sent.get('group'), to_group: null, idle_minutes: '60' }[name];
  return (sent.get(name) ?? likely ?? '').trim();
}

async function wrongAnswer(asked: Asked, { read }: Chosen): Promise<OpenQuestion | undefined> {
  for (const question of asked.act.questions ?? []) {
    const problem = await problemWith(question, answerTo(question, asked), read);
    if (problem !== undefined) return { problem, field: question.name };
  }
  return undefined;
}

async function problemWith(
  { name }: ActQuestion,
  answer: string,
  read: Chosen['read'],
): Promise<Phrase | undefined> {
  if (name === 'idle_minutes')
    return Number(answer) > 0 ? undefined : text`Type a number of minutes.`;
  if (answer === '') return text`Type the name of a group.`;
  try {
    await read('viewGroupProperties', { params: { group: answer } });
    return undefined;
  } catch (error) {
    if (!(error instanceof HubError) || error.code !== 'not_found') throw error;
    return text`There is no group “${answer}”.`;
  }
}

async function makeLinks(names: readonly string[], { perform }: Chosen): Promise<Next> {
  if (names.length > maxNewUsers) {
    throw new HubError('bad_request', text`At most ${maxNewUsers} links can be made at once.`, {
      hint: text`Search for part of the users, and make the links in several steps.`,
    });
  }
  const made: ModelOf<'createInvitation'>[] = [];
  const problems: Phrase[] = [];
  for (const name of names) {
    try {
      made.push((await perform({ params: { name } })) as ModelOf<'createInvitation'>);
    } catch (error) {
      if (!(error instanceof HubError) || error.code === 'storage_unavailable') throw error;
      problems.push(joined([name, error.shown.message], ': '));
    }
  }
  const isInvitation = made.every(({ purpose }) => purpose === 'invitation');
  return {
    show: (layout) =>
      invitationLinksPage({
        layout,
        purpose: isInvitation ? 'invitation' : 'reset',
        links: made.map(({ user, url }) => ({ userName: user, url })),
        problems,
        // Links of both kinds: as long as each of them works.
        lifetimeSeconds: isInvitation
          ? invitationLifetimeSeconds.invitation
          : invitationLifetimeSeconds.password_reset,
      }),
  };
}

/** Performs the operation for each user in the background, each time with the rights that are held by then. */
async function performEach(
  asked: Asked,
  { perform, visitor, language }: Chosen,
  {
    batches,
    returnTo,
    urls,
  }: {
    readonly batches: Pick<Batches, 'start'>;
    readonly returnTo: string;
    readonly urls: PageUrls;
  },
): Promise<Next> {
  const { act, names } = asked;
  const answers = Object.fromEntries(
    (act.questions ?? []).map((question) => [question.name, answerTo(question, asked)]),
  );
  const request = (several: readonly string[]) =>
    act.request?.(several, answers) ?? { params: { name: several[0] ?? '' } };
  const { id, finished } = await batches.start({
    by: visitor.login.user.id,
    title: phraseIn(act.question(names.length), language).replace(/\?$/, ''),
    returnTo,
    names,
    async work(name) {
      await perform(request([name]));
    },
    workTogether: act.isTogether && (async (several) => void (await perform(request(several)))),
  });
  const report = await Promise.race([finished, sleep(maxWaitMs, undefined, { ref: false })]);
  return report !== undefined && report.failed <= maxReasons
    ? { to: returnTo, ...outcome(act, report) }
    : { redirect: urls.adminBatch(id) };
}

function outcome(act: UserAct, { done, failed, problems }: BatchReport) {
  const parts: Phrase[] = done > 0 ? [act.reported(done)] : [];
  const reasons = problems
    .slice(0, maxReasons)
    .map((problem) => joined([problem.name, readPhrase(problem.message)], ': '));
  if (failed > 0)
    parts.push(
      message(
        '{count, plural, one {Not done for # user. {reasons}} other {Not done for # users. {reasons}}}',
        { count: failed, reasons: joined(reasons) },
      ),
    );
  return { say: joined(parts), kind: failed === 0 ? ('good' as const) : ('warn' as const) };
}
