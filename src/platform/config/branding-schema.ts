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
    'File with the logo in place of the built-in mark: SVG, PNG, JPEG or WebP, at most 1 MiB. One that is at least twice as wide as high also stands for the title.',
  ),
  logo_dark: file.describe('File with the logo for dark mode; the same as logo by default.'),
  favicon: file.describe(
    'File with the icon of the browser tab: SVG, PNG or ICO, at most 1 MiB. It is also the answer at /favicon.ico.',
  ),
  login_message: shortText.describe(
    'Text on the login page, or an object with one for each language: {"en": "…", "de": "…"}. Readers of another language get that of `language`. Line breaks are kept, web addresses become links, markup is shown as it is.',
  ),
  footer_text: shortText.describe(
    'Text at the end of every page, or an object with one for each language.',
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
    .describe('Links at the end of every page, each with `title` and `url`; at most 10.'),
  terms_url: localizedText(linkTarget)
    .optional()
    .describe(
      'Terms of use: linked at the end of every page, and on the login page, which says that users accept them by logging in. An object has one for each language.',
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
      'Origins such as https://avatars.example.org from which pages load pictures of users, as providers tell them; the browsers of readers ask there. Without them no picture is shown.',
    ),
  custom_css: file.describe(
    'Stylesheet that pages load after the built-in one, at most 256 KiB. It is sent from the hub; what it loads from other hosts is blocked by browsers.',
  ),
  templates_dir: file.describe(
    'Folder with HTML for single parts of pages: login.html, login-intro.html, home-intro.html, error-help.html and footer.html; login.de.html and the like for readers of one language.',
  ),
} as const;
