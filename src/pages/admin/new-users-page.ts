import { checkBox, csrfField, textArea } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { copyableText } from '../elements/secret.ts';
import { duration } from '../elements/time.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

export interface NewUsersView {
  readonly layout: FormLayoutProps;
  readonly typedNames?: string | undefined;
  readonly problem?: string | undefined;
  /** Whether accounts have a password here, so that an invitation link makes sense. */
  readonly canInvite: boolean;
}

/** The form that adds users: `names`, `admin`, `invite`. */
export function newUsersPage({ layout, typedNames, problem, canInvite }: NewUsersView): Html {
  return adminLayout(layout, {
    title: 'Add users',
    tab: 'users',
    body: html`${pageHead('Add users')}
<form class="fields" method="post" action="${layout.urls.adminNewUsers}">
${csrfField(layout)}
${textArea({ name: 'names', label: 'User names', value: typedNames, problem, help: 'One on each line.' })}
${canInvite && checkBox({ name: 'invite', label: 'Make invitation links', isChecked: true, help: 'Each link lets one person choose a password, once.' })}
${checkBox({ name: 'admin', label: 'Administrators', help: 'They may do everything on this hub, also for other users.' })}
<div class="actions"><button class="button primary">Add users</button><a class="button" href="${layout.urls.admin}">Cancel</a></div>
</form>`,
  });
}

export interface InvitationLinksView {
  readonly layout: FormLayoutProps;
  readonly purpose: 'invitation' | 'reset';
  readonly links: readonly { readonly userName: string; readonly url: string }[];
  readonly lifetimeSeconds: number;
}

/** Invitation or password-reset links, shown this one time. */
export function invitationLinksPage({
  layout,
  purpose,
  links,
  lifetimeSeconds,
}: InvitationLinksView): Html {
  const isReset = purpose === 'reset';
  const title = isReset
    ? 'Password-reset link'
    : links.length === 1
      ? 'Invitation link'
      : 'Invitation links';
  return adminLayout(layout, {
    title,
    tab: 'users',
    scripts: ['copy-button.js'],
    body: html`${pageHead(title, `${links.length === 1 ? 'Send it' : 'Send each'} to the person it is for, and to no one else. It works once, for ${duration(lifetimeSeconds)}, and is not shown again.`)}
<div class="stack-loose">${links.map(
      ({ userName, url }) =>
        html`<section class="panel once stack"><h2>${userName}</h2>${copyableText(url, `Link for ${userName}`)}</section>`,
    )}
<p><a class="button primary" href="${layout.urls.admin}">Done</a></p></div>`,
  });
}
