import { focusLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

export interface ServiceUnavailableView {
  readonly layout: LayoutProps;
  readonly serviceName: string;
  readonly displayName?: string | undefined;
  readonly isCrashLooping: boolean;
  readonly retryAfterSeconds: number;
  /** The address asked for; the button asks for it again. */
  readonly url: string;
}

/** The 503 page of a service that is not ready; it tries again by itself. */
export function serviceUnavailablePage(view: ServiceUnavailableView): Html {
  const { layout, isCrashLooping, retryAfterSeconds, url } = view;
  const name = view.displayName ?? view.serviceName;
  return focusLayout(layout, {
    title: `${name} is not ready`,
    scripts: ['retry.js'],
    reloadSeconds: retryAfterSeconds,
    body: html`<div class="panel" data-retry-seconds="${retryAfterSeconds}">
<header class="titles"><h1>${name} is not ready</h1><p class="lead">${
      isCrashLooping
        ? 'It has stopped several times in a row. The hub goes on restarting it; if this lasts, tell your administrator.'
        : 'It is starting or was just restarted. That rarely takes longer than a few seconds.'
    }</p></header>
<progress aria-label="Waiting for ${name}"></progress>
<p class="soft">This page tries again by itself.</p>
<a class="button primary wide" href="${url}">Try now</a>
</div>
<p class="aside"><a href="${layout.urls.home}">Back to home</a></p>`,
  });
}
