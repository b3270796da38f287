/** Whose rows let somebody in, now or once something is shown that they are of; not those that a login is checked against. */
const credentials = [
  'access_tokens',
  'refresh_tokens',
  'grants',
  'authorization_codes',
  'login_sessions',
  'share_codes',
  'invitations',
];

/**
 * What ends every token, login, code, link and grant of a database that no hub uses, of whatever version: those that are
 * counted, and what goes with them.
 */
export function endingStatements(tables: readonly string[]): {
  readonly counted: readonly string[];
  readonly others: readonly string[];
} {
  return {
    counted: [
      ...credentials
        .filter((table) => tables.includes(table))
        .map((table) => `delete from ${table}`),
      // Of no token: a service may have none only where the hub runs it.
      "update runtime_services set token_hash = 'ended ' || name where token_hash is not null",
    ],
    others: [
      'delete from keyv',
      ...(tables.includes('client_logins')
        ? // So that the apps hear of it.
          ['update client_logins set due_at = 0 where due_at is null']
        : []),
    ],
  };
}
