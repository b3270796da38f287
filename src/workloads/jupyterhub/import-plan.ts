import { hash } from 'node:crypto';
import { isPasswordHash } from '../../identity/authentication/password-hash.ts';
import type { UserNameRules } from '../../identity/authentication/user-name-rules.ts';
import {
  isImportableHash,
  maxImportedOfPrefix,
} from '../../identity/oauth/tokens/imported-token-store.ts';
import { formatScope, readScope, splitServerValue } from '../../identity/rbac/scope.ts';
import { isShareable, type ScopeCatalogue } from '../../identity/rbac/scope-definitions.ts';
import { roleProblems, scopeProblem } from '../../identity/rbac/validate-roles.ts';
import { validateGroupName } from '../../identity/users/user-name.ts';
import type { GroupConfig, RoleConfig } from '../../platform/config/config.ts';
import { HubError, messageOf } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { OldHub, OldToken, OldUser } from './old-hub.ts';
import type { OldPassword } from './old-passwords.ts';
import {
  type ImportNote,
  type PlannedServer,
  type PlannedVolume,
  planServers,
  planVolumes,
  serverNameLike,
} from './plan-servers.ts';
import { type PlannedService, planServices } from './plan-services.ts';

type HolderKind = 'user' | 'group' | 'service';

export interface PlannedHolder {
  readonly kind: HolderKind;
  readonly name: string;
}

/** What a hub is to have of a JupyterHub, by the names that things have here. */
export interface ImportPlan {
  readonly users: readonly Omit<OldUser, 'id'>[];
  readonly groups: readonly { readonly name: string; readonly properties: string }[];
  readonly members: readonly { readonly group: string; readonly user: string }[];
  readonly roles: OldHub['roles'];
  readonly assignments: readonly { readonly role: string; readonly holder: PlannedHolder }[];
  readonly tokens: readonly (Omit<OldToken, 'owner'> & {
    /** Of the old hash, so that a token is known again when it is taken over twice. */
    readonly id: string;
    readonly owner: PlannedHolder;
  })[];
  /** Those that were added at run time. */
  readonly services: readonly PlannedService[];
  readonly servers: readonly PlannedServer[];
  readonly volumes: readonly PlannedVolume[];
  readonly shares: readonly {
    readonly server: PlannedServer;
    readonly recipient: PlannedHolder;
    readonly scopes: readonly string[];
    readonly createdAt: number | undefined;
  }[];
  readonly passwords: readonly { readonly user: string; readonly hash: string }[];
  readonly secondFactors: readonly { readonly user: string; readonly totpSecret: string }[];
  readonly changed: readonly ImportNote[];
  readonly left: readonly ImportNote[];
}

export interface ImportRules {
  readonly userNames: UserNameRules;
  readonly catalogue: ScopeCatalogue;
  /** What the configuration says is not taken from the database. */
  readonly configured: {
    readonly groups: readonly GroupConfig[];
    readonly roles: readonly RoleConfig[];
    readonly serviceNames: readonly string[];
    /** `name` of each of `KubernetesSpawner.claims`. */
    readonly claims: readonly string[];
  };
}

/** Decides what becomes of everything. Throws `conflict` for users who would be one here. */
export function planImport(
  old: OldHub,
  { userNames, catalogue, configured }: ImportRules,
  oldPasswords: readonly OldPassword[] = [],
): ImportPlan {
  const changed: ImportNote[] = [];
  const left: ImportNote[] = [];
  const users = planUsers(old.users, userNames, { changed, left });
  const passwords = planPasswords(oldPasswords, userNames, left);
  const nameOfUser = new Map([...users].map(([id, { name }]) => [id, name]));
  const servers = planServers(old.servers, nameOfUser, changed);
  const nameOfGroup = new Map<string, string>();
  for (const { id, name } of old.groups) {
    const found = attempt(() => validateGroupName(name));
    if (found.value !== undefined) nameOfGroup.set(id, found.value);
    else left.push({ what: `group ${name}`, why: found.why, todo: 'make it here by another name' });
  }
  const holderOf = ({ kind, id }: { kind: HolderKind; id: string }): PlannedHolder | undefined => {
    const name = { user: nameOfUser, group: nameOfGroup, service: nameOfService }[kind].get(id);
    return name === undefined ? undefined : { kind, name };
  };
  const ofFile = new Map(configured.groups.map(({ name, users }) => [name, new Set(users)]));
  const serverNames = new Map(
    old.servers.flatMap(({ id, name }) => {
      const server = servers.get(id);
      return server === undefined ? [] : [[`${server.userName}/${name}`, server.name]];
    }),
  );
  const scopesHere = createScopeTranslation({ userNames, serverNames, catalogue }, left);
  const services = planServices(old.services, {
    configured: configured.serviceNames,
    scopesHere,
    left,
  });
  const nameOfService = new Map(
    old.services.flatMap(({ id, name }) =>
      services.has(id) || configured.serviceNames.includes(name) ? [[id, name] as const] : [],
    ),
  );

  const roles = old.roles
    .filter(({ name }) => configured.roles.every((role) => role.name !== name))
    .map((role) => ({ ...role, scopes: scopesHere(role.scopes, `role ${role.name}`) }))
    .filter((role) => {
      const [problem] = roleProblems(
        { ...role, scopes: [...role.scopes] },
        { catalogue, serviceNames: [] },
      );
      if (problem === undefined) return true;
      const todo = 'make a role like it on the page Access';
      left.push({ what: `role ${role.name}`, why: String(problem.message), todo });
      return false;
    });

  return {
    users: [...users.values(), ...newcomers()],
    passwords,
    secondFactors: passwords.flatMap(({ user, totpSecret }) =>
      totpSecret === undefined ? [] : [{ user, totpSecret }],
    ),
    groups: old.groups.flatMap(({ id, properties }) => {
      const name = nameOfGroup.get(id);
      return name === undefined || ofFile.has(name) ? [] : [{ name, properties }];
    }),
    members: old.members.flatMap(({ groupId, userId }) => {
      const [group, user] = [nameOfGroup.get(groupId), nameOfUser.get(userId)];
      if (group === undefined || user === undefined) return [];
      return ofFile.get(group)?.has(user) ? [] : [{ group, user }];
    }),
    roles,
    assignments: planAssignments(),
    tokens: planTokens(),
    services: [...services.values()],
    servers: [...servers.values()].filter(({ name }) => name !== ''),
    volumes: planVolumes(old.servers, servers, { claims: configured.claims, left }),
    shares: old.shares.flatMap(({ serverId, recipient, scopes, createdAt }) => {
      const server = servers.get(serverId);
      const holder = holderOf(recipient);
      const names = scopes
        .map((scope) => readScope(scope).scope?.name ?? '')
        .filter((name) => isShareable(name, catalogue));
      if (server === undefined || holder === undefined || names.length === 0) return [];
      return { server, recipient: holder, scopes: [...new Set(names)].sort(), createdAt };
    }),
    changed,
    left: [...left, ...countedNotes(old)],
  };

  /** Who may log in, and never did. */
  function newcomers(): ImportPlan['users'] {
    const known = new Set(nameOfUser.values());
    const never = { isAdmin: false, createdAt: undefined, lastActivityAt: undefined };
    return passwords.flatMap(({ user }) => (known.has(user) ? [] : [{ name: user, ...never }]));
  }

  function planAssignments(): ImportPlan['assignments'] {
    const known = new Set([...roles.map(({ name }) => name), 'admin']);
    const admins = old.services.flatMap(({ id, isAdmin }) =>
      isAdmin ? [{ role: 'admin', holder: { kind: 'service', id } as const }] : [],
    );
    const planned = new Map<string, ImportPlan['assignments'][number]>();
    for (const { role, holder: oldHolder } of [...old.assignments, ...admins]) {
      const holder = holderOf(oldHolder);
      // Every user holds `user`, and who is an administrator is said by the user.
      if (holder === undefined || (role === 'admin' && holder.kind === 'user')) continue;
      if (known.has(role)) planned.set(JSON.stringify([role, holder]), { role, holder });
      const inFile = configured.roles.find(({ name }) => name === role);
      const listed = inFile?.[`${holder.kind}s`] ?? [];
      if (inFile !== undefined && !listed.includes(holder.name)) {
        left.push({
          what: `role ${role} of the ${holder.kind} ${holder.name}`,
          why: 'Hub.load_roles has the role, and decides who holds it',
          todo: `name the ${holder.kind} there`,
        });
      }
    }
    return [...planned.values()];
  }

  function planTokens(): ImportPlan['tokens'] {
    const perPrefix = new Map<string, number>();
    const newestFirst = old.tokens.toSorted(
      (one, other) => (other.lastUsedAt ?? 0) - (one.lastUsedAt ?? 0),
    );
    return newestFirst.flatMap((token) => {
      const owner = holderOf(token.owner);
      if (owner === undefined) return [];
      const count = perPrefix.get(token.prefix) ?? 0;
      const why = !isImportableHash(token.hash)
        ? "its hash is of another kind than JupyterHub's"
        : count >= maxImportedOfPrefix
          ? `${maxImportedOfPrefix} others that were used later begin with the same letters`
          : undefined;
      const what = `token ${JSON.stringify(token.note)} of ${owner.kind} ${owner.name}`;
      if (why !== undefined) {
        left.push({ what, why, todo: 'make a new one' });
        return [];
      }
      perPrefix.set(token.prefix, count + 1);
      return { ...token, id: idOf(token.hash), owner, scopes: scopesHere(token.scopes, what) };
    });
  }
}

interface Notes {
  readonly changed: ImportNote[];
  readonly left: ImportNote[];
}

/** By their old ids. */
function planUsers(
  old: readonly OldUser[],
  rules: UserNameRules,
  { changed, left }: Notes,
): ReadonlyMap<string, Omit<OldUser, 'id'>> {
  const planned = new Map<string, Omit<OldUser, 'id'>>();
  for (const [name, alike] of Map.groupBy(old, (user) => rules.resolve(user.name))) {
    const [first] = alike;
    if (first === undefined) continue;
    if (alike.length > 1) {
      const names = alike.map((user) => JSON.stringify(user.name)).join(', ');
      throw new HubError('conflict', `These users would be one here, ${name}: ${names}.`, {
        hint: 'Delete or rename all but one of them in the JupyterHub, or name them apart in Authenticator.username_map.',
      });
    }
    const problem = rules.problemOf(name);
    if (problem !== undefined) {
      const todo = 'rename the user in the JupyterHub, or in Authenticator.username_map';
      left.push({ what: `user ${first.name}`, why: String(problem), todo });
      continue;
    }
    if (first.name !== name) {
      changed.push({ what: `user ${first.name} → ${name}`, why: 'as the name will be at a login' });
    }
    const { id, ...user } = first;
    planned.set(id, { ...user, name });
  }
  return planned;
}

function planPasswords(old: readonly OldPassword[], rules: UserNameRules, left: ImportNote[]) {
  const taken = new Set<string>();
  return old.flatMap(({ userName, hash: passwordHash, totpSecret, isWaiting }) => {
    const user = rules.resolve(userName);
    const why =
      isWaiting === true
        ? 'no administrator has let this user in'
        : isPasswordHash(passwordHash)
          ? (rules.problemOf(user) ??
            (taken.has(user) ? 'another one is of the same user' : undefined))
          : 'it is hashed in an unknown way';
    taken.add(user);
    if (why === undefined) return [{ user, hash: passwordHash, totpSecret }];
    const todo = `make a link for a password: ${hubCommand('user invite')} ${user}`;
    left.push({ what: `password of ${userName}`, why: String(why), todo });
    return [];
  });
}

/** Writes scopes with the names that users and servers have here, and notes those that there are not. */
function createScopeTranslation(
  {
    userNames,
    serverNames,
    catalogue,
  }: Pick<ImportRules, 'userNames' | 'catalogue'> & {
    /** By the name of the user here and the former name of the server. */
    readonly serverNames: ReadonlyMap<string, string>;
  },
  left: ImportNote[],
) {
  const filterValue = (kind: string, value: string): string => {
    if (kind === 'user') return userNames.resolve(value);
    if (kind !== 'server') return value.normalize('NFC');
    const { userName, serverName } = splitServerValue(value);
    const user = userNames.resolve(userName);
    return `${user}/${serverNames.get(`${user}/${serverName}`) ?? serverNameLike(serverName)}`;
  };
  const translate = (written: string): string => {
    const { scope } = readScope(written);
    if (scope?.filter?.value === undefined) return written;
    const { kind, value } = scope.filter;
    return formatScope({ ...scope, filter: { kind, value: filterValue(kind, value) } });
  };
  return (scopes: readonly string[], what: string): readonly string[] =>
    scopes.map(translate).filter((scope) => {
      const problem = scopeProblem(scope, catalogue);
      if (problem === undefined) return true;
      left.push({
        what: `scope ${scope} of the ${what}`,
        why: String(problem),
        ...(scope.startsWith('custom:') && {
          todo: 'add it to Hub.custom_scopes, and import again with --update',
        }),
      });
      return false;
    });
}

function countedNotes({ orphanTokens, shareCodes }: OldHub): ImportNote[] {
  return [
    ...(orphanTokens === 0
      ? []
      : [{ what: `${orphanTokens} tokens`, why: 'their users or services are gone' }]),
    ...(shareCodes === 0
      ? []
      : [
          {
            what: `${shareCodes} links that share servers`,
            why: 'their codes are not stored in a form that works here',
            todo: 'let the owners make new ones',
          },
        ]),
  ];
}

/** A UUID of version 8 (RFC 9562 §5.8), which no token that is made here has. */
function idOf(storedHash: string): string {
  const hex = hash('sha256', storedHash);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function attempt<Value>(work: () => Value): { readonly value?: Value; readonly why: string } {
  try {
    return { value: work(), why: '' };
  } catch (error) {
    return { why: String(messageOf(error)) };
  }
}
