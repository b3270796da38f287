import type { IncomingHttpHeaders } from 'node:http';
import { HubError } from '../../platform/errors.ts';
import { cookieValues } from '../../platform/http/cookies.ts';
import { hostPrefix, preferencesCookie } from '../../platform/protocol/cookie-names.ts';
import type { Language } from '../../platform/texts/language.ts';
import type { Languages } from '../../platform/texts/languages.ts';
import { text } from '../../platform/texts/text.ts';

export const themes = ['system', 'light', 'dark'] as const;

/** Light or dark, or as the system of the user has it. */
export type Theme = (typeof themes)[number];

/** How a browser wants the pages to be: of the browser, so that it counts before a login too. */
export interface Preferences {
  readonly theme: Theme;
  /** A language tag (RFC 5646); what the browser asks for when left out. */
  readonly language?: string | undefined;
}

/** Everything else is the language that the browser asks for. */
const languageTag = /^[a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3}$/i;

/**
 * The preferences in a Cookie header. What is there under two names, or several times, is no secret: the first that
 * makes sense counts.
 */
export function readPreferences(cookieHeader: string | undefined): Preferences {
  const values = [hostPrefix + preferencesCookie, preferencesCookie]
    .flatMap((name) => cookieValues(cookieHeader, name))
    .map((value) => new URLSearchParams(value));
  const first = (name: string, isValid: (value: string) => boolean) =>
    values.map((each) => each.get(name) ?? '').find(isValid);
  return {
    theme: (first('theme', isTheme) as Theme | undefined) ?? 'system',
    language: first('language', isLanguageTag),
  };
}

/** The value of the cookie; empty where nothing was chosen. */
export function preferencesValue({ theme, language }: Preferences): string {
  return new URLSearchParams({
    ...(theme !== 'system' && { theme }),
    ...(language !== undefined && { language }),
  }).toString();
}

/**
 * The preferences after a form with `theme` or `language`, or both, was sent; an empty language is that of the
 * browser. Throws `bad_request`.
 */
export function changePreferences(before: Preferences, form: URLSearchParams): Preferences {
  const theme = form.get('theme') ?? before.theme;
  if (!isTheme(theme)) {
    throw new HubError('bad_request', text`There is no such theme.`, {
      hint: text`The themes are ${themes.join(', ')}.`,
    });
  }
  const language = form.get('language') ?? before.language ?? '';
  if (language !== '' && !isLanguageTag(language)) {
    throw new HubError('bad_request', text`That is not the code of a language.`, {
      hint: text`Codes of languages are like en, de or pt-BR.`,
    });
  }
  return { theme, language: language === '' ? undefined : language };
}

function isTheme(value: string): value is Theme {
  return (themes as readonly string[]).includes(value);
}

function isLanguageTag(value: string): boolean {
  return languageTag.test(value);
}

/** A parameter of the authorization request that an address is or leads on to. */
export function askedByApp(url: string, name: string): string | undefined {
  if (!url.includes(name)) return undefined;
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1));
  const next = query.get('next') ?? '';
  const asked = query.get(name) ?? new URLSearchParams(next.slice(next.indexOf('?') + 1)).get(name);
  return asked?.slice(0, 200);
}

/** The language in which a browser is answered: what was chosen in it, else what an app or the browser asks for. */
export function languageOf(
  languages: Pick<Languages, 'find' | 'negotiate'>,
  headers: Pick<IncomingHttpHeaders, 'cookie' | 'accept-language'>,
  url = '',
): Language {
  const { language } = readPreferences(headers.cookie);
  return (
    (language === undefined ? undefined : languages.find(language)) ??
    languages.negotiate(
      // OpenID Connect Core 1.0 §3.1.2.1: in the order of preference.
      [askedByApp(url, 'ui_locales')?.replaceAll(' ', ','), headers['accept-language']]
        .filter((wish) => wish !== undefined)
        .join(',') || undefined,
    )
  );
}
