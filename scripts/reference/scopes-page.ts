import { defaultRoles } from '../../src/identity/rbac/role.ts';
import {
  metascopes,
  type ScopeDefinition,
  scopeDefinitions,
  selfScopes,
} from '../../src/identity/rbac/scope-definitions.ts';
import { cell, code, generatedNote } from './markdown.ts';

/** The reference page of the scopes. */
export function scopesPage(): string {
  const rows = Object.entries(scopeDefinitions)
    .filter(([name]) => !metascopes.has(name))
    .map(([name, definition]) => row(name, definition));
  const metas = [...metascopes].map((name) => {
    const definition = Object.entries(scopeDefinitions).find(([other]) => other === name);
    return `| ${code(name)} | ${cell(definition?.[1].help ?? '')} |`;
  });
  const roles = Object.values(defaultRoles).map(
    ({ name, description, scopes }) =>
      `| ${code(name)} | ${cell(description)} | ${scopes.map(code).join(', ')} |`,
  );
  return `# Scopes and roles

${generatedNote}

A scope says what its holder may do. Roles carry scopes; users, groups and services hold roles
(\`Hub.load_roles\`, or [made while the hub runs](../how-to/manage-roles.md)). A token carries scopes, too, but never does more than its owner may do at the moment it
is used: a lost role is lost in every token at once.

## Filters

A scope holds for everything, unless a filter follows it:

| form | holds for |
|---|---|
| \`read:users\` | all users |
| \`read:users!user=ada\` | the user ada, and what is hers |
| \`read:users!group=staff\` | the members of a group |
| \`servers!server=ada/gpu\` | one server; \`ada/\` is the default one |
| \`access:services!service=wiki\` | one service |
| \`read:users!user\` | the user who holds it |
| \`access:services!service\` | in a token, the service it was issued to |

Names stand there whole: there are no wildcards. A role or service with a filter that no name can match is refused.

Where a caller has a scope, but not for the thing asked about, the API answers 404, as for a thing that does
not exist; without the scope it answers 403.

## Metascopes

These stand for others and take no filter.

| scope | meaning |
|---|---|
${metas.join('\n')}

\`self\` stands for ${selfScopes.map((scope) => code(`${scope}!user`)).join(', ')}.

## Scopes

The pages of the hub call a scope by its words in the second column. It brings along those in the last column,
each with its own.

| scope | in words | allows | brings along |
|---|---|---|---|
${rows.join('\n')}

\`access:users:servers\` is another spelling of \`access:servers\`; \`GET /hub/api/user\` shows both.

## Scopes of your own

\`Hub.custom_scopes\` defines scopes that your services check; their names begin with \`custom:\`. They are
granted by roles like all others.

## Default roles

They are always there; \`Hub.load_roles\` may replace their scopes, but for those of \`admin\`.

| role | what it is for | scopes |
|---|---|---|
${roles.join('\n')}
`;
}

function row(name: string, { description, help, subscopes }: ScopeDefinition): string {
  return `| ${code(name)} | ${cell(String(description))} | ${cell(help)} | ${subscopes.map(code).join(', ')} |`;
}
