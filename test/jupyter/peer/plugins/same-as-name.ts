import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { AuthenticatorPlugin, FormAuthenticator } from '../../../../src/plugin/plugin.ts';

const optionsSchema = z.strictObject({});

/** What a test changes while the hub runs, in `authenticator.json` beside the configuration. */
const changesSchema = z.object({
  authState: z.record(z.string(), z.unknown()).optional(),
  loginsHaveEnded: z.boolean().default(false),
});

/** Everybody whose password is the user name may come in, but for names that begin with `notallowed`. */
const plugin: AuthenticatorPlugin<z.output<typeof optionsSchema>, FormAuthenticator> = {
  kind: 'authenticator',
  name: 'same-as-name',
  section: 'SameAsNameAuthenticator',
  optionsSchema,

  create(_options, { directory }) {
    const changes = () => {
      try {
        const file = readFileSync(join(directory, 'authenticator.json'), 'utf8');
        return changesSchema.parse(JSON.parse(file));
      } catch {
        return changesSchema.parse({});
      }
    };
    return {
      login: {
        kind: 'form',
        label: 'Sign in',
        fields: [
          { name: 'username', label: 'User name', type: 'text', autocomplete: 'username' },
          { name: 'password', label: 'Password', type: 'password', autocomplete: 'off' },
        ],
      },
      async authenticate(form) {
        const name = form.get('username') ?? '';
        if (name === '' || form.get('password') !== name || name.startsWith('notallowed')) {
          return { outcome: 'refused', reason: 'credentials' };
        }
        const { authState } = changes();
        return {
          outcome: 'authenticated',
          user: authState === undefined ? { name } : { name, authState },
        };
      },
      async refreshUser() {
        return changes().loginsHaveEnded
          ? { outcome: 'login_required', message: 'The login has ended.' }
          : { outcome: 'unchanged' };
      },
    };
  },
};

export default plugin;
