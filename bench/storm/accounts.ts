import { pino } from 'pino';
import { createPasswordHasher } from '../../src/identity/authentication/password-hash.ts';
import { createPasswordCredentialStore } from '../../src/identity/users/password-credential-store.ts';
import { createUserStore } from '../../src/identity/users/user-store.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';

/** Of all of them. */
export const password = 'purple elephants dance';

/** Makes users before the hub starts; they share one hash, which says nothing about its cost. */
export async function createAccounts(directory: string, names: readonly string[]): Promise<void> {
  const log = pino({ level: 'silent' });
  await using database = await openDatabase('sqlite:hub.sqlite', { directory, log });
  const users = createUserStore(database);
  const credentials = createPasswordCredentialStore(database);
  const hash = await createPasswordHasher().hash(password);
  for (const name of names) {
    await users.create({ name });
    await credentials.setPasswordHash(name, hash);
  }
}
