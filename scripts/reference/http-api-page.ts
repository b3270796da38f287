import { publicDeclarations } from '../../src/entrances/api/openapi.ts';
import type { OperationDeclaration } from '../../src/operations/operation.ts';
import { cell, code, generatedNote } from './markdown.ts';

const titles: Readonly<Record<string, string>> = {
  hub: 'The hub',
  users: 'Users',
  tokens: 'Tokens',
  sessions: 'Logins of browsers',
  logins: 'Invitations and lock-outs',
  servers: "Users' servers",
  shares: 'Shared servers',
  groups: 'Groups',
  services: 'Services',
  oauth: 'OAuth 2',
};

/** The reference page of the REST API. */
export function httpApiPage(): string {
  const byTag = Map.groupBy(publicDeclarations, ({ tag }) => tag);
  const sections = [...byTag].map(([tag, entries]) => {
    const rows = entries.map(
      ({ method, path, summary, scopes }) =>
        `| ${code(`${method} /hub/api${path}`)} | ${cell(summary)} | ${needs(scopes)} |`,
    );
    const table = ['| operation | what it does | needs |', '|---|---|---|', ...rows];
    return `## ${titles[tag] ?? tag}\n\n${table.join('\n')}\n`;
  });
  return `# HTTP API

${generatedNote}

\`GET /hub/api/openapi.json\` describes every operation with its parameters, bodies and answers (OpenAPI 3.1);
this page is an overview. The API answers on the public address and on \`Hub.hub_bind_url\`; paths are below the
base URL.

A token goes into the header \`Authorization: token <token>\` or \`Authorization: Bearer <token>\`, from a
program also as the password of \`Basic\`, or, where a
header is impossible, into the parameter \`token\` of the URL; more than one of these is an error. Pages of the
hub use the login cookie; their scripts send the CSRF token of the page in \`X-CSRF-Token\`, without which only a
window of its own may read by cookie. Bodies are JSON, those of the OAuth endpoints forms. Errors look the same
everywhere: see [errors](errors.md).

Lists take \`offset\` and \`limit\` (\`Hub.api_page_max_limit\` at most, 200 unless set). With
\`Accept: application/jupyterhub-pagination+json\` a list comes as \`items\` beside \`_pagination\`, 50 at a time
(\`Hub.api_page_default_limit\`) where no limit is given.

Members of a body that mean nothing to an operation are passed over where that does no harm, and refused where a
misspelt one would do something else. What clients of JupyterHub find different:
[its API and this one](../how-to/run-jupyter.md#clients-of-jupyterhubs-api).

Where several scopes are named, any of them will do, and decides which members are shown. See
[scopes](scopes.md).

${sections.join('\n')}
Server metadata (RFC 8414) is at \`/.well-known/oauth-authorization-server\`.
`;
}

function needs(scopes: OperationDeclaration['scopes']): string {
  if (scopes === 'public') return 'nothing';
  return scopes === 'authenticated' ? 'any credentials' : scopes.map(code).join(', ');
}
