import { existsSync } from 'node:fs';
import { z } from 'zod';
import type {
  AuthenticationResult,
  AuthenticatorPlugin,
  FormAuthenticator,
} from '../../src/plugin/plugin.ts';
import { judgeGroups } from '../external/group-rules.ts';
import { labelOption } from '../external/label-option.ts';
import { nameAndPassword } from '../external/name-and-password.ts';
import { askPam } from './ask-pam.ts';

const groups = z.array(z.string().min(1)).default([]);

/** The options, with the names that JupyterHub gives them. */
const optionsSchema = z.strictObject({
  service: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, 'must be the name of a file in /etc/pam.d')
    .default('login')
    .describe('PAM service, a file in `/etc/pam.d`, that accounts are checked with.'),
  check_account: z
    .boolean()
    .default(true)
    .describe(
      'Whether the account is checked too: expired accounts and those that PAM rules exclude are refused.',
    ),
  allowed_groups: groups.describe('Groups of the machine whose members may log in.'),
  admin_groups: groups.describe('Groups of the machine whose members are administrators.'),
  timeout: z.number().positive().max(300).default(30).describe('Seconds PAM has to check a login.'),
  label: labelOption
    .default('Password')
    .describe('Name of this login method on the login page, or an object with one per language.'),
});

type Options = z.output<typeof optionsSchema>;

/** No honest name or password is longer; PAM itself takes 511 bytes of a password. */
const maxNameLength = 255;
const maxPasswordBytes = 511;

const folders = ['/etc/pam.d', '/usr/lib/pam.d', '/usr/share/pam.d'];
const refused = {
  outcome: 'refused',
  reason: 'credentials',
} as const satisfies AuthenticationResult;

const plugin: AuthenticatorPlugin<Options, FormAuthenticator> = {
  kind: 'authenticator',
  name: 'pam',
  section: 'PAMAuthenticator',
  optionsSchema,

  create(options, { log, name: issuer }) {
    const wantsGroups = options.allowed_groups.length + options.admin_groups.length > 0;

    async function authenticate(name: string, password: string): Promise<AuthenticationResult> {
      const { service, check_account: checkAccount, timeout } = options;
      requireService(service);
      const answer = await askPam(
        { service, name, password, checkAccount, wantsGroups },
        { timeoutMs: timeout * 1000 },
      );
      if (answer.outcome === 'refused') {
        log.info({ reason: answer.reason }, 'PAM refused a login');
        const delayMs = Math.min(answer.waitSeconds, timeout) * 1000;
        return answer.step === 'account'
          ? { outcome: 'refused', reason: 'not_allowed' }
          : { ...refused, delayMs };
      }
      // A module that maps names would give this person the hub's account of another one.
      if (canonical(answer.name) !== name) {
        log.warn({}, 'PAM has another name for the account than the one that was typed');
        return { outcome: 'refused', reason: 'invalid_response' };
      }
      const held = new Set(answer.groups);
      return {
        outcome: 'authenticated',
        user: {
          name,
          issuer,
          ...judgeGroups(options, (group) => held.has(group)),
        },
      };
    }

    return {
      login: { kind: 'form', label: options.label, fields: nameAndPassword },

      async reach() {
        requireService(options.service);
        await askPam(undefined, { timeoutMs: options.timeout * 1000 });
      },

      async authenticate(form) {
        // As the hub compares names: `Ada` and `ada` are one here, and must not be two for PAM.
        const name = canonical(form.get('username') ?? '');
        const password = form.get('password') ?? '';
        const isImpossible =
          !/^[^-:/\p{Cc}][^:/\p{Cc}]*$/u.test(name) ||
          name.length > maxNameLength ||
          !name.isWellFormed() ||
          password === '' ||
          password.includes('\u0000') ||
          Buffer.byteLength(password) > maxPasswordBytes;
        if (isImpossible) return refused;
        return await authenticate(name, password);
      },
    };
  },
};

export default plugin;

const canonical = (name: string): string =>
  name.trim().normalize('NFC').toLowerCase().normalize('NFC');

/** PAM would take the rules of `other` in its place. */
function requireService(service: string): void {
  if (folders.some((folder) => existsSync(`${folder}/${service}`))) return;
  throw new Error(
    `there is no PAM service "${service}" (PAMAuthenticator.service): no file /etc/pam.d/${service}`,
  );
}
