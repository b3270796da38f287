import { checkBox, csrfField, hiddenFields, selectField, textField } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { copyableText } from '../elements/secret.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

/** What the form of a service says. */
export interface ServiceForm {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly access: string;
  readonly isDisplayed: boolean;
}

export interface AdminServiceFormView {
  readonly layout: FormLayoutProps;
  /** Version of the service that is changed; undefined for a new one. */
  readonly version?: string | undefined;
  readonly form: ServiceForm;
  readonly problem?: string | undefined;
}

export const accessChoices = [
  { value: 'gateway', label: 'Checked by the gateway' },
  { value: 'service', label: 'Checked by the service' },
  { value: 'public', label: 'Open to everyone' },
] as const;

/**
 * The form that adds an external service or changes one: `name` (of a new one), `title`, `url`, `access`, `display`,
 * and `version`.
 */
export function adminServiceFormPage({
  layout,
  version,
  form,
  problem,
}: AdminServiceFormView): Html {
  const { urls } = layout;
  const isNew = version === undefined;
  return adminLayout(layout, {
    title: isNew ? 'Add service' : `Edit ${form.name}`,
    tab: 'services',
    body: html`${pageHead(
      isNew ? 'Add service' : `Edit ${form.name}`,
      isNew
        ? 'For one that runs already. Visitors find it below /services/, under its name.'
        : 'Visitors notice the change at once.',
    )}
<form class="fields" method="post" action="${isNew ? urls.adminNewService : urls.adminService(form.name, 'edit')}">
${csrfField(layout)}
${problem !== undefined && notice('bad', problem)}
${
  isNew
    ? textField({
        name: 'name',
        label: 'Name',
        value: form.name,
        autocomplete: 'off',
        isLiteral: true,
        maxLength: 100,
        help: 'Letters, digits and . _ ~ - only.',
      })
    : hiddenFields({ version })
}
${textField({ name: 'title', label: 'Title', value: form.title, isOptional: true, maxLength: 100, help: 'What users read in place of the name.' })}
${textField({ name: 'url', label: 'Address', value: form.url, isOptional: true, isLiteral: true, placeholder: 'http://127.0.0.1:9000', help: 'Where its web server listens. Without one it only holds a token for the API.' })}
${selectField({ name: 'access', label: 'Visitors', choices: accessChoices, value: form.access })}
${checkBox({ name: 'display', label: 'Show it to users', isChecked: form.isDisplayed })}
<div class="actions"><button class="button primary">${isNew ? 'Add service' : 'Save'}</button> <a class="button" href="${urls.adminServices}">Cancel</a></div>
</form>`,
  });
}

/** What is shown once of a new service: its token. */
export function newServicePage({
  layout,
  name,
  token,
}: {
  readonly layout: FormLayoutProps;
  readonly name: string;
  readonly token: string;
}): Html {
  return adminLayout(layout, {
    title: name,
    tab: 'services',
    scripts: ['copy-button.js'],
    body: html`${pageHead(`${name} is added`, 'Give the service its token, for the API and as secret of its OAuth client. It is shown this once.')}
${copyableText(token, 'Token')}
<p><a class="button primary" href="${layout.urls.adminServices}">Done</a></p>`,
  });
}
