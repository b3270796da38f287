import { HubError } from '../../platform/errors.ts';
import { joined, type Phrase, text } from '../../platform/texts/text.ts';
import type { Caller } from '../rbac/access-check.ts';
import {
  type AccessBundle,
  type AccessKind,
  type AccessPlace,
  accessBundles,
  describeAccess,
  type PlaceKind,
  type Role,
  scopesAt,
} from '../rbac/role.ts';
import { type RoleMembers, runtimeOrigin } from '../rbac/role-change-store.ts';
import type { RoleStore } from '../rbac/role-store.ts';
import { splitServerValue } from '../rbac/scope.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { GroupStore } from '../users/group-store.ts';
import type { UserStore } from '../users/user-store.ts';
import type { RoleAdministration } from './role-administration.ts';

/** What is given, and where. */
export interface WantedAccess {
  readonly kind: AccessKind;
  /** Of `custom`. */
  readonly scopes: readonly string[];
  readonly place: { readonly kind: PlaceKind; readonly name: string };
}

export interface GiveAccessDeps {
  readonly roles: Pick<RoleStore, 'list'>;
  readonly roleAdministration: Pick<RoleAdministration, 'create' | 'assign' | 'delete'>;
  readonly catalogue: ScopeCatalogue;
  readonly groups: Pick<GroupStore, 'getByName'>;
  readonly users: Pick<UserStore, 'getByName'>;
  readonly hasService: (name: string) => boolean;
}

/**
 * Gives a bundle of rights, or chosen ones, by a role of exactly these: the one that was made for it before, or a new
 * one. Throws `bad_request` for a place that does not exist or does not suit, and what `RoleAdministration` throws;
 * then nothing is given.
 */
export async function giveAccess(
  caller: Caller,
  { kind, scopes: chosen, place: asked }: WantedAccess,
  members: RoleMembers,
  deps: GiveAccessDeps,
): Promise<Role> {
  const { roleAdministration: administration, catalogue } = deps;
  const bundle: AccessBundle | undefined = kind === 'custom' ? undefined : accessBundles[kind];
  if (bundle?.places.includes(asked.kind) === false) throw unsuitable(bundle);
  if (bundle === undefined && chosen.length === 0)
    throw refusal('scopes', text`Choose what is given, or name at least one scope.`);
  const place = await placeOf(asked, deps);
  const scopes = [...new Set(scopesAt(place, bundle?.scopes ?? chosen, catalogue))];

  const base = nameFor(kind, place);
  const all = await deps.roles.list();
  const made = all.find(
    (role) =>
      role.origin === runtimeOrigin &&
      role.name.startsWith(base) &&
      new Set(role.scopes).symmetricDifference(new Set(scopes)).size === 0,
  );
  const taken = new Set(all.map(({ name }) => name));
  let name = base;
  for (let count = 2; taken.has(name); count++) name = `${base}-${count}`;
  const description = String(describeAccess(kind, place));
  const role = made ?? (await administration.create(caller, { name, description, scopes }));
  try {
    await administration.assign(caller, role, members);
  } catch (error) {
    if (made === undefined) await administration.delete(caller, role);
    throw error;
  }
  return role;
}

function unsuitable({ title, places }: AccessBundle): HubError {
  const message = places.includes('all')
    ? text`“${title}” cannot be limited in this way.`
    : text`“${title}” is for one server.`;
  const hints = {
    group: text`Choose a group or everywhere.`,
    service: text`Choose a service or everywhere.`,
    server: text`Choose a server.`,
    all: text`Choose everywhere.`,
  } as const;
  const hint = hints[places[0] ?? 'all'];
  return new HubError('bad_request', message, {
    hint,
    field: { name: 'where', problem: joined([message, hint]) },
  });
}

/** What is wrong with a field of the form; elsewhere the sentence alone. */
function refusal(name: string, problem: Phrase): HubError {
  return new HubError('bad_request', problem, { field: { name, problem } });
}

/** Throws `bad_request` for one that does not exist: whoever made it later would be under this power. */
async function placeOf(
  { kind, name: typed }: WantedAccess['place'],
  { groups, users, hasService }: GiveAccessDeps,
): Promise<AccessPlace> {
  if (kind === 'all') return undefined;
  const name = typed.trim().normalize('NFC');
  if (name === '') throw refusal('place', text`Name the group, service or server.`);
  try {
    if (kind === 'group') return { kind, value: (await groups.getByName(name)).name };
    if (kind === 'server') {
      const { userName, serverName } = splitServerValue(name.includes('/') ? name : `${name}/`);
      return { kind, value: `${(await users.getByName(userName)).name}/${serverName}` };
    }
    if (hasService(name)) return { kind, value: name };
    throw refusal('place', text`There is no such service: ${JSON.stringify(name)}.`);
  } catch (error) {
    if (!(error instanceof HubError) || error.code !== 'not_found') throw error;
    throw refusal('place', error.shown.message);
  }
}

function nameFor(kind: AccessKind, place: AccessPlace): string {
  const plain = (place?.value ?? '')
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 80);
  return plain === '' ? kind : `${kind}.${plain}`.replace(/-$/, '');
}
