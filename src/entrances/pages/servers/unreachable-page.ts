import { text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import { focusLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';
import { type ServerSummary, serverTitle, unreachableHint } from './server-summary.ts';

export interface UnreachableView {
  readonly layout: FormLayoutProps;
  readonly server: Pick<ServerSummary, 'userName' | 'name' | 'displayName'>;
  readonly since: Date;
  readonly mayForget: boolean;
}

/** The page in place of a server that runs on a machine whose hub is away. */
export function unreachablePage({ layout, server, since, mayForget }: UnreachableView): Html {
  const title = text`${serverTitle(server, layout.user?.name)} cannot be reached`;
  const action = layout.urls.stop(server.userName, server.name);
  return focusLayout(layout, {
    title,
    scripts: ['live-state.js'],
    reloadSeconds: 15,
    body: html`<div class="panel" id="unreachable" data-live-seconds="10">
<header class="titles"><h1>${title}</h1><p class="lead">${text`Contact with the machine it runs on was lost ${timeElement(since, layout.now)}.`} ${unreachableHint}</p></header>
${mayForget && actionForm(layout, { action, label: text`Discard server` })}
</div>
<p class="aside"><a href="${layout.urls.home}">${text`Back to home`}</a></p>`,
  });
}
