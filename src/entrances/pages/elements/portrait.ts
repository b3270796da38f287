import { type Html, html } from '../html.ts';

/** The picture of a user; those who serve it do not learn on which page. Its user's name stands beside it. */
export function portrait(url: string | undefined): Html | false {
  return (
    url !== undefined &&
    html`<img class="portrait" src="${url}" alt="" width="64" height="64" loading="lazy" referrerpolicy="no-referrer">`
  );
}
