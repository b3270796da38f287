import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import type { Languages } from '../platform/texts/languages.ts';
import { text } from '../platform/texts/text.ts';
import { safeFileName } from '../workloads/servers/safe-file-name.ts';
import type { ServerOutput } from '../workloads/servers/server-output.ts';
import type { ServerStore } from '../workloads/servers/server-store.ts';
import { operation } from './operation.ts';
import { answerOutput, type OutputFollowers, outputAnswers, outputQuery } from './output.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly serverStore: Pick<ServerStore, 'find'>;
  readonly serverOutput: ServerOutput;
  readonly outputFollowers: OutputFollowers;
  readonly languages: Pick<Languages, 'find'>;
}

function outputAt(
  path: '/users/{name}/server' | '/users/{name}/servers/{server}',
  suffix: string,
  which: string,
) {
  return operation({
    id: `getOutputOf${suffix}`,
    method: 'GET',
    path: `${path}/output`,
    tag: 'servers',
    target: 'server',
    summary: `Read or follow the last lines that ${which} wrote`,
    description: 'Of its present run; what it wrote before a failure is in `failure`.',
    // What a server writes may hold anything: it is for those who may open it.
    scopes: ['access:servers'],
    query: outputQuery,
    answers: outputAnswers,
  }).handle(async (request, deps: Deps) => {
    const { name, server = '' } = request.params as Readonly<Record<'name' | 'server', string>>;
    await deps.users.getByName(name);
    const found = await deps.serverStore.find(name, server);
    if (found === undefined) throw new HubError('not_found', text`There is no such server.`);
    return answerOutput(request, deps.serverOutput.of(found.id), {
      followers: deps.outputFollowers,
      languages: deps.languages,
      fileName: `${safeFileName(server === '' ? name : `${name}-${server}`)}.log`,
    });
  });
}

/** What users' servers write. */
export const serverOutputOperations = [
  outputAt('/users/{name}/server', 'DefaultServer', "a user's default server"),
  outputAt('/users/{name}/servers/{server}', 'NamedServer', 'a named server'),
];
