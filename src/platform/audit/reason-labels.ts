import { type Text, text } from '../texts/text.ts';

/** What the `reason` of a action is called on pages. */
export const reasonLabels = {
  blocked: text`Blocked account`,
  budget: text`Budget used up`,
  cancelled: text`Cancelled by the user`,
  counter: text`The counter of the passkey has not grown: it may have been copied`,
  credentials: text`Wrong user name or password`,
  crowded: text`Many users were logging in at once`,
  expired: text`Too late`,
  idle_timeout: text`Idle timeout`,
  invalid_name: text`The name cannot be used here`,
  invalid_response: text`The answer cannot be trusted`,
  malformed: text`The answer cannot be read`,
  max_age: text`Time limit`,
  no_account: text`No account here`,
  not_allowed: text`May not log in here`,
  suspended: text`The account is suspended`,
  other_identity: text`The account of this name logs in another way`,
  other_user: text`Passkey of another user`,
  provider: text`The provider could not confirm the user`,
  throttled: text`Too many attempts`,
  unknown: text`Unknown passkey`,
  used: text`Answer sent before`,
  wrong_code: text`Wrong code`,
} as const satisfies Readonly<Record<string, Text>>;

export type AuditReason = keyof typeof reasonLabels;
