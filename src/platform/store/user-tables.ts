import type { Generated } from 'kysely';

export interface UsersTable {
  id: string;
  name: string;
  admin: number;
  /** 1 when an administrator made the account; such accounts may log in without an allow list. */
  invited: number;
  created_at: number;
  last_activity_at: number | null;
  suspended_at: Generated<number | null>;
  /** Name under which the servers run on the machine; null until it is decided. */
  system_account: string | null;
  /** Authenticator for which it was made before its owner came; null: as the configuration says. */
  made_for: string | null;
  /** Where a list that is sorted by default servers has the user; triggers keep it as the row of that server says. */
  server_rank: Generated<number>;
}

/** Volumes that were there before the hub. */
export interface UserVolumesTable {
  user_id: string;
  /** Empty for the default server, and for a volume of all servers of the user. */
  server_name: string;
  /** Which volume of the configuration it takes the place of. */
  volume: string;
  /** What the engine calls it. */
  source: string;
}

/** Who users are beside their name; no row where nothing is known. */
export interface UserInfoTable {
  user_id: string;
  display_name: string | null;
  email: string | null;
  email_verified: number;
  picture_url: string | null;
  /** Authenticator that told it; null where it was typed here. */
  authenticator: string | null;
  /** Display name and e-mail address in lower case, on a line each. */
  search_text: string;
}
