import { createUserNameRules } from '../../identity/authentication/user-name-rules.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import type { Config } from '../../platform/config/config.ts';
import { closestName } from '../../platform/config/suggestion.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Server } from '../../workloads/servers/server.ts';
import { createServerStore } from '../../workloads/servers/server-store.ts';
import { createServiceOwnerStore } from '../../workloads/services/service-owner-store.ts';
import { createServiceStopStore } from '../../workloads/services/service-stop-store.ts';

/** Something the hub runs. */
export type Program =
  | { readonly kind: 'service'; readonly name: string }
  | { readonly kind: 'server'; readonly server: Server };

export type ProgramKind = Program['kind'];

/**
 * Finds what is meant by the name of a service, of a user or `user/server`. Throws `not_found` with the name that
 * is closest, and `bad_request` for one that both a service and a user's server have.
 */
export async function findProgram(
  database: HubDatabase,
  config: Pick<Config, 'Hub' | 'Authenticator'>,
  { name, kind }: { readonly name: string; readonly kind: ProgramKind | undefined },
): Promise<Program> {
  const services = await listManagedServices(database, config);
  const isService = kind !== 'server' && services.includes(name);
  const [userPart = '', ...rest] = name.split('/');
  const serverName = rest.join('/');
  const userName = createUserNameRules(config.Authenticator).resolve(userPart);
  const servers = kind === 'service' ? [] : await createServerStore(database).listOfUser(userName);
  const server = servers.find((each) => each.name === serverName);
  if (isService && server !== undefined) {
    throw new HubError('bad_request', `There is both a service and a server "${name}".`, {
      hint: `${hubCommand(`logs ${name} --service`)}, or ${hubCommand(`logs ${name} --server`)}`,
    });
  }
  if (isService) return { kind: 'service', name };
  if (server !== undefined) return { kind: 'server', server };

  if (kind !== 'server' && config.Hub.services.some((service) => service.name === name)) {
    throw new HubError(
      'bad_request',
      `The service "${name}" is external: the hub does not run it.`,
      {
        hint: 'What it writes is where it runs.',
      },
    );
  }
  if (servers.length > 0) {
    const names = servers.map((each) => fullName(each)).join(', ');
    throw new HubError('not_found', `There is no server "${name}".`, {
      hint: `The servers of ${userName}: ${names}`,
    });
  }
  if (kind !== 'service' && (await createUserStore(database).findByName(userName)) !== undefined) {
    throw new HubError('not_found', `The user ${userName} has no server.`);
  }
  const active = kind === 'service' ? [] : await createServerStore(database).listActive();
  const names = [...(kind === 'server' ? [] : services), ...active.map(fullName)];
  const closest = closestName(name, names);
  const what = kind === undefined ? 'service, user or server' : kind;
  throw new HubError('not_found', `There is no ${what} "${name}".`, {
    hint: closest === undefined ? hintOf(services) : `Did you mean ${closest}?`,
  });
}

/** The services the hub runs, in order: of the configuration, and those added while it runs that were started. */
export function namesOfManaged(
  { Hub }: Pick<Config, 'Hub'>,
  recorded: readonly { readonly name: string }[],
): readonly string[] {
  const configured = Hub.services.flatMap(({ name, command }) =>
    command === undefined ? [] : [name],
  );
  return [...new Set([...configured, ...recorded.map(({ name }) => name)])].toSorted();
}

export async function listManagedServices(
  database: HubDatabase,
  config: Pick<Config, 'Hub'>,
): Promise<readonly string[]> {
  const [owners, stops] = await Promise.all([
    createServiceOwnerStore(database, '').list(),
    createServiceStopStore(database).list(),
  ]);
  return namesOfManaged(config, [...owners, ...stops]);
}

/** As it is given on the command line. */
export function fullName({ userName, name }: Pick<Server, 'userName' | 'name'>): string {
  return name === '' ? userName : `${userName}/${name}`;
}

function hintOf(services: readonly string[]): string {
  const shown = services.slice(0, 20).join(', ');
  const list =
    services.length === 0 ? '' : `Services: ${shown}${services.length > 20 ? ', …' : ''}. `;
  return `${list}Users: ${hubCommand('user list')}`;
}
