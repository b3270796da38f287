/** A named bundle of scopes. */
export interface Role {
  readonly name: string;
  readonly description: string;
  /** As written, before expansion: may hold metascopes and self references. */
  readonly scopes: readonly string[];
  /** `default`, `config`, `api`, or the name of the authenticator that made it. */
  readonly origin: string;
}

export type RoleSubjectKind = 'user' | 'group' | 'service';

/** Who holds a role. */
export interface RoleAssignment {
  readonly roleName: string;
  readonly subjectKind: RoleSubjectKind;
  readonly subjectName: string;
  /** Who gave it: `config`, `api`, or an authenticator's name. */
  readonly origin: string;
}

/** Everything that decides which roles are held. */
export type RoleHolder =
  | {
      readonly kind: 'user';
      readonly name: string;
      readonly isAdmin: boolean;
      readonly groupNames: readonly string[];
    }
  | { readonly kind: 'service'; readonly name: string; readonly isAdmin: boolean }
  | { readonly kind: 'group'; readonly name: string };

/** Names the roles held without an assignment: `user` by every user, `admin` by administrators. */
export function implicitRoleNames(holder: RoleHolder): readonly string[] {
  if (holder.kind === 'group') return [];
  const admin = holder.isAdmin ? ['admin'] : [];
  return holder.kind === 'user' ? ['user', ...admin] : admin;
}
