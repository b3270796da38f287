import { declarations } from '../../src/entrances/api/openapi.ts';
import type { OperationDeclaration } from '../../src/operations/operation.ts';
import { type JupyterHubOperation, jupyterHubOperations } from './jupyterhub-operations.ts';
import { cell, code, generatedNote } from './markdown.ts';

/** The operation here that stands for one of JupyterHub; undefined where there is none. */
export function counterpartOf({
  method,
  path,
}: Pick<JupyterHubOperation, 'method' | 'path'>): OperationDeclaration | undefined {
  return declarations.find((each) => each.method === method && each.path === path);
}

/** The reference page of JupyterHub's operations. */
export function jupyterHubPage(): string {
  const rows = jupyterHubOperations.map((operation) => {
    const { method, path, since, isUnpublished, difference, test } = operation;
    const status = difference === undefined ? 'same' : statusOf(counterpartOf(operation));
    const version = `${since === undefined ? 'all' : `from ${since}`}${isUnpublished === true ? ', unpublished' : ''}`;
    const [file, title] = test;
    return `| ${code(`${method} ${path}`)} | ${version} | ${status} | ${cell(difference ?? '')} | [${file}](../../test/${file}) “${cell(title)}” |`;
  });
  return `# JupyterHub's operations

${generatedNote}

Every operation of JupyterHub's REST API, of its versions 5 and 6, below \`/hub/api\`: the same here, or different, and why.
“Same” means the same paths, scopes, members and statuses; models may have more members. “Unpublished” is what its code
has and its description leaves out. What holds for all of them: [clients of JupyterHub's API](../how-to/run-jupyter.md#clients-of-jupyterhubs-api).
The operations that only this hub has: [HTTP API](http-api.md).

| operation | JupyterHub | here | why | test |
|---|---|---|---|---|
${rows.join('\n')}
`;
}

function statusOf(counterpart: OperationDeclaration | undefined): string {
  if (counterpart === undefined) return 'not there';
  const statuses = Object.keys(counterpart.answers).map(Number);
  return statuses.every((status) => status >= 400) ? 'refused' : 'different';
}
