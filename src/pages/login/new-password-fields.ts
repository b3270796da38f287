import { textField } from '../elements/form.ts';
import { type Html, html } from '../html.ts';

export interface NewPasswordRules {
  readonly minimumLength: number;
}

/** Problems of a new password that was sent, by field. */
export interface NewPasswordProblems {
  readonly password?: string | undefined;
  readonly repeated?: string | undefined;
}

/** Two fields for a password that the person chooses: `new_password` and `repeat_password`. */
export function newPasswordFields(
  rules: NewPasswordRules,
  problems: NewPasswordProblems = {},
): Html {
  return html`${textField({
    name: 'new_password',
    label: 'New password',
    type: 'password',
    autocomplete: 'new-password',
    maxLength: 1024,
    help: `At least ${rules.minimumLength} characters. A few words you can remember make a good one.`,
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
