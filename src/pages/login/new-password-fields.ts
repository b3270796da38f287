import { textField } from '../elements/form.ts';
import { type Html, html } from '../html.ts';

export interface NewPasswordRules {
  /** Fewest characters, where the authenticator tells beforehand. */
  readonly minimumLength: number | undefined;
}

/** Problems of a new password that was sent, by field. */
export interface NewPasswordProblems {
  readonly password?: string | undefined;
  readonly repeated?: string | undefined;
}

/** Two fields for a password that the person chooses: `new_password` and `repeat_password`. */
export function newPasswordFields(
  { minimumLength }: NewPasswordRules,
  problems: NewPasswordProblems = {},
): Html {
  const atLeast = minimumLength === undefined ? '' : `At least ${minimumLength} characters. `;
  return html`${textField({
    name: 'new_password',
    label: 'New password',
    type: 'password',
    autocomplete: 'new-password',
    maxLength: 1024,
    help: `${atLeast}A few words you can remember make a good one.`,
    problem: problems.password,
  })}${textField({
    name: 'repeat_password',
    label: 'The same password again',
    type: 'password',
    autocomplete: 'new-password',
    maxLength: 1024,
    problem: problems.repeated,
  })}`;
}

/** What is wrong with the two fields of a new password; undefined when nothing is. */
export function newPasswordProblems(
  form: URLSearchParams,
  problem: string | undefined,
): NewPasswordProblems | undefined {
  if (problem !== undefined) return { password: problem };
  if (form.get('new_password') === form.get('repeat_password')) return undefined;
  return { repeated: 'The two passwords are not the same.' };
}
