import { type Html, html } from '../html.ts';

/**
 * The display name with the user name, which alone tells users apart: who likes may be called as another. Names in
 * another direction do not turn what stands beside them.
 */
export function userLabel(name: string, displayName: string | undefined): Html {
  return displayName === undefined
    ? html`<b>${name}</b>`
    : html`<b><bdi>${displayName}</bdi></b> (${name})`;
}
