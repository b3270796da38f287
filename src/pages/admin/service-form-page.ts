import type { Phrase } from '../../texts/text.ts';
import {
  checkBox,
  csrfField,
  hiddenFields,
  selectField,
  textArea,
  textField,
} from '../elements/form.ts';
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
}

export const accessChoices = [
  { value: 'gateway', label: 'Checked by the gateway' },
  { value: 'service', label: 'Checked by the service' },
  { value: 'public', label: 'Open to everyone' },
] as const;

/**
 * The form that adds a service or changes one: `name` (of a new one), `title`, `url`, `access`, `display`, and
 * `version`; of one that the hub runs also `command`, `environment`, `clear_environment`, `cwd` and `user`.
 */
export function adminServiceFormPage({
  layout,
  version,
  form,
  problem,
}: AdminServiceFormView): Html {
  const { urls } = layout;
  const isNew = version === undefined;
  const isManaged = form.launch !== undefined && !isNew;
  const back = isNew ? urls.adminServices : urls.adminService(form.name);
  return adminLayout(layout, {
    title: isNew ? 'Add service' : `Edit ${form.name}`,
    tab: 'services',
    body: html`${pageHead(
      isNew ? 'Add service' : `Edit ${form.name}`,
      isNew
        ? form.launch === undefined
          ? 'For one that runs already. Visitors find it below /services/, under its name.'
          : 'One that runs already, or that the hub runs. Visitors find it below /services/, under its name.'
        : isManaged
          ? 'It is restarted if what it runs with changes.'
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
${form.launch !== undefined && launchFields(form.launch, isNew)}
<div class="actions"><button class="button primary">${isNew ? 'Add service' : 'Save'}</button> <a class="button" href="${back}">Cancel</a></div>
</form>`,
  });
}

function launchFields(launch: LaunchForm, isNew: boolean): Html {
  const keeps = 'Those it has stay while this is empty.';
  return html`<fieldset class="group"><legend class="group-title">Run by the hub</legend>
${textField({ name: 'command', label: 'Command', value: launch.command, isOptional: isNew, isLiteral: true, maxLength: 4_000, placeholder: 'python3 -m gallery --port 9000', help: html`The hub starts it, and again whenever it ends. Words with spaces stand in quotes.${isNew && ' Without a command the service is one that runs elsewhere.'}` })}
${textArea({ name: 'environment', label: 'Environment', value: launch.environment, isOptional: true, placeholder: 'NAME=value', help: `A variable on each line; encrypted in the database and not shown again. ${isNew ? '' : keeps}` })}
${!isNew && checkBox({ name: 'clear_environment', label: 'Remove the variables it has', isChecked: launch.isEnvironmentCleared })}
${textField({ name: 'cwd', label: 'Folder', value: launch.cwd, isOptional: true, isLiteral: true, maxLength: 1_000, help: 'In which it is started; that of the configuration file without one.' })}
${textField({ name: 'user', label: 'Account', value: launch.user, isOptional: true, isLiteral: true, autocomplete: 'off', maxLength: 100, help: 'Of this machine, to run under; needs a hub that runs as root.' })}
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
    body: html`${pageHead(`${name} is added`, 'Give the service its token, for the API and as secret of its OAuth client. It is shown this once.')}
${copyableText(token, 'Token')}
<p><a class="button primary" href="${layout.urls.adminService(name)}">Done</a></p>`,
  });
}
