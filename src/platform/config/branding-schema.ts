import { z } from 'zod';
import { localizedText } from './language-schema.ts';

/** Where a link of the operator may lead: a path of this site, or another site; never a script. */
const linkTarget = z
  .string()
  .max(2_000)
  .refine(
    isLinkTarget,
    'is no link: use an http:// or https:// URL, a mailto: address or a path such as /terms',
  );

/** Whether a link may lead there: a path of this site, http, https or mailto. */
export function isLinkTarget(text: string): boolean {
  if (/^\/(?![/\\])/.test(text)) return URL.canParse(text, 'https://hub.invalid/');
  const url = URL.parse(text);
  return url !== null && ['http:', 'https:', 'mailto:'].includes(url.protocol);
}

const file = z.string().min(1).optional();
const shortText = localizedText(z.string().min(1).max(2_000)).optional();

/** The settings of `Hub` for a branding, beside the title. */
export const brandingSettings = {
  logo: file.describe(
    'Logo file: SVG, PNG, JPEG or WebP, at most 1 MiB. One at least twice as wide as it is high also replaces the title.',
  ),
  logo_dark: file.describe('Logo file for dark mode; logo by default.'),
  favicon: file.describe(
    'Icon file for the browser tab: SVG, PNG or ICO, at most 1 MiB. Also served at /favicon.ico.',
  ),
  login_message: shortText.describe(
    'Text on the login page, or an object with one for each language: {"en": "…", "de": "…"}. Readers of another language get that of `language`. Line breaks are kept, web addresses become links, markup is shown as it is.',
  ),
  footer_text: shortText.describe(
    'Text in the footer of every page, or an object with one per language.',
  ),
  footer_links: z
    .array(
      z.strictObject({
        title: localizedText(z.string().min(1).max(100)).describe(
          'Its text, or an object with one for each language.',
        ),
        url: localizedText(linkTarget).describe(
          'An http:// or https:// URL, a mailto: address or a path, or an object with one for each language.',
        ),
      }),
    )
    .max(10)
    .default([])
    .describe('Links in the footer of every page, each with `title` and `url`; at most 10.'),
  terms_url: localizedText(linkTarget)
    .optional()
    .describe(
      'Terms of use: linked in the footer and on the login page, which says that logging in accepts them. A URL, or an object with one per language.',
    ),
  picture_origins: z
    .array(
      z.string().refine((text) => {
        const url = URL.parse(text);
        return url?.protocol === 'https:' && [url.origin, `${url.origin}/`].includes(text);
      }, 'is not an https:// origin, such as https://avatars.example.org: no path or query'),
    )
    .max(20)
    .default([])
    .describe(
      "Origins, such as https://avatars.example.org, from which pages load the profile pictures that providers name; readers' browsers connect to them. Without any, no pictures are shown.",
    ),
  custom_css: file.describe(
    'Stylesheet loaded after the built-in one, at most 256 KiB. The hub serves it; browsers block whatever it loads from other hosts.',
  ),
  templates_dir: file.describe(
    'Folder with HTML for parts of pages: login.html, login-intro.html, home-intro.html, error-help.html and footer.html; login.de.html and so on for one language.',
  ),
} as const;
