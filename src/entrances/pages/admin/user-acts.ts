import type { OperationId } from '../../../operations/operations.ts';
import { message, type Phrase, type Text, text } from '../../../platform/texts/text.ts';

type Parameters = Readonly<Record<string, string>>;

/** An operation that is performed for one user, or for many. */
export interface UserAct {
  readonly operation: OperationId;
  /** In the list of what can be done. */
  readonly label: Phrase;
  readonly question: (count: number) => Text;
  readonly consequence: Phrase;
  /** Whether nobody loses anything by it. */
  readonly losesNothing?: true;
  /** Of the button that does it to so many users. */
  readonly button: (count: number) => Phrase;
  /** What has happened, for so many users. */
  readonly reported: (count: number) => Text;
  /** `always`: also for those that are ticked; `typed`: and their number must be typed, or the name of one. */
  readonly asks: 'for all' | 'always' | 'typed';
  /** What else is asked for. */
  readonly questions?: readonly ActQuestion[];
  /** How the operation is asked, by the answers; with the name of the user alone unless given. */
  readonly request?: (
    userNames: readonly string[],
    answers: Parameters,
  ) => { readonly params: Parameters; readonly body: unknown };
  /** Whether it is asked for several users at once, all or none. */
  readonly isTogether?: true;
}

/** A field of the page that asks. */
export interface ActQuestion {
  readonly name: 'from_group' | 'to_group' | 'idle_minutes';
  readonly label: Phrase;
}

/** By what a form says. */
export const userActs = {
  start: {
    operation: 'startServerOfUser',
    label: text`Start the servers of`,
    question: (count) =>
      message(
        '{count, plural, one {Start the servers of # user?} other {Start the servers of # users?}}',
        { count },
      ),
    consequence: text`They start with the options of their last start. Running servers keep running.`,
    losesNothing: true,
    button: () => text`Start servers`,
    reported: (count) =>
      message(
        '{count, plural, one {The servers of # user are starting or run already.} other {The servers of # users are starting or run already.}}',
        { count },
      ),
    asks: 'for all',
  },
  stop: {
    operation: 'stopServersOfUser',
    label: text`Stop all servers of`,
    question: (count) =>
      message(
        '{count, plural, one {Stop all servers of # user?} other {Stop all servers of # users?}}',
        { count },
      ),
    consequence: text`Unsaved work on these servers will be lost.`,
    button: () => text`Stop servers`,
    reported: (count) =>
      message(
        '{count, plural, one {All servers of # user are stopped.} other {All servers of # users are stopped.}}',
        { count },
      ),
    asks: 'for all',
  },
  stopIdle: {
    operation: 'stopServersOfUser',
    label: text`Stop idle servers of`,
    question: (count) =>
      message(
        '{count, plural, one {Stop the idle servers of # user?} other {Stop the idle servers of # users?}}',
        { count },
      ),
    consequence: text`Servers that were used since then keep running. Unsaved work on the others will be lost.`,
    button: () => text`Stop idle servers`,
    reported: (count) =>
      message(
        '{count, plural, one {The idle servers of # user are stopped.} other {The idle servers of # users are stopped.}}',
        { count },
      ),
    asks: 'always',
    questions: [{ name: 'idle_minutes', label: text`Not used for, in minutes` }],
    request: ([name = ''], { idle_minutes: minutes }) => ({
      params: { name },
      body: { idle_minutes: Number(minutes) },
    }),
  },
  group: {
    operation: 'addGroupMembers',
    label: text`Add to a group`,
    question: (count) =>
      message('{count, plural, one {Add # user to a group?} other {Add # users to a group?}}', {
        count,
      }),
    consequence: text`They get this group’s permissions immediately.`,
    losesNothing: true,
    button: () => text`Add to group`,
    reported: (count) =>
      message(
        '{count, plural, one {# user added to the group.} other {# users added to the group.}}',
        { count },
      ),
    asks: 'always',
    questions: [{ name: 'to_group', label: text`Group` }],
    request: (users, { to_group: group = '' }) => ({ params: { group }, body: { users } }),
    isTogether: true,
  },
  move: {
    operation: 'moveGroupMembers',
    label: text`Move to another group`,
    question: (count) =>
      message(
        '{count, plural, one {Move # user to another group?} other {Move # users to another group?}}',
        { count },
      ),
    consequence: text`They lose at once what they may do by the first group alone, and get the permissions of the other.`,
    button: () => text`Move to group`,
    reported: (count) =>
      message(
        '{count, plural, one {# user moved to the group.} other {# users moved to the group.}}',
        { count },
      ),
    asks: 'always',
    questions: [
      { name: 'from_group', label: text`From the group` },
      { name: 'to_group', label: text`To the group` },
    ],
    request: (users, { from_group: group = '', to_group: to }) => ({
      params: { group },
      body: { users, to },
    }),
    isTogether: true,
  },
  ungroup: {
    operation: 'removeGroupMembers',
    label: text`Remove from a group`,
    question: (count) =>
      message(
        '{count, plural, one {Remove # user from a group?} other {Remove # users from a group?}}',
        { count },
      ),
    consequence: text`They lose at once what they may do by the group alone.`,
    button: () => text`Remove from group`,
    reported: (count) =>
      message(
        '{count, plural, one {# user is not in the group any more.} other {# users are not in the group any more.}}',
        { count },
      ),
    asks: 'always',
    questions: [{ name: 'from_group', label: text`Group` }],
    request: (users, { from_group: group = '' }) => ({ params: { group }, body: { users } }),
    isTogether: true,
  },
  invite: {
    operation: 'createInvitation',
    label: text`Create sign-in links`,
    question: (count) =>
      message('{count, plural, one {Make a link for # user?} other {Make a link for # users?}}', {
        count,
      }),
    consequence: text`Each lets one person choose the first or a new password. Links made before stop working.`,
    button: () => text`Make links`,
    reported: (count) =>
      message('{count, plural, one {Links for # user.} other {Links for # users.}}', { count }),
    asks: 'for all',
  },
  suspend: {
    operation: 'suspendUser',
    label: text`Suspend`,
    question: (count) =>
      message('{count, plural, one {Suspend # user?} other {Suspend # users?}}', { count }),
    consequence: text`Their servers are stopped, and no login, token or share of theirs works until the suspension ends. Nothing is deleted.`,
    button: () => text`Suspend`,
    reported: (count) =>
      message('{count, plural, one {# user suspended.} other {# users suspended.}}', { count }),
    asks: 'always',
  },
  delete: {
    operation: 'deleteUser',
    label: text`Delete`,
    question: (count) =>
      message('{count, plural, one {Delete # user?} other {Delete # users?}}', { count }),
    consequence: text`Their servers are stopped, their logins end, and all their tokens stop working. This cannot be undone. Their files stay where they are.`,
    button: (count) =>
      message('{count, plural, one {Delete user} other {Delete users}}', { count }),
    reported: (count) =>
      message('{count, plural, one {# user deleted.} other {# users deleted.}}', { count }),
    asks: 'typed',
  },
} as const satisfies Readonly<Record<string, UserAct>>;

export type UserActName = keyof typeof userActs;
