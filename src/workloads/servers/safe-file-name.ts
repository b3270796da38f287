import { hashSecret } from '../../platform/crypto/hash.ts';

/** A user name as one name in the file system that no other user name shares. */
export function safeFileName(userName: string): string {
  // Names that are the same on a file system without case must still have folders of their own.
  const encoded = [...encodeURIComponent(userName)]
    .map((character) => (/[A-Z]/.test(character) ? `^${character.toLowerCase()}` : character))
    .join('');
  const name = /^\.+$/.test(encoded) ? encoded.replaceAll('.', '%2e') : encoded;
  if (name.length <= maxFileNameLength) return name;
  // No short name has an equals sign, so that no user can choose the folder of a long one.
  return `${name.slice(0, 100)}=${hashSecret(userName)}`;
}

const maxFileNameLength = 200;
