import { joined, message, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { checkBox, textField } from '../elements/form.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

export interface NewPasswordRules {
  /** Fewest characters, where the authenticator tells beforehand. */
  readonly minimumLength: number | undefined;
}

/** Problems of a new password that was sent, by field. */
export interface NewPasswordProblems {
  readonly password?: Phrase | undefined;
  readonly repeated?: Phrase | undefined;
}

/** Two fields for a password that the person chooses: `new_password` and `repeat_password`. */
export function newPasswordFields(
  { minimumLength }: NewPasswordRules,
  problems: NewPasswordProblems = {},
): Html {
  const advice = text`A short phrase of several words works well.`;
  return html`${textField({
    name: 'new_password',
    label: text`New password`,
    type: 'password',
    autocomplete: 'new-password',
    maxLength: 1024,
    help: minimumLength === undefined ? advice : joined([atLeast(minimumLength), advice]),
    problem: problems.password,
  })}${textField({
    name: 'repeat_password',
    label: text`Confirm password`,
    type: 'password',
    autocomplete: 'new-password',
    maxLength: 1024,
    problem: problems.repeated,
  })}`;
}

const endsTokensName = 'end_api_tokens';

/** What a new password does to the tokens of its user. */
export interface TokensChoice {
  readonly count: number;
  readonly isChosen: boolean;
}

/** Offers to end the user's tokens with the old password, where there are any. */
export function endTokensField({ count, isChosen }: TokensChoice): HtmlValue {
  if (count === 0) return false;
  return checkBox({
    name: endsTokensName,
    label: message(
      '{count, plural, one {End your API token too} other {End your # API tokens too}}',
      { count },
    ),
    isChecked: isChosen,
    help: text`Scripts and programs that use them stop working. Anyone who knew the old password may have made some.`,
  });
}

/** Whether the form chooses so; a form that has not been sent yet does. */
export function endsApiTokens(form: URLSearchParams | undefined): boolean {
  return form === undefined || form.get(endsTokensName) === 'true';
}

/** What is wrong with the two fields of a new password; undefined when nothing is. */
export function newPasswordProblems(
  form: URLSearchParams,
  problem: Phrase | undefined,
): NewPasswordProblems | undefined {
  if (problem !== undefined) return { password: problem };
  if (form.get('new_password') === form.get('repeat_password')) return undefined;
  return { repeated: text`The passwords don’t match.` };
}

function atLeast(characters: number): Text {
  return message(
    '{characters, plural, one {At least # character.} other {At least # characters.}}',
    {
      characters,
    },
  );
}
