import type { VersionedGroup } from '../../../operations/groups.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type ChangedMeanwhile, changedMeanwhile } from '../elements/changed-meanwhile.ts';
import { csrfField, hiddenFields, textArea } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { formatNumber } from '../elements/quantity.ts';
import { type Html, html } from '../html.ts';

export interface AdminGroupPropertiesView {
  readonly layout: FormLayoutProps;
  readonly group: Pick<VersionedGroup, 'name' | 'properties' | 'version'>;
  /** What was sent and not taken. */
  readonly typed?: string | undefined;
  readonly problem?: Phrase | undefined;
  readonly changed?: ChangedMeanwhile | undefined;
}

/** The form that changes the properties of a group: `properties`, as JSON, and `version`. */
export function adminGroupPropertiesPage(view: AdminGroupPropertiesView): Html {
  const { layout, group, typed, problem, changed } = view;
  const { urls } = layout;
  const title = text`Properties of ${group.name}`;
  return adminLayout(layout, {
    title,
    tab: 'groups',
    body: html`${pageHead(title, text`The hub keeps them for services and programs, which read them over the API.`)}
<form class="fields" method="post" action="${urls.adminGroup(group.name, 'properties')}">
${csrfField(layout)}${hiddenFields({ version: group.version })}
${changed !== undefined && changedMeanwhile(changed)}
${textArea({
  name: 'properties',
  label: text`Properties`,
  value: typed ?? propertiesAsText(group),
  problem,
  isOptional: true,
  help: text`A JSON object: names and values in braces. An empty field removes all.`,
})}
<div class="actions"><button class="button primary">${text`Save`}</button><a class="button" href="${urls.adminGroup(group.name)}">${text`Cancel`}</a></div>
</form>`,
  });
}

/** What a group is now, for those whose form is of a former version. */
export function groupFacts(
  group: Pick<VersionedGroup, 'properties' | 'memberCount'>,
): ChangedMeanwhile['now'] {
  return [
    { label: text`Members`, value: formatNumber(group.memberCount) },
    { label: text`Properties`, value: html`<code>${JSON.stringify(group.properties)}</code>` },
  ];
}

function propertiesAsText({ properties }: Pick<VersionedGroup, 'properties'>): string {
  return JSON.stringify(properties, undefined, 2);
}
