import type { CurrentBranding, CustomFile } from '../../src/platform/branding/branding.ts';

/** A picture of one pixel. */
export const pixelPng = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);

/** A logo as SVG, with a script that must never run. */
export function sampleLogo({
  width,
  height,
  colour = '#2457d6',
}: {
  readonly width: number;
  readonly height: number;
  readonly colour?: string;
}): string {
  return `<?xml version="1.0"?>
<!-- Made by hand. -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}"><script>document.documentElement.setAttribute('data-ran', 'yes')</script><rect width="${width}" height="${height}" rx="${height / 6}" fill="${colour}"/></svg>
`;
}

const digest = '0123456789ab';

/** The files of `sampleBranding`. */
export const sampleBrandingFiles: readonly CustomFile[] = [
  {
    name: `own-logo.${digest}.svg`,
    body: Buffer.from(sampleLogo({ width: 240, height: 60 })),
    contentType: 'image/svg+xml',
  },
  {
    name: `own-logo-dark.${digest}.svg`,
    body: Buffer.from(sampleLogo({ width: 240, height: 60, colour: '#9db8f5' })),
    contentType: 'image/svg+xml',
  },
  {
    name: `own-style.${digest}.css`,
    body: Buffer.from('.own-part { font-style: italic; }'),
    contentType: 'text/css; charset=utf-8',
  },
];

/** All that an operator may give pages, with values from outside in its templates. */
export function sampleBranding(text: (plausible: string) => string): CurrentBranding {
  return {
    current: {
      title: text('Hub'),
      logo: {
        file: `own-logo.${digest}.svg`,
        darkFile: `own-logo-dark.${digest}.svg`,
        width: 240,
        height: 60,
      },
      favicon: `own-logo.${digest}.svg`,
      stylesheet: `own-style.${digest}.css`,
      loginMessage: text(
        'Use the name of your university account.\nSee https://help.example.org/.',
      ),
      footerText: {
        en: text('Computing centre of Example University'),
        de: text('Rechenzentrum der Beispieluniversität'),
      },
      footerLinks: [
        {
          title: { en: text('Imprint'), de: text('Impressum') },
          url: { en: text('https://example.org/imprint'), de: text('/services/impressum/') },
        },
        { title: text('Help'), url: text('mailto:help@example.org') },
      ],
      termsUrl: text('/services/terms/'),
      templatesIn: { de: { 'login-intro': ['<p>Willkommen</p>'] } },
      templates: {
        'login-intro': ['<p>', { name: 'hub_title', isInAddress: false }, '</p>'],
        'home-intro': [
          '<h2>',
          { name: 'user_display_name', isInAddress: false },
          '</h2><ul><li><a href="',
          { name: 'home_url', isInAddress: false },
          '">',
          { name: 'hub_title', isInAddress: false },
          '</a></li></ul>',
        ],
        'error-help': [
          '<p><a href="mailto:help@example.org?subject=',
          { name: 'request_id', isInAddress: true },
          '" title="',
          { name: 'user_name', isInAddress: false },
          '">',
          { name: 'error_status', isInAddress: false },
          '</a></p>',
        ],
      },
    },
  };
}
