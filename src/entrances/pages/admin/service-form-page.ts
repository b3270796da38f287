import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type ChangedMeanwhile, changedMeanwhile } from '../elements/changed-meanwhile.ts';
import { accessLabels, codeWord } from '../elements/code-labels.ts';
import {
  checkBox,
  csrfField,
  hiddenFields,
  selectField,
  textArea,
  textField,
} from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { copyableText } from '../elements/secret.ts';
import { type Html, html } from '../html.ts';
import { type HeadersForm, headerFacts, headerFields } from './service-headers.ts';
import { type LimitsForm, limitFacts, limitFields } from './service-limits.ts';

/** What the form of a service says. */
export interface ServiceForm {
  readonly name: string;
  readonly title: string;
  readonly url: string;
  readonly access: string;
  readonly isDisplayed: boolean;
  /** Where logins lead, one on each line. */
  readonly redirectUris: string;
  readonly limits: LimitsForm;
  readonly headers: HeadersForm;
  /** How the hub runs it, of a managed service; undefined where that cannot be said here. */
  readonly launch: LaunchForm | undefined;
}

/** What the form of a managed service says more. */
export interface LaunchForm {
  /** Words as in a shell; empty for an external service. */
  readonly command: string;
  /** A `NAME=value` a line. */
  readonly environment: string;
  /** Whether the variables it has go. */
  readonly isEnvironmentCleared: boolean;
  readonly cwd: string;
  readonly user: string;
}

export interface AdminServiceFormView {
  readonly layout: FormLayoutProps;
  /** Version of the service that is changed; undefined for a new one. */
  readonly version?: string | undefined;
  readonly form: ServiceForm;
  readonly problem?: Phrase | undefined;
  readonly changed?: ChangedMeanwhile | undefined;
}

const accessChoices = Object.entries(accessLabels).map(([value, label]) => ({ value, label }));

/**
 * The form that adds a service or changes one: `name` (of a new one), `title`, `url`, `access`, `display`,
 * `oauth_redirect_uris`, `limits.…`, `headers.…` and `version`; of one that the hub runs also `command`, `environment`, `clear_environment`, `cwd` and `user`.
 */
export function adminServiceFormPage({
  layout,
  version,
  form,
  problem,
  changed,
}: AdminServiceFormView): Html {
  const { urls } = layout;
  const isNew = version === undefined;
  const isManaged = form.launch !== undefined && !isNew;
  const back = isNew ? urls.adminServices : urls.adminService(form.name);
  return adminLayout(layout, {
    title: isNew ? text`Add service` : text`Edit ${form.name}`,
    tab: 'services',
    body: html`${pageHead(
      isNew ? text`Add service` : text`Edit ${form.name}`,
      isNew
        ? form.launch === undefined
          ? text`For one that runs already. Visitors find it below /services/, under its name.`
          : text`One that runs already, or that the hub runs. Visitors find it below /services/, under its name.`
        : isManaged
          ? text`It is restarted if what it runs with changes.`
          : text`Visitors notice the change at once.`,
    )}
<form class="fields" method="post" action="${isNew ? urls.adminNewService : urls.adminService(form.name, 'edit')}">
${csrfField(layout)}
${problem !== undefined && notice('bad', problem)}${changed !== undefined && changedMeanwhile(changed)}
${
  isNew
    ? textField({
        name: 'name',
        label: text`Name`,
        value: form.name,
        autocomplete: 'off',
        isLiteral: true,
        maxLength: 100,
        help: text`Letters, digits and . _ ~ - only.`,
      })
    : hiddenFields({ version })
}
${textField({ name: 'title', label: text`Title`, value: form.title, isOptional: true, maxLength: 100, help: text`What users read in place of the name.` })}
${textField({ name: 'url', label: text`Address`, value: form.url, isOptional: true, isLiteral: true, placeholder: 'http://127.0.0.1:9000', help: text`Where its web server listens. Without one it only holds a token for the API.` })}
${selectField({ name: 'access', label: text`Visitors`, choices: accessChoices, value: form.access })}
${checkBox({ name: 'display', label: text`Show it to users`, isChecked: form.isDisplayed })}
${textArea({ name: 'oauth_redirect_uris', label: text`Addresses after a login`, value: form.redirectUris, isOptional: true, placeholder: 'https://app.example.org/callback', help: text`Of an app that logs people in by itself (OAuth, OpenID Connect): where it wants them back, one on each line.` })}
${form.launch !== undefined && launchFields(form.launch, isNew)}
${limitFields(form.limits)}
${headerFields(form.headers)}
<div class="actions"><button class="button primary">${isNew ? text`Add service` : text`Save`}</button> <a class="button" href="${back}">${text`Cancel`}</a></div>
</form>`,
  });
}

/** What a service is now, by the labels of its form. */
export function serviceFacts(form: ServiceForm): ChangedMeanwhile['now'] {
  const { title, url, access, isDisplayed, redirectUris, limits, headers, launch } = form;
  return [
    { label: text`Title`, value: title },
    { label: text`Address`, value: url },
    {
      label: text`Visitors`,
      value: codeWord('access', access),
    },
    { label: text`Show it to users`, value: isDisplayed ? text`Yes` : text`No` },
    { label: text`Addresses after a login`, value: redirectUris },
    ...limitFacts(limits),
    ...headerFacts(headers),
    ...(launch === undefined
      ? []
      : [
          { label: text`Command`, value: launch.command },
          { label: text`Folder`, value: launch.cwd },
          { label: text`Account`, value: launch.user },
        ]),
  ];
}

function launchFields(launch: LaunchForm, isNew: boolean): Html {
  return html`<fieldset class="group"><legend class="group-title">${text`Run by the hub`}</legend>
${textField({ name: 'command', label: text`Command`, value: launch.command, isOptional: isNew, isLiteral: true, maxLength: 4_000, placeholder: 'python3 -m gallery --port 9000', help: isNew ? text`The hub starts it, and again whenever it ends. Words with spaces stand in quotes. Without a command the service is one that runs elsewhere.` : text`The hub starts it, and again whenever it ends. Words with spaces stand in quotes.` })}
${textArea({ name: 'environment', label: text`Environment`, value: launch.environment, isOptional: true, placeholder: 'NAME=value', help: isNew ? text`A variable on each line; encrypted in the database and not shown again.` : text`A variable on each line; encrypted in the database and not shown again. Those it has stay while this is empty.` })}
${!isNew && checkBox({ name: 'clear_environment', label: text`Remove the variables it has`, isChecked: launch.isEnvironmentCleared })}
${textField({ name: 'cwd', label: text`Folder`, value: launch.cwd, isOptional: true, isLiteral: true, maxLength: 1_000, help: text`In which it is started; that of the configuration file without one.` })}
${textField({ name: 'user', label: text`Account`, value: launch.user, isOptional: true, isLiteral: true, autocomplete: 'off', maxLength: 100, help: text`Of this machine, to run under; needs a hub that may switch accounts.` })}
</fieldset>`;
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
    body: html`${pageHead(text`${name} is added`, text`Give the service its token, for the API and as secret of its OAuth client. It is shown this once.`)}
${copyableText(token, text`Token`)}
<p><a class="button primary" href="${layout.urls.adminService(name)}">${text`Done`}</a></p>`,
  });
}
