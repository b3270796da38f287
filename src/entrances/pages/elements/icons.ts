import type { LoginIcon } from '../../../plugin/host/authenticator.ts';
import { type Html, html, unsafeHtml } from '../html.ts';

const shapes = {
  hub: '<circle cx="12" cy="12" r="8.6"/><g fill="currentColor" stroke="none"><circle cx="12" cy="12" r="3.3"/><circle cx="12" cy="3.4" r="2.5"/><circle cx="4.55" cy="16.3" r="2.5"/><circle cx="19.45" cy="16.3" r="2.5"/></g>',
  check: '<path d="M5 12.5l4.5 4.5L19 7.5"/>',
  caret: '<path d="M6.5 9.5l5.5 5.5 5.5-5.5"/>',
  search: '<circle cx="10.5" cy="10.5" r="6.2"/><path d="M15.2 15.200l5.300 5.300"/>',
  star: '<path d="M12 3.6l2.6 5.3 5.8.8-4.2 4.1 1 5.800-5.200-2.700-5.200 2.700 1-5.800-4.200-4.100 5.800-.8z"/>',
  done: '<circle cx="12" cy="12" r="9"/><path d="M8 12.4l2.8 2.8L16 9.6"/>',
  alert: '<path d="M12 4.2L21 19.5H3z"/><path d="M12 10v4.2M12 16.8v.2"/>',
  refused: '<circle cx="12" cy="12" r="9"/><path d="M12 7.5v5.5M12 16.3v.2"/>',
  github:
    '<circle cx="7" cy="5.5" r="2.2"/><circle cx="7" cy="18.5" r="2.2"/><circle cx="17" cy="8" r="2.2"/><path d="M7 7.7v8.6M17 10.2c0 3.6-10 1.6-10 6"/>',
  gitlab:
    '<circle cx="6.5" cy="5.5" r="2.2"/><circle cx="6.5" cy="18.5" r="2.2"/><circle cx="18" cy="14" r="2.2"/><path d="M6.5 7.7v8.6M6.5 7.7c0 4.2 3.8 6.3 9.3 6.3"/>',
  google: '<path d="M19.3 7.2A8.7 8.7 0 1 0 20.7 12H12.6"/>',
  microsoft: '<path d="M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z"/>',
  keycloak:
    '<path d="M7.2 3.8h9.6L21.6 12l-4.8 8.2H7.2L2.4 12z"/><circle cx="12" cy="10.4" r="1.9"/><path d="M12 12.3v4"/>',
  okta: '<circle cx="12" cy="12" r="7.6" stroke-width="3.8"/>',
  auth0:
    '<path d="M12 3l7.5 2.4v6.1c0 4.2-2.8 7.4-7.5 9.5-4.7-2.1-7.5-5.3-7.5-9.5V5.4z"/><path d="M12 8.2l1.2 2.5 2.7.3-2 1.900.5 2.700-2.400-1.300-2.400 1.300.5-2.700-2-1.900 2.700-.3z"/>',
  generic:
    '<path d="M13.5 4H18.5a1.5 1.5 0 0 1 1.5 1.5v13a1.5 1.5 0 0 1-1.5 1.5H13.5M4 12h10.5M10.700 8l4 4-4 4"/>',
} as const satisfies Record<
  LoginIcon | 'hub' | 'check' | 'star' | 'search' | 'caret' | 'done' | 'alert' | 'refused',
  string
>;

/** Draws one of the hub's own line icons, hidden from screen readers: text always stands beside it. */
export function icon(name: keyof typeof shapes, size = 20): Html {
  return html`<svg width="${size}" height="${size}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${unsafeHtml(shapes[name])}</svg>`;
}
