import type { Role } from '../../../identity/rbac/role.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type ChangedMeanwhile, changedMeanwhile } from '../elements/changed-meanwhile.ts';
import { csrfField, hiddenFields, textArea, textField } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, html } from '../html.ts';

export interface AdminRoleFormView {
  readonly layout: FormLayoutProps;
  /** The role that is changed, with its version; undefined for a new one. */
  readonly existing?: { readonly name: string; readonly version: string } | undefined;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  /** Scopes to tick: those that the administrator may give, and those that the role has. */
  readonly choices: readonly {
    readonly scope: string;
    readonly description: Phrase;
    readonly isChosen: boolean;
  }[];
  /** Scopes with a filter, one on each line. */
  readonly filtered?: string | undefined;
  readonly problem?: Phrase | undefined;
  readonly changed?: ChangedMeanwhile | undefined;
}

/**
 * The form that makes a role or changes one: `name` (of a new one), `description`, `scope` for each that is ticked,
 * `filtered`, and `version`.
 */
export function adminRoleFormPage(view: AdminRoleFormView): Html {
  const { layout, existing, name, description, choices, filtered, problem, changed } = view;
  const { urls } = layout;
  const title = existing === undefined ? text`New role` : text`Edit ${existing.name}`;
  const action = existing === undefined ? urls.adminNewRole : urls.adminRole(existing.name, 'edit');
  const cancelUrl = existing === undefined ? urls.adminRoles : urls.adminRole(existing.name);
  return adminLayout(layout, {
    title,
    tab: 'roles',
    body: html`${pageHead(
      title,
      existing === undefined
        ? text`You can only grant permissions you have.`
        : text`Who holds it gains or loses what you change at once.`,
    )}
<form class="fields" method="post" action="${action}">
${csrfField(layout)}
${problem !== undefined && notice('bad', problem)}${changed !== undefined && changedMeanwhile(changed)}
${
  existing === undefined
    ? textField({
        name: 'name',
        label: text`Name`,
        value: name,
        autocomplete: 'off',
        isLiteral: true,
        maxLength: 255,
        help: text`Lower-case letters, digits and - _ ~ . only.`,
      })
    : hiddenFields({ version: existing.version })
}
${textField({ name: 'description', label: text`What it is for`, value: description, isOptional: true, maxLength: 500 })}
<fieldset class="choices"><legend>${text`Permissions of this role`}</legend>
${choices.map(scopeCheck)}</fieldset>
${textArea({ name: 'filtered', label: text`Limited to`, value: filtered, isOptional: true, help: text`Scopes with a filter, one on each line, such as ${html`<code>${'servers!group=staff'}</code>`} or ${html`<code>${'access:services!service=wiki'}</code>`}.` })}
<div class="actions"><button class="button primary">${existing === undefined ? text`Create role` : text`Save`}</button> <a class="button" href="${cancelUrl}">${text`Cancel`}</a></div>
</form>`,
  });
}

/** What a role is now, by the labels of its form. */
export function roleFacts({
  description,
  scopes,
}: Pick<Role, 'description' | 'scopes'>): ChangedMeanwhile['now'] {
  const listed = scopes.map((scope, index) => html`${index > 0 && ', '}<code>${scope}</code>`);
  return [
    { label: text`What it is for`, value: description },
    { label: text`Permissions of this role`, value: listed.length === 0 ? '' : listed },
  ];
}

function scopeCheck(
  { scope, description, isChosen }: AdminRoleFormView['choices'][number],
  index: number,
): Html {
  const id = `field-scope-${index}`;
  return html`<div class="check"><input type="checkbox" id="${id}" name="scope" value="${scope}"${isChosen && html` checked`} aria-describedby="${id}-help"><label for="${id}">${description}</label><p class="help" id="${id}-help"><code>${scope}</code></p></div>`;
}
