import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { HubError } from '../../platform/errors.ts';
import { joined, type Phrase, text } from '../../platform/texts/text.ts';
import { normaliseUserName, validateUserName } from '../users/user-name.ts';

/**
 * Brings a name that a user typed or a provider sent into the form under which the hub knows the
 * person: trimmed, Unicode NFC, lower case. Lock-outs, allow lists and accounts all go by this form,
 * so that `Ada`, `ada ` and `ada` are one person.
 */
export function canonicalUserName(name: string): string {
  return normaliseUserName(normaliseUserName(name.trim()).toLowerCase());
}

/** What `Authenticator.username_map` and `username_pattern` make of names. */
export interface UserNameRules {
  /** The canonical name, renamed by the map. */
  resolve(name: string): string;
  /** Says why a resolved name cannot be that of a user; undefined when it can. */
  problemOf(name: string): Phrase | undefined;
  /** Resolves the name of a new account. Throws `bad_request` when it cannot be that of a user. */
  resolveNew(name: string): string;
}

export function createUserNameRules(
  config: Pick<AuthenticatorConfig, 'username_map' | 'username_pattern'>,
): UserNameRules {
  const renamed = new Map(
    Object.entries(config.username_map).map(([from, to]) => [
      canonicalUserName(from),
      canonicalUserName(to),
    ]),
  );
  // The whole name must match: a pattern that fits a part of it would admit names around it.
  const pattern =
    config.username_pattern === '' ? undefined : new RegExp(`^(?:${config.username_pattern})$`);

  function resolve(name: string): string {
    const canonical = canonicalUserName(name);
    return renamed.get(canonical) ?? canonical;
  }

  function problemOf(name: string): Phrase | undefined {
    try {
      validateUserName(name);
    } catch (error) {
      if (error instanceof HubError) return error.shown.message;
      throw error;
    }
    return pattern === undefined || pattern.test(name)
      ? undefined
      : text`User names of this form are not allowed here.`;
  }

  return {
    resolve,
    problemOf,

    resolveNew(name) {
      const resolved = resolve(name);
      const problem = problemOf(resolved);
      if (problem === undefined) return resolved;
      throw new HubError('bad_request', joined([quoted(name), problem], ': '), {
        hint: text`Authenticator.username_pattern and username_map decide about names.`,
      });
    },
  };
}

/** A name for a message: cut short, its control characters escaped. */
function quoted(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}
