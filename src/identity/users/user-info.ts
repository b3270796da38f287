import { HubError } from '../../platform/errors.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { ClaimedInfo } from '../../plugin/host/authenticator.ts';

/** Who a user is beside the name, as far as it is known. */
export interface UserInfo {
  /** What others read in place of the user name; never tells users apart. */
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  /** Whether a provider or an administrator vouches that the address is the user's. */
  readonly isEmailVerified: boolean;
  /** An https URL. */
  readonly pictureUrl: string | undefined;
  /** Authenticator that told it; undefined where it was typed here. */
  readonly authenticator: string | undefined;
}

/** What a caller sets; left out: as it was, null: none. */
export interface InfoChange {
  readonly displayName?: string | null | undefined;
  readonly email?: string | null | undefined;
  readonly pictureUrl?: string | null | undefined;
}

export const noInfo: UserInfo = {
  displayName: undefined,
  email: undefined,
  isEmailVerified: false,
  pictureUrl: undefined,
  authenticator: undefined,
};

/** Characters of a display name. */
export const maxDisplayNameLength = 255;
/** RFC 5321 §4.5.3.1.3, without the angle brackets. */
export const maxEmailLength = 254;
export const maxPictureUrlLength = 2_000;

/** Controls, separators of lines, and what turns the direction of text or is not seen (Unicode TR 36 §2.5). */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
/** The joiners are letters of some scripts, and of emoji. */
const joiner = /[\u200c\u200d]/g;
/** More marks on one letter than any script has cover the lines above and below. */
const piledMarks = /(\p{M}{4})\p{M}+/gu;

/** Makes of claims what can be kept and shown: what cannot is cut or left out. */
export function infoFromClaims(claimed: ClaimedInfo, authenticator: string): UserInfo {
  // A provider may send a megabyte.
  const displayName = plainName((claimed.displayName ?? '').slice(0, 10 * maxDisplayNameLength));
  const email = claimed.email?.normalize('NFC').trim();
  const isEmail = email !== undefined && emailProblem(email) === undefined;
  const pictureUrl = claimed.pictureUrl?.trim();
  const isPicture = pictureUrl !== undefined && pictureProblem(pictureUrl) === undefined;
  return {
    displayName: displayName === '' ? undefined : displayName,
    email: isEmail ? email : undefined,
    isEmailVerified: isEmail && claimed.isEmailVerified === true,
    pictureUrl: isPicture ? pictureUrl : undefined,
    authenticator,
  };
}

/** What was typed, put over what is known. Throws `bad_request` that says what is wrong with it. */
export function changedInfo(known: UserInfo, change: InfoChange): UserInfo {
  const displayName = typedOr(change.displayName, known.displayName, nameProblem);
  const email = typedOr(change.email, known.email, emailProblem);
  const pictureUrl = typedOr(change.pictureUrl, known.pictureUrl, pictureProblem);
  const keepsEmail = email === known.email;
  return {
    displayName,
    email,
    isEmailVerified: email !== undefined && (!keepsEmail || known.isEmailVerified),
    pictureUrl,
    authenticator: undefined,
  };
}

/** In lower case, on a line each: a search for part of a text never runs over from one into the other. */
export function searchTextOf({ displayName = '', email = '' }: UserInfo): string {
  return searchForm(`${displayName}\n${email}`);
}

/** How a text is compared in a search. */
export function searchForm(text: string): string {
  return text.normalize('NFC').toLowerCase();
}

function plainName(name: string): string {
  const visible = [...name.toWellFormed().normalize('NFC')]
    .map((letter) => {
      if (!unseen.test(letter) || joiner.test(letter)) return letter;
      return /[\p{Zl}\p{Zp}\t\n\r]/u.test(letter) ? ' ' : '';
    })
    .join('');
  const spaced = visible.replaceAll(/\s+/gu, ' ').replaceAll(piledMarks, '$1').trim();
  return [...spaced].slice(0, maxDisplayNameLength).join('').trim();
}

function nameProblem(name: string): Text | undefined {
  if ([...name].length > maxDisplayNameLength) {
    return text`The display name is longer than ${maxDisplayNameLength} characters.`;
  }
  return plainName(name) === name.replaceAll(/\s+/gu, ' ')
    ? undefined
    : text`The display name holds characters that cannot be seen or that disturb other text, such as control characters.`;
}

function emailProblem(email: string): Text | undefined {
  if (email.length > maxEmailLength)
    return text`The e-mail address is longer than ${maxEmailLength} characters.`;
  // One @ only: `a@evil.example@example.org` is read differently by different programs.
  return /^[^\s\p{C}@"(),:;<>[\\\]]+@[^\s\p{C}@"(),:;<>[\\\]]+$/u.test(email)
    ? undefined
    : text`This is not an e-mail address, such as ada@example.org.`;
}

function pictureProblem(url: string): Text | undefined {
  const parsed = URL.parse(url);
  const isPlain = parsed?.protocol === 'https:' && parsed.username === '' && parsed.password === '';
  if (!isPlain || /[\s\p{C}]/u.test(url)) return text`The picture is not an https:// URL.`;
  return url.length > maxPictureUrlLength
    ? text`The URL of the picture is longer than ${String(maxPictureUrlLength)} characters.`
    : undefined;
}

function typedOr(
  typed: string | null | undefined,
  known: string | undefined,
  problemOf: (value: string) => Text | undefined,
): string | undefined {
  if (typed === undefined) return known;
  const value = (typed ?? '').normalize('NFC').trim();
  if (value === '') return undefined;
  const problem = problemOf(value);
  if (problem !== undefined) throw new HubError('bad_request', problem);
  return value.replaceAll(/\s+/gu, ' ');
}
